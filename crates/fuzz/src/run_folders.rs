//! Run folders: Parquet parts and `run.json`.

use crate::{captures, seeds, sound};
use std::path::Path;

/// A part is refused, or what is read of it is in range, and a run folder with it opens.
///
/// # Panics
/// When that is not so.
pub fn part(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = add_part(folder.path(), bytes);
    if let Ok(capture) = stepscope_run::read_part(&path) {
        captures::check(&capture);
    }
    if let Ok(trace) = stepscope_import::open(folder.path()) {
        sound::check(&trace);
    }
}

/// Whatever `run.json` says, the run beside it opens, or is of a newer version.
///
/// # Panics
/// When that is not so.
pub fn manifest(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    add_part(folder.path(), seeds::small_part());
    std::fs::write(folder.path().join("run.json"), bytes).expect("written");
    match stepscope_run::open(folder.path()) {
        Ok(run) => assert_eq!((run.captures.len(), run.unreadable.len()), (1, 0)),
        Err(error) => assert!(matches!(error, stepscope_run::RunError::NewerVersion { .. }), "{error}"),
    }
}

fn add_part(run: &Path, bytes: &[u8]) -> std::path::PathBuf {
    std::fs::create_dir(run.join("rank=0")).expect("a folder");
    let path = run.join("rank=0/part-1-2.parquet");
    std::fs::write(&path, bytes).expect("written");
    path
}
