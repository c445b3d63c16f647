//! # Definition
//! For each kind of wait for a device, how often and how long somebody waited, and what the device did meanwhile.
//! A wait of the host is a call of the device's API that returns only when the device has done something. Of its time,
//! busy is the part in which the device runs anything, idle the rest: then the host waits for nothing, and the device
//! for the host. The two sum to the total. A stream can wait too, for an event of another stream. A row is one kind of
//! wait, by one call, inside one operator or label: the innermost that is open when the call starts.
//!
//! # Units
//! Nanoseconds; counts of waits.
//!
//! # Source
//! Calls on the host that wait, as the recording tells them from others, and the waits that the device's profiler
//! reports. A reported wait that belongs to a waiting call tells what it waits for, and takes no time of its own.
//!
//! # Edge cases
//! `waits_for` is `unknown` where the recording does not say what is waited for. The device is the one that the
//! recording names; where it names none, all devices of the rank count together, and the device is busy when one of
//! them is. Without device events of the rank, busy and idle are not known. Of calls inside each other the outermost
//! counts. Two threads that wait at the same time both count. A reported wait without a known call has no call and no
//! operator. For one step, the waits that start on the host inside it; those whose call is not known by their own start.

use crate::device_busy::DeviceBusy;
use crate::selection::is_inside;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use rustc_hash::FxHashMap;
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{DeviceId, SliceId, SliceKind, SyncKind, Synchronization, Trace};

columns! {
    /// All waits of one kind.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Synchronizations {
        /// The rank.
        rank: u32 => Count,
        /// What is waited for, and by what.
        waits_for: SyncKind => Text,
        /// The call that waits.
        call: Option<String> => Text,
        /// The innermost operator or label around the call.
        inside: Option<String> => Text,
        /// Number of waits.
        count: i64 => Count,
        /// Sum of the durations of the waits.
        total_ns: i64 => Nanoseconds,
        /// Duration of the longest wait.
        max_ns: i64 => Nanoseconds,
        /// The part of `total_ns` in which the device is busy. Absent without device events.
        busy_ns: Option<i64> => Nanoseconds,
        /// The part of `total_ns` in which the device is idle. Absent without device events.
        idle_ns: Option<i64> => Nanoseconds,
    }
}

/// Waits by rank, the longest total first.
pub fn synchronizations(trace: &Trace, selection: &Selection) -> Vec<Synchronizations> {
    rows(&AnalysisContext::new(trace, selection))
}

pub(crate) fn rows(context: &AnalysisContext<'_>) -> Vec<Synchronizations> {
    let trace = context.trace;
    let waits = find_waits(trace, context.selection);
    let busy = Busy::of(context, &waits);
    let mut sums: FxHashMap<Key, Sums> = FxHashMap::default();
    for wait in &waits {
        let sums = sums.entry(key_of(trace, wait)).or_default();
        let dur_ns = wait.span.duration_ns();
        sums.count += 1;
        sums.total_ns += i128::from(dur_ns);
        sums.max_ns = sums.max_ns.max(dur_ns);
        if let Some(busy_ns) = busy.within(wait) {
            sums.busy_ns = Some(sums.busy_ns.unwrap_or(0) + i128::from(busy_ns));
        }
    }
    let mut rows: Vec<Synchronizations> = sums.iter().map(|(key, sums)| row(trace, key, sums)).collect();
    rows.sort_by(|a, b| {
        let key = |row: &Synchronizations| (row.rank, std::cmp::Reverse(row.total_ns), row.waits_for);
        key(a).cmp(&key(b)).then_with(|| (&a.call, &a.inside).cmp(&(&b.call, &b.inside)))
    });
    rows
}

/// One wait: a call on the host, or what the device's profiler reports.
#[derive(Clone, Copy)]
struct Wait {
    rank: u32,
    kind: SyncKind,
    call: Option<SliceId>,
    device: Option<DeviceId>,
    span: Span,
}

