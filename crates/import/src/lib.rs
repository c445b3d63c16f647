//! Readers: whatever recorded a run, it becomes one [`Trace`].
//!
//! An input is recognised by its content, never by its name alone. Whatever of it can be read is read; what was
//! repaired, left out or could not be linked is a finding of the trace. Only what gives no trace at all is an
//! [`ImportError`].

mod call_stacks;
mod capture;
mod collectives;
mod dftracer;
mod error;
mod flight_recorder;
mod foreign;
mod input;
mod jobs;
mod json;
mod kernel_fields;
mod kineto;
mod labels;
mod memory_snapshot;
mod name_tables;
mod parts;
mod pickle;
mod process_groups;
mod processors;
mod progress;
mod ranks;
mod server_iterations;
mod source_text;
mod stream;
mod window;

pub use capture::{DEVICE_SESSION, RecordingRows, RunRanks, SliceRow, SliceSink, close_ended, read_capture, recover};
pub use error::ImportError;
pub use parts::Parts;
pub use progress::Progress;
pub use ranks::{JoinedFiles, Joining};
pub use regex_lite::Regex;
pub use source_text::source_text;
pub use stepscope_run::{Exclude, ExcludeDevice, RecordFilter};

use std::path::{Path, PathBuf};
use stepscope_base::Span;
use stepscope_trace::Trace;
use window::{Begun, Blocks};

/// Opens a run folder of our own recorder, a folder of DFTracer's files or of the traces of a job's ranks, or a trace
/// file: JSON of PyTorch's profiler or another Chrome trace, rows of DFTracer, or a memory snapshot or a dump of the
/// Flight Recorder of PyTorch, plain or packed with gzip, zstd or zip. `-` is standard input.
///
/// # Errors
/// When the file cannot be read at all, or is no trace.
pub fn open(path: impl AsRef<Path>) -> Result<Trace, ImportError> {
    open_with_progress(path, &Progress::default())
}

/// As [`open`]; `progress` tells another thread how far it is.
///
/// # Errors
/// As [`open`].
pub fn open_with_progress(path: impl AsRef<Path>, progress: &Progress) -> Result<Trace, ImportError> {
    open_joining(path.as_ref(), &Joining::default(), progress)
}

/// As [`open_with_progress`]; the files of a folder are joined as `joining` says.
///
/// # Errors
/// As [`open`].
pub fn open_joining(path: &Path, joining: &Joining, progress: &Progress) -> Result<Trace, ImportError> {
    let failed = |source| ImportError::Read { path: path.into(), source };
    if path.as_os_str() != "-" && stepscope_store::metadata(path).map_err(failed)?.is_folder {
        if !stepscope_store::exists(&path.join("run.json"))
            && let Some(trace) = dftracer::open_folder(path, trace_name(path), joining.is_one_job, progress)?
        {
            return Ok(trace);
        }
        return match files_in(path)?.as_slice() {
            [] => RunRanks::of(path)?.open_all(progress),
            files => ranks::open(trace_name(path), files, joining, progress),
        };
    }
    let input = input::open(path, progress)?;
    read_text(path, input.packing, input.shared, input.blocks)
}

/// The trace files of the folder at `path`, which [`open_joining`] joins, by name; none of a run folder, or where it
/// cannot be listed.
pub fn files_of_folder(path: &Path) -> Vec<PathBuf> {
    files_in(path).unwrap_or_default()
}

fn files_in(path: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let failed = |source| ImportError::Read { path: path.into(), source };
    if is_run_folder(path) { Ok(Vec::new()) } else { ranks::files_in(path).map_err(failed) }
}

/// Whether the folder at `path` holds the files of a job's ranks, which are one run, and not traces that have nothing to
/// do with each other: whether each file says a rank, or its name does, and there are several ranks. When `joining` says
/// that its files are of one job, they are. Only the beginning of files is read.
pub fn is_job(path: &Path, joining: &Joining) -> bool {
    ranks::are_of_job(&files_of_folder(path), joining)
}

/// Opens several inputs as one run, named by the first: each is the trace of a rank, or what [`open`] accepts.
///
/// # Errors
/// When none of them can be read: what is wrong with the first.
pub fn open_several(paths: &[PathBuf], joining: &Joining, progress: &Progress) -> Result<Trace, ImportError> {
    ranks::open(name_of_several(paths), paths, joining, progress)
}

fn name_of_several(paths: &[PathBuf]) -> String {
    let name = paths.first().map_or_else(String::new, |path| trace_name(path));
    format!("{name} and {} more", paths.len().saturating_sub(1))
}

