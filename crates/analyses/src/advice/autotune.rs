//! Convolutions try their algorithms in the steps, as they do for each new shape while `torch.backends.cudnn.benchmark` is on.

use super::facts::Facts;
use super::loops::Loop;
use super::step_tail::WARM_UP;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{DeviceEventClass, SliceId, SliceKind};

/// Kernels of one call, and different ones among them: a convolution by itself takes one for each gradient, and some that
/// bring tensors into another layout.
const LEAST_KERNELS: usize = 12;
const LEAST_NAMES: usize = 4;
/// Steps behind the first two in which it happens; fewer are no habit.
const LEAST_STEPS: usize = 3;

pub(super) const RULE: Rule = Rule {
    code: "compute.autotune",
    fault: "Convolutions try their algorithms again in the steps",
    disproof: "Steps are as long with `torch.backends.cudnn.benchmark = False`.",
    evidence: "operators",
    to_do: "`torch.backends.cudnn.benchmark` has each new shape of inputs tried out with each algorithm. Pad or cut batches to a \
            few shapes, drop the last batch of a pass where it is smaller (`drop_last=True`), or turn it off.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    facts.devices()?;
    if facts.trace.ops.slice.is_empty() && facts.trace.device_events.iter().all(|event| event.op.is_none()) {
        return Err(Lacks("no operators: record activity of the CPU as well"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of)).collect())
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let mut convolves: FxHashMap<StringId, bool> = FxHashMap::default();
    // The kernels of each convolution behind the first two steps.
    let mut kernels: BTreeMap<SliceId, Vec<StringId>> = BTreeMap::new();
    let computing = facts.selection.device_events(trace).filter(|event| event.class == DeviceEventClass::Compute);
    for event in computing.filter(|event| trace.devices[event.device.index()].rank == of.rank) {
        let Some(op) = event.op else { continue };
        let name = slices.name[op.index()];
        if !*convolves.entry(name).or_insert_with(|| trace.strings.get(name).contains("convolution")) {
            continue;
        }
        if of.step_at(slices.start_ns[op.index()]).is_some_and(|step| step >= WARM_UP) {
            kernels.entry(op).or_default().push(slices.name[event.slice.index()]);
        }
    }
    let tries = |kernels: &Vec<StringId>| {
        kernels.len() >= LEAST_KERNELS && kernels.iter().collect::<BTreeSet<_>>().len() >= LEAST_NAMES
    };
    kernels.retain(|op, kernels| tries(kernels) && waits(facts, *op));
    let steps: BTreeSet<usize> = kernels.keys().filter_map(|op| of.step_at(slices.start_ns[op.index()])).collect();
    let longest = *kernels.keys().max_by_key(|op| (slices.dur_ns[op.index()], Reverse(**op)))?;
    let spans: Vec<Span> = kernels.keys().map(|op| slices.span(*op)).collect();
    let trying = IntervalSet::from_unsorted(spans).intersect(&of.windows);
    let row = of.row(trying.total_ns()).filter(|_| steps.len() >= LEAST_STEPS)?;
    let count = kernels.len() as i64;
    Some(Advice {
        says: format!(
            "{} in {} of {} steps behind the first two try algorithms, by {} and a wait for each, the longest in {}: {} ({}) of {}.",
            counted(count, "convolution"),
            steps.len(),
            of.steps.len() - WARM_UP,
            counted(kernels.values().map(|of| of.len() as i64).sum(), "kernel"),
            quoted(trace.slice_name(longest)),
            format_ns(trying.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        gain: Some((trying.total_ns(), GainEstimate::Bound)),
        place: Some(Place::of(trace, longest)),
        time: trying,
        ..row
    })
}

/// Whether the host waits for the device within a call, as it does to know how long an algorithm takes.
fn waits(facts: &Facts, op: SliceId) -> bool {
    let slices = &facts.trace.slices;
    let track = &facts.trace.tracks[slices.track[op.index()].index()];
    let end_ns = slices.span(op).end_ns;
    let inside = (op.0..track.slices.end).map(SliceId).take_while(|id| slices.start_ns[id.index()] < end_ns);
    inside.into_iter().any(|id| slices.kind(id) == SliceKind::HostSync)
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::Trace;

    /// Six steps of 2.4 ms. The convolution `c` launches each of `kernels`, and waits where `sync` does.
    fn convolved(kernels: &str, sync: &str) -> Trace {
        let ops = format!("{}......", "c".repeat(18));
        let launches = format!("{kernels}..C....");
        let stream = format!(".{kernels}..C...");
        let rows = [("cpu 1", ops.as_str()), ("launch 1", &launches), ("sync 1", sync), ("stream 7", &stream)];
        rename(drawn_us(&repeated(6, &rows), 100), "c", "aten::cudnn_convolution")
    }

    const TRIES: &str = "EFGIEFGIEFGIEFGI.";
    const WAITS: &str = ".................s......";

    #[test]
    fn algorithms_that_are_tried_in_every_step_are_said() {
        check(
            &convolved(TRIES, WAITS),
            "compute.autotune",
            &[
                "7200 of 14400 bound high: 4 convolutions in 4 of 4 steps behind the first two try algorithms, by 64 kernels and a wait for each, the longest in `aten::cudnn_convolution`: 7.20 ms (50.0 %) of 14.4 ms.",
            ],
        );
    }

    #[test]
    fn few_kernels_and_what_waits_for_nothing_are_no_search() {
        check(&convolved(TRIES, "........................"), "compute.autotune", &[]);
        check(&convolved("EEEEEEEEEEEEEEEE.", WAITS), "compute.autotune", &[]);
        check(&convolved("E.F.G.I.E.F.G.I..", WAITS), "compute.autotune", &[]);
    }
}
