//! Convolutions add a bias that the normalization behind them takes away again.

use super::facts::{Facts, gpu, share_of_device};
use super::kernel_work::Work;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::temporal_breakdown::TemporalBreakdown;
use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::{DeviceEventClass, FlowKind, SliceId, SliceKind, Trace};

/// Share of the device's time.
const THRESHOLD: f64 = 0.04;

/// The operators around the one that adds a bias, from inside.
const CONVOLUTIONS: [&str; 2] = ["aten::_convolution", "aten::convolution"];
/// What takes the mean of each channel away.
const NORMALIZATIONS: [&str; 2] = ["aten::batch_norm", "aten::instance_norm"];

pub(super) const RULE: Rule = Rule {
    code: "compute.convolution_bias",
    fault: "Convolutions add a bias that the next layer takes away",
    disproof: "Steps are as long with `bias=False`, and outputs differ.",
    evidence: "kernels",
    to_do: "Batch normalization takes the mean of each channel away, and any bias with it: `torch.nn.Conv2d(…, bias=False)` \
            in front of it.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let devices = facts.devices()?;
    let trace = facts.trace;
    let has_convolutions = trace.strings.find(CONVOLUTIONS[0]).is_some();
    if !has_convolutions && trace.ops.slice.is_empty() {
        return Err(Lacks("no operators: record activity of the CPU as well"));
    }
    if !has_convolutions {
        return Ok(Vec::new());
    }
    let added = added(facts);
    Ok(devices
        .iter()
        .filter_map(|device| of_device(trace, device, added.get(&(device.rank, device.device))?))
        .collect())
}

fn of_device(trace: &Trace, device: &TemporalBreakdown, added: &Work) -> Option<Advice> {
    let ns = added.total_ns.min(device.compute_ns);
    let row = share_of_device(device, ns, THRESHOLD).filter(|row| added.is_habit(row))?;
    let (name, of_name_ns) = added.most(trace)?;
    Some(Advice {
        says: format!(
            "{} spends {} ({}) of {} in {} that add a bias between a convolution and a normalization, or sum up its gradient, \
             {} of it in {}.",
            gpu(device.device),
            format_ns(ns),
            format_ratio(row.measured_ratio?),
            format_ns(device.span_ns),
            counted(added.count, "kernel"),
            format_ns(of_name_ns),
            quoted(name)
        ),
        count: Some(added.count),
        gain: Some((ns, GainEstimate::Bound)),
        place: added.place(trace),
        time: added.saved(ns),
        ..row
    })
}

/// The kernels that add such a bias, and those that sum up its gradient, by rank and device; named by operator.
fn added(facts: &Facts) -> FxHashMap<(u32, i64), Work> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let name = |id: SliceId| trace.slice_name(id);
    // Compared with each event.
    let [adds, sums] = ["aten::add_", "aten::sum"].map(|name| trace.strings.find(name));
    let mut work: FxHashMap<(u32, i64), Work> = FxHashMap::default();
    // What a backward pass takes: in training, the mean that a normalization takes away is that of the batch.
    let links = || trace.flows.iter().filter(|flow| flow.kind == FlowKind::ForwardBackward);
    let trained: FxHashSet<SliceId> = links().map(|flow| flow.from).collect();
    // Whether a normalization follows, of each convolution that was asked.
    let mut followed: FxHashMap<SliceId, bool> = FxHashMap::default();
    let mut forward: FxHashSet<SliceId> = FxHashSet::default();
    let computing =
        || facts.of_devices.selection.device_events(trace).filter(|event| event.class == DeviceEventClass::Compute);
    let mut add = |event: &stepscope_trace::DeviceEvent, op: SliceId| {
        let device = &trace.devices[event.device.index()];
        let of_device = work.entry((device.rank, device.ordinal)).or_default();
        of_device.add(event, slices.span(event.slice), slices.name[op.index()]);
    };
    for event in computing() {
        let Some(op) = event.op.filter(|op| Some(slices.name[op.index()]) == adds) else { continue };
        // Modules and labels stand around the outermost operator of the convolution.
        let around = slices.with_ancestors(op).skip(1);
        let around: Vec<SliceId> = around.take_while(|id| slices.kind(*id) == SliceKind::Op).collect();
        let is_convolution = around.first().is_some_and(|id| CONVOLUTIONS.contains(&name(*id)));
        let Some(outermost) = around.last().copied().filter(|_| is_convolution) else { continue };
        let is_trained = around.iter().any(|id| trained.contains(id));
        if is_trained && *followed.entry(outermost).or_insert_with(|| is_before_normalization(trace, outermost)) {
            add(&event, op);
            forward.extend(around);
        }
    }
    let nodes: FxHashSet<SliceId> = links().filter(|flow| forward.contains(&flow.from)).map(|flow| flow.to).collect();
    for event in computing() {
        let Some(op) = event.op.filter(|op| Some(slices.name[op.index()]) == sums) else { continue };
        let mut around = slices.with_ancestors(op).skip(1);
        if around.next().is_some_and(|id| name(id) == "aten::convolution_backward")
            && around.any(|id| nodes.contains(&id))
        {
            add(&event, op);
        }
    }
    work
}

