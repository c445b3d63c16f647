//! # Definition
//! How much later the device work that is not on the critical path could end without lengthening its step: what has
//! little slack is the next to look at, what has much is not worth speeding up. A row is a name of a rank, over all
//! steps asked for.
//!
//! The slack of a device event is found by running the step again in thought, with that event longer:
//!
//! - A device event begins after the last of these: its launch, the event before it on its stream, the events of other
//!   streams that its stream was told to wait for. Between that and its start lies as much time as was recorded.
//! - A call in which the host waits for the device returns after the last of these: when the host came to it, and the
//!   ends of the events that it waits for. Between that and its return lies as much time as was recorded.
//! - What the host does after such a call, on whichever thread of the process, is later by as much as the call. While
//!   another call was waiting when it returned, that one does not make up for it.
//! - Everything takes as long as was recorded. The step ends when its host window and all device events launched inside
//!   it have ended.
//!
//! The slack is the most by which the event can be longer so that the step ends when it did; with a nanosecond more,
//! it ends later. What is on the critical path has none, and is not shown here but in `critical_path_slices`.
//!
//! # Units
//! Nanoseconds; `count` is of device events with slack.
//!
//! # Source
//! As `critical_path`.
//!
//! # Edge cases
//! Slack is of one event at a time: two events of one chain share theirs. Only device events that were launched inside
//! a step have one, and it is told for that step alone: the next may still become longer. Waiting for other ranks inside
//! communication is as long as was recorded. Device events of no duration are left out.

use crate::critical_path::{PathClass, device_class, slacks};
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use rustc_hash::FxHashMap;
use stepscope_base::StringId;
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_trace::Trace;

columns! {
    /// The slack of the device events of one name.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct CriticalPathSlack {
        /// The rank.
        rank: u32 => Count,
        /// The name of the device events.
        name: String => Text,
        /// The class of the work.
        class: PathClass => Text,
        /// Number of device events with slack.
        count: i64 => Count,
        /// Sum of the durations of these device events.
        off_path_ns: i64 => Nanoseconds,
        /// The least slack of one of them.
        slack_ns_min: i64 => Nanoseconds,
        /// The median slack.
        slack_ns_median: i64 => Nanoseconds,
        /// The most slack of one of them.
        slack_ns_max: i64 => Nanoseconds,
    }
}

/// Every name with slack, by rank, the longest time first.
pub fn critical_path_slack(trace: &Trace, selection: &Selection) -> Vec<CriticalPathSlack> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<CriticalPathSlack> {
    let (trace, mut rows) = (context.trace, Vec::new());
    for (rank, slacks) in slacks(context) {
        let mut of_name: FxHashMap<(StringId, PathClass), (i64, Vec<i64>)> = FxHashMap::default();
        for row in slacks.iter().filter(|row| row.slack_ns > 0) {
            let slice = trace.device_events.get(row.event).slice;
            let key = (trace.slices.name[slice.index()], device_class(trace, row.event));
            let (off_path_ns, slacks_ns) = of_name.entry(key).or_default();
            *off_path_ns = off_path_ns.saturating_add(trace.slices.dur_ns[slice.index()]);
            slacks_ns.push(row.slack_ns);
        }
        let row = |((name, class), (off_path_ns, mut slacks_ns)): (_, (i64, Vec<i64>))| {
            let slack_ns_median = nearest_rank_of_unsorted(&mut slacks_ns, 50)?;
            Some(CriticalPathSlack {
                rank,
                name: trace.strings.get(name).to_string(),
                class,
                count: slacks_ns.len() as i64,
                off_path_ns,
                slack_ns_min: *slacks_ns.iter().min()?,
                slack_ns_median,
                slack_ns_max: *slacks_ns.iter().max()?,
            })
        };
        rows.extend(of_name.into_iter().filter_map(row));
    }
    let key = |row: &CriticalPathSlack| (row.rank, std::cmp::Reverse(row.off_path_ns), row.class);
    rows.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name)));
    rows
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_waits::tests::add_wait;
    use stepscope_trace::drawn::drawn;

    fn check(drawing: &str, expected: &[&str]) {
        let rows = critical_path_slack(&drawn(drawing), &Selection::default());
        let us = |ns: i64| ns / 1_000;
        let line = |row: &CriticalPathSlack| {
            let slack = [row.slack_ns_min, row.slack_ns_median, row.slack_ns_max].map(us);
            format!("{} {} x{} {} {slack:?}", row.class.as_str(), row.name, row.count, us(row.off_path_ns))
        };
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_the_host_does_not_wait_for_may_last_until_the_step_ends() {
        check(
            "rank 0 step     000000000000
             rank 0 launch 1 CN..........
             rank 0 sync 1   ..ssssss....
             rank 0 stream 7 .CCCCCC.....
             rank 0 stream 9 ..NNN.......",
            // The call waits for both streams: N may end two later, when C does.
            &["communication N x1 3 [2, 2, 2]"],
        );
    }

    #[test]
    fn what_waits_for_its_launch_leaves_slack_to_what_is_before_it() {
        check(
            "rank 0 step     0000000000
             rank 0 launch 1 C.....D...
             rank 0 stream 7 .CC....DD.",
            // D may reach to the end of the step, C by as much beyond where the launch of D ended.
            &["compute C x1 2 [5, 5, 5]", "copy D x1 2 [1, 1, 1]"],
        );
    }

    #[test]
    fn what_another_stream_waits_for_has_only_the_slack_of_that() {
        let mut trace = drawn(
            "rank 0 step     000000000.
             rank 0 launch 1 NrwC......
             rank 0 stream 9 .NN.......
             rank 0 stream 7 .....CC...",
        );
        let slacks = |trace: &Trace| {
            let rows = critical_path_slack(trace, &Selection::default());
            rows.iter().map(|row| format!("{} {}", row.name, row.slack_ns_max / 1_000)).collect::<Vec<_>>()
        };
        assert_eq!(slacks(&trace), ["C 2", "N 6"]);
        // C began one after its launch, and may be two late: so N may end with that launch, and two later.
        add_wait(&mut trace, ("w", 7), ("r", 9));
        assert_eq!(slacks(&trace), ["C 2", "N 3"]);
    }
}
