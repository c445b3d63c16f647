//! Modules run with gradients recorded that no backward pass takes.

use super::facts::Facts;
use super::loops::Loop;
use super::step_operators::Categories;
use super::words::{counted, quoted};
use super::{Advice, Judged, Lacks, Place, Priority, Rule};
use crate::op_classes::AUTOGRAD;
use std::cmp::Reverse;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{FlowKind, SliceId, SliceKind, Trace};

/// Share of the steps from which on it matters.
const MUCH: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    code: "eval.no_grad",
    fault: "Gradients are recorded that nothing uses",
    disproof: "Steps and memory are the same under `torch.no_grad()`.",
    evidence: "modules",
    to_do: "Evaluate under `torch.inference_mode()` or `torch.no_grad()`: operators then keep neither their inputs nor a \
            graph. `model.eval()` does not do that.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if !facts.trace.slices.kind.contains(&SliceKind::Module) {
        return Err(Lacks(
            "no calls of modules: `stepscope record` has them, and `with_stack=True` of PyTorch's profiler",
        ));
    }
    let taken = taken(facts.trace);
    // Without any, nobody knows whether none was recorded.
    if taken.is_empty() {
        return Err(Lacks("no backward pass is linked to its forward pass"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts.trace, of, &taken)).collect())
}

/// The operators whose gradients a backward pass takes, in order, as flows are.
pub(super) fn taken(trace: &Trace) -> Vec<SliceId> {
    let linked = trace.flows.iter().filter(|flow| flow.kind == FlowKind::ForwardBackward);
    linked.map(|flow| flow.from).collect()
}

/// The outermost calls of modules that record gradients, and none of them is `taken`.
pub(super) fn in_vain(trace: &Trace, of: &Loop, taken: &[SliceId]) -> Vec<SliceId> {
    let slices = &trace.slices;
    let mut categories = Categories::default();
    let mut is_node =
        |id: SliceId| slices.kind(id) == SliceKind::Op && categories.of(trace, slices.name[id.index()]) == AUTOGRAD;
    // Outermost ones, and none that the backward pass computes again.
    let mut is_outermost = |id: &SliceId| {
        let mut around = slices.with_ancestors(*id).skip(1);
        !around.any(|id| slices.kind(id) == SliceKind::Module || is_node(id))
    };
    let calls = of.slices(trace).filter(|id| slices.kind(*id) == SliceKind::Module);
    let calls: Vec<SliceId> = calls.filter(|id| is_outermost(id)).collect();
    calls.into_iter().filter(|call| is_in_vain(trace, *call, taken)).collect()
}

/// The one that takes longest; of several the first.
pub(super) fn longest(trace: &Trace, calls: &[SliceId]) -> Option<SliceId> {
    calls.iter().copied().max_by_key(|id| (trace.slices.dur_ns[id.index()], Reverse(*id)))
}

fn of_loop(trace: &Trace, of: &Loop, taken: &[SliceId]) -> Option<Advice> {
    let in_vain = in_vain(trace, of, taken);
    let (count, steps) = (in_vain.len() as i64, of.steps.len() as i64);
    if count < steps {
        return None;
    }
    let spans: Vec<Span> = in_vain.iter().map(|id| trace.slices.span(*id)).collect();
    let evaluating = IntervalSet::from_unsorted(spans).intersect(&of.windows);
    let row = of.row(evaluating.total_ns())?;
    let longest = longest(trace, &in_vain)?;
    Some(Advice {
        // Without a gain: the modules run either way.
        priority: if row.measured_ratio? > MUCH { Priority::Medium } else { Priority::Low },
        says: format!(
            "{} a step (mean of {steps}), the longest of {}, record gradients that no backward pass takes; they run for {} \
             ({}) of {}.",
            counted(of.per_step(count), "call"),
            quoted(trace.slice_name(longest)),
            format_ns(evaluating.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        place: Some(Place::of(trace, longest)),
        time: evaluating,
        ..row
    })
}

/// Whether operators of a call are recorded for a backward pass, and none takes any of them.
fn is_in_vain(trace: &Trace, call: SliceId, taken: &[SliceId]) -> bool {
    let track = &trace.tracks[trace.slices.track[call.index()].index()];
    let span = trace.slices.span(call);
    let inside =
        (call.0..track.slices.end).map(SliceId).take_while(|id| trace.slices.start_ns[id.index()] < span.end_ns);
    let (mut numbers, mut last) = (None::<(i64, i64)>, call);
    for id in inside {
        last = id;
        if let Some(number) = trace.ops.get(id).and_then(|info| info.sequence_number) {
            let (first, _) = *numbers.get_or_insert((number, number));
            numbers = Some((first, number));
        }
    }
    // Each operator that is recorded takes a number.
    let is_recorded = numbers.is_some_and(|(first, last)| last > first);
    let from = taken.partition_point(|id| *id < call);
    is_recorded && taken.get(from).is_none_or(|id| *id > last)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us};
    use stepscope_trace::{Flow, OpInfo};

    /// Steps of 20 columns. Operators `t` are taken by the node `B`, operators `e` by none; in grad mode these are recorded.
    pub(in crate::advice) fn evaluating(steps: usize, column_us: usize, ops: &str, is_recorded: bool) -> Trace {
        let rows = [("module 1", "mmmmnnnn............"), ("cpu 1", ops), ("cpu 1", "..........B.........")];
        let mut trace = drawn_us(&repeated(steps, &rows), column_us);
        let of = |name: &str| trace.slices.ids().filter(|id| trace.slice_name(*id) == name).collect::<Vec<_>>();
        let (taken, nodes, in_vain) = (of("t"), of("B"), of("e"));
        let flow = |(from, to): (&SliceId, &SliceId)| Flow { from: *from, to: *to, kind: FlowKind::ForwardBackward };
        trace.flows = taken.iter().zip(nodes.iter().cycle()).map(flow).collect();
        let mut ops: Vec<SliceId> = taken.into_iter().chain(in_vain.into_iter().filter(|_| is_recorded)).collect();
        ops.sort_unstable();
        let info = |number| OpInfo { sequence_number: Some(number), ..OpInfo::default() };
        (trace.ops.info, trace.ops.slice) = ((0..ops.len() as i64).map(info).collect(), ops);
        trace
    }

    #[test]
    fn calls_whose_gradients_nothing_takes_are_said() {
        check(
            &evaluating(5, 100, "ttttee.e............", true),
            "eval.no_grad",
            &[
                "- of 10000 - medium: 1 call a step (mean of 5), the longest of `n`, record gradients that no backward pass takes; they run for 2.00 ms (20.0 %) of 10.0 ms.",
            ],
        );
    }

    #[test]
    fn calls_that_record_none_or_are_taken_are_healthy() {
        check(&evaluating(5, 100, "ttttee.e............", false), "eval.no_grad", &[]);
        check(&evaluating(5, 100, "tttt.t.t............", true), "eval.no_grad", &[]);
    }
}
