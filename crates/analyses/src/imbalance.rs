//! # Definition
//! For each kind of work, how unequally the ranks of a run share it, and what a step would gain if the rank with the most
//! had as much as the middle one. Ranks are compared within each step, or within each collective; each amount is summed
//! over these.
//!
//! The kinds of work:
//!
//! - `step`: the length of the step;
//! - `compute`: the time in which the rank computes, as `ranks_overview` tells;
//! - `kernels`: the durations of computing kernels launched in the step, by the category of the operator that launched
//!   them; without an operator, `not linked`;
//! - `received_elements`: the elements that come out of an all-to-all, by process group: with experts on several ranks,
//!   what their tokens carry;
//! - `received_rows`: the sum of the sizes that the output of an all-to-all is split into, by process group: the tokens
//!   themselves, where rows are tokens.
//!
//! # Units
//! Nanoseconds, or a count of elements or rows. Counts of steps, collectives and ranks.
//!
//! # Source
//! Steps, kernels and operators as recorded; collectives as `stragglers` matches them, with the sizes that they say.
//!
//! # Edge cases
//! The middle rank is, of an even number, the one with less of the two in the middle. A step is compared between all ranks
//! that recorded it whole, by its number; a rank that has device events but no kernel of a category in a step has none of
//! it. What only one rank has is left out. An all-to-all is compared when the amount is known of every rank of the
//! run that took part; sizes that the source cut short are not known. A collective that no rank of the run but one has is
//! left out. The gain of one kind is no gain of the step where other work hides it, and gains of several kinds do not add
//! up: all wait for the same rank as a rule. Asking for one rank leaves nothing to compare it with.

use crate::communication::matched;
use crate::context::Shared;
use crate::op_classes::{NOT_LINKED, OpClasses};
use crate::windows::Windows;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection, ranks_overview};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::Calls;
use stepscope_trace::{Collective, CollectiveKind, DeviceEventClass, SliceId, Step, Trace, listed};

columns! {
    /// How ranks share one kind of work.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Imbalance {
        /// The kind of work: `step`, `compute`, `kernels`, `received_elements`, `received_rows`.
        work: &'static str => Text,
        /// The category of the operators, or the name of the process group. Absent for the others.
        category: Option<String> => Text,
        /// The largest number of ranks compared.
        ranks: i64 => Count,
        /// Number of steps, or of collectives, in which ranks were compared.
        compared: i64 => Count,
        /// The most of any rank over the mean of all, each summed over what was compared. 1 is balance. Absent where nobody
        /// has any.
        max_to_mean_ratio: Option<f64> => Ratio,
        /// The rank that has the most the most often; of several the first.
        max_rank: u32 => Count,
        /// How often it has the most.
        max_times: i64 => Count,
        /// What is gained if the rank with the most takes as long as the middle one: `max_ns` without `median_ns`.
        gain_ns: Option<i64> => Nanoseconds,
        /// The time of the rank with the least, summed over what was compared.
        min_ns: Option<i64> => Nanoseconds,
        /// The time of the middle rank.
        median_ns: Option<i64> => Nanoseconds,
        /// The time of the rank with the most.
        max_ns: Option<i64> => Nanoseconds,
        /// Elements or rows of the rank with the least.
        min_count: Option<i64> => Count,
        /// Elements or rows of the middle rank.
        median_count: Option<i64> => Count,
        /// Elements or rows of the rank with the most.
        max_count: Option<i64> => Count,
    }
}

/// Every kind of work, times before counts, those with the largest gain first.
pub fn imbalance(trace: &Trace, selection: &Selection) -> Vec<Imbalance> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<Imbalance> {
    let mut amounts = times(context);
    add_received(context, &mut amounts);
    let mut rows: Vec<Imbalance> = amounts.iter().filter_map(|(work, at_places)| row(work, at_places)).collect();
    rows.sort_by_key(|row| Reverse(row.gain_ns));
    rows
}

