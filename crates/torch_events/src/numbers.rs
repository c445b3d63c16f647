//! Numbers of operators, labels and steps: the ones that rows of the same recording have in a Chrome trace.

use crate::NO_ROW;
use std::cmp::Reverse;
use stepscope_capture::device::ActivityRecord;
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event};

/// The numbers of a capture's ranges, from 0 on: by thread, then by start and the longest first, as a
/// reader that takes one thread after another counts them. What is not listed is counted, calls of Python are not.
pub(crate) struct Numbers {
    /// By event, and behind them by step; [`NO_ROW`] for what has none.
    of_items: Vec<u32>,
    count: u32,
}

/// Thread, start and end as they are ordered.
type Place = (u32, i64, Reverse<i64>);

impl Numbers {
    pub(crate) fn of(capture: &Capture) -> Self {
        let mut of_items = vec![NO_ROW; capture.events.len() + capture.steps.len()];
        let mut others = others(capture).into_iter().peekable();
        let mut count = 0;
        let mut number = |item: Option<usize>| {
            item.into_iter().for_each(|item| of_items[item] = count);
            count += 1;
        };
        let is_counted = |(_, event): &(usize, Event)| !scope::is_call(event.scope);
        for (at, event) in capture.events.iter().enumerate().filter(is_counted) {
            let place = (event.thread, event.start_ns, Reverse(event.end_ns));
            while let Some((_, other)) = others.next_if(|(other, _)| *other < place) {
                number(other);
            }
            number(Some(at));
        }
        others.for_each(|(_, other)| number(other));
        Self { of_items, count }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// That of an event or a step; [`NO_ROW`] for any other item.
    pub(crate) fn of_item(&self, item: u32) -> u32 {
        self.of_items.get(item as usize).copied().unwrap_or(NO_ROW)
    }
}

/// Steps as items, and the ranges that a device's profiler tells of a thread, which are no items, in order.
fn others(capture: &Capture) -> Vec<(Place, Option<usize>)> {
    let steps = capture.steps.iter().zip(capture.events.len()..);
    let steps = steps.map(|(step, item)| ((step.thread, step.start_ns, Reverse(step.end_ns)), Some(item)));
    let ranges = capture.device.iter().filter_map(|device_activity| match &device_activity.record {
        ActivityRecord::Range(range) => Some(((range.thread, range.start_ns, Reverse(range.end_ns)), None)),
        _ => None,
    });
    let mut others: Vec<(Place, Option<usize>)> = steps.chain(ranges).collect();
    others.sort_by_key(|(place, _)| *place);
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::tests;
    use stepscope_capture::StepRange;

    #[test]
    fn threads_follow_one_another_and_calls_of_python_are_not_counted() {
        let events = [(0, 0, 0, 0, 9), (0, 0, scope::PYTHON_CALL, 1, 8), (0, 0, 0, 1, 8), (1, 0, 7, 0, 5)];
        let mut capture = tests::capture(&["op"], &events, &[]);
        let step = |thread, start_ns, end_ns| StepRange { thread, number: 1, start_ns, end_ns, is_unfinished: false };
        capture.steps = vec![step(0, 0, 9), step(1, 0, 6), step(0, 1, 9)];
        let numbers = Numbers::of(&capture);
        let found: Vec<u32> = (0..8).map(|item| numbers.of_item(item)).collect();
        assert_eq!(found, [0, NO_ROW, 3, 5, 1, 4, 2, NO_ROW]);
        assert_eq!(numbers.count(), 6);
    }
}