fn find_waits(trace: &Trace, selection: &Selection) -> Vec<Wait> {
    let is_waiting_call = |id: &SliceId| trace.slices.kind(*id) == SliceKind::HostSync;
    let outermost = |call: SliceId| trace.slices.with_ancestors(call).filter(is_waiting_call).last();
    // A wait that a waiting call reported, or a call inside that one, is that call's.
    let mut reported_of: FxHashMap<SliceId, &Synchronization> = FxHashMap::default();
    let mut of_nobody = Vec::new();
    for reported in &trace.synchronizations {
        match reported.call.and_then(outermost) {
            Some(call) => drop(reported_of.entry(call).or_insert(reported)),
            None => of_nobody.push(reported),
        }
    }
    let of_call = |call: SliceId| {
        let reported = reported_of.get(&call);
        Wait {
            rank: trace.rank_of_track(trace.slices.track[call.index()]),
            kind: reported.map_or(SyncKind::Unknown, |row| row.kind),
            call: Some(call),
            device: reported.map(|row| row.device),
            span: trace.slices.span(call),
        }
    };
    let calls = trace.slices.ids().filter(is_waiting_call).filter(|id| outermost(*id) == Some(*id)).map(of_call);
    let reported = of_nobody.into_iter().map(|row| Wait {
        rank: trace.devices[row.device.index()].rank,
        kind: row.kind,
        call: row.call,
        device: Some(row.device),
        span: trace.slices.span(row.slice),
    });
    let windows = selection.windows_by_rank(trace);
    let is_asked_for = |wait: &Wait| {
        let start_ns = wait.call.map_or(wait.span.start_ns, |call| trace.slices.start_ns[call.index()]);
        selection.has_rank(wait.rank) && (!selection.is_part() || is_inside(&windows, wait.rank, start_ns))
    };
    calls.chain(reported).filter(is_asked_for).collect()
}

/// Rank, kind, name of the call, name of what is around it.
type Key = (u32, SyncKind, Option<StringId>, Option<StringId>);

fn key_of(trace: &Trace, wait: &Wait) -> Key {
    let name = |id: SliceId| trace.slices.name[id.index()];
    (wait.rank, wait.kind, wait.call.map(name), wait.call.and_then(|call| around(trace, call)).map(name))
}

/// The innermost operator or label around a call.
fn around(trace: &Trace, call: SliceId) -> Option<SliceId> {
    let is_named = |id: &SliceId| {
        let kind = trace.slices.kind(*id);
        matches!(kind, SliceKind::Op | SliceKind::Annotation | SliceKind::Optimizer | SliceKind::DataLoader)
    };
    let track = trace.slices.track[call.index()];
    let has_one_lane = trace.lanes(track).nth(1).is_none();
    if has_one_lane {
        return trace.slices.with_ancestors(call).find(is_named);
    }
    let open = trace.open_slices(track, trace.slices.start_ns[call.index()]).filter(is_named);
    open.max_by_key(|id| (trace.slices.start_ns[id.index()], trace.slices.depth[id.index()]))
}

#[derive(Default)]
struct Sums {
    count: i64,
    total_ns: i128,
    max_ns: i64,
    busy_ns: Option<i128>,
}

fn row(trace: &Trace, (rank, kind, call, inside): &Key, sums: &Sums) -> Synchronizations {
    let text = |id: &StringId| trace.strings.get(*id).to_string();
    let whole = |ns: i128| i64::try_from(ns).unwrap_or(i64::MAX);
    let idle_ns = sums.busy_ns.map(|busy_ns| sums.total_ns - busy_ns);
    assert!(idle_ns.is_none_or(|idle_ns| idle_ns >= 0), "busy is part of the wait");
    Synchronizations {
        rank: *rank,
        waits_for: *kind,
        call: call.as_ref().map(text),
        inside: inside.as_ref().map(text),
        count: sums.count,
        total_ns: whole(sums.total_ns),
        max_ns: sums.max_ns,
        busy_ns: sums.busy_ns.map(whole),
        idle_ns: idle_ns.map(whole),
    }
}

/// When devices run anything: each by itself, and all of a rank together. Only of ranks in which somebody waits.
struct Busy {
    of_device: FxHashMap<DeviceId, Option<Running>>,
    of_rank: FxHashMap<u32, Option<Running>>,
}

/// Disjoint spans, and the time in those before each.
struct Running {
    spans: IntervalSet,
    before_ns: Vec<i64>,
}

impl Running {
    fn of(spans: IntervalSet) -> Self {
        let mut sum_ns = 0;
        let mut before = |span: &Span| {
            sum_ns += span.duration_ns();
            sum_ns - span.duration_ns()
        };
        let before_ns = spans.spans().iter().map(&mut before).collect();
        Self { spans, before_ns }
    }

