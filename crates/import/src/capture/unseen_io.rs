//! What a process moved that was not recorded, as the system itself counts it.

use super::metadata_value;
use std::collections::BTreeMap;
use stepscope_base::units::{format_bytes, format_ratio};
use stepscope_capture::io::{IoAction, IoFunction, IoLayer};
use stepscope_capture::{Capture, IoCall};
use stepscope_trace::{FindingCode, Findings};

/// Below this share, something went past the C library.
const LEAST_SHARE: f64 = 0.95;
/// As much is moved where nothing is worth recording: what the loader reads of libraries.
const LEAST_BYTES: u64 = 1 << 20;

/// Bytes that were read and written.
type Moved = [u64; 2];

/// A finding where the threads that lived at the end of a process moved more than was recorded of them. Only for a capture
/// of which everything is there.
pub(super) fn report(capture: &Capture, who: &dyn Fn() -> String, findings: &mut Findings) {
    let Some(of_system) = metadata_value(capture, "io_bytes_of_system") else { return };
    let recorded = recorded(capture);
    let (mut seen, mut all) = (Moved::default(), Moved::default());
    for (tid, moved) in of_system.split(' ').filter_map(of_thread) {
        let recorded = recorded.get(&tid).copied().unwrap_or_default();
        for way in 0..2 {
            all[way] = all[way].saturating_add(moved[way]);
            seen[way] = seen[way].saturating_add(recorded[way].min(moved[way]));
        }
    }
    for (way, does) in ["read", "written"].into_iter().enumerate() {
        let share = seen[way] as f64 / all[way] as f64;
        if all[way] - seen[way] >= LEAST_BYTES && share < LEAST_SHARE {
            findings.add(FindingCode::IoBytesNotSeen, || {
                let bytes = format_bytes(i64::try_from(all[way]).unwrap_or(i64::MAX));
                format!("{}: {} of the {bytes} that were {does} are recorded", who(), format_ratio(share))
            });
        }
    }
}

/// `TID:READ:WRITTEN`.
fn of_thread(text: &str) -> Option<(u64, Moved)> {
    let mut numbers = text.split(':').map(|number| number.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    Some((next()?, [next()?, next()?]))
}

/// What was recorded of each thread, as the system counts it.
fn recorded(capture: &Capture) -> BTreeMap<u64, Moved> {
    let mut recorded: BTreeMap<u64, Moved> = BTreeMap::new();
    for call in &capture.io {
        let Some(thread) = capture.threads.get(call.thread as usize) else { continue };
        let bytes = call.bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
        let moved = recorded.entry(thread.tid).or_default();
        for (moved, counts) in moved.iter_mut().zip(counts(call)) {
            *moved = moved.saturating_add(if counts { bytes } else { 0 });
        }
    }
    recorded
}

/// Whether the system counts the bytes of a call as read, and as written.
fn counts(call: &IoCall) -> [bool; 2] {
    match (call.function, call.function.action()) {
        (IoFunction::Splice, _) => [false; 2],
        // Where one of them is not recorded, the recorder leaves out both.
        (IoFunction::Sendfile | IoFunction::CopyFileRange, _) => [call.other_file.is_some(); 2],
        (_, IoAction::Read) => [call.function.layer() != IoLayer::PageFault, false],
        (_, IoAction::Write) => [false, true],
        _ => [false; 2],
    }
}
