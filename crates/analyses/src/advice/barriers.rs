//! Ranks exchange a few numbers, or wait for each other, very often in a step.

use super::facts::Facts;
use super::loops::Loop;
use super::step_calls::{StepCall, exposed, longest};
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Place, Rule};
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::CollectiveKind;

/// Collectives of a step; fewer do not add up.
const LEAST_CALLS: i64 = 10;
/// What numbers about the training take, and tensors of it do not.
const SMALL_BYTES: i64 = 4 << 10;

pub(super) const RULE: Rule = Rule {
    code: "comm.barriers",
    fault: "Ranks wait for each other many times a step",
    disproof: "Steps are as long without these collectives.",
    evidence: "collectives",
    to_do: "Put what is exchanged into one tensor and one collective, every N steps: metrics add up on each rank \
            until they are asked for. Take barriers out of the step; collectives wait for each other anyway.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.step_calls()?.filter_map(|(of, calls)| of_loop(facts, of, calls)).collect())
}

/// Whether it carries little or nothing for all ranks, outside of the backward pass.
fn is_small(call: &StepCall) -> bool {
    let may_be = match call.kind {
        Some(CollectiveKind::Barrier) => return !call.is_backward,
        Some(kind) => matches!(
            kind,
            CollectiveKind::AllReduce
                | CollectiveKind::AllGather
                | CollectiveKind::Broadcast
                | CollectiveKind::Reduce
                | CollectiveKind::Gather
        ),
        None => false,
    };
    may_be && !call.is_backward && !call.sizes.is_empty() && call.sizes.iter().all(|bytes| *bytes <= SMALL_BYTES)
}

fn of_loop(facts: &Facts, of: &Loop, calls: &[StepCall]) -> Option<Advice> {
    let trace = facts.trace;
    let calls: Vec<&StepCall> = calls.iter().filter(|call| is_small(call)).collect();
    let count = calls.len() as i64;
    if count < LEAST_CALLS * of.steps.len() as i64 {
        return None;
    }
    let exposed = exposed(facts.context, of, &calls);
    let row = of.row(exposed.total_ns())?;
    let barriers = calls.iter().filter(|call| call.kind == Some(CollectiveKind::Barrier)).count() as i64;
    let barriers = match of.per_step(barriers) {
        0 => String::new(),
        barriers => format!(", {} among them,", counted(barriers, "barrier")),
    };
    Some(Advice {
        says: format!(
            "{} a step (mean of {}){barriers} carry 4 KiB or less: {} ({}) of {}.",
            counted(of.per_step(count), "collective"),
            of.steps.len(),
            format_ns(exposed.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        gain: Some((exposed.total_ns(), GainEstimate::Bound)),
        place: Some(Place::of(trace, longest(&calls)?.slice)),
        time: exposed,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::step_calls::tests::communicating;
    use crate::advice::tests::check;
    use stepscope_trace::Trace;

    /// Five steps with this number of all-reduces of one number.
    fn exchanging(count: usize, asks: &str) -> Trace {
        let row = |part: &str| format!("........{}", part.repeat(count));
        let ops = format!("aaaaaaaa{}", asks.repeat(count));
        let works = row(".vv.");
        communicating(50, &[("cpu 1", &ops), ("label 2", &works), ("samples 1", &row("..f."))])
    }

    #[test]
    fn many_collectives_of_a_few_numbers_are_said_with_their_line() {
        let trace = exchanging(10, "m...");
        check(
            &trace,
            "comm.barriers",
            &[
                "7500 of 12000 bound high: 10 collectives a step (mean of 5) carry 4 KiB or less: 7.50 ms (62.5 %) of 12.0 ms.",
            ],
        );
        let rows = advice(&trace, &Selection::default());
        let row = rows.iter().find(|row| row.rule.as_str() == "comm.barriers");
        assert_eq!(row.and_then(|row| row.line.as_deref()), Some("f.py(7): f"));
    }

    #[test]
    fn few_or_large_ones_are_healthy() {
        check(&exchanging(9, "m..."), "comm.barriers", &[]);
        check(&exchanging(10, "a..."), "comm.barriers", &[]);
    }
}
