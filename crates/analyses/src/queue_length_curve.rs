//! # Definition
//! For each device, how many device events wait to start and how many run, over time, one row a bucket.
//! A device event waits from the start of its launch on the host to its own start, as in `queue_length`, and runs until
//! its end. Grouped by stream, each stream has rows of its own; without, the streams of a device count together.
//!
//! The rows of a device cover the time from its first launch to the end of its last device event. Buckets begin at whole
//! multiples of their width since the start of the trace, so that those of all ranks and devices line up; the first and
//! the last one are cut. A mean is over the time of the bucket, least and greatest numbers are those that last any time
//! in it. Over all buckets of a stream, waiting time sums to what its queue in `queue_length` has.
//!
//! # Units
//! Nanoseconds, `start_ns` since the start of the trace; lengths and numbers of what runs are of device events.
//!
//! # Source
//! As for `queue_length`.
//!
//! # Edge cases
//! As for `queue_length`: device events without a known launch are left out. A bucket is 10 ms wide, or as asked for. Where
//! that makes more than 100,000 buckets for a device or stream, all its buckets are wider by the least power of ten that
//! does not. What takes no time from launch to end has no row.

use crate::buckets::{Buckets, DEFAULT_BUCKET_NS};
use crate::queue_length::{Queued, Stream, queued_by_stream, sweep};
use crate::{Analysis, AnalysisContext, GroupBy, Needs, Options, Outcome, Selection};
use std::collections::BTreeMap;
use stepscope_base::Span;
use stepscope_trace::Trace;

columns! {
    /// The device events on their way on one device, or stream, during one bucket.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct QueueLengthBucket {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// The stream, when rows are of streams and it is known.
        stream: Option<i64>,
        /// The stream of the device. Absent when not known.
        stream => Count if (|selection| selection.group_by == Some(GroupBy::Stream)) = |row| row.stream,
        /// When the bucket starts, counted from the start of the trace.
        start_ns: i64 => Nanoseconds,
        /// Length of the bucket.
        span_ns: i64 => Nanoseconds,
        /// Sum of the times that device events wait in the bucket.
        waiting_ns: i64 => Nanoseconds,
        /// Mean number of device events that wait.
        length_mean: f64 => Plain,
        /// Least number of device events that wait.
        length_min: i64 => Count,
        /// Greatest number of device events that wait.
        length_max: i64 => Count,
        /// Sum of the times that device events run in the bucket.
        running_ns: i64 => Nanoseconds,
        /// Mean number of device events that run.
        running_mean: f64 => Plain,
        /// Greatest number of device events that run.
        running_max: i64 => Count,
    }
}

/// The curve of every device, or stream, that has device events asked for, ordered by rank, device, stream and time.
pub fn queue_length_curve(trace: &Trace, selection: &Selection) -> Vec<QueueLengthBucket> {
    let by_stream = queued_by_stream(trace, selection);
    let of_streams = if selection.group_by == Some(GroupBy::Stream) { by_stream } else { by_device(by_stream) };
    let bucket_ns = selection.bucket_ns.unwrap_or(DEFAULT_BUCKET_NS).max(1);
    of_streams.into_iter().flat_map(|(stream, queued)| of_stream(trace, stream, &queued, bucket_ns)).collect()
}

fn by_device(by_stream: BTreeMap<Stream, Vec<Queued>>) -> BTreeMap<Stream, Vec<Queued>> {
    let mut by_device: BTreeMap<Stream, Vec<Queued>> = BTreeMap::new();
    for ((device, _), queued) in by_stream {
        by_device.entry((device, None)).or_default().extend(queued);
    }
    by_device
}

/// How many of some spans are open during a bucket.
#[derive(Clone, Copy, Default)]
struct Open {
    sum: i128,
    least: Option<i64>,
    most: i64,
    known_ns: i64,
}

