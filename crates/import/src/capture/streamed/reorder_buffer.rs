//! Events from nearly the order of their starts to just that, and of those that start together the longest first.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;
use stepscope_capture::Event;

/// So many events may stand between an event's place and where it was recorded. Calls are recorded late, but before
/// anything that lies in them.
const NEAR: usize = 64;

/// Start and end of the part that is selected, and of all of it.
type Key = (i64, Reverse<i64>, i64, Reverse<i64>);

/// Events that may still be overtaken.
#[derive(Default, Debug)]
pub(super) struct ReorderBuffer {
    waiting: VecDeque<(Key, Event)>,
    last: Option<Key>,
    needs_full_trace: bool,
}

impl ReorderBuffer {
    /// True when an event came too late for its place.
    pub(super) fn needs_full_trace(&self) -> bool {
        self.needs_full_trace
    }

    /// Takes in an event, of which `span` is selected.
    #[inline]
    pub(super) fn push(&mut self, event: &Event, (start_ns, end_ns): (i64, i64)) {
        let key = (start_ns, Reverse(end_ns), event.start_ns, Reverse(event.end_ns));
        let event = Event { start_ns, end_ns, ..*event };
        match self.waiting.back() {
            Some((last, _)) if *last > key => {
                let index = self.waiting.partition_point(|(before, _)| *before <= key);
                self.waiting.insert(index, (key, event));
            }
            _ => self.waiting.push_back((key, event)),
        }
        self.needs_full_trace |= self.last.is_some_and(|last| key < last);
    }

    /// The next event, as far as it is selected, and when it ran; when nothing that is near can come
    /// before it.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Event, Range<i64>)> {
        if self.waiting.len() > NEAR { self.pop_any() } else { None }
    }

    /// The next event, when nothing comes any more.
    #[inline]
    pub(super) fn pop_any(&mut self) -> Option<(Event, Range<i64>)> {
        let (key, event) = self.waiting.pop_front()?;
        self.last = Some(key);
        let (_, _, start_ns, Reverse(end_ns)) = key;
        Some((event, start_ns..end_ns))
    }
}
