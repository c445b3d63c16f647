//! Where the optimizer's labels are the optimizer. A program that gives `Optimizer.step` a closure, as Lightning does,
//! computes in it what to step by: the optimizer begins where the last forward or backward pass in it ends.
//!
//! ```text
//! label       oooooooooooooooooo
//! operators   ··fffff·bbbbbbb·uu
//! optimizer   ·················██
//! ```

use crate::AnalysisContext;
use crate::context::Shared;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::Span;
use stepscope_trace::{ProcessId, SliceId, SliceKind, Trace};

/// When the optimizer begins in each of its labels that hold forward or backward passes.
#[derive(Default)]
pub(crate) struct OptimizerLabels(FxHashMap<SliceId, i64>);

impl Shared for OptimizerLabels {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self::of(context.trace)
    }
}

impl OptimizerLabels {
    pub(crate) fn of(trace: &Trace) -> Self {
        Self(begins(trace))
    }

    /// Whether a slice is a label of the optimizer that is open, and itself at work, at a time.
    pub(crate) fn is_at(&self, trace: &Trace, slice: SliceId, time_ns: i64) -> bool {
        trace.slices.kind(slice) == SliceKind::Optimizer && self.span(trace, slice).start_ns <= time_ns
    }

    /// What of a label is the optimizer.
    pub(crate) fn span(&self, trace: &Trace, label: SliceId) -> Span {
        let span = trace.slices.span(label);
        self.0.get(&label).map_or(span, |begin_ns| Span::new(*begin_ns, span.end_ns))
    }
}

fn begins(trace: &Trace) -> FxHashMap<SliceId, i64> {
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
