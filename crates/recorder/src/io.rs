//! Calls on files, written when they have ended.

use crate::buffer::{truncated, with_buffer};
use crate::session::EPOCH;
use std::sync::atomic::Ordering;
use stepscope_capture::io::{IoRecord, LONGEST};
use stepscope_capture::layout::{Tag, padded};

/// The capture that records go to now: what was defined in another one is not known in it. In a forked child, and where
/// nothing is recorded yet, it changes with the next record.
#[inline(always)]
pub fn capture_number() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

/// Defines a file by a number above 0 that the caller gives it. The number of the capture that has it then; `None` where
/// nothing could be written.
#[cold]
pub fn define_file(number: u32, path: &[u8]) -> Option<u64> {
    let path = truncated(path);
    with_buffer(|buffer| {
        let has_room = buffer.reserve(2 + padded(path.len()) / 8);
        has_room.then(|| {
            buffer.append(crate::clock::ticks(), Tag::File, &[u64::from(number) | (path.len() as u64) << 32], path);
            buffer.epoch()
        })
    })
    .flatten()
}

/// Writes a call that began at `start_ticks`. Its files were defined in the capture with the number `capture`; it is left
/// out when that is not the capture that is open.
#[inline(always)]
pub fn io_call(start_ticks: u64, call: &IoRecord, capture: u64) -> bool {
    let (words, len) = call.words();
    let is_written = with_buffer(|buffer| {
        if !buffer.reserve(LONGEST) || buffer.epoch() != capture {
            return false;
        }
        match len {
            2 => buffer.write_words(start_ticks, Tag::Io, [words[0], words[1]]),
            3 => buffer.write_words(start_ticks, Tag::Io, [words[0], words[1], words[2]]),
            _ => buffer.write(start_ticks, Tag::Io, &words[..len], &[]),
        }
        true
    });
    is_written == Some(true)
}
