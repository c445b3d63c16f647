//! The memory of the process grows with every step, by what the system says of it.

use super::facts::Facts;
use super::loops::{Loop, median};
use super::step_tail::WARM_UP;
use super::{Advice, Judged, Lacks, Place, Priority, Rule};
use stepscope_base::units::{format_bytes, format_ratio};
use stepscope_trace::{Counter, Trace};

/// As the recorder calls them: what the process has in memory, and the part of it that is of files or shared. Both are sampled
/// together.
const COUNTERS: [&str; 2] = ["process memory (bytes)", "process shared memory (bytes)"];
/// With fewer steps growth may be what is set up once.
const LEAST_STEPS: usize = 20;
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
        return Err(Lacks("fewer than 22 complete steps"));
    }
    if !facts.trace.counters.iter().any(|counter| facts.trace.strings.get(counter.name) == COUNTERS[1]) {
        return Err(Lacks("no samples of the process's memory, and of what it shares"));
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
    if stretches.iter().any(|samples| samples.len() < LEAST_SAMPLES) {
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
    Some(Advice {
        rank: Some(of.rank),
        priority: if ratio >= SERIOUS { Priority::High } else { Priority::Medium },
        says: format!(
            "The memory of the process, without what it shares, grows by about {} a step, from {} to {} ({}) over {steps} steps, and does not stop.",
            format_bytes(per_step),
            format_bytes(medians[0]),
            format_bytes(medians[3]),
            format_ratio(ratio)
        ),
        measured_bytes: Some(grown),
        count: Some(steps),
        place: Some(Place { start_ns: to_ns, slice: None }),
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use super::COUNTERS;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us};
    use stepscope_trace::{Counter, ProcessId, Trace};

    /// Forty steps of 1 ms; a sample of the memory in each, in MiB: all, and what is shared.
    fn with_memory(mib: impl Fn(i64) -> [i64; 2]) -> Trace {
        let mut trace = drawn_us(&repeated(40, &[("cpu 1", "aaaaaaaaa.")]), 100);
        for (at, name) in COUNTERS.iter().enumerate() {
            let counter = Counter {
                name: trace.strings.intern(name),
                process: ProcessId::from_index(0),
                device: None,
                time_ns: (0..40).map(|step| step * 1_000_000 + 500_000).collect(),
                value: (0..40).map(|step| (mib(step)[at] << 20) as f64).collect(),
            };
            trace.counters.push(counter);
        }
        trace
    }

    #[test]
    fn memory_that_does_not_stop_growing_is_said() {
        check(
            &with_memory(|step| [600 + 4 * step, 100]),
            "memory.host_growth",
            &[
                "- of - - high: The memory of the process, without what it shares, grows by about 4.00 MiB a step, from 524 MiB to 636 MiB (21.4 %) over 28 steps, and does not stop.",
            ],
        );
    }

    #[test]
    fn memory_that_is_set_up_once_goes_up_and_down_or_is_shared_is_healthy() {
        check(&with_memory(|step| [500 + 20 * step.min(10), 0]), "memory.host_growth", &[]);
        check(&with_memory(|step| [500 + 40 * (step % 5), 0]), "memory.host_growth", &[]);
        check(&with_memory(|step| [500 + 4 * step, 4 * step]), "memory.host_growth", &[]);
    }
}