/// How many of `spans` are open during each bucket.
fn open(buckets: &Buckets, spans: impl Iterator<Item = Span>) -> Vec<Open> {
    let mut rows = vec![Open::default(); buckets.len() as usize];
    sweep(spans, |span, open| {
        buckets.cut(span, |at, ns| {
            let row = &mut rows[at];
            row.sum += i128::from(open) * i128::from(ns);
            row.least = Some(row.least.map_or(open, |least| least.min(open)));
            row.most = row.most.max(open);
            row.known_ns += ns;
        });
    });
    // Before the first of them and after the last one there is none.
    for (at, row) in rows.iter_mut().enumerate() {
        if row.known_ns < buckets.span(at).duration_ns() {
            row.least = Some(0);
        }
    }
    rows
}

fn of_stream(trace: &Trace, (device, stream): Stream, queued: &[Queued], bucket_ns: i64) -> Vec<QueueLengthBucket> {
    let start_ns = queued.iter().map(|queued| queued.wait.start_ns).min().unwrap_or(0);
    let window = Span::new(start_ns, queued.iter().map(|queued| queued.run.end_ns).max().unwrap_or(0));
    if window.is_empty() {
        return Vec::new();
    }
    let buckets = Buckets::of(window, bucket_ns);
    let open_during = |of: fn(&Queued) -> Span| {
        let rows = open(&buckets, queued.iter().map(of));
        let total: i128 = queued.iter().map(|queued| i128::from(of(queued).duration_ns())).sum();
        assert_eq!(rows.iter().map(|row| row.sum).sum::<i128>(), total, "buckets sum to the whole");
        rows
    };
    let (waiting, running) = (open_during(|queued| queued.wait), open_during(|queued| queued.run));
    let device = &trace.devices[device.index()];
    let row = |(at, (waiting, running)): (usize, (Open, Open))| {
        let span = buckets.span(at);
        let mean = |sum: i128| sum as f64 / span.duration_ns() as f64;
        QueueLengthBucket {
            rank: device.rank,
            device: device.ordinal,
            stream,
            start_ns: span.start_ns,
            span_ns: span.duration_ns(),
            waiting_ns: i64::try_from(waiting.sum).unwrap_or(i64::MAX),
            length_mean: mean(waiting.sum),
            length_min: waiting.least.unwrap_or(0),
            length_max: waiting.most,
            running_ns: i64::try_from(running.sum).unwrap_or(i64::MAX),
            running_mean: mean(running.sum),
            running_max: running.most,
        }
    };
    waiting.into_iter().zip(running).enumerate().map(row).collect()
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { group_by: &[GroupBy::Device, GroupBy::Stream], bucket: true, ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &queue_length_curve(context.trace, context.selection))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue_length::queue_length;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    fn check(drawing: &str, group_by: Option<GroupBy>, expected: &[&str]) {
        let selection = Selection { bucket_ns: Some(4_000), group_by, ..Selection::default() };
        let line = |row: &QueueLengthBucket| {
            let [start, span, wait, run] =
                [row.start_ns, row.span_ns, row.waiting_ns, row.running_ns].map(|ns| ns / 1_000);
            let stream = row.stream.map_or("-".into(), |stream| stream.to_string());
            let [least, most, runs] = [row.length_min, row.length_max, row.running_max];
            format!("{}/{stream} at {start} for {span}: {wait} wait {least}-{most}, {run} run 0-{runs}", row.rank)
        };
        let rows = queue_length_curve(&drawn(drawing), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    const TWO_STREAMS: &str = "rank 0 launch 1 .ABC......
                               rank 0 stream 7 ...AA.CC..
                               rank 0 stream 8 .....BBB..
                               rank 0 stream 9 XX........";

    #[test]
    fn a_device_event_waits_from_its_launch_to_its_start_and_then_runs() {
        check(TWO_STREAMS, None, &["0/- at 1 for 3: 5 wait 1-2, 1 run 0-1", "0/- at 4 for 4: 3 wait 0-2, 6 run 0-2"]);
    }

    #[test]
    fn streams_have_curves_of_their_own_when_asked_for() {
        check(
            TWO_STREAMS,
            Some(GroupBy::Stream),
            &[
                "0/7 at 1 for 3: 3 wait 1-1, 1 run 0-1",
                "0/7 at 4 for 4: 2 wait 0-1, 3 run 0-1",
                "0/8 at 2 for 2: 2 wait 1-1, 0 run 0-0",
                "0/8 at 4 for 4: 1 wait 0-1, 3 run 0-1",
            ],
        );
    }

    #[test]
    fn without_launches_there_is_no_queue() {
        check("rank 0 stream 7 XX.YY\nrank 0 cpu 1 aa", None, &[]);
    }

    proptest! {
        #[test]
        fn buckets_equal_one_look_per_nanosecond(
            launch in "[ABCDE.]{20}", streams in prop::collection::vec("[ABCDE.]{30}", 1..3),
            width in 1_i64..12, by_stream in any::<bool>(),
        ) {
            let mut drawing = format!("rank 0 launch 1 {launch}\n");
            streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&drawing);
            let group_by = by_stream.then_some(GroupBy::Stream);
            // A drawn character is 1,000 ns.
            let bucket_ns = Some(width * 500);
            let rows = queue_length_curve(&trace, &Selection { group_by, bucket_ns, ..Selection::default() });
            let starts = &trace.slices.start_ns;
            let mut seen = 0;
            let keys: std::collections::BTreeSet<Option<i64>> =
                trace.device_events.iter().filter(|event| event.launch.is_some())
                    .map(|event| event.stream.filter(|_| by_stream)).collect();
            for key in keys {
                let of_key = trace.device_events.iter().filter(|event| !by_stream || event.stream == key);
                let spans: Vec<(i64, i64, i64)> = of_key.filter_map(|event| {
                    let run = trace.slices.span(event.slice);
                    Some((starts[event.launch?.index()].min(run.start_ns), run.start_ns, run.end_ns))
                }).collect();
                let first = spans.iter().map(|span| span.0).min().unwrap();
                let last = spans.iter().map(|span| span.2).max().unwrap();
                let mut at_ns = first;
                for row in rows.iter().filter(|row| row.stream == key) {
                    seen += 1;
                    prop_assert_eq!(row.start_ns, at_ns);
                    at_ns += row.span_ns;
                    prop_assert!(at_ns == last || at_ns % (width * 500) == 0);
                    // Nothing changes within 500 ns.
                    let looks: Vec<(i64, i64)> = (row.start_ns..at_ns).step_by(500).map(|now| {
                        let count = |is_in: &dyn Fn(&(i64, i64, i64)) -> bool| spans.iter().filter(|span| is_in(span)).count() as i64;
                        (count(&|span| span.0 <= now && now < span.1), count(&|span| span.1 <= now && now < span.2))
                    }).collect();
                    let [waiting, running] = [0, 1].map(|which| {
                        looks.iter().map(|look| if which == 0 { look.0 } else { look.1 }).collect::<Vec<i64>>()
                    });
                    prop_assert_eq!(row.waiting_ns, waiting.iter().sum::<i64>() * 500);
                    prop_assert_eq!(row.running_ns, running.iter().sum::<i64>() * 500);
                    prop_assert_eq!(Some(&row.length_min), waiting.iter().min());
                    prop_assert_eq!(Some(&row.length_max), waiting.iter().max());
                    prop_assert_eq!(Some(&row.running_max), running.iter().max());
                    prop_assert_eq!(row.length_mean, row.waiting_ns as f64 / row.span_ns as f64);
                    prop_assert_eq!(row.running_mean, row.running_ns as f64 / row.span_ns as f64);
                }
                prop_assert_eq!(at_ns, last);
            }
            prop_assert_eq!(seen, rows.len());
            if by_stream {
                for queue in queue_length(&trace, &Selection::default()) {
                    let of_queue = || rows.iter().filter(|row| row.stream == queue.stream);
                    let waited: i64 = of_queue().map(|row| row.waiting_ns).sum();
                    let mean = (queue.span_ns > 0).then(|| waited as f64 / queue.span_ns as f64);
                    prop_assert_eq!(mean, queue.length_mean);
                    prop_assert_eq!(of_queue().map(|row| row.length_max).max(), Some(queue.length_max));
                }
            }
        }
    }
}
