//! The files of a run by rank, so that a run of many ranks can be read one rank after the other.
//!
//! ```text
//! RUN/rank=3/part-….parquet   its folder says the rank
//! RUN/raw/….capture           its records say the rank: the last one that does
//! ```

use crate::files::{is_raw, kept_in, parts_of, rank_of_folder, raw_captures_of, stem};
use crate::folder::{Manifest, check, file_name, rank_of};
use crate::part::read_part_head;
use crate::{RunError, read_part, warmup};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use stepscope_capture::{Capture, CaptureError, CaptureReader};

/// Which files a run has.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunFiles {
    /// The folder's name.
    pub name: String,
    /// `run.json`, when it is there and whole.
    pub manifest: Option<Manifest>,
    /// By rank, what its processes recorded: process files, and captures that have not become one. There is always one
    /// rank: without any file it is 0.
    pub ranks: BTreeMap<u32, Vec<PathBuf>>,
    /// Files that do not even say their rank, and why.
    pub unreadable: Vec<String>,
    /// Captures in an object store, which are read from a disk only.
    pub in_store: Vec<PathBuf>,
    /// Folders below this one with windows of a flight recorder, each a run of its own.
    pub kept: Vec<String>,
    run: PathBuf,
    hosts: Mutex<HostClocks>,
}

/// The clocks of hosts, as the first process of each read them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct HostClocks {
    /// Files that were not looked at yet, by the time in their names.
    left: VecDeque<PathBuf>,
    /// Unix time minus monotonic clock, by the boot id of the host.
    #[serde(with = "pairs")]
    known: BTreeMap<[u8; 16], i64>,
}

/// What the processes of a rank recorded.
#[derive(Clone, Debug, Default)]
pub struct RankCaptures {
    /// By time of opening.
    pub captures: Vec<Capture>,
    /// Files that could not be read, and why.
    pub unreadable: Vec<String>,
}

impl RunFiles {
    /// Those of the run in the folder `run`. Of process files only the names are read, of captures not what threads did.
    ///
    /// # Errors
    /// When the folder is no run, is of a newer version, or holds nothing.
    pub fn list(run: &Path) -> Result<Self, RunError> {
        let manifest = check(run)?;
        let (mut ranks, mut unreadable) = (BTreeMap::<u32, Vec<PathBuf>>::new(), Vec::new());
        // Raw first: one that vanishes meanwhile has become a part.
        let is_in_store = stepscope_store::is_remote(run);
        let (mut in_store, on_disk): (Vec<_>, Vec<_>) = raw_captures_of(run)?.into_iter().partition(|_| is_in_store);
        let raw = on_disk.into_iter().map(|file| (rank_in_capture(&file), file));
        let raw: Vec<(Result<u32, CaptureError>, PathBuf)> = raw.collect();
        let parts = parts_of(run)?;
        let compacted: HashSet<String> = parts.iter().map(|part| stem(part)).collect();
        in_store.retain(|file| !compacted.contains(&stem(file)));
        for (rank, file) in raw.into_iter().filter(|(_, file)| !compacted.contains(&stem(file))) {
            match rank {
                Ok(rank) => ranks.entry(rank).or_default().push(file),
                Err(_) if !stepscope_store::exists(&file) => {}
                Err(error @ CaptureError::NewerVersion { .. }) => return Err(error.into()),
                Err(error) => unreadable.push(error.to_string()),
            }
        }
        for part in parts {
            ranks.entry(rank_of_folder(&part)).or_default().push(part);
        }
        if ranks.is_empty() && !in_store.is_empty() {
            return Err(RunError::InStore { path: run.join("raw") });
        }
        if ranks.is_empty() && unreadable.is_empty() && manifest.is_some() {
            return Err(RunError::Empty { path: run.into() });
        }
        let left = HostClocks::in_order(ranks.values().flatten().cloned().collect());
        if ranks.is_empty() {
            ranks.insert(0, Vec::new());
        }
        let name = stepscope_store::canonicalize(run)
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let kept = kept_in(run).iter().map(|folder| format!("kept/{}", file_name(folder))).collect();
        let hosts = Mutex::new(HostClocks { left, known: BTreeMap::new() });
        let name = name.unwrap_or_default();
        Ok(Self { name, manifest, ranks, unreadable, in_store, kept, run: run.into(), hosts })
    }

