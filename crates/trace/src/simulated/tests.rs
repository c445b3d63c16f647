use super::*;
use crate::SliceKind;
use stepscope_base::Span;

fn schedules() -> [Schedule; 5] {
    [
        Schedule::Ddp { buckets: 3, overlaps: true },
        Schedule::Fsdp { layers: 3, prefetches: true },
        Schedule::Pipeline { stages: 2, micro_batches: 4 },
        Schedule::Moe { layers: 2, experts: 2 },
        Schedule::Groups(vec![vec![0, 2], vec![1, 3], vec![0, 1, 2, 3]]),
    ]
}

#[test]
fn a_step_takes_what_its_parts_take() {
    let of =
        |schedule: Schedule| Job { ranks: 2, steps: 1, schedule, compute_ns: 100, transfer_ns: 60, ..Job::default() };
    let check = |schedule: Schedule, expected_ns: i64| {
        let run = of(schedule).run();
        let launches = run.done[0].len() as i64 - 1;
        assert_eq!(run.total_ns() - launches * run::LAUNCH_NS, expected_ns);
    };
    // Forward and optimizer, two of backward; only the last reduction is not hidden.
    check(Schedule::Ddp { buckets: 2, overlaps: true }, 2 * 100 + 2 * 200 + 60);
    check(Schedule::Ddp { buckets: 2, overlaps: false }, 2 * 100 + 2 * (200 + 60));
    check(Schedule::Fsdp { layers: 2, prefetches: false }, 2 * (60 + 100) + 2 * (60 + 200) + 60 + 100);
    check(Schedule::Fsdp { layers: 2, prefetches: true }, 60 + 2 * 100 + 60 + 2 * 200 + 60 + 100);
    // The first forward passes the stages, each micro-batch takes forward and backward, the last backward comes back.
    check(Schedule::Pipeline { stages: 2, micro_batches: 1 }, 100 + 60 + 100 + 200 + 60 + 200 + 100);
    check(Schedule::Moe { layers: 1, experts: 2 }, 3 * 100 + 2 * 60 + 3 * 200 + 2 * 60 + 60 + 100);
}

#[test]
fn who_is_late_holds_up_the_others_by_as_much_as_they_wait() {
    let stragglers = vec![Straggler { rank: 2, op: Some("forward"), percent: 30 }];
    let job = Job { schedule: Schedule::Ddp { buckets: 1, overlaps: false }, stragglers, steps: 5, ..Job::default() };
    let run = job.run();
    let late_ns = 5 * 30_000;
    for (rank, waiting) in run.waiting().into_iter().enumerate() {
        let expected = if rank == 2 { (0, late_ns) } else { (late_ns, 0) };
        assert_eq!((waiting.waited_ns, waiting.held_up_ns), expected, "rank {rank}");
    }
    assert_eq!(run.total_ns() - job.without_stragglers().run().total_ns(), late_ns);
}

#[test]
fn a_job_runs_the_same_again_and_its_seed_changes_it() {
    for schedule in schedules() {
        let job = Job { schedule, jitter_ns: 5_000, leave_jitter_ns: 500, ..Job::default() };
        assert_eq!(job.run().step_ns(), job.run().step_ns());
        assert_ne!(job.run().step_ns(), Job { seed: 1, ..job.clone() }.run().step_ns());
    }
}

#[test]
fn the_trace_shows_what_was_done_on_the_clocks_of_the_hosts() {
    for has_devices in [true, false] {
        // Computing and communication of each step of each rank.
        let (computing, communication) = (5, 3);
        let right = Job { has_devices, ..Job::default() };
        let wrong = Job { hosts: vec![(7_000_000, Drift(0)), (2_000_000, Drift(0))], ..right.clone() };
        let (right, wrong) = (right.run(), wrong.run());
        assert_eq!(right.step_ns(), wrong.step_ns());
        let (right, wrong) = (right.trace(), wrong.trace());
        let kinds = |kind| right.slices.ids().filter(|id| right.slices.kind(*id) == kind).count();
        assert_eq!(
            kinds(if has_devices { SliceKind::Kernel } else { SliceKind::Op }),
            4 * 2 * (computing + communication)
        );
        assert_eq!((right.steps.len(), right.findings.iter().count()), (8, 0));
        for id in right.slices.ids() {
            // The earliest event of all is at 0.
            let shift_ns = if right.rank_of_track(right.slices.track[id.index()]) < 2 { 5_000_000 } else { 0 };
            let span = right.slices.span(id);
            assert_eq!(wrong.slices.span(id), Span::new(span.start_ns + shift_ns, span.end_ns + shift_ns));
        }
    }
}

#[test]
fn device_work_is_launched_and_linked() {
    for schedule in schedules() {
        let trace = Job { schedule, ..Job::default() }.run().trace();
        assert!(!trace.device_events.is_empty());
        for event in trace.device_events.iter() {
            let launch = trace.slices.span(event.launch.expect("it was launched"));
            assert!(event.op.is_some() && launch.end_ns <= trace.slices.start_ns[event.slice.index()]);
        }
        let steps: i64 = trace.steps.iter().filter(|step| step.rank == 0).map(|step| step.span.duration_ns()).sum();
        let on_device = trace.slices.ids().map(|id| trace.slices.span(id).end_ns).max();
        assert!(on_device >= Some(steps), "the device is done when the step is");
    }
}
