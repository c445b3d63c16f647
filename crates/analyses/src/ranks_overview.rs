//! # Definition
//! For each step of each rank: how much of it was computation alone, computation and communication at once, communication
//! alone, and neither.
//! The four sum to the step, to the nanosecond. What runs at the same time on several devices, streams or threads counts
//! once.
//!
//! A row without a step number is the average over the complete steps of its rank, given when no single step was asked for:
//! its `row` is `mean`, that of a step `one`.
//!
//! - Computation is the time in which a computing kernel runs on a device of the rank. On a rank without device events it
//!   is the time in which a thread of the rank is in an operator, but neither asks for a collective nor waits for one in
//!   `wait_tensor`.
//! - Communication is the time in which a communication kernel runs. On a rank without such kernels it is the time in
//!   which a thread of the backend carries out a collective.
//!
//! `--compat tb` gives the overview of the distributed view of the TensorBoard plugin of PyTorch's profiler: over the steps
//! of `step_breakdown --compat tb`, where the operator that asks for a collective is communication too, or the range of the
//! backend's thread, and where, without computing kernels, all other operators and labels are computation. Its mean is over
//! all steps. What communicates is told as elsewhere; the plugin knows ten names.
//!
//! # Units
//! Nanoseconds. A share is from 0 to 1.
//!
//! # Source
//! Kernels and operators as recorded; what communicates is known from the recording itself, else from a table of kernel
//! names. The four parts are those that the distributed view of the TensorBoard plugin of PyTorch shows, over the step as
//! the host labels it.
//!
//! # Edge cases
//! Kernels count where they run, also when they were launched in the step before. Copies and memsets are neither. Without
//! labelled steps the whole trace counts as one, which has no number and no average. A step that recording cut is given,
//! marked incomplete, and left out of averages; without a complete step there is no average. In an average every part is
//! within 1 ns of its exact mean, so that the parts still sum to it. The time of a collective has waiting for other ranks
//! in it, which `stragglers` tells apart. Waiting that no operator stands for, as in autograd's functions of FSDP, counts
//! as computation on a rank without device events. A part of a trace has the steps that begin in it, whole.

use crate::context::Shared;
use crate::device_busy::DeviceBusy;
use crate::mean_parts::mean_parts;
use crate::{Analysis, AnalysisContext, Compat, Needs, Options, Outcome, Selection, tensorboard_views};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepscope_align::Calls;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{SliceId, SliceKind, SliceRole, Step, StepSource, Trace, Track, TrackKind};

columns! {
    /// One step of one rank, or the average over a rank's complete steps.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct RankOverview {
        /// The rank.
        rank: u32 => Count,
        /// The number of the step. Absent where nothing marks steps, and for the average.
        step: Option<i64> => Count,
        /// How long the step took.
        total_ns: i64 => Nanoseconds,
        /// Computation without communication.
        compute_ns: i64 => Nanoseconds,
        /// Computation and communication at the same time.
        overlap_ns: i64 => Nanoseconds,
        /// Communication without computation.
        exposed_comm_ns: i64 => Nanoseconds,
        /// Neither of them.
        other_ns: i64 => Nanoseconds,
        /// `compute_ns` and `overlap_ns` as a share of `total_ns`. Absent for a step that took no time.
        busy_ratio: Option<f64> => Ratio,
        /// Whether all of the step was recorded. Absent for the average.
        is_complete: Option<bool> => Flag,
        /// What the row is: `one` for one step, `mean` for the average over the steps of the rank.
        row => Text = |row| if row.is_complete.is_some() { "one" } else { "mean" },
    }
}

/// Every step asked for, by rank and start, each rank's average after its steps.
pub fn ranks_overview(trace: &Trace, selection: &Selection) -> Vec<RankOverview> {
    rows(&AnalysisContext::new(trace, selection))
}

pub(crate) fn rows(context: &AnalysisContext<'_>) -> Vec<RankOverview> {
    let (trace, busy) = (context.trace, &context.get::<StepsBusy>().0);
    let places: Vec<usize> = context.selection.step_places(trace).collect();
    let mut rows = Vec::new();
    for places in places.chunk_by(|a, b| trace.steps[*a].rank == trace.steps[*b].rank) {
        let first = rows.len();
        rows.extend(places.iter().map(|at| of_step(&trace.steps[*at], &busy[*at])));
        if context.selection.step.is_none() {
            rows.extend(average(&rows[first..]));
        }
    }
    rows
}