/// A kind of work and its category.
type Work = (&'static str, Option<String>);

/// How much of each kind each rank has, by step or collective. This is all that is needed of a rank.
type Amounts = BTreeMap<Work, BTreeMap<i64, BTreeMap<u32, i64>>>;

/// The times of each rank in each step.
fn times(context: &AnalysisContext<'_>) -> Amounts {
    let mut amounts = Amounts::new();
    let mut add = |work: Work, step: i64, rank: u32, ns: i64| {
        let amount = amounts.entry(work).or_default().entry(step).or_default().entry(rank).or_default();
        *amount = amount.saturating_add(ns);
    };
    for row in ranks_overview::rows(context).iter().filter(|row| row.is_complete == Some(true)) {
        let step = row.step.unwrap_or_default();
        add(("step", None), step, row.rank, row.total_ns);
        add(("compute", None), step, row.rank, row.compute_ns.saturating_add(row.overlap_ns));
    }
    for ((category, step, rank), ns) in kernels(context) {
        add(("kernels", Some(category)), step, rank, ns);
    }
    amounts
}

/// The durations of computing kernels by category, step and rank: 0 for a category that other ranks have.
fn kernels(context: &AnalysisContext<'_>) -> BTreeMap<(String, i64, u32), i64> {
    let (trace, kernels) = (context.trace, &context.get::<StepsKernels>().0);
    let complete = context.selection.step_places(trace).filter(|at| trace.steps[*at].is_complete);
    let steps: Vec<(&Step, &StepKernels)> = complete.map(|at| (&trace.steps[at], &kernels[at])).collect();
    let with_devices = || steps.iter().filter(|(_, kernels)| kernels.has_device_events);
    let categories: BTreeSet<&str> = with_devices().flat_map(|(_, kernels)| kernels.categories()).collect();
    let mut sums: BTreeMap<(String, i64, u32), i64> = BTreeMap::new();
    for (step, kernels) in with_devices() {
        for category in &categories {
            let sum = sums.entry(((*category).into(), step.number, step.rank)).or_default();
            *sum = sum.saturating_add(kernels.ns_of(category));
        }
    }
    sums
}

/// How long kernels computed that were launched in a step.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StepKernels {
    /// Whether anything was recorded of a device of the rank, in whatever step.
    has_device_events: bool,
    /// By category, ascending; none of a step that is not complete.
    times: Vec<CategoryTime>,
}

/// The kernels of one category of operators.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct CategoryTime {
    category: String,
    ns: i64,
}

impl StepKernels {
    fn categories(&self) -> impl Iterator<Item = &str> {
        self.times.iter().map(|time| time.category.as_str())
    }

    fn ns_of(&self, category: &str) -> i64 {
        self.times.iter().find(|time| time.category == category).map_or(0, |time| time.ns)
    }
}

/// Those of each step of the trace, in their order.
pub(crate) struct StepsKernels(pub(crate) Vec<StepKernels>);

impl Shared for StepsKernels {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let trace = context.trace;
        let step_of = |rank: u32, at_ns: i64| {
            let before = trace.steps.partition_point(|step| (step.rank, step.span.start_ns) <= (rank, at_ns));
            let at = before.checked_sub(1)?;
            let step = &trace.steps[at];
            (step.rank == rank && step.is_complete && step.span.contains(at_ns)).then_some(at)
        };
        let mut classes = OpClasses::new(&trace.strings);
        let mut sums: Vec<BTreeMap<&'static str, i64>> = vec![BTreeMap::new(); trace.steps.len()];
        for event in trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Compute) {
            let rank = trace.devices[event.device.index()].rank;
            let at_ns = trace.slices.start_ns[event.launch.unwrap_or(event.slice).index()];
            let Some(step) = step_of(rank, at_ns) else { continue };
            let category = event.op.map_or(NOT_LINKED, |op| classes.get(trace.slices.name[op.index()]).category);
            let sum = sums[step].entry(category).or_default();
            *sum = sum.saturating_add(trace.slices.dur_ns[event.slice.index()]);
        }
        let with_devices: BTreeSet<u32> =
            trace.device_events.iter().map(|event| trace.devices[event.device.index()].rank).collect();
        let of_step = |(step, sums): (&Step, BTreeMap<&'static str, i64>)| StepKernels {
            has_device_events: with_devices.contains(&step.rank),
            times: sums.into_iter().map(|(category, ns)| CategoryTime { category: category.into(), ns }).collect(),
        };
        Self(trace.steps.iter().zip(sums).map(of_step).collect())
    }
}

