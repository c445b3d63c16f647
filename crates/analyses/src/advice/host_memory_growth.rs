//! The memory of the process grows with every step, by what the system says of it.

use super::facts::Facts;
use super::loops::{Loop, median};
use super::step_tail::WARM_UP;
use super::words::{counted, quoted};
use super::{Advice, Judged, Lacks, Place, Priority, Rule, evaluation};
use stepscope_base::units::{format_bytes, format_ratio};
use stepscope_trace::{Counter, Trace};

/// As the recorder calls them: what the process has in memory, and the part of it that is of files or shared. Both are sampled
/// together.
const COUNTERS: [&str; 2] = ["process memory (bytes)", "process shared memory (bytes)"];
/// With fewer steps,
const LEAST_STEPS: usize = 100;
/// and in less time, growth may be what is set up once: allocators of several threads need some seconds.
const LEAST_NS: i64 = 5_000_000_000;
/// Samples in each of four stretches of the loop.
const LEAST_SAMPLES: usize = 3;
/// What a step adds at least,
const LEAST_BYTES_PER_STEP: i64 = 256 << 10;
/// and all of them.
const LEAST_BYTES: i64 = 32 << 20;
/// Growth by this part of what the process had is serious.
const SERIOUS: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    code: "memory.host_growth",
    fault: "The process's memory grows with every step",
    disproof: "Over many more steps the memory stays as it is.",
    evidence: "memory_curve",
    to_do: "Find what is kept: outputs or losses in a list with their graphs (`.item()`, `.detach()`), batches, a cache \
            without a limit. `stepscope record --memory` with Python stacks says which lines allocate what is never freed.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let mut loops = facts.loops()?.iter().filter(|of| of.steps.len() >= WARM_UP + LEAST_STEPS).peekable();
    if loops.peek().is_none() {
        return Err(Lacks("fewer than 22 complete steps: record more"));
    }
    if !facts.trace.counters.iter().any(|counter| facts.trace.strings.get(counter.name) == COUNTERS[1]) {
        return Err(Lacks("no samples of the process's memory, and of what it shares: `stepscope record` takes them"));
    }
    Ok(loops.filter_map(|of| of_loop(facts.trace, of)).collect())
}

