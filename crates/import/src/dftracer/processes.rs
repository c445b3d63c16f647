//! Processes and threads: which row belongs to whom.
//!
//! A row says `pid` and `tid`, and neither is what it seems. Old dialects write the sum of both as `tid`. What a forked
//! worker does is filed under its parent's `pid`. And DLIO gives its rank as `pid`. All that is only known at the end.

use super::hashes::{Hash, Hashes};
use super::row::{Args, Row, integer};
use super::text;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_trace::{FindingCode, Process, ProcessId, TraceBuilder, Track, TrackId, TrackKind};

/// Numbers below this are taken for ranks when no process can have them.
const MAX_RANK: i64 = 1 << 16;

/// A text, or the hash of one.
#[derive(Clone, Copy, Debug)]
enum TextOrHash {
    Text(StringId),
    Hash(Hash),
}

/// What was learned of one process.
#[derive(Debug)]
struct Known {
    id: ProcessId,
    pid: i64,
    host: Option<usize>,
    /// Threads: `tid` as written.
    threads: Vec<(i64, TrackId)>,
    /// Children: their pid, and the `tid` of who forked them.
    forks: Vec<(i64, i64)>,
    parent: Option<i64>,
    rank: Option<u32>,
    /// What metadata calls it.
    name: Option<StringId>,
    program: Option<TextOrHash>,
    command: Option<TextOrHash>,
    has_full_host_names: bool,
    is_started: bool,
    is_ended: bool,
}

/// Everything met so far.
#[derive(Debug, Default)]
pub(super) struct Processes {
    known: Vec<Known>,
    by_pid: FxHashMap<(Option<usize>, i64), usize>,
    tracks: FxHashMap<(usize, i64), TrackId>,
    /// Hosts as written.
    hosts: Vec<(Vec<u8>, bool)>,
    /// The host that rows of this process named last, in this file: rows of metadata name none.
    host_of_pid: FxHashMap<i64, usize>,
    last: Last,
}

/// The owner of the last row, since the next one often has the same.
#[derive(Debug, Default)]
struct Last {
    pid: Vec<u8>,
    tid: Vec<u8>,
    host: Vec<u8>,
    owner: Option<RowOwner>,
}

/// The process and the thread that a row is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowOwner {
    /// Which of the known processes.
    process: usize,
    /// The pid as written.
    pub(super) pid: i64,
    tid: i64,
    /// The thread; none for rows that only say something of the process.
    track: Option<TrackId>,
}

impl RowOwner {
    /// The same, of which the thread is known.
    pub(super) fn on(self, track: TrackId) -> Self {
        Self { track: Some(track), ..self }
    }
}

impl Processes {
    /// Forgets what held for the last file alone.
    pub(super) fn begin_file(&mut self) {
        self.host_of_pid.clear();
        self.last = Last::default();
    }

    /// Where a row lies; `None` when its numbers are none.
    pub(super) fn owner(&mut self, row: &Row<'_>, builder: &mut TraceBuilder) -> Option<RowOwner> {
        let last = &self.last;
        if let Some(owner) = last.owner
            && (&*last.tid, &*last.pid, &*last.host) == (row.tid, row.pid, row.args.host)
        {
            return Some(owner);
        }
        let id = |written: &[u8]| if written.is_empty() { Some(0) } else { integer(written) };
        let (pid, tid) = (id(row.pid)?, id(row.tid)?);
        let host = self.host(pid, &row.args);
        let process = self.process(host, pid, builder);
        self.known[process].has_full_host_names |= !row.args.host.is_empty() && !row.args.is_host_hashed;
        let owner = RowOwner { process, pid, tid, track: self.tracks.get(&(process, tid)).copied() };
        let last = &mut self.last;
        let copies = [(&mut last.pid, row.pid), (&mut last.tid, row.tid), (&mut last.host, row.args.host)];
        for (copy, written) in copies {
            copy.clear();
            copy.extend_from_slice(written);
        }
        last.owner = Some(owner);
        Some(owner)
    }

    /// The thread of a row.
    pub(super) fn track(&mut self, owner: RowOwner, builder: &mut TraceBuilder) -> TrackId {
        if let Some(track) = owner.track {
            return track;
        }
        let known = &mut self.known[owner.process];
        let track = *self.tracks.entry((owner.process, owner.tid)).or_insert_with(|| {
            let track = builder.add_track(Track::new(TrackKind::Thread, known.id, ""));
            known.threads.push((owner.tid, track));
            track
        });
        self.last.owner =
            self.last.owner.map(|last| if last == owner { RowOwner { track: Some(track), ..last } } else { last });
        track
    }

