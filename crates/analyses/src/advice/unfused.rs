//! Much of the computing is in operators that do little with each element.

use super::facts::{Facts, gpu, share_of_device};
use super::kernel_work::KernelWork;
use super::loops::{Loop, median};
use super::step_operators::StepOp;
use super::tiny_operators::SHORT_NS;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Priority, Rule};
use crate::module_contexts::ModuleContexts;
use crate::op_classes::ELEMENTWISE;
use crate::temporal_breakdown::TemporalBreakdown;
use std::cmp::Reverse;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};

const THRESHOLD: f64 = 0.25;
/// From here on the device does little else.
const MOST: f64 = 0.50;
/// Operators of a chain; fewer are left to themselves.
const LEAST_IN_CHAIN: usize = 4;
/// Names of a chain that are said.
const NAMED: usize = 4;

pub(super) const RULE: Rule = Rule {
    code: "compute.unfused",
    fault: "Much of the time is in elementwise operators",
    disproof: "Steps are as long when compiled (`torch.compile`).",
    evidence: "operators",
    to_do: "Let a compiler put them into one kernel, which reads and writes memory once: `torch.compile`, or fused \
            operators (`F.scaled_dot_product_attention`, `F.rms_norm`, optimizers with `fused=True`). Avoid copies: \
            `.contiguous()`, changes of type, tensors that are concatenated only to be split.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    if facts.trace.device_events.is_empty() {
        return Ok(facts.step_operators()?.filter_map(|(of, operators)| of_loop(facts, of, operators)).collect());
    }
    let rows: Vec<_> = facts.kernels()?.collect();
    if facts.trace.device_events.iter().all(|event| event.op.is_none()) {
        return Err(Lacks("no kernel is known to belong to an operator: record activity of the CPU as well"));
    }
    Ok(rows.into_iter().filter_map(|(device, work)| of_device(facts, device, work)).collect())
}

/// Without a gain: how much a compiler saves hangs on what stands around each operator.
fn of_device(facts: &Facts, device: &TemporalBreakdown, work: &KernelWork) -> Option<Advice> {
    // Kernels that run at the same time are a sum that can exceed the window.
    let fusible_ns = work.fusible.total_ns.min(device.compute_ns);
    let row = share_of_device(device, fusible_ns, THRESHOLD).filter(|row| work.fusible.is_habit(row))?;
    let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
    let (fusible, ratio) = (format_ns(fusible_ns), format_ratio(row.measured_ratio?));
    let (op, op_ns) = work.fusible.most(facts.trace)?;
    let op_time = format_ns(op_ns);
    Some(Advice {
        priority: if row.measured_ratio? > MOST { Priority::High } else { Priority::Medium },
        says: format!(
            "{gpu} spends {fusible} ({ratio}) of {window} in operators that only read, change a little and write each \
             element, or copy it; {op_time} of it in {}.",
            quoted(op)
        ),
        count: Some(work.fusible.count),
        place: work.fusible.place(facts.trace),
        ..row
    })
}

