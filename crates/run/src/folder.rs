//! Creating a run folder and reading all of it.

use crate::files::{is_run_folder, kept_in, parts_of, raw_captures_of, stem};
use crate::{RunError, read_part, warmup};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use stepscope_capture::{Capture, CaptureError};

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
    let manifest = check(path)?;
    let mut unreadable = Vec::new();
    // Raw first: one that vanishes meanwhile has become a part.
    let mut captures = Vec::new();
    let raw: Vec<(PathBuf, Result<Capture, CaptureError>)> =
        raw_captures_of(path).into_iter().map(|file| (file.clone(), stepscope_capture::read(&file))).collect();
    let parts = parts_of(path);
    for (file, capture) in raw {
        let is_compacted = parts.iter().any(|part| stem(part) == stem(&file));
        match capture {
            _ if is_compacted => {}
            Ok(mut capture) => {
                warmup::leave_out(&mut capture);
                captures.push(capture);
            }
            Err(_) if !file.exists() => {}
            Err(error @ CaptureError::NewerVersion { .. }) => return Err(error.into()),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    for part in &parts {
        match read_part(part) {
            Ok(capture) => captures.push(capture),
            Err(error @ RunError::NewerVersion { .. }) => return Err(error),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    if captures.is_empty() && unreadable.is_empty() && manifest.is_some() {
        return Err(RunError::Empty { path: path.into() });
    }
    captures.sort_by_key(|capture| (rank_of(capture), capture.opened_ns, capture.process.pid));
    let name = path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let kept = kept_in(path).iter().map(|folder| format!("kept/{}", file_name(folder))).collect();
    Ok(Run { name: name.unwrap_or_default(), manifest, captures, unreadable, kept })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The rank that a capture's metadata name; 0 when they name none.
pub(crate) fn rank_of(capture: &Capture) -> u32 {
    let rank = capture.metadata.iter().find(|(key, _)| key == "rank");
    rank.and_then(|(_, rank)| rank.parse().ok()).unwrap_or(0)
}

/// The manifest of a run folder that this code can read.
pub(crate) fn check(path: &Path) -> Result<Option<Manifest>, RunError> {
    if !path.is_dir() {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(RunError::Io { action: "open the run folder", source, path: path.into() });
    }
    if !is_run_folder(path) {
        return Err(RunError::NotARun { path: path.into() });
    }
    let text = std::fs::read_to_string(path.join("run.json")).unwrap_or_default();
    let manifest: Option<Manifest> = serde_json::from_str(&text).ok();
    match manifest {
        Some(manifest) if manifest.version > VERSION => {
            Err(RunError::NewerVersion { found: manifest.version, supported: VERSION, path: path.join("run.json") })
        }
        manifest => Ok(manifest),
    }
}
