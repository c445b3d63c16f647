//! A thread's ranges, whole and in order, without a list of them.
//!
//! ```text
//! begin A ─┬─ begin B, end B     passed on once B is whole; A waits at the front
//!          ├─ 1,024 more begins
//! end A ───┘                     behind that, A is long
//! ```
//!
//! A thread is replayed twice. The first pass passes ranges on as they end, and notes the ends of long ones. In the
//! second pass a range's end is therefore known soon after its begin, and ranges are passed on in the order of their
//! begins.

mod end_pass;
mod start_pass;

use super::StreamedCapture;
use crate::decode::{Event, Mark, StepRange};
use crate::layout::scope;
use crate::short::Begin;
use crate::{CaptureError, MemoryEvent};
use end_pass::EndPass;
use start_pass::StartPass;
use std::collections::VecDeque;
use std::ops::Range;

/// A range is long when so many more begin before it ends.
const MAX_SHORT: u32 = 1024;
/// When a range ends whose end was not recorded.
const NEVER_NS: i64 = i64::MAX;

/// Receives a thread's ranges.
pub trait EventSink {
    /// An op, a label or a call, whole. Ends that were not recorded lie at [`i64::MAX`].
    fn range(&mut self, event: &Event);
    /// Memory was allocated or freed, or could not be.
    fn memory(&mut self, event: &MemoryEvent);
    /// A labelled step; the first time only.
    fn step(&mut self, _step: &StepRange) {}
    /// An optimizer has stepped; the first time only.
    fn mark(&mut self, _mark: &Mark) {}
}

/// What the first pass over a thread's ranges found: when long ones end.
#[derive(Debug)]
pub struct EndIndex {
    thread: u32,
    parts: Range<usize>,
    has_calls: bool,
    /// Number and end of long ranges, and of those that did not end on this thread, by number.
    long: Vec<(u32, End)>,
}

impl EndIndex {
    /// The thread's ordinal.
    pub fn thread(&self) -> u32 {
        self.thread
    }
}

/// How a range ended.
#[derive(Clone, Copy, Debug)]
struct End {
    end_ns: i64,
    is_unfinished: bool,
}

impl StreamedCapture {
    /// Passes to `sink` what a thread recorded within `times`, in the order in which it ended, and some of what it
    /// recorded around them; calls only with `has_calls`. `None` when the whole capture has to be decoded instead.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn index_ends(
        &self,
        thread: u32,
        times: &Range<i64>,
        has_calls: bool,
        sink: &mut impl EventSink,
    ) -> Result<Option<EndIndex>, CaptureError> {
        let mut end_pass = EndPass {
            thread,
            names: self.names,
            has_calls,
            begin_count: 0,
            open: Vec::new(),
            open_calls: Vec::new(),
            left_open: Vec::new(),
            open_step: None,
            long: Vec::new(),
            needs_full_decode: false,
            sink,
        };
        let parts = self.visit_parts(thread, times, &mut end_pass)?;
        let call_stops = &self.process.call_stops;
        end_pass.finish(|start_ticks| {
            let stop = call_stops.partition_point(|ticks| *ticks < start_ticks);
            call_stops.get(stop).map(|ticks| self.clock.monotonic_ns(*ticks))
        });
        let EndPass { mut long, needs_full_decode, .. } = end_pass;
        long.sort_unstable_by_key(|(number, _)| *number);
        Ok((!needs_full_decode).then_some(EndIndex { thread, parts, has_calls, long }))
    }

    /// Passes to `sink` what [`index_ends`](Self::index_ends) did, in the order in which it began to be recorded:
    /// nearly that of starts. False when the whole capture has to be decoded instead.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn replay(&self, end_index: &EndIndex, sink: &mut impl EventSink) -> Result<bool, CaptureError> {
        let EndIndex { thread, has_calls, .. } = *end_index;
        let mut start_pass = StartPass {
            thread,
            has_calls,
            begin_count: 0,
            open: Vec::new(),
            open_calls: Vec::new(),
            long: &end_index.long,
            waiting: VecDeque::new(),
            needs_full_decode: false,
            sink,
        };
        let mut replay = self.replay_to(thread, &mut start_pass);
        let mut bytes = vec![0; self.header.segment_bytes];
        for part in &self.threads[thread as usize].parts[end_index.parts.clone()] {
            self.replay_part(part, &mut bytes, &mut replay)?;
        }
        start_pass.flush_ready();
        Ok(!start_pass.needs_full_decode && start_pass.waiting.is_empty())
    }
}

/// A range that begins here.
#[inline]
fn open_event(thread: u32, start_ns: i64, begin: &Begin) -> Event {
    let (scope, is_async) = scope::decoded(begin.scope);
    Event {
        thread,
        name: begin.name,
        scope,
        start_ns,
        end_ns: NEVER_NS,
        is_unfinished: true,
        is_async,
        sequence_number: Some(begin.sequence_number).filter(|number| *number >= 0),
        forward_thread: Some(begin.forward_thread).filter(|thread| *thread != 0),
        inputs: None,
        collective: None,
    }
}

/// A range that has not ended, by its number among all of its thread.
#[derive(Clone, Copy)]
struct Open {
    number: u32,
    start_ticks: u64,
    event: Event,
}
