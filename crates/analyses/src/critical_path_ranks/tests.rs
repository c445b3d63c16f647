use super::*;
use crate::critical_path::critical_path;
use crate::stream_waits::tests::add_wait;
use proptest::prelude::*;
use stepscope_trace::drawn::drawn_with_collectives;
use stepscope_trace::simulated::{Job, Schedule, Straggler};
use stepscope_trace::{CollectiveKind, Drift, SliceKind, SliceRole};

/// The parts of a row in order, with the names of the columns.
fn parts(row: &CriticalPathRanks) -> Vec<(&'static str, i64)> {
    let of_class = PathClass::ALL.iter().map(|class| (class.as_str(), row.time.parts.of(*class)));
    of_class.chain([("transfer", row.time.transfer_ns)]).filter(|(_, ns)| *ns > 0).collect()
}

/// Rows as `step/rank ns = part class + …, xhops`, in units of `ns`, empty parts left out; no sums.
fn lines(trace: &Trace, unit_ns: i64) -> Vec<String> {
    let line = |row: &CriticalPathRanks| {
        let parts = parts(row).into_iter().map(|(class, ns)| format!("{} {class}", ns / unit_ns));
        let parts = parts.collect::<Vec<_>>().join(" + ");
        format!("{}/{} {} = {parts}, x{}", row.step.unwrap(), row.rank, row.path_ns / unit_ns, row.hops)
    };
    let rows = critical_path_ranks(trace, &Selection::default());
    rows.iter().filter(|row| row.step.is_some()).map(line).collect()
}

const SAID: (&str, &str, Option<i64>, Option<i64>) = ("allreduce", "Float", Some(10), None);

fn check(drawing: &str, expected: &[&str]) {
    let trace = drawn_with_collectives(drawing, &[("a", SliceKind::Op, SAID)]);
    assert_eq!(lines(&trace, 1_000), expected);
}

#[test]
fn a_path_goes_on_with_the_rank_that_came_last() {
    check(
        "rank 0 step     000000000000
         rank 0 cpu 1    .aa.........
         rank 0 launch 1 C.N.........
         rank 0 sync 1   ...sssssssss
         rank 0 stream 7 .C..........
         rank 0 stream 9 ....NNNNNNN.
         rank 1 step     000000000000
         rank 1 cpu 1    .aa.........
         rank 1 launch 1 C.N.........
         rank 1 sync 1   ...ssssssss.
         rank 1 stream 7 ..CCCCCC....
         rank 1 stream 9 ........NNN.",
        // Both end at once; the path leaves on rank 0. Rank 1 was launched a microsecond late, and computed for six.
        &["0/1 8 = 6 compute + 1 launch_latency + 1 runtime, x0", "0/0 4 = 1 host_sync + 3 transfer, x1"],
    );
}

#[test]
fn the_rank_that_came_last_stays_on_the_path() {
    check(
        "rank 0 step     000000000000
         rank 0 cpu 1    .aa.........
         rank 0 launch 1 ..N.........
         rank 0 sync 1   .........ss.
         rank 0 stream 9 ........NNN.
         rank 1 step     00000000000.
         rank 1 cpu 1    .aa.........
         rank 1 launch 1 ..N.........
         rank 1 stream 9 ...NNNNNNNN.",
        &["0/0 12 = 5 launch_latency + 1 runtime + 1 host_op + 2 other + 3 transfer, x0"],
    );
}

#[test]
fn what_streams_waited_for_is_taken_from_what_is_reported() {
    let mut trace = drawn_with_collectives(
        "rank 0 step     0000000000..
         rank 0 cpu 1    .aa.........
         rank 0 launch 1 ..NrwC......
         rank 0 stream 9 ...NNNNN....
         rank 0 stream 7 .........CC.
         rank 1 step     00000000....
         rank 1 cpu 1    .aa.........
         rank 1 launch 1 ..N.........
         rank 1 stream 9 .....NNN....",
        &[("a", SliceKind::Op, SAID)],
    );
    // C was launched before N ended, and began after it.
    let hops =
        |trace: &Trace| critical_path_ranks(trace, &Selection::default()).iter().map(|row| row.hops).sum::<i64>();
    assert_eq!(hops(&trace), 1);
    // It is reported that its stream waits for another one; so it did not wait for this.
    add_wait(&mut trace, ("w", 7), ("r", 8));
    assert_eq!(hops(&trace), 0);
    add_wait(&mut trace, ("w", 7), ("r", 9));
    assert_eq!(hops(&trace), 1);
}

/// What ranks of a simulated job of four ranks take in each step, when rank 2 is slow.
fn with_straggler(op: Option<&'static str>, schedule: Schedule, has_devices: bool) -> Job {
    let stragglers = vec![Straggler { rank: 2, op, percent: 30 }];
    Job { schedule, stragglers, has_devices, ..Job::default() }
}

