//! The second pass: a range's end is known soon after its begin, so ranges are passed on in the order of their begins.

use super::{End, EventSink, open_event};
use crate::MemoryEvent;
use crate::decode::streamed::RecordVisitor;
use crate::decode::{CollectiveOf, Event};
use crate::layout::scope;
use crate::short::Begin;
use std::collections::VecDeque;

/// The second pass over a thread.
pub(super) struct StartPass<'a, R> {
    pub(super) thread: u32,
    pub(super) has_calls: bool,
    pub(super) begin_count: u32,
    /// By number, as in the first pass.
    pub(super) open: Vec<u32>,
    pub(super) open_calls: Vec<u32>,
    /// Long ranges that have not begun yet.
    pub(super) long: &'a [(u32, End)],
    /// Ranges that wait until they are whole, or for those before them; and whether they are.
    pub(super) waiting: VecDeque<(Event, bool)>,
    pub(super) needs_full_decode: bool,
    pub(super) sink: &'a mut R,
}

impl<R: EventSink> StartPass<'_, R> {
    #[inline]
    fn begin_range(&mut self, mut event: Event) -> u32 {
        let number = self.begin_count;
        self.begin_count += 1;
        let long = self.long.first().filter(|(long, _)| *long == number);
        if let Some((_, End { end_ns, is_unfinished })) = long {
            (event.end_ns, event.is_unfinished) = (*end_ns, *is_unfinished);
            self.long = &self.long[1..];
        }
        let is_whole = long.is_some();
        // What it was called with follows its begin.
        self.flush_ready();
        self.waiting.push_back((event, is_whole));
        number
    }

    /// The range with this number, while it waits.
    #[inline]
    fn waiting(&mut self, number: u32) -> Option<&mut (Event, bool)> {
        let first = self.begin_count - self.waiting.len() as u32;
        self.waiting.get_mut(number.checked_sub(first)? as usize)
    }

    #[inline]
    fn end_range(&mut self, number: u32, at_ns: i64) {
        if let Some((event, is_whole)) = self.waiting(number).filter(|(_, is_whole)| !is_whole) {
            event.end_ns = at_ns.max(event.start_ns);
            event.is_unfinished = false;
            *is_whole = true;
        }
        self.flush_ready();
    }

    /// Passes on the ranges at the front that are whole.
    #[inline]
    pub(super) fn flush_ready(&mut self) {
        while let Some((event, true)) = self.waiting.front() {
            self.sink.range(event);
            self.waiting.pop_front();
        }
    }

    fn innermost(&mut self) -> Option<&mut Event> {
        let number = *self.open.last()?;
        self.waiting(number).map(|(event, _)| event)
    }
}

impl<R: EventSink> RecordVisitor for StartPass<'_, R> {
    #[inline]
    fn begin(&mut self, at_ns: i64, begin: &Begin) {
        let number = self.begin_range(open_event(self.thread, at_ns, begin));
        self.open.push(number);
    }

    #[inline]
    fn set_inputs(&mut self, row: Option<u32>) {
        match self.innermost() {
            Some(event) => event.inputs = row,
            None => self.needs_full_decode |= !self.open.is_empty(),
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

    fn fall_back(&mut self) {
        self.needs_full_decode = true;
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

    // Its end was noted in the first pass.
    fn end_left(&mut self, _at_ns: i64, _after: usize) {}

    fn begin_call(&mut self, at_ns: i64, _ticks: u64, begin: &Begin) {
        if self.has_calls {
            debug_assert!(scope::is_call(begin.scope));
            let number = self.begin_range(open_event(self.thread, at_ns, begin));
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
            None => self.needs_full_decode |= !self.open.is_empty(),
        }
    }

    fn memory(&mut self, event: &MemoryEvent) {
        self.sink.memory(event);
    }
}