    /// Running time before `at_ns`.
    fn until_ns(&self, at_ns: i64) -> i64 {
        let started = self.spans.spans().partition_point(|span| span.start_ns < at_ns);
        let Some(last) = started.checked_sub(1) else { return 0 };
        let span = self.spans.spans()[last];
        self.before_ns[last] + span.end_ns.min(at_ns) - span.start_ns
    }
}

impl Busy {
    fn of(context: &AnalysisContext<'_>, waits: &[Wait]) -> Self {
        let (trace, busy) = (context.trace, context.get::<Vec<DeviceBusy>>());
        let mut of_device: FxHashMap<DeviceId, Option<Running>> = FxHashMap::default();
        let mut of_rank: FxHashMap<u32, Option<Running>> = FxHashMap::default();
        let running = |devices: &mut dyn Iterator<Item = usize>| {
            let sets = devices.filter(|device| busy[*device].has_events).map(|device| busy[device].any.clone());
            sets.reduce(|sum, set| sum.union(&set)).map(Running::of)
        };
        let is_of_rank = |rank: u32| move |device: &usize| trace.devices[*device].rank == rank;
        for wait in waits {
            match wait.device {
                Some(device) if !of_device.contains_key(&device) => {
                    of_device.insert(device, running(&mut std::iter::once(device.index())));
                }
                None if !of_rank.contains_key(&wait.rank) => {
                    of_rank.insert(wait.rank, running(&mut (0..busy.len()).filter(is_of_rank(wait.rank))));
                }
                _ => {}
            }
        }
        Self { of_device, of_rank }
    }

