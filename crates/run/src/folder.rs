//! Creating a run folder and reading all of it.

use crate::files::is_run_folder;
use crate::{RunError, RunFiles};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use stepscope_capture::Capture;

/// The format version this code writes, and the newest it reads.
pub(crate) const VERSION: u32 = 1;
const FORMAT: &str = "stepscope-run";

/// What a new run is.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// The command that is recorded.
    pub command: Vec<String>,
}

/// `run.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `stepscope-run`.
    pub format: String,
    /// Version of the folder's format.
    pub version: u32,
    /// When the run was created, Unix ns.
    pub created_unix_ns: u64,
    /// The command that was recorded; empty when the program records itself.
    #[serde(default)]
    pub command: Vec<String>,
}

/// All that a run folder holds.
#[derive(Clone, Debug)]
pub struct Run {
    /// The folder's name.
    pub name: String,
    /// `run.json`, when it is there and whole.
    pub manifest: Option<Manifest>,
    /// What each process recorded, by (rank, time of opening).
    pub captures: Vec<Capture>,
    /// Files that could not be read, and why.
    pub unreadable: Vec<String>,
    /// Folders below this one with windows of a flight recorder, each a run of its own.
    pub kept: Vec<String>,
}

/// Makes `path` a run folder. It must not exist, or be empty.
///
/// # Errors
/// When the folder holds something, or cannot be written.
pub fn create(path: &Path, new: &NewRun) -> Result<(), RunError> {
    let io = |action, source| RunError::Io { action, source, path: path.into() };
    std::fs::create_dir_all(path).map_err(|error| io("create the run folder", error))?;
    if std::fs::read_dir(path).map_err(|error| io("read the run folder", error))?.next().is_some() {
        return Err(RunError::Occupied { path: path.into() });
    }
    let created_unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let manifest = Manifest { format: FORMAT.into(), version: VERSION, created_unix_ns, command: new.command.clone() };
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| io("write run.json", error.into()))?;
    let beside = path.join("run.json.new");
    std::fs::write(&beside, text + "\n").map_err(|error| io("write run.json", error))?;
    std::fs::rename(&beside, path.join("run.json")).map_err(|error| io("write run.json", error))
}

/// Reads a run as it is: every process file, and the captures of processes that have none yet.
///
/// # Errors
/// When the folder is no run, is of a newer version, or holds nothing that can be read.
pub fn read(path: &Path) -> Result<Run, RunError> {
    let mut files = RunFiles::list(path)?;
    let (mut captures, mut unreadable) = (Vec::new(), std::mem::take(&mut files.unreadable));
    for rank in files.ranks.keys() {
        let mut of_rank = files.read(*rank)?;
        captures.append(&mut of_rank.captures);
        unreadable.append(&mut of_rank.unreadable);
    }
    let RunFiles { name, manifest, kept, .. } = files;
    Ok(Run { name, manifest, captures, unreadable, kept })
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The rank that a capture's metadata name; 0 when they name none.
pub(crate) fn rank_of(capture: &Capture) -> u32 {
    let rank = capture.metadata.iter().find(|(key, _)| key == "rank");
    rank.and_then(|(_, rank)| rank.parse().ok()).unwrap_or(0)
}

/// The manifest of a run folder that this code can read.
pub(crate) fn check(path: &Path) -> Result<Option<Manifest>, RunError> {
    let io = |source| RunError::Io { action: "open the run folder", source, path: path.into() };
    if !stepscope_store::metadata(path).map_err(io)?.is_folder {
        return Err(io(ErrorKind::NotADirectory.into()));
    }
    if !is_run_folder(path) {
        return Err(RunError::NotARun { path: path.into() });
    }
    let text = match stepscope_store::read_to_string(&path.join("run.json")) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => return Err(io(error)),
        read => read.unwrap_or_default(),
    };
    let manifest: Option<Manifest> = serde_json::from_str(&text).ok();
    match manifest {
        Some(manifest) if manifest.version > VERSION => {
            Err(RunError::NewerVersion { found: manifest.version, supported: VERSION, path: path.join("run.json") })
        }
        manifest => Ok(manifest),
    }
}
