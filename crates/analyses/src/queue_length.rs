//! # Definition
//! For each stream, how many device events wait in its queue: launched, and not yet started.
//! The queue grows by one when a launch starts on the host, and shrinks by one when its device event starts. The window
//! reaches from the first such launch to the last such start. The mean is over time; full is the time with 1,024 or more
//! in the queue, at which a launch has to wait for a place; empty is the time in the window with none, in which the host
//! does not run ahead of the device.
//!
//! # Units
//! Nanoseconds; lengths are numbers of device events.
//!
//! # Source
//! Device events as the device's profiler recorded them, and the calls on the host that launched them.
//!
//! # Edge cases
//! Device events without a known launch are left out, and a stream that has no others has no row. A device event that
//! seems to start before its launch never waits. A graph launch puts all its device events into the queue at once. For
//! one step, the device events launched on the host inside it.

use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::collections::BTreeMap;
use stepscope_base::Span;
use stepscope_trace::{DeviceId, Trace};

/// From this length on launches wait for a place.
const FULL: i64 = 1_024;

columns! {
    /// The queue of one stream.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct QueueLength {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// The stream of the device. Absent when not known.
        stream: Option<i64> => Count,
        /// Length of the window.
        span_ns: i64 => Nanoseconds,
        /// Number of device events that went through the queue.
        device_events: i64 => Count,
        /// Mean number of device events in the queue over the window. Absent for a window without length.
        length_mean: Option<f64> => Plain,
        /// Greatest number of device events in the queue.
        length_max: i64 => Count,
        /// Time in which at least 1,024 device events are in the queue.
        full_ns: i64 => Nanoseconds,
        /// Time in which the queue is empty.
        empty_ns: i64 => Nanoseconds,
    }
}

/// A stream of a device, where it is known.
pub(crate) type Stream = (DeviceId, Option<i64>);

/// A device event whose launch is known.
#[derive(Clone, Copy)]
pub(crate) struct Queued {
    /// When it is in the queue of its stream.
    pub(crate) wait: Span,
    /// When it runs.
    pub(crate) run: Span,
}

/// The device events asked for that have a known launch, by stream.
pub(crate) fn queued_by_stream(trace: &Trace, selection: &Selection) -> BTreeMap<Stream, Vec<Queued>> {
    let mut by_stream: BTreeMap<Stream, Vec<Queued>> = BTreeMap::new();
    // By track first: a lookup in a table rather than in a map for each device event.
    let mut of_track: Vec<(Option<Stream>, Vec<Queued>)> = vec![(None, Vec::new()); trace.tracks.len()];
    for event in selection.device_events(trace) {
        let Some(launch) = event.launch else { continue };
        let run = trace.slices.span(event.slice);
        let wait = Span::new(trace.slices.start_ns[launch.index()].min(run.start_ns), run.start_ns);
        let queued = Queued { wait, run };
        let (stream, own) = &mut of_track[trace.slices.track[event.slice.index()].index()];
        if *stream.get_or_insert((event.device, event.stream)) == (event.device, event.stream) {
            own.push(queued);
        } else {
            by_stream.entry((event.device, event.stream)).or_default().push(queued);
        }
    }
    for (stream, own) in of_track {
        if let Some(stream) = stream {
            by_stream.entry(stream).or_default().extend(own);
        }
    }
    by_stream
}

/// Calls `pass` with each stretch of time in which the number of open spans stays the same, in order and without a hole,
/// from the first start to the last end. A number that lasts no time is none: it hangs on the order of what happens at one
/// moment.
pub(crate) fn sweep(spans: impl Iterator<Item = Span>, mut pass: impl FnMut(Span, i64)) {
    let (mut starts, mut ends): (Vec<i64>, Vec<i64>) = spans.map(|span| (span.start_ns, span.end_ns)).unzip();
    starts.sort_unstable();
    ends.sort_unstable();
    let (mut at_ns, mut open, mut started) = (starts.first().copied().unwrap_or(0), 0_i64, 0);
    let mut until = |until_ns: i64, open: i64| {
        if at_ns < until_ns {
            pass(Span::new(at_ns, until_ns), open);
        }
        at_ns = until_ns;
    };
    for end_ns in ends {
        while let Some(start_ns) = starts.get(started).filter(|start_ns| **start_ns <= end_ns) {
            until(*start_ns, open);
            (open, started) = (open + 1, started + 1);
        }
        until(end_ns, open);
        open -= 1;
    }
    assert_eq!(open, 0, "what begins ends");
}

/// The queue of every stream asked for, ordered by rank, device and stream.
pub fn queue_length(trace: &Trace, selection: &Selection) -> Vec<QueueLength> {
    let by_stream = queued_by_stream(trace, selection);
    let waits = |queued: Vec<Queued>| queued.iter().map(|queued| queued.wait).collect::<Vec<Span>>();
    by_stream.into_iter().map(|(stream, queued)| of_stream(trace, stream, &waits(queued))).collect()
}

