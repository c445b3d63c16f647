//! The first recorded step takes much longer than the others.

use super::facts::Facts;
use super::{Advice, Judged, Lacks, Place, Rule};
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_base::units::{format_count, format_ns};
use stepscope_trace::{SliceId, SliceKind, Step};

/// How much longer, as a share of the median of the others.
const THRESHOLD: f64 = 0.50;
/// And in time.
const LEAST_NS: i64 = 1_000_000;
/// With fewer steps nobody knows what is usual.
const LEAST_STEPS: usize = 3;

pub(super) const RULE: Rule = Rule {
    code: "step.first",
    fault: "The first step is much longer",
    disproof: "The loop begins with as long a step when it runs a second time in the same process.",
    evidence: "step_breakdown",
    to_do: "Leave the first steps out when you measure (`schedule(wait=1, warmup=2, active=…)`): compilation, \
            libraries that try kernels out, first allocations and the profiler's own start fall there. In a long job it does \
            not matter.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.steps_are_alike()?;
    // How long a cut step would have taken is not known.
    let steps: Vec<&Step> = facts.selection.steps(facts.trace).filter(|step| step.is_complete).collect();
    // Several processes of a rank can run steps; each has a first one.
    let of_processes = steps.chunk_by(|a, b| (a.rank, a.process) == (b.rank, b.process));
    let long_enough: Vec<&[&Step]> = of_processes.filter(|steps| steps.len() >= LEAST_STEPS).collect();
    if long_enough.is_empty() {
        return Err(Lacks("fewer than three steps: record more"));
    }
    Ok(long_enough.into_iter().filter_map(|steps| of_process(facts, steps)).collect())
}

/// Whether a first step is much longer than the usual one.
pub(super) fn is_long(first_ns: i64, usual_ns: i64) -> bool {
    let more_ns = first_ns - usual_ns;
    usual_ns > 0 && more_ns >= LEAST_NS && more_ns as f64 > THRESHOLD * usual_ns as f64
}

/// Without a gain: it happens once, and what that is worth hangs on how long the job runs.
fn of_process(facts: &Facts, steps: &[&Step]) -> Option<Advice> {
    let (first, others) = steps.split_first()?;
    let mut others: Vec<i64> = others.iter().map(|step| step.span.duration_ns()).collect();
    let usual_ns = nearest_rank_of_unsorted(&mut others, 50)?;
    let first_ns = first.span.duration_ns();
    let more_ns = first_ns - usual_ns;
    let slices = &facts.trace.slices;
    let is_label = |id: &SliceId| slices.kind(*id) == SliceKind::Step && slices.span(*id) == first.span;
    let count = format_count(others.len() as i64);
    is_long(first_ns, usual_ns).then(|| Advice {
        rank: Some(first.rank),
        says: format!(
            "The first recorded step, {}, takes {}; the median of the {count} after it is {}.",
            first.number,
            format_ns(first_ns),
            format_ns(usual_ns)
        ),
        measured_ns: Some(more_ns),
        count: Some(steps.len() as i64),
        place: Some(Place::at(facts.trace, first.span.start_ns, slices.ids().find(is_label))),
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};
    use stepscope_trace::{Iteration, IterationKind};

    #[test]
    fn a_first_step_half_as_long_again_as_the_median_is_said() {
        check(
            &drawn_ms("rank 0 step 00000111223333"),
            "step.first",
            &["- of - - low: The first recorded step, 0, takes 5.00 ms; the median of the 3 after it is 3.00 ms."],
        );
        check(&drawn_ms("rank 0 step 0001122"), "step.first", &[]);
        // What recording cut is no usual step.
        let mut cut = drawn_ms("rank 0 step 000011112223");
        cut.steps[3].is_complete = false;
        check(&cut, "step.first", &[]);
        cut = drawn_ms("rank 0 step 00000111123");
        cut.steps[2..].iter_mut().for_each(|step| step.is_complete = false);
        check(&cut, "step.first", &[]);
        check(&drawn_ms("rank 0 step 0000011"), "step.first", &[]);
    }

    #[test]
    fn a_server_that_reads_a_request_in_first_has_no_long_first_step() {
        let mut trace = drawn_ms("rank 0 step 00000111222333");
        let decode = Iteration { kind: Some(IterationKind::Decode), requests: Some(1), tokens: Some(1) };
        let prefill = Iteration { kind: Some(IterationKind::Prefill), tokens: Some(512), ..decode };
        trace.steps.iter_mut().zip([prefill, decode, decode, decode]).for_each(|(step, pass)| step.iteration = pass);
        check(&trace, "step.first", &[]);
    }
}
