//! One rank, or a few, that the others wait for in step after step.

use super::super::{Advice, GainEstimate, Lacks, Priority, Rule};
use super::facts::{JobFacts, Waiting, middle};
use super::persistence::Late;
use super::{JobRule, Said, THRESHOLD};
use crate::LateCause::{self, *};
use crate::lateness;
use crate::processor_waits::StepsProcessorWaits;
use crate::what_if::WhatIf;
use stepscope_base::units::{format_count, format_ns, format_ratio};

pub(super) const RULE: JobRule = Rule {
    code: "rank.slow",
    fault: "The other ranks wait for one",
    disproof: "On another host, with the same data as another rank, it is as late.",
    evidence: "what_if",
    to_do: "Look at what this rank does in a step that the others do not: more data, a slower or shared device or \
            processor, work of its own such as logging or checkpoints. Compare it with another rank: `stepscope analyze \
            lateness`, `device_clocks`, `io_summary`. If nothing differs, take another host.",
    judge,
};

/// From this share of their steps on in which loops wait for a processor, the replay gives only the least.
const SHARED_PROCESSORS: f64 = 0.03;
/// Ranks that are named; of more it says how many there are.
const MAX_NAMED: usize = 8;

fn judge(facts: &JobFacts) -> Result<Said, Lacks> {
    let slow = facts.slow_ranks()?;
    if slow.is_empty() {
        return Ok(Said::default());
    }
    let ranks: Vec<u32> = slow.iter().map(|late| late.rank).collect();
    let waiting = facts.waiting_for(&ranks);
    let row = row(facts, slow, &ranks, &waiting)?;
    let (missing, so_far) = (facts.missing_ranks(), facts.so_far());
    let row = row.map(|row| Advice { says: row.says.clone() + so_far, ..row });
    if !missing.is_empty() {
        // Nobody knows whether the others wait for this one, or this one and they for one that is missing.
        return Ok(Said { rows: row.into_iter().map(|row| without_all(row, missing)).collect(), ..Said::default() });
    }
    let waits_ns = if row.is_some() { waiting.everywhere_ns } else { Default::default() };
    Ok(Said { rows: row.into_iter().collect(), waits_ns, ..Said::default() })
}

