//! Ends of events and steps that began on another thread.

use super::replay::{EndElsewhere, ThreadRecords};
use std::collections::HashMap;

/// Start in ticks, and where the event is: number of its thread, and index.
type Open = (u64, usize, usize);

/// Ends them: each the last one begun, of that name, on that thread, that is still open. Names are compared by their
/// text: overloads of one name have ids of their own, and who ends an op may not know which of them it was.
pub(super) fn end_elsewhere(threads: &mut [ThreadRecords], names: &[String]) {
    let mut ends: Vec<EndElsewhere> = threads.iter_mut().flat_map(|thread| thread.ends_elsewhere.drain(..)).collect();
    if ends.is_empty() {
        return;
    }
    ends.sort_by_key(|end| end.ticks);
    let text = |name: u32| names.get(name as usize);
    let mut open: HashMap<(Option<&String>, u64), Vec<Open>> = HashMap::new();
    for (number, thread) in threads.iter().enumerate() {
        for (start, at) in &thread.left_open {
            let key = (text(thread.events[*at].name), thread.thread.framework_thread);
            open.entry(key).or_default().push((*start, number, *at));
        }
    }
    open.values_mut().for_each(|begins| begins.sort_unstable());
    for end in ends {
        // Without a begin it belongs to an op from before this capture: there is nothing to keep.
        let Some(begins) = open.get_mut(&(text(end.name), end.origin)) else { continue };
        if let Some(last) = begins.partition_point(|(start, ..)| *start <= end.ticks).checked_sub(1) {
            let (_, thread, at) = begins.remove(last);
            let event = &mut threads[thread].events[at];
            event.end_ns = end.ns.max(event.start_ns);
            event.is_unfinished = false;
            event.is_async |= end.thread != event.thread;
        }
    }
}

/// Ends steps that another thread ended, since a loop may move from thread to thread: each the last one begun, of that
/// number, that is still open.
pub(super) fn end_steps_elsewhere(threads: &mut [ThreadRecords]) {
    let mut ends: Vec<(i64, u64, i64)> =
        threads.iter_mut().flat_map(|thread| thread.step_ends_elsewhere.drain(..)).collect();
    if ends.is_empty() {
        return;
    }
    ends.sort_unstable();
    let mut open: HashMap<i64, Vec<Open>> = HashMap::new();
    for (number, thread) in threads.iter().enumerate() {
        let steps = thread.steps.iter().zip(&thread.step_starts).enumerate();
        for (at, (step, start)) in steps.filter(|(_, (step, _))| step.is_unfinished) {
            open.entry(step.number).or_default().push((*start, number, at));
        }
    }
    open.values_mut().for_each(|begins| begins.sort_unstable());
    for (number, ticks, ns) in ends {
        let Some(begins) = open.get_mut(&number) else { continue };
        if let Some(last) = begins.partition_point(|(start, ..)| *start <= ticks).checked_sub(1) {
            let (_, thread, at) = begins.remove(last);
            threads[thread].steps[at].end(ns);
        }
    }
}