/// What comes out of each all-to-all on each rank.
fn add_received(context: &AnalysisContext<'_>, amounts: &mut Amounts) {
    let (trace, calls) = (context.trace, context.get::<Calls>());
    let of_call: FxHashMap<SliceId, &Collective> = calls.calls.iter().map(|call| (call.slice, &call.said)).collect();
    let windows = Windows::of(trace, context.selection);
    let all_to_alls = matched(context).filter(|parts| parts[0].kind == Some(CollectiveKind::AllToAll));
    for (at, parts) in all_to_alls.enumerate() {
        let said = |slice: &SliceId| of_call.get(slice).copied().filter(|_| windows.has_slice(trace, *slice));
        let said: Option<Vec<(u32, &Collective)>> =
            parts.iter().map(|part| Some((part.rank, said(&part.asked_by)?))).collect();
        let Some(said) = said else { continue };
        let group = trace.strings.get(parts[0].group).to_string();
        let of_ranks = |amount: &dyn Fn(&Collective) -> Option<i64>| -> Option<BTreeMap<u32, i64>> {
            said.iter().map(|(rank, said)| Some((*rank, amount(said)?))).collect()
        };
        let elements = of_ranks(&|said| said.output_elements.filter(|count| *count >= 0));
        let rows = of_ranks(&|said| rows_in(trace.strings.get(said.output_split_sizes)));
        for (work, of_ranks) in [("received_elements", elements), ("received_rows", rows)] {
            if let Some(of_ranks) = of_ranks {
                amounts.entry((work, Some(group.clone()))).or_default().insert(at as i64, of_ranks);
            }
        }
    }
}

/// The sum of sizes as a source writes them. `None` when there are none, or not all of them are there.
fn rows_in(sizes: &str) -> Option<i64> {
    listed::<i64>(sizes)?.into_iter().try_fold(0_i64, |sum, size| if size < 0 { None } else { sum.checked_add(size) })
}

