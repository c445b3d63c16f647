//! One stage of a pipeline works longer than the others, which wait for it in every micro-batch.

use super::super::{Advice, GainEstimate, Lacks, Rule};
use super::facts::JobFacts;
use super::{JobRule, Said, THRESHOLD};
use stepscope_base::units::{format_ns, format_ratio};

pub(super) const RULE: JobRule = Rule {
    code: "stage.imbalance",
    fault: "One stage of the pipeline works longer",
    disproof: "Steps are as long with a layer moved to another stage.",
    evidence: "what_if",
    to_do: "Give this stage less: move layers to other stages. The last stage has the loss as well, the first one the \
            embedding: give these one layer or two fewer, or split the vocabulary of the loss over ranks.",
    judge,
};

/// In how many of ten steps no other stage works longer.
const OFTEN: usize = 8;

fn judge(facts: &JobFacts) -> Result<Said, Lacks> {
    let job = facts.job()?;
    facts.all_are_there()?;
    if !job.has_stages() {
        return Err(Lacks("no pipeline: no rank sends to another one"));
    }
    let (window_ns, steps) = (job.measured_ns(), job.step_lengths().len());
    let Some(slow) = job.slowest_stage().filter(|slow| slow.most_steps * 10 >= steps * OFTEN) else {
        return Ok(Said::default());
    };
    let gain_ns = slow.balanced.gain_ns.clamp(0, window_ns);
    let ratio = gain_ns as f64 / window_ns as f64;
    let error = slow.balanced.replay_error_ratio.unwrap_or(0.0).abs();
    if ratio < THRESHOLD || ratio < error {
        return Ok(Said::default());
    }
    let per_step = |ns: i64| format_ns(ns / steps as i64);
    let ranks: Vec<String> = slow.ranks.iter().map(u32::to_string).collect();
    let which = match slow.ranks.as_slice() {
        [rank] => format!("rank {rank}"),
        few if few.len() <= 8 => format!("ranks {}", ranks.join(", ")),
        many => format!("{} ranks", many.len()),
    };
    let row = Advice {
        rank: slow.ranks.first().copied().filter(|_| slow.ranks.len() == 1),
        says: format!(
            "Stage {} of {} ({which}) works for {} of a step, the middle one of the other ranks for {}: {} ({}) would be saved if \
             the same work were spread evenly over the stages.",
            slow.stage + 1,
            slow.stages,
            per_step(slow.work_ns),
            per_step(slow.usual_ns),
            format_ns(gain_ns),
            format_ratio(ratio),
        ),
        // Layers are moved whole, so that stages are nearly equal at best.
        gain: Some((gain_ns, GainEstimate::Bound)),
        window_ns: Some(window_ns),
        measured_ratio: Some(ratio),
        threshold_ratio: Some(THRESHOLD),
        measured_ns: Some(slow.work_ns - slow.usual_ns),
        count: Some(slow.most_steps as i64),
        ..Advice::default()
    };
    let others = facts.context.trace.ranks().into_iter().filter(|rank| !slow.ranks.contains(rank));
    let waits_ns = others.map(|rank| (rank, gain_ns)).collect();
    Ok(Said { rows: vec![row], waits_ns, ..Said::default() })
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::tests::check;
    use stepscope_trace::Trace;
    use stepscope_trace::simulated::{Job, Schedule, Straggler};

    fn pipeline(ranks: u32, slow: &[u32], percent: i64) -> Trace {
        let schedule = Schedule::Pipeline { stages: 4, micro_batches: 6 };
        let stragglers = slow.iter().map(|rank| Straggler { rank: *rank, op: None, percent }).collect();
        let job = Job { ranks, steps: 5, schedule, stragglers, ..Job::default() };
        Job { compute_ns: 1_000_000, transfer_ns: 50_000, ..job }.run().trace()
    }

    #[test]
    fn a_stage_that_works_longer_is_named_with_what_it_would_save() {
        check(
            &pipeline(4, &[3], 50),
            "stage.imbalance",
            &[
                "21200 of 150201 bound high: Stage 4 of 4 (rank 3) works for 28.5 ms of a step, the middle one of the other ranks for 19.0 ms: 21.2 ms (14.1 %) would be saved if the same work were spread evenly over the stages.",
            ],
        );
        check(
            &pipeline(4, &[2], 50),
            "stage.imbalance",
            &[
                "16000 of 145001 bound high: Stage 3 of 4 (rank 2) works for 28.5 ms of a step, the middle one of the other ranks for 19.0 ms: 16.0 ms (11.0 %) would be saved if the same work were spread evenly over the stages.",
            ],
        );
        check(
            &pipeline(8, &[6, 7], 50),
            "stage.imbalance",
            &[
                "21200 of 150401 bound high: Stage 4 of 4 (ranks 6, 7) works for 28.5 ms of a step, the middle one of the other ranks for 19.0 ms: 21.2 ms (14.1 %) would be saved if the same work were spread evenly over the stages.",
            ],
        );
        [pipeline(4, &[3], 50), pipeline(4, &[2], 50), pipeline(8, &[6, 7], 50)]
            .iter()
            .for_each(|trace| check(trace, "rank.slow", &[]));
    }

    #[test]
    fn the_gain_is_that_of_a_job_whose_stages_work_as_long_together() {
        // (3 × 100 + 152) / 4 = 113.
        let length = |trace: &Trace| {
            trace.steps.iter().filter(|step| step.rank == 0).map(|step| step.span.duration_ns()).sum::<i64>()
        };
        let (slow, even) = (pipeline(4, &[3], 52), pipeline(4, &[0, 1, 2, 3], 13));
        let rows = advice(&slow, &Selection::default());
        let row = rows.iter().find(|row| row.rule.as_str() == "stage.imbalance").unwrap();
        let (gain_ns, _) = row.gain.unwrap();
        let judged = row.window_ns.unwrap() as f64 / length(&slow) as f64;
        let expected_ns = (length(&slow) - length(&even)) as f64 * judged;
        assert!((gain_ns as f64 - expected_ns).abs() < 0.01 * expected_ns, "{gain_ns} for {expected_ns}");
    }

    #[test]
    fn one_of_the_ranks_of_a_stage_is_a_slow_rank() {
        check(&pipeline(12, &[4], 50), "stage.imbalance", &[]);
        check(
            &pipeline(12, &[4], 50),
            "rank.slow",
            &[
                "24000 of 139201 replay high: The others wait for it: its own part of a step takes 9.50 ms (27.3 %) longer than that of the middle one of the others, in 4 of 4 steps, from the start. 80.0 % of its lateness is computing.",
            ],
        );
    }

    #[test]
    fn a_planned_bubble_is_no_imbalance() {
        check(&pipeline(4, &[], 0), "stage.imbalance", &[]);
        check(&pipeline(4, &[3], 4), "stage.imbalance", &[]);
        assert!(
            advice(&pipeline(4, &[3], 20), &Selection::default())
                .iter()
                .any(|row| row.rule.as_str() == "stage.imbalance")
        );
    }
}
