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

use super::{Listener, StreamedCapture};
use crate::decode::{CollectiveOf, Event, Mark, StepRange};
use crate::layout::scope;
use crate::short::Begin;
use crate::{CaptureError, MemoryEvent};
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
    Event {
        thread,
        name: begin.name,
        scope: begin.scope,
        start_ns,
        end_ns: NEVER_NS,
        is_unfinished: true,
        is_async: false,
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

/// Hears a thread for the first time.
struct First<'a, R> {
    thread: u32,
    names: u32,
    has_calls: bool,
    /// Ranges so far.
    begun: u32,
    open: Vec<Open>,
    open_calls: Vec<Open>,
    /// What ended on another thread, if at all.
    left_open: Vec<Open>,
    open_step: Option<StepRange>,
    long: Vec<(u32, End)>,
    has_given_up: bool,
    ranges: &'a mut R,
}

impl<R: Ranges> First<'_, R> {
    #[inline]
    fn end_range(&mut self, open: Open, at_ns: i64) {
        let Open { number, mut event, .. } = open;
        event.end_ns = at_ns.max(event.start_ns);
        event.is_unfinished = false;
        if self.begun - number > SHORT {
            self.long.push((number, End { end_ns: event.end_ns, is_unfinished: false }));
        }
        self.ranges.range(&event);
    }

    #[inline]
    fn number(&mut self) -> u32 {
        self.begun += 1;
        self.begun - 1
    }

    fn finish(&mut self, call_stop_ns: impl Fn(u64) -> Option<i64>) {
        // What is still open ended behind everything, however short the list is.
        self.begun = self.begun.saturating_add(SHORT + 1);
        let (open, calls) = (std::mem::take(&mut self.open), std::mem::take(&mut self.open_calls));
        let mut left_open = std::mem::take(&mut self.left_open);
        left_open.extend(open);
        for call in calls {
            match call_stop_ns(call.start_ticks) {
                Some(at_ns) => self.end_range(call, at_ns),
                None => left_open.push(call),
            }
        }
        for Open { number, event, .. } in left_open {
            self.long.push((number, End { end_ns: NEVER_NS, is_unfinished: true }));
            self.ranges.range(&event);
        }
        if let Some(step) = self.open_step.take() {
            self.ranges.step(&step);
        }
    }
}

impl<R: Ranges> Listener for First<'_, R> {
    #[inline]
    fn begin(&mut self, at_ns: i64, begin: &Begin) {
        let open = Open { number: self.number(), start_ticks: 0, event: begun(self.thread, at_ns, begin) };
        self.open.push(open);
    }

    #[inline]
    fn set_inputs(&mut self, row: Option<u32>) {
        self.open.last_mut().into_iter().for_each(|open| open.event.inputs = row);
    }

    #[inline]
    fn end(&mut self, at_ns: i64) {
        if let Some(open) = self.open.pop() {
            self.end_range(open, at_ns);
        }
    }

    fn begin_step(&mut self, start_ns: i64, number: i64) {
        self.has_given_up |= self.open_step.is_some();
        let step = StepRange { thread: self.thread, number, start_ns, end_ns: NEVER_NS, is_unfinished: true };
        self.open_step = Some(step);
    }

    fn end_step(&mut self, at_ns: i64, number: i64) {
        match self.open_step.take_if(|step| step.number == number) {
            Some(mut step) => {
                step.end(at_ns);
                self.ranges.step(&step);
            }
            // It began on another thread, or before the times that are heard.
            None => self.has_given_up |= self.open_step.is_some(),
        }
    }

    fn give_up(&mut self) {
        self.has_given_up = true;
    }

    fn end_outer(&mut self, at_ns: i64, inside: usize) {
        match self.open.len().checked_sub(inside.saturating_add(1)) {
            Some(outer) => {
                let open = self.open[outer];
                self.left_open.extend(self.open.drain(outer..).skip(1));
                self.end_range(open, at_ns);
            }
            None => {
                let first_inside = self.open.len().saturating_sub(inside);
                self.left_open.extend(self.open.drain(first_inside..));
            }
        }
    }

    fn begin_call(&mut self, at_ns: i64, start_ticks: u64, begin: &Begin) {
        if self.has_calls {
            self.has_given_up |= begin.name >= self.names;
            let open = Open { number: self.number(), start_ticks, event: begun(self.thread, at_ns, begin) };
            self.open_calls.push(open);
        }
    }

    fn end_call(&mut self, at_ns: i64) {
        if let Some(open) = self.open_calls.pop() {
            self.end_range(open, at_ns);
        }
    }

    fn set_collective(&mut self, description: Option<u32>, sequence_number: Option<i64>) {
        let Some(open) = self.open.last_mut() else { return };
        self.has_given_up |= description.is_none();
        open.event.collective = description.map(|description| CollectiveOf { description, sequence_number });
    }

    fn optimizer_step(&mut self, time_ns: i64, number: Option<i64>) {
        self.ranges.mark(&Mark { thread: self.thread, time_ns, number });
    }

    fn memory(&mut self, event: &MemoryEvent) {
        self.ranges.memory(event);
    }

    fn wants_more(&self) -> bool {
        !self.open.is_empty() || !self.open_calls.is_empty() || self.open_step.is_some()
    }
}

