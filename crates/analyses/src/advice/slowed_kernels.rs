//! Kernels take longer while communication runs beside them than alone: they share the device's multiprocessors and memory.

use super::facts::{Facts, gpu};
use super::loops::{Loop, median};
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::device_busy::DeviceBusy;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{DeviceEvent, DeviceEventClass, DeviceId, SliceId, Trace};

/// Launches of a kernel of each kind, beside communication and alone; fewer are chance.
const LEAST_LAUNCHES: usize = 5;
/// They have to be in as many steps.
const LEAST_STEPS: usize = 3;
/// A kernel is beside communication when that runs for this part of it, in parts of a hundred; alone when it never does.
const BESIDE: i64 = 75;
/// A kernel is slower when it takes this much longer, in parts of a hundred.
const SLOWER: i64 = 10;

pub(super) const RULE: Rule = Rule {
    code: "comm.slows_kernels",
    fault: "Communication slows the kernels beside it",
    disproof: "With fewer blocks for communication (`NCCL_MAX_CTAS=8`) these kernels take as long, or the steps do.",
    evidence: "overlap",
    to_do: "Leave more of the device to what computes: fewer blocks for NCCL (`NCCL_MAX_CTAS`, before 2.17 \
            `NCCL_MAX_NCHANNELS`), less to communicate (16 bits, `no_sync()`), or large products beside communication and \
            what is bound by memory elsewhere. Compare whole steps: less overlap is not better by itself, since what is no \
            longer hidden adds its whole time.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let trace = facts.trace;
    facts.devices()?;
    let loops = facts.loops()?;
    if !trace.device_events.iter().any(|event| event.class == DeviceEventClass::Communication) {
        return Ok(Vec::new());
    }
    if !trace.has_shapes() {
        return Err(Lacks("no shapes of operators' inputs: `--shapes` or `record_shapes=True` records them"));
    }
    let of_loop = |of| Loop::devices(of, trace).filter_map(move |device| of_device(facts, of, device));
    Ok(loops.iter().flat_map(of_loop).collect())
}

/// What makes two launches the same work: the kernel's name, its launch size, and the shapes and types of inputs.
type Work = (StringId, Option<[u32; 3]>, Option<[u32; 3]>, u32);

fn work(trace: &Trace, event: &DeviceEvent) -> Option<Work> {
    let inputs = trace.ops.get(event.op?)?.inputs;
    (inputs.0 != 0).then_some((trace.slices.name[event.slice.index()], event.grid, event.block, inputs.0))
}

/// Launches of the same work.
#[derive(Default)]
struct Launches {
    durations: Vec<i64>,
    steps: BTreeSet<usize>,
    kernels: Vec<(SliceId, Span)>,
}

impl Launches {
    fn add(&mut self, slice: SliceId, span: Span, step: usize) {
        self.durations.push(span.duration_ns());
        self.steps.insert(step);
        self.kernels.push((slice, span));
    }

    fn are_enough(&self) -> bool {
        self.durations.len() >= LEAST_LAUNCHES && self.steps.len() >= LEAST_STEPS
    }

    fn percentile(&self, percent: u32) -> i64 {
        nearest_rank_of_unsorted(&mut self.durations.clone(), percent).unwrap_or(0)
    }
}

/// A kernel that communication slows.
struct Slowed {
    alone_ns: i64,
    beside: Launches,
    beside_ns: i64,
}

