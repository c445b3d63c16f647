//! # Definition
//! For each step of each rank of a pipeline, when its devices do not compute: before the first computation of the step,
//! between, and after the last, which sum to the step's idle time, and the least share that the schedule allows.
//!
//! - A rank is of a pipeline in a step when it sends to another rank or receives from one in it.
//! - Computation is that of `ranks_overview`. All else is idle here, sending and receiving as well: that is where a stage
//!   waits for its neighbours.
//! - `stages` is the number of ranks that are joined by sends and receives of the run. It is known when all of them were
//!   recorded and they are a chain: two ranks have one neighbour, all others two.
//! - `micro_batches` is the number of sends, and of receives, between a rank and each neighbour in the step: one message
//!   for each micro-batch. It is known when it is the same number for all ranks of the chain, each neighbour and either
//!   direction.
//! - `ideal_ratio` is the idle share of a step that p stages have with m micro-batches, when all take equally long and
//!   messages no time: (p - 1) / (m + p - 1), which is (p - 1) / m of the time in which a stage computes. It is that of the
//!   schedules that do all forward passes first and of those that alternate (1F1B).
//!
//! # Units
//! Nanoseconds. A share is from 0 to 1. Counts of stages, micro-batches and messages.
//!
//! # Source
//! What operators, ranges and kernels say of the sends and receives that they are; computation as recorded.
//!
//! # Edge cases
//! A step in which nothing computes is idle before. Of a rank that sends several messages for a micro-batch, that many
//! micro-batches are counted. Where stages lie on ranks more than once, ranks are a ring: then, and where the source does
//! not tell which rank is at the other end, the stages are not known. What is not known is absent. The optimizer's
//! computation is computation too: what is idle before it counts as between. Without labelled steps the whole trace counts
//! as one, which has no number. For one rank the others still count.

use crate::ranks_overview::{StepBusy, StepsBusy};
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::Calls;
use stepscope_trace::{Collective, CollectiveKind, SliceId, Step, StepSource, Trace};

columns! {
    /// One step of one rank of a pipeline.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct Bubbles {
        /// The rank.
        rank: u32 => Count,
        /// The number of the step. Absent where nothing marks steps.
        step: Option<i64> => Count,
        /// How long the step took.
        total_ns: i64 => Nanoseconds,
        /// Time in which the rank does not compute.
        idle_ns: i64 => Nanoseconds,
        /// The part of `idle_ns` before the first computation.
        warm_up_ns: i64 => Nanoseconds,
        /// The part of `idle_ns` between the first computation and the last.
        steady_ns: i64 => Nanoseconds,
        /// The part of `idle_ns` after the last computation.
        drain_ns: i64 => Nanoseconds,
        /// `idle_ns` as a share of `total_ns`. Absent for a step that took no time.
        idle_ratio: Option<f64> => Ratio,
        /// The share that the schedule alone explains. Absent where stages or micro-batches are not known.
        ideal_ratio: Option<f64> => Ratio,
        /// Number of stages of the pipeline.
        stages: Option<i64> => Count,
        /// Number of micro-batches of the step.
        micro_batches: Option<i64> => Count,
        /// Number of sends in the step.
        sends: i64 => Count,
        /// Number of receives in the step.
        receives: i64 => Count,
        /// Whether all of the step was recorded.
        is_complete: bool => Flag,
    }
}

/// Every step asked for in which a rank sends or receives, by rank and start.
pub fn bubbles(trace: &Trace, selection: &Selection) -> Vec<Bubbles> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<Bubbles> {
    let trace = context.trace;
    let messages = messages(context);
    let chains = chains(&messages);
    let busy = &context.get::<StepsBusy>().0;
    let of_step = |at: usize| {
        let step = &trace.steps[at];
        let own = counts(&messages, step);
        (!own.is_empty()).then(|| {
            let chain = chains.get(&step.rank);
            let micro_batches = chain.and_then(|chain| micro_batches(trace, &messages, chain, step));
            row(step, &busy[at], &own, chain.map(|chain| chain.len() as i64), micro_batches)
        })
    };
    context.selection.step_places(trace).filter_map(of_step).collect()
}

/// A send or a receive of a rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Message {
    at_ns: i64,
    is_send: bool,
    /// The rank at the other end.
    peer: Option<u32>,
}