#[test]
fn steps_of_data_parallel_ranks_go_through_the_straggler() {
    let job = with_straggler(Some("backward"), Schedule::Ddp { buckets: 3, overlaps: true }, true);
    // Launches take 80 ns of each step; then a forward and three backward passes, 30 % slower. After the last of them
    // gradients are on their way, and rank 0 ends with its optimizer, as others do.
    let of_step = |step: i64| {
        [
            format!("{step}/2 880080 = 880000 compute + 72 launch_latency + 6 runtime + 2 host_op, x0"),
            format!("{step}/0 160000 = 100000 compute + 60000 transfer, x1"),
        ]
    };
    assert_eq!(lines(&job.run().trace(), 1), [of_step(0), of_step(1)].concat());
    // Without devices operators compute, and asking for each collective takes a microsecond.
    let job = Job { has_devices: false, ..job };
    let of_step = |step: i64| {
        [
            format!("{step}/2 883000 = 883000 host_op, x0"),
            format!("{step}/0 160000 = 100000 host_op + 60000 transfer, x1"),
        ]
    };
    assert_eq!(lines(&job.run().trace(), 1), [of_step(0), of_step(1)].concat());
    let rows = critical_path_ranks(&job.run().trace(), &Selection::default());
    let sums: Vec<_> =
        rows.iter().filter(|row| row.step.is_none()).map(|row| (row.rank, row.path_ns, row.hops)).collect();
    assert_eq!(sums, [(2, 2 * 883_000, 0), (0, 2 * 160_000, 2)]);
    assert_eq!((rows[0].length_ns, rows[0].ranks, rows[0].is_complete), (job.run().total_ns(), 4, true));
}

#[test]
fn a_rank_that_is_slow_at_everything_has_all_of_the_path() {
    for schedule in [Schedule::Ddp { buckets: 3, overlaps: false }, Schedule::Fsdp { layers: 3, prefetches: true }] {
        for has_devices in [true, false] {
            let trace = with_straggler(None, schedule.clone(), has_devices).run().trace();
            let rows = critical_path_ranks(&trace, &Selection::default());
            assert!(rows.iter().all(|row| (row.rank, row.hops, row.path_ratio) == (2, 0, 1.0)), "{rows:?}");
        }
    }
}

#[test]
fn the_path_of_a_pipeline_goes_to_its_last_stage_and_back() {
    for has_devices in [true, false] {
        let schedule = Schedule::Pipeline { stages: 4, micro_batches: 1 };
        let job = Job { steps: 1, schedule, has_devices, ..Job::default() };
        let rows = critical_path_ranks(&job.run().trace(), &Selection::default());
        let (mut computed, mut transfer, mut hops) = (Vec::new(), Vec::new(), Vec::new());
        for rank in 0..4 {
            let row = rows.iter().find(|row| row.rank == rank).expect("it is on the path");
            let asked_ns = if has_devices { 0 } else { row.time.parts.of(PathClass::HostOp) % 100_000 };
            computed.push(row.time.parts.of(PathClass::Compute) + row.time.parts.of(PathClass::HostOp) - asked_ns);
            transfer.push(row.time.transfer_ns);
            hops.push(row.hops);
        }
        // Each stage has a forward pass of 100 us and a backward pass of 200 us; the first ends with its optimizer. What
        // is received is transfer on the stage that receives it, one way and back.
        let launches = if has_devices { 2 } else { 0 };
        assert_eq!(computed[0] - launches, 400_000);
        assert_eq!(computed[1..], [300_000; 3]);
        assert_eq!(transfer, [60_000, 120_000, 120_000, 60_000]);
        assert_eq!(hops, [1, 2, 2, 1]);
    }
}

#[test]
fn a_slow_stage_of_a_pipeline_has_the_path_while_micro_batches_pass() {
    let schedule = Schedule::Pipeline { stages: 4, micro_batches: 8 };
    let stragglers = vec![Straggler { rank: 1, op: None, percent: 60 }];
    let run = Job { schedule, stragglers, ..Job::default() }.run();
    let rows = critical_path_ranks(&run.trace(), &Selection::default());
    // All of its backward passes are on the path; while the first micro-batch is under way, other stages are.
    let of_steps: Vec<_> = rows.chunk_by(|a, b| a.step == b.step).map(|rows| (rows[0].step, rows[0].rank)).collect();
    assert_eq!(of_steps, [(None, 1), (Some(0), 1), (Some(1), 1)]);
    assert!(rows[0].time.parts.of(PathClass::Compute) > 2 * 8 * 320_000, "{:?}", rows[0]);
    assert_eq!(rows[0].length_ns, run.total_ns());
}

