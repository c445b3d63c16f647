//! The first pass: ranges are passed on as they end, and the ends of long ones are noted.

use super::{End, EventSink, MAX_SHORT, NEVER_NS, Open, open_event};
use crate::MemoryEvent;
use crate::decode::streamed::RecordVisitor;
use crate::decode::{CollectiveOf, Mark, StepRange};
use crate::short::Begin;

/// The first pass over a thread.
pub(super) struct EndPass<'a, R> {
    pub(super) thread: u32,
    pub(super) names: u32,
    pub(super) has_calls: bool,
    /// Ranges so far.
    pub(super) begin_count: u32,
    pub(super) open: Vec<Open>,
    pub(super) open_calls: Vec<Open>,
    /// What ended on another thread, if at all.
    pub(super) left_open: Vec<Open>,
    pub(super) open_step: Option<StepRange>,
    pub(super) long: Vec<(u32, End)>,
    pub(super) needs_full_decode: bool,
    pub(super) sink: &'a mut R,
}

impl<R: EventSink> EndPass<'_, R> {
    #[inline]
    fn end_range(&mut self, open: Open, at_ns: i64) {
        let Open { number, mut event, .. } = open;
        event.end_ns = at_ns.max(event.start_ns);
        event.is_unfinished = false;
        if self.begin_count - number > MAX_SHORT {
            self.long.push((number, End { end_ns: event.end_ns, is_unfinished: false }));
        }
        self.sink.range(&event);
    }

    #[inline]
    fn number(&mut self) -> u32 {
        self.begin_count += 1;
        self.begin_count - 1
    }

    /// Ends what is still open.
    pub(super) fn finish(&mut self, call_stop_ns: impl Fn(u64) -> Option<i64>) {
        // What is still open ended behind everything, however short the list is.
        self.begin_count = self.begin_count.saturating_add(MAX_SHORT + 1);
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
            self.sink.range(&event);
        }
        if let Some(step) = self.open_step.take() {
            self.sink.step(&step);
        }
    }
}

impl<R: EventSink> RecordVisitor for EndPass<'_, R> {
    #[inline]
    fn begin(&mut self, at_ns: i64, begin: &Begin) {
        let open = Open { number: self.number(), start_ticks: 0, event: open_event(self.thread, at_ns, begin) };
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
        self.needs_full_decode |= self.open_step.is_some();
        let step = StepRange { thread: self.thread, number, start_ns, end_ns: NEVER_NS, is_unfinished: true };
        self.open_step = Some(step);
    }

    fn end_step(&mut self, at_ns: i64, number: i64) {
        match self.open_step.take_if(|step| step.number == number) {
            Some(mut step) => {
                step.end(at_ns);
                self.sink.step(&step);
            }
            // It began on another thread, or before the times that are read.
            None => self.needs_full_decode |= self.open_step.is_some(),
        }
    }

    fn fall_back(&mut self) {
        self.needs_full_decode = true;
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

    fn end_left(&mut self, at_ns: i64, after: usize) {
        if let Some(left) = self.left_open.len().checked_sub(after.saturating_add(1)) {
            let open = self.left_open.remove(left);
            // In the second pass it is not known any more which one that is.
            let end_ns = at_ns.max(open.event.start_ns);
            if self.begin_count - open.number <= MAX_SHORT {
                self.long.push((open.number, End { end_ns, is_unfinished: false }));
            }
            self.end_range(open, at_ns);
        }
    }

    fn begin_call(&mut self, at_ns: i64, start_ticks: u64, begin: &Begin) {
        if self.has_calls {
            self.needs_full_decode |= begin.name >= self.names;
            let open = Open { number: self.number(), start_ticks, event: open_event(self.thread, at_ns, begin) };
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
        self.needs_full_decode |= description.is_none();
        open.event.collective = description.map(|description| CollectiveOf { description, sequence_number });
    }

    fn optimizer_step(&mut self, time_ns: i64, number: Option<i64>) {
        self.sink.mark(&Mark { thread: self.thread, time_ns, number });
    }

    fn memory(&mut self, event: &MemoryEvent) {
        self.sink.memory(event);
    }

    fn needs_more(&self) -> bool {
        !self.open.is_empty() || !self.open_calls.is_empty() || self.open_step.is_some()
    }
}
