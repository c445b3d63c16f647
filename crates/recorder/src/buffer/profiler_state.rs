//! Under which profiler state a thread runs what it does: that of the thread for which it works, told by a number.

use super::{LONGEST_FIXED, ThreadBuffer, with_buffer};
use crate::clock::ticks;
use stepscope_capture::ProfilerState;
use stepscope_capture::layout::Tag;

/// What the calling thread runs from here on was begun under the profiler state with this number. Each part of a
/// thread's records says it anew.
pub fn set_profiler_state(number: u64) {
    with_buffer(|buffer| {
        if buffer.profiler_state == number {
            return;
        }
        buffer.profiler_state = number;
        let part = (buffer.epoch, buffer.part);
        if buffer.reserve(LONGEST_FIXED) && part == (buffer.epoch, buffer.part) {
            buffer.write(ticks(), Tag::ProfilerState, &[number], &[]);
        }
    });
}

impl ThreadBuffer {
    /// Says it at the begin of a part, where it is known.
    pub(super) fn repeat_profiler_state(&mut self) {
        if self.profiler_state != ProfilerState::NOT_KNOWN {
            self.write(ticks(), Tag::ProfilerState, &[self.profiler_state], &[]);
        }
    }
}
