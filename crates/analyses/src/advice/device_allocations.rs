//! Steps take memory from the device's driver and give it back, while the device idles.

use super::facts::Facts;
use super::lines::line_at;
use super::loops::Loop;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::windows::contains;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{SliceId, SliceRole};

/// Steps at the beginning that are not judged: the allocator takes what it needs there.
const WARM_UP: usize = 2;

pub(super) const RULE: Rule = Rule {
    code: "memory.device_allocations",
    fault: "Steps take memory from the driver and give it back",
    disproof: "Steps are as long when the allocator keeps what it has.",
    evidence: "idle_causes",
    to_do: "Let PyTorch's allocator keep its memory: no `torch.cuda.empty_cache()` in the step, sizes of batches that \
            repeat or are padded to a few, `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, and less memory in use \
            where the allocator has to give back to find room. A library that calls `cudaMalloc` itself wants a pool.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if !facts.trace.slices.kind.iter().any(|kind| kind.is_api_call()) {
        return Err(Lacks("no calls of a device's API: record activity of the CPU as well"));
    }
    Ok(loops.iter().filter(|of| of.steps.len() > WARM_UP).filter_map(|of| of_loop(facts, of)).collect())
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let judged: IntervalSet = of.steps[WARM_UP..].iter().map(|step| step.span).collect();
    let is_it = |id: &SliceId| {
        trace.role(*id) == Some(SliceRole::DeviceAllocation) && contains(judged.spans(), slices.start_ns[id.index()])
    };
    let calls: Vec<SliceId> = of.slices(trace).filter(is_it).collect();
    if calls.len() < of.steps.len() - WARM_UP {
        return None;
    }
    let spans = IntervalSet::from_unsorted(calls.iter().map(|id| slices.span(*id)).collect::<Vec<Span>>());
    let gaps = judged.subtract(&of.device);
    let idle = spans.intersect(&gaps);
    let row = of.row(idle.total_ns())?;
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    calls.iter().for_each(|id| *by_name.entry(trace.slice_name(*id)).or_default() += slices.dur_ns[id.index()]);
    let (name, _) = by_name.into_iter().max_by_key(|(name, ns)| (*ns, Reverse(*name)))?;
    // Of a whole gap no other rule is asked why: without the call the host would have launched ahead.
    let time = gaps.spans().iter().copied().filter(|gap| !idle.clip(*gap).is_empty()).collect();
    let longest = *calls.iter().max_by_key(|id| (slices.dur_ns[id.index()], Reverse(**id)))?;
    Some(Advice {
        says: format!(
            "{} a step take memory from the device's driver or give it back, most of the time {}: the device idles {} ({}) \
             of {} meanwhile.",
            counted(of.per_step(calls.len() as i64), "call"),
            quoted(name),
            format_ns(idle.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(calls.len() as i64),
        gain: Some((idle.total_ns(), GainEstimate::Floor)),
        place: Some(Place::of(trace, longest)),
        line: line_at(facts, Some(of.rank), &idle),
        time,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use crate::advice::{Advice, advice};
    use stepscope_trace::{SliceRole, Trace};

    /// Seven steps of 1 ms; `m` is a call that takes memory.
    fn allocating(calls: &str, stream: &str) -> Trace {
        let rows = [("launch 1", calls), ("stream 7", stream)];
        let mut trace = rename(drawn_us(&repeated(7, &rows), 100), "m", "cudaMalloc");
        let name = trace.strings.intern("cudaMalloc");
        trace.roles.push((name, SliceRole::DeviceAllocation));
        trace
    }

    #[test]
    fn memory_that_every_step_takes_from_the_driver_is_said_for_as_long_as_the_device_idles() {
        check(
            &allocating("C.mmm...C.", ".CC....CC."),
            "memory.device_allocations",
            &[
                "1000 of 7000 floor high: 1 call a step take memory from the device's driver or give it back, most of the time `cudaMalloc`: the device idles 1.00 ms (14.3 %) of 7.00 ms meanwhile.",
            ],
        );
    }

    #[test]
    fn the_whole_gap_belongs_to_the_call() {
        // Of a gap of 400 us in each of five steps that are judged, and two that are not, 200 are the call's, and 200 follow
        // it. Another gap of 100 us begins a step.
        let trace = allocating("CC.mm..C..", ".CC....CCC");
        let rows = advice(&trace, &Selection::default());
        let us = |row: &Advice| [row.gain_ns(), row.own_gain_ns].map(|ns| ns.unwrap_or(0) / 1_000);
        assert_eq!(
            rows.iter().map(|row| (row.rule.as_str(), us(row))).collect::<Vec<_>>(),
            [
                ("memory.device_allocations", [1_000, 1_000]),
                ("host.launch_bound", [2_000, 2 * 200 + 6 * 100]),
                ("host.code", [1_400, 2 * 200])
            ]
        );
    }

    #[test]
    fn what_a_busy_device_does_not_wait_for_is_healthy() {
        check(&allocating("C.mmm...C.", ".CCCCCCCC."), "memory.device_allocations", &[]);
        check(&allocating("C.......C.", ".CC....CC."), "memory.device_allocations", &[]);
    }
}