fn of_step(step: &Step, busy: &StepBusy) -> RankOverview {
    let number = (step.source != StepSource::Whole).then_some(step.number);
    RankOverview { step: number, is_complete: Some(step.is_complete), ..of_busy(step.rank, busy) }
}

fn of_busy(rank: u32, busy: &StepBusy) -> RankOverview {
    let StepBusy { compute_ns, overlap_ns, exposed_comm_ns, other_ns, .. } = *busy;
    from_parts(rank, [compute_ns, overlap_ns, exposed_comm_ns, other_ns])
}

/// The parts of a stretch of time.
pub(crate) fn divided(rank: u32, span: Span, compute: &IntervalSet, comm: &IntervalSet) -> RankOverview {
    of_busy(rank, &StepBusy::of(span, compute, comm))
}

/// The mean of the complete steps among `rows`, all of one rank. The whole trace as a step is its own.
fn average(rows: &[RankOverview]) -> Option<RankOverview> {
    let complete = rows.iter().filter(|row| row.is_complete == Some(true) && row.step.is_some());
    mean(&complete.copied().collect::<Vec<_>>())
}

/// The mean of `rows`, all of one rank.
pub(crate) fn mean(rows: &[RankOverview]) -> Option<RankOverview> {
    let parts = rows.iter().map(|row| [row.compute_ns, row.overlap_ns, row.exposed_comm_ns, row.other_ns]);
    Some(from_parts(rows.first()?.rank, mean_parts(parts)?))
}

fn from_parts(rank: u32, parts: [i64; 4]) -> RankOverview {
    let [compute_ns, overlap_ns, exposed_comm_ns, other_ns] = parts;
    let total_ns: i64 = parts.iter().sum();
    RankOverview {
        rank,
        step: None,
        total_ns,
        compute_ns,
        overlap_ns,
        exposed_comm_ns,
        other_ns,
        busy_ratio: (total_ns > 0).then(|| (compute_ns + overlap_ns) as f64 / total_ns as f64),
        is_complete: None,
    }
}

/// When a rank computes and communicates in a step: all that is needed of it. The first four sum to the step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct StepBusy {
    compute_ns: i64,
    overlap_ns: i64,
    exposed_comm_ns: i64,
    other_ns: i64,
    /// Time before the first computation; all of the step without any.
    pub(crate) before_ns: i64,
    /// Time after the last computation; none without any.
    pub(crate) after_ns: i64,
}

impl StepBusy {
    fn of(span: Span, compute: &IntervalSet, comm: &IntervalSet) -> Self {
        let (compute, comm) = (compute.clip(span), comm.clip(span));
        let overlap_ns = compute.intersect(&comm).total_ns();
        let hull = compute.hull().unwrap_or(Span::new(span.end_ns, span.end_ns));
        let this = Self {
            compute_ns: compute.total_ns() - overlap_ns,
            overlap_ns,
            exposed_comm_ns: comm.total_ns() - overlap_ns,
            other_ns: span.duration_ns() - compute.union(&comm).total_ns(),
            before_ns: hull.start_ns - span.start_ns,
            after_ns: span.end_ns - hull.end_ns,
        };
        assert_eq!(this.total_ns(), span.duration_ns(), "the parts sum to the step");
        this
    }

    /// How long the step took.
    pub(crate) fn total_ns(&self) -> i64 {
        self.compute_ns + self.overlap_ns + self.exposed_comm_ns + self.other_ns
    }

    /// Time in which the rank does not compute.
    pub(crate) fn idle_ns(&self) -> i64 {
        self.exposed_comm_ns + self.other_ns
    }
}

/// That of each step of the trace, in their order.
pub(crate) struct StepsBusy(pub(crate) Vec<StepBusy>);

impl Shared for StepsBusy {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let ranks = context.get::<BTreeMap<u32, RankBusy>>();
        let of_step = |step: &Step| {
            let RankBusy { compute, comm, .. } = &ranks[&step.rank];
            StepBusy::of(step.span, compute, comm)
        };
        Self(context.trace.steps.iter().map(of_step).collect())
    }
}

/// When a rank computes, and when it communicates.
#[derive(Default)]
pub(crate) struct RankBusy {
    pub(crate) compute: IntervalSet,
    comm: IntervalSet,
    pub(crate) has_device_events: bool,
}

