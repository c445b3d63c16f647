//! What devices' profilers reported, by the clock and the threads of the capture.

use super::process::ProcessRecords;
use crate::Thread;
use crate::clock::{ClockPoint, TickClock};
use crate::device::{ActivityList, ActivityRecord, DeviceActivity, as_pytorch_says, names_threads_by_tid};
use std::collections::HashMap;

/// Beyond its first and its last moment the device's clock runs as the monotonic clock does: two moments that lie near
/// each other, each a little off, say nothing of times that are far from both.
const BEYOND_NS: i64 = 1 << 36;

/// The activity records, and what of them could not be placed, in words. A thread that recorded nothing itself
/// is added to `threads`; a range that was open when recording ended reaches to `last_ns`.
pub(crate) fn finish(
    mut activities: ActivityList,
    process: &ProcessRecords,
    clock: &TickClock,
    threads: &mut Vec<Thread>,
    last_ns: i64,
) -> (ActivityList, Option<String>) {
    if activities.is_empty() {
        return (activities, None);
    }
    let Some(clock) = device_clock(process, clock) else {
        let damage = format!("{} reports of a device's profiler whose clock was never read", activities.len());
        return (ActivityList::default(), Some(damage));
    };
    keep_last_of_ranges(&mut activities);
    let mut clock = clock.cursor();
    activities.set_times(|about, (start_ns, end_ns)| {
        let start_ns = clock.monotonic_ns(start_ns as u64);
        let is_open = end_ns == 0 && matches!(about.record, ActivityRecord::Range(_));
        let end_ns = if is_open { last_ns } else { clock.monotonic_ns(end_ns as u64) };
        (start_ns, end_ns.max(start_ns))
    });
    let mut naming = Naming::of(threads);
    for about in activities.about_mut() {
        if let ActivityRecord::Range(range) = &mut about.record {
            range.id = 0;
        }
        naming.name(about, threads);
    }
    (activities, None)
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
fn keep_last_of_ranges(activities: &mut ActivityList) {
    let range = |activity: &DeviceActivity| match activity.record {
        ActivityRecord::Range(range) => Some(((range.start_ns, range.id, range.thread), range.end_ns == 0)),
        _ => None,
    };
    if !activities.about().iter().any(|about| range(about).is_some()) {
        return;
    }
    let open = activities.iter().filter_map(|activity| range(&activity)).filter(|(_, is_open)| *is_open);
    let mut open: HashMap<_, bool> = open.map(|(key, _)| (key, false)).collect();
    if open.is_empty() {
        return;
    }
    for (key, _) in activities.iter().filter_map(|activity| range(&activity)).filter(|(_, is_open)| !is_open) {
        open.entry(key).and_modify(|has_end| *has_end = true);
    }
    activities.retain(|activity| range(activity).is_none_or(|(key, is_open)| !is_open || !open[&key]));
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
