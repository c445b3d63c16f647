use super::*;
use proptest::prelude::*;
use stepscope_trace::drawn::drawn_with_collectives;
use stepscope_trace::simulated::{Job as Simulated, Schedule, Straggler};
use stepscope_trace::{Drift, SliceKind, merge};

/// Jobs of every schedule, with and without devices.
fn jobs() -> Vec<Simulated> {
    let schedules = [
        Schedule::Ddp { buckets: 4, overlaps: true },
        Schedule::Ddp { buckets: 3, overlaps: false },
        Schedule::Fsdp { layers: 3, prefetches: false },
        Schedule::Fsdp { layers: 3, prefetches: true },
        Schedule::Pipeline { stages: 4, micro_batches: 6 },
        Schedule::Pipeline { stages: 2, micro_batches: 3 },
        Schedule::Moe { layers: 2, experts: 4 },
    ];
    let jobs = schedules.into_iter().flat_map(|schedule| [true, false].map(|has| (schedule.clone(), has)));
    jobs.map(|(schedule, has_devices)| Simulated { ranks: 8, steps: 3, schedule, has_devices, ..Simulated::default() })
        .collect()
}

fn slow(job: &Simulated, rank: u32, op: Option<&'static str>, percent: i64) -> Simulated {
    Simulated { stragglers: vec![Straggler { rank, op, percent }], ..job.clone() }
}

fn find(rows: &[WhatIf], scenario: Scenario) -> WhatIf {
    *rows.iter().find(|row| row.scenario == scenario).unwrap_or_else(|| panic!("no {scenario:?} in {rows:?}"))
}

#[track_caller]
fn check(job: &Simulated, changes: &[(Scenario, Simulated)]) {
    let rows = what_if(&job.run().trace(), &Selection::default());
    for (scenario, changed) in changes {
        let row = find(&rows, *scenario);
        assert_eq!((row.steps, row.measured_ns), (job.steps, job.run().total_ns()), "{job:?}");
        assert_eq!(row.replayed_ns, row.measured_ns, "{job:?}");
        assert_eq!(row.projected_ns, changed.run().total_ns(), "{scenario:?} of {job:?}: {row:?}");
    }
}

#[test]
fn without_a_straggler_it_is_as_in_a_job_without_one() {
    for job in jobs() {
        for op in [None, Some("forward"), Some("backward"), Some("optimizer")] {
            let slow = slow(&job, 5, op, 40);
            let scenarios =
                [Scenario::NoLateness, Scenario::NoWorkLateness, Scenario::RankOnTime, Scenario::SlowestRanksOnTime];
            check(&slow, &scenarios.map(|scenario| (scenario, job.clone())));
            check(&slow, &[(Scenario::NoHostLateness, slow.clone())]);
        }
    }
}

#[test]
fn faster_communication_is_as_in_a_job_with_it() {
    for job in jobs() {
        for transfer_ns in [20_000, 60_000, 250_000] {
            let job = Simulated { transfer_ns, ..slow(&job, 2, None, 30) };
            let with = |transfer_ns| Simulated { transfer_ns, ..job.clone() };
            check(
                &job,
                &[(Scenario::HalfCommunication, with(transfer_ns / 2)), (Scenario::FreeCommunication, with(0))],
            );
        }
    }
}

#[test]
fn a_last_stage_like_the_others_is_as_in_a_job_with_such_a_one() {
    for job in jobs() {
        let Schedule::Pipeline { stages, .. } = job.schedule else { continue };
        for copies in [1, 2] {
            let ranks = stages * copies;
            let job = Simulated { ranks, ..job.clone() };
            let last = (ranks - copies..ranks).map(|rank| Straggler { rank, op: None, percent: 100 });
            let heavy = Simulated { stragglers: last.collect(), ..job.clone() };
            check(&heavy, &[(Scenario::LastStageLikeOthers, job)]);
            let rows = what_if(&heavy.run().trace(), &Selection::default());
            assert_eq!(find(&rows, Scenario::LastStageLikeOthers).ranks, i64::from(copies));
        }
    }
    let without = Simulated::default().run().trace();
    let rows = what_if(&without, &Selection::default());
    assert!(rows.iter().all(|row| row.scenario != Scenario::LastStageLikeOthers));
}