/// Every rank of the trace.
impl Shared for BTreeMap<u32, RankBusy> {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let trace = context.trace;
        let mut ranks: Self = trace.ranks().into_iter().map(|rank| (rank, RankBusy::default())).collect();
        for (device, busy) in trace.devices.iter().zip(context.get::<Vec<DeviceBusy>>()) {
            let rank = ranks.entry(device.rank).or_default();
            rank.compute = rank.compute.union(&busy.compute);
            rank.comm = rank.comm.union(&busy.comm);
            rank.has_device_events |= busy.has_events;
        }
        let calls = context.get::<Calls>();
        let (mut operators, mut works) = (BTreeMap::<u32, Vec<Span>>::new(), BTreeMap::<u32, Vec<Span>>::new());
        let span_of = |slice: SliceId| trace.slices.span(slice);
        for track in trace.tracks.iter().filter(|track| track.kind == TrackKind::Thread) {
            let rank = trace.processes[track.process.index()].rank;
            if ranks.get(&rank).is_some_and(|busy| busy.has_device_events) {
                continue;
            }
            operators.entry(rank).or_default().extend(computing(trace, calls, track).spans());
        }
        for work in calls.calls.iter().filter_map(|call| call.work) {
            let rank = trace.rank_of_track(trace.slices.track[work.index()]);
            works.entry(rank).or_default().push(span_of(work));
        }
        for (rank, busy) in &mut ranks {
            if let Some(spans) = operators.remove(rank) {
                busy.compute = IntervalSet::from_unsorted(spans);
            }
            if let Some(spans) = works.remove(rank).filter(|_| busy.comm.is_empty()) {
                busy.comm = IntervalSet::from_unsorted(spans);
            }
        }
        ranks
    }
}

