//! Why something could not be written.

use std::path::PathBuf;
use stepscope_engine::EngineError;

/// An export that failed. Nothing was left where it should have been written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// What is to be written cannot be read.
    #[error(transparent)]
    Read(#[from] EngineError),
    /// The operating system refused.
    #[error("cannot write: {source}: {path}")]
    Write {
        /// What should have been written.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something is there already.
    #[error("the output exists already: {path}")]
    Exists {
        /// The file or folder.
        path: PathBuf,
    },
    /// A file for each rank in a format that has all ranks in one.
    #[error("only Chrome JSON can be split by rank: {path}")]
    NotByRank {
        /// The name.
        path: PathBuf,
    },
    /// A name whose ending is not that of a known format.
    #[error("unknown output format: unrecognised file extension: {path}")]
    UnknownFormat {
        /// The name.
        path: PathBuf,
    },
}

impl ExportError {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Read(error) => return error.hint(),
            Self::Write { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => Some("create the parent folder first"),
                std::io::ErrorKind::StorageFull => Some("the disk is full: choose a path on another one"),
                _ => None,
            },
            Self::Exists { .. } => Some("choose another path, or pass --force to replace it"),
            Self::NotByRank { .. } => Some("name it *{rank}*.json or *{rank}*.json.gz, or leave out {rank}"),
            Self::UnknownFormat { .. } => Some(
                "name it *.json or *.json.gz (Chrome), *.pftrace or *.pftrace.gz (Perfetto), *.parquet (slices), \
                 or a folder with a / at its end (all tables)",
            ),
        };
        hint.map(String::from)
    }
}