#[test]
fn an_operator_that_waits_for_collectives_goes_on_with_the_work() {
    let drawing = "rank 0 step    0000000000
                   rank 0 cpu 1   .a.wwwwww.
                   rank 0 label 2 ..bbbbbb..
                   rank 1 step    0000000000
                   rank 1 cpu 1   .....a....
                   rank 1 label 2 ......bb..";
    let mut trace = drawn_with_collectives(drawing, &[("b", SliceKind::Annotation, SAID)]);
    // Without its role the operator may do anything.
    assert_eq!(lines(&trace, 1_000), ["0/0 10 = 7 host_op + 3 other, x0"]);
    trace.roles = vec![(trace.strings.intern("w"), SliceRole::CollectiveWait)];
    let expected = ["0/1 6 = 1 host_op + 5 other, x0", "0/0 4 = 1 host_op + 1 other + 2 transfer, x1"];
    assert_eq!(lines(&trace, 1_000), expected);
}

#[test]
fn what_is_received_waits_for_what_is_sent() {
    let drawing = "rank 0 step     0000000000.
                   rank 0 cpu 1    .s.........
                   rank 0 launch 1 .N.........
                   rank 0 stream 9 ......NN...
                   rank 1 step     0000000000.
                   rank 1 cpu 1    .r.........
                   rank 1 launch 1 .N.........
                   rank 1 stream 9 ..NNNNNNNNN";
    let mut trace = drawn_with_collectives(drawing, &[("s", SliceKind::Op, SAID), ("r", SliceKind::Op, SAID)]);
    let peers = [("s", CollectiveKind::Send, None, Some(1)), ("r", CollectiveKind::Receive, Some(0), None)];
    for (name, kind, from, to) in peers {
        let is_named = |slice| trace.slice_name(slice) == name;
        let at = trace.collectives.iter().position(|said| is_named(said.slice)).unwrap();
        let said = &mut trace.collectives[at];
        (said.kind, said.source_rank, said.destination_rank) = (Some(kind), from, to);
    }
    // The sender leaves early: it may keep what it sent, and when they began decides who came last.
    let expected = ["0/0 6 = 4 launch_latency + 1 runtime + 1 other, x0", "0/1 5 = 5 transfer, x1"];
    assert_eq!(lines(&trace, 1_000), expected);
}

