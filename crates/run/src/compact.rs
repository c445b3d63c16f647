//! Raw captures of processes that ended become Parquet parts. Safe to run twice, and at the same time: a part is
//! written beside and renamed, and only then is its raw capture removed.

use crate::RunError;
use crate::folder::{check, kept_in, rank_of};
use crate::part::{part_summary, write_part};
use crate::warmup;
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

/// Called before a capture is compacted, with the folder of its run: adds what lies beside the capture there.
pub type BeforeCompact<'a> = &'a dyn Fn(&Path, &mut Capture);

/// Compacts every capture of a process that has ended, and sums up the run.
///
/// # Errors
/// When the folder is no run, is of a newer version, or cannot be written.
pub fn recover(path: &Path) -> Result<Recovered, RunError> {
    recover_with(path, &|_, _| {})
}

/// As [`recover`]; calls `before_compact` with each capture before it becomes a process file.
///
/// # Errors
/// As [`recover`].
pub fn recover_with(path: &Path, before_compact: BeforeCompact<'_>) -> Result<Recovered, RunError> {
    check(path)?;
    let mut recovered = compact_all(path, before_compact)?;
    for folder in kept_in(path) {
        recovered.kept += 1;
        let kept = compact_all(&folder, before_compact)?;
        recovered.unreadable += kept.unreadable;
    }
    for part in parts_of(path) {
        recovered.bytes += size_of_file(&part);
        match part_summary(&part) {
            Ok((state, events)) => {
                recovered.processes += 1;
                recovered.events += events;
                recovered.killed += u32::from(state == State::Killed);
            }
            Err(_) => recovered.unreadable += 1,
        }
    }
    Ok(recovered)
}

/// Compacts what can be; counts what stays raw.
pub(crate) fn compact_all(path: &Path, before_compact: BeforeCompact<'_>) -> Result<Recovered, RunError> {
    let mut left = Recovered::default();
    for file in raw_captures_of(path) {
        match stepscope_capture::read(&file) {
            Ok(capture) if capture.state == State::Running => {
                left.processes += 1;
                left.running += 1;
                left.events += (capture.events.len() + capture.steps.len() + capture.optimizer_steps.len()) as u64;
                left.bytes += size_of_file(&file);
            }
            Ok(mut capture) => {
                warmup::leave_out(&mut capture);
                before_compact(path, &mut capture);
                compact(path, &file, &capture)?;
            }
            Err(error @ CaptureError::NewerVersion { .. }) => return Err(error.into()),
            // Gone: somebody else has compacted it.
            Err(CaptureError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => left.unreadable += 1,
        }
    }
    // The last one out removes the folder; it stays while it holds anything.
    let _ = std::fs::remove_dir(path.join("raw"));
    Ok(left)
}

/// True when processes have recorded into the run, and none of them may go on.
pub fn is_over(run: &Path) -> bool {
    !parts_of(run).is_empty() && raw_captures_of(run).is_empty()
}

fn compact(run: &Path, file: &Path, capture: &Capture) -> Result<(), RunError> {
    let folder = run.join(format!("rank={}", rank_of(capture)));
    let io = |action, source| RunError::Io { action, source, path: folder.clone() };
    std::fs::create_dir_all(&folder).map_err(|error| io("create the rank's folder", error))?;
    let beside = folder.join(format!(".{}-{}.new", stem(file), std::process::id()));
    let written = write_part(&beside, capture).and_then(|()| {
        let part = folder.join(format!("part-{}.parquet", stem(file)));
        std::fs::rename(&beside, part).map_err(|error| io("name the part", error))
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written?;
    let _ = std::fs::remove_file(file);
    Ok(())
}

/// `PID-TIME` of a raw capture or of the part made from it.
pub(crate) fn stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    stem.strip_prefix("part-").unwrap_or(&stem).to_string()
}

pub(crate) fn raw_captures_of(run: &Path) -> Vec<PathBuf> {
    files_in(&run.join("raw"), "capture")
}

/// The parts of all ranks, sorted.
pub(crate) fn parts_of(run: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(run) else { return Vec::new() };
    let is_rank = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rank="));
    let folders = entries.flatten().map(|entry| entry.path()).filter(is_rank);
    let mut parts: Vec<PathBuf> = folders.flat_map(|folder| files_in(&folder, "parquet")).collect();
    parts.sort();
    parts
}

fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_it = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_it).collect();
    files.sort();
    files
}

fn size_of_file(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |metadata| metadata.len())
}