/// The messages of each rank of the run, by when it asks for them.
fn messages(context: &AnalysisContext<'_>) -> BTreeMap<u32, Vec<Message>> {
    let (trace, calls) = (context.trace, context.get::<Calls>());
    let mut messages: BTreeMap<u32, Vec<Message>> = BTreeMap::new();
    let mut add = |rank: u32, slice: SliceId, said: &Collective| {
        let is_send = said.kind == Some(CollectiveKind::Send);
        if is_send || said.kind == Some(CollectiveKind::Receive) {
            let peer = if is_send { said.destination_rank } else { said.source_rank };
            let peer = peer.and_then(|peer| u32::try_from(peer).ok()).filter(|peer| *peer != rank);
            let message = Message { at_ns: trace.slices.start_ns[slice.index()], is_send, peer };
            messages.entry(rank).or_default().push(message);
        }
    };
    for call in &calls.calls {
        add(trace.rank_of_track(trace.slices.track[call.slice.index()]), call.slice, &call.said);
    }
    for event in trace.device_events.iter() {
        let is_in_call = event.op.is_some_and(|op| calls.around(trace, op).is_some());
        if let Some(said) = calls.of_kernel(trace, event.slice).filter(|_| !is_in_call) {
            add(trace.devices[event.device.index()].rank, event.launch.unwrap_or(event.slice), said);
        }
    }
    messages.values_mut().for_each(|of_rank| of_rank.sort_unstable());
    messages
}

/// The chain of ranks that each rank is in, where it is one.
fn chains(messages: &BTreeMap<u32, Vec<Message>>) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut peers: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let mut is_known: BTreeMap<u32, bool> = BTreeMap::new();
    for (rank, of_rank) in messages {
        is_known.insert(*rank, of_rank.iter().all(|message| message.peer.is_some()));
        for peer in of_rank.iter().filter_map(|message| message.peer) {
            peers.entry(*rank).or_default().insert(peer);
            peers.entry(peer).or_default().insert(*rank);
        }
    }
    let mut chains: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    for first in peers.keys() {
        let (mut joined, mut open) = (BTreeSet::new(), vec![*first]);
        while let Some(rank) = open.pop().filter(|_| !seen.contains(first)) {
            if joined.insert(rank) {
                open.extend(&peers[&rank]);
            }
        }
        seen.extend(&joined);
        let ends = joined.iter().filter(|rank| peers[rank].len() == 1).count();
        let is_chain = ends == 2 && joined.iter().all(|rank| peers[rank].len() <= 2);
        if is_chain && joined.iter().all(|rank| is_known.get(rank) == Some(&true)) {
            joined.iter().for_each(|rank| drop(chains.insert(*rank, joined.clone())));
        }
    }
    chains
}

/// Number of messages in a step by whether they are sent and the other end.
type Counts = BTreeMap<(bool, Option<u32>), i64>;

fn counts(messages: &BTreeMap<u32, Vec<Message>>, step: &Step) -> Counts {
    let of_rank = messages.get(&step.rank).map_or(&[][..], |of_rank| of_rank);
    let first = of_rank.partition_point(|message| message.at_ns < step.span.start_ns);
    let mut counts = Counts::new();
    for message in of_rank[first..].iter().take_while(|message| message.at_ns < step.span.end_ns) {
        *counts.entry((message.is_send, message.peer)).or_default() += 1;
    }
    counts
}

/// The number that all counts of the chain have in the steps of this number.
fn micro_batches(
    trace: &Trace,
    messages: &BTreeMap<u32, Vec<Message>>,
    chain: &BTreeSet<u32>,
    step: &Step,
) -> Option<i64> {
    let mut numbers: BTreeSet<i64> = BTreeSet::new();
    for rank in chain {
        let same = Selection { ranks: (*rank).into(), step: Some(step.number), ..Selection::default() };
        let mut same = same.steps(trace);
        // A number that a rank has twice says nothing.
        let (Some(own), None) = (same.next(), same.next()) else { return None };
        let counts = counts(messages, own);
        // Each neighbour is sent to and received from.
        let peers: BTreeSet<Option<u32>> = counts.keys().map(|(_, peer)| *peer).collect();
        if counts.len() != 2 * peers.len() || peers.is_empty() {
            return None;
        }
        numbers.extend(counts.values());
    }
    numbers.first().copied().filter(|_| numbers.len() == 1)
}

fn row(step: &Step, busy: &StepBusy, own: &Counts, stages: Option<i64>, micro_batches: Option<i64>) -> Bubbles {
    let (total_ns, idle_ns) = (busy.total_ns(), busy.idle_ns());
    let (warm_up_ns, drain_ns) = (busy.before_ns, busy.after_ns);
    let steady_ns = idle_ns - warm_up_ns - drain_ns;
    assert!(steady_ns >= 0, "the parts sum to the idle time");
    let of = |sent: bool| own.iter().filter(|((is_send, _), _)| *is_send == sent).map(|(_, count)| count).sum();
    let ideal = stages.zip(micro_batches).map(|(stages, count)| (stages - 1) as f64 / (count + stages - 1) as f64);
    Bubbles {
        rank: step.rank,
        step: (step.source != StepSource::Whole).then_some(step.number),
        total_ns,
        idle_ns,
        warm_up_ns,
        steady_ns,
        drain_ns,
        idle_ratio: (total_ns > 0).then(|| idle_ns as f64 / total_ns as f64),
        ideal_ratio: ideal,
        stages,
        micro_batches,
        sends: of(true),
        receives: of(false),
        is_complete: step.is_complete,
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests;
