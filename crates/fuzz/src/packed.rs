//! Packed texts: gzip, zstd and zip, also damaged and within each other.

use crate::sound;
use stepscope_import::{open, open_bytes};

/// A packed file gives a sound trace or an error. What the file gives is what its bytes in memory give, except for zip,
/// which is only read from files.
///
/// # Panics
/// When that is not so.
pub fn packed(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json.gz");
    std::fs::write(&path, bytes).expect("written");
    let from_file = open(&path);
    if let Ok(trace) = &from_file {
        sound::check(trace);
    }
    if !bytes.starts_with(b"PK") {
        let slices = |trace: Result<stepscope_trace::Trace, _>| trace.map(|trace| trace.slices.len()).ok();
        assert_eq!(slices(from_file), slices(open_bytes(&path, bytes)), "memory and file give the same");
    }
}