fn of_loop(trace: &Trace, of: &Loop) -> Option<Advice> {
    let counter = |name: &str| {
        let is_it = |counter: &&Counter| counter.process == of.process && trace.strings.get(counter.name) == name;
        trace.counters.iter().find(is_it)
    };
    let (all, shared) = (counter(COUNTERS[0])?, counter(COUNTERS[1])?);
    let (from_ns, to_ns) = (of.steps[WARM_UP].span.start_ns, of.steps.last()?.span.end_ns);
    let mut stretches: [Vec<i64>; 4] = Default::default();
    for ((at_ns, all), shared) in all.time_ns.iter().zip(&all.value).zip(&shared.value) {
        if *at_ns >= from_ns && *at_ns < to_ns {
            let stretch = i128::from(at_ns - from_ns) * 4 / i128::from(to_ns - from_ns);
            stretches[stretch as usize].push(*all as i64 - *shared as i64);
        }
    }
    if to_ns - from_ns < LEAST_NS || stretches.iter().any(|samples| samples.len() < LEAST_SAMPLES) {
        return None;
    }
    let medians = stretches.map(median);
    // From the middle of the first stretch to that of the last.
    let grown = medians[3].checked_sub(medians[0])?;
    let steps = (of.steps.len() - WARM_UP) as i64 * 3 / 4;
    let per_step = grown / steps.max(1);
    // In each stretch about as much as in the others: what is set up once grows early, and stays.
    let is_steady = medians.is_sorted_by(|a, b| b - a >= grown / 6);
    if grown < LEAST_BYTES || per_step < LEAST_BYTES_PER_STEP || !is_steady {
        return None;
    }
    let ratio = grown as f64 / medians[0].max(1) as f64;
    // A graph that no backward pass takes stays as long as its outputs are kept.
    let taken = evaluation::taken(trace);
    let graphs = if taken.is_empty() { Vec::new() } else { evaluation::in_vain(trace, of, &taken) };
    let graph = evaluation::longest(trace, &graphs);
    let kept = graph.map_or_else(String::new, |graph| {
        let graphs = counted(of.per_step(graphs.len() as i64), "graph");
        format!(
            " {graphs} a step that no backward pass takes, the largest of {}, may be what is kept.",
            quoted(trace.slice_name(graph))
        )
    });
    Some(Advice {
        rank: Some(of.rank),
        priority: if ratio >= SERIOUS { Priority::High } else { Priority::Medium },
        says: format!(
            "The memory of the process, without what it shares, grows by about {} a step, from {} to {} ({}) over {steps} steps, and does not stop.{kept}",
            format_bytes(per_step),
            format_bytes(medians[0]),
            format_bytes(medians[3]),
            format_ratio(ratio)
        ),
        measured_bytes: Some(grown),
        count: Some(steps),
        place: Some(graph.map_or(Place { start_ns: to_ns, slice: None }, |graph| Place::of(trace, graph))),
        // At which a line of Python is looked for.
        time: graphs.iter().map(|graph| trace.slices.span(*graph)).collect(),
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use super::COUNTERS;
    use crate::advice::evaluation::tests::evaluating;
    use crate::advice::tests::check;
    use stepscope_trace::{Counter, ProcessId, Trace};

    const STEPS: usize = 110;

    /// Steps with a sample of the memory in each, in MiB: all, and what is shared. Gradients are recorded in vain, or not.
    fn with_memory(step_us: i64, is_recorded: bool, mib: impl Fn(i64) -> [i64; 2]) -> Trace {
        let mut trace = evaluating(STEPS, step_us as usize / 20, "ttttee.e............", is_recorded);
        for (at, name) in COUNTERS.iter().enumerate() {
            let steps = 0..STEPS as i64;
            let counter = Counter {
                name: trace.strings.intern(name),
                process: ProcessId::from_index(0),
                device: None,
                time_ns: steps.clone().map(|step| step * step_us * 1_000 + 1).collect(),
                value: steps.map(|step| (mib(step)[at] << 20) as f64).collect(),
            };
            trace.counters.push(counter);
        }
        trace
    }

    fn check_growth(step_us: i64, mib: impl Fn(i64) -> [i64; 2], says: &[&str]) {
        check(&with_memory(step_us, false, mib), "memory.host_growth", says);
    }

    const GROWS: &str = "- of - - high: The memory of the process, without what it shares, grows by about 4.00 MiB a step, from 560 MiB to 884 MiB (57.9 %) over 81 steps, and does not stop.";

    #[test]
    fn memory_that_does_not_stop_growing_is_said() {
        check_growth(50_000, |step| [600 + 4 * step, 100], &[GROWS]);
    }

    #[test]
    fn graphs_that_no_backward_pass_takes_may_be_what_is_kept() {
        let says =
            format!("{GROWS} 1 graph a step that no backward pass takes, the largest of `n`, may be what is kept.");
        check(&with_memory(50_000, true, |step| [600 + 4 * step, 100]), "memory.host_growth", &[&says]);
    }

    #[test]
    fn memory_that_is_set_up_once_goes_up_and_down_or_is_shared_is_healthy() {
        check_growth(50_000, |step| [500 + 20 * step.min(10), 0], &[]);
        check_growth(50_000, |step| [500 + 4 * step.min(70), 0], &[]);
        check_growth(50_000, |step| [500 + 40 * (step % 5), 0], &[]);
        check_growth(50_000, |step| [500 + 4 * step, 4 * step], &[]);
    }

    #[test]
    fn a_few_seconds_say_nothing_of_what_comes_after() {
        check_growth(40_000, |step| [600 + 4 * step, 100], &[]);
    }
}