fn of_device(facts: &Facts, of: &Loop, device: DeviceId) -> Option<Advice> {
    let trace = facts.trace;
    let busy = &facts.context.get::<Vec<DeviceBusy>>()[device.index()];
    let slowed = slowed(trace, of, device, &busy.comm);
    let (mut ends, mut excess_ns, mut usual_ns) = (Vec::new(), 0_i64, 0_i64);
    for work in &slowed {
        for (_, span) in &work.beside.kernels {
            let excess = (span.duration_ns() - work.alone_ns).max(0);
            ends.push(Span::new(span.end_ns - excess, span.end_ns));
            excess_ns = excess_ns.saturating_add(excess);
            usual_ns = usual_ns.saturating_add(work.alone_ns);
        }
    }
    let time = IntervalSet::from_unsorted(ends).intersect(&of.windows);
    let row = of.row(time.total_ns())?;
    let lost_ns = |work: &&Slowed| (work.beside_ns - work.alone_ns) * work.beside.durations.len() as i64;
    let most = slowed.iter().max_by_key(|work| (lost_ns(work), Reverse(work.beside.kernels[0].0)))?;
    let (longest, _) = *most.beside.kernels.iter().max_by_key(|(slice, span)| (span.duration_ns(), Reverse(*slice)))?;
    let count: i64 = slowed.iter().map(|work| work.beside.durations.len() as i64).sum();
    let ordinal = trace.devices[device.index()].ordinal;
    let hidden = busy.comm.intersect(&busy.compute).intersect(&of.windows);
    Some(Advice {
        device: Some(ordinal),
        says: format!(
            "On {} {} take {} longer beside communication than alone, most of it {} with {} instead of {}: {} ({}) of {}. \
             {} of communication are hidden there, so that less overlap is not better by itself.",
            gpu(ordinal),
            counted(count, "kernel"),
            format_ratio(excess_ns as f64 / usual_ns.max(1) as f64),
            quoted(trace.slice_name(longest)),
            format_ns(most.beside_ns),
            format_ns(most.alone_ns),
            format_ns(time.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
            format_ns(hidden.total_ns())
        ),
        count: Some(count),
        gain: Some((time.total_ns(), GainEstimate::Bound)),
        place: Some(Place::of(trace, longest)),
        time,
        ..row
    })
}

/// The work that takes longer beside communication: by medians, and most of it is longer than most of what runs alone.
fn slowed(trace: &Trace, of: &Loop, device: DeviceId, comm: &IntervalSet) -> Vec<Slowed> {
    let mut all: FxHashMap<Work, [Launches; 2]> = FxHashMap::default();
    let is_computing = |event: &DeviceEvent| event.device == device && event.class == DeviceEventClass::Compute;
    for event in trace.device_events.iter().filter(is_computing) {
        let span = trace.slices.span(event.slice);
        let Some((work, step)) = work(trace, &event).zip(of.step_at(span.start_ns)) else { continue };
        let beside_ns = comm.clip(span).total_ns();
        match beside_ns {
            0 => all.entry(work).or_default()[0].add(event.slice, span, step),
            ns if ns * 100 >= span.duration_ns() * BESIDE => {
                all.entry(work).or_default()[1].add(event.slice, span, step)
            }
            _ => {}
        }
    }
    let is_slowed = |[alone, beside]: [Launches; 2]| {
        let (alone_ns, beside_ns) = (median(alone.durations.iter().copied()), median(beside.durations.iter().copied()));
        let is_it = alone.are_enough()
            && beside.are_enough()
            && beside_ns * 100 >= alone_ns * (100 + SLOWER)
            && beside.percentile(25) > alone.percentile(75);
        is_it.then_some(Slowed { alone_ns, beside, beside_ns })
    };
    let mut found: Vec<Slowed> = all.into_values().filter_map(is_slowed).collect();
    found.sort_by_key(|work| work.beside.kernels[0].0);
    found
}

#[cfg(test)]
mod tests {
    use crate::advice::facts::tests::with_inputs;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us};
    use stepscope_trace::Trace;

    /// Five steps of 1.6 ms, in which `a` and `b` launch `C`, and inputs of two operators differ only where said.
    fn steps(ops: &str, stream: &str, communication: &str, inputs: &[(&str, &str)]) -> Trace {
        let rows =
            [("cpu 1", ops), ("launch 1", "C.......C......."), ("stream 7", stream), ("stream 9", communication)];
        with_inputs(drawn_us(&repeated(5, &rows), 100), inputs)
    }

    const OPS: &str = "aaaaa...bbbbb...";
    const ALIKE: &[(&str, &str)] = &[("a", "[[8,8]]"), ("b", "[[8,8]]")];

    #[test]
    fn kernels_that_take_longer_beside_communication_are_said() {
        check(
            &steps(OPS, "..CCCC....CCCCCC", "..........NNNNNN", ALIKE),
            "comm.slows_kernels",
            &[
                "1000 of 8000 bound high: On GPU 0 5 kernels take 50.0 % longer beside communication than alone, most of it `C` with 600 µs instead of 400 µs: 1.00 ms (12.5 %) of 8.00 ms. 3.00 ms of communication are hidden there, so that less overlap is not better by itself.",
            ],
        );
    }

    #[test]
    fn kernels_as_fast_or_of_other_work_are_not() {
        check(&steps(OPS, "..CCCCCC..CCCCCC", "..........NNNNNN", ALIKE), "comm.slows_kernels", &[]);
        check(&steps(OPS, "..CCCC....CCCCCC", "........NN......", ALIKE), "comm.slows_kernels", &[]);
        let other = [("a", "[[8,8]]"), ("b", "[[8,12]]")];
        check(&steps(OPS, "..CCCC....CCCCCC", "..........NNNNNN", &other), "comm.slows_kernels", &[]);
        // Nobody knows whether it is the same work.
        check(&steps(OPS, "..CCCC....CCCCCC", "..........NNNNNN", &[]), "comm.slows_kernels", &[]);
    }

    #[test]
    fn a_kernel_of_which_few_run_alone_is_not_judged() {
        let rows: Vec<[(&str, &str); 4]> = (0..6)
            .map(|step| {
                let alone = if step < 2 { "................" } else { "..NNNNNN........" };
                [
                    ("cpu 1", OPS),
                    ("launch 1", "C.......C......."),
                    ("stream 7", "..CCCCCC..CCCCCC"),
                    ("stream 9", alone),
                ]
            })
            .collect();
        let rows: Vec<&[(&str, &str)]> = rows.iter().map(|row| row.as_slice()).collect();
        let trace = with_inputs(drawn_us(&crate::advice::loops::tests::joined(&rows), 100), ALIKE);
        check(&trace, "comm.slows_kernels", &[]);
    }
}
