//! The numbers that PyTorch gave to ranges, which were recorded right behind their begins.

use std::collections::HashMap;
use stepscope_capture::layout::{RANGE_NUMBER, scope};
use stepscope_capture::{Capture, Event};

/// Whether any was recorded.
pub(super) fn is_any(capture: &Capture) -> bool {
    capture.samples.iter().any(|sample| capture.names[sample.name as usize] == RANGE_NUMBER)
}

/// Places of events, and their numbers.
pub(super) fn of(capture: &Capture) -> Vec<(usize, i64)> {
    let mut of_threads: HashMap<u32, Vec<(i64, i64)>> = HashMap::new();
    for sample in capture.samples.iter().filter(|sample| capture.names[sample.name as usize] == RANGE_NUMBER) {
        of_threads.entry(sample.thread).or_default().push((sample.time_ns, sample.value));
    }
    if of_threads.is_empty() {
        return Vec::new();
    }
    let is_range = |(_, event): &(usize, Event)| !scope::is_call(event.scope);
    let ranges: Vec<(usize, Event)> = capture.events.iter().enumerate().filter(is_range).collect();
    let number = |(range, (at, event)): (usize, &(usize, Event))| {
        let numbers = of_threads.get(&event.thread)?;
        let next = ranges.get(range + 1).filter(|(_, next)| next.thread == event.thread);
        let until_ns = next.map_or(i64::MAX, |(_, next)| next.start_ns);
        let (time_ns, number) = numbers.get(numbers.partition_point(|(time_ns, _)| *time_ns < event.start_ns))?;
        (*time_ns < until_ns).then_some((*at, *number))
    };
    ranges.iter().enumerate().filter_map(number).collect()
}
