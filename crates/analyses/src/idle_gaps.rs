//! # Definition
//! The longest times in which a device does nothing, each with its cause and the device event that ended it. Of a gap
//! with several causes it is the one with the most time, and `cause_ns` that time; `idle_causes` defines them. `host` is
//! what the launching thread was in for the longest time while that was the cause: the innermost operator, call, frame
//! or label; `next` is the device event that ends the gap, and `next_op` the operator that launched it.
//!
//! The 1,000 longest of each device are listed.
//!
//! # Units
//! Nanoseconds; `start_ns` counts from the start of the trace.
//!
//! # Source
//! As `idle_causes`.
//!
//! # Edge cases
//! As `idle_causes`. Of causes with equal time the first to occur counts, of equally long gaps the earlier comes first.
//! Nothing is named where the cause lies on the device, or where nothing was recorded of the host.

use crate::idle::{DeviceIdle, IdleCause, IdlePart};
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::cmp::Reverse;
use stepscope_base::Span;
use stepscope_trace::{DeviceEventId, SliceId, Trace};

/// Gaps listed of a device.
const GAPS: usize = 1_000;

columns! {
    /// A time in which a device does nothing.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct IdleGapRow {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// When the device is idle.
        span: Span,
        /// When the gap starts, counted from the start of the trace.
        start_ns => Nanoseconds = |row| row.span.start_ns,
        /// Length of the gap.
        idle_ns => Nanoseconds = |row| row.span.duration_ns(),
        /// The cause that has the most time of the gap.
        cause: IdleCause => Text,
        /// Time of the gap with this cause.
        cause_ns: i64 => Nanoseconds,
        /// What the host was in for the longest time of it.
        host: Option<SliceId> => Text,
        /// The device event that ends the gap.
        next: Option<DeviceEventId>,
        /// The name of the device event that ends the gap.
        next => Text with |row, trace| row.next.map(|next| trace.device_events.get(next).slice),
        /// The operator that launched this device event.
        next_op => Text with |row, trace| row.next.and_then(|next| trace.device_events.get(next).op),
    }
}

/// The longest gaps of every device, by rank and device, the longest first.
pub fn idle_gaps(trace: &Trace, selection: &Selection) -> Vec<IdleGapRow> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<IdleGapRow> {
    context.get::<Vec<DeviceIdle>>().iter().flat_map(|device| of_device(context.trace, device)).collect()
}

fn of_device(trace: &Trace, idle: &DeviceIdle) -> Vec<IdleGapRow> {
    let longest = idle.gaps.iter().enumerate().map(|(at, gap)| (Reverse(gap.span.duration_ns()), at));
    let mut longest: Vec<(Reverse<i64>, usize)> = longest.collect();
    if longest.len() > GAPS {
        longest.select_nth_unstable(GAPS);
        longest.truncate(GAPS);
    }
    longest.sort_unstable();
    let device = &trace.devices[idle.device.index()];
    let row = |at: usize| {
        let (gap, parts) = (idle.gaps[at], idle.parts_of(at));
        let (cause, cause_ns) = main_cause(parts)?;
        let of_cause = parts.iter().filter(|part| part.cause == cause && part.host.is_some());
        let host = of_cause.reduce(|a, b| if b.span.duration_ns() > a.span.duration_ns() { b } else { a });
        let host = host.and_then(|part| part.host);
        Some(IdleGapRow {
            rank: device.rank,
            device: device.ordinal,
            span: gap.span,
            cause,
            cause_ns,
            host,
            next: gap.next,
        })
    };
    longest.into_iter().filter_map(|(_, at)| row(at)).collect()
}

fn main_cause(parts: &[IdlePart]) -> Option<(IdleCause, i64)> {
    let mut totals = [0; IdleCause::COUNT];
    parts.iter().for_each(|part| totals[part.cause as usize] += part.span.duration_ns());
    let totals = parts.iter().map(|part| (part.cause, totals[part.cause as usize]));
    totals.reduce(|a, b| if b.1 > a.1 { b } else { a })
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle_causes::idle_causes;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn the_longest_gap_comes_first_with_what_the_host_did() {
        let trace = drawn(
            "rank 0 python 1 ppppppppppppp
             rank 0 input 1  ....iiii.....
             rank 0 cpu 1    aa..b...ccc..
             rank 0 launch 1 CD.......E...
             rank 0 stream 7 .C.D.......E.",
        );
        let name = |slice: Option<SliceId>| slice.map_or("-", |slice| trace.slice_name(slice));
        let line = |row: &IdleGapRow| {
            let next = name(row.next.map(|next| trace.device_events.get(next).slice));
            let (cause, host) = (row.cause.as_str(), name(row.host));
            format!(
                "{} for {}: {cause} {} {host}, then {next}",
                row.span.start_ns,
                row.span.duration_ns(),
                row.cause_ns
            )
        };
        let rows: Vec<String> = idle_gaps(&trace, &Selection::default()).iter().map(line).collect();
        let expected = ["4000 for 7000: input 4000 i, then E", "2000 for 1000: queue_wait 1000 -, then D"];
        assert_eq!(rows, expected);
    }

    proptest! {
        #[test]
        fn gaps_sum_to_the_causes_and_none_is_longer_than_the_one_before(
            launch in "[.CDE|]{40}", streams in prop::collection::vec("[.CDE|]{40}", 1..3), host in "[.x|]{40}",
        ) {
            let mut drawing = format!("rank 0 cpu 1 {host}\nrank 0 launch 1 {launch}\n");
            streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&drawing);
            let rows = idle_gaps(&trace, &Selection::default());
            prop_assert!(rows.windows(2).all(|pair| pair[0].span.duration_ns() >= pair[1].span.duration_ns()));
            prop_assert!(rows.iter().all(|row| row.cause_ns <= row.span.duration_ns() && row.cause_ns > 0));
            let sum_ns: i64 = rows.iter().map(|row| row.span.duration_ns()).sum();
            prop_assert_eq!(sum_ns, idle_causes(&trace, &Selection::default()).iter().map(|row| row.idle_ns).sum::<i64>());
        }
    }
}
