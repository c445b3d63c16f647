//! Ends of events that began on another thread.

use super::replay::{EndElsewhere, ThreadRecords};
use crate::Thread;
use std::collections::HashMap;

/// Start in ticks, and where the event is: number of its thread, and index.
type Open = (u64, usize, usize);

/// Ends them: each the last one begun, of that name, on that thread, that is still open. Names are compared by their
/// text: overloads of one name have ids of their own, and who ends an op may not know which of them it was.
pub(super) fn end_elsewhere(threads: &mut [ThreadRecords], known: &[Thread], names: &[String]) {
    let mut ends: Vec<EndElsewhere> = threads.iter_mut().flat_map(|thread| thread.ends_elsewhere.drain(..)).collect();
    if ends.is_empty() {
        return;
    }
    ends.sort_by_key(|end| end.ticks);
    let text = |name: u32| names.get(name as usize);
    let mut open: HashMap<(Option<&String>, u64), Vec<Open>> = HashMap::new();
    for (number, thread) in threads.iter().enumerate() {
        for (start, at) in &thread.left_open {
            let key = (text(thread.events[*at].name), known[number].framework_thread);
            open.entry(key).or_default().push((*start, number, *at));
        }
    }
    open.values_mut().for_each(|begins| begins.sort_unstable());
    for end in ends {
        // Without a begin it belongs to an op from before this capture: there is nothing to keep.
        let Some(begins) = open.get_mut(&(end.name.and_then(text), end.origin)) else { continue };
        if let Some(last) = begins.partition_point(|(start, ..)| *start <= end.ticks).checked_sub(1) {
            let (_, thread, at) = begins.remove(last);
            let event = &mut threads[thread].events[at];
            event.end(end.ns);
            event.is_async |= end.thread != event.thread;
        }
    }
}
