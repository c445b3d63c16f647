//! Ends of events that began on another thread.

use super::replay::{EndElsewhere, ThreadRecords};
use std::collections::HashMap;

/// Ends them: each the last one begun, of that name, on that thread, that is still open.
pub(super) fn end_elsewhere(threads: &mut [ThreadRecords]) {
    let mut ends: Vec<EndElsewhere> = threads.iter_mut().flat_map(|thread| thread.ends_elsewhere.drain(..)).collect();
    if ends.is_empty() {
        return;
    }
    ends.sort_by_key(|end| end.ticks);
    let mut open: HashMap<(u32, u64), Vec<(u64, usize, usize)>> = HashMap::new();
    for (number, thread) in threads.iter().enumerate() {
        for (start, at) in &thread.left_open {
            let key = (thread.events[*at].name, thread.thread.framework_thread);
            open.entry(key).or_default().push((*start, number, *at));
        }
    }
    open.values_mut().for_each(|begins| begins.sort_unstable());
    for end in ends {
        // Without a begin it belongs to an op from before this capture: there is nothing to keep.
        let Some(begins) = open.get_mut(&(end.name, end.origin)) else { continue };
        if let Some(last) = begins.partition_point(|(start, ..)| *start <= end.ticks).checked_sub(1) {
            let (_, thread, at) = begins.remove(last);
            let event = &mut threads[thread].events[at];
            event.end_ns = end.ns.max(event.start_ns);
            event.is_unfinished = false;
        }
    }
}
