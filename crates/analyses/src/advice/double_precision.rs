//! Matrix products and convolutions compute with 64-bit floats.

use super::facts::{Facts, gpu, share_of_device};
use super::kernel_work::KernelWork;
use super::loops::Loop;
use super::step_operators::StepOp;
use super::tiny_operators::SHORT_NS;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule, settings};
use crate::roofline::devices::peaks;
use crate::temporal_breakdown::TemporalBreakdown;
use std::cmp::Reverse;
use stepscope_base::IntervalSet;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::{Process, SliceKind, Trace};

/// Share of the time of such operators.
const THRESHOLD: f64 = 0.10;
/// Share of a device's time.
const THRESHOLD_OF_DEVICE: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    code: "compute.double_precision",
    fault: "Computing in 64-bit floats",
    disproof: "Steps are as long with 32-bit floats.",
    evidence: "operators",
    to_do: "Compute with 32-bit floats: twice as many fit into a vector register and into memory, and devices compute with \
            them at twice to 64 times the rate, with `torch.set_float32_matmul_precision(\"high\")` in tensor cores. Arrays of NumPy are `float64` unless made otherwise: \
            `torch.as_tensor(array, dtype=torch.float32)`, `model.float()`.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let has_shapes = facts.trace.has_shapes();
    let is_known = |process: &Process| process.settings.parameters_float64.is_some();
    let knows_types = has_shapes || facts.trace.processes.iter().any(is_known);
    let of_devices = facts.kernels().ok().map(|devices| -> Vec<Advice> {
        devices.filter_map(|(device, work)| of_device(facts, device, work)).collect()
    });
    // The names of kernels say that they are of 64 bits, but not of all that they are not.
    if let Some(found) = of_devices.filter(|found| knows_types || !found.is_empty()) {
        return Ok(found);
    }
    if !knows_types {
        return Err(Lacks(
            "no types of operators' inputs, nor of parameters: `stepscope record` has the latter, and `--shapes` or `record_shapes=True` the former",
        ));
    }
    let loops = facts.host_operators()?;
    Ok(loops.into_iter().filter_map(|(of, operators)| of_loop(facts, of, operators, has_shapes)).collect())
}

/// By the peak rates of the device; where they are not known, half of the time is to gain at least.
fn of_device(facts: &Facts, device: &TemporalBreakdown, work: &KernelWork) -> Option<Advice> {
    // Kernels that run at the same time are a sum that can exceed the window.
    let double_ns = work.double.total_ns.min(device.compute_ns);
    let row = share_of_device(device, double_ns, THRESHOLD_OF_DEVICE).filter(|row| work.double.is_habit(row))?;
    let (op, op_ns) = work.double.most(facts.trace)?;
    let rates = facts.device(device).and_then(peaks).and_then(|peaks| peaks.double_and_single_flops_per_s());
    let rates = rates.filter(|(from, to)| 2 * from < *to);
    let faster = rates.map_or_else(String::new, |(from, to)| {
        format!(" 32-bit products have a peak rate {:.1} times as high.", to as f64 / from as f64)
    });
    let (from, to) = rates.unwrap_or((1, 2));
    let left_ns = i128::from(double_ns) * i128::from(from) / i128::from(to);
    let saved_ns = double_ns - left_ns as i64;
    Some(Advice {
        says: format!(
            "{} spends {} ({}) of {} in products, convolutions or attention of 64-bit floats, {} of it in {}.{faster}",
            gpu(device.device),
            format_ns(double_ns),
            format_ratio(row.measured_ratio?),
            format_ns(device.span_ns),
            format_ns(op_ns),
            quoted(op)
        ),
        count: Some(work.double.count),
        gain: Some((saved_ns, GainEstimate::PeakRates)),
        place: work.double.place(facts.trace),
        time: work.double.saved(saved_ns),
        ..row
    })
}

