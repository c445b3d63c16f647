//! # Definition
//! For each rank, the bytes that calls on files moved and the time in them, over time, one row a bucket.
//! Grouped by layer or by action, each layer (MPI-IO, streams, system calls, page faults) or action (read, write, open, anything
//! else) has its own rows over the same buckets.
//!
//! The rows of a rank cover its time from the first start to the last end of a call on a file; buckets begin at whole
//! multiples of their width since the start of the trace, so that those of all ranks line up, and the first and the last
//! one are cut. The bytes of a call are spread evenly over its time; a bandwidth is a bucket's bytes over its length.
//! Busy is the time in which any thread of the rank's processes is in a call on a file, read and write that in which one
//! reads or writes: threads at the same time count once. Exposed is the busy time in which none of the rank's devices
//! works: what computing does not hide.
//!
//! Calls are those of `io_files`, and over all buckets bytes sum to its. A call of one layer that another one carries out
//! counts as the outer one.
//!
//! # Units
//! Nanoseconds, `start_ns` since the start of the trace; bytes; bytes in a second; `count` is the calls that begin in the
//! bucket.
//!
//! # Source
//! As for `io_files`; work of devices as their profiler recorded it.
//!
//! # Edge cases
//! A bucket is 10 ms wide, or as asked for. Where that makes more than 100,000 buckets for a rank, all buckets of that
//! rank are wider by the least power of ten that does not. What has come by the end of a bucket is rounded to whole bytes. In a bucket in
//! which something is read, or written, and no such call says its bytes, they are not known. For a rank whose devices
//! recorded no work, or that has none, nothing is known of what is exposed.

mod spread;

use crate::buckets::{Buckets, DEFAULT_BUCKET_NS};
use crate::device_busy::DeviceBusy;
use crate::io_calls::{IoCall, per_s};
use crate::{Analysis, AnalysisContext, GroupBy, Needs, Options, Outcome, Selection};
use spread::bytes_of;
use std::collections::BTreeMap;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{IoAction, IoLayer, Trace};

columns! {
    /// The calls on files of one rank during one bucket.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct IoBucket {
        /// The rank.
        rank: u32 => Count,
        /// The layer of the calls, when rows are of layers.
        layer: Option<IoLayer>,
        /// The layer of the calls: `mpiio`, `stdio`, `posix` or `page_fault`.
        layer => Text if (|selection| selection.group_by == Some(GroupBy::Layer)) = |row| row.layer,
        /// What the calls do, when rows are of actions.
        action: Option<IoAction>,
        /// What the calls do: `read`, `write`, `open` or `metadata`.
        action => Text if (|selection| selection.group_by == Some(GroupBy::Action)) = |row| row.action,
        /// When the bucket starts, counted from the start of the trace.
        start_ns: i64 => Nanoseconds,
        /// Length of the bucket.
        span_ns: i64 => Nanoseconds,
        /// Number of calls on files that begin in the bucket.
        count: i64 => Count,
        /// Bytes read.
        read_bytes: Option<i64> => Bytes,
        /// Bytes written.
        write_bytes: Option<i64> => Bytes,
        /// `read_bytes` over the length of the bucket.
        read_bytes_per_s => BytesPerSecond = |row| row.per_s(row.read_bytes),
        /// `write_bytes` over the length of the bucket.
        write_bytes_per_s => BytesPerSecond = |row| row.per_s(row.write_bytes),
        /// Number of calls that begin in the bucket over its length: calls in a second.
        calls_per_s => Count = |row| row.per_s(Some(row.count)),
        /// Time in which at least one thread is in a call on a file.
        busy_ns: i64 => Nanoseconds,
        /// Time in which at least one thread reads.
        read_ns: i64 => Nanoseconds,
        /// Time in which at least one thread writes.
        write_ns: i64 => Nanoseconds,
        /// The part of `busy_ns` in which no device of the rank is busy. Absent without device events.
        exposed_ns: Option<i64> => Nanoseconds,
    }
}

impl IoBucket {
    fn per_s(&self, number: Option<i64>) -> Option<i64> {
        per_s(i128::from(number?), i128::from(self.span_ns))
    }
}