/// The largest error of a projection in 1,000 of the true time, and the largest replay error.
fn errors(job: &Simulated, scenario: Scenario, changed: &Simulated) -> (i64, i64) {
    let (mut projection, mut replay) = (0, 0);
    for seed in 0..5 {
        let rows = what_if(&Simulated { seed, ..job.clone() }.run().trace(), &Selection::default());
        let row = find(&rows, scenario);
        let true_ns = Simulated { seed, ..changed.clone() }.run().total_ns();
        let off = |ns: i64, of_ns: i64| (ns - of_ns).abs() * 1_000 / of_ns;
        projection = off(row.projected_ns, true_ns).max(projection);
        replay = off(row.replayed_ns, row.measured_ns).max(replay);
    }
    (projection, replay)
}

#[test]
fn with_jitter_projections_are_within_a_hundredth() {
    for job in jobs() {
        // Each time a rank computes it takes up to a tenth longer, and it leaves collectives up to a twentieth later.
        let job = Simulated { jitter_ns: 10_000, leave_jitter_ns: 3_000, ..job };
        let straggling = slow(&job, 5, None, 40);
        let half = Simulated { transfer_ns: job.transfer_ns / 2, ..straggling.clone() };
        for (scenario, changed) in [(Scenario::RankOnTime, &job), (Scenario::HalfCommunication, &half)] {
            let (projection, replay) = errors(&straggling, scenario, changed);
            assert!(projection <= 10 && replay <= 2, "{scenario:?} {projection} {replay} of {job:?}");
        }
    }
}

#[test]
fn ranks_come_by_what_they_gain_and_the_slowest_is_the_first() {
    for job in jobs() {
        let stragglers = [(1, 10), (4, 60), (6, 25)].map(|(rank, percent)| Straggler { rank, op: None, percent });
        let rows = what_if(&Simulated { stragglers: stragglers.into(), ..job }.run().trace(), &Selection::default());
        let ranks: Vec<WhatIf> = rows.iter().filter(|row| row.scenario == Scenario::RankOnTime).copied().collect();
        assert!(ranks.iter().map(|row| -row.gain_ns).is_sorted() && ranks[0].rank == Some(4), "{ranks:?}");
        assert_eq!(find(&rows, Scenario::SlowestRanksOnTime).projected_ns, ranks[0].projected_ns);
    }
}

#[test]
fn clocks_of_hosts_and_the_order_of_ranks_change_nothing() {
    for job in jobs() {
        let right = slow(&job, 5, None, 40);
        let expected = what_if(&right.run().trace(), &Selection::default());
        let run = Simulated { hosts: vec![(9_000_000, Drift(0)), (0, Drift(0))], ..right }.run();
        for order in [[0, 1, 2, 3, 4, 5, 6, 7], [5, 2, 7, 0, 1, 6, 4, 3]] {
            let traces = order.map(|rank| run.trace_of(rank)).map(|trace| {
                let start_ns = trace.start_source_ns;
                (trace, start_ns)
            });
            let trace = stepscope_align::aligned(merge("all".into(), traces.into(), None), Default::default());
            if trace.clocks.is_empty() {
                // In a pipeline of which each host has whole stages no collective joins hosts, and clocks are not known.
                assert!(matches!(job.schedule, Schedule::Pipeline { .. }), "{job:?}");
                continue;
            }
            assert_eq!(what_if(&trace, &Selection::default()), expected, "{job:?}");
        }
    }
}

#[test]
fn a_selection_has_its_steps_and_a_rank_its_row() {
    let run = slow(&jobs()[0], 5, None, 40).run();
    let trace = run.trace();
    let of_step = what_if(&trace, &Selection { step: Some(1), ..Selection::default() });
    assert_eq!((of_step[0].steps, of_step[0].measured_ns), (1, run.step_ns()[1]));
    for rank in [5, 3] {
        let rows = what_if(&trace, &Selection { ranks: rank.into(), ..Selection::default() });
        assert_eq!((rows.len(), rows[0].rank, rows[0].ranks), (1, Some(rank), 1));
        assert_eq!(rows[0].gain_ns > 0, rank == 5);
    }
    assert_eq!(what_if(&trace, &Selection { ranks: 8.into(), ..Selection::default() }), []);
    assert_eq!(what_if(&run.trace_of(5), &Selection::default()), [], "a rank alone joins nobody");
}

/// What half the communication saves of two ranks that do the same, in ns: `rows` are of one rank.
fn saved_by_half(rows: &[&str]) -> i64 {
    let of_rank = |rank: u32| rows.iter().map(move |row| format!("rank {rank} {row}\n"));
    let drawing: String = (0..2).flat_map(of_rank).collect();
    // Drawn numbers count over all ranks: without any, order decides.
    let said = ("allreduce", "Float", Some(1_000), None);
    let trace = drawn_with_collectives(&drawing, &[("a", SliceKind::Op, said)]);
    find(&what_if(&trace, &Selection::default()), Scenario::HalfCommunication).gain_ns
}

