//! Generated traces, kept between runs.

use crate::generator::Size;
use crate::{generate, quantity};
use std::path::{Path, PathBuf};

/// One trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    size: Size,
}

impl Input {
    /// One of about this many bytes.
    pub(super) fn of_bytes(bytes: u64) -> Self {
        Self { size: Size::Bytes(bytes) }
    }

    /// One of about this many rows.
    pub(super) fn of_events(events: u64) -> Self {
        Self { size: Size::Events(events) }
    }

    /// Its text as a file.
    pub(super) fn plain(self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.json", self.name()))
    }

    /// Its text as a gzipped file.
    pub(super) fn packed(self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.json.gz", self.name()))
    }

    /// Writes what is not there; the packed file when that is wanted.
    pub(super) fn write(self, folder: &Path, is_packed_wanted: bool, is_fresh: bool) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot write: {error}: {}", folder.display());
        std::fs::create_dir_all(folder).map_err(failed)?;
        let packed = is_packed_wanted.then(|| self.packed(folder));
        for file in std::iter::once(self.plain(folder)).chain(packed) {
            if is_fresh && file.exists() {
                std::fs::remove_file(&file).map_err(failed)?;
            }
            generate::write_once(self.size, &file)?;
        }
        Ok(())
    }

    /// What it is called.
    pub(super) fn name(self) -> String {
        match self.size {
            Size::Bytes(bytes) => format!("trace-{}", quantity::short(bytes)),
            Size::Events(events) => format!("trace-{}-events", quantity::short(events)),
        }
    }
}
