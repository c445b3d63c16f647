use super::*;
use crate::stragglers::stragglers;
use proptest::prelude::*;
use stepscope_trace::SliceKind;
use stepscope_trace::drawn::{SaidOfCollective as Said, add_sm_clock, drawn_with_collectives as trace_of};

fn line(row: &Lateness) -> String {
    format!("rank {}: {} {} us in {}", row.rank, row.cause.as_str(), row.late_ns as f64 / 1_000.0, row.calls)
}

#[track_caller]
fn check(trace: &Trace, selection: Selection, expected: &[&str]) {
    assert_eq!(lateness(trace, &selection).iter().map(line).collect::<Vec<_>>(), expected);
}

const MEAN: Said = ("allreduce", "Float", Some(1_000), Some(5));
const SAID: [(&str, SliceKind, Said); 2] = [("a", SliceKind::Op, MEAN), ("b", SliceKind::Op, MEAN)];

#[test]
fn a_rank_that_computes_for_longer_is_late_because_of_it() {
    let drawing = "rank 0 step     00000000111111
                   rank 0 cpu 1    aa......aa....
                   rank 0 launch 1 NC......N.....
                   rank 0 stream 7 .NN.CC...NNNN.
                   rank 1 step     00000000111111
                   rank 1 cpu 1    bb.......bb...
                   rank 1 launch 1 NC.......N....
                   rank 1 stream 7 .NN.CCCC..NNN.";
    let trace = trace_of(drawing, &SAID);
    check(&trace, Selection::default(), &["rank 1: compute 1 us in 1"]);
    check(&trace, Selection { step: Some(1), ..Selection::default() }, &["rank 1: compute 1 us in 1"]);
    check(&trace, Selection { step: Some(0), ..Selection::default() }, &[]);
    check(&trace, Selection { ranks: 0.into(), ..Selection::default() }, &[]);
}

#[test]
fn what_a_slower_clock_accounts_for_is_told_from_more_computing() {
    let drawing = "rank 0 cpu 1    aa......aa....
                   rank 0 launch 1 NC......N.....
                   rank 0 stream 7 .NN.CC...NNNN.
                   rank 1 cpu 1    bb.......bb...
                   rank 1 launch 1 NC.......N....
                   rank 1 stream 7 .NN.CCCC..NNN.";
    let with = |clocks: [Option<i64>; 2]| {
        let mut trace = trace_of(drawing, &SAID);
        for (rank, mhz) in (0..).zip(clocks) {
            mhz.into_iter().for_each(|mhz| add_sm_clock(&mut trace, rank, &[(0, mhz)]));
        }
        trace
    };
    let (all, compute) = (Selection::default(), "rank 1: compute 1 us in 1");
    // It computes for 4 us, of which it would save a third.
    check(&with([Some(1_500), Some(1_000)]), all.clone(), &["rank 1: slow_clock 1 us in 1"]);
    let parts = ["rank 1: compute 0.6 us in 1", "rank 1: slow_clock 0.4 us in 1"];
    check(&with([Some(1_500), Some(1_350)]), all.clone(), &parts);
    for clocks in [[Some(1_500), Some(1_500)], [Some(1_000), Some(1_500)], [None, Some(1_000)], [Some(1_500), None]] {
        check(&with(clocks), all.clone(), &[compute]);
    }
}

#[test]
fn lateness_that_nothing_before_accounts_for_stays_so() {
    let drawing = "rank 0 cpu 1    aa......aa.....
                   rank 0 launch 1 N.......N......
                   rank 0 stream 7 .NNN.....NNNN..
                   rank 1 cpu 1    bb......bb.....
                   rank 1 launch 1 N.......N......
                   rank 1 stream 7 .N.......NN....";
    // Nothing comes before the first, and the stretch before the second is longer by what it began earlier.
    let expected = ["rank 1: host_other 2 us in 1", "rank 1: unexplained 2 us in 1"];
    check(&trace_of(drawing, &SAID), Selection::default(), &expected);
}

#[test]
fn stretches_that_begin_with_different_collectives_are_not_compared() {
    let drawing = "rank 0 cpu 1    aa.aa......aa......
                   rank 0 launch 1 N..N.......N.......
                   rank 0 stream 7 .NN.NN......NNNN...
                   rank 1 cpu 1    bb........bb.......
                   rank 1 launch 1 N.........N........
                   rank 1 stream 7 .NN....C...NN......";
    let mut trace = trace_of(drawing, &SAID);
    check(&trace, Selection::default(), &[]);
    // Rank 1 missed the one of number 6.
    let last = trace.collectives.len() - 1;
    trace.collectives[last].sequence_number = Some(7);
    check(&trace, Selection::default(), &["rank 1: unexplained 2 us in 1"]);
}

/// What a rank does before a collective, and the us that it takes.
type Done = (String, usize);

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A drawing in which each rank does this in order.
fn drawing(ranks: &[Vec<Done>]) -> String {
    let of_rank = |(rank, done): (usize, &Vec<Done>)| {
        let cells = |cell: &dyn Fn(&Done) -> String| done.iter().map(cell).collect::<String>();
        format!(
            "rank {rank} cpu 1 {}\nrank {rank} launch 1 {}\nrank {rank} stream 7 {}\n",
            cells(&|_| format!("......{}........", NAMES[rank].repeat(2))),
            cells(&|_| "......N.........".into()),
            cells(&|(before, us)| format!("{before}{}{}", "N".repeat(*us), ".".repeat(8 - us))),
        )
    };
    ranks.iter().enumerate().map(of_rank).collect()
}

