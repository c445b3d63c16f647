//! Gradients are accumulated over several backward passes, and reduced after each of them.

use super::facts::Facts;
use super::loops::Loop;
use super::step_calls::{FILLS_BUCKET, StepCall, TAKES_GRADIENT, exposed, longest};
use super::step_operators::StepOp;
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::optimizer_labels::OptimizerLabels;
use std::collections::BTreeSet;
use stepscope_base::IntervalSet;
use stepscope_base::units::{format_bytes, format_ns, format_ratio};
use stepscope_trace::{SliceId, SliceKind, SliceRole};

pub(super) const RULE: Rule = Rule {
    code: "comm.no_sync",
    fault: "Gradients that are still added up are reduced already",
    disproof: "Steps are as long with all passes but the last in `no_sync()`.",
    evidence: "collectives",
    to_do: "Run all backward passes of an optimizer step but the last one inside `model.no_sync()`, each with its forward \
            pass: the last one reduces what all of them have added up. FSDP2 has `set_requires_gradient_sync(False)`.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.step_calls()?;
    if !facts.trace.roles.iter().any(|(_, role)| *role == SliceRole::DistributedForward) {
        return Err(Lacks("no forward passes of `DistributedDataParallel`"));
    }
    let operators = facts.step_operators()?.map(|(_, operators)| operators);
    Ok(loops.zip(operators).filter_map(|((of, calls), operators)| of_loop(facts, of, calls, operators)).collect())
}

/// The reductions of one backward pass.
struct Round<'a> {
    calls: Vec<&'a StepCall>,
}

impl Round<'_> {
    fn start_ns(&self) -> i64 {
        self.calls[0].span.start_ns
    }

    fn bytes(&self) -> i64 {
        self.calls.iter().flat_map(|call| &call.sizes).sum()
    }

    /// Whether `next` reduces the same gradients.
    fn is_as(&self, next: &Round) -> bool {
        self.calls[0].step == next.calls[0].step && self.calls.len() == next.calls.len() && self.bytes() == next.bytes()
    }
}

fn of_loop(facts: &Facts, of: &Loop, calls: &[StepCall], operators: &[StepOp]) -> Option<Advice> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let starts = |start_ns: &dyn Fn(SliceId) -> Option<i64>| {
        let mut starts: Vec<i64> = of.slices(trace).filter_map(start_ns).collect();
        starts.sort_unstable();
        starts
    };
    let is_forward = |id| trace.role(id) == Some(SliceRole::DistributedForward);
    let forwards = starts(&|id| is_forward(id).then(|| slices.start_ns[id.index()]));
    // What takes gradients, or sets them to zero.
    let labels = facts.context.get::<OptimizerLabels>();
    let is_label = |id| slices.kind(id) == SliceKind::Optimizer;
    let optimizer = starts(&|id| is_label(id).then(|| labels.span(trace, id).start_ns));
    let before = |starts: &[i64], at_ns: i64| starts.partition_point(|start_ns| *start_ns <= at_ns);
    let reductions: Vec<&StepCall> = calls.iter().filter(|call| call.reduces_gradients()).collect();
    let pass = |call: &StepCall| (call.step, before(&forwards, call.span.start_ns));
    let rounds: Vec<Round> =
        reductions.chunk_by(|a, b| pass(a) == pass(b)).map(|calls| Round { calls: calls.to_vec() }).collect();
    let is_needless = |pair: &&[Round]| {
        let [first, next] = pair else { return false };
        first.is_as(next) && before(&optimizer, first.start_ns()) == before(&optimizer, next.start_ns())
    };
    let needless: Vec<&Round> = rounds.windows(2).filter(is_needless).map(|pair| &pair[0]).collect();
    let (count, steps) = (needless.len() as i64, of.steps.len() as i64);
    if count < steps {
        return None;
    }
    let needless_calls: Vec<&StepCall> = needless.iter().flat_map(|round| &round.calls).copied().collect();
    // Without a device, also what the same passes copy into buckets and out of them.
    let passes: BTreeSet<(usize, usize)> = needless_calls.iter().map(|call| pass(call)).collect();
    let copies = operators.iter().filter(|op| {
        let is_reducer = || matches!(trace.strings.get(op.name), FILLS_BUCKET | TAKES_GRADIENT);
        of.device.is_empty() && is_reducer() && passes.contains(&(op.step, before(&forwards, op.span.start_ns)))
    });
    let copies = IntervalSet::from_unsorted(copies.map(|op| op.span)).intersect(&of.windows);
    let exposed = exposed(facts.context, of, &needless_calls).union(&copies);
    let row = of.row(exposed.total_ns())?;
    let what = match needless[0].bytes() {
        0 => "all gradients are".into(),
        bytes => format!("{} of gradients are", format_bytes(bytes)),
    };
    Some(Advice {
        says: format!(
            "{} a step (mean of {steps}) {what} reduced to which another backward pass adds before the optimizer takes \
             them: {} ({}) of {}.",
            counted(of.per_step(count), "time"),
            format_ns(exposed.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        gain: Some((exposed.total_ns(), GainEstimate::Floor)),
        place: Some(Place::of(trace, longest(&needless_calls)?.slice)),
        time: exposed,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use super::{FILLS_BUCKET, TAKES_GRADIENT};
    use crate::advice::step_calls::tests::communicating;
    use crate::advice::tests::{check, rename};

    #[test]
    fn rounds_before_the_one_that_the_optimizer_takes_are_said() {
        let rows = [
            ("label 1", "FF..............FF.............."),
            ("optimizer 1", "...............................o"),
            ("cpu 1", "aaBBB...........aaBBB..........."),
            ("cpu 1", "....r...............r..........."),
            ("label 2", ".....wwww............wwww......."),
        ];
        check(
            &communicating(100, &rows),
            "comm.no_sync",
            &[
                "2500 of 16000 floor high: 1 time a step (mean of 5) 3.91 KiB of gradients are reduced to which another backward pass adds before the optimizer takes them: 2.50 ms (15.6 %) of 16.0 ms.",
            ],
        );
    }

    #[test]
    fn what_is_copied_for_a_needless_round_is_part_of_it() {
        let rows = [
            ("label 1", "FF..............FF.............."),
            ("optimizer 1", "...............................o"),
            ("cpu 1", "aaBBB....gg.....aaBBB...gg......"),
            ("cpu 1", "...fr..............fr..........."),
            ("label 2", ".....wwww............ww........."),
        ];
        let named = [("f", FILLS_BUCKET), ("g", TAKES_GRADIENT)];
        let trace = named.iter().fold(communicating(100, &rows), |trace, (from, to)| rename(trace, from, to));
        check(
            &trace,
            "comm.no_sync",
            &[
                "4000 of 16000 floor high: 1 time a step (mean of 5) 3.91 KiB of gradients are reduced to which another backward pass adds before the optimizer takes them: 4.00 ms (25.0 %) of 16.0 ms.",
            ],
        );
    }

    #[test]
    fn one_round_for_each_time_that_the_optimizer_runs_is_healthy() {
        let rows = |optimizer, calls| {
            [
                ("label 1", "FF..............FF.............."),
                ("optimizer 1", optimizer),
                ("cpu 1", "aaBBB...........aaBBB..........."),
                ("cpu 1", calls),
                ("label 2", ".....wwww............wwww......."),
            ]
        };
        let both = "....r...............r...........";
        check(&communicating(100, &rows("..............o................o", both)), "comm.no_sync", &[]);
        // As with `no_sync()`.
        let last = "....................r...........";
        check(&communicating(100, &rows("...............................o", last)), "comm.no_sync", &[]);
    }
}
