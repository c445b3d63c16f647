//! # Definition
//! For each rank: how much the computing of its micro-batches differs, and whether forward and backward passes differ
//! together, as they do when lengths of sequences differ.
//!
//! - A *micro-batch* is a forward pass with its backward pass. A new backward pass begins where a node belongs to a forward
//!   operator that came after that of the node before: one pass goes back in the order of the forward operators. Nodes
//!   inside another node, as where activations are computed again, count with that one. Backward passes whose forward
//!   operators lie between each other are one.
//! - The forward pass is from the first to the last of these forward operators, the backward pass from its first to its
//!   last node, on each thread. Where they overlap, it counts as backward.
//! - Computing of a pass is the sum of the durations of the computing kernels that its threads launch in it. On a rank
//!   without device events it is the part of the pass that is computation in `ranks_overview`.
//! - Micro-batches are compared when they have the same number of backward nodes: those of the same model.
//!
//! `correlation` is that of Pearson, between the forward and the backward computing of micro-batches. Lengths of sequences
//! are the likely cause when it is 0.9 or more and the spread is large: longer inputs make both passes longer. What
//! disturbs only one of them, such as garbage collection or another program, correlates less. Without a spread, a
//! correlation says nothing.
//!
//! # Units
//! Nanoseconds. Counts of micro-batches and nodes. A correlation from -1 to 1. The spread is the difference between the
//! 90th and the 10th percentile over the median.
//!
//! # Source
//! Links from forward operators to backward nodes, by autograd's sequence numbers or as the source draws them; kernels and
//! operators as recorded. No names.
//!
//! # Edge cases
//! A rank without such links has no row: nothing else tells the passes. The correlation is absent for fewer than three
//! micro-batches, and when all forward passes or all backward passes take equally long. A model whose number of operators
//! depends on the length of the sequence, as a loop over its elements does, is not seen. A first micro-batch that warms up
//! is slow in both passes: with few micro-batches it makes a correlation, but hardly a spread. The work of gradients that
//! no forward operator belongs to counts up to the last node that one belongs to. A part of a trace has the micro-batches
//! whose first forward operator begins in it, whole.

use crate::context::Shared;
use crate::ranks_overview::RankBusy;
use crate::windows::{Windows, steps_of_processes};
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::percentiles::nearest_rank;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{DeviceEventClass, FlowKind, ProcessId, SliceId, Trace, TrackId};

columns! {
    /// The micro-batches of a rank that have the same number of backward nodes.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct MicroBatches {
        /// The rank.
        rank: u32 => Count,
        /// Number of micro-batches.
        micro_batches: i64 => Count,
        /// Correlation between the computing of forward and backward passes. Absent for fewer than three micro-batches,
        /// and where all passes take equally long.
        correlation: Option<f64> => Plain,
        /// How much the computing of forward passes differs: the 90th without the 10th percentile, over the median.
        /// Absent where the median is 0.
        forward_spread_ratio: Option<f64> => Ratio,
        /// The same for backward passes.
        backward_spread_ratio: Option<f64> => Ratio,
        /// Computing of the middle forward pass.
        median_forward_ns: i64 => Nanoseconds,
        /// Computing of the middle backward pass.
        median_backward_ns: i64 => Nanoseconds,
        /// Computing of the longest forward pass.
        max_forward_ns: i64 => Nanoseconds,
        /// Computing of the longest backward pass.
        max_backward_ns: i64 => Nanoseconds,
        /// Computing of all forward passes.
        forward_ns: i64 => Nanoseconds,
        /// Computing of all backward passes.
        backward_ns: i64 => Nanoseconds,
        /// Number of backward nodes of each micro-batch.
        backward_nodes: i64 => Count,
    }
}

/// Every rank asked for, by rank, what has the most micro-batches first.
pub fn micro_batches(trace: &Trace, selection: &Selection) -> Vec<MicroBatches> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<MicroBatches> {
    let trace = context.trace;
    let passes = merged(trace, passes(trace));
    let times = times(context, &passes);
    let windows = Windows::of(trace, context.selection);
    let mut of_key: BTreeMap<(u32, i64), Vec<[i64; 2]>> = BTreeMap::new();
    for (pass, times) in passes.iter().zip(times).filter(|(pass, _)| windows.has_slice(trace, pass.first)) {
        of_key.entry((trace.processes[pass.process.index()].rank, pass.nodes)).or_default().push(times);
    }
    let mut rows: Vec<MicroBatches> = of_key.iter().map(|((rank, nodes), times)| row(*rank, *nodes, times)).collect();
    rows.sort_by_key(|row| (row.rank, Reverse(row.micro_batches), Reverse(row.backward_nodes)));
    rows
}