/// A row of a job of which ranks are missing: it says which, and does not know what there is to gain.
fn without_all(row: Advice, missing: &[u32]) -> Advice {
    let who = match missing {
        [one] => format!("Rank {one} is"),
        few if few.len() <= MAX_NAMED => {
            format!("Ranks {} are", few.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
        many => format!("{} ranks are", format_count(many.len() as i64)),
    };
    let says = format!("{} {who} missing, and may be later still.", row.says);
    Advice { says, gain: None, priority: Priority::Low, ..row }
}

fn row(facts: &JobFacts, slow: &[Late], ranks: &[u32], waiting: &Waiting) -> Result<Option<Advice>, Lacks> {
    let job = facts.job()?;
    let window_ns = job.measured_ns();
    let Some(on_time) = job.with_ranks_on_time(ranks) else { return Ok(None) };
    let Some((gain_ns, estimate)) = gain(facts, &on_time, waiting) else { return Ok(None) };
    let gain_ns = gain_ns.min(window_ns);
    let ratio = gain_ns as f64 / window_ns as f64;
    if ratio < THRESHOLD || !wait_least(ranks, waiting) {
        return Ok(None);
    }
    let (worst, step_ns) = (slow[0], window_ns / job.step_lengths().len() as i64);
    let whom = match ranks {
        [_] => "it".into(),
        few if few.len() <= MAX_NAMED => {
            let mut few = few.to_vec();
            few.sort_unstable();
            format!("ranks {}", few.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
        many => format!("{} ranks", format_count(many.len() as i64)),
    };
    let its = if ranks.len() == 1 { "its".into() } else { format!("rank {}'s", worst.rank) };
    let since = worst.since.map_or_else(|| "from the start".into(), |step| format!("since step {step}"));
    let whose = if ranks.len() == 1 { "its" } else { "their" };
    let part = main_part(facts, ranks)
        .map_or_else(String::new, |(part, ratio)| format!(" {} of {whose} lateness is {part}.", format_ratio(ratio)));
    Ok(Some(Advice {
        rank: (ranks.len() == 1).then_some(worst.rank),
        says: format!(
            "The others wait for {whom}: {its} own part of a step takes {} ({}) longer than that of the middle one of the \
             others, in {} of {} steps, {since}.{part}",
            format_ns(worst.excess_ns),
            format_ratio(worst.excess_ns as f64 / step_ns as f64),
            worst.late_steps,
            worst.steps,
        ),
        gain: Some((gain_ns, estimate)),
        error_ns: on_time.error_ns(),
        window_ns: Some(window_ns),
        measured_ratio: Some(ratio),
        threshold_ratio: Some(THRESHOLD),
        measured_ns: Some(worst.excess_ns),
        count: Some(worst.late_steps as i64),
        place: waiting.longest.map(|(_, part)| facts.place(&part)),
        ..Advice::default()
    }))
}

/// By the replay; where that is wrong by more than half of what it says, by how long the others wait. Ranks that wait for each other's
/// processors get faster as well, which no replay knows.
fn gain(facts: &JobFacts, on_time: &WhatIf, waiting: &Waiting) -> Option<(i64, GainEstimate)> {
    if on_time.is_clear() {
        let estimate = if share_processors(facts) { GainEstimate::Floor } else { GainEstimate::Replay };
        return Some((on_time.gain_ns, estimate));
    }
    Some((waiting.for_ranks_ns.values().copied().max()?, GainEstimate::Bound))
}

/// Whether the loops of the ranks wait for a processor beyond what one can neglect.
fn share_processors(facts: &JobFacts) -> bool {
    let steps = facts.context.trace.steps.iter().zip(&facts.context.get::<StepsProcessorWaits>().0);
    let sums = steps.filter(|(step, _)| step.is_complete);
    let (steps_ns, waits_ns) =
        sums.fold((0, 0), |(all, waits), (step, ns)| (all + step.span.duration_ns(), waits + ns));
    waits_ns as f64 > SHARED_PROCESSORS * steps_ns as f64
}

/// Whether these ranks wait for less than the middle one of the others.
fn wait_least(ranks: &[u32], waiting: &Waiting) -> bool {
    let others = waiting.waits_ns.iter().filter(|(rank, _)| !ranks.contains(rank));
    let Some(middle_ns) = middle(others.map(|(_, ns)| *ns)) else { return false };
    ranks.iter().all(|rank| waiting.waits_ns.get(rank).is_some_and(|ns| *ns < middle_ns))
}

/// In what these ranks are late by most, in words, and its share.
fn main_part(facts: &JobFacts, ranks: &[u32]) -> Option<(&'static str, f64)> {
    const PARTS: [(&str, &[LateCause]); 6] = [
        ("computing", &[Compute]),
        ("computing on a slower clock", &[SlowClock]),
        ("waiting for input and files", &[Input, Io]),
        ("collecting garbage", &[GarbageCollection]),
        ("the host", &[LaunchBound, HostOther, HostSync, Allocation, ProfilerOverhead]),
        ("copying", &[Copy, DeviceWait]),
    ];
    let rows = lateness::rows(facts.context);
    let own = || rows.iter().filter(|row| ranks.contains(&row.rank) && row.cause != OtherCollective);
    let all_ns: i64 = own().map(|row| row.late_ns).sum();
    let of = |causes: &[LateCause]| own().filter(|row| causes.contains(&row.cause)).map(|row| row.late_ns).sum::<i64>();
    let (part, ns) = PARTS.iter().map(|(part, causes)| (*part, of(causes))).max_by_key(|(_, ns)| *ns)?;
    if ns * 2 > all_ns {
        return Some((part, ns as f64 / all_ns as f64));
    }
    // Collectives that overlap have no time before them that says why. The replay knows work and the rest.
    let parts = facts.job().ok()?.work_and_idle_excess_ns(ranks).map(|ns| ns.max(0));
    let all_ns = parts.iter().sum::<i64>();
    let (part, ns) = ["computing", "other than work"].into_iter().zip(parts).max_by_key(|(_, ns)| *ns)?;
    (ns * 2 > all_ns).then(|| (part, ns as f64 / all_ns as f64))
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::check;
    use crate::advice::{GainEstimate, advice, rules_judged};
    use crate::rank_results::tests::loop_samples;
    use crate::{AnalysisContext, Selection};
    use stepscope_trace::simulated::{Job, Schedule, Straggler};
    use stepscope_trace::{ClockSource, FindingCode, Joined, Trace};

    /// Steps of 6.2 ms, of which a rank computes for 6 ms.
    fn job(stragglers: Vec<Straggler>) -> Job {
        let schedule = Schedule::Ddp { buckets: 2, overlaps: false };
        Job { steps: 6, schedule, compute_ns: 1_000_000, transfer_ns: 100_000, stragglers, ..Job::default() }
    }

    fn slow(rank: u32, op: Option<&'static str>, percent: i64) -> Straggler {
        Straggler { rank, op, percent }
    }

    #[test]
    fn a_rank_that_all_others_wait_for_is_named_with_its_excess() {
        check(
            &job(vec![slow(2, Some("forward"), 40)]).run().trace(),
            "rank.slow",
            &[
                "2000 of 33000 replay medium: The others wait for it: its own part of a step takes 400 µs (6.1 %) longer than that of the middle one of the others, in 5 of 5 steps, from the start. 83.3 % of its lateness is computing.",
            ],
        );
        let on_hosts = Job { has_devices: false, ..job(vec![slow(2, Some("forward"), 40)]) };
        check(
            &on_hosts.run().trace(),
            "rank.slow",
            &[
                "2000 of 33010 replay medium: The others wait for it: its own part of a step takes 400 µs (6.1 %) longer than that of the middle one of the others, in 5 of 5 steps, from the start. 83.3 % of its lateness is computing.",
            ],
        );
    }

    #[test]
    fn of_ranks_that_wait_for_processors_the_replay_gives_the_least() {
        let estimate = |runnable_ns: i64| {
            let job = Job { has_devices: false, ..job(vec![slow(2, Some("forward"), 40)]) };
            let mut trace = job.run().trace();
            let samples = loop_samples(&trace, runnable_ns);
            trace.stack_samples = samples;
            let rows = advice(&trace, &Selection::default());
            rows.iter()
                .find(|row| row.rule.as_str() == "rank.slow")
                .and_then(|row| row.gain)
                .map(|(_, estimate)| estimate)
        };
        // A sample in each step of 6.6 ms.
        assert_eq!(estimate(180_000), Some(GainEstimate::Replay));
        assert_eq!(estimate(220_000), Some(GainEstimate::Floor));
    }

    /// A job of four ranks of which the third is slow.
    fn joined(joined: Joined) -> Trace {
        let mut trace = job(vec![slow(2, Some("forward"), 40)]).run().trace();
        trace.joined = Some(joined);
        trace
    }

    #[test]
    fn where_ranks_are_missing_they_are_named_and_no_gain_is() {
        let missing = |ranks: &[u32]| joined(Joined { missing_ranks: ranks.to_vec(), ..Joined::default() });
        let says = "The others wait for it: its own part of a step takes 400 µs (6.1 %) longer than that of the middle one of the others, in 5 of 5 steps, from the start. 83.3 % of its lateness is computing.";
        check(
            &missing(&[4, 5]),
            "rank.slow",
            &[&format!("- of 33000 - low: {says} Ranks 4, 5 are missing, and may be later still.")],
        );
        check(
            &missing(&[7]),
            "rank.slow",
            &[&format!("- of 33000 - low: {says} Rank 7 is missing, and may be later still.")],
        );
        check(&missing(&[]), "rank.slow", &[&format!("2000 of 33000 replay medium: {says}")]);
        // Which rules across ranks are then not judged.
        let not_judged = |trace: &Trace| {
            let judged = rules_judged(&AnalysisContext::new(trace, &Selection::default())).not_judged;
            let of_all = judged.into_iter().filter(|(_, lacks)| lacks.contains("import."));
            of_all.map(|(code, _)| code).collect::<Vec<_>>()
        };
        assert_eq!(not_judged(&missing(&[4])), ["rank.gc", "rank.lengths", "stage.imbalance", "group.slow"]);
        assert_eq!(not_judged(&missing(&[])), [""; 0]);
        let unrelated = joined(Joined { clocks: ClockSource::BegunTogether, ..Joined::default() });
        assert_eq!(not_judged(&unrelated), ["rank.slow", "rank.gc", "rank.lengths", "stage.imbalance", "group.slow"]);
        check(&unrelated, "rank.slow", &[]);
    }

    #[test]
    fn of_a_run_that_goes_on_it_is_said_so_far() {
        let mut trace = joined(Joined::default());
        trace.findings.add(FindingCode::ProcessRunning, || "rank 0".into());
        let rows = advice(&trace, &Selection::default());
        let row = rows.iter().find(|row| row.rule.as_str() == "rank.slow").expect("a row");
        assert!(row.says.ends_with(" That is so far: ranks are still being recorded."), "{}", row.says);
    }

    #[test]
    fn less_than_4_percent_is_chance() {
        check(
            &job(vec![slow(2, Some("forward"), 27)]).run().trace(),
            "rank.slow",
            &[
                "1350 of 32350 replay medium: The others wait for it: its own part of a step takes 270 µs (4.2 %) longer than that of the middle one of the others, in 5 of 5 steps, from the start. 83.3 % of its lateness is computing.",
            ],
        );
        check(&job(vec![slow(2, Some("forward"), 25)]).run().trace(), "rank.slow", &[]);
        check(&job(vec![slow(2, None, 3)]).run().trace(), "rank.slow", &[]);
        check(&job(Vec::new()).run().trace(), "rank.slow", &[]);
    }

    #[test]
    fn two_slow_ranks_gain_only_together() {
        let job = Job { ranks: 6, ..job(vec![slow(1, None, 30), slow(4, None, 30)]) };
        check(
            &job.run().trace(),
            "rank.slow",
            &[
                "9000 of 40000 replay high: The others wait for ranks 1, 4: rank 1's own part of a step takes 1.80 ms (22.5 %) longer than that of the middle one of the others, in 5 of 5 steps, from the start. 91.4 % of their lateness is computing.",
            ],
        );
    }

    #[test]
    fn a_rank_that_becomes_slow_is_slow_since_then() {
        let since = (5..10).map(|step| (step, slow(1, None, 50))).collect();
        let job = Job { steps: 10, stragglers_of_steps: since, ..job(Vec::new()) };
        check(
            &job.run().trace(),
            "rank.slow",
            &[
                "15000 of 70800 replay high: The others wait for it: its own part of a step takes 3.00 ms (38.1 %) longer than that of the middle one of the others, in 5 of 5 steps, since step 5. 100.0 % of its lateness is computing.",
            ],
        );
    }

    #[test]
    fn who_is_slow_in_turn_is_not_slow() {
        for ranks in [2, 3, 4, 5] {
            let in_turn = (0..12).map(|step| (step, slow((step * 7 % 5) as u32 % ranks, None, 60))).collect();
            let in_turn = Job { ranks, steps: 12, stragglers_of_steps: in_turn, ..job(Vec::new()) };
            check(&in_turn.run().trace(), "rank.slow", &[]);
            let by_chance = Job { ranks, steps: 12, jitter_ns: 900_000, ..job(Vec::new()) };
            check(&by_chance.run().trace(), "rank.slow", &[]);
        }
    }

    #[test]
    fn what_others_wait_is_no_communication_to_hide() {
        let rules = |stragglers| {
            let rows = advice(&job(stragglers).run().trace(), &Selection::default());
            rows.iter().map(|row| row.rule.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(rules(vec![slow(2, None, 60)]), ["rank.slow"]);
        assert!(rules(Vec::new()).is_empty());
    }

    #[test]
    fn a_rank_that_is_not_asked_for_is_not_named() {
        let trace = job(vec![slow(2, None, 60)]).run().trace();
        let of = |rank: u32| advice(&trace, &Selection { ranks: rank.into(), ..Selection::default() }).len();
        assert_eq!((of(0), of(2)), (0, 1));
    }
}
