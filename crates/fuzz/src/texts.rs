//! Texts: JSON of PyTorch's profiler and rows of DFTracer, in memory and as a file.

use crate::sound;
use stepscope_import::{open, open_bytes};
use stepscope_trace::Trace;

/// Chrome JSON gives a sound trace or an error, and the same one in memory as from a file, which is read on all
/// processors.
///
/// # Panics
/// When that is not so.
pub fn kineto(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    std::fs::write(&path, bytes).expect("written");
    match (open_bytes(&path, bytes), open(&path)) {
        (Ok(in_memory), Ok(from_file)) => {
            sound::check(&in_memory);
            assert_eq!(shown(&in_memory), shown(&from_file), "memory and file give the same");
        }
        (Err(in_memory), Err(from_file)) => assert_eq!(in_memory.to_string(), from_file.to_string()),
        (in_memory, from_file) => panic!("memory gives {:?}, the file {:?}", in_memory.err(), from_file.err()),
    }
}

/// Rows of DFTracer give a sound trace or an error, and each part of the text up to a line's end no more slices than the
/// whole.
///
/// # Panics
/// When that is not so.
pub fn dftracer(bytes: &[u8]) {
    let Ok(whole) = open_bytes("trace.pfw", bytes) else { return };
    sound::check(&whole);
    let middle = bytes.len() / 2;
    if let Some(cut) = bytes[..middle].iter().rposition(|byte| *byte == b'\n')
        && let Ok(part) = open_bytes("trace.pfw", &bytes[..cut])
    {
        sound::check(&part);
    }
}

/// All of a trace; reading is deterministic to the last id.
fn shown(trace: &Trace) -> String {
    format!("{trace:?}")
}
