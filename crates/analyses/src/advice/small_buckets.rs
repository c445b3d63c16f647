//! Gradients are reduced in very many small pieces.

use super::facts::Facts;
use super::loops::{Loop, median};
use super::step_calls::{StepCall, exposed, longest};
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use stepscope_base::units::{format_bytes, format_count, format_ns, format_ratio};
use stepscope_trace::SliceRole;

/// All-reduces of a backward pass; fewer do not add up.
const LEAST_CALLS: i64 = 20;
/// Their median size: that of the first bucket of `DistributedDataParallel`, as it is without a setting.
const SMALL_BYTES: i64 = 1 << 20;

pub(super) const RULE: Rule = Rule {
    code: "comm.small_buckets",
    fault: "Gradients are reduced in many small pieces",
    disproof: "Steps are as long with `bucket_cap_mb=25`.",
    evidence: "collectives",
    to_do: "Reduce many gradients at once: leave `bucket_cap_mb` of `DistributedDataParallel` at its 25 MiB, or raise it \
            where the first reductions are done long before the backward pass is.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops: Vec<(&Loop, &[StepCall])> = facts.step_calls()?.collect();
    let reduces = |calls: &&[StepCall]| calls.iter().any(StepCall::reduces_gradients);
    let has_sizes = |calls: &&[StepCall]| calls.iter().any(|call| !call.sizes.is_empty());
    match loops.iter().map(|(_, calls)| *calls).any(|calls| reduces(&calls) && !has_sizes(&calls)) {
        true => Err(Lacks("no sizes of collectives: `stepscope record` and newer versions of PyTorch say them")),
        false => Ok(loops.into_iter().filter_map(|(of, calls)| of_loop(facts, of, calls)).collect()),
    }
}

fn of_loop(facts: &Facts, of: &Loop, calls: &[StepCall]) -> Option<Advice> {
    let trace = facts.trace;
    let calls: Vec<&StepCall> = calls.iter().filter(|call| call.reduces_gradients()).collect();
    let sizes: Vec<i64> = calls.iter().flat_map(|call| &call.sizes).copied().collect();
    let (total_bytes, median_bytes) = (sizes.iter().sum::<i64>(), median(sizes));
    let passes = of.slices(trace).filter(|id| trace.role(*id) == Some(SliceRole::DistributedForward)).count();
    let (count, steps) = (calls.len() as i64, of.steps.len());
    if count < LEAST_CALLS * passes.max(steps) as i64 || median_bytes >= SMALL_BYTES {
        return None;
    }
    let exposed = exposed(facts.context, of, &calls);
    let row = of.row(exposed.total_ns())?;
    Some(Advice {
        says: format!(
            "{} a step (mean of {}) reduce {} of gradients, {} each (median): {} ({}) of {}.",
            counted(of.per_step(count), "collective"),
            format_count(steps as i64),
            format_bytes(of.per_step(total_bytes)),
            format_bytes(median_bytes),
            format_ns(exposed.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        measured_bytes: Some(total_bytes),
        gain: Some((exposed.total_ns(), GainEstimate::Bound)),
        place: Some(Place::of(trace, longest(&calls)?.slice)),
        time: exposed,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::step_calls::tests::communicating;
    use crate::advice::tests::check;
    use stepscope_trace::Trace;

    /// A backward pass that reduces so often.
    fn reducing(count: usize) -> Trace {
        let (nodes, calls, works) = ("BBBB".repeat(count), ".rr.".repeat(count), "..w.".repeat(count));
        let rest = "........................................";
        let row = |cells: &str| format!("{cells}{rest}");
        let works = format!("{works}{}{}", "w".repeat(20), ".".repeat(20));
        communicating(10, &[("cpu 1", &row(&nodes)), ("cpu 1", &row(&calls)), ("label 2", &works)])
    }

    #[test]
    fn many_small_reductions_of_a_backward_pass_are_said() {
        check(
            &reducing(20),
            "comm.small_buckets",
            &[
                "3000 of 6000 bound high: 20 collectives a step (mean of 5) reduce 82.0 KiB of gradients, 3.91 KiB each (median): 3.00 ms (50.0 %) of 6.00 ms.",
            ],
        );
    }

    #[test]
    fn few_reductions_are_healthy() {
        check(&reducing(19), "comm.small_buckets", &[]);
    }
}