/// The computing of the micro-batches whose first forward operator begins in each step of the trace, ns: of their forward
/// passes, and of their backward passes.
pub(crate) struct StepsPasses(pub(crate) Vec<[i64; 2]>);

impl Shared for StepsPasses {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let trace = context.trace;
        let of_processes = steps_of_processes(trace);
        let passes = merged(trace, passes(trace));
        let mut of_steps = vec![[0_i64; 2]; trace.steps.len()];
        for (pass, times) in passes.iter().zip(times(context, &passes)) {
            let at_ns = trace.slices.start_ns[pass.first.index()];
            let steps = of_processes.get(&pass.process).map_or(&[][..], |steps| steps);
            let before = steps.partition_point(|(span, _)| span.start_ns <= at_ns).checked_sub(1);
            if let Some((_, at)) = before.map(|at| steps[at]).filter(|(span, _)| span.contains(at_ns)) {
                of_steps[at].iter_mut().zip(times).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
            }
        }
        Self(of_steps)
    }
}

/// A backward pass with the forward pass that it belongs to.
struct Pass {
    process: ProcessId,
    /// The first forward operator.
    first: SliceId,
    /// From the first to the last forward operator, on all threads.
    hull: Span,
    /// The same on each thread.
    forward: BTreeMap<TrackId, Span>,
    backward: Vec<(TrackId, Span)>,
    nodes: i64,
}

fn hull(a: Span, b: Span) -> Span {
    Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns))
}

/// The backward passes of each thread, in order.
fn passes(trace: &Trace) -> Vec<Pass> {
    let links = trace.flows.iter().filter(|flow| flow.kind == FlowKind::ForwardBackward);
    let mut links: Vec<(SliceId, SliceId)> = links.map(|flow| (flow.to, flow.from)).collect();
    links.sort_unstable();
    let mut passes: Vec<Pass> = Vec::new();
    // The node before, and when its forward operator began.
    let mut before: Option<(SliceId, i64)> = None;
    for (node, forward) in links {
        let (track, span) = (trace.slices.track[node.index()], trace.slices.span(node));
        let (of_track, of_span) = (trace.slices.track[forward.index()], trace.slices.span(forward));
        let before_here = before.filter(|(before, _)| trace.slices.track[before.index()] == track);
        let is_inside =
            |(before, _): (SliceId, i64)| before == node || span.start_ns < trace.slices.span(before).end_ns;
        if before_here.is_some_and(is_inside) {
            continue;
        }
        let goes_back = before_here.is_some_and(|(_, forward_ns)| of_span.start_ns <= forward_ns);
        before = Some((node, of_span.start_ns));
        let node_of_pass = Pass {
            process: trace.tracks[track.index()].process,
            first: forward,
            hull: of_span,
            forward: [(of_track, of_span)].into(),
            backward: vec![(track, span)],
            nodes: 1,
        };
        match passes.last_mut().filter(|_| goes_back) {
            Some(pass) => pass.add(node_of_pass, true),
            None => passes.push(node_of_pass),
        }
    }
    passes
}

impl Pass {
    /// Takes in a part of it, which goes on where the backward pass is, or has a stretch of its own.
    fn add(&mut self, part: Pass, goes_on: bool) {
        if part.hull.start_ns < self.hull.start_ns {
            self.first = part.first;
        }
        self.hull = hull(self.hull, part.hull);
        for (track, span) in part.forward {
            self.forward.entry(track).and_modify(|known| *known = hull(*known, span)).or_insert(span);
        }
        match self.backward.last_mut().filter(|_| goes_on) {
            Some((_, known)) => *known = hull(*known, part.backward[0].1),
            None => self.backward.extend(part.backward),
        }
        self.nodes += part.nodes;
    }
}

/// Passes by process and start; those whose forward passes overlap are one.
fn merged(trace: &Trace, mut passes: Vec<Pass>) -> Vec<Pass> {
    passes.sort_by_key(|pass| (pass.process, pass.hull.start_ns, trace.slices.start_ns[pass.first.index()]));
    let mut merged: Vec<Pass> = Vec::new();
    for pass in passes {
        let is_part = |last: &&mut Pass| last.process == pass.process && pass.hull.start_ns < last.hull.end_ns;
        match merged.last_mut().filter(is_part) {
            Some(last) => last.add(pass, false),
            None => merged.push(pass),
        }
    }
    merged
}

