//! What devices' profilers reported, by the clock and the threads of the capture.

use super::process::ProcessRecords;
use crate::Thread;
use crate::clock::{ClockPoint, TickClock};
use crate::device::{ActivityRecord, CompactActivities, DeviceActivity, as_pytorch_says, names_threads_by_tid};
use std::collections::HashMap;

/// Beyond its first and its last moment the device's clock runs as the monotonic clock does: two moments that lie near
/// each other, each a little off, say nothing of times that are far from both.
const BEYOND_NS: i64 = 1 << 36;

/// The activity records in order, and what of them could not be placed, in words. A thread that recorded nothing itself
/// is added to `threads`; a range that was open when recording ended reaches to `last_ns`.
pub(super) fn finish(
    mut activities: Vec<DeviceActivity>,
    process: &ProcessRecords,
    clock: &TickClock,
    threads: &mut Vec<Thread>,
    last_ns: i64,
) -> (Vec<DeviceActivity>, Option<String>) {
    if activities.is_empty() {
        return (activities, None);
    }
    let Some(clock) = device_clock(process, clock) else {
        let damage = format!("{} reports of a device's profiler whose clock was never read", activities.len());
        return (Vec::new(), Some(damage));
    };
    let mut naming = Naming::of(threads);
    keep_last_of_ranges(&mut activities);
    for activity in &mut activities {
        place(&mut activity.record, &clock, last_ns);
        naming.name(activity, threads);
    }
    // What is moved about is the keys, and not the activity records.
    activities.sort_by_cached_key(|activity| activity.record.span());
    (activities, None)
}

/// Gives compact activity records the capture's clock and threads. They stay in the order in which they were written;
/// none when they cannot be placed.
pub(super) fn finish_compact(
    mut activities: CompactActivities,
    process: &ProcessRecords,
    clock: &TickClock,
    threads: &mut Vec<Thread>,
) -> CompactActivities {
    let Some(clock) = device_clock(process, clock) else { return CompactActivities::default() };
    let mut clock = clock.cursor();
    let mut naming = Naming::of(threads);
    let mut is_named = vec![false; activities.about.len()];
    for row in &mut activities.rows {
        row.start_ns = clock.monotonic_ns(row.start_ns as u64);
        row.end_ns = clock.monotonic_ns(row.end_ns as u64).max(row.start_ns);
        let about = row.about as usize;
        if !is_named[about] {
            let about_it = &mut activities.about[about];
            if let Some(name) = about_it.record.name_mut() {
                *name = name.filter(|id| (*id as usize) < process.names.len());
            }
            naming.name(about_it, threads);
            is_named[about] = true;
        }
    }
    activities
}

/// Gives activity records the capture's threads and PyTorch's types of devices.
struct Naming {
    by_handle: HashMap<u32, u32>,
    by_tid: HashMap<u32, u32>,
}

impl Naming {
    fn of(threads: &[Thread]) -> Self {
        // A number of a thread that ended may be given to a later one: nothing tells them apart.
        let known = threads.iter().filter(|thread| thread.handle != 0);
        let by_handle = known.map(|thread| (thread.handle, thread.ordinal)).collect();
        let known = threads.iter().filter(|thread| thread.tid != 0);
        let by_tid = known.map(|thread| (thread.tid as u32, thread.ordinal)).collect();
        Self { by_handle, by_tid }
    }

    /// A thread that is not among `threads` is added to them.
    fn name(&mut self, activity: &mut DeviceActivity, threads: &mut Vec<Thread>) {
        if let Some(thread) = activity.record.thread_mut() {
            let named = *thread;
            let is_tid = names_threads_by_tid(activity.device_type);
            let known = if is_tid { &mut self.by_tid } else { &mut self.by_handle };
            *thread = *known.entry(named).or_insert_with(|| add_thread(named, activity.device_type, threads));
        }
        activity.device_type = as_pytorch_says(activity.device_type);
    }
}

/// From the nanoseconds of the device's profiler to those of the monotonic clock; `None` when it was never read.
fn device_clock(process: &ProcessRecords, clock: &TickClock) -> Option<TickClock> {
    let at = |device_ns: i64, monotonic_ns: i64| ClockPoint { ticks: device_ns as u64, monotonic_ns, unix_ns: 0 };
    let moments = process.device_moments.iter();
    let mut moments: Vec<(i64, i64)> = moments.map(|(ns, ticks)| (*ns, clock.monotonic_ns(*ticks))).collect();
    moments.sort_unstable();
    let ((first_ns, first), (last_ns, last)) = (*moments.first()?, *moments.last()?);
    let before = at(first_ns.wrapping_sub(BEYOND_NS), first.saturating_sub(BEYOND_NS));
    let after = at(last_ns.wrapping_add(BEYOND_NS), last.saturating_add(BEYOND_NS));
    Some(TickClock::new(before, moments.iter().map(|(ns, monotonic_ns)| at(*ns, *monotonic_ns)).chain([after])))
}

/// A range is told while it is open, lest it be lost, and again once it has ended: the second holds.
fn keep_last_of_ranges(activities: &mut Vec<DeviceActivity>) {
    let range = |activity: &DeviceActivity| match activity.record {
        ActivityRecord::Range(range) => Some(((range.start_ns, range.id, range.thread), range.end_ns == 0)),
        _ => None,
    };
    let open = activities.iter().filter_map(range).filter(|(_, is_open)| *is_open);
    let mut open: HashMap<_, bool> = open.map(|(key, _)| (key, false)).collect();
    if open.is_empty() {
        return;
    }
    for (key, _) in activities.iter().filter_map(range).filter(|(_, is_open)| !is_open) {
        open.entry(key).and_modify(|has_end| *has_end = true);
    }
    activities.retain(|activity| range(activity).is_none_or(|(key, is_open)| !is_open || !open[&key]));
}

fn place(record: &mut ActivityRecord, clock: &TickClock, last_ns: i64) {
    let is_open = matches!(record, ActivityRecord::Range(range) if range.end_ns == 0);
    if let ActivityRecord::Range(range) = record {
        range.id = 0;
    }
    if let Some((start_ns, end_ns)) = record.span_mut() {
        *start_ns = clock.monotonic_ns(*start_ns as u64);
        *end_ns = if is_open { last_ns } else { clock.monotonic_ns(*end_ns as u64) };
        *end_ns = (*end_ns).max(*start_ns);
    }
}

fn add_thread(named: u32, device_type: u8, threads: &mut Vec<Thread>) -> u32 {
    let ordinal = threads.len() as u32;
    let is_tid = names_threads_by_tid(device_type);
    let name = match named {
        0 => "no thread".to_string(),
        tid if is_tid => format!("thread {tid}"),
        handle => format!("thread {handle:#x}"),
    };
    let (tid, handle) = if is_tid { (named.into(), 0) } else { (0, named) };
    threads.push(Thread { ordinal, tid, name, handle, ..Thread::default() });
    ordinal
}