/// The processor computes at half the rate at most, so that half of the time is to gain at least.
fn of_loop(facts: &Facts, of: &Loop, operators: &[StepOp], has_shapes: bool) -> Option<Advice> {
    let trace = facts.trace;
    let computes = |op: &&StepOp| matches!(op.category, "matrix_product" | "convolution" | "recurrent" | "attention");
    let all: Vec<&StepOp> = operators.iter().filter(computes).collect();
    // Without the types of inputs, what most of the parameters are, the products of them are.
    let are_double = !has_shapes && settings::settings(facts, of).is_double();
    let is_double = |op: &&&StepOp| are_double || has_shapes && is_of_double(trace, op);
    let double: Vec<&StepOp> = all.iter().filter(is_double).copied().collect();
    let time = |operators: &[&StepOp]| -> IntervalSet {
        operators.iter().map(|op| op.span).collect::<IntervalSet>().intersect(&of.windows)
    };
    let (all_ns, double_ns) = (time(&all).total_ns(), time(&double).total_ns());
    // Of a short operator more is the call.
    let long: Vec<&StepOp> = double.iter().filter(|op| op.span.duration_ns() >= SHORT_NS).copied().collect();
    let saved_ns = time(&long).total_ns() / 2;
    let ratio = double_ns as f64 / all_ns.max(1) as f64;
    let row = of.row(double_ns).filter(|_| ratio > THRESHOLD)?;
    let longest = double.iter().max_by_key(|op| (op.span.duration_ns(), Reverse(op.slice)))?;
    let module = trace.slices.with_ancestors(longest.slice).find(|id| trace.slices.kind(*id) == SliceKind::Module);
    let module = module.map_or_else(String::new, |id| format!(" in {}", quoted(trace.slice_name(id))));
    let count = double.len() as i64;
    let how = match are_double {
        true => "with `float64`, as the parameters are",
        false => "with `float64`",
    };
    Some(Advice {
        says: format!(
            "{} a step compute {how}, {} of the time of matrix products, convolutions and attention: {} ({}) of {}, the \
             longest {}{module}.",
            counted(of.per_step(count), "operator"),
            format_ratio(ratio),
            format_ns(double_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
            quoted(trace.strings.get(longest.name))
        ),
        count: Some(count),
        gain: (saved_ns > 0).then_some((saved_ns, GainEstimate::Floor)),
        place: Some(Place::of(trace, longest.slice)),
        ..row
    })
}

fn is_of_double(trace: &Trace, op: &StepOp) -> bool {
    let inputs = trace.ops.get(op.slice).map(|info| trace.ops.inputs(info.inputs));
    inputs.is_some_and(|inputs| trace.strings.get(inputs.types).contains("\"double\""))
}

/// Whether the name of a product's kernel says that it computes with 64-bit floats.
pub(super) fn is_double(kernel: &str) -> bool {
    ["dgemm", "d884gemm", "gemm_f64f64"].iter().any(|part| kernel.contains(part))
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::{OpInfo, OpInputs, SliceId, Trace};

    /// Kernels of `d` take 2 ms of 20, those of `f` the rest.
    fn on_a_device(kernels: &str, of_d: &str) -> Trace {
        let columns =
            format!("rank 0 cpu 1 ddddf\nrank 0 launch 1 {kernels}E\nrank 0 stream 7 ....{kernels}{}", "E".repeat(36));
        let mut trace = typed(drawn_us(&columns, 500), of_d);
        trace.devices[0].name = Some("NVIDIA A100-SXM4-40GB".into());
        trace
    }

    #[test]
    fn on_devices_kernels_of_64_bit_products_are_said_with_what_the_peaks_would_gain() {
        // 19.5 of 156 TFLOP/s: an eighth of 2 ms is left.
        check(
            &on_a_device("C|C|C|C", "double"),
            "compute.double_precision",
            &[
                "1750 of 20000 peak_rates medium: GPU 0 spends 2.00 ms (10.0 %) of 20.0 ms in products, convolutions or attention of 64-bit floats, 2.00 ms of it in `aten::mm`. 32-bit products have a peak rate 8.0 times as high.",
            ],
        );
        check(&on_a_device("C|C|C|C", "float"), "compute.double_precision", &[]);
        // One product is no habit.
        check(&on_a_device("CCCC", "double"), "compute.double_precision", &[]);
    }

    #[test]
    fn without_types_of_inputs_the_names_of_kernels_say_it() {
        let of = |kernel: &str| {
            let mut trace = rename(on_a_device("C|C|C|C", "double"), "C", kernel);
            trace.ops.inputs.fill(OpInputs::UNKNOWN);
            trace
        };
        for kernel in [
            "volta_dgemm_128x64_nn",
            "void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x32_16x4_tn_align1>(Params)",
            "sm90_xmma_gemm_f64f64_f64f64_f64_nt_n_tilesize64x64x16_stage4_warpsize2x2x1_tensor16x8x8_execute_kernel__5x_cublas",
        ] {
            let rows = advice(&of(kernel), &Selection::default());
            assert_eq!(rows[0].rule.as_str(), "compute.double_precision", "{kernel}");
        }
        check(&of("volta_sgemm_128x64_nn"), "compute.double_precision", &[]);
    }

    /// Five steps of 1 ms, in which `d` and `f` are products; the type of the inputs of `d` is given.
    fn computing(cells: &str, of_d: &str) -> Trace {
        typed(drawn_us(&repeated(5, &[("cpu 1", cells)]), 100), of_d)
    }

    fn typed(mut trace: Trace, of_d: &str) -> Trace {
        let types = [of_d, "float"].map(|name| trace.strings.intern(&format!(r#"["{name}","{name}"]"#)));
        let dims = trace.strings.intern("[[2,2],[2,2]]");
        trace.ops.inputs = vec![OpInputs::UNKNOWN];
        trace.ops.inputs.extend(types.map(|types| OpInputs { types, dims, ..OpInputs::UNKNOWN }));
        let slices: Vec<SliceId> =
            trace.slices.ids().filter(|id| ["d", "f"].contains(&trace.slice_name(*id))).collect();
        for slice in slices {
            let inputs = stepscope_trace::OpInputsId(if trace.slice_name(slice) == "d" { 1 } else { 2 });
            trace.ops.slice.push(slice);
            trace.ops.info.push(OpInfo { inputs, ..OpInfo::default() });
        }
        rename(rename(trace, "d", "aten::mm"), "f", "aten::addmm")
    }

    #[test]
    fn products_of_64_bit_floats_are_said() {
        check(
            &computing("ffffddd...", "double"),
            "compute.double_precision",
            &[
                "750 of 5000 floor high: 1 operator a step compute with `float64`, 42.9 % of the time of matrix products, convolutions and attention: 1.50 ms (30.0 %) of 5.00 ms, the longest `aten::mm`.",
            ],
        );
        check(&computing("ffffddd...", "float"), "compute.double_precision", &[]);
        check(&computing("ffff......", "double"), "compute.double_precision", &[]);
    }

    #[test]
    fn without_types_of_inputs_those_of_the_parameters_count() {
        let trace = |of_float64: i64| {
            let mut trace = rename(drawn_us(&repeated(5, &[("cpu 1", "fffff.....")]), 100), "f", "aten::addmm");
            let settings = &mut trace.processes[0].settings;
            (settings.parameters, settings.parameters_float64) = (Some(10), Some(of_float64));
            trace
        };
        check(
            &trace(6),
            "compute.double_precision",
            &[
                "1250 of 5000 floor high: 1 operator a step compute with `float64`, as the parameters are, 100.0 % of the time of matrix products, convolutions and attention: 2.50 ms (50.0 %) of 5.00 ms, the longest `aten::addmm`.",
            ],
        );
        check(&trace(5), "compute.double_precision", &[]);
    }
}
