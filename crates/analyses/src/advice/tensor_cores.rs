//! Matrix products, convolutions and attention run in kernels that use no tensor cores, on a device that has them.

use super::facts::{Facts, gpu, share_of_device};
use super::kernel_work::KernelWork;
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::roofline::devices::peaks;
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::Device;

/// The first capability with tensor cores. AMD's drivers give numbers of another meaning; their devices are known by
/// their wide warps.
const LEAST_CAPABILITY: (u32, u32) = (7, 0);
const AMD_WARP_SIZE: u32 = 64;
const THRESHOLD: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    code: "compute.tensor_cores",
    fault: "Matrix products leave the tensor cores unused",
    disproof: "The same products take as long in 16 bits: memory bounds them.",
    evidence: "operators",
    to_do: "Compute in 16 bits (`torch.autocast(\"cuda\", dtype=torch.bfloat16)`, `float16` before capability 8.0), or \
            allow TF32 from 8.0 on: `torch.set_float32_matmul_precision(\"high\")`, \
            `torch.backends.cudnn.allow_tf32 = True`.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let rows: Vec<_> = facts.kernels()?.collect();
    let has_tensor_cores = |device: &TemporalBreakdown| facts.device(device).is_some_and(has_tensor_cores);
    if !rows.iter().any(|(device, _)| has_tensor_cores(device)) {
        return Err(Lacks("no device that is known to have tensor cores"));
    }
    let judged = rows.into_iter().filter(|(device, _)| has_tensor_cores(device));
    Ok(judged.filter_map(|(device, work)| of_device(facts, device, work)).collect())
}

fn has_tensor_cores(device: &Device) -> bool {
    let is_amd = device.warp_size == Some(AMD_WARP_SIZE);
    !is_amd && device.compute_capability.is_some_and(|capability| capability >= LEAST_CAPABILITY)
}

fn of_device(facts: &Facts, device: &TemporalBreakdown, work: &KernelWork) -> Option<Advice> {
    // Kernels that run at the same time are a sum that can exceed the window.
    let plain_ns = work.plain.total_ns.min(device.compute_ns);
    let row = share_of_device(device, plain_ns, THRESHOLD).filter(|row| work.plain.is_habit(row))?;
    let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
    let (plain, ratio) = (format_ns(plain_ns), format_ratio(row.measured_ratio?));
    let (op, op_ns) = work.plain.most(facts.trace)?;
    let rates = facts.device(device).and_then(peaks).and_then(|peaks| peaks.plain_and_tensor_flops_per_s());
    let faster = rates.map_or_else(String::new, |(plain, tensor)| {
        format!(" 16-bit products have a peak rate {:.1} times as high.", tensor as f64 / plain as f64)
    });
    let op_time = format_ns(op_ns);
    let saved_ns = rates.map(|(plain, tensor)| gain_ns(plain_ns, plain, tensor));
    Some(Advice {
        says: format!(
            "{gpu} spends {plain} ({ratio}) of {window} in products, convolutions or attention without tensor cores, \
             {op_time} of it in {}.{faster}",
            quoted(op)
        ),
        count: Some(work.plain.count),
        gain: saved_ns.map(|ns| (ns, GainEstimate::PeakRates)),
        place: work.plain.place(facts.trace),
        time: saved_ns.map_or_else(Default::default, |ns| work.plain.saved(ns)),
        ..row
    })
}

/// What `ns` at one rate take less at another; nothing when that is lower.
fn gain_ns(ns: i64, from_per_s: i64, to_per_s: i64) -> i64 {
    let left = i128::from(ns) * i128::from(from_per_s) / i128::from(to_per_s.max(1));
    (i128::from(ns) - left).max(0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::tests::{check, drawn_us, rename, with_events};
    use stepscope_trace::Trace;

    const FOUR: &str = "C|C|C|C";

    /// Kernels of an operator, of 20 ms with another one; a column is half a millisecond.
    fn products(kernels: &str, op: &str) -> Trace {
        let count = kernels.matches('C').count();
        let drawing = format!(
            "rank 0 cpu 1 {}\nrank 0 launch 1 {kernels}.D\nrank 0 stream 7 {}{kernels}{}",
            "a".repeat(count),
            ".".repeat(count),
            "D".repeat(40 - count)
        );
        let mut trace = rename(drawn_us(&drawing, 500), "a", op);
        trace.devices[0].compute_capability = Some((8, 0));
        trace.devices[0].name = Some("NVIDIA A100-SXM4-40GB".into());
        trace
    }

    #[test]
    fn products_without_tensor_cores_are_said_with_what_the_peaks_would_gain() {
        // 19.5 of 312 TFLOP/s: a sixteenth of 2 ms is left.
        check(
            &products(FOUR, "aten::mm"),
            "compute.tensor_cores",
            &[
                "1875 of 20000 peak_rates medium: GPU 0 spends 2.00 ms (10.0 %) of 20.0 ms in products, convolutions or attention without tensor cores, 2.00 ms of it in `aten::mm`. 16-bit products have a peak rate 16.0 times as high.",
            ],
        );
        check(&products("C|C", "aten::mm"), "compute.tensor_cores", &[]);
        check(&products(FOUR, "aten::add"), "compute.tensor_cores", &[]);
        // One product is no habit, however long.
        check(&products("CCCCCCCC", "aten::mm"), "compute.tensor_cores", &[]);
    }

    #[test]
    fn kernels_and_devices_tell_whether_there_are_tensor_cores_to_use() {
        let used = with_events(products(FOUR, "aten::mm"), |_, event| event.uses_tensor_cores = true);
        check(&used, "compute.tensor_cores", &[]);
        let mut old = products(FOUR, "aten::mm");
        old.devices[0].compute_capability = Some((6, 1));
        check(&old, "compute.tensor_cores", &[]);
        let mut amd = products(FOUR, "aten::mm");
        amd.devices[0].warp_size = Some(64);
        check(&amd, "compute.tensor_cores", &[]);
    }

    #[test]
    fn a_lower_rate_gains_nothing() {
        assert_eq!((gain_ns(100, 1, 4), gain_ns(100, 4, 1), gain_ns(100, 1, 0)), (75, 0, 0));
    }
}
