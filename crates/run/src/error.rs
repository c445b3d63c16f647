//! What can be wrong with a run folder as a whole.

use std::path::PathBuf;
use stepscope_capture::CaptureError;
use stepscope_store::StoreError;

/// Why a run folder, or a part of it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The operating system refused.
    #[error("cannot {action}: {source}: {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
        /// Where.
        path: PathBuf,
    },
    /// The folder is no run.
    #[error("this folder is not a run: {}", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing was recorded into the run.
    #[error("nothing was recorded in this run: {}", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// All that was recorded is in captures that were not closed, in an object store.
    #[error("captures that were not closed are read from a disk only: {}", path.display())]
    InStore {
        /// The folder with the captures.
        path: PathBuf,
    },
    /// The run has no file of this rank.
    #[error("the run has no rank {rank}: {}", path.display())]
    UnknownRank {
        /// What was asked for.
        rank: u32,
        /// The folder.
        path: PathBuf,
    },
    /// A folder that should become a run holds something already.
    #[error("the folder is not empty: {}", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// The run was written by a newer Stepscope.
    #[error("the run has format version {found}, this stepscope reads up to {supported}: {}", path.display())]
    NewerVersion {
        /// The version on disk.
        found: u32,
        /// The newest version this code reads.
        supported: u32,
        /// Where.
        path: PathBuf,
    },
    /// A part cannot be read.
    #[error("the process file is damaged: {reason}: {}", path.display())]
    DamagedPart {
        /// What is wrong with it.
        reason: String,
        /// The part.
        path: PathBuf,
    },
    /// A raw capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

impl RunError {
    /// What a store said: then nothing is known of what is there.
    pub fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Io { source, .. } => StoreError::in_error(source),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        if let Some(said) = self.of_store() {
            return said.hint().map(String::from);
        }
        let hint = match self {
            Self::Empty { .. } => {
                "only Python processes that import PyTorch are recorded; `stepscope doctor` says what is possible here"
            }
            Self::NotARun { .. } => "give the folder that `stepscope record -o` named, or a trace file",
            Self::Occupied { .. } => "choose another folder with -o, or remove this one",
            Self::NewerVersion { .. } | Self::Capture(CaptureError::NewerVersion { .. }) => {
                "upgrade stepscope to read it"
            }
            Self::DamagedPart { .. } => "remove the part to read the rest of the run",
            Self::InStore { .. } => {
                "copy the run's folder to a disk and open it there; `stepscope upload` closes captures before it sends them"
            }
            Self::Io { .. } | Self::UnknownRank { .. } | Self::Capture(_) => return None,
        };
        Some(hint.into())
    }
}