/// On a CPU: chains of operators, each of which reads and writes everything again.
fn of_loop(facts: &Facts, of: &Loop, operators: &[StepOp]) -> Option<Advice> {
    let trace = facts.trace;
    let modules = ModuleContexts::of(trace);
    let place = |op: &StepOp| (op.step, op.category == ELEMENTWISE && op.inside.is_none(), modules.get(op.slice));
    let chains: Vec<&[StepOp]> = operators
        .chunk_by(|a, b| place(a) == place(b))
        .filter(|chain| chain.len() >= LEAST_IN_CHAIN && place(&chain[0]).1)
        .collect();
    let all = || chains.iter().copied().flatten();
    // Loops over short ones have a rule of their own.
    if median(all().map(|op| op.span.duration_ns())) < SHORT_NS {
        return None;
    }
    let spans = IntervalSet::from_unsorted(all().map(|op| op.span).collect::<Vec<Span>>()).intersect(&of.windows);
    let row = of.row(spans.total_ns()).filter(|row| row.measured_ratio.is_some_and(|ratio| ratio > THRESHOLD))?;
    // One that does all of a chain takes as long as the longest at least.
    let dur_ns = |op: &StepOp| op.span.duration_ns();
    let longest_ns: i64 = chains.iter().filter_map(|chain| chain.iter().map(dur_ns).max()).sum();
    let total_ns = |chain: &[StepOp]| chain.iter().map(dur_ns).sum::<i64>();
    let most = chains.iter().max_by_key(|chain| (total_ns(chain), Reverse(chain[0].slice)))?;
    let names: Vec<String> = most.iter().take(NAMED).map(|op| quoted(trace.strings.get(op.name))).collect();
    let (count, steps) = (all().count() as i64, of.steps.len());
    let gain_ns = (spans.total_ns() - longest_ns).max(0);
    Some(Advice {
        says: format!(
            "{} a step (mean of {steps}) change each element in turn, the most time after each other {}…: {} ({}) of {}.",
            counted(of.per_step(count), "operator"),
            names.join(", "),
            format_ns(spans.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        threshold_ratio: Some(THRESHOLD),
        gain: (gain_ns > 0).then_some((gain_ns, GainEstimate::Bound)),
        place: Some(Place::of(trace, most[0].slice)),
        time: spans,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::Trace;

    /// Five steps of 2 ms.
    fn chained(ops: &str) -> Trace {
        let trace = drawn_us(&repeated(5, &[("cpu 1", ops)]), 100);
        let names = [("p", "aten::pow"), ("m", "aten::mul"), ("a", "aten::add"), ("l", "aten::linear")];
        names.into_iter().fold(trace, |trace, (old, new)| rename(trace, old, new))
    }

    #[test]
    fn chains_of_elementwise_operators_on_a_cpu_are_said() {
        check(
            &chained("lllllppmmamm..lll..."),
            "compute.unfused",
            &[
                "2500 of 10000 bound high: 4 operators a step (mean of 5) change each element in turn, the most time after each other `aten::pow`, `aten::mul`, `aten::add`, `aten::mul`…: 3.50 ms (35.0 %) of 10.0 ms.",
            ],
        );
    }

    #[test]
    fn single_elementwise_operators_are_healthy() {
        check(&chained("lllllppplllmmmaaal.."), "compute.unfused", &[]);
    }

    #[test]
    fn a_quarter_of_the_time_in_elementwise_operators_is_said() {
        // Kernels of 100 us, of 10 ms with another one.
        let trace = |kernels: &str, op: &str| {
            let count = kernels.matches('C').count();
            let (host, idle, other) = ("a".repeat(count), ".".repeat(count), "E".repeat(100 - count));
            let drawing =
                format!("rank 0 cpu 1 {host}\nrank 0 launch 1 {kernels}.E\nrank 0 stream 7 {idle}{kernels}{other}");
            rename(drawn_us(&drawing, 100), "a", op)
        };
        let many = |count| "C|".repeat(count);
        let says = |time, share, op| {
            format!(
                "GPU 0 spends {time} ({share}) of 10.0 ms in operators that only read, change a little and write each element, or copy it; {time} of it in `{op}`."
            )
        };
        let medium = format!("- of 10000 - medium: {}", says("3.00 ms", "30.0 %", "aten::mul"));
        check(&trace(&many(30), "aten::mul"), "compute.unfused", &[&medium]);
        let high = format!("- of 10000 - high: {}", says("6.00 ms", "60.0 %", "aten::copy_"));
        check(&trace(&many(60), "aten::copy_"), "compute.unfused", &[&high]);
        check(&trace(&many(20), "aten::mul"), "compute.unfused", &[]);
        check(&trace(&many(30), "aten::mm"), "compute.unfused", &[]);
        // One kernel is no habit.
        check(&trace(&"C".repeat(30), "aten::mul"), "compute.unfused", &[]);
    }
}