    /// How long the device runs something during `wait`; `None` when it never runs anything.
    fn within(&self, wait: &Wait) -> Option<i64> {
        let running = match wait.device {
            Some(device) => self.of_device.get(&device)?.as_ref()?,
            None => self.of_rank.get(&wait.rank)?.as_ref()?,
        };
        Some(running.until_ns(wait.span.end_ns) - running.until_ns(wait.span.start_ns))
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{Device, DeviceEvent, DeviceEventClass, LaunchKey, Process, TraceBuilder, Track, TrackKind};

    fn line(row: &Synchronizations) -> String {
        let us = |ns: Option<i64>| ns.map_or("-".into(), |ns| (ns / 1_000).to_string());
        let [total, max, busy, idle] = [Some(row.total_ns), Some(row.max_ns), row.busy_ns, row.idle_ns].map(us);
        let text = |text: &Option<String>| text.clone().unwrap_or("-".into());
        let (call, inside) = (text(&row.call), text(&row.inside));
        let (kind, count) = (row.waits_for.as_str(), row.count);
        format!("{kind} {call} in {inside} x{count}: {total} = {busy} busy + {idle} idle, max {max}")
    }

    fn check(trace: &Trace, selection: Selection, expected: &[&str]) {
        let rows = synchronizations(trace, &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_wait_is_busy_while_the_device_runs_anything() {
        let trace = drawn(
            "rank 0 cpu 1    aaaaaa....
             rank 0 label 1  .bb.......
             rank 0 sync 1   .SS.SS..SS
             rank 0 stream 7 CC........
             rank 0 stream 8 .HH..H....",
        );
        let expected = [
            "unknown S in a x1: 2 = 1 busy + 1 idle, max 2",
            "unknown S in b x1: 2 = 2 busy + 0 idle, max 2",
            "unknown S in - x1: 2 = 0 busy + 2 idle, max 2",
        ];
        let rows = synchronizations(&trace, &Selection::default());
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        lines.sort_by_key(|line| expected.iter().position(|other| other == line));
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_step_has_the_waits_that_start_in_it() {
        let trace = drawn("rank 0 step 0011\nrank 0 sync 2 S.S.\nrank 1 sync 1 ..SS");
        check(
            &trace,
            Selection { step: Some(1), ..Selection::default() },
            &["unknown S in - x1: 1 = - busy + - idle, max 1"],
        );
        check(
            &trace,
            Selection { ranks: 1.into(), ..Selection::default() },
            &["unknown S in - x1: 2 = - busy + - idle, max 2"],
        );
    }

    /// Calls as (kind, start, end, correlation), reported waits as (kind, start, end, correlation); a kernel at 5..15.
    fn reported(calls: &[(SliceKind, i64, i64, i64)], waits: &[(SyncKind, i64, i64, i64)]) -> Trace {
        let mut builder = TraceBuilder::new("waits");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device::default());
        let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream 7"));
        let syncs = builder.add_track(Track::new(TrackKind::StreamSync, process, "waits of stream 7"));
        let us = |time: i64| time * 1_000;
        for (kind, start, end, correlation) in calls.iter().copied() {
            let name = builder.strings.intern(kind.as_str());
            let slice = builder.add_slice(thread, kind, name, us(start), us(end - start));
            builder.set_correlation(slice, LaunchKey { process, correlation });
        }
        for (kind, start, end, correlation) in waits.iter().copied() {
            let name = builder.strings.intern(kind.as_str());
            let slice = builder.add_slice(syncs, SliceKind::Synchronization, name, us(start), us(end - start));
            builder.set_correlation(slice, LaunchKey { process, correlation });
            let (stream, event_stream, call, event_record) = (Some(7), None, None, None);
            let row = Synchronization { slice, kind, device, stream, event_stream, call, event_record };
            builder.add_synchronization(row, None);
        }
        let name = builder.strings.intern("kernel");
        let slice = builder.add_slice(stream, SliceKind::Kernel, name, us(5), us(10));
        builder.add_device_event(DeviceEvent::new(slice, device, DeviceEventClass::Compute));
        builder.finish()
    }

    #[test]
    fn what_is_reported_of_a_call_tells_its_kind_and_takes_no_time_of_its_own() {
        let trace = reported(
            &[(SliceKind::HostSync, 0, 20, 1), (SliceKind::Runtime, 30, 31, 2)],
            &[(SyncKind::Device, 1, 19, 1), (SyncKind::StreamWaitEvent, 32, 40, 2), (SyncKind::Stream, 50, 53, 9)],
        );
        let expected = [
            "device host_sync in - x1: 20 = 10 busy + 10 idle, max 20",
            "stream_wait_event runtime in - x1: 8 = 0 busy + 8 idle, max 8",
            "stream - in - x1: 3 = 0 busy + 3 idle, max 3",
        ];
        check(&trace, Selection::default(), &expected);
    }

    #[test]
    fn of_calls_inside_each_other_the_outermost_counts() {
        let trace = reported(
            &[(SliceKind::HostSync, 0, 20, 1), (SliceKind::HostSync, 2, 18, 2)],
            &[(SyncKind::Stream, 3, 17, 2)],
        );
        check(&trace, Selection::default(), &["stream host_sync in - x1: 20 = 10 busy + 10 idle, max 20"]);
    }

    proptest! {
        #[test]
        fn sums_equal_one_cell_per_microsecond(
            waits in prop::collection::vec("[.S|]{1,30}", 1..4), streams in prop::collection::vec("[.CHN|]{1,30}", 0..3),
        ) {
            let threads: String = waits.iter().enumerate().map(|(at, row)| format!("rank 0 sync {at} {row}\n")).collect();
            let devices: String = streams.iter().enumerate().map(|(at, row)| format!("rank 0 stream {at} {row}\n")).collect();
            let found = synchronizations(&drawn(&(threads + &devices + "rank 0 cpu 9 a")), &Selection::default());
            let cells = |row: &String| -> Vec<char> { row.chars().filter(|cell| *cell != '|').collect() };
            let streams: Vec<Vec<char>> = streams.iter().map(cells).collect();
            let is_busy = |at: usize| streams.iter().any(|row| row.get(at).is_some_and(|cell| *cell != '.'));
            let waited: Vec<usize> = waits.iter().flat_map(|row| {
                cells(row).into_iter().enumerate().filter(|(_, cell)| *cell == 'S').map(|(at, _)| at).collect::<Vec<_>>()
            }).collect();
            let runs: Vec<usize> = waits.iter().flat_map(|row| row.split(['.', '|'])).map(str::len).filter(|len| *len > 0).collect();
            prop_assert_eq!(found.len(), usize::from(!runs.is_empty()));
            let Some(row) = found.first() else { return Ok(()) };
            let busy = 1_000 * waited.iter().filter(|at| is_busy(**at)).count() as i64;
            let has_events = streams.iter().flatten().any(|cell| *cell != '.');
            prop_assert_eq!(row.count, runs.len() as i64);
            prop_assert_eq!(row.total_ns, 1_000 * waited.len() as i64);
            prop_assert_eq!(row.max_ns, 1_000 * runs.iter().copied().max().unwrap() as i64);
            prop_assert_eq!(row.busy_ns, has_events.then_some(busy));
            prop_assert_eq!(row.idle_ns, has_events.then_some(row.total_ns - busy));
        }
    }
}
