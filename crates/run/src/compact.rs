//! Raw captures of processes that ended become Parquet parts. Safe to run twice, and at the same time: a part is
//! written beside and renamed, and only then is its raw capture removed.

use crate::RunError;
use crate::files::{kept_in, parts_of, raw_captures_of, stem};
use crate::folder::{Run, check, rank_of, read};
use crate::part::{PartSummary, part_summary, write_part};
use crate::warmup;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use stepscope_capture::{Capture, CaptureError, State};

/// What a run holds after everything that can be compacted was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Processes that recorded.
    pub processes: u32,
    /// Processes that ended without closing their capture.
    pub killed: u32,
    /// Processes that still record.
    pub running: u32,
    /// Ops, labels and steps.
    pub events: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Captures that cannot be read.
    pub unreadable: u32,
    /// Windows of a flight recorder that were kept, each a run of its own.
    pub kept: u32,
}

/// Goes through the captures of a run that can become process files. What else belongs to a process is added in between
/// by the caller.
#[derive(Debug)]
pub struct Compaction {
    run: PathBuf,
    files: std::vec::IntoIter<PathBuf>,
    left: Recovered,
}

/// A capture of a process that has ended.
#[derive(Debug)]
pub struct EndedCapture {
    /// What was recorded, without what a schedule's warm-up recorded.
    pub capture: Capture,
    run: PathBuf,
    file: PathBuf,
}

impl Compaction {
    /// Of the run in this folder.
    ///
    /// # Errors
    /// When the folder is no run, or is of a newer version.
    pub fn begin(run: &Path) -> Result<Self, RunError> {
        check(run)?;
        Ok(Self { run: run.into(), files: raw_captures_of(run)?.into_iter(), left: Recovered::default() })
    }

    /// Of the captures whose processes have ended now: of the others the headers alone are read.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn of_ended(run: &Path) -> Result<Self, RunError> {
        check(run)?;
        let has_ended =
            |file: &PathBuf| stepscope_capture::read_head(file).is_ok_and(|capture| capture.state != State::Running);
        let files: Vec<PathBuf> = raw_captures_of(run)?.into_iter().filter(has_ended).collect();
        Ok(Self { run: run.into(), files: files.into_iter(), left: Recovered::default() })
    }

    /// The next capture of a process that has ended.
    ///
    /// # Errors
    /// When it is of a newer version.
    pub fn next_ended(&mut self) -> Result<Option<EndedCapture>, RunError> {
        for file in self.files.by_ref() {
            match stepscope_capture::read(&file) {
                Ok(capture) if capture.state == State::Running => {
                    let events = capture.events.len() + capture.steps.len() + capture.optimizer_steps.len();
                    self.left.processes += 1;
                    self.left.running += 1;
                    self.left.events += events as u64;
                    self.left.bytes += stepscope_store::len(&file);
                }
                Ok(mut capture) => {
                    warmup::leave_out(&mut capture);
                    return Ok(Some(EndedCapture { capture, run: self.run.clone(), file }));
                }
                Err(error @ CaptureError::NewerVersion { .. }) => return Err(error.into()),
                // Gone: another process has compacted it.
                Err(CaptureError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => self.left.unreadable += 1,
            }
        }
        Ok(None)
    }

    /// What stays raw.
    pub fn finish(self) -> Recovered {
        // The last one out removes the folder; it stays while it holds anything.
        let _ = std::fs::remove_dir(self.run.join("raw"));
        self.left
    }
}

impl EndedCapture {
    /// Writes the process file, and removes the capture.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn compact(self) -> Result<(), RunError> {
        let Self { capture, run, file } = self;
        let folder = run.join(format!("rank={}", rank_of(&capture)));
        let io = |action, source| RunError::Io { action, source, path: folder.clone() };
        std::fs::create_dir_all(&folder).map_err(|error| io("create the rank's folder", error))?;
        let beside = folder.join(format!(".{}-{}.new", stem(&file), std::process::id()));
        let written = write_part(&beside, &capture).and_then(|()| {
            let part = folder.join(format!("part-{}.parquet", stem(&file)));
            std::fs::rename(&beside, part).map_err(|error| io("name the part", error))
        });
        if written.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        written?;
        let _ = std::fs::remove_file(&file);
        Ok(())
    }
}

/// Compacts every capture of a process that has ended, also of a flight recorder's snapshots, and sums up the run.
///
/// # Errors
/// When the folder is no run, is of a newer version, or cannot be written.
pub fn recover(path: &Path) -> Result<Recovered, RunError> {
    let mut recovered = compact_all(path)?;
    for folder in kept_in(path) {
        recovered.kept += 1;
        recovered.unreadable += compact_all(&folder)?.unreadable;
    }
    let mut processes = BTreeSet::new();
    for part in parts_of(path)? {
        recovered.bytes += stepscope_store::len(&part);
        match part_summary(&part) {
            Ok(PartSummary { state, events, process }) => {
                recovered.processes += u32::from(processes.insert(process));
                recovered.events += events;
                recovered.killed += u32::from(state == Some(State::Killed));
            }
            Err(_) => recovered.unreadable += 1,
        }
    }
    Ok(recovered)
}

/// Compacts what can be, then reads all of a run.
///
/// # Errors
/// As [`read`].
pub fn open(path: &Path) -> Result<Run, RunError> {
    // A folder that cannot be written is read as it is, and so are objects.
    let _ = compact_all(path);
    read(path)
}

/// Compacts what can be; gives what stays raw.
fn compact_all(run: &Path) -> Result<Recovered, RunError> {
    let mut compaction = Compaction::begin(run)?;
    while let Some(ended) = compaction.next_ended()? {
        ended.compact()?;
    }
    Ok(compaction.finish())
}
