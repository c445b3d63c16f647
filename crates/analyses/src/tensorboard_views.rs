//! The three tables of the distributed view of the TensorBoard plugin of PyTorch's profiler, by its definitions.
//!
//! ```text
//! rank 0   op      ████████
//!          kernel     ·······████████████      a node takes the operator and its kernels
//! rank 1   op      ████
//!          kernel        ······██████          what takes the shortest of all ranks is transfer, at the end of each
//! ```

use crate::device_busy::DeviceBusy;
use crate::mean_parts::mean_parts;
use crate::ranks_overview::{self, RankOverview};
use crate::windows::Windows;
use crate::{AnalysisContext, collectives, step_breakdown};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_align::Calls;
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{DeviceEventClass, SliceId, SliceKind, Step, StepSource, Trace, TrackKind};

columns! {
    /// The communication of one step of one rank, or the mean over the rank's steps.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct StepTransfer {
        /// The rank.
        rank: u32 => Count,
        /// The number of the step. Absent where nothing marks steps, and for the mean.
        step: Option<i64> => Count,
        /// Time in which the rank is in an operator or a kernel of communication: `transfer_ns` and `waiting_ns`.
        total_ns: i64 => Nanoseconds,
        /// The part of `total_ns` in which data is transferred.
        transfer_ns: i64 => Nanoseconds,
        /// The part of `total_ns` in which the rank waits for others: the plugin's synchronizing time.
        waiting_ns: i64 => Nanoseconds,
        /// What the row is: `one` for one step, `mean` for the mean over the steps of the rank.
        row: &'static str => Text,
    }
}

columns! {
    /// All operators of communication of one name, on one rank.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub(crate) struct Communication {
        /// The rank.
        rank: u32 => Count,
        /// The collective, as the source calls it.
        name: Option<String> => Text,
        /// Number of calls.
        calls: i64 => Count,
        /// Bytes that go into all calls. Absent where they are not known of each.
        total_size_bytes: Option<i64> => Bytes,
        /// The same over `calls`, rounded.
        mean_size_bytes: Option<i64> => Bytes,
        /// Time in which the rank is in one of the operators or its kernels.
        total_latency_ns: i64 => Nanoseconds,
        /// The same over `calls`, rounded.
        mean_latency_ns: i64 => Nanoseconds,
        /// The part of `total_latency_ns` in which data is transferred. Absent where ranks do not have the same
        /// operators.
        transfer_ns: Option<i64> => Nanoseconds,
        /// The same over `calls`, rounded.
        mean_transfer_ns: Option<i64> => Nanoseconds,
    }
}

/// An operator of communication on one rank.
struct Node {
    slice: SliceId,
    name: StringId,
    size_bytes: Option<i64>,
    /// The operator and its kernels, by start, of several the longest first.
    ranges: Vec<Span>,
    /// The last part of each range, as long as the shortest of all ranks.
    transfers: Vec<Span>,
}

/// The nodes of a trace.
struct Nodes {
    /// By rank, in the order in which the plugin matches them.
    of_rank: BTreeMap<u32, Vec<Node>>,
    /// Whether all ranks have as many nodes, with as many ranges.
    are_matched: bool,
}

impl Nodes {
    fn of(context: &AnalysisContext<'_>) -> Self {
        let (trace, calls) = (context.trace, context.get::<Calls>());
        let span = |slice: SliceId| trace.slices.span(slice);
        let mut ranges: Vec<Vec<Span>> = Vec::with_capacity(calls.calls.len());
        ranges.extend(calls.calls.iter().map(|call| vec![span(call.work.unwrap_or(call.slice))]));
        for event in trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Communication) {
            if let Some(call) = event.op.and_then(|op| calls.around(trace, op)) {
                ranges[call].push(span(event.slice));
            }
        }
        let mut of_rank: BTreeMap<u32, Vec<Node>> = trace.ranks().into_iter().map(|rank| (rank, Vec::new())).collect();
        for (call, mut ranges) in calls.calls.iter().zip(ranges) {
            ranges.sort_unstable_by_key(|span| (span.start_ns, Reverse(span.end_ns)));
            let slice = call.work.unwrap_or(call.slice);
            let size_bytes = collectives::input_bytes(trace, &call.said);
            let node = Node { slice, name: call.said.name, size_bytes, ranges, transfers: Vec::new() };
            of_rank.entry(trace.rank_of_track(trace.slices.track[slice.index()])).or_default().push(node);
        }
        for nodes in of_rank.values_mut() {
            nodes.sort_by_key(|node| (span(node.slice).start_ns, Reverse(span(node.slice).end_ns), node.slice));
        }
        let are_matched = add_transfers(&mut of_rank);
        Self { of_rank, are_matched }
    }
}

