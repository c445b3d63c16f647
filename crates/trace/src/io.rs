//! Calls that read, write or manage files.

use crate::SliceId;
use serde::{Deserialize, Serialize};
use stepscope_base::StringId;

/// The interface through which a file is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum IoLayer {
    /// System calls: `open`, `read`, `write`.
    Posix,
    /// Buffered streams of the C library: `fopen`, `fread`.
    Stdio,
    /// MPI's file interface.
    MpiIo,
    /// Pages of files that are mapped into memory, which the system reads when they are touched.
    PageFault,
}

impl IoLayer {
    /// The layer's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Posix => "posix",
            Self::Stdio => "stdio",
            Self::MpiIo => "mpiio",
            Self::PageFault => "page_fault",
        }
    }
}

/// What a call does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum IoAction {
    /// Moves bytes from a file.
    Read,
    /// Moves bytes to a file.
    Write,
    /// Opens or makes a file.
    Open,
    /// Anything else: close, stat, seek, sync …
    Metadata,
}

impl IoAction {
    /// True for what reads or writes.
    pub fn moves_bytes(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// The action's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Open => "open",
            Self::Metadata => "metadata",
        }
    }
}

/// One call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IoEvent {
    /// Its slice, of kind `Io`.
    pub slice: SliceId,
    /// The interface.
    pub layer: IoLayer,
    /// What it does.
    pub action: IoAction,
    /// The file's path; empty when not told.
    pub file: StringId,
    /// Bytes moved.
    pub bytes: Option<i64>,
    /// Where in the file.
    pub offset: Option<i64>,
}
