//! Ranks collect their garbage at different moments, and each time all others wait.

use super::super::words::counted;
use super::super::{Advice, GainEstimate, Lacks, Rule};
use super::facts::JobFacts;
use super::{JobRule, Said, THRESHOLD};
use crate::LateCause;
use crate::stretches::Stretches;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::Part;
use stepscope_base::units::{format_ns, format_ratio};

pub(super) const RULE: JobRule = Rule {
    code: "rank.gc",
    fault: "Ranks collect their garbage in turn",
    disproof: "Steps are as long with `gc.disable()` on all ranks.",
    evidence: "lateness",
    to_do: "Collect garbage on all ranks in the same step: `gc.disable()` at the start, then `gc.collect()` every N steps; \
            `gc.freeze()` after the model is built makes collections shorter.",
    judge,
};

/// What is known of the collections that ranks were late by.
#[derive(Default)]
struct Collections {
    /// By how much sooner collectives would have ended, by the rank that was last.
    sooner_ns: BTreeMap<u32, i64>,
    waits_ns: BTreeMap<u32, i64>,
    steps: BTreeSet<i64>,
    calls: i64,
    longest: Option<(i64, Part)>,
}

fn judge(facts: &JobFacts) -> Result<Said, Lacks> {
    let job = facts.job()?;
    facts.all_are_there()?;
    let stretches = &facts.context.get::<Stretches>().0;
    let collected_ns = |part: &Part| {
        stretches.get(&part.asked_by).map_or(0, |stretch| stretch.parts_ns[LateCause::GarbageCollection as usize])
    };
    if stretches.values().all(|stretch| stretch.parts_ns[LateCause::GarbageCollection as usize] == 0) {
        return Err(Lacks(
            "no garbage collection between collectives is recorded: `stepscope record` has those that there are",
        ));
    }
    // A rank that is always late by it is named by another rule.
    let slow: Vec<u32> = facts.slow_ranks()?.iter().map(|late| late.rank).collect();
    let mut all = Collections::default();
    for (step, parts) in facts.collectives() {
        // What all ranks collect at once makes none of them late.
        let common_ns = parts.iter().map(collected_ns).min().unwrap_or(0);
        let own_ns = |part: &Part| if slow.contains(&part.rank) { 0 } else { collected_ns(part) - common_ns };
        let Some(last) = parts.iter().min_by_key(|part| part.dur_ns) else { continue };
        // It ends everywhere at once, so that who came sooner would be in it for longer.
        let sooner_ns = parts.iter().map(|part| part.dur_ns + own_ns(part)).min().unwrap_or(0) - last.dur_ns;
        if sooner_ns <= 0 {
            continue;
        }
        *all.sooner_ns.entry(last.rank).or_default() += sooner_ns;
        all.calls += 1;
        all.steps.insert(step);
        for part in &parts {
            *all.waits_ns.entry(part.rank).or_default() += sooner_ns.min(part.dur_ns - last.dur_ns);
        }
        if sooner_ns > all.longest.map_or(0, |(ns, _)| ns) {
            all.longest = Some((sooner_ns, *last));
        }
    }
    let (window_ns, steps) = (job.measured_ns(), job.step_lengths().len());
    let waited_ns = all.sooner_ns.values().sum::<i64>().min(window_ns);
    // Where all collect in the same steps, these still take what the rank takes that collects most, or more, if the ranks
    // share a machine. A rank that collects alone may do without.
    let left_ns = all.sooner_ns.values().max().filter(|_| all.sooner_ns.len() > 1).map_or(0, |most_ns| *most_ns);
    let gain_ns = waited_ns - left_ns;
    let ratio = |ns: i64| ns as f64 / window_ns as f64;
    let longest = all.longest.filter(|_| ratio(gain_ns) >= THRESHOLD);
    let Some((longest_ns, longest)) = longest else { return Ok(Said::default()) };
    let ranks: Vec<String> = all.sooner_ns.keys().map(u32::to_string).collect();
    let who = match ranks.as_slice() {
        [rank] => format!("rank {rank}"),
        few if few.len() <= 8 => format!("ranks {} in turn", few.join(", ")),
        many => format!("{} ranks in turn", many.len()),
    };
    let row = Advice {
        says: format!(
            "In {} of {steps} steps the others wait while {who} {} garbage: {} ({}) in {}, {} at most.",
            all.steps.len(),
            if ranks.len() == 1 { "collects" } else { "collect" },
            format_ns(waited_ns),
            format_ratio(ratio(waited_ns)),
            counted(all.calls, "collective"),
            format_ns(longest_ns),
        ),
        gain: Some((gain_ns, GainEstimate::Bound)),
        window_ns: Some(window_ns),
        measured_ratio: Some(ratio(waited_ns)),
        threshold_ratio: Some(THRESHOLD),
        measured_ns: Some(waited_ns),
        count: Some(all.calls),
        place: Some(facts.place(&longest)),
        ..Advice::default()
    };
    let collections_ns = all.sooner_ns.into_iter().map(|(rank, ns)| (rank, (ns, window_ns))).collect();
    Ok(Said { rows: vec![row], waits_ns: all.waits_ns, collections_ns })
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::tests::check;
    use stepscope_trace::simulated::{Job, Schedule, Straggler};
    use stepscope_trace::{SliceRole, Trace};

    /// Steps of 4.1 ms, in some of which the optimizer of a rank takes longer; all that takes longer is a collection.
    fn job(of_steps: Vec<(i64, Straggler)>) -> Trace {
        job_of(9, of_steps)
    }

    fn job_of(steps: i64, of_steps: Vec<(i64, Straggler)>) -> Trace {
        let schedule = Schedule::Ddp { buckets: 1, overlaps: false };
        let shape = Job { ranks: 3, steps, schedule, has_devices: false, ..Job::default() };
        let job = Job { compute_ns: 1_000_000, transfer_ns: 100_000, stragglers_of_steps: of_steps, ..shape };
        let mut trace = job.run().trace();
        let collection = trace.strings.intern("gc");
        trace.roles = vec![(collection, SliceRole::GarbageCollection)];
        for slice in trace.slices.ids() {
            if trace.slice_name(slice) == "optimizer" && trace.slices.dur_ns[slice.index()] > 1_000_000 {
                trace.slices.name[slice.index()] = collection;
            }
        }
        trace
    }

    fn collects(step: i64, rank: i64, percent: i64) -> (i64, Straggler) {
        (step, Straggler { rank: rank as u32, op: Some("optimizer"), percent })
    }

    #[test]
    fn collections_of_ranks_in_turn_make_all_wait() {
        check(
            &job((0..9).map(|step| collects(step, step % 3, 60)).collect()),
            "rank.gc",
            &[
                "3000 of 37608 bound medium: In 8 of 8 steps the others wait while ranks 0, 1, 2 in turn collect garbage: 4.80 ms (12.8 %) in 8 collectives, 600 µs at most.",
            ],
        );
        check(&job((0..9).map(|step| collects(step, step % 3, 15)).collect()), "rank.gc", &[]);
    }

    #[test]
    fn ranks_that_collect_at_once_wait_for_nobody() {
        let at_once = (0..9).flat_map(|step| (0..3).map(move |rank| collects(step, rank, 60)));
        check(&job(at_once.collect()), "rank.gc", &[]);
    }

    /// Rules about collections, each with the rank.
    fn of_collections(trace: &Trace) -> Vec<(&'static str, Option<u32>)> {
        let rows = advice(trace, &Selection::default());
        let told = rows.iter().map(|row| (row.rule.as_str(), row.rank));
        let mut told: Vec<_> = told.filter(|(rule, _)| rule.ends_with(".gc")).collect();
        told.sort_unstable();
        told
    }

    #[test]
    fn the_same_collections_are_told_once() {
        // What is collected behind the last collective holds up none.
        let in_turn = job_of(18, (0..17).map(|step| collects(step, step % 3, 600)).collect());
        assert_eq!(of_collections(&in_turn), [("rank.gc", None)]);
        // Where ranks collect in the same steps, nothing is gained by it: each has to collect less.
        let all = |step: i64| (0..3).map(move |rank| collects(step, rank, 600));
        let at_once = job_of(18, (0..18).flat_map(all).collect());
        assert_eq!(of_collections(&at_once), [0, 1, 2].map(|rank| ("host.gc", Some(rank))));
    }

    #[test]
    fn what_a_rank_collects_beside_that_stays_its_own() {
        // All collect in each step, and in turn one of them for longer.
        let each = |step: i64| [0, 1, 2].map(|rank| collects(step, rank, if step % 3 == rank { 600 } else { 300 }));
        let trace = job((0..9).flat_map(each).collect());
        let rows = advice(&trace, &Selection::default());
        let row = |rule: &str| rows.iter().find(|row| row.rule.as_str() == rule).expect("it is there");
        let (own, together) = (row("host.gc"), row("rank.gc"));
        let (gain_ns, own_ns) = (own.gain_ns().unwrap(), own.own_gain_ns.unwrap());
        assert!(own_ns < gain_ns && own_ns > gain_ns / 2, "{own_ns} of {gain_ns}");
        assert!(together.gain_ns().unwrap() > 0);
    }

    #[test]
    fn that_a_rank_always_collects_says_why_others_wait_for_it() {
        let trace = job((0..9).map(|step| collects(step, 1, 60)).collect());
        check(&trace, "rank.gc", &[]);
        check(&trace, "rank.slow", &[]);
        check(
            &trace,
            "host.gc",
            &[
                "4800 of 37608 replay high: Python collects its garbage once a step (mean of 9), 1.60 ms each time: 14.4 ms (34.0 %) of 42.3 ms. The others wait for it: its own part of a step takes 600 µs (12.8 %) longer than that of the middle one of the others, in 8 of 8 steps, from the start. 100.0 % of its lateness is collecting garbage.",
            ],
        );
    }
}
