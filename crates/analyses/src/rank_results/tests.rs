use super::*;
use crate::{Analysis, Needs, Outcome, Ranks, catalogue};
use proptest::prelude::*;
use stepscope_trace::drawn::drawn;
use stepscope_trace::simulated::{Job, Schedule, Straggler};
use stepscope_trace::{Collective, Drift, merge};

/// What all analyses that need no events say of several ranks: from their events, and from what was condensed of them.
fn both(ranks: &[Trace], selection: &Selection) -> Vec<(&'static str, Outcome, Outcome)> {
    let merged = |traces: Vec<Trace>| merge("all".into(), traces.into_iter().map(|trace| (trace, 0)).collect(), None);
    let whole = merged(ranks.to_vec());
    let all = Selection::default();
    let condense = |trace: &Trace| condensed(&AnalysisContext::new(trace, &all));
    let (traces, results): (Vec<Trace>, Vec<RankResults>) = ranks.iter().map(condense).unzip();
    assert!(traces.iter().zip(&results).all(|(trace, results)| results.fits(trace)));
    let mut first = FirstIds::default();
    let mut placed = Vec::new();
    for (trace, results) in traces.iter().zip(&results) {
        placed.push((first, results));
        first = first.after(trace);
    }
    let small = merged(traces.clone());
    let shared = given(&small, &placed, selection);
    let context = AnalysisContext::with_results(&small, selection, shared);
    let needless = catalogue().iter().filter(|analysis| analysis.needs == Needs::Condensed);
    needless
        .map(|analysis| {
            let from_events = (analysis.run)(&AnalysisContext::new(&whole, selection));
            (analysis.name, from_events, (analysis.run)(&context))
        })
        .collect()
}

#[track_caller]
fn check(ranks: &[Trace]) -> Vec<&'static str> {
    let mut with_rows = Vec::new();
    let steps = [None, Some(1)].map(|step| Selection { step, ..Selection::default() });
    let complete = Selection { complete_steps: true, ..Selection::default() };
    let one = Selection { ranks: 1.into(), ..Selection::default() };
    for selection in steps.into_iter().chain([complete, one]) {
        for (name, from_events, from_condensed) in both(ranks, &selection) {
            assert_eq!(from_condensed, from_events, "{name} of {selection:?}");
            if !from_events.table.is_empty() && !with_rows.contains(&name) {
                with_rows.push(name);
            }
        }
    }
    with_rows
}

fn simulated(schedule: Schedule, ranks: u32, has_devices: bool, seed: u64) -> Vec<Trace> {
    let stragglers = vec![Straggler { rank: 1, op: None, percent: 140 }];
    let hosts = vec![(0, Drift(0)), (70_000, Drift(3_000))];
    let job =
        Job { ranks, steps: 3, schedule, has_devices, jitter_ns: 5_000, seed, stragglers, hosts, ..Job::default() };
    let run = job.run();
    (0..ranks).map(|rank| run.trace_of(rank)).collect()
}

#[test]
fn what_was_condensed_of_ranks_gives_the_same_answers_as_their_events() {
    for has_devices in [true, false] {
        let mut with_rows = check(&simulated(Schedule::Pipeline { stages: 2, micro_batches: 3 }, 4, has_devices, 1));
        with_rows.extend(check(&simulated(Job::default().schedule, 4, has_devices, 2)));
        // Nobody hangs, and nothing is doubtful.
        let is_empty = |analysis: &&Analysis| ["hangs", "findings"].contains(&analysis.name);
        let condensed = catalogue().iter().filter(|analysis| analysis.needs == Needs::Condensed);
        let condensed = condensed.filter(|analysis| !is_empty(analysis));
        condensed.for_each(|analysis| assert!(with_rows.contains(&analysis.name), "{} has no rows", analysis.name));
    }
}

#[test]
fn a_job_that_hangs_does_so_in_what_was_condensed() {
    for has_devices in [true, false] {
        let mut ranks = simulated(Job::default().schedule, 3, has_devices, 5);
        for (rank, trace) in ranks.iter_mut().enumerate() {
            let last = trace.collectives.iter().filter_map(|said| said.sequence_number).max();
            let is_last = |said: &Collective| said.sequence_number == last;
            if rank == 1 {
                trace.collectives.retain(|said| !is_last(said));
                continue;
            }
            let said: Vec<SliceId> =
                trace.collectives.iter().filter(|said| is_last(said)).map(|said| said.slice).collect();
            let kernels = trace.device_events.iter().filter(|event| event.op.is_some_and(|op| said.contains(&op)));
            let kernels: Vec<SliceId> = kernels.map(|event| event.slice).collect();
            said.into_iter().chain(kernels).for_each(|slice| trace.slices.is_unfinished[slice.index()] = true);
        }
        assert!(check(&ranks).contains(&"hangs"), "devices: {has_devices}");
    }
}

#[test]
fn a_condensed_trace_has_few_slices() {
    let ranks = simulated(Job::default().schedule, 2, true, 3);
    let (trace, _) = condensed(&AnalysisContext::new(&ranks[0], &Selection::default()));
    assert!(trace.slices.len() < ranks[0].slices.len(), "{} of {}", trace.slices.len(), ranks[0].slices.len());
    assert_eq!((trace.span(), trace.steps.len()), (ranks[0].span(), ranks[0].steps.len()));
}

proptest! {
    #[test]
    fn drawn_ranks_give_the_same_answers(
        rows in prop::collection::vec(("0{1,15}1{15}", "[.amx|]{30}", "[.CDN|]{30}", "[.CDNH|]{30}"), 2..4),
    ) {
        let of_rank = |(rank, (steps, host, launch, stream)): (usize, &(String, String, String, String))| {
            drawn(&format!(
                "rank {rank} step {steps}\nrank {rank} cpu 1 {host}\nrank {rank} launch 1 {launch}\nrank {rank} stream 7 {stream}\n"
            ))
        };
        check(&rows.iter().enumerate().map(of_rank).collect::<Vec<_>>());
    }
}

#[test]
fn rows_of_a_rank_depend_on_no_other() {
    let ranks = simulated(Job::default().schedule, 3, true, 4);
    let whole = merge("all".into(), ranks.into_iter().map(|trace| (trace, 0)).collect(), None);
    for analysis in catalogue().iter().filter(|analysis| analysis.needs == Needs::EachRank) {
        let of = |ranks: Ranks| {
            let selection = Selection { ranks, ..Selection::default() };
            (analysis.run)(&AnalysisContext::new(&whole, &selection)).table
        };
        let each = (0..3).map(|rank| of(rank.into())).reduce(|mut all, next| {
            all.append(next);
            all
        });
        assert_eq!(each, Some(of(Ranks::default())), "{}", analysis.name);
    }
}
