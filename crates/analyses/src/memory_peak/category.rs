//! What an allocation is for, as far as it can be told from where it was made and freed.

use crate::allocations::{Allocation, process_of};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use stepscope_base::Span;
use stepscope_trace::{MemoryEvent, ProcessId, SliceId, SliceKind, StepSource, Trace};

/// The facts that categories follow from.
pub(crate) struct Categories {
    /// Backward nodes, and the operators directly around them, which free what nodes have used.
    backward: FxHashSet<SliceId>,
    first_step: BTreeMap<ProcessId, Span>,
    /// When the optimizer itself begins in its labels that hold forward and backward passes.
    optimizer_begin_ns: FxHashMap<SliceId, i64>,
}

impl Categories {
    pub(crate) fn of(trace: &Trace) -> Self {
        if trace.memory.is_empty() {
            let optimizer_begin_ns = FxHashMap::default();
            return Self { backward: FxHashSet::default(), first_step: BTreeMap::new(), optimizer_begin_ns };
        }
        let facts = trace.ops.slice.iter().zip(&trace.ops.info);
        let nodes = facts.filter(|(_, info)| info.scope == 1).map(|(slice, _)| *slice);
        let engine = |node: SliceId| trace.slices.parent(node).filter(|id| trace.slices.kind(*id) == SliceKind::Op);
        let backward = nodes.flat_map(|node| [Some(node), engine(node)]).flatten().collect();
        let mut first_step: BTreeMap<ProcessId, Span> = BTreeMap::new();
        for step in trace.steps.iter().filter(|step| step.source != StepSource::Whole) {
            let first = first_step.entry(step.process).or_insert(step.span);
            *first = (*first).min(step.span);
        }
        Self { backward, first_step, optimizer_begin_ns: optimizer_begins(trace) }
    }

    /// The category of an allocation that was made by `event`.
    pub(crate) fn category(&self, trace: &Trace, row: &Allocation, event: &MemoryEvent) -> &'static str {
        let around: Vec<SliceId> = trace.open_slices(event.track, event.time_ns).collect();
        let is_in = |kind: SliceKind| around.iter().any(|id| trace.slices.kind(*id) == kind);
        let is_optimizer = |id: &SliceId| {
            let begin_ns = self.optimizer_begin_ns.get(id).copied();
            trace.slices.kind(*id) == SliceKind::Optimizer && begin_ns.is_none_or(|begin_ns| begin_ns <= event.time_ns)
        };
        let works = around.iter().filter(|id| trace.slices.kind(**id) == SliceKind::Op || is_optimizer(id));
        let work_end_ns = works.map(|id| trace.slices.span(*id).end_ns).max();
        let free = row.freed.map(|at| &trace.memory[at]);
        let first_step = self.first_step.get(&process_of(trace, event));
        match () {
            () if is_in(SliceKind::DataLoader) => "input",
            () if free.is_some_and(|free| work_end_ns.is_some_and(|end_ns| free.time_ns <= end_ns)) => "temporary",
            () if around.iter().any(is_optimizer) => "optimizer_state",
            () if around.iter().any(|id| self.backward.contains(id)) => match free {
                Some(free) if self.is_in_backward(trace, free) => "autograd_detail",
                _ => "gradient",
            },
            () if is_in(SliceKind::Module) => "activation",
            () if free.is_some_and(|free| self.is_in_backward(trace, free)) => "activation",
            () if first_step.is_some_and(|step| is_held_beyond(*step, event, free)) => "parameter",
            () => "unknown",
        }
    }

    fn is_in_backward(&self, trace: &Trace, event: &MemoryEvent) -> bool {
        trace.open_slices(event.track, event.time_ns).any(|id| self.backward.contains(&id))
    }
}

/// When the last forward or backward pass ends in each of the optimizer's labels that hold some: a program that gives
/// `Optimizer.step` a closure, as Lightning does, computes there what it is to step by.
fn optimizer_begins(trace: &Trace) -> FxHashMap<SliceId, i64> {
    let process = |id: SliceId| trace.tracks[trace.slices.track[id.index()].index()].process;
    let mut labels: BTreeMap<ProcessId, Vec<SliceId>> = BTreeMap::new();
    let ids = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Optimizer);
    ids.for_each(|id| labels.entry(process(id)).or_default().push(id));
    labels.values_mut().for_each(|labels| labels.sort_by_key(|id| trace.slices.start_ns[id.index()]));
    let mut begins: FxHashMap<SliceId, i64> = FxHashMap::default();
    if labels.is_empty() {
        return begins;
    }
    // Autograd numbers the operators that it differentiates; the optimizer's own are none. Backward nodes may be on
    // threads of their own.
    let facts = trace.ops.slice.iter().zip(&trace.ops.info);
    for (pass, _) in facts.filter(|(_, info)| info.scope == 1 || info.sequence_number.is_some()) {
        let (Some(labels), span) = (labels.get(&process(*pass)), trace.slices.span(*pass)) else { continue };
        let before = labels.partition_point(|id| trace.slices.start_ns[id.index()] <= span.start_ns);
        let last = before.checked_sub(1).map(|at| labels[at]);
        for label in last.into_iter().flat_map(|last| trace.slices.with_ancestors(last)) {
            if trace.slices.kind(label) == SliceKind::Optimizer && trace.slices.span(label).end_ns >= span.end_ns {
                let begin_ns = begins.entry(label).or_insert(span.end_ns);
                *begin_ns = span.end_ns.max(*begin_ns);
            }
        }
    }
    begins
}

fn is_held_beyond(step: Span, event: &MemoryEvent, free: Option<&MemoryEvent>) -> bool {
    event.time_ns < step.start_ns && free.is_none_or(|free| free.time_ns >= step.end_ns)
}
