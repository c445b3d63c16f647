//! A thread's ranges, whole and in order, without a list of them.
//!
//! ```text
//! begin A ─┬─ begin B, end B     heard once B is whole; A waits at the front
//!          ├─ 1,024 more begins
//! end A ───┘                     behind that, A is long
//! ```
//!
//! A thread is replayed twice. The first time its ranges are heard as they end, and the ends of long ones are noted. The
//! second time a range's end is therefore known soon after its begin, and ranges are heard in the order of their begins.

mod first;
mod second;

use super::StreamedCapture;
use crate::decode::{Event, Mark, StepRange};
use crate::layout::scope;
use crate::short::Begin;
use crate::{CaptureError, MemoryEvent};
use first::First;
use second::Second;
use std::collections::VecDeque;
use std::ops::Range;

/// A range is long when so many more begin before it ends.
const SHORT: u32 = 1024;
/// When a range ends whose end was not recorded.
const NEVER_NS: i64 = i64::MAX;

/// What hears of a thread's ranges.
pub trait Ranges {
    /// An op, a label or a call, whole. Ends that were not recorded lie at [`i64::MAX`].
    fn range(&mut self, event: &Event);
    /// Memory was allocated or freed, or could not be.
    fn memory(&mut self, event: &MemoryEvent);
    /// A labelled step; the first time only.
    fn step(&mut self, _step: &StepRange) {}
    /// An optimizer has stepped; the first time only.
    fn mark(&mut self, _mark: &Mark) {}
}

/// What was found when a thread's ranges were heard for the first time.
#[derive(Debug)]
pub struct ThreadSurvey {
    thread: u32,
    parts: Range<usize>,
    has_calls: bool,
    /// Number and end of long ranges, and of those that did not end on this thread, by number.
    long: Vec<(u32, End)>,
}

impl ThreadSurvey {
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
    /// Lets `ranges` hear what a thread recorded within `times`, in the order in which it ended, and some of what it
    /// recorded around them; calls only when they are asked for. `None` when only the whole capture tells.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn survey(
        &self,
        thread: u32,
        times: &Range<i64>,
        has_calls: bool,
        ranges: &mut impl Ranges,
    ) -> Result<Option<ThreadSurvey>, CaptureError> {
        let mut first = First {
            thread,
            names: self.names,
            has_calls,
            begun: 0,
            open: Vec::new(),
            open_calls: Vec::new(),
            left_open: Vec::new(),
            open_step: None,
            long: Vec::new(),
            has_given_up: false,
            ranges,
        };
        let parts = self.listen_to_parts(thread, times, &mut first)?;
        let call_stops = &self.process.call_stops;
        first.finish(|start_ticks| {
            let stop = call_stops.partition_point(|ticks| *ticks < start_ticks);
            call_stops.get(stop).map(|ticks| self.clock.monotonic_ns(*ticks))
        });
        let First { mut long, has_given_up, .. } = first;
        long.sort_unstable_by_key(|(number, _)| *number);
        Ok((!has_given_up).then_some(ThreadSurvey { thread, parts, has_calls, long }))
    }

    /// Lets `ranges` hear the same in the order in which it began to be recorded: nearly that of starts. False when only
    /// the whole capture tells.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn replay(&self, survey: &ThreadSurvey, ranges: &mut impl Ranges) -> Result<bool, CaptureError> {
        let ThreadSurvey { thread, has_calls, .. } = *survey;
        let mut second = Second {
            thread,
            has_calls,
            begun: 0,
            open: Vec::new(),
            open_calls: Vec::new(),
            long: &survey.long,
            waiting: VecDeque::new(),
            has_given_up: false,
            ranges,
        };
        let mut replay = self.replay_to(thread, &mut second);
        let mut bytes = vec![0; self.header.segment_bytes];
        for part in &self.threads[thread as usize].parts[survey.parts.clone()] {
            self.replay_part(part, &mut bytes, &mut replay)?;
        }
        second.tell();
        Ok(!second.has_given_up && second.waiting.is_empty())
    }
}

/// A range that begins here.
#[inline]
fn begun(thread: u32, start_ns: i64, begin: &Begin) -> Event {
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
