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

type Stream = (DeviceId, Option<i64>);

/// The queue of every stream asked for, ordered by rank, device and stream.
pub fn queue_length(trace: &Trace, selection: &Selection) -> Vec<QueueLength> {
    let mut waits: BTreeMap<Stream, Vec<Span>> = BTreeMap::new();
    // By track first: a lookup in a table rather than in a map for each device event.
    let mut of_track: Vec<(Option<Stream>, Vec<Span>)> = vec![(None, Vec::new()); trace.tracks.len()];
    for event in selection.device_events(trace) {
        let Some(launch) = event.launch else { continue };
        let start_ns = trace.slices.start_ns[event.slice.index()];
        let wait = Span::new(trace.slices.start_ns[launch.index()].min(start_ns), start_ns);
        let (stream, own) = &mut of_track[trace.slices.track[event.slice.index()].index()];
        if *stream.get_or_insert((event.device, event.stream)) == (event.device, event.stream) {
            own.push(wait);
        } else {
            waits.entry((event.device, event.stream)).or_default().push(wait);
        }
    }
    for (stream, own) in of_track {
        if let Some(stream) = stream {
            waits.entry(stream).or_default().extend(own);
        }
    }
    waits.into_iter().map(|(stream, waits)| of_stream(trace, stream, &waits)).collect()
}

/// `waits` are the times that each device event of the stream spends in the queue.
fn of_stream(trace: &Trace, (device, stream): Stream, waits: &[Span]) -> QueueLength {
    let mut enters: Vec<i64> = waits.iter().map(|wait| wait.start_ns).collect();
    let mut leaves: Vec<i64> = waits.iter().map(|wait| wait.end_ns).collect();
    enters.sort_unstable();
    leaves.sort_unstable();
    let (first_ns, last_ns) = (enters.first().copied().unwrap_or(0), leaves.last().copied().unwrap_or(0));
    let (mut at_ns, mut length, mut entered) = (first_ns, 0_i64, 0);
    let (mut length_max, mut full_ns, mut empty_ns, mut waited) = (0, 0, 0, 0_i128);
    let mut pass = |until_ns: i64, length: i64| {
        let passed_ns = until_ns - at_ns;
        at_ns = until_ns;
        waited += i128::from(length) * i128::from(passed_ns);
        full_ns += if length >= FULL { passed_ns } else { 0 };
        empty_ns += if length == 0 { passed_ns } else { 0 };
        // A length that lasts no time is none: it hangs on the order of what happens at one moment.
        length_max = if passed_ns > 0 { length.max(length_max) } else { length_max };
    };
    for leave_ns in leaves {
        while let Some(enter_ns) = enters.get(entered).filter(|enter_ns| **enter_ns <= leave_ns) {
            pass(*enter_ns, length);
            (length, entered) = (length + 1, entered + 1);
        }
        pass(leave_ns, length);
        length -= 1;
    }
    let expected: i128 = waits.iter().map(|wait| i128::from(wait.duration_ns())).sum();
    assert!(length == 0 && waited == expected, "what enters the queue leaves it, and waits as long as it waits");
    let span_ns = last_ns - first_ns;
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
