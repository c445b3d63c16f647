//! Stepscope's own functions on a thread, received as they end: before the functions around them, after those inside.

use std::ops::Range;

/// What calls are compared with, which are received in the same way. Those that end before the own function around them
/// are not known to be in it yet: who keeps them has to look at them again.
#[derive(Default)]
pub(super) struct OwnFunctions {
    /// When one of them ran, apart from each other and by start.
    ran: Vec<Range<i64>>,
    is_unclear: bool,
}

impl OwnFunctions {
    pub(super) fn begin_thread(&mut self) {
        self.ran.clear();
    }

    /// One of them ran.
    pub(super) fn add(&mut self, mut ran: Range<i64>) {
        if ran.is_empty() {
            return;
        }
        while let Some(last) = self.ran.pop_if(|last| last.end > ran.start) {
            self.is_unclear |= last.start < ran.start && last.end < ran.end;
            ran = last.start.min(ran.start)..last.end.max(ran.end);
        }
        self.ran.push(ran);
    }

    /// True for a call that begins while one of them runs.
    #[inline]
    pub(super) fn call(&mut self, ran: Range<i64>) -> bool {
        let after = self.ran.partition_point(|own| own.start <= ran.start);
        let Some(own) = self.ran[..after].last().filter(|own| ran.start < own.end) else { return false };
        let is_together = own.start == ran.start;
        // Calls that were open when recording began all begin there: what ends later is around.
        if is_together && own.end < ran.end {
            return false;
        }
        self.is_unclear |= is_together || own.end < ran.end;
        true
    }

    /// True when a call that was received before is in one of them that ran at that time. Those that are open at the
    /// end are received from the outermost one on: of two that are as long as each other it is unknown which one is
    /// around.
    pub(super) fn has(&mut self, ran: &Range<i64>, call: Range<i64>) -> bool {
        self.is_unclear |= *ran == call;
        ran.contains(&call.start)
    }

    /// True when the whole list is needed instead.
    pub(super) fn is_unclear(&self) -> bool {
        self.is_unclear
    }
}
