//! What an allocation is for, as far as it can be told from where it was made and freed.

use crate::allocations::{Allocation, process_of};
use crate::optimizer_labels::OptimizerLabels;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use stepscope_base::Span;
use stepscope_trace::{MemoryEvent, ProcessId, SliceId, SliceKind, StepSource, Trace};

/// The facts that categories follow from.
pub(crate) struct Categories {
    /// Backward nodes, and the operators directly around them, which free what nodes have used.
    backward: FxHashSet<SliceId>,
    first_step: BTreeMap<ProcessId, Span>,
    optimizer: OptimizerLabels,
}

impl Categories {
    pub(crate) fn of(trace: &Trace) -> Self {
        if trace.memory.is_empty() {
            let optimizer = OptimizerLabels::default();
            return Self { backward: FxHashSet::default(), first_step: BTreeMap::new(), optimizer };
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
        Self { backward, first_step, optimizer: OptimizerLabels::of(trace) }
    }

    /// The category of an allocation that was made by `event`.
    pub(crate) fn category(&self, trace: &Trace, row: &Allocation, event: &MemoryEvent) -> &'static str {
        let around: Vec<SliceId> = trace.open_slices(event.track, event.time_ns).collect();
        let is_in = |kind: SliceKind| around.iter().any(|id| trace.slices.kind(*id) == kind);
        let is_optimizer = |id: &SliceId| self.optimizer.is_at(trace, *id, event.time_ns);
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

fn is_held_beyond(step: Span, event: &MemoryEvent, free: Option<&MemoryEvent>) -> bool {
    event.time_ns < step.start_ns && free.is_none_or(|free| free.time_ns >= step.end_ns)
}
