//! The optimizer fills gradients with zeros on a device, to which the backward pass then adds. Without one, memory that is let
//! go has to be mapped again, which takes as long.

use super::facts::Facts;
use super::loops::Loop;
use super::step_operators::StepOp;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Place, Rule};
use crate::op_classes::FILL;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::{SliceId, SliceKind};

/// How PyTorch labels the call.
const LABEL: &str = "Optimizer.zero_grad#";

pub(super) const RULE: Rule = Rule {
    code: "optimizer.zero_grad",
    fault: "Gradients are filled with zeros",
    disproof: "Steps are as long with `set_to_none=True`.",
    evidence: "operators",
    to_do: "Let gradients go: `optimizer.zero_grad(set_to_none=True)`, the default since PyTorch 2. The backward pass then \
            writes them, and does not read zeros to add to.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.devices()?;
    Ok(facts.step_operators()?.filter_map(|(of, operators)| of_loop(facts, of, operators)).collect())
}

fn of_loop(facts: &Facts, of: &Loop, operators: &[StepOp]) -> Option<Advice> {
    let trace = facts.trace;
    let label_of = |op: &StepOp| match op.inside {
        Some((SliceKind::Optimizer, label)) if trace.slice_name(label).starts_with(LABEL) => Some(label),
        _ => None,
    };
    let fills = operators.iter().filter(|op| op.category == FILL);
    let fills: Vec<(SliceId, &StepOp)> = fills.filter_map(|op| Some((label_of(op)?, op))).collect();
    let (count, steps) = (fills.len() as i64, of.steps.len() as i64);
    if count < steps {
        return None;
    }
    let labels: BTreeSet<SliceId> = fills.iter().map(|(label, _)| *label).collect();
    let time = facts.device_work_in(of, |slice| labels.contains(&slice));
    let row = of.row(time.total_ns())?;
    let longest = *labels.iter().max_by_key(|id| (trace.slices.dur_ns[id.index()], Reverse(**id)))?;
    Some(Advice {
        says: format!(
            "{} fills gradients with zeros by {} a step (mean of {steps}): {} ({}) of {}.",
            quoted(trace.slice_name(longest)),
            counted(of.per_step(count), "operator"),
            format_ns(time.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        gain: Some((time.total_ns(), GainEstimate::Bound)),
        place: Some(Place::of(trace, longest)),
        time,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::Trace;

    /// Five steps of 1 ms, in which the optimizer's label `o` holds the operators `f`.
    fn zeroing(label: &str, ops: &str) -> Trace {
        let rows =
            [("optimizer 1", "oooo......"), ("cpu 1", ops), ("launch 1", ".SE....C.."), ("stream 7", "..SE.CCC..")];
        rename(rename(drawn_us(&repeated(5, &rows), 100), "o", label), "f", "aten::zero_")
    }

    #[test]
    fn gradients_that_a_device_fills_with_zeros_are_said() {
        check(
            &zeroing("Optimizer.zero_grad#SGD.zero_grad", ".ff....m.."),
            "optimizer.zero_grad",
            &[
                "1000 of 5000 bound high: `Optimizer.zero_grad#SGD.zero_grad` fills gradients with zeros by 1 operator a step (mean of 5): 1.00 ms (20.0 %) of 5.00 ms.",
            ],
        );
    }

    #[test]
    fn other_labels_and_other_operators_are_healthy() {
        check(&zeroing("Optimizer.step#SGD.step", ".ff....m.."), "optimizer.zero_grad", &[]);
        check(&zeroing("Optimizer.zero_grad#SGD.zero_grad", ".mm....f.."), "optimizer.zero_grad", &[]);
    }
}