/// Whether a folder has what our own recorder writes.
fn is_run_folder(path: &Path) -> bool {
    let is_of_run = |path: &PathBuf| {
        let name = path.file_name().and_then(std::ffi::OsStr::to_str);
        name.is_some_and(|name| ["run.json", "raw"].contains(&name) || name.starts_with("rank="))
    };
    stepscope_store::list(path).is_ok_and(|paths| paths.iter().any(is_of_run))
}

/// Opens what a process records, or has recorded, into the capture at `raw`, as far as `filter` selects it.
///
/// # Errors
/// When neither the capture nor the part that it has become can be read.
pub fn open_filtered(raw: impl AsRef<Path>, filter: &RecordFilter) -> Result<Trace, ImportError> {
    open_window(raw, filter).map(|(trace, _)| trace)
}

/// As [`open_filtered`]; gives also when that was recorded, in times of the trace.
///
/// # Errors
/// As [`open_filtered`].
pub fn open_window(raw: impl AsRef<Path>, filter: &RecordFilter) -> Result<(Trace, Option<Span>), ImportError> {
    capture::open_filtered(raw.as_ref(), filter)
}

/// Opens a trace whose bytes are in memory; `path` is what it is called in messages and results.
///
/// # Errors
/// When the bytes are no trace.
pub fn open_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Trace, ImportError> {
    let path = path.as_ref();
    let input = input::in_memory(bytes, path)?;
    read_text(path, input.packing, input.shared, input.blocks)
}

fn read_text(
    path: &Path,
    packing: Option<&'static str>,
    shared: Option<input::SharedText>,
    blocks: Box<dyn Blocks + '_>,
) -> Result<Trace, ImportError> {
    let mut begun = Begun::of(blocks);
    if let Some(foreign::Foreign { found, hint }) = foreign::foreign(path, begun.head()) {
        return Err(ImportError::UnknownFormat { path: path.into(), found, hint });
    }
    if pickle::is_pickle(begun.head()) {
        return memory_snapshot::read(path, trace_name(path), begun);
    }
    if flight_recorder::is_json(begun.head()) {
        return flight_recorder::read_json(path, trace_name(path), begun);
    }
    if dftracer::is_dftracer(begun.head()) {
        return Ok(dftracer::read(path, trace_name(path), &mut begun));
    }
    let source = kineto::Source { path, name: trace_name(path), packing, shared };
    kineto::read(source, Box::new(begun))
}

/// The file's name without the endings of trace files.
fn trace_name(path: &Path) -> String {
    let name = path.file_name().map_or_else(|| path.to_path_buf(), PathBuf::from).display().to_string();
    let mut stem = name.as_str();
    for ending in [".gz", ".zst", ".zip", ".pfw", ".json", ".trace", ".pt", ".pickle", ".pkl"] {
        stem = stem.strip_suffix(ending).filter(|rest| !rest.is_empty()).unwrap_or(stem);
    }
    stem.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_named_by_its_file_without_endings() {
        assert_eq!(trace_name(Path::new("runs/worker0.pt.trace.json.gz")), "worker0");
        assert_eq!(trace_name(Path::new("a.json")), "a");
        assert_eq!(trace_name(Path::new(".gz")), ".gz");
    }

    #[test]
    fn what_is_no_trace_says_what_it_is() {
        let message = |bytes: &[u8]| open_bytes("f", bytes).map(|_| ()).unwrap_err().to_string();
        assert_eq!(message(b""), "expected a trace, found an empty file: f");
        assert_eq!(message(b"  \n"), "expected a trace, found an empty file: f");
        assert_eq!(message(b"hello"), "expected JSON ('{' or '['), found 'h' at byte 0: f");
        assert_eq!(message(b"PAR1..."), "expected a trace, found a Parquet file: f");
        assert!(message(b"{\"a\": 1}").contains("found an object without a list traceEvents at byte 8"));
        assert!(message(b"{\"a\": ").contains("found the end of the text before any event"));
        assert!(message(b"[1, 2]").contains("found a list without an event"));
        assert!(message(b"{\"a\" 1}").contains("expected JSON (':' after a key), found '1' at byte 5"));
        assert!(message(b"\x1f\x8b\x08junk").contains("expected compressed data"));
    }

    #[test]
    fn a_file_that_is_not_there_is_told_apart() {
        let error = open("/nonexistent/trace.json").unwrap_err();
        assert!(matches!(error, ImportError::Read { .. }) && error.hint().is_some());
    }
}