    /// What has to be known of the run to read `rank` where nothing else of it is looked at. What was found of the whole run
    /// is not in it. `moved` says where a file or folder of it is there.
    pub fn alone(&self, rank: u32, moved: impl Fn(&Path) -> PathBuf) -> Self {
        let files = self.ranks.get(&rank).into_iter().flatten();
        let heads = files.clone().filter_map(|file| read_head(&self.now(file)).ok());
        let clock = |head: Capture| {
            let host = head.process.boot_id;
            (host, self.offset_of_host_ns(host, head.unix_offset_ns))
        };
        let hosts = HostClocks { left: VecDeque::new(), known: heads.map(clock).collect() };
        Self {
            name: self.name.clone(),
            manifest: self.manifest.clone(),
            ranks: BTreeMap::from([(rank, files.map(|file| moved(file)).collect())]),
            unreadable: Vec::new(),
            in_store: Vec::new(),
            kept: Vec::new(),
            run: moved(&self.run),
            hosts: Mutex::new(hosts),
        }
    }

    /// Reads what the processes of `rank` recorded.
    ///
    /// # Errors
    /// When the run has no such rank, a file is of a newer version, or a store refuses it.
    pub fn read(&self, rank: u32) -> Result<RankCaptures, RunError> {
        let unknown = || RunError::UnknownRank { rank, path: self.run.clone() };
        let mut read = RankCaptures::default();
        for file in self.ranks.get(&rank).ok_or_else(unknown)? {
            match read_file(&self.now(file)) {
                Ok(capture) => read.captures.push(capture),
                Err(error @ (RunError::NewerVersion { .. } | RunError::Capture(CaptureError::NewerVersion { .. }))) => {
                    return Err(error);
                }
                Err(error) if error.of_store().is_some() => return Err(error),
                Err(error) => read.unreadable.push(error.to_string()),
            }
        }
        read.captures.sort_by_key(|capture| (capture.opened_ns, capture.process.pid));
        Ok(read)
    }

    /// Unix time minus the monotonic clock of the host of `capture`. It is the same for all processes of a host, whichever
    /// ranks are read: what the first of them read when it opened its capture.
    pub fn unix_offset_ns(&self, capture: &Capture) -> i64 {
        self.offset_of_host_ns(capture.process.boot_id, capture.unix_offset_ns)
    }

    /// The same of each file of `rank` that can be read; none of a rank that is not there.
    pub fn unix_offsets_ns(&self, rank: u32) -> Vec<i64> {
        let heads = self.ranks.get(&rank).into_iter().flatten().filter_map(|file| read_head(&self.now(file)).ok());
        heads.map(|head| self.offset_of_host_ns(head.process.boot_id, head.unix_offset_ns)).collect()
    }

    fn offset_of_host_ns(&self, host: [u8; 16], own_ns: i64) -> i64 {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        while !hosts.known.contains_key(&host) {
            let Some(file) = hosts.left.pop_front() else { break };
            if let Ok(head) = read_head(&self.now(&file)) {
                hosts.known.entry(head.process.boot_id).or_insert(head.unix_offset_ns);
            }
        }
        *hosts.known.entry(host).or_insert(own_ns)
    }

    /// Where a file is now: a capture may have become a process file since it was listed.
    fn now(&self, file: &Path) -> PathBuf {
        let part = || parts_of(&self.run).ok()?.into_iter().find(|part| stem(part) == stem(file));
        let is_gone = is_raw(file) && !stepscope_store::exists(file);
        is_gone.then(part).flatten().unwrap_or_else(|| file.into())
    }
}

impl HostClocks {
    /// `files` by the time in their names.
    fn in_order(mut files: Vec<PathBuf>) -> VecDeque<PathBuf> {
        files.sort_by_cached_key(|file| {
            let stem = stem(file);
            let time_ns = stem.rsplit_once('-').and_then(|(_, time)| time.parse::<u64>().ok());
            (time_ns.unwrap_or(u64::MAX), stem)
        });
        files.into()
    }
}

/// A map whose keys are no text, as a list.
mod pairs {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    type Clocks = BTreeMap<[u8; 16], i64>;

    pub(super) fn serialize<S: Serializer>(clocks: &Clocks, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(clocks)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Clocks, D::Error> {
        Ok(Vec::<([u8; 16], i64)>::deserialize(from)?.into_iter().collect())
    }
}

/// The rank that the records of a capture say last.
fn rank_in_capture(file: &Path) -> Result<u32, CaptureError> {
    Ok(rank_of(CaptureReader::open(file)?.capture()))
}

fn read_file(file: &Path) -> Result<Capture, RunError> {
    if !is_raw(file) {
        return read_part(file);
    }
    let mut capture = stepscope_capture::read(file)?;
    warmup::leave_out(&mut capture);
    Ok(capture)
}

/// What a file says of its process, without anything that was recorded.
fn read_head(file: &Path) -> Result<Capture, RunError> {
    if is_raw(file) { Ok(stepscope_capture::read_head(file)?) } else { read_part_head(file) }
}
