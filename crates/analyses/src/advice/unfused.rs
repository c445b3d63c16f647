//! Much of the computing is in operators that do little with each element.

use super::facts::{Facts, gpu, share_of_device};
use super::kernel_work::KernelWork;
use super::words::quoted;
use super::{Advice, Judged, Lacks, Priority, Rule};
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::{format_ns, format_ratio};

const THRESHOLD: f64 = 0.25;
/// From here on the device does little else.
const MOST: f64 = 0.50;

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
    let rows: Vec<_> = facts.kernels()?.collect();
    if facts.trace.device_events.iter().all(|event| event.op.is_none()) {
        return Err(Lacks("no kernel is known to belong to an operator"));
    }
    Ok(rows.into_iter().filter_map(|(device, work)| of_device(facts, device, work)).collect())
}

/// Without a gain: how much a compiler saves hangs on what stands around each operator.
fn of_device(facts: &Facts, device: &TemporalBreakdown, work: &KernelWork) -> Option<Advice> {
    // Kernels that run at the same time are a sum that can exceed the window.
    let fusible_ns = work.fusible.total_ns.min(device.compute_ns);
    let row = share_of_device(device, fusible_ns, THRESHOLD)?;
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

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms, rename};

    #[test]
    fn a_quarter_of_the_time_in_elementwise_operators_is_said() {
        let trace = |kernel: usize, op: &str| {
            let (own, other) = ("C".repeat(kernel), "E".repeat(10 - kernel));
            let drawing = format!("rank 0 cpu 1 a\nrank 0 launch 1 |C|.E\nrank 0 stream 7 .{own}{other}");
            rename(drawn_ms(&drawing), "a", op)
        };
        let says = |time, share, op| {
            format!(
                "GPU 0 spends {time} ({share}) of 10.0 ms in operators that only read, change a little and write each element, or copy it; {time} of it in `{op}`."
            )
        };
        let medium = format!("- of 10000 - medium: {}", says("3.00 ms", "30.0 %", "aten::mul"));
        check(&trace(3, "aten::mul"), "compute.unfused", &[&medium]);
        let high = format!("- of 10000 - high: {}", says("6.00 ms", "60.0 %", "aten::copy_"));
        check(&trace(6, "aten::copy_"), "compute.unfused", &[&high]);
        check(&trace(2, "aten::mul"), "compute.unfused", &[]);
        check(&trace(3, "aten::mm"), "compute.unfused", &[]);
    }
}