#[test]
fn what_was_launched_before_a_communication_ended_waited_for_it() {
    let cpu = "cpu 1    aa.............";
    let comm = "stream 9 .NNNN..........";
    let after = saved_by_half(&[cpu, "launch 1 NC.............", comm, "stream 7 .......CC......"]);
    assert_eq!(after, 2_000);
    // The host came late, and not because it waited.
    let late = ["launch 1 N......C.......", comm, "stream 7 ........CC....."];
    assert_eq!(saved_by_half(&[&[cpu], &late[..]].concat()), 0);
    assert_eq!(saved_by_half(&[&[cpu, "sync 1   ..ssss........."], &late[..]].concat()), 2_000);
}

#[test]
fn communication_beside_work_saves_what_its_end_holds_up() {
    let (cpu, launch, comm) = ("cpu 1    aaa............", "launch 1 NBC............", "stream 9 ..NNNNNNNN.....");
    let hidden = saved_by_half(&[cpu, launch, comm, "stream 7 ..BBBBBBBBBCCC."]);
    assert_eq!(hidden, 0);
    let exposed = saved_by_half(&[cpu, launch, comm, "stream 7 ..BBBBBB..CCC.."]);
    assert_eq!(exposed, 2_000, "up to the end of the work beside it");
}

/// Ranks that each have these rows.
fn of_ranks(ranks: &[&[&str]]) -> Trace {
    let rows =
        ranks.iter().enumerate().flat_map(|(rank, rows)| rows.iter().map(move |row| format!("rank {rank} {row}\n")));
    let said = ("allreduce", "Float", Some(1_000), None);
    drawn_with_collectives(&rows.collect::<String>(), &[("a", SliceKind::Op, said)])
}

/// Replayed and projected, in us.
fn projected(ranks: &[&[&str]], scenario: Scenario) -> (i64, i64) {
    let row = find(&what_if(&of_ranks(ranks), &Selection::default()), scenario);
    (row.replayed_ns / 1_000, row.projected_ns / 1_000)
}

#[test]
fn a_late_host_is_told_from_long_work() {
    let work = "stream 7 .BBB.............";
    let early: &[&str] =
        &["cpu 1    .....aa..........", "launch 1 B.....N..........", work, "stream 9 .......NNNNN....."];
    let late: &[&str] =
        &["cpu 1    ........aa.......", "launch 1 B........N.......", work, "stream 9 ..........NN....."];
    let of = |scenario| projected(&[early, late, early], scenario);
    assert_eq!(of(Scenario::NoHostLateness), of(Scenario::NoLateness));
    let (replayed, projected) = of(Scenario::NoHostLateness);
    assert_eq!(replayed - projected, 3, "the host launched three microseconds later");
    let (replayed, projected) = of(Scenario::NoWorkLateness);
    assert_eq!(replayed, projected);
}

#[test]
fn communication_that_is_hidden_costs_what_work_is_too_short_for() {
    let rows = |comm: &'static str, work: &'static str| -> Vec<&'static str> {
        vec!["cpu 1    aaa............", "launch 1 NBC............", comm, work]
    };
    let of = |comm, work| projected(&[&rows(comm, work), &rows(comm, work)], Scenario::PerfectOverlap);
    // All of the communication fits beside seven and three microseconds of work.
    assert_eq!(of("stream 9 ..NNNNNNNN.....", "stream 7 ..BBBBBB..CCC.."), (13, 11));
    // One of three is left, as long as the communication takes.
    assert_eq!(of("stream 9 ..NNNNNNNN.....", "stream 7 ..BB......CCC.."), (13, 10));
    // What is hidden stays so.
    assert_eq!(of("stream 9 ..NNNNNNNN.....", "stream 7 ..BBBBBBBBBCCC."), (14, 14));
}

#[test]
fn without_its_one_category_of_work_a_job_only_communicates() {
    // Behind a prefetch nothing tells which of two communications was waited for.
    let is_clear = |job: &Simulated| job.schedule != Schedule::Fsdp { layers: 3, prefetches: true };
    for job in jobs().into_iter().filter(is_clear) {
        // Ranks that end a step apart from each other begin the next one so, which the change may alter.
        let steps = if matches!(job.schedule, Schedule::Pipeline { .. }) { 1 } else { job.steps };
        let slow = Simulated { steps, ..slow(&job, 5, None, 40) };
        let idle = Simulated { compute_ns: 0, ..slow.clone() };
        check(&slow, &[(Scenario::WithoutCategory, idle)]);
    }
}

