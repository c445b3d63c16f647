//! Matrix products and convolutions compute with 64-bit floats, on a CPU.

use super::facts::Facts;
use super::loops::Loop;
use super::step_operators::StepOp;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use std::cmp::Reverse;
use stepscope_base::IntervalSet;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::{SliceKind, Trace};

/// Share of the time of such operators.
const THRESHOLD: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    code: "compute.double_precision",
    fault: "Computing in 64-bit floats",
    disproof: "Steps are as long with 32-bit floats.",
    evidence: "operators",
    to_do: "Compute with 32-bit floats: twice as many fit into a vector register and into memory. Arrays of NumPy are \
            `float64` unless made otherwise: `torch.as_tensor(array, dtype=torch.float32)`, `model.float()`.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.step_operators()?;
    if !facts.trace.has_shapes() {
        return Err(Lacks("no types of operators' inputs"));
    }
    Ok(loops.filter(|(of, _)| of.device.is_empty()).filter_map(|(of, ops)| of_loop(facts.trace, of, ops)).collect())
}

/// The processor computes at half the rate at most, so that half of the time is to gain.
fn of_loop(trace: &Trace, of: &Loop, operators: &[StepOp]) -> Option<Advice> {
    let computes = |op: &&StepOp| matches!(op.category, "matrix_product" | "convolution" | "recurrent" | "attention");
    let all: Vec<&StepOp> = operators.iter().filter(computes).collect();
    let double: Vec<&StepOp> = all.iter().filter(|op| is_double(trace, op)).copied().collect();
    let time = |operators: &[&StepOp]| {
        let spans: IntervalSet = operators.iter().map(|op| op.span).collect();
        spans.intersect(&of.windows).total_ns()
    };
    let (all_ns, double_ns) = (time(&all), time(&double));
    let ratio = double_ns as f64 / all_ns.max(1) as f64;
    let row = of.row(double_ns).filter(|_| ratio > THRESHOLD)?;
    let longest = double.iter().max_by_key(|op| (op.span.duration_ns(), Reverse(op.slice)))?;
    let module = trace.slices.with_ancestors(longest.slice).find(|id| trace.slices.kind(*id) == SliceKind::Module);
    let module = module.map_or_else(String::new, |id| format!(" in {}", quoted(trace.slice_name(id))));
    let count = double.len() as i64;
    Some(Advice {
        says: format!(
            "{} a step compute with 64-bit floats, {} of the time of matrix products, convolutions and attention: {} ({}) of \
             {}, the longest {}{module}.",
            counted(of.per_step(count), "operator"),
            format_ratio(ratio),
            format_ns(double_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
            quoted(trace.strings.get(longest.name))
        ),
        count: Some(count),
        gain: Some((double_ns / 2, GainEstimate::PeakRates)),
        place: Some(Place::of(trace, longest.slice)),
        ..row
    })
}

fn is_double(trace: &Trace, op: &StepOp) -> bool {
    let inputs = trace.ops.get(op.slice).map(|info| trace.ops.inputs(info.inputs));
    inputs.is_some_and(|inputs| trace.strings.get(inputs.types).contains("\"double\""))
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::{OpInfo, OpInputs, SliceId, Trace};

    /// Five steps of 1 ms, in which `d` and `f` are products; the type of the inputs of `d` is given.
    fn computing(cells: &str, of_d: &str) -> Trace {
        let mut trace = drawn_us(&repeated(5, &[("cpu 1", cells)]), 100);
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
                "750 of 5000 peak_rates high: 1 operator a step compute with 64-bit floats, 42.9 % of the time of matrix products, convolutions and attention: 1.50 ms (30.0 %) of 5.00 ms, the longest `aten::mm`.",
            ],
        );
        check(&computing("ffffddd...", "float"), "compute.double_precision", &[]);
        check(&computing("ffff......", "double"), "compute.double_precision", &[]);
    }
}
