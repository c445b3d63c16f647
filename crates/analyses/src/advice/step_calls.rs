//! The collectives that a loop asks for in its steps, and how long they hold it up.
//!
//! ```text
//! operators   ··aa·C·bb····C········      C asks for a collective
//! backend     ·······wwwww··wwwwww··      w carries it out
//! exposed     ·····█··██████·█████··      nothing else is done beside it
//! ```

use super::loops::Loop;
use super::step_operators::Categories;
use crate::AnalysisContext;
use crate::collectives::size_bytes;
use crate::device_busy::DeviceBusy;
use crate::host_threads::{Doing, Threads};
use crate::op_classes::AUTOGRAD;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_align::{Call, Calls};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{CollectiveKind, DeviceEventClass, SliceId, SliceKind};

/// The operators in which the reducer of `DistributedDataParallel` writes a gradient into a bucket, and a reduced one where
/// the parameter has it.
pub(super) const FILLS_BUCKET: &str = "torch::distributed::reducer::mul_out";
pub(super) const TAKES_GRADIENT: &str = "torch.distributed.ddp.reducer::copy_bucket_to_grad";

/// A collective that is asked for in a step.
pub(super) struct StepCall {
    /// The operator that asks for it.
    pub(super) slice: SliceId,
    pub(super) span: Span,
    /// The place of its step in the loop.
    pub(super) step: usize,
    pub(super) kind: Option<CollectiveKind>,
    /// Bytes of what it carries, as far as they are known.
    pub(super) sizes: Vec<i64>,
    /// Whether a node of the backward pass asks for it.
    pub(super) is_backward: bool,
    /// When it is carried out: by threads of the backend, and by devices.
    works: Vec<Span>,
    kernels: Vec<Span>,
}

impl StepCall {
    /// Whether it reduces gradients.
    pub(super) fn reduces_gradients(&self) -> bool {
        self.is_backward && self.kind == Some(CollectiveKind::AllReduce)
    }

    /// How long it is asked for and carried out.
    pub(super) fn total_ns(&self) -> i64 {
        let others = self.works.iter().chain(&self.kernels);
        others.fold(self.span.duration_ns(), |sum, span| sum.saturating_add(span.duration_ns()))
    }
}

/// Those of a loop, in order. What a backend carries out is of the call that says so, else of the last one of its kind
/// before.
pub(super) fn step_calls(context: &AnalysisContext<'_>, of: &Loop) -> Vec<StepCall> {
    let (trace, all) = (context.trace, context.get::<Calls>());
    let mut categories = Categories::default();
    let mut is_node = |id: SliceId| {
        trace.slices.kind(id) == SliceKind::Op && categories.of(trace, trace.slices.name[id.index()]) == AUTOGRAD
    };
    let is_own = |call: &&Call| trace.tracks[trace.slices.track[call.slice.index()].index()].process == of.process;
    let mut calls: Vec<StepCall> = Vec::new();
    let mut place_of: FxHashMap<SliceId, usize> = FxHashMap::default();
    for call in all.calls.iter().filter(is_own).filter(|call| call.is_asked()) {
        let span = trace.slices.span(call.slice);
        let Some(step) = of.step_at(span.start_ns) else { continue };
        calls.push(StepCall {
            slice: call.slice,
            span,
            step,
            kind: call.said.kind,
            sizes: size_bytes(trace, &call.said).into_iter().collect(),
            is_backward: trace.slices.with_ancestors(call.slice).skip(1).any(&mut is_node),
            works: call.work.map(|work| trace.slices.span(work)).into_iter().collect(),
            kernels: Vec::new(),
        });
    }
    calls.sort_by_key(|call| (call.span.start_ns, call.slice));
    place_of.extend(calls.iter().enumerate().map(|(at, call)| (call.slice, at)));
    for work in all.calls.iter().filter(is_own).filter(|call| !call.is_asked()) {
        let span = trace.slices.span(work.slice);
        let before = calls.partition_point(|call| call.span.start_ns <= span.start_ns);
        if let Some(call) = calls[..before].iter_mut().rev().find(|call| call.kind == work.said.kind) {
            call.sizes.extend(size_bytes(trace, &work.said));
            call.works.push(span);
        }
    }
    for event in trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Communication) {
        let call = event.op.and_then(|op| all.around(trace, op)).map(|at| all.calls[at].slice);
        if let Some(at) = call.and_then(|slice| place_of.get(&slice)) {
            calls[*at].kernels.push(trace.slices.span(event.slice));
        }
    }
    calls
}

