//! A run of our own recorder, rank after rank: each is a trace, and all of them merged are the run.

use super::{add_all, add_warnings, compact, has_something_to_say, torch_session};
use crate::{ImportError, Progress};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use stepscope_capture::Capture;
use stepscope_run::RunFiles;
use stepscope_trace::{FindingCode, Trace, TraceBuilder, merge};

/// The ranks of a run folder, and the files of each. What helpers recorded, such as DataLoader workers, is of the rank that
/// they serve.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunRanks {
    path: PathBuf,
    files: RunFiles,
    ranks: Vec<u32>,
    /// The run's first rank, which what concerns the whole run is of.
    first: Option<u32>,
}

impl RunRanks {
    /// Those of the run in the folder at `path`. What ended is compacted before; then only the names of files are read, and
    /// of processes that still record who they are.
    ///
    /// # Errors
    /// When the folder is no run, is of a newer version, or holds nothing.
    pub fn of(path: &Path) -> Result<Self, ImportError> {
        // A folder that cannot be written is read as it is.
        let _ = compact(path);
        let files = RunFiles::list(path)?;
        let ranks: Vec<u32> = files.ranks.keys().copied().collect();
        Ok(Self { path: path.into(), first: ranks.first().copied(), ranks, files })
    }

    /// One of the ranks, which is then read as here, without a look at the others. `moved` says where a file or folder of the
    /// run is there.
    pub fn alone(&self, rank: u32, moved: impl Fn(&Path) -> PathBuf) -> Self {
        let mut files = self.files.alone(rank, &moved);
        if self.first == Some(rank) {
            files.unreadable.clone_from(&self.files.unreadable);
            files.in_store.clone_from(&self.files.in_store);
            files.kept.clone_from(&self.files.kept);
        }
        Self { path: moved(&self.path), files, ranks: vec![rank], first: self.first }
    }

    /// The run folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The ranks, ascending: at least one.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// The files of a rank: process files, and captures of processes that still record; none of a rank that is not there.
    pub fn files(&self, rank: u32) -> &[PathBuf] {
        self.files.ranks.get(&rank).map_or(&[], Vec::as_slice)
    }

    /// What the trace of a rank has that its own files do not say: the run's name, the clocks of its hosts, which the first
    /// file of a host says, and, of the first rank, what concerns the whole run.
    pub fn surroundings(&self, rank: u32) -> String {
        let RunFiles { name, manifest, unreadable, in_store, kept, .. } = &self.files;
        let of_run = (self.first == Some(rank)).then(|| (manifest.is_some(), unreadable, in_store, kept));
        format!("{name} {:?} {of_run:?}", self.files.unix_offsets_ns(rank))
    }

    /// Opens one rank: its processes, and the findings that concern them. Those that concern the whole run are of the first
    /// rank. `progress` tells another thread how far it is.
    ///
    /// # Errors
    /// When the run has no such rank, or is of a newer version.
    pub fn open(&self, rank: u32, progress: &Progress) -> Result<Trace, ImportError> {
        progress.add_total(self.bytes(rank));
        self.read(rank, progress)
    }

    /// Opens all ranks.
    pub(crate) fn open_all(&self, progress: &Progress) -> Result<Trace, ImportError> {
        progress.add_total(self.ranks.iter().map(|rank| self.bytes(*rank)).sum());
        let traces: Result<Vec<Trace>, ImportError> =
            self.ranks.iter().map(|rank| self.read(*rank, progress)).collect();
        Ok(self.join(traces?))
    }

    /// The run, whose `traces` are of its ranks, in their order.
    pub fn join(&self, mut traces: Vec<Trace>) -> Trace {
        if traces.len() == 1 {
            return traces.remove(0);
        }
        let traces = traces.into_iter().map(|trace| (trace.start_unix_ns.unwrap_or(0), trace));
        let traces = traces.map(|(start_ns, trace)| (trace, start_ns)).collect();
        let mut run = merge(self.files.name.clone(), traces, Some(0));
        // All of them write Unix times.
        run.start_source_ns = run.start_unix_ns.unwrap_or(0);
        run
    }

    fn bytes(&self, rank: u32) -> u64 {
        self.files(rank).iter().map(|file| stepscope_store::len(file)).sum()
    }

    fn read(&self, rank: u32, progress: &Progress) -> Result<Trace, ImportError> {
        let bytes = self.bytes(rank);
        let mut read = self.files.read(rank)?;
        progress.add_done(bytes);
        let mut builder = TraceBuilder::new(self.files.name.clone());
        builder.sources.push(self.path.display().to_string());
        builder.clock_zero_unix_ns = Some(0);
        if self.first == Some(rank) {
            self.add_findings_of_run(&mut builder);
        }
        for unreadable in read.unreadable {
            builder.findings.add(FindingCode::DamagedSegment, || unreadable);
        }
        for capture in &mut read.captures {
            add_warnings(torch_session::merge_torch_sessions(&self.path, capture, None), &mut builder);
        }
        let captures: Vec<&Capture> = read.captures.iter().filter(|capture| has_something_to_say(capture)).collect();
        add_all(&captures, &|capture| self.files.unix_offset_ns(capture), false, &mut builder);
        Ok(builder.finish())
    }

    fn add_findings_of_run(&self, builder: &mut TraceBuilder) {
        if self.files.manifest.is_none() {
            builder.findings.add(FindingCode::ManifestMissing, || self.path.join("run.json").display().to_string());
        }
        for unreadable in &self.files.unreadable {
            builder.findings.add(FindingCode::DamagedSegment, || unreadable.clone());
        }
        for file in &self.files.in_store {
            builder.findings.add(FindingCode::CaptureInStore, || file.display().to_string());
        }
        for kept in &self.files.kept {
            builder.findings.add(FindingCode::KeptWindows, || kept.clone());
        }
    }
}
