//! Simulated jobs, whose clocks are known.

use super::*;
use proptest::prelude::*;
use stepscope_trace::simulated::{Job, Schedule};
use stepscope_trace::{ClockSource, CollectiveKind, Drift, Joined, SliceId};

const LATENESS_NS: i64 = 300_000;

/// A rank a host, each with such a clock; the ranks of each group leave a collective together.
fn job(clocks: Vec<(i64, Drift)>, groups: Vec<Vec<u32>>, steps: i64) -> Job {
    let ranks = clocks.len() as u32;
    let (schedule, has_devices) = (Schedule::Groups(groups), false);
    let jitter_ns = LATENESS_NS;
    Job { ranks, steps, schedule, hosts: clocks, has_devices, jitter_ns, ..Job::default() }
}

fn all(ranks: u32) -> Vec<Vec<u32>> {
    vec![(0..ranks).collect()]
}

fn offsets(offsets_ns: impl IntoIterator<Item = i64>) -> Vec<(i64, Drift)> {
    offsets_ns.into_iter().map(|offset_ns| (offset_ns, Drift(0))).collect()
}

fn matched_in(trace: &Trace) -> Vec<Vec<Part>> {
    let parts = parts(trace, &Calls::of(trace));
    Matched::of(&parts).each(&parts).collect()
}

fn pairs(trace: &Trace, matched: &[Vec<Part>]) -> Pairs {
    Pairs::of(&domains(trace), matched.iter().map(|parts| parts.iter()))
}

/// By how much slices of a corrected trace are elsewhere than on the clock of rank 0, at most.
fn error_ns(job: &Job) -> i64 {
    let run = job.run();
    // All ranks on the clock of the first.
    let right = Job { hosts: vec![job.hosts[0]], ..job.clone() }.run().trace();
    let corrected = aligned(run.trace(), Align::Collectives);
    let shift_ns = |id: SliceId| corrected.slices.start_ns[id.index()] - right.slices.start_ns[id.index()];
    // The two count from different moments.
    let of_first_rank = right.slices.ids().find(|id| right.rank_of_track(right.slices.track[id.index()]) == 0);
    let zero_ns = shift_ns(of_first_rank.expect("it did something"));
    right.slices.ids().map(|id| (shift_ns(id) - zero_ns).abs()).max().expect("it did something")
}

#[test]
fn offsets_come_out_exactly_without_jitter() {
    assert_eq!(error_ns(&job(offsets([0, 5_000_000, -123_456_789, 77]), all(4), 5)), 0);
}

#[test]
fn a_trace_says_what_put_its_clocks_together() {
    let put_together = |groups: Vec<Vec<u32>>, is_unknown: bool, align: Align| {
        let mut trace = job(offsets([0, 5_000_000, 77, -9_000_000]), groups, 5).run().trace();
        trace.joined = Some(Joined { ranks_stated: 4, ..Joined::default() });
        if is_unknown {
            trace.findings.add(FindingCode::ClocksUnrelated, || "rank 0".into());
            trace.joined = Some(Joined { clocks: ClockSource::BegunTogether, ..Joined::default() });
        }
        aligned(trace, align).joined.expect("it was joined").clocks
    };
    let halves = || vec![vec![0, 1], vec![2, 3]];
    assert_eq!(put_together(all(4), false, Align::Auto), ClockSource::Collectives, "they contradict what is stated");
    assert_eq!(put_together(all(4), false, Align::Base), ClockSource::Stated);
    assert_eq!(put_together(all(4), false, Align::None), ClockSource::BegunTogether);
    assert_eq!(put_together(all(4), true, Align::Auto), ClockSource::Collectives);
    assert_eq!(put_together(halves(), true, Align::Auto), ClockSource::BegunTogether, "nothing joins the halves");
}

#[test]
fn offsets_come_out_within_a_microsecond_with_jitter() {
    let clocks = offsets((0..16).map(|rank| rank * rank * 777_777 - 9_000_000));
    let leave_jitter_ns = 30_000;
    let error_ns = error_ns(&Job { leave_jitter_ns, seed: 7, ..job(clocks, all(16), 2_000) });
    assert!(error_ns <= 1_000 + leave_jitter_ns / 1_000, "{error_ns}");
}