#[test]
fn work_of_a_category_saves_what_it_does_alone() {
    let rows = [
        "cpu 1    aabbcc...........",
        "launch 1 N.B.C............",
        "stream 9 .NN..............",
        "stream 7 ....BBB..........",
        "stream 8 .....CCC.........",
    ];
    let gains = |ranks: &[&[&str]]| {
        let mut trace = of_ranks(ranks);
        for (old, new) in [("b", "aten::mm"), ("c", "aten::add")] {
            let (old, new) = (trace.strings.intern(old), trace.strings.intern(new));
            trace.slices.name.iter_mut().filter(|name| **name == old).for_each(|name| *name = new);
        }
        let rows = what_if(&trace, &Selection::default());
        let gains = rows.iter().filter_map(|row| Some((row.category?, row.gain_ns / 1_000)));
        gains.collect::<BTreeMap<_, _>>()
    };
    assert_eq!(gains(&[&rows, &rows]), BTreeMap::from([("matrix_product", 1), ("elementwise", 1)]));
}

fn any_job() -> impl Strategy<Value = Simulated> {
    let schedule = (0_usize..jobs().len()).prop_map(|at| jobs()[at].clone());
    (schedule, 1_i64..300_000, 1_i64..300_000, 0_i64..100_000, any::<u64>()).prop_map(
        |(job, compute_ns, transfer_ns, jitter_ns, seed)| Simulated { compute_ns, transfer_ns, jitter_ns, seed, ..job },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_replay_without_a_change_is_what_happened_and_faster_communication_never_costs(
        job in any_job(), percent in 0_i64..90,
    ) {
        let rows = what_if(&slow(&job, 3, None, percent).run().trace(), &Selection::default());
        let total_ns = slow(&job, 3, None, percent).run().total_ns();
        for row in &rows {
            prop_assert_eq!((row.measured_ns, row.replayed_ns), (total_ns, total_ns));
            prop_assert_eq!(row.gain_ns, row.replayed_ns - row.projected_ns);
        }
        let of = [Scenario::HalfCommunication, Scenario::FreeCommunication, Scenario::PerfectOverlap];
        let [half, free, hidden] = of.map(|of| find(&rows, of));
        prop_assert!(free.projected_ns <= half.projected_ns && half.projected_ns <= total_ns);
        // No rank is done before its own work is.
        let trace = slow(&job, 3, None, percent).run().trace();
        let steps = job_steps(&AnalysisContext::new(&trace, &Selection::default()));
        let own_ns = |step: &JobStep| {
            let begun_ns = step.ranks.iter().map(|rank| rank.span.start_ns).max()?;
            let ends_ns = step.ranks.iter().map(|rank| rank.span.start_ns + lateness::own_ns(&rank.acts));
            Some(ends_ns.max()? - begun_ns)
        };
        let least_ns: i64 = steps.iter().filter_map(own_ns).sum();
        prop_assert!((least_ns..=total_ns).contains(&hidden.projected_ns), "{least_ns} {hidden:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn without_jitter_a_projection_is_the_job_run_again_with_the_change(job in any_job(), percent in 0_i64..90) {
        let job = Simulated { jitter_ns: 0, ..job };
        let slow = slow(&job, 3, None, percent);
        let rows = what_if(&slow.run().trace(), &Selection::default());
        let with = |transfer_ns| Simulated { transfer_ns, ..slow.clone() };
        // The last layers are gathered and scattered at once behind a straggler, and then nothing tells which of the two the
        // others wait for: they wait for both.
        let may_wait_for_both = job.schedule == Schedule::Fsdp { layers: 3, prefetches: true };
        for (scenario, changed) in [
            (Scenario::NoLateness, job.clone()),
            (Scenario::HalfCommunication, with(job.transfer_ns / 2)),
            (Scenario::FreeCommunication, with(0)),
        ] {
            let (projected_ns, true_ns) = (find(&rows, scenario).projected_ns, changed.run().total_ns());
            if may_wait_for_both {
                prop_assert!((true_ns..=true_ns + true_ns / 10).contains(&projected_ns), "{projected_ns} for {true_ns}");
            } else {
                prop_assert_eq!(projected_ns, true_ns, "{:?}", scenario);
            }
        }
    }
}