/// Hears a thread for the second time.
struct Second<'a, R> {
    thread: u32,
    has_calls: bool,
    begun: u32,
    /// By number, as in the first one.
    open: Vec<u32>,
    open_calls: Vec<u32>,
    /// Long ranges that have not begun yet.
    long: &'a [(u32, End)],
    /// Ranges that wait until they are whole, or for those before them; and whether they are.
    waiting: VecDeque<(Event, bool)>,
    has_given_up: bool,
    ranges: &'a mut R,
}

impl<R: Ranges> Second<'_, R> {
    #[inline]
    fn begin_range(&mut self, mut event: Event) -> u32 {
        let number = self.begun;
        self.begun += 1;
        let long = self.long.first().filter(|(long, _)| *long == number);
        if let Some((_, End { end_ns, is_unfinished })) = long {
            (event.end_ns, event.is_unfinished) = (*end_ns, *is_unfinished);
            self.long = &self.long[1..];
        }
        let is_whole = long.is_some();
        // What it was called with follows its begin.
        self.tell();
        self.waiting.push_back((event, is_whole));
        number
    }

    /// The range with this number, while it waits.
    #[inline]
    fn waiting(&mut self, number: u32) -> Option<&mut (Event, bool)> {
        let first = self.begun - self.waiting.len() as u32;
        self.waiting.get_mut(number.checked_sub(first)? as usize)
    }

    #[inline]
    fn end_range(&mut self, number: u32, at_ns: i64) {
        if let Some((event, is_whole)) = self.waiting(number).filter(|(_, is_whole)| !is_whole) {
            event.end_ns = at_ns.max(event.start_ns);
            event.is_unfinished = false;
            *is_whole = true;
        }
        self.tell();
    }

    /// Lets the ranges at the front be heard that are whole.
    #[inline]
    fn tell(&mut self) {
        while let Some((event, true)) = self.waiting.front() {
            self.ranges.range(event);
            self.waiting.pop_front();
        }
    }

    fn innermost(&mut self) -> Option<&mut Event> {
        let number = *self.open.last()?;
        self.waiting(number).map(|(event, _)| event)
    }
}

impl<R: Ranges> Listener for Second<'_, R> {
    #[inline]
    fn begin(&mut self, at_ns: i64, begin: &Begin) {
        let number = self.begin_range(begun(self.thread, at_ns, begin));
        self.open.push(number);
    }

    #[inline]
    fn set_inputs(&mut self, row: Option<u32>) {
        match self.innermost() {
            Some(event) => event.inputs = row,
            None => self.has_given_up |= !self.open.is_empty(),
        }
    }

    #[inline]
    fn end(&mut self, at_ns: i64) {
        if let Some(number) = self.open.pop() {
            self.end_range(number, at_ns);
        }
    }

    fn begin_step(&mut self, _at_ns: i64, _number: i64) {}

    fn end_step(&mut self, _at_ns: i64, _number: i64) {}

    fn give_up(&mut self) {
        self.has_given_up = true;
    }

    fn end_outer(&mut self, at_ns: i64, inside: usize) {
        match self.open.len().checked_sub(inside.saturating_add(1)) {
            Some(outer) => {
                let number = self.open[outer];
                self.open.truncate(outer);
                self.end_range(number, at_ns);
            }
            None => self.open.truncate(self.open.len().saturating_sub(inside)),
        }
    }

    fn begin_call(&mut self, at_ns: i64, _ticks: u64, begin: &Begin) {
        if self.has_calls {
            debug_assert!(scope::is_call(begin.scope));
            let number = self.begin_range(begun(self.thread, at_ns, begin));
            self.open_calls.push(number);
        }
    }

    fn end_call(&mut self, at_ns: i64) {
        if let Some(number) = self.open_calls.pop() {
            self.end_range(number, at_ns);
        }
    }

    fn set_collective(&mut self, description: Option<u32>, sequence_number: Option<i64>) {
        let collective = description.map(|description| CollectiveOf { description, sequence_number });
        match self.innermost() {
            Some(event) => event.collective = collective,
            None => self.has_given_up |= !self.open.is_empty(),
        }
    }

    fn memory(&mut self, event: &MemoryEvent) {
        self.ranges.memory(event);
    }
}