/// The one that takes longest; of several the first.
pub(super) fn longest<'a>(calls: &[&'a StepCall]) -> Option<&'a StepCall> {
    calls.iter().copied().max_by_key(|call| (call.total_ns(), Reverse(call.slice)))
}

/// When some of the calls hold the steps up: on devices their kernels, while nothing is computed; without a device what asks
/// for them and carries them out, while the thread that runs the steps is in no other operator.
pub(super) fn exposed(context: &AnalysisContext<'_>, of: &Loop, calls: &[&StepCall]) -> IntervalSet {
    let trace = context.trace;
    let set = |spans: Vec<Span>| IntervalSet::from_unsorted(spans).intersect(&of.windows);
    if !of.device.is_empty() {
        let kernels = set(calls.iter().flat_map(|call| &call.kernels).copied().collect());
        let devices = trace.devices.iter().zip(context.get::<Vec<DeviceBusy>>());
        let of_rank = devices.filter(|(device, _)| device.rank == of.rank);
        return of_rank.fold(kernels, |left, (_, busy)| left.subtract(&busy.compute));
    }
    let asking = set(calls.iter().map(|call| call.span).collect());
    let works = set(calls.iter().flat_map(|call| &call.works).copied().collect());
    let operators = of.thread.map(|thread| context.get::<Threads>().get(trace, thread).doing(Doing::Op).clone());
    works.subtract(&operators.unwrap_or_default()).union(&asking)
}

/// Calls with roles and collectives, for tests.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Selection;
    use crate::advice::loops::loops;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{rename, stretched};
    use stepscope_trace::drawn::drawn_with_collectives;
    use stepscope_trace::{SliceRole, Trace};

    /// Five steps: `B` is a node of the backward pass, `F` a forward pass whose gradients are reduced, `s` a search for
    /// parameters, `r` and `w` an all-reduce of 1,000 floats and its work, `m` and `v` that of one float.
    pub(in crate::advice) fn communicating(column_us: usize, rows: &[(&str, &str)]) -> Trace {
        let said = |elements| ("allreduce", "Float", elements, None);
        let collectives = [
            ("r", SliceKind::Op, said(None)),
            ("w", SliceKind::Annotation, said(Some(1_000))),
            ("m", SliceKind::Op, said(None)),
            ("v", SliceKind::Annotation, said(Some(1))),
        ];
        let mut trace = drawn_with_collectives(&stretched(&repeated(5, rows), column_us), &collectives);
        let roles = [("F", SliceRole::DistributedForward), ("s", SliceRole::ParameterSearch)];
        trace.roles = roles.map(|(name, role)| (trace.strings.intern(name), role)).to_vec();
        trace.roles.sort_unstable();
        rename(trace, "B", "MmBackward0")
    }

    fn said(rows: &[(&str, &str)]) -> Vec<String> {
        let (trace, selection) = (communicating(100, rows), Selection::default());
        let context = AnalysisContext::new(&trace, &selection);
        let of = loops(&context, &selection).pop().expect("a loop");
        let calls = step_calls(&context, &of);
        let line = |call: &StepCall| {
            let exposed_us = exposed(&context, &of, &[call]).total_ns() / 1_000;
            let (name, sizes) = (trace.slice_name(call.slice), &call.sizes);
            format!("{name} in {}: {sizes:?}, {}, {exposed_us} us", call.step, call.reduces_gradients())
        };
        calls.iter().filter(|call| call.step == 1).map(line).collect()
    }

    #[test]
    fn what_a_backend_carries_out_is_of_the_last_call_before() {
        let rows = [
            ("cpu 1", "aaBBBBBBBB......m..........."),
            ("cpu 1", "....r...bb.................."),
            ("label 2", ".....wwwwwwww....vvv........"),
        ];
        assert_eq!(said(&rows), ["r in 1: [4000], true, 400 us", "m in 1: [4], false, 400 us"]);
    }

    #[test]
    fn kernels_are_of_the_call_that_launches_them() {
        let rows = [
            ("cpu 1", "aaBBBBBBBB.................."),
            ("cpu 1", "....rr......................"),
            ("launch 1", "C....N......................"),
            ("stream 7", "..CCCCCC...................."),
            ("stream 9", "......NNNNN................."),
        ];
        assert_eq!(said(&rows), ["r in 1: [], true, 300 us"]);
    }
}