/// The row of a kind of work; `None` where no two ranks are to be compared.
fn row(work: &Work, at_places: &BTreeMap<i64, BTreeMap<u32, i64>>) -> Option<Imbalance> {
    let (mut ranks, mut compared, mut mean) = (0, 0, 0.0);
    let [mut min, mut median, mut max] = [0_i64; 3];
    let mut times_of: BTreeMap<u32, i64> = BTreeMap::new();
    for of_ranks in at_places.values().filter(|of_ranks| of_ranks.len() > 1) {
        let mut all: Vec<i64> = of_ranks.values().copied().collect();
        all.sort_unstable();
        let most = all[all.len() - 1];
        compared += 1;
        ranks = ranks.max(all.len());
        min = min.saturating_add(all[0]);
        median = median.saturating_add(all[(all.len() - 1) / 2]);
        max = max.saturating_add(most);
        mean += all.iter().map(|amount| *amount as f64).sum::<f64>() / all.len() as f64;
        of_ranks.iter().filter(|(_, own)| **own == most).for_each(|(rank, _)| *times_of.entry(*rank).or_default() += 1);
    }
    let (max_rank, max_times) = times_of.into_iter().max_by_key(|(rank, times)| (*times, Reverse(*rank)))?;
    let is_time = matches!(work.0, "step" | "compute" | "kernels");
    let (time, count) = (|value: i64| is_time.then_some(value), |value: i64| (!is_time).then_some(value));
    Some(Imbalance {
        work: work.0,
        category: work.1.clone(),
        ranks: ranks as i64,
        compared,
        max_to_mean_ratio: (max > 0).then(|| max as f64 / mean),
        max_rank,
        max_times,
        gain_ns: time(max - median),
        min_ns: time(min),
        median_ns: time(median),
        max_ns: time(max),
        min_count: count(min),
        median_count: count(median),
        max_count: count(max),
    })
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::SliceKind;
    use stepscope_trace::drawn::{drawn, drawn_with_collectives};

    fn line(row: &Imbalance) -> String {
        let us = |ns: Option<i64>| ns.map(|ns| ns / 1_000);
        let amounts = [us(row.min_ns).or(row.min_count), us(row.median_ns).or(row.median_count)];
        let [min, median] = amounts.map(Option::unwrap);
        let max = us(row.max_ns).or(row.max_count).unwrap();
        format!(
            "{} {}: {min} {median} {max} on rank {} {} of {}, {} ranks",
            row.work,
            row.category.as_deref().unwrap_or("-"),
            row.max_rank,
            row.max_times,
            row.compared,
            row.ranks
        )
    }

    #[track_caller]
    fn check(trace: &Trace, selection: Selection, expected: &[&str]) {
        assert_eq!(imbalance(trace, &selection).iter().map(line).collect::<Vec<_>>(), expected);
    }

    const THREE_RANKS: &str = "rank 0 step     000000111111
                               rank 0 cpu 1    m.....m.....
                               rank 0 launch 1 C.....C.....
                               rank 0 stream 7 .C.....CC...
                               rank 1 step     000000111111
                               rank 1 launch 1 C...........
                               rank 1 stream 7 .CCC........
                               rank 2 step     0000001111111
                               rank 2 cpu 1    m......m....
                               rank 2 launch 1 C......C....
                               rank 2 stream 7 .CC.....CCCC";

    #[test]
    fn ranks_are_compared_in_each_step() {
        let whole = [
            "compute -: 1 4 7 on rank 1 1 of 2, 3 ranks",
            "kernels custom: 0 3 6 on rank 2 2 of 2, 3 ranks",
            "kernels not linked: 0 0 3 on rank 1 2 of 2, 3 ranks",
            "step -: 12 12 13 on rank 2 2 of 2, 3 ranks",
        ];
        check(&drawn(THREE_RANKS), Selection::default(), &whole);
        let second = [
            "compute -: 0 2 4 on rank 2 1 of 1, 3 ranks",
            "kernels custom: 0 2 4 on rank 2 1 of 1, 3 ranks",
            "step -: 6 6 7 on rank 2 1 of 1, 3 ranks",
        ];
        check(&drawn(THREE_RANKS), Selection { step: Some(1), ..Selection::default() }, &second);
        check(&drawn(THREE_RANKS), Selection { ranks: 0.into(), ..Selection::default() }, &[]);
    }

    #[test]
    fn tokens_that_come_out_of_an_all_to_all_are_counted_where_all_are_known() {
        let drawing = "rank 0 label 1 a.c.\nrank 1 label 1 b.d.";
        let said = |elements, number| ("all_to_all", "Float", Some(elements), Some(number));
        let labels = [("a", said(60, 1)), ("b", said(20, 1)), ("c", said(10, 2)), ("d", said(30, 2))];
        let mut trace =
            drawn_with_collectives(drawing, &labels.map(|(name, said)| (name, SliceKind::Annotation, said)));
        let sizes = ["[1, 5]", "[2, 0]", "[1]", "[1, ..., 2]"].map(|sizes| trace.strings.intern(sizes));
        for (name, sizes) in ["a", "b", "c", "d"].into_iter().zip(sizes) {
            let at = trace.collectives.iter().position(|said| trace.slice_name(said.slice) == name).expect("drawn");
            trace.collectives[at].kind = Some(CollectiveKind::AllToAll);
            trace.collectives[at].output_split_sizes = sizes;
        }
        let rows = imbalance(&trace, &Selection::default());
        let found: Vec<String> = rows.iter().filter(|row| row.gain_ns.is_none()).map(line).collect();
        let expected = [
            "received_elements 0: 30 30 90 on rank 0 1 of 2, 2 ranks",
            "received_rows 0: 2 2 6 on rank 0 1 of 1, 2 ranks",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn sizes_that_were_cut_short_are_not_known() {
        let sizes = ["[3, 4]", "[ 5]", "[]", "", "[1, ..., 2]", "[-1, 2]", "[9223372036854775807, 1]"];
        assert_eq!(sizes.map(rows_in), [Some(7), Some(5), None, None, None, None, None]);
    }

    proptest! {
        #[test]
        fn amounts_are_those_found_by_looking_at_every_rank_of_every_step(
            ranks in prop::collection::vec(("[.C]{12}", "[.C]{12}"), 2..5), cut in 1_usize..12,
        ) {
            let of_rank = |(rank, (stream, other)): (usize, &(String, String))| {
                let steps = "0".repeat(cut) + &"1".repeat(12 - cut);
                format!("rank {rank} step {steps}\nrank {rank} stream 7 {stream}\nrank {rank} stream 9 {other}\n")
            };
            let trace = drawn(&ranks.iter().enumerate().map(of_rank).collect::<String>());
            let rows = imbalance(&trace, &Selection::default());
            let busy = |row: &str, at: usize| row.as_bytes()[at] == b'C';
            let mut sums = [0; 3];
            for step in [0..cut, cut..12] {
                let of_rank = |(a, b): &(String, String)| step.clone().filter(|at| busy(a, *at) || busy(b, *at)).count() as i64;
                let mut all: Vec<i64> = ranks.iter().map(of_rank).collect();
                all.sort_unstable();
                let middle = all[(all.len() - 1) / 2];
                sums.iter_mut().zip([all[0], middle, all[all.len() - 1]]).for_each(|(sum, us)| *sum += us * 1_000);
            }
            let row = rows.iter().find(|row| row.work == "compute").expect("ranks have steps");
            prop_assert_eq!([row.min_ns, row.median_ns, row.max_ns], sums.map(Some));
            prop_assert_eq!((row.gain_ns, row.compared), (Some(sums[2] - sums[1]), 2));
        }
    }
}
