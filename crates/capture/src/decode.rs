//! From segments to events, in stages.
//!
//! ```text
//! segments ─▶ parts ─┬─▶ process    names, inputs, metadata, clocks: what holds for all threads
//!                    └─▶ replay     each thread by itself: begins matched with ends, ticks become ns
//!                          └─▶ elsewhere, threads: what one thread ended for another; all in their final order
//! ```
//!
//! Nothing is copied before it is an event: parts are places in the bytes, and both stages read records where they lie.
//!
//! A **new record** is a tag of [`layout`](crate::layout), its length in `record.rs`, and what it says: of the process
//! in `process.rs`, of a thread in `replay.rs`.

mod device;
mod elsewhere;
mod events;
mod inputs;
mod parts;
mod process;
mod record;
mod replay;
mod streamed;
mod threads;

pub use events::{CollectiveOf, Event, Mark, ProfilerState, Sample, StepRange, Window};
pub(crate) use process::ProcessRecords;
pub(crate) use record::{body_len, short_len};
pub use streamed::{EndIndex, EventSink, RecordVisitor, StreamedCapture};
pub(crate) use threads::Decoded;

use crate::clock::{ClockPoint, TickClock};
use parts::{Part, parts_of};

/// The first look at a capture's segments.
pub(crate) struct Scanned<'a> {
    parts: Vec<Part<'a>>,
    /// What holds for all threads.
    pub(crate) process: ProcessRecords,
    /// Places that cannot be read, in words.
    pub(crate) damaged: Vec<String>,
}

impl<'a> Scanned<'a> {
    /// The whole of a capture.
    #[cfg(test)]
    pub(crate) fn new(bytes: &'a [u8], segment_bytes: usize) -> Self {
        Self::until(bytes, segment_bytes, None)
    }

    /// Finds the threads' parts in all segments, and what holds for all of them, but for what was recorded after
    /// `until_ticks`.
    pub(crate) fn until(bytes: &'a [u8], segment_bytes: usize, until_ticks: Option<u64>) -> Self {
        let (parts, damaged) = parts_of(bytes, segment_bytes, until_ticks);
        let process = ProcessRecords::of_parts(&parts);
        Self { parts, process, damaged }
    }

    /// What the threads recorded, by the clock through `opened` and those of the capture's moments that it needs.
    pub(crate) fn replay(&self, clock: &TickClock, opened: &ClockPoint) -> Decoded {
        threads::replay_all(&self.parts, &self.process, clock, opened)
    }
}

#[cfg(test)]
mod tests;