#[test]
fn hosts_of_several_ranks_have_one_clock_in_every_schedule() {
    let schedules = [
        Schedule::Ddp { buckets: 4, overlaps: true },
        Schedule::Fsdp { layers: 3, prefetches: true },
        Schedule::Moe { layers: 3, experts: 4 },
    ];
    for schedule in schedules {
        for has_devices in [true, false] {
            let schedule = schedule.clone();
            let clocks = offsets([40_000_000, -3_000_000]);
            let job = Job { ranks: 8, steps: 60, schedule, has_devices, ..job(clocks, all(2), 60) };
            assert_eq!(error_ns(&job), 0);
            // What is left shrinks with the root of the number of collectives.
            let error_ns = error_ns(&Job { leave_jitter_ns: 10_000, ..job });
            assert!(error_ns <= 1_010, "{error_ns}");
        }
    }
}

#[test]
fn drift_is_found_over_a_minute() {
    let clocks = vec![(0, Drift(0)), (3_000_000, Drift(20_000_000)), (-8_000_000, Drift(-7_000_000))];
    let (compute_ns, leave_jitter_ns) = (10_000_000, 2_000);
    let error_ns = error_ns(&Job { compute_ns, leave_jitter_ns, seed: 3, ..job(clocks, all(3), 6_000) });
    assert!(error_ns <= 1_500, "{error_ns}");
}

#[test]
fn groups_that_touch_each_other_are_one_clock_and_others_are_not() {
    let clocks = offsets([0, 400_000, -900_000, 50_000_000]);
    let chain = job(clocks, vec![vec![2, 3], vec![0, 2], vec![1, 3]], 3);
    assert_eq!(error_ns(&chain), 0);
    let apart = Job { schedule: Schedule::Groups(vec![vec![0, 1], vec![2, 3]]), ..chain }.run().trace();
    let tree = Tree::of(4, &mut pairs(&apart, &matched_in(&apart)));
    assert!(!tree.is_whole());
    let offsets = tree.clocks.iter().map(|clock| clock.unwrap().line.offset_ns);
    assert_eq!(offsets.collect::<Vec<_>>(), [0, -400_000, 0, -50_900_000]);
}

#[test]
fn a_clock_that_jumps_once_does_not_mislead_the_others() {
    let trace = job(offsets([0, 250_000]), all(2), 100).run().trace();
    let mut matched = matched_in(&trace);
    matched.sort_by_key(|parts| parts[0].start_ns);
    for parts in &mut matched[95..] {
        let part = &mut parts[1];
        (part.start_ns, part.end_ns) = (part.start_ns + 3_600_000_000_000, part.end_ns + 3_600_000_000_000);
    }
    let mut pairs = pairs(&trace, &matched);
    let tree = Tree::of(2, &mut pairs);
    assert_eq!(tree.clocks[1].unwrap().line.offset_ns, -250_000);
    assert_eq!(pairs.contradictions(&tree.lines()), 5);
}

#[test]
fn collectives_that_a_rank_may_leave_early_say_nothing() {
    let trace = job(offsets([0, 9]), all(2), 4).run().trace();
    let mut matched = matched_in(&trace);
    assert!(!pairs(&trace, &matched).of_pair.is_empty());
    matched.iter_mut().flatten().for_each(|part| part.kind = Some(CollectiveKind::Broadcast));
    assert!(pairs(&trace, &matched).of_pair.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_clocks_and_groups_come_out_without_jitter(
        clocks in prop::collection::vec(-1_000_000_000_i64..1_000_000_000, 2..9),
        chain in any::<bool>(), seed in any::<u64>(),
    ) {
        let ranks = clocks.len() as u32;
        let groups = if chain { (1..ranks).map(|rank| vec![rank - 1, rank]).collect() } else { all(ranks) };
        let job = Job { seed, ..job(offsets(clocks), groups, 4) };
        prop_assert_eq!(error_ns(&job), 0);
        // On one clock nobody leaves before the last has come.
        let right = Job { hosts: vec![(0, Drift(0)); ranks as usize], ..job }.run().trace();
        let pairs = pairs(&right, &matched_in(&right));
        prop_assert_eq!(pairs.contradictions(&vec![Line::default(); ranks as usize]), 0);
    }
}