/// The curve of every rank that calls files, by rank and time.
pub fn io_curve(trace: &Trace, selection: &Selection) -> Vec<IoBucket> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<IoBucket> {
    let mut by_rank: BTreeMap<u32, Vec<IoCall>> = BTreeMap::new();
    context.get::<Vec<IoCall>>().iter().for_each(|call| by_rank.entry(call.rank).or_default().push(*call));
    let bucket_ns = context.selection.bucket_ns.unwrap_or(DEFAULT_BUCKET_NS).max(1);
    let group = |call: &IoCall| match context.selection.group_by {
        Some(GroupBy::Layer) => (Some(call.event.layer), None),
        Some(GroupBy::Action) => (None, Some(call.event.action)),
        _ => (None, None),
    };
    let mut rows = Vec::new();
    for (rank, calls) in by_rank {
        let Some(window) = window(&calls) else { continue };
        let (buckets, device_work) = (Buckets::of(window, bucket_ns), device_work(context, rank));
        let mut groups: BTreeMap<_, Vec<IoCall>> = BTreeMap::new();
        calls.into_iter().for_each(|call| groups.entry(group(&call)).or_default().push(call));
        for ((layer, action), calls) in groups {
            let of_group = of_calls(&buckets, rank, &calls, device_work.as_ref());
            rows.extend(of_group.into_iter().map(|row| IoBucket { layer, action, ..row }));
        }
    }
    rows
}

/// From the first start to the last end; at least a nanosecond for each call.
fn window(calls: &[IoCall]) -> Option<Span> {
    let start_ns = calls.iter().map(|call| call.span.start_ns).min()?;
    let end_ns = calls.iter().map(|call| call.span.end_ns.max(call.span.start_ns.saturating_add(1))).max()?;
    Some(Span::new(start_ns, end_ns))
}

/// When any device of a rank works; `None` when no device recorded anything.
fn device_work(context: &AnalysisContext<'_>, rank: u32) -> Option<IntervalSet> {
    let devices = context.trace.devices.iter().zip(context.get::<Vec<DeviceBusy>>());
    let of_rank = devices.filter(|(device, busy)| device.rank == rank && busy.has_events);
    of_rank.map(|(_, busy)| busy.any.clone()).reduce(|a, b| a.union(&b))
}

fn of_calls(buckets: &Buckets, rank: u32, calls: &[IoCall], device_work: Option<&IntervalSet>) -> Vec<IoBucket> {
    let set = |is_in: &dyn Fn(&IoCall) -> bool| {
        IntervalSet::from_unsorted(calls.iter().filter(|call| is_in(call)).map(|call| call.span))
    };
    let busy = set(&|_| true);
    let busy_ns = buckets.covered_ns(&busy);
    let [read_ns, write_ns] =
        [IoAction::Read, IoAction::Write].map(|action| buckets.covered_ns(&set(&|call| call.event.action == action)));
    let exposed_ns = device_work.map(|work| buckets.covered_ns(&busy.subtract(work)));
    let [read_bytes, write_bytes] = [IoAction::Read, IoAction::Write].map(|action| bytes_of(buckets, calls, action));
    let mut count = vec![0; busy_ns.len()];
    calls.iter().for_each(|call| count[buckets.at(call.span.start_ns)] += 1);
    let row = |at: usize| IoBucket {
        rank,
        layer: None,
        action: None,
        start_ns: buckets.span(at).start_ns,
        span_ns: buckets.span(at).duration_ns(),
        count: count[at],
        read_bytes: read_bytes[at],
        write_bytes: write_bytes[at],
        busy_ns: busy_ns[at],
        read_ns: read_ns[at],
        write_ns: write_ns[at],
        exposed_ns: exposed_ns.as_ref().map(|ns| ns[at]),
    };
    let rows: Vec<IoBucket> = (0..busy_ns.len()).map(row).collect();
    assert!(rows.iter().all(|row| row.busy_ns <= row.span_ns), "a bucket is no busier than long");
    rows
}

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { bucket: true, group_by: GROUPS, ..Options::NONE }, ..Analysis::of(outcome) }
        .needing(Needs::EachRank);

