//! The same kernels take longer late in the run than early: the device itself got slower.

use super::facts::Facts;
use super::loops::{Loop, median};
use super::step_tail::WARM_UP;
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::sm_clock::SmClock;
use rustc_hash::FxHashMap;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{DeviceEvent, DeviceEventClass, DeviceId, SliceId, Trace};

/// With fewer steps a trend is chance.
const LEAST_STEPS: usize = 12;
/// How much longer the same work takes, of all the time that computing takes early, in parts of a hundred.
const THRESHOLD: i64 = 10;
/// The part of the time whose kernels all have to be slower: else it is they, and not the device.
const SLOWER_PART: (i64, i64) = (3, 4);
/// A kernel is slower when it takes this much longer, in parts of a hundred.
const SLOWER: i64 = 5;
/// Launches of a kernel in each of the two stretches; fewer are chance.
const LEAST_LAUNCHES: usize = 3;

pub(super) const RULE: Rule = Rule {
    code: "device.slowing",
    fault: "The device gets slower over the run",
    disproof: "After a pause, or on another device, the same kernels are as slow from the start.",
    evidence: "kernels",
    to_do: "See why the device lowers its clock: `nvidia-smi -q -d PERFORMANCE` names heat, power and what else limits it. \
            Look after its cooling and its power limit, and at what else runs on it.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.devices()?;
    let mut loops = facts.loops()?.iter().filter(|of| of.steps.len() >= WARM_UP + LEAST_STEPS).peekable();
    if loops.peek().is_none() {
        return Err(Lacks("fewer than fourteen complete steps: record more"));
    }
    let of_loop = |of| Loop::devices(of, facts.trace).filter_map(move |device| of_device(facts, of, device));
    Ok(loops.flat_map(of_loop).collect())
}

/// What makes two launches the same work: the kernel's name, its launch size, and the operator's inputs.
type Work = (StringId, Option<[u32; 3]>, Option<u32>);

fn of_device(facts: &Facts, of: &Loop, device: DeviceId) -> Option<Advice> {
    let trace = facts.trace;
    let third = (of.steps.len() - WARM_UP) / 3;
    let of_steps =
        |steps: &[stepscope_trace::Step]| Span::new(steps[0].span.start_ns, steps[steps.len() - 1].span.end_ns);
    let early = of_steps(&of.steps[WARM_UP..WARM_UP + third]);
    let late = of_steps(&of.steps[of.steps.len() - third..]);
    let mut durations: FxHashMap<Work, [Vec<i64>; 2]> = FxHashMap::default();
    let mut all: Vec<(Work, SliceId, i64)> = Vec::new();
    for event in trace.device_events.iter().filter(|event| event.device == device) {
        let (span, work) = (trace.slices.span(event.slice), work(trace, &event));
        if event.class != DeviceEventClass::Compute || !of.has(span.start_ns) {
            continue;
        }
        let stretch = [early, late].iter().position(|stretch| stretch.contains(span.start_ns));
        if let Some(stretch) = stretch {
            durations.entry(work).or_default()[stretch].push(span.duration_ns());
        }
        all.push((work, event.slice, span.duration_ns()));
    }
    // Of each work what it takes early, and how much more late.
    let usual: FxHashMap<Work, (i64, i64)> = durations
        .into_iter()
        .filter(|(_, stretches)| stretches.iter().all(|of| of.len() >= LEAST_LAUNCHES))
        .map(|(work, [early, late])| (work, (median(early), median(late))))
        .collect();
    let (mut early_ns, mut more_ns, mut slower_ns, mut excess_ns) = (0_i64, 0_i64, 0_i64, 0_i64);
    let mut worst: Option<(i64, SliceId)> = None;
    let mut ends = Vec::new();
    for (work, slice, dur_ns) in &all {
        let Some((first_ns, last_ns)) = usual.get(work) else { continue };
        early_ns += first_ns;
        more_ns += last_ns - first_ns;
        slower_ns += if (last_ns - first_ns) * 100 >= first_ns * SLOWER { *first_ns } else { 0 };
        let excess = (dur_ns - first_ns).max(0);
        excess_ns += excess;
        let end_ns = trace.slices.span(*slice).end_ns;
        ends.push(Span::new(end_ns - excess, end_ns));
        if worst.is_none_or(|(most, _)| excess > most) {
            worst = Some((excess, *slice));
        }
    }
    let (part, whole) = SLOWER_PART;
    if more_ns * 100 < early_ns * THRESHOLD || slower_ns * whole < early_ns * part {
        return None;
    }
    let row = of.row(excess_ns)?;
    let (_, slice) = worst?;
    let clock = SmClock::of(trace, of.rank);
    let clocks = clock.mean_mhz(early).zip(clock.mean_mhz(late)).map_or_else(String::new, |(early, late)| {
        format!(" The clock of the multiprocessors is {late} MHz then, against {early} MHz.")
    });
    Some(Advice {
        device: Some(trace.devices[device.index()].ordinal),
        says: format!(
            "In the last third of the steps the same kernels take {} more than in the first, nearly all of them, the \
             longest {}: {} ({}) of {}.{clocks}",
            format_ratio(more_ns as f64 / early_ns as f64),
            quoted(trace.slice_name(slice)),
            format_ns(excess_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(usual.len() as i64),
        gain: Some((excess_ns, GainEstimate::Removal)),
        place: Some(Place::of(trace, slice)),
        time: IntervalSet::from_unsorted(ends),
        ..row
    })
}

fn work(trace: &Trace, event: &DeviceEvent) -> Work {
    let inputs = event.op.and_then(|op| trace.ops.get(op)).map(|info| info.inputs.0);
    (trace.slices.name[event.slice.index()], event.grid, inputs)
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::joined;
    use crate::advice::tests::{check, drawn_us};

    /// Fourteen steps of 1 ms, whose second half is as given.
    fn steps(late: &'static str) -> String {
        let early: &[(&str, &str)] = &[("stream 7", "CCCCEE....")];
        let (early, late) = (vec![early; 8], vec![vec![("stream 7", late)]; 8]);
        let late: Vec<&[(&str, &str)]> = late.iter().map(Vec::as_slice).collect();
        joined(&[early, late].concat())
    }

    #[test]
    fn a_device_whose_kernels_all_get_slower_is_said() {
        check(
            &drawn_us(&steps("CCCCCCEEE."), 100),
            "device.slowing",
            &[
                "2400 of 16000 removal high: In the last third of the steps the same kernels take 50.0 % more than in the first, nearly all of them, the longest `C`: 2.40 ms (15.0 %) of 16.0 ms.",
            ],
        );
    }

    #[test]
    fn where_one_kernel_is_slower_it_is_not_the_device() {
        check(&drawn_us(&steps("CCCCEEEEE."), 100), "device.slowing", &[]);
        check(&drawn_us(&steps("CCCCEE...."), 100), "device.slowing", &[]);
    }
}
