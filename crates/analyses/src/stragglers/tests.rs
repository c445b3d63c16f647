use super::*;
use proptest::prelude::*;
use stepscope_trace::drawn::{SaidOfCollective as Said, drawn_with_collectives as trace_of};
use stepscope_trace::simulated::{Job, Schedule, Straggler};
use stepscope_trace::{Drift, SliceKind, merge};

const MEAN: Said = ("allreduce", "Float", Some(1_000), Some(5));

fn line(row: &Stragglers) -> String {
    let times = [row.held_up_ns, row.late_ns, row.total_ns, row.transfer_ns, row.waiting_ns].map(|ns| ns / 1_000);
    let [held_up, late, total, transfer, waiting] = times;
    format!(
        "rank {} of {}: last {} of {}, held up {held_up} us, late {late}, {total} = {transfer} + {waiting}",
        row.rank, row.ranks, row.last_calls, row.calls
    )
}

fn check(trace: &Trace, selection: Selection, expected: &[&str]) {
    assert_eq!(stragglers(trace, &selection).iter().map(line).collect::<Vec<_>>(), expected);
}

const TWO_RANKS: &str = "rank 0 cpu 1    aa....aa....
                         rank 0 launch 1 N.....N.....
                         rank 0 stream 7 .NNNN..NN...
                         rank 1 cpu 1    ..bb..bb....
                         rank 1 launch 1 ..N...N.....
                         rank 1 stream 7 ...NN..NNN..";

#[test]
fn who_takes_the_shortest_came_last_and_the_others_waited() {
    let trace = trace_of(TWO_RANKS, &[("a", SliceKind::Op, MEAN), ("b", SliceKind::Op, MEAN)]);
    let expected = [
        "rank 1 of 2: last 1 of 2, held up 2 us, late 2, 5 = 4 + 1",
        "rank 0 of 2: last 1 of 2, held up 1 us, late 1, 6 = 4 + 2",
    ];
    check(&trace, Selection::default(), &expected);
    // The other rank still counts.
    check(&trace, Selection { ranks: 0.into(), ..Selection::default() }, &expected[1..]);
}

#[test]
fn a_collective_that_a_rank_missed_shifts_nobody() {
    let later: Said = ("allreduce", "Float", Some(1_000), Some(6));
    let trace = trace_of(TWO_RANKS, &[("a", SliceKind::Op, MEAN), ("b", SliceKind::Op, later)]);
    let expected = [
        "rank 0 of 2: last 0 of 1, held up 0 us, late 0, 2 = 2 + 0",
        "rank 1 of 2: last 0 of 1, held up 0 us, late 0, 2 = 2 + 0",
    ];
    check(&trace, Selection::default(), &expected);
}

#[test]
fn what_goes_from_one_rank_to_another_is_compared_with_nobody() {
    let send: Said = ("send", "Float", Some(1_000), Some(5));
    let trace = trace_of(TWO_RANKS, &[("a", SliceKind::Op, send), ("b", SliceKind::Op, send)]);
    check(&trace, Selection::default(), &[]);
}

/// What a rank does: whether it gathers, and the µs that it takes.
type Done = (bool, i64);

/// A drawing in which each rank does this in order, with a name for every rank and what it does.
fn drawing(ranks: &[Vec<Done>]) -> String {
    let of_rank = |(rank, done): (usize, &Vec<Done>)| {
        let rows = |cell: &dyn Fn(&Done) -> String| done.iter().map(cell).collect::<String>();
        let name = |gathers: bool| char::from(b'a' + rank as u8 * 2 + u8::from(gathers)).to_string();
        format!(
            "rank {rank} cpu 1 {}\nrank {rank} launch 1 {}\nrank {rank} stream 7 {}\n",
            rows(&|(gathers, _)| format!("{}......", name(*gathers).repeat(2))),
            rows(&|_| "N.......".into()),
            rows(&|(_, us)| format!(".{}", "N".repeat(*us as usize)) + &".".repeat(7 - *us as usize)),
        )
    };
    ranks.iter().enumerate().map(of_rank).collect()
}

/// The same by looking, for each collective of each rank, at those of all ranks.
fn looked_for(ranks: &[Vec<Done>]) -> Vec<[i64; 7]> {
    let nth = |done: &[Done], gathers: bool, nth: usize| {
        done.iter().filter(|(kind, _)| *kind == gathers).nth(nth).map(|(_, us)| *us)
    };
    let of_rank = |done: &Vec<Done>| {
        let mut sums = [0; 7];
        for (at, (gathers, own)) in done.iter().enumerate() {
            let before = done[..at].iter().filter(|(kind, _)| kind == gathers).count();
            let mut all: Vec<i64> = ranks.iter().filter_map(|done| nth(done, *gathers, before)).collect();
            all.sort_unstable_by_key(|us| Reverse(*us));
            let [.., second, shortest] = all[..] else { continue };
            let is_last = *own == shortest && shortest < second;
            let middle = all[(all.len() - 1) / 2];
            let held_up = if is_last { second - shortest } else { 0 };
            let added = [1, i64::from(is_last), held_up, (middle - own).max(0), *own, shortest, own - shortest];
            sums.iter_mut().zip(added).for_each(|(sum, added)| *sum += added);
        }
        sums
    };
    ranks.iter().map(of_rank).collect()
}

