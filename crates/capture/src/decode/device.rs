//! What devices' profilers reported, by the clock and the threads of the capture.

use super::process::ProcessRecords;
use crate::Thread;
use crate::clock::{ClockPoint, TickClock};
use crate::device::{DeviceRecord, DeviceReport, as_pytorch_says, names_threads_by_tid};
use std::collections::HashMap;

/// Beyond its first and its last moment the device's clock runs as the monotonic clock does: two moments that lie near
/// each other, each a little off, say nothing of times that are far from both.
const BEYOND_NS: i64 = 1 << 36;

/// The reports in order, and what of them could not be placed, in words. A thread that recorded nothing itself is added
/// to `threads`; a range that was open when recording ended reaches to `last_ns`.
pub(super) fn finish(
    mut reports: Vec<DeviceReport>,
    process: &ProcessRecords,
    clock: &TickClock,
    threads: &mut Vec<Thread>,
    last_ns: i64,
) -> (Vec<DeviceReport>, Option<String>) {
    if reports.is_empty() {
        return (reports, None);
    }
    let Some(clock) = device_clock(process, clock) else {
        let told = format!("{} reports of a device's profiler whose clock was never read", reports.len());
        return (Vec::new(), Some(told));
    };
    let mut by_handle: HashMap<u32, u32> = HashMap::new();
    // A number of a thread that ended may be given to a later one: nothing tells them apart.
    by_handle.extend(threads.iter().filter(|thread| thread.handle != 0).map(|thread| (thread.handle, thread.ordinal)));
    let mut by_tid: HashMap<u32, u32> = HashMap::new();
    by_tid.extend(threads.iter().filter(|thread| thread.tid != 0).map(|thread| (thread.tid as u32, thread.ordinal)));
    keep_last_of_ranges(&mut reports);
    for report in &mut reports {
        place(&mut report.record, &clock, last_ns);
        if let Some(thread) = report.record.thread_mut() {
            let named = *thread;
            let known = if names_threads_by_tid(report.device_type) { &mut by_tid } else { &mut by_handle };
            *thread = *known.entry(named).or_insert_with(|| add_thread(named, report.device_type, threads));
        }
        report.device_type = as_pytorch_says(report.device_type);
    }
    // What is moved about is the keys, and not the reports.
    reports.sort_by_cached_key(|report| report.record.span());
    (reports, None)
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
fn keep_last_of_ranges(reports: &mut Vec<DeviceReport>) {
    let range = |report: &DeviceReport| match report.record {
        DeviceRecord::Range(range) => Some(((range.start_ns, range.id, range.thread), range.end_ns == 0)),
        _ => None,
    };
    let open = reports.iter().filter_map(range).filter(|(_, is_open)| *is_open);
    let mut open: HashMap<_, bool> = open.map(|(key, _)| (key, false)).collect();
    if open.is_empty() {
        return;
    }
    for (key, _) in reports.iter().filter_map(range).filter(|(_, is_open)| !is_open) {
        open.entry(key).and_modify(|has_end| *has_end = true);
    }
    reports.retain(|report| range(report).is_none_or(|(key, is_open)| !is_open || !open[&key]));
}

fn place(record: &mut DeviceRecord, clock: &TickClock, last_ns: i64) {
    let is_open = matches!(record, DeviceRecord::Range(range) if range.end_ns == 0);
    if let DeviceRecord::Range(range) = record {
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
