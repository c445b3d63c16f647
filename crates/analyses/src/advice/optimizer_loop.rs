//! The optimizer goes through the parameters one by one, with small operators for each.

use super::facts::Facts;
use super::loops::{Loop, median};
use super::step_operators::StepOp;
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Place, Rule};
use crate::op_classes::OPTIMIZER;
use crate::optimizer_labels::OptimizerLabels;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{SliceId, SliceKind};

/// Operators of a step that are not of all parameters together.
const LEAST_OPERATORS: i64 = 50;
/// Their median; longer ones have enough to do, and another loop around them would not help.
const SHORT_NS: i64 = 20_000;

pub(super) const RULE: Rule = Rule {
    code: "optimizer.for_loop",
    fault: "The optimizer goes from parameter to parameter",
    disproof: "Steps are as long with `fused=True` or `foreach=True`.",
    evidence: "operators",
    to_do: "Let one operator update all parameters: `fused=True` (Adam, AdamW, SGD and Adagrad have it, on CPUs as well) or \
            `foreach=True` of the optimizer, and `torch._foreach_…` in one of your own. Where threads of OpenMP sleep while \
            they wait (`OMP_WAIT_POLICY=PASSIVE`), `fused=True` wakes them for each parameter, and `foreach=True` takes less. \
            `zero_grad(set_to_none=True)`, the default, runs none.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.step_operators()?.filter_map(|(of, operators)| of_loop(facts, of, operators)).collect())
}

fn of_loop(facts: &Facts, of: &Loop, operators: &[StepOp]) -> Option<Advice> {
    let trace = facts.trace;
    // By the optimizer's label: what it runs.
    let mut labels: BTreeMap<SliceId, Vec<&StepOp>> = BTreeMap::new();
    for op in operators {
        if let Some((SliceKind::Optimizer, label)) = op.inside {
            labels.entry(label).or_default().push(op);
        }
    }
    let is_single = |op: &&&StepOp| op.category != OPTIMIZER;
    // Where most of them are of single parameters, it is a loop.
    labels.retain(|_, ops| 2 * ops.iter().filter(is_single).count() > ops.len());
    let single: Vec<&StepOp> = labels.values().flatten().filter(|op| is_single(op)).copied().collect();
    let (count, steps) = (single.len() as i64, of.steps.len() as i64);
    let median_ns = median(single.iter().map(|op| op.span.duration_ns()));
    if count < LEAST_OPERATORS * steps || median_ns >= SHORT_NS {
        return None;
    }
    // Python runs between them.
    let optimizer = facts.context.get::<OptimizerLabels>();
    let spans: Vec<Span> = labels.keys().map(|label| optimizer.span(trace, *label)).collect();
    let mut spans = IntervalSet::from_unsorted(spans).intersect(&of.windows);
    if !of.device.is_empty() {
        // While a device has something else to do, nothing waits for the host.
        spans = spans.subtract(&of.device).union(&facts.kernels_in(of, |slice| labels.contains_key(&slice)));
    }
    let loop_ns = spans.total_ns();
    let row = of.row(loop_ns)?;
    let longest = *labels.keys().max_by_key(|id| (trace.slices.dur_ns[id.index()], Reverse(**id)))?;
    Some(Advice {
        says: format!(
            "{} runs {} operators a step (mean of {steps}) for single parameters, of {} each (median), and {} {} ({}) \
             of {}.",
            quoted(trace.slice_name(longest)),
            format_count(of.per_step(count)),
            format_ns(median_ns),
            if of.device.is_empty() { "takes" } else { "takes or holds up the device" },
            format_ns(loop_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        gain: Some((loop_ns, GainEstimate::Bound)),
        place: Some(Place::of(trace, longest)),
        time: spans,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::{OpInfo, Trace};

    /// Five steps whose optimizer runs `f` and `g` for each of its parameters.
    fn updating(parameters: usize, column_us: usize) -> Trace {
        let ops = format!("{}{}", "m".repeat(400), "fg..".repeat(parameters));
        let label = format!("{}{}", ".".repeat(400), "o".repeat(4 * parameters));
        drawn_us(&repeated(5, &[("optimizer 1", &label), ("cpu 1", &ops)]), column_us)
    }

    #[test]
    fn an_optimizer_that_goes_from_parameter_to_parameter_is_said() {
        check(
            &updating(25, 10),
            "optimizer.for_loop",
            &[
                "5000 of 25000 bound high: `o` runs 50 operators a step (mean of 5) for single parameters, of 10.0 µs each (median), and takes 5.00 ms (20.0 %) of 25.0 ms.",
            ],
        );
    }

    #[test]
    fn a_device_that_waits_for_it_is_held_up_by_it() {
        let ops = format!("{}{}", "m".repeat(400), "fg..".repeat(25));
        let label = format!("{}{}", ".".repeat(400), "o".repeat(100));
        let launches = format!("M{}{}", ".".repeat(399), "FG..".repeat(25));
        let on_device = |of_m: usize| {
            let stream = format!(".{}{}{}", "M".repeat(of_m), ".".repeat(399 - of_m), ".FG.".repeat(25));
            let rows =
                [("optimizer 1", label.as_str()), ("cpu 1", &ops), ("launch 1", &launches), ("stream 7", &stream)];
            drawn_us(&repeated(5, &rows), 10)
        };
        check(
            &on_device(300),
            "optimizer.for_loop",
            &[
                "5000 of 25000 bound high: `o` runs 50 operators a step (mean of 5) for single parameters, of 10.0 µs each (median), and takes or holds up the device 5.00 ms (20.0 %) of 25.0 ms.",
            ],
        );
    }

    /// The same, in a label that begins with the step; of these operators autograd has numbers.
    fn in_closure(passes: &[&str]) -> Trace {
        let ops = format!("{}{}", "m".repeat(400), "fg..".repeat(25));
        let mut trace = drawn_us(&repeated(5, &[("optimizer 1", &"o".repeat(500)), ("cpu 1", &ops)]), 10);
        let slices = trace.slices.ids().filter(|id| passes.contains(&trace.slice_name(*id)));
        trace.ops.slice = slices.collect();
        trace.ops.info = vec![OpInfo { sequence_number: Some(3), ..OpInfo::default() }; trace.ops.slice.len()];
        trace
    }

    #[test]
    fn passes_in_a_closure_are_not_the_optimizer() {
        let trace = in_closure(&["m"]);
        check(
            &trace,
            "optimizer.for_loop",
            &[
                "5000 of 25000 bound high: `o` runs 50 operators a step (mean of 5) for single parameters, of 10.0 µs each (median), and takes 5.00 ms (20.0 %) of 25.0 ms.",
            ],
        );
        check(&in_closure(&["m", "f", "g"]), "optimizer.for_loop", &[]);
    }

    #[test]
    fn few_or_long_operators_and_those_of_all_parameters_are_no_such_loop() {
        check(&updating(24, 10), "optimizer.for_loop", &[]);
        check(&updating(25, 20), "optimizer.for_loop", &[]);
        let of_all = rename(rename(updating(25, 10), "f", "aten::_foreach_add_"), "g", "aten::_foreach_mul_");
        check(&of_all, "optimizer.for_loop", &[]);
    }
}