/// The computing of each pass, forward and backward.
fn times(context: &AnalysisContext<'_>, passes: &[Pass]) -> Vec<[i64; 2]> {
    let trace = context.trace;
    let busy = context.get::<BTreeMap<u32, RankBusy>>();
    let mut times = vec![[0_i64; 2]; passes.len()];
    for (pass, times) in passes.iter().zip(&mut times) {
        let rank = trace.processes[pass.process.index()].rank;
        if let Some(busy) = busy.get(&rank).filter(|busy| !busy.has_device_events) {
            let backward = IntervalSet::from_unsorted(pass.backward.iter().map(|(_, span)| *span));
            let forward = IntervalSet::from_unsorted(pass.forward.values().copied()).subtract(&backward);
            *times = [forward, backward].map(|stretch| busy.compute.intersect(&stretch).total_ns());
        }
    }
    let stretches = [true, false].map(|is_backward| Stretches::of(passes, is_backward));
    for event in trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Compute) {
        let Some(launch) = event.launch else { continue };
        let dur_ns = trace.slices.dur_ns[event.slice.index()];
        let [backward, forward] = stretches.each_ref().map(|stretches| stretches.around(trace, launch));
        if let Some((at, pass)) = backward.map(|at| (at, 1)).or(forward.map(|at| (at, 0))) {
            times[at][pass] = times[at][pass].saturating_add(dur_ns);
        }
    }
    times
}

/// The stretches of passes on each thread, by start, none over another.
struct Stretches(BTreeMap<TrackId, Vec<(Span, usize)>>);

impl Stretches {
    fn of(passes: &[Pass], is_backward: bool) -> Self {
        let mut of_track: BTreeMap<TrackId, Vec<(Span, usize)>> = BTreeMap::new();
        for (at, pass) in passes.iter().enumerate() {
            let forward = pass.forward.iter().map(|(track, span)| (*track, *span)).filter(|_| !is_backward);
            let backward = pass.backward.iter().copied().filter(|_| is_backward);
            forward.chain(backward).for_each(|(track, span)| of_track.entry(track).or_default().push((span, at)));
        }
        of_track.values_mut().for_each(|stretches| stretches.sort_unstable_by_key(|(span, _)| span.start_ns));
        Self(of_track)
    }

    /// The pass in which a slice begins.
    fn around(&self, trace: &Trace, slice: SliceId) -> Option<usize> {
        let stretches = self.0.get(&trace.slices.track[slice.index()])?;
        let at_ns = trace.slices.start_ns[slice.index()];
        let before = stretches.partition_point(|(span, _)| span.start_ns <= at_ns).checked_sub(1)?;
        let (span, pass) = stretches[before];
        span.contains(at_ns).then_some(pass)
    }
}

fn row(rank: u32, backward_nodes: i64, times: &[[i64; 2]]) -> MicroBatches {
    let [forward, backward] = [0, 1].map(|pass| Times::of(times.iter().map(|times| times[pass]).collect()));
    MicroBatches {
        rank,
        micro_batches: times.len() as i64,
        correlation: correlation(times).filter(|_| forward.differ() && backward.differ()),
        forward_spread_ratio: forward.spread_ratio(),
        backward_spread_ratio: backward.spread_ratio(),
        median_forward_ns: forward.percentile(50),
        median_backward_ns: backward.percentile(50),
        max_forward_ns: forward.percentile(100),
        max_backward_ns: backward.percentile(100),
        forward_ns: forward.sum(),
        backward_ns: backward.sum(),
        backward_nodes,
    }
}

/// What passes take, ascending; at least one.
struct Times(Vec<i64>);

impl Times {
    fn of(mut times_ns: Vec<i64>) -> Self {
        times_ns.sort_unstable();
        Self(times_ns)
    }

    fn percentile(&self, percent: u32) -> i64 {
        nearest_rank(&self.0, percent).expect("there is a micro-batch")
    }

    fn differ(&self) -> bool {
        self.0.first() != self.0.last()
    }

    fn sum(&self) -> i64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    fn spread_ratio(&self) -> Option<f64> {
        let median_ns = self.percentile(50);
        (median_ns > 0).then(|| (self.percentile(90) - self.percentile(10)) as f64 / median_ns as f64)
    }
}

/// Pearson's correlation; `None` for fewer than three pairs.
pub(crate) fn correlation(pairs: &[[i64; 2]]) -> Option<f64> {
    let mean = |of: usize| pairs.iter().map(|pair| pair[of] as f64).sum::<f64>() / pairs.len() as f64;
    let means = [mean(0), mean(1)];
    let sum = |a: usize, b: usize| -> f64 {
        pairs.iter().map(|pair| (pair[a] as f64 - means[a]) * (pair[b] as f64 - means[b])).sum()
    };
    (pairs.len() >= 3).then(|| (sum(0, 1) / (sum(0, 0).sqrt() * sum(1, 1).sqrt())).clamp(-1.0, 1.0))
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests;