const GROUPS: &[GroupBy] = &[GroupBy::Rank, GroupBy::Layer, GroupBy::Action];

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io_calls::tests::with_calls;
    use crate::io_files::io_files;
    use proptest::prelude::*;
    use stepscope_trace::{IoEvent, SliceId};

    fn of_width(us: i64) -> Selection {
        Selection { bucket_ns: Some(us * 1_000), ..Selection::default() }
    }

    /// Rows as `rank start+length calls read/written bytes busy=read/write-exposed`, in microseconds.
    fn check(trace: &Trace, us: i64, expected: &[&str]) {
        let shown = |value: Option<i64>| value.map_or("-".into(), |value| value.to_string());
        let line = |row: &IoBucket| {
            let [start, span, busy, read, write] =
                [row.start_ns, row.span_ns, row.busy_ns, row.read_ns, row.write_ns].map(|ns| ns / 1_000);
            let (bytes, written) = (shown(row.read_bytes), shown(row.write_bytes));
            let exposed = shown(row.exposed_ns.map(|ns| ns / 1_000));
            format!("{} {start}+{span} {} {bytes}/{written}B {busy}={read}/{write}-{exposed}", row.rank, row.count)
        };
        assert_eq!(io_curve(trace, &of_width(us)).iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn buckets_cover_the_time_of_calls() {
        let trace = with_calls(
            "rank 0 label 3  a..........
             rank 0 io 1     .rrrr.o...w
             rank 0 io 2     ..RR.......
             rank 0 stream 7 ...C.......
             rank 1 io 1     ....cc.....",
        );
        check(
            &trace,
            4,
            &["0 1+3 2 300/0B 3=3/0-2", "0 4+4 1 100/0B 2=1/0-2", "0 8+3 1 0/100B 1=0/1-1", "1 4+2 1 0/0B 2=0/0--"],
        );
    }

    #[test]
    fn what_says_no_bytes_has_none() {
        check(
            &with_calls("rank 0 io 1 RR..r"),
            2,
            &["0 0+2 1 -/0B 2=2/0--", "0 2+2 0 0/0B 0=0/0--", "0 4+1 1 100/0B 1=1/0--"],
        );
    }

    #[test]
    fn bandwidth_is_of_the_whole_bucket() {
        let rows = io_curve(&with_calls("rank 0 io 1 r.w."), &of_width(2));
        let rates: Vec<_> = rows.iter().map(|row| [row.per_s(row.read_bytes), row.per_s(row.write_bytes)]).collect();
        assert_eq!(rates, [[Some(50_000_000), Some(0)], [Some(0), Some(100_000_000)]], "the last one is cut");
    }

    #[test]
    fn layers_and_actions_have_rows_of_their_own_over_the_same_buckets() {
        let mut trace = with_calls("rank 0 io 1 r.w.rr..o");
        trace.io[1].layer = IoLayer::Stdio;
        let lines = |group_by| {
            let selection = Selection { group_by: Some(group_by), ..of_width(4) };
            let name = |row: &IoBucket| match (row.layer, row.action) {
                (Some(layer), None) => layer.as_str(),
                (None, Some(action)) => action.as_str(),
                _ => "-",
            };
            let line = |row: &IoBucket| {
                format!("{} {} {} {}", name(row), row.start_ns / 1_000, row.count, row.busy_ns / 1_000)
            };
            io_curve(&trace, &selection).iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(lines(GroupBy::Rank), ["- 0 2 2", "- 4 1 2", "- 8 1 1"]);
        let of_layers = ["posix 0 1 1", "posix 4 1 2", "posix 8 1 1", "stdio 0 1 1", "stdio 4 0 0", "stdio 8 0 0"];
        assert_eq!(lines(GroupBy::Layer), of_layers);
        assert_eq!(lines(GroupBy::Action)[..3], ["read 0 1 1", "read 4 1 2", "read 8 0 0"]);
        assert_eq!(lines(GroupBy::Action).len(), 9);
    }

    #[test]
    fn there_are_never_too_many_buckets() {
        let mut trace = with_calls("rank 0 io 1 r.r\nrank 1 io 1 w");
        for (at, slice) in trace.io.iter().map(|event| event.slice.index()).enumerate() {
            (trace.slices.start_ns[slice], trace.slices.dur_ns[slice]) = (at as i64 * (1 << 60), 1 << 60);
        }
        let rows = io_curve(&trace, &of_width(1));
        assert!((10_000..=100_000).contains(&rows.len()), "{}", rows.len());
        let bytes = |of: fn(&IoBucket) -> Option<i64>| rows.iter().filter_map(of).sum::<i64>();
        assert_eq!((bytes(|row| row.read_bytes), bytes(|row| row.write_bytes)), (200, 100));
    }

    #[test]
    fn the_most_bytes_are_counted() {
        let mut trace = with_calls("rank 0 io 1 rr\nrank 0 io 2 .r");
        trace.io.iter_mut().for_each(|event| event.bytes = Some(i64::MAX));
        let rows = io_curve(&trace, &of_width(1));
        assert_eq!(rows[0].read_bytes, Some(i64::MAX / 2));
        assert_eq!(rows[1].read_bytes, Some(i64::MAX), "more than a number can say");
    }

    /// One call after another, one bucket after another.
    fn slowly(trace: &Trace, bucket: &IoBucket, width_ns: i64, action: IoAction) -> f64 {
        let (from, to) = (bucket.start_ns, bucket.start_ns + bucket.span_ns);
        let share = |event: &&IoEvent| {
            let span = trace.slices.span(event.slice);
            let bytes = event.bytes.unwrap_or(0) as f64;
            if span.is_empty() {
                let is_here = span.start_ns.div_euclid(width_ns) == from.div_euclid(width_ns);
                return if is_here { bytes } else { 0.0 };
            }
            bytes * span.intersect(Span::new(from, to)).duration_ns() as f64 / span.duration_ns() as f64
        };
        trace.io.iter().filter(|event| event.action == action).map(|event| share(&event)).sum()
    }

    proptest! {
        #[test]
        fn buckets_sum_to_the_files(
            rows in prop::collection::vec("[.rwRWoc|]{25}", 1..4), sizes in prop::collection::vec(0_i64..10_000, 60),
            us in 1_i64..30, empty in prop::collection::vec(any::<bool>(), 60), step in prop::option::of(0_i64..2),
        ) {
            let drawing = rows.iter().enumerate().map(|(at, row)| format!("rank 0 io {at} {row}\n")).collect::<String>();
            let mut trace = with_calls(&format!("rank 0 step {}{}\n{drawing}", "0".repeat(13), "1".repeat(12)));
            let slices: Vec<SliceId> = trace.io.iter().map(|event| event.slice).collect();
            for (at, slice) in slices.iter().enumerate() {
                trace.io[at].bytes = trace.io[at].bytes.map(|_| sizes[at % sizes.len()]);
                if empty[at % empty.len()] {
                    trace.slices.dur_ns[slice.index()] = 0;
                }
            }
            let selection = Selection { step, ..of_width(us) };
            let curve = io_curve(&trace, &selection);
            let files = io_files(&trace, &selection);
            let sum = |of: fn(&IoBucket) -> Option<i64>| curve.iter().filter_map(of).sum::<i64>();
            let whole = |of: fn(&crate::io_files::FileUse) -> Option<i64>| files.iter().filter_map(of).sum::<i64>();
            prop_assert_eq!(sum(|row| Some(row.count)), whole(|row| Some(row.count)));
            prop_assert_eq!(sum(|row| row.read_bytes), whole(|row| row.read_bytes));
            prop_assert_eq!(sum(|row| row.write_bytes), whole(|row| row.write_bytes));
            for group_by in [GroupBy::Layer, GroupBy::Action] {
                let parts = io_curve(&trace, &Selection { group_by: Some(group_by), ..selection.clone() });
                let of = |rows: &[IoBucket], of: fn(&IoBucket) -> i64| rows.iter().map(of).sum::<i64>();
                prop_assert_eq!(of(&parts, |row| row.count), of(&curve, |row| row.count));
                prop_assert_eq!(of(&parts, |row| row.read_bytes.unwrap_or(0)), of(&curve, |row| row.read_bytes.unwrap_or(0)));
                prop_assert_eq!(of(&parts, |row| row.write_bytes.unwrap_or(0)), of(&curve, |row| row.write_bytes.unwrap_or(0)));
            }
            prop_assert!(curve.windows(2).all(|pair| pair[0].start_ns + pair[0].span_ns == pair[1].start_ns));
            if step.is_none() {
                for bucket in &curve {
                    for (bytes, action) in [(bucket.read_bytes, IoAction::Read), (bucket.write_bytes, IoAction::Write)] {
                        let expected = slowly(&trace, bucket, us * 1_000, action);
                        let found = bytes.unwrap_or(0) as f64;
                        prop_assert!((found - expected).abs() <= 1.0 + 1e-6, "{found} {expected} {bucket:?}");
                    }
                    let busy = (bucket.start_ns..bucket.start_ns + bucket.span_ns).step_by(1_000).filter(|ns| {
                        trace.io.iter().any(|event| trace.slices.span(event.slice).contains(*ns))
                    });
                    prop_assert_eq!(bucket.busy_ns, busy.count() as i64 * 1_000);
                }
            }
        }
    }
}