#[test]
fn a_path_never_goes_forward_nor_twice_through_what_contradicts_itself() {
    // Each rank is the last to come to what the other one has first.
    let drawing = "rank 0 step    0000000000000000
                   rank 0 cpu 1   .a......b.......
                   rank 0 label 2 ..xxxxxx.y......
                   rank 1 step    0000000000000000
                   rank 1 cpu 1   .b......a.......
                   rank 1 label 2 ..yyyyyy.x......";
    let said = |name, collective| (name, SliceKind::Annotation, (collective, "Float", Some(10), None));
    let trace = drawn_with_collectives(drawing, &[said("x", "allreduce"), said("y", "all_gather")]);
    let expected = ["0/0 16 = 6 communication + 2 host_op + 7 other + 1 transfer, x0"];
    assert_eq!(lines(&trace, 1_000), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn clocks_that_are_wrong_leave_a_path_without_a_hole(
        offsets in prop::collection::vec(-400_000_i64..400_000, 4), drift in -50_000_i64..50_000, seed in any::<u64>(),
        has_devices in any::<bool>(), is_pipeline in any::<bool>(),
    ) {
        let hosts = offsets.into_iter().map(|offset_ns| (offset_ns, Drift(drift))).collect();
        let schedule = match is_pipeline {
            true => Schedule::Pipeline { stages: 4, micro_batches: 4 },
            false => Schedule::Fsdp { layers: 3, prefetches: true },
        };
        let (jitter_ns, leave_jitter_ns) = (90_000, 30_000);
        let job = Job { hosts, schedule, jitter_ns, leave_jitter_ns, seed, has_devices, ..Job::default() };
        for rows in critical_path_ranks(&job.run().trace(), &Selection::default()).chunk_by(|a, b| a.step == b.step) {
            prop_assert_eq!(rows.iter().map(|row| row.path_ns).sum::<i64>(), rows[0].length_ns);
            prop_assert!(rows.iter().all(|row| parts(row).iter().all(|(_, ns)| *ns > 0) && row.path_ns > 0));
        }
    }

    #[test]
    fn a_clock_that_is_a_little_wrong_leaves_the_straggler_on_the_path(
        offsets in prop::collection::vec(-5_000_i64..5_000, 4), has_devices in any::<bool>(),
    ) {
        let hosts = offsets.into_iter().map(|offset_ns| (offset_ns, Drift(0))).collect();
        let schedule = Schedule::Ddp { buckets: 3, overlaps: true };
        let job = Job { hosts, ..with_straggler(Some("backward"), schedule, has_devices) };
        let rows = critical_path_ranks(&job.run().trace(), &Selection::default());
        for rows in rows.chunk_by(|a, b| a.step == b.step) {
            let steps = if rows[0].step.is_none() { 2 } else { 1 };
            let computed_ns = rows[0].time.parts.of(PathClass::Compute) + rows[0].time.parts.of(PathClass::HostOp);
            prop_assert_eq!(rows[0].rank, 2);
            prop_assert!(computed_ns >= steps * 880_000, "{:?}", rows);
        }
    }

    #[test]
    fn a_single_rank_has_its_critical_path(
        host in "[.axsi|]{36}", launch in "[.CDNH]{36}", streams in prop::collection::vec("[.CDNHK|]{48}", 1..3),
    ) {
        let mut drawing = format!("rank 0 step 000000000000000000111111111111111111\nrank 0 cpu 1 {host}\nrank 0 launch 2 {launch}\n");
        streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
        let trace = drawn_with_collectives(&drawing, &[("a", SliceKind::Op, SAID), ("N", SliceKind::Kernel, SAID)]);
        let paths = critical_path(&trace, &Selection::default());
        let of_path = |path: &crate::critical_path::CriticalPath| (Some(path.step), path.start_ns, path.length_ns, path.parts);
        let of_row = |row: &CriticalPathRanks| (row.step, row.start_ns, row.path_ns, row.time.parts);
        let rows = critical_path_ranks(&trace, &Selection::default());
        let rows: Vec<_> = rows.iter().filter(|row| row.step.is_some()).map(of_row).collect();
        prop_assert_eq!(rows, paths.iter().map(of_path).collect::<Vec<_>>());
    }
}

#[test]
fn ranks_that_are_asked_for_are_rows_and_the_path_is_the_same() {
    let job = with_straggler(Some("backward"), Schedule::Ddp { buckets: 3, overlaps: true }, true);
    let trace = job.run().trace();
    let all = critical_path_ranks(&trace, &Selection::default());
    let asked = critical_path_ranks(&trace, &Selection { ranks: 0.into(), step: Some(1), ..Selection::default() });
    let expected: Vec<_> = all.into_iter().filter(|row| (row.rank, row.step) == (0, Some(1))).collect();
    assert_eq!((asked.len(), &asked), (1, &expected));
}

#[test]
fn steps_that_recording_cut_are_given_and_not_in_the_sum() {
    let mut trace = Job { steps: 3, ..Job::default() }.run().trace();
    trace.steps.iter_mut().filter(|step| step.number == 0).for_each(|step| step.is_complete = false);
    let rows = critical_path_ranks(&trace, &Selection::default());
    let length_ns =
        |step: Option<i64>| rows.iter().find(|row| row.step == step).map(|row| row.length_ns).expect("a row");
    assert_eq!(length_ns(None), length_ns(Some(1)) + length_ns(Some(2)));
    assert!(rows.iter().all(|row| row.is_complete == (row.step != Some(0))) && length_ns(Some(0)) > 0);
}

#[test]
fn the_largest_part_is_named() {
    let largest = |drawing: &str| {
        let trace = drawn_with_collectives(drawing, &[("N", SliceKind::Kernel, SAID)]);
        critical_path_ranks(&trace, &Selection::default()).iter().map(|row| row.largest_part()).collect::<Vec<_>>()
    };
    assert_eq!(largest("rank 0 step     00....\nrank 0 launch 1 C.....\nrank 0 stream 7 .CCCCC"), ["compute"]);
    assert_eq!(largest("rank 0 step     0000\nrank 0 cpu 1    aa.."), ["host_op"], "of equal ones the first");
    let both = "rank 0 step     00....
                rank 0 launch 1 N.....
                rank 0 stream 7 .NNNNN
                rank 1 step     00....
                rank 1 launch 1 N.....
                rank 1 stream 7 .NNNNN";
    assert_eq!(largest(both), ["transfer"]);
}

#[test]
fn a_work_that_does_not_say_who_asked_for_it_was_asked_for_by_the_step() {
    let drawing = "rank 0 step     000000000000
                   rank 0 cpu 1    bbbb........
                   rank 0 label 2  ....wwwwwwww
                   rank 1 step     000000000000
                   rank 1 cpu 1    bbbbbbb.....
                   rank 1 label 2  .......wwwww";
    let trace = drawn_with_collectives(drawing, &[("w", SliceKind::Annotation, SAID)]);
    assert_eq!(lines(&trace, 1_000), ["0/1 7 = 7 host_op, x0", "0/0 5 = 5 transfer, x1"]);
}
