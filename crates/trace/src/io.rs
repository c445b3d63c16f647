//! Calls that read, write or manage files.

use crate::SliceId;
use serde::{Deserialize, Deserializer, Serialize};
use std::num::NonZeroU16;
use stepscope_base::{StringId, StringTable};

/// The interface through which a file is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum IoLayer {
    /// System calls: `open`, `read`, `write`.
    Posix,
    /// Buffered streams of the C library: `fopen`, `fread`.
    Stdio,
    /// MPI's file interface.
    MpiIo,
    /// Data sets and attributes of HDF5 files.
    Hdf5,
    /// Pages of files that are mapped into memory, which the system reads when they are touched.
    PageFault,
    /// Sockets, with the peer in place of a file.
    Net,
}

impl IoLayer {
    /// The layer's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Posix => "posix",
            Self::Stdio => "stdio",
            Self::MpiIo => "mpiio",
            Self::Hdf5 => "hdf5",
            Self::PageFault => "page_fault",
            Self::Net => "net",
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
    /// That of the file to which bytes are moved from that file, or the second one that is named; empty where there is
    /// none.
    pub other_file: StringId,
    /// Bytes moved.
    pub bytes: Option<i64>,
    /// Bytes asked for.
    pub asked_bytes: Option<i64>,
    /// Where in the file.
    pub offset: Option<i64>,
    /// The error that it gave, as the system numbers them; [`IoEvent::UNKNOWN_ERROR`] where the source says only that it
    /// failed. `None` for no error.
    #[serde(deserialize_with = "errno")]
    pub errno: Option<NonZeroU16>,
}

/// As any number: the types of a table are found out by values that are zero.
fn errno<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU16>, D::Error> {
    Ok(Option::<u16>::deserialize(from)?.and_then(NonZeroU16::new))
}

impl IoEvent {
    /// The error of a call of which only that it failed is known.
    pub const UNKNOWN_ERROR: NonZeroU16 = NonZeroU16::MAX;

    /// True for a call that moves bytes from one file to another.
    pub fn copies(&self) -> bool {
        self.action == IoAction::Read && self.other_file != StringTable::EMPTY
    }

    /// True for a call that gave an error.
    pub fn has_failed(&self) -> bool {
        self.errno.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_small() {
        assert!(size_of::<IoEvent>() <= 64, "traces have millions of them");
    }
}