proptest! {
    #[test]
    fn sums_are_those_found_by_looking_at_all_ranks_for_each_collective(
        ranks in prop::collection::vec(prop::collection::vec((any::<bool>(), 1_i64..7), 1..8), 1..5),
    ) {
        let gather: Said = ("all_gather", "Float", Some(1_000), None);
        let mean: Said = ("allreduce", "Float", Some(1_000), None);
        let names: Vec<String> = (b'a'..b'i').map(|name| char::from(name).to_string()).collect();
        let said: Vec<(&str, SliceKind, Said)> = names
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), SliceKind::Op, if at % 2 == 1 { gather } else { mean }))
            .collect();
        let trace = trace_of(&drawing(&ranks), &said);
        let rows = stragglers(&trace, &Selection::default());
        for (rank, expected) in looked_for(&ranks).into_iter().enumerate() {
            let row = rows.iter().find(|row| row.rank as usize == rank);
            let us = |ns: i64| ns / 1_000;
            let found = row.map_or([0; 7], |row| {
                let times = [row.held_up_ns, row.late_ns, row.total_ns, row.transfer_ns, row.waiting_ns].map(us);
                [row.calls, row.last_calls, times[0], times[1], times[2], times[3], times[4]]
            });
            prop_assert_eq!(found, expected, "rank {}", rank);
        }
        let order: Vec<i64> = rows.iter().map(|row| -row.held_up_ns).collect();
        prop_assert!(order.is_sorted());
    }
}

fn simulated() -> impl Iterator<Item = Job> {
    let schedules = [
        Schedule::Ddp { buckets: 3, overlaps: true },
        Schedule::Fsdp { layers: 3, prefetches: true },
        Schedule::Pipeline { stages: 2, micro_batches: 4 },
        Schedule::Moe { layers: 2, experts: 2 },
    ];
    let jobs = schedules.into_iter().flat_map(|schedule| [true, false].map(|has| (schedule.clone(), has)));
    jobs.map(|(schedule, has_devices)| {
        let stragglers = vec![Straggler { rank: 1, op: Some("backward"), percent: 40 }];
        Job { ranks: 8, steps: 3, schedule, has_devices, stragglers, jitter_ns: 70_000, seed: 5, ..Job::default() }
    })
}

#[test]
fn waiting_is_what_ranks_of_a_simulated_job_waited() {
    for job in simulated() {
        let run = job.run();
        let rows = stragglers(&run.trace(), &Selection::default());
        for (rank, expected) in run.waiting().into_iter().enumerate() {
            let of_rank = || rows.iter().filter(|row| row.rank as usize == rank);
            let found = (of_rank().map(|row| row.waiting_ns).sum(), of_rank().map(|row| row.held_up_ns).sum());
            assert_eq!(found, (expected.waited_ns, expected.held_up_ns), "rank {rank} of {job:?}");
            assert!(of_rank().all(|row| row.transfer_ns == row.calls * job.transfer_ns));
        }
        let worst = run.waiting().into_iter().enumerate().max_by_key(|(_, waiting)| waiting.held_up_ns).unwrap();
        assert_eq!((worst.0, rows[0].rank), (1, 1), "the straggler comes first: {job:?}");
    }
}

#[test]
fn the_order_in_which_ranks_are_read_changes_nothing() {
    for job in simulated() {
        let job = Job { hosts: vec![(1_000_000, Drift(0)), (0, Drift(0))], leave_jitter_ns: 900, ..job };
        let run = job.run();
        let answers = [[0, 1, 2, 3, 4, 5, 6, 7], [5, 2, 7, 0, 1, 6, 4, 3]].map(|order| {
            let traces = order.map(|rank| run.trace_of(rank)).map(|trace| {
                let start_ns = trace.start_source_ns;
                (trace, start_ns)
            });
            let trace = stepscope_align::aligned(merge("all".into(), traces.into(), None), Default::default());
            let all = Selection::default();
            (stragglers(&trace, &all), crate::clock_residuals::clock_residuals(&trace, &all))
        });
        assert_eq!(answers[0], answers[1], "{job:?}");
    }
}