    /// The process of a row.
    pub(super) fn id(&self, owner: RowOwner) -> ProcessId {
        self.known[owner.process].id
    }

    /// A row says which rank its process has.
    pub(super) fn set_rank(&mut self, owner: RowOwner, rank: u32) {
        self.known[owner.process].rank = Some(rank);
    }

    /// A row says what its process is called.
    pub(super) fn set_name(&mut self, owner: RowOwner, name: StringId) {
        self.known[owner.process].name = Some(name);
    }

    /// A row says that its process forked `child`.
    pub(super) fn add_fork(&mut self, owner: RowOwner, child: i64) {
        if child > 0 {
            self.known[owner.process].forks.push((child, owner.tid));
        }
    }

    /// A row says how its process began.
    pub(super) fn start(&mut self, owner: RowOwner, args: &Args<'_>, builder: &mut TraceBuilder) {
        let known = &mut self.known[owner.process];
        known.is_started = true;
        args.for_each(|key, written| {
            let mut intern = || TextOrHash::Text(builder.strings.intern(&text::decode(written).text));
            match key {
                b"ppid" => known.parent = integer(written),
                b"exec" => known.program = Some(intern()),
                b"cmd" => known.command = Some(intern()),
                b"exec_hash" => known.program = Hash::read(written, owner.pid).map(TextOrHash::Hash),
                b"cmd_hash" => known.command = Hash::read(written, owner.pid).map(TextOrHash::Hash),
                _ => {}
            }
        });
    }

    /// A row says that DFTracer ended in good order.
    pub(super) fn end(&mut self, owner: RowOwner) {
        self.known[owner.process].is_ended = true;
    }

    /// Fills in what is only known at the end.
    pub(super) fn finish(mut self, hashes: &Hashes, builder: &mut TraceBuilder) {
        let by_host: BTreeMap<(Option<usize>, i64), usize> =
            self.known.iter().enumerate().map(|(at, known)| ((known.host, known.pid), at)).collect();
        for at in 0..self.known.len() {
            self.known[at].parent =
                self.known[at].parent.filter(|pid| by_host.contains_key(&(self.known[at].host, *pid)));
        }
        for at in 0..self.known.len() {
            let rank = self.rank(at, &by_host, 0);
            let known = &self.known[at];
            let text_id = |text_id: Option<TextOrHash>| match text_id? {
                TextOrHash::Text(text) => Some(text),
                TextOrHash::Hash(hash) => Some(hashes.get(hash)?.text),
            };
            let name = process_name(
                text_id(known.program).map(|text| builder.strings.get(text)),
                text_id(known.command).map(|text| builder.strings.get(text)),
                known.name.map(|text| builder.strings.get(text)),
            );
            let host = known.host.and_then(|host| self.host_name(host, known.pid, hashes, builder));
            let is_rank = known.is_rank();
            if is_rank && known.rank.is_none() {
                builder.findings.add(FindingCode::InferredRank, || format!("process {}", known.pid));
            }
            if known.is_started && !known.is_ended {
                builder.findings.add(FindingCode::ProcessKilled, || format!("{name} (pid {})", known.pid));
                builder.set_cut(known.id);
            }
            let pid = Some(known.pid).filter(|pid| !is_rank && *pid > 0);
            let process = Process { rank, pid, parent_pid: known.parent, host, name, ..Process::default() };
            *builder.process_mut(known.id) = process.clone();
            known.name_threads(&process, |pid| by_host.get(&(known.host, pid)).map(|at| self.known[*at].id), builder);
        }
    }

    fn host(&mut self, pid: i64, args: &Args<'_>) -> Option<usize> {
        if args.host.is_empty() {
            return self.host_of_pid.get(&pid).copied();
        }
        let known = self.hosts.iter().position(|(written, _)| written == args.host);
        let host = known.unwrap_or_else(|| {
            self.hosts.push((args.host.to_vec(), args.is_host_hashed));
            self.hosts.len() - 1
        });
        // What rows without a host said of this process was said of this one.
        if self.host_of_pid.insert(pid, host).is_none()
            && !self.by_pid.contains_key(&(Some(host), pid))
            && let Some(process) = self.by_pid.remove(&(None, pid))
        {
            self.known[process].host = Some(host);
            self.by_pid.insert((Some(host), pid), process);
        }
        Some(host)
    }