/// Whole nanoseconds of `whole` in proportion to `parts`, one after another to whom the most of one is due.
fn given_out(whole: i64, parts: [i64; LateCause::COUNT]) -> [i64; LateCause::COUNT] {
    let sum: i64 = parts.iter().sum();
    if sum <= whole {
        let mut shares = parts;
        shares[LateCause::COUNT - 1] += whole - sum;
        return shares;
    }
    let mut shares = parts.map(|part| part * whole / sum);
    while shares.iter().sum::<i64>() < whole {
        let due = |at: &usize| (parts[*at] * whole - shares[*at] * sum, std::cmp::Reverse(*at));
        let next = (0..parts.len()).max_by_key(due).expect("causes");
        shares[next] += 1;
    }
    shares
}

/// The same by looking, for each collective of each rank, at those of all ranks.
fn looked_for(trace: &Trace, ranks: &[Vec<Done>], clocks: &[Option<i64>]) -> Vec<[i64; LateCause::COUNT]> {
    let selection = Selection::default();
    let context = AnalysisContext::new(trace, &selection);
    let stretches = &context.get::<Stretches>().0;
    let nth_ask = |rank: usize, nth: usize| {
        let asks = trace.collectives.iter().filter(|said| trace.slice_name(said.slice) == NAMES[rank]);
        asks.map(|said| said.slice).nth(nth).expect("it was drawn")
    };
    let of_rank = |(rank, done): (usize, &Vec<Done>)| {
        let mut sums = [0; LateCause::COUNT];
        for (nth, (_, own_us)) in done.iter().enumerate() {
            let mut all: Vec<(usize, usize)> = Vec::new();
            for (other, done) in ranks.iter().enumerate() {
                all.extend(done.get(nth).map(|(_, us)| (*us, other)));
            }
            all.sort_unstable();
            let middle_us = all[all.len() / 2].0;
            if *own_us >= middle_us {
                continue;
            }
            let middle = all.iter().find(|(us, _)| *us == middle_us).expect("it is one of them").1;
            let parts = |rank: usize| stretches.get(&nth_ask(rank, nth)).map(|stretch| stretch.parts_ns);
            let excess = match (parts(rank), parts(middle)) {
                (Some(own), Some(middle)) => std::array::from_fn(|at| (own[at] - middle[at]).max(0)),
                _ => [0; LateCause::COUNT],
            };
            let mut causes = given_out((middle_us - own_us) as i64 * 1_000, excess);
            if let (Some(own), Some(theirs), Some(parts)) = (clocks[rank], clocks[middle], parts(rank)) {
                let faster_ns = parts[0] * own / theirs + i64::from(parts[0] * own % theirs > 0);
                let slowed_ns = causes[0].min((parts[0] - faster_ns).max(0));
                (causes[0], causes[1]) = (causes[0] - slowed_ns, slowed_ns);
            }
            sums.iter_mut().zip(causes).for_each(|(sum, ns)| *sum += ns);
        }
        sums
    };
    ranks.iter().enumerate().map(of_rank).collect()
}

proptest! {
    #[test]
    fn causes_are_those_found_by_looking_at_all_ranks_and_sum_to_the_lateness(
        ranks in prop::collection::vec(prop::collection::vec(("[.CHN]{4}\\.\\.\\.\\.", 1_usize..8), 1..6), 1..5),
        clocks in prop::array::uniform4(prop::option::of(900_i64..1_500)),
    ) {
        let ranks: Vec<Vec<Done>> = ranks
            .into_iter()
            .map(|done| done.into_iter().map(|(before, us)| (before.replace('N', "Z"), us)).collect())
            .collect();
        let said: Vec<(&str, SliceKind, Said)> =
            NAMES.iter().map(|name| (*name, SliceKind::Op, ("allreduce", "Float", Some(1_000), None))).collect();
        let mut trace = trace_of(&drawing(&ranks), &said);
        for (rank, mhz) in (0..ranks.len() as u32).zip(clocks) {
            mhz.into_iter().for_each(|mhz| add_sm_clock(&mut trace, rank, &[(0, mhz)]));
        }
        let rows = lateness(&trace, &Selection::default());
        let late_of = stragglers(&trace, &Selection::default());
        for (rank, expected) in looked_for(&trace, &ranks, &clocks).into_iter().enumerate() {
            let of_rank = || rows.iter().filter(|row| row.rank as usize == rank);
            let of_cause = |cause: LateCause| of_rank().filter(|row| row.cause == cause).map(|row| row.late_ns).sum::<i64>();
            prop_assert_eq!(LateCause::ALL.map(of_cause), expected, "rank {}", rank);
            let late_ns: i64 = late_of.iter().filter(|row| row.rank as usize == rank).map(|row| row.late_ns).sum::<i64>();
            prop_assert_eq!(expected.iter().sum::<i64>(), late_ns);
        }
        prop_assert!(rows.iter().map(|row| -row.late_ns).is_sorted());
    }

    #[test]
    fn shares_are_parts_or_their_proportion(whole in 0..1_000_000_i64, parts in prop::array::uniform15(0..300_000_i64)) {
        let expected = given_out(whole, parts);
        let mut found = shares(whole, parts);
        found[LateCause::COUNT - 1] += whole - found.iter().sum::<i64>();
        prop_assert_eq!(found, expected);
    }
}
