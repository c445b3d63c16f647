//! Which files and folders a run has.

use crate::RunError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use stepscope_store::{is_file, is_folder};

/// True when `path` is a folder that a run was recorded into.
pub fn is_run_folder(path: &Path) -> bool {
    is_file(&path.join("run.json"))
        || is_folder(&path.join("raw"))
        || parts_of(path).is_ok_and(|parts| !parts.is_empty())
}

/// True when processes have recorded into the run, and none of them may go on.
pub fn is_over(run: &Path) -> bool {
    parts_of(run).is_ok_and(|parts| !parts.is_empty()) && raw_captures_of(run).is_ok_and(|raw| raw.is_empty())
}

/// The folders of windows that a flight recorder kept, sorted; they are named by the time.
pub fn kept_in(run: &Path) -> Vec<PathBuf> {
    let listed = listed(&run.join("kept")).unwrap_or_default().into_iter();
    listed.filter(|folder| is_run_folder(folder)).collect()
}

/// `PID-TIME` of a raw capture or of the part made from it.
pub(crate) fn stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    stem.strip_prefix("part-").unwrap_or(&stem).to_string()
}

/// True for a raw capture, false for a process file.
pub(crate) fn is_raw(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "capture")
}

/// The rank that the folder of a process file says: `rank=3`.
pub(crate) fn rank_of_folder(part: &Path) -> u32 {
    let folder = part.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    folder.strip_prefix("rank=").and_then(|rank| rank.parse().ok()).unwrap_or(0)
}

pub(crate) fn raw_captures_of(run: &Path) -> Result<Vec<PathBuf>, RunError> {
    files_in(&run.join("raw"), "capture")
}

/// The parts of all ranks, sorted.
pub(crate) fn parts_of(run: &Path) -> Result<Vec<PathBuf>, RunError> {
    let is_rank = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rank="));
    let mut parts = Vec::new();
    for folder in listed(run)?.into_iter().filter(is_rank) {
        parts.extend(files_in(&folder, "parquet")?);
    }
    parts.sort();
    Ok(parts)
}

fn files_in(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, RunError> {
    let has_it = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    Ok(listed(folder)?.into_iter().filter(has_it).collect())
}

/// What a folder holds, by name; nothing where there is none.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, RunError> {
    match stepscope_store::list(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        listed => listed.map_err(|source| RunError::Io { action: "list the folder", source, path: folder.into() }),
    }
}