/// Compares the k-th range of the k-th node of each rank. False, and nothing added, where ranks differ in their number.
fn add_transfers(of_rank: &mut BTreeMap<u32, Vec<Node>>) -> bool {
    let shape = |nodes: &Vec<Node>| nodes.iter().map(|node| node.ranges.len()).collect::<Vec<_>>();
    let Some(first) = of_rank.values().next().map(shape) else { return false };
    if first.is_empty() || of_rank.values().any(|nodes| shape(nodes) != first) {
        return false;
    }
    for (at, ranges) in first.into_iter().enumerate() {
        for range in 0..ranges {
            let durations = of_rank.values().map(|nodes| nodes[at].ranges[range].duration_ns());
            let shortest_ns = durations.min().expect("there is a rank");
            for nodes in of_rank.values_mut() {
                let end_ns = nodes[at].ranges[range].end_ns;
                nodes[at].transfers.push(Span::new(end_ns - shortest_ns, end_ns));
            }
        }
    }
    true
}

/// The steps asked for as the plugin cuts them, of one rank after another.
fn steps_of_ranks(context: &AnalysisContext<'_>) -> Vec<Vec<Step>> {
    let steps = step_breakdown::tensorboard_steps(context.trace, context.selection);
    steps.chunk_by(|a, b| a.rank == b.rank).map(<[Step]>::to_vec).collect()
}

fn number(step: &Step) -> Option<i64> {
    (step.source != StepSource::Whole).then_some(step.number)
}

/// Computation and communication of each step: "Computation/Communication Overview".
pub(crate) fn overview(context: &AnalysisContext<'_>) -> Vec<RankOverview> {
    let nodes = Nodes::of(context);
    let mut rows = Vec::new();
    for steps in steps_of_ranks(context) {
        let (compute, comm) = busy(context, &nodes, steps[0].rank);
        let of_step = |step: &Step| {
            let row = ranks_overview::divided(step.rank, step.span, &compute, &comm);
            RankOverview { step: number(step), is_complete: Some(step.is_complete), ..row }
        };
        let first = rows.len();
        rows.extend(steps.iter().map(of_step));
        if context.selection.step.is_none() {
            rows.extend(ranks_overview::mean(&rows[first..]));
        }
    }
    rows
}

/// When a rank computes, and when it communicates.
fn busy(context: &AnalysisContext<'_>, nodes: &Nodes, rank: u32) -> (IntervalSet, IntervalSet) {
    let trace = context.trace;
    let own: FxHashSet<SliceId> = nodes.of_rank.get(&rank).into_iter().flatten().map(|node| node.slice).collect();
    let mut comm = IntervalSet::from_unsorted(own.iter().map(|slice| trace.slices.span(*slice)));
    let mut compute = IntervalSet::default();
    for (device, busy) in trace.devices.iter().zip(context.get::<Vec<DeviceBusy>>()) {
        if device.rank == rank {
            compute = compute.union(&busy.compute);
            comm = comm.union(&busy.comm);
        }
    }
    if compute.is_empty() {
        let is_of_rank = |process: usize| trace.processes[process].rank == rank;
        let threads = trace.tracks.iter().filter(|track| track.kind == TrackKind::Thread);
        let slices = threads.filter(|track| is_of_rank(track.process.index())).flat_map(|track| track.slice_ids());
        let is_counted = |id: &SliceId| {
            matches!(trace.slices.kind(*id), SliceKind::Op | SliceKind::Annotation | SliceKind::Optimizer)
                && !own.contains(id)
        };
        compute = IntervalSet::from_unsorted(slices.filter(is_counted).map(|id| trace.slices.span(id)));
    }
    (compute, comm)
}

