//! The backward pass runs modules of the forward pass again: activation checkpointing.

use super::facts::Facts;
use super::loops::Loop;
use super::memory_near_full::spare_memory;
use super::step_operators::Categories;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule, lines};
use crate::op_classes::AUTOGRAD;
use std::cmp::Reverse;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{SliceId, SliceKind};

/// What is checkpointed is called from here.
const CHECKPOINT: &str = "torch/utils/checkpoint.py";

pub(super) const RULE: Rule = Rule {
    code: "compute.recomputed",
    fault: "The backward pass computes the forward pass again",
    disproof: "Steps are as long without checkpointing.",
    evidence: "modules",
    to_do: "Activation checkpointing trades time for memory. Where memory is left, checkpoint fewer modules or none; or \
            save what is costly to compute and cheap to keep (`create_selective_checkpoint_contexts`).",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if !facts.trace.slices.kind.contains(&SliceKind::Module) {
        return Err(Lacks(
            "no calls of modules: `stepscope record` has them, and `with_stack=True` of PyTorch's profiler",
        ));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of)).collect())
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let mut categories = Categories::default();
    let mut is_backward =
        |id: SliceId| slices.kind(id) == SliceKind::Op && categories.of(trace, slices.name[id.index()]) == AUTOGRAD;
    let calls = of.slices(trace).filter(|id| slices.kind(*id) == SliceKind::Module);
    // The outermost module below a node of the backward pass.
    let mut is_again = |call: &SliceId| {
        let mut around = slices.with_ancestors(*call).skip(1);
        around
            .find(|id| slices.kind(*id) == SliceKind::Module || is_backward(*id))
            .is_some_and(|id| slices.kind(id) == SliceKind::Op)
    };
    let calls: Vec<SliceId> = calls.filter(|call| is_again(call)).collect();
    let longest = *calls.iter().max_by_key(|call| (slices.dur_ns[call.index()], Reverse(**call)))?;
    if calls.len() < of.steps.len() {
        return None;
    }
    let host: IntervalSet =
        IntervalSet::from_unsorted(calls.iter().map(|call| slices.span(*call)).collect::<Vec<Span>>());
    let line = lines::line_that_calls(facts, of.rank, &of.windows.subtract(&host), CHECKPOINT);
    let again = match of.device.is_empty() {
        true => host,
        false => launched(facts, of, &host),
    };
    // On a host, what checkpointing does beside is saved as well.
    let estimate = if of.device.is_empty() { GainEstimate::Floor } else { GainEstimate::Bound };
    let again = again.intersect(&of.windows);
    let again_ns = again.total_ns();
    let row = of.row(again_ns)?;
    let (count, steps) = (calls.len() as i64, of.steps.len() as i64);
    Some(Advice {
        says: format!(
            "The backward pass calls {} of the forward pass again in a step (mean of {steps}), the longest {}: {} ({}) of {}.{}",
            counted(of.per_step(count), "module"),
            quoted(trace.slice_name(longest)),
            format_ns(again_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
            spare_memory(facts, of.rank, None)
        ),
        count: Some(count),
        gain: Some((again_ns, estimate)),
        place: Some(Place::of(trace, longest)),
        line,
        time: again,
        ..row
    })
}

/// When devices run what is launched in some time of the host.
fn launched(facts: &Facts, of: &Loop, host: &IntervalSet) -> IntervalSet {
    let trace = facts.trace;
    let is_in = |slice: SliceId| {
        let at_ns = trace.slices.start_ns[slice.index()];
        let at = host.spans().partition_point(|span| span.end_ns <= at_ns);
        host.spans().get(at).is_some_and(|span| span.contains(at_ns))
    };
    let events = trace.device_events.iter().filter(|event| trace.devices[event.device.index()].rank == of.rank);
    let events = events.filter(|event| event.launch.is_some_and(is_in));
    IntervalSet::from_unsorted(events.map(|event| trace.slices.span(event.slice)).collect::<Vec<Span>>())
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::Trace;

    /// Five steps of 1 ms; `B` is a node of the backward pass.
    fn trained(module: &str, node: &str) -> Trace {
        let rows = [("cpu 1", node), ("module 1", module), ("cpu 1", ".a.....a..")];
        rename(drawn_us(&repeated(5, &rows), 100), "B", "MmBackward0")
    }

    #[test]
    fn modules_that_the_backward_pass_runs_again_are_said() {
        check(
            &trained("mmm...mmm.", "....BBBBBB"),
            "compute.recomputed",
            &[
                "1500 of 5000 floor high: The backward pass calls 1 module of the forward pass again in a step (mean of 5), the longest `m`: 1.50 ms (30.0 %) of 5.00 ms.",
            ],
        );
    }

    #[test]
    fn a_backward_pass_without_modules_is_healthy() {
        check(&trained("mmm.......", "....BBBBBB"), "compute.recomputed", &[]);
        check(&trained("mmmmmmmmmm", "....BBBBBB"), "compute.recomputed", &[]);
    }
}
