//! What can be wrong with a capture as a whole; what is wrong inside one becomes counts in [`crate::Capture`].

use std::path::PathBuf;

/// Why a capture cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The operating system refused.
    #[error("cannot {action} the capture: {source}: {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
        /// The capture.
        path: PathBuf,
    },
    /// The file does not begin as a capture does.
    #[error("this is not a capture: {}", path.display())]
    NotACapture {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer Stepscope.
    #[error("the capture has format version {found}, this stepscope reads up to {supported}: {}", path.display())]
    NewerVersion {
        /// The version in the file.
        found: u32,
        /// The newest version this code reads.
        supported: u32,
        /// The file.
        path: PathBuf,
    },
}