    fn process(&mut self, host: Option<usize>, pid: i64, builder: &mut TraceBuilder) -> usize {
        *self.by_pid.entry((host, pid)).or_insert_with(|| {
            self.known.push(Known {
                id: builder.add_process(Process::default()),
                pid,
                host,
                threads: Vec::new(),
                forks: Vec::new(),
                parent: None,
                rank: None,
                name: None,
                program: None,
                command: None,
                has_full_host_names: false,
                is_started: false,
                is_ended: false,
            });
            self.known.len() - 1
        })
    }

    /// The rank of a process: as it says, else its parent's.
    fn rank(&self, at: usize, by_host: &BTreeMap<(Option<usize>, i64), usize>, depth: u32) -> u32 {
        let known = &self.known[at];
        let own = known.rank.or_else(|| u32::try_from(known.pid).ok().filter(|_| known.is_rank()));
        let parent = known.parent.and_then(|pid| by_host.get(&(known.host, pid)));
        match (own, parent) {
            (Some(rank), _) => rank,
            (None, Some(parent)) if depth < 64 => self.rank(*parent, by_host, depth + 1),
            _ => 0,
        }
    }

    fn host_name(&self, host: usize, pid: i64, hashes: &Hashes, builder: &TraceBuilder) -> Option<String> {
        let (written, is_hashed) = &self.hosts[host];
        if !is_hashed {
            return Some(text::decode(written).text.into_owned());
        }
        let meaning = hashes.get(Hash::read(written, pid)?)?;
        Some(builder.strings.get(meaning.text).to_string())
    }
}

impl Known {
    /// True when `tid` is the sum of thread and process. Such dialects name hosts in full; where rows have no
    /// arguments, or
    /// 1.0.5 was built from source at an odd moment, the main thread tells.
    fn is_summed(&self) -> bool {
        let has = |tid: i64| self.threads.iter().any(|thread| thread.0 == tid);
        let is_main_told = self.pid.checked_mul(2).is_some_and(has) && !has(self.pid);
        let can_be = self.pid > 0 && self.threads.iter().all(|thread| thread.0 >= self.pid);
        can_be && (is_main_told || (self.has_full_host_names && !has(self.pid)))
    }

    fn real_tid(&self, tid: i64) -> i64 {
        if self.is_summed() { tid - self.pid } else { tid }
    }

    /// True when `pid` is a rank: too small a number, and no thread has it, as the first thread of a process does.
    fn is_rank(&self) -> bool {
        let has_such_thread = || self.threads.iter().any(|thread| self.real_tid(thread.0) == self.pid);
        self.has_full_host_names && (0..MAX_RANK).contains(&self.pid) && !self.threads.is_empty() && !has_such_thread()
    }

    /// Names threads, and files those of forked workers under a process of their own.
    fn name_threads(&self, process: &Process, known: impl Fn(i64) -> Option<ProcessId>, builder: &mut TraceBuilder) {
        let is_summed = self.is_summed();
        let real = |tid: i64| if is_summed { tid - self.pid } else { tid };
        for (tid, track) in &self.threads {
            let tid = real(*tid);
            let named = builder.track_mut(*track);
            (named.tid, named.name) = (Some(tid), format!("thread {tid}"));
            let Some((_, forked_by)) = self.forks.iter().find(|fork| fork.0 == tid && tid != self.pid) else {
                continue;
            };
            let forked_by = real(*forked_by);
            let is_of_worker = self.forks.iter().any(|fork| fork.0 == forked_by);
            let parent_pid = if is_of_worker { Some(forked_by) } else { process.pid };
            let name = format!("{} (forked)", process.name);
            let worker = known(tid).unwrap_or_else(|| {
                builder.add_process(Process { pid: Some(tid), parent_pid, name, ..process.clone() })
            });
            builder.track_mut(*track).process = worker;
        }
    }
}

/// The program's name, or else the first word of the command, or else what metadata says.
fn process_name(program: Option<&str>, command: Option<&str>, metadata: Option<&str>) -> String {
    // Of `python -c …` the program is called by its argument.
    let is_said = |text: &&str| !text.is_empty() && !text.starts_with(['-', ' ']) && !text.starts_with("DEFAULT");
    let program = program.filter(is_said).filter(|text| !text.contains("import "));
    let command = command.and_then(|command| command.split(';').next()).filter(is_said);
    let path = program.or(command).or(metadata.filter(is_said)).unwrap_or("process");
    let name: String = path.rsplit('/').next().unwrap_or(path).chars().take(80).collect();
    if name.is_empty() { "process".into() } else { name }
}