/// `waits` are the times that each device event of the stream spends in the queue.
fn of_stream(trace: &Trace, (device, stream): Stream, waits: &[Span]) -> QueueLength {
    let (mut length_max, mut full_ns, mut empty_ns, mut waited, mut span_ns) = (0, 0, 0, 0_i128, 0);
    sweep(waits.iter().copied(), |span, length| {
        let passed_ns = span.duration_ns();
        span_ns += passed_ns;
        waited += i128::from(length) * i128::from(passed_ns);
        full_ns += if length >= FULL { passed_ns } else { 0 };
        empty_ns += if length == 0 { passed_ns } else { 0 };
        length_max = length.max(length_max);
    });
    let expected: i128 = waits.iter().map(|wait| i128::from(wait.duration_ns())).sum();
    assert_eq!(waited, expected, "what enters the queue waits as long as it waits");
    let device = &trace.devices[device.index()];
    QueueLength {
        rank: device.rank,
        device: device.ordinal,
        stream,
        span_ns,
        device_events: waits.len() as i64,
        length_mean: (span_ns > 0).then(|| waited as f64 / span_ns as f64),
        length_max,
        full_ns,
        empty_ns,
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &queue_length(context.trace, context.selection))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{
        Device, DeviceEvent, DeviceEventClass, LaunchKey, Process, SliceKind, TraceBuilder, Track, TrackKind,
    };

    fn line(row: &QueueLength) -> String {
        let mean = row.length_mean.map_or("-".into(), |mean| format!("{mean:.2}"));
        let stream = row.stream.map_or("-".into(), |stream| stream.to_string());
        let [span, empty] = [row.span_ns, row.empty_ns].map(|ns| ns / 1_000);
        format!(
            "{}/{stream} x{}: {mean} max {} over {span}, {empty} empty",
            row.rank, row.device_events, row.length_max
        )
    }

    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let rows = queue_length(&drawn(drawing), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_launch_enters_and_a_start_leaves() {
        check(
            "rank 0 launch 1 ABC...D..
             rank 0 stream 7 ...AABC.D
             rank 0 stream 8 ..X......",
            Selection::default(),
            &["0/7 x4: 1.62 max 3 over 8, 0 empty"],
        );
    }

    #[test]
    fn streams_have_queues_of_their_own_and_a_step_its_launches() {
        let drawing = "rank 0 step     00001111
                       rank 0 launch 1 AB..C.D.
                       rank 0 stream 7 .A...C.D
                       rank 0 stream 8 ..B.....";
        let all = ["0/7 x3: 0.43 max 1 over 7, 4 empty", "0/8 x1: 1.00 max 1 over 1, 0 empty"];
        check(drawing, Selection::default(), &all);
        check(drawing, Selection { step: Some(1), ..Selection::default() }, &["0/7 x2: 0.67 max 1 over 3, 1 empty"]);
    }

    /// A trace of one stream from (launch start, event start).
    fn trace_of(events: &[(i64, i64)]) -> Trace {
        let mut builder = TraceBuilder::new("queue");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device::default());
        let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream 7"));
        let name = builder.strings.intern("k");
        for (at, (launch_ns, start_ns)) in events.iter().enumerate() {
            let thread = builder.add_track(Track::new(TrackKind::Thread, process, format!("thread {at}")));
            let launch = builder.add_slice(thread, SliceKind::Runtime, name, *launch_ns, 1);
            let slice = builder.add_slice(stream, SliceKind::Kernel, name, *start_ns, 0);
            builder.add_device_event(DeviceEvent::new(slice, device, DeviceEventClass::Compute));
            for slice in [launch, slice] {
                builder.set_correlation(slice, LaunchKey { process, correlation: at as i64 });
            }
        }
        builder.finish()
    }

    #[test]
    fn a_full_queue_is_counted_from_1024_on() {
        let events: Vec<(i64, i64)> = (0..1_030).map(|at| (at, 5_000 + at)).collect();
        let row = queue_length(&trace_of(&events), &Selection::default())[0];
        // Full from the launch of the 1,024th to the start of the 7th.
        assert_eq!((row.length_max, row.full_ns), (1_030, 5_006 - 1_023));
    }

    #[test]
    fn what_starts_before_its_launch_never_waits() {
        let row = queue_length(&trace_of(&[(0, 10), (50, 20)]), &Selection::default())[0];
        assert_eq!((row.length_max, row.span_ns, row.empty_ns), (1, 20, 10));
        let row = queue_length(&trace_of(&[(5, 0)]), &Selection::default())[0];
        assert_eq!((row.length_max, row.span_ns, row.length_mean), (0, 0, None));
    }

    proptest! {
        #[test]
        fn sweeps_equal_one_look_per_nanosecond(events in prop::collection::vec((0_i64..50, 0_i64..60), 1..15)) {
            let row = queue_length(&trace_of(&events), &Selection::default())[0];
            let waits: Vec<(i64, i64)> = events.iter().map(|(launch, start)| (*launch.min(start), *start)).collect();
            let first = waits.iter().map(|wait| wait.0).min().unwrap();
            let last = waits.iter().map(|wait| wait.1).max().unwrap();
            let lengths: Vec<usize> = (first..last).map(|at| waits.iter().filter(|wait| wait.0 <= at && at < wait.1).count()).collect();
            prop_assert_eq!(row.span_ns, last - first);
            prop_assert_eq!(row.length_max, lengths.iter().copied().max().unwrap_or(0) as i64);
            prop_assert_eq!(row.empty_ns, lengths.iter().filter(|length| **length == 0).count() as i64);
            let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
            prop_assert_eq!(row.length_mean, (last > first).then_some(mean));
        }
    }
}