/// Whether the operator behind `convolution` on its thread takes means away. `torch.nn.BatchNorm2d` counts its batches before.
fn is_before_normalization(trace: &Trace, convolution: SliceId) -> bool {
    let slices = &trace.slices;
    let track = &trace.tracks[slices.track[convolution.index()].index()];
    let end_ns = slices.span(convolution).end_ns;
    let next = |end_ns: i64| {
        let mut behind = (convolution.0..track.slices.end).map(SliceId);
        behind.find(|id| slices.start_ns[id.index()] >= end_ns && slices.kind(*id) == SliceKind::Op)
    };
    let behind = next(end_ns).and_then(|id| match trace.slice_name(id) {
        "aten::add_" => next(slices.span(id).end_ns),
        _ => Some(id),
    });
    behind.is_some_and(|id| NORMALIZATIONS.contains(&trace.slice_name(id)))
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::{Flow, FlowKind, Trace};

    /// Three convolutions, with a bias that `a` adds and `s` sums up the gradient of, each with `n` behind it.
    fn convolved(behind: &str) -> Trace {
        let rows = [
            ("cpu 1", "cccccanBBBBB."),
            ("cpu 1", "kkkkk..bbbbb."),
            ("cpu 1", ".v.a.....w.s."),
            ("launch 1", ".C.A.....E.S."),
            ("stream 7", "..CCCAA...EES"),
        ];
        let drawing: String = rows.iter().map(|(head, cells)| format!("rank 0 {head} {}\n", cells.repeat(3))).collect();
        let names = [
            ("c", "aten::conv2d"),
            ("k", "aten::_convolution"),
            ("a", "aten::add_"),
            ("n", behind),
            ("B", "autograd::engine::evaluate_function: ConvolutionBackward0"),
            ("b", "aten::convolution_backward"),
            ("s", "aten::sum"),
        ];
        let mut trace = names.iter().fold(drawn_us(&drawing, 1_000), |trace, (old, new)| rename(trace, old, new));
        let of = |name: &str| trace.slices.ids().filter(|id| trace.slice_name(*id) == name).collect::<Vec<_>>();
        let pairs = of("aten::conv2d").into_iter().zip(of(names[4].1));
        trace.flows = pairs.map(|(from, to)| Flow { from, to, kind: FlowKind::ForwardBackward }).collect();
        trace
    }

    #[test]
    fn a_bias_in_front_of_a_normalization_is_said_with_its_gradient() {
        check(
            &convolved("aten::batch_norm"),
            "compute.convolution_bias",
            &[
                "9000 of 37000 bound high: GPU 0 spends 9.00 ms (24.3 %) of 37.0 ms in 6 kernels that add a bias between a convolution and a normalization, or sum up its gradient, 6.00 ms of it in `aten::add_`.",
            ],
        );
    }

    #[test]
    fn a_bias_that_stays_is_healthy() {
        check(&convolved("aten::relu"), "compute.convolution_bias", &[]);
        // A normalization that is not trained takes away a mean that it knew before.
        let evaluated = Trace { flows: Vec::new(), ..convolved("aten::batch_norm") };
        check(&evaluated, "compute.convolution_bias", &[]);
    }
}