/// When a thread is in an operator, but neither asks for a collective nor waits for one.
pub(crate) fn computing(trace: &Trace, calls: &Calls, track: &Track) -> IntervalSet {
    let ops = track.slice_ids().filter(|id| trace.slices.kind(*id) == SliceKind::Op);
    // What a collective or a wait lies in, such as an operator on distributed tensors, does nothing meanwhile.
    let is_waiting = |id: &SliceId| trace.role(*id) == Some(SliceRole::CollectiveWait);
    let (communicating, computing): (Vec<SliceId>, Vec<SliceId>) =
        ops.partition(|id| is_waiting(id) || calls.around(trace, *id).is_some());
    let spans = |ids: Vec<SliceId>| IntervalSet::from_unsorted(ids.into_iter().map(|id| trace.slices.span(id)));
    spans(computing).subtract(&spans(communicating))
}

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { compat: &[Compat::Tb], ..Options::NONE }, ..Analysis::of(outcome) }
        .needing(Needs::Condensed)
        .needing_for_compat(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    match context.selection.compat {
        Some(Compat::Tb) => Outcome::of(context, &tensorboard_views::overview(context)),
        _ => Outcome::of(context, &rows(context)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::{drawn, drawn_with_collectives};

    fn line(row: &RankOverview) -> String {
        let parts = [row.compute_ns, row.overlap_ns, row.exposed_comm_ns, row.other_ns].map(|ns| ns / 1_000);
        let step = if row.is_complete.is_some() { format!("step {:?}", row.step) } else { "mean".into() };
        format!("rank {} {step}: {} us = {parts:?}", row.rank, row.total_ns / 1_000)
    }

    #[track_caller]
    fn check(trace: &Trace, selection: Selection, expected: &[&str]) {
        assert_eq!(ranks_overview(trace, &selection).iter().map(line).collect::<Vec<_>>(), expected);
    }

    const TWO_RANKS: &str = "rank 0 step     0000000011111111
                             rank 0 stream 7 CCCC....CCCC....
                             rank 0 stream 9 ..NNN.....NN.NN.
                             rank 1 step     0000000011111111
                             rank 1 stream 7 CC..H...........";

    #[test]
    fn the_parts_of_a_step_sum_to_it() {
        let expected = [
            "rank 0 step Some(0): 8 us = [2, 2, 1, 3]",
            "rank 0 step Some(1): 8 us = [2, 2, 2, 2]",
            "rank 0 mean: 8 us = [2, 2, 1, 2]",
            "rank 1 step Some(0): 8 us = [2, 0, 0, 6]",
            "rank 1 step Some(1): 8 us = [0, 0, 0, 8]",
            "rank 1 mean: 8 us = [1, 0, 0, 7]",
        ];
        check(&drawn(TWO_RANKS), Selection::default(), &expected);
        check(&drawn(TWO_RANKS), Selection { ranks: 1.into(), step: Some(0), ..Selection::default() }, &expected[3..4]);
    }

    fn step_0() -> Selection {
        Selection { step: Some(0), ..Selection::default() }
    }

    #[test]
    fn without_a_device_operators_compute_and_works_communicate() {
        let said = ("allreduce", "Float", Some(10), Some(3));
        let drawing = "rank 0 step  00000000
                       rank 0 cpu 1 aa.c.bb.
                       rank 0 cpu 2 ....ww..";
        let trace = drawn_with_collectives(drawing, &[("c", SliceKind::Op, said)]);
        check(&trace, step_0(), &["rank 0 step Some(0): 8 us = [5, 0, 0, 3]"]);
        // As in a recording: the backend's range says which collective it carries out.
        let mut trace = trace;
        let work = trace.slices.ids().find(|id| trace.slice_name(*id) == "w").unwrap();
        trace.slices.kind[work.index()] = SliceKind::Annotation;
        let asked = trace.collectives[0];
        trace.collectives.push(stepscope_trace::Collective { slice: work, ..asked });
        trace.collectives.sort_by_key(|said| said.slice);
        check(&trace, step_0(), &["rank 0 step Some(0): 8 us = [3, 1, 1, 3]"]);
    }

    #[test]
    fn an_average_is_of_complete_steps_that_are_marked() {
        let row = |step, is_complete, parts| RankOverview { step, is_complete, ..from_parts(3, parts) };
        let one = row(Some(1), Some(true), [1, 0, 0, 3]);
        let cut = row(Some(2), Some(false), [100; 4]);
        let mean = average(&[one, row(Some(3), Some(true), [2, 0, 1, 4]), cut]).expect("complete steps");
        assert_eq!(mean, from_parts(3, [1, 0, 1, 3]));
        assert_eq!((average(&[cut]), average(&[row(None, Some(true), [1; 4])])), (None, None));
        let unmarked = drawn("rank 0 stream 7 C..N");
        check(&unmarked, Selection::default(), &["rank 0 step None: 4 us = [1, 0, 1, 2]"]);
    }

    #[test]
    fn who_waits_for_a_collective_inside_an_operator_does_not_compute() {
        let said = |name| (name, "Float", Some(10), Some(3));
        let drawing = "rank 0 step    0000000000
                       rank 0 cpu 1   aaaaaaa.bb
                       rank 0 cpu 1   .cc.ddd...
                       rank 0 label 2 ..wwwwww..";
        let works = [("c", SliceKind::Op, said("allreduce")), ("w", SliceKind::Annotation, said("allreduce"))];
        let mut trace = drawn_with_collectives(drawing, &works);
        // While it waits, nothing is known of the wait: it could be any operator.
        check(&trace, step_0(), &["rank 0 step Some(0): 10 us = [3, 4, 2, 1]"]);
        let wait = trace.strings.intern("d");
        trace.roles = vec![(wait, SliceRole::CollectiveWait)];
        check(&trace, step_0(), &["rank 0 step Some(0): 10 us = [3, 1, 5, 1]"]);
    }

    proptest! {
        #[test]
        fn each_microsecond_is_of_one_part(
            compute in "[.C]{20}", comm in "[.N]{20}", limit in 1_usize..19,
        ) {
            let steps = "0".repeat(limit) + &"1".repeat(20 - limit);
            let trace = drawn(&format!("rank 0 step {steps}\nrank 0 stream 7 {compute}\nrank 0 stream 9 {comm}\n"));
            let rows = ranks_overview(&trace, &Selection::default());
            for (row, cells) in rows.iter().zip([0..limit, limit..20]) {
                let mut parts = [0; 4];
                for at in cells {
                    match (&compute[at..=at], &comm[at..=at]) {
                        ("C", ".") => parts[0] += 1_000,
                        ("C", _) => parts[1] += 1_000,
                        (_, "N") => parts[2] += 1_000,
                        _ => parts[3] += 1_000,
                    }
                }
                let found = [row.compute_ns, row.overlap_ns, row.exposed_comm_ns, row.other_ns];
                prop_assert_eq!(found, parts);
            }
        }
    }
}
