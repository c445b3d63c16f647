//! The operators of steps that rules judge by: the outermost ones that compute, on the thread that runs the steps.

use super::loops::Loop;
use crate::AnalysisContext;
use crate::op_classes::{AUTOGRAD, op_class};
use crate::op_tree::{NONE, OpTree};
use crate::optimizer_labels::OptimizerLabels;
use rustc_hash::FxHashMap;
use stepscope_base::{Span, StringId};
use stepscope_trace::{SliceId, SliceKind, Trace};

/// An operator that lies in no other one but nodes of the backward pass.
#[derive(Clone, Copy)]
pub(super) struct StepOp {
    pub(super) slice: SliceId,
    pub(super) span: Span,
    pub(super) name: StringId,
    /// The place of its step in the loop.
    pub(super) step: usize,
    pub(super) category: &'static str,
    /// What the framework does there, where it says so: the optimizer's step, or the wait for a batch.
    pub(super) inside: Option<(SliceKind, SliceId)>,
}

/// Those of a loop, in order.
pub(super) fn step_operators(context: &AnalysisContext<'_>, of: &Loop) -> Vec<StepOp> {
    let (trace, tree) = (context.trace, context.get::<OpTree>());
    let optimizer = context.get::<OptimizerLabels>();
    let Some(thread) = of.thread else { return Vec::new() };
    let lanes: Vec<_> = trace.lanes(thread).collect();
    let mut categories = Categories::default();
    // Whether a row lies in an operator that computes, or is one.
    let mut computes = vec![false; tree.len()];
    let mut found = Vec::new();
    for (row, (slice, parent)) in tree.slice.iter().zip(&tree.parent).enumerate() {
        let (slice, name) = (*slice, trace.slices.name[slice.index()]);
        let category = categories.of(trace, name);
        let is_inner = *parent != NONE && computes[*parent as usize];
        computes[row] = is_inner || category != AUTOGRAD;
        if is_inner || category == AUTOGRAD || !lanes.contains(&trace.slices.track[slice.index()]) {
            continue;
        }
        let span = trace.slices.span(slice);
        if let Some(step) = of.step_at(span.start_ns) {
            found.push(StepOp { slice, span, name, step, category, inside: inside(trace, optimizer, slice) });
        }
    }
    found.sort_by_key(|op| (op.span.start_ns, op.slice));
    found
}

fn inside(trace: &Trace, optimizer: &OptimizerLabels, slice: SliceId) -> Option<(SliceKind, SliceId)> {
    let start_ns = trace.slices.start_ns[slice.index()];
    let mut around = trace.slices.with_ancestors(slice).map(|id| (trace.slices.kind(id), id));
    around.find(|(kind, id)| *kind == SliceKind::DataLoader || optimizer.is_at(trace, *id, start_ns))
}

/// The categories of operators, looked up once a name.
#[derive(Default)]
pub(super) struct Categories(FxHashMap<StringId, &'static str>);

impl Categories {
    pub(super) fn of(&mut self, trace: &Trace, name: StringId) -> &'static str {
        self.0.entry(name).or_insert_with(|| op_class(trace.strings.get(name)).category)
    }
}