/// Transfer and waiting of each step that communicates: "Synchronizing/Communication Overview".
pub(crate) fn transfers(context: &AnalysisContext<'_>) -> Vec<StepTransfer> {
    let nodes = Nodes::of(context);
    let mut rows = Vec::new();
    for steps in steps_of_ranks(context).into_iter().filter(|_| nodes.are_matched) {
        let own = &nodes.of_rank[&steps[0].rank];
        let first = rows.len();
        for step in &steps {
            let is_inside = |node: &&Node| {
                let span = context.trace.slices.span(node.slice);
                step.span.start_ns <= span.start_ns && span.end_ns <= step.span.end_ns
            };
            let inside: Vec<&Node> = own.iter().filter(is_inside).collect();
            if !inside.is_empty() {
                let [total_ns, transfer_ns] = covered_ns(&inside);
                rows.push(step_transfer(step.rank, number(step), "one", [transfer_ns, total_ns - transfer_ns]));
            }
        }
        if context.selection.step.is_none() {
            let parts = rows[first..].iter().map(|row: &StepTransfer| [row.transfer_ns, row.waiting_ns]);
            rows.extend(mean_parts(parts).map(|parts| step_transfer(steps[0].rank, None, "mean", parts)));
        }
    }
    rows
}

fn step_transfer(rank: u32, step: Option<i64>, row: &'static str, parts: [i64; 2]) -> StepTransfer {
    let [transfer_ns, waiting_ns] = parts;
    StepTransfer { rank, step, total_ns: transfer_ns + waiting_ns, transfer_ns, waiting_ns, row }
}

/// For how long the ranges of nodes last, and their transfers; what overlaps counts once.
fn covered_ns(nodes: &[&Node]) -> [i64; 2] {
    let covered = |of: fn(&Node) -> &Vec<Span>| {
        IntervalSet::from_unsorted(nodes.iter().flat_map(|node| of(node).iter().copied())).total_ns()
    };
    [covered(|node| &node.ranges), covered(|node| &node.transfers)]
}

/// The operators of each rank by name, in order of first call: "Communication Operations Stats".
pub(crate) fn operations(context: &AnalysisContext<'_>) -> Vec<Communication> {
    let trace = context.trace;
    let windows = Windows::of(trace, context.selection);
    let nodes = Nodes::of(context);
    let mut rows = Vec::new();
    for (rank, own) in &nodes.of_rank {
        let mut of_name: Vec<(StringId, Vec<&Node>)> = Vec::new();
        for node in own.iter().filter(|node| windows.has_slice(trace, node.slice)) {
            match of_name.iter_mut().find(|(name, _)| *name == node.name) {
                Some((_, nodes)) => nodes.push(node),
                None => of_name.push((node.name, vec![node])),
            }
        }
        rows.extend(of_name.iter().map(|(name, of_name)| operation(trace, *rank, *name, of_name, nodes.are_matched)));
    }
    rows
}

fn operation(trace: &Trace, rank: u32, name: StringId, nodes: &[&Node], are_matched: bool) -> Communication {
    let calls = nodes.len() as i64;
    let mean = |sum: i64| sum.saturating_add(calls / 2) / calls;
    let total_size_bytes = nodes.iter().try_fold(0_i64, |sum, node| sum.checked_add(node.size_bytes?));
    let [total_latency_ns, transfer_ns] = covered_ns(nodes);
    let transfer_ns = are_matched.then_some(transfer_ns);
    Communication {
        rank,
        name: trace.text(name),
        calls,
        total_size_bytes,
        mean_size_bytes: total_size_bytes.map(mean),
        total_latency_ns,
        mean_latency_ns: mean(total_latency_ns),
        transfer_ns,
        mean_transfer_ns: transfer_ns.map(mean),
    }
}

#[cfg(test)]
mod tests;
