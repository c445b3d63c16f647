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

/// The number that all threads have which have ended.
const ENDED: u64 = 0;

/// Bytes that were read and written.
type Moved = [u64; 2];

/// A finding where the threads that the system was asked about moved more than was recorded of them. Only for a capture of
/// which everything is there.
pub(super) fn report(capture: &Capture, who: &dyn Fn() -> String, findings: &mut Findings) {
    let Some(of_system) = metadata_value(capture, "io_bytes_of_system") else { return };
    let mut recorded = recorded(capture);
    // A number that is used again is that of the last thread which has it.
    let ordinals: BTreeMap<u64, usize> = capture.threads.iter().map(|thread| thread.tid).zip(0..).collect();
    let (of_ended, of_threads): (Vec<_>, Vec<_>) =
        of_system.split(' ').filter_map(of_thread).partition(|(tid, _)| *tid == ENDED);
    let mut compared: Vec<(Moved, Moved)> = Vec::new();
    for (tid, moved) in of_threads {
        let of_thread = ordinals.get(&tid).and_then(|ordinal| recorded.get_mut(*ordinal)).map(std::mem::take);
        compared.push((moved, of_thread.unwrap_or_default()));
    }
    // What is left is of those that have ended.
    compared.extend(of_ended.into_iter().map(|(_, moved)| (moved, recorded.iter().copied().fold([0; 2], sum))));
    let (mut seen, mut all) = (Moved::default(), Moved::default());
    for (moved, recorded) in compared {
        all = sum(all, moved);
        seen = sum(seen, [0, 1].map(|way| recorded[way].min(moved[way])));
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

fn sum(one: Moved, other: Moved) -> Moved {
    [0, 1].map(|way| one[way].saturating_add(other[way]))
}

/// What was recorded of each thread, by its ordinal, as the system counts it.
fn recorded(capture: &Capture) -> Vec<Moved> {
    let mut recorded = vec![Moved::default(); capture.threads.len()];
    for call in &capture.io {
        let Some(moved) = recorded.get_mut(call.thread as usize) else { continue };
        let bytes = call.bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
        *moved = sum(*moved, counts(call).map(|counts| if counts { bytes } else { 0 }));
    }
    recorded
}

/// Whether the system counts the bytes of a call as read, and as written.
fn counts(call: &IoCall) -> [bool; 2] {
    // What other layers do goes by calls of these, or of the system's own.
    let moves = matches!(call.function.layer(), IoLayer::Posix | IoLayer::Stdio);
    match (call.function, call.function.action()) {
        (IoFunction::Splice | IoFunction::SpliceTo, _) => [false; 2],
        (IoFunction::SendfileTo | IoFunction::CopyFileRangeTo, _) => [false; 2],
        (IoFunction::AioRead | IoFunction::AioWrite | IoFunction::IoUringRead | IoFunction::IoUringWrite, _) => {
            [false; 2]
        }
        // Where one of them is not recorded, the recorder leaves out both.
        (IoFunction::Sendfile | IoFunction::CopyFileRange, _) => [call.other_file.is_some(); 2],
        (_, IoAction::Read) => [moves, false],
        (_, IoAction::Write) => [false, moves],
        _ => [false; 2],
    }
}
