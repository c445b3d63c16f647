//! Simulated jobs, whose clocks are known.

use super::*;
use proptest::prelude::*;
use stepscope_base::StringTable;
use stepscope_trace::{CollectiveKind, Drift, SliceId};

/// A generator of numbers that is the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % limit.max(1)
    }
}

/// A job whose ranks have a clock each: what it shows at the true time 0, and how fast it runs.
struct Job {
    clocks: Vec<(i64, Drift)>,
    groups: Vec<Vec<usize>>,
    /// Collectives of each group.
    collectives: i64,
    /// The time from one to the next.
    period_ns: i64,
    /// Each rank leaves up to so much later than the first.
    jitter_ns: i64,
    /// Each rank comes up to so much later than the first.
    lateness_ns: i64,
}

impl Job {
    fn domains(&self) -> Vec<Domain> {
        let of_rank = |rank: u32| Domain { host: None, ranks: vec![rank], processes: vec![ProcessId(rank)] };
        (0..self.clocks.len() as u32).map(of_rank).collect()
    }

    /// What each rank records, on its own clock.
    fn run(&self, seed: u64) -> Vec<Vec<Part>> {
        let mut numbers = Numbers(seed);
        let mut matched = Vec::new();
        for at in 0..self.collectives {
            for group in &self.groups {
                let begin_ns = at * self.period_ns;
                let starts: Vec<i64> = group.iter().map(|_| begin_ns + numbers.below(self.lateness_ns)).collect();
                let done_ns = starts.iter().max().unwrap() + 1_000;
                let part = |(rank, start_ns): (&usize, i64)| {
                    let (offset_ns, drift) = self.clocks[*rank];
                    let shown = |true_ns: i64| true_ns + offset_ns + drift.over(true_ns);
                    let (start_ns, end_ns) = (shown(start_ns), shown(done_ns + numbers.below(self.jitter_ns)));
                    Part {
                        rank: *rank as u32,
                        process: ProcessId(*rank as u32),
                        group: StringTable::EMPTY,
                        group_description: StringTable::EMPTY,
                        group_size: Some(group.len() as i64),
                        kind: Some(CollectiveKind::AllReduce),
                        asked_by: SliceId(0),
                        start_ns,
                        end_ns,
                        dur_ns: end_ns - start_ns,
                    }
                };
                matched.push(group.iter().zip(starts).map(part).collect());
            }
        }
        matched
    }

    /// By how much corrected clocks differ from the first one of their part at most, over the whole job.
    fn error_ns(&self, seed: u64) -> i64 {
        let mut pairs = Pairs::of(&self.domains(), &self.run(seed));
        let tree = Tree::of(self.clocks.len(), &mut pairs);
        let (root_offset_ns, root_drift) = self.clocks[0];
        let mut largest_ns = 0;
        for ((offset_ns, drift), clock) in self.clocks.iter().zip(&tree.clocks) {
            for true_ns in [0, self.period_ns * self.collectives] {
                let shown_ns = true_ns + offset_ns + drift.over(true_ns);
                let corrected_ns = shown_ns + clock.expect("it is connected").line.at(shown_ns);
                let root_ns = true_ns + root_offset_ns + root_drift.over(true_ns);
                largest_ns = largest_ns.max((corrected_ns - root_ns).abs());
            }
        }
        largest_ns
    }
}

fn all(ranks: usize) -> Vec<Vec<usize>> {
    vec![(0..ranks).collect()]
}

#[test]
fn offsets_come_out_exactly_without_jitter() {
    let clocks = [0, 5_000_000, -123_456_789, 77].map(|offset_ns| (offset_ns, Drift(0))).to_vec();
    let job = Job { clocks, groups: all(4), collectives: 5, period_ns: 1_000_000, jitter_ns: 0, lateness_ns: 300_000 };
    assert_eq!(job.error_ns(1), 0);
}

#[test]
fn offsets_come_out_within_a_microsecond_with_jitter() {
    let clocks = (0..16).map(|rank| (rank * rank * 777_777 - 9_000_000, Drift(0))).collect();
    let (period_ns, jitter_ns, lateness_ns) = (2_000_000, 30_000, 500_000);
    let job = Job { clocks, groups: all(16), collectives: 2_000, period_ns, jitter_ns, lateness_ns };
    let error_ns = job.error_ns(7);
    assert!(error_ns <= 1_000 + jitter_ns / 1_000, "{error_ns}");
}

#[test]
fn drift_is_found_over_a_minute() {
    let clocks = vec![(0, Drift(0)), (3_000_000, Drift(20_000_000)), (-8_000_000, Drift(-7_000_000))];
    let (period_ns, jitter_ns, lateness_ns) = (10_000_000, 2_000, 1_000_000);
    let job = Job { clocks, groups: all(3), collectives: 6_000, period_ns, jitter_ns, lateness_ns };
    let error_ns = job.error_ns(3);
    assert!(error_ns <= 1_500, "{error_ns}");
}

#[test]
fn groups_that_touch_each_other_are_one_clock_and_others_are_not() {
    let clocks = [0, 400_000, -900_000, 50_000_000].map(|offset_ns| (offset_ns, Drift(0))).to_vec();
    let groups = vec![vec![2, 3], vec![0, 2], vec![1, 3]];
    let job = Job { clocks, groups, collectives: 3, period_ns: 1_000_000, jitter_ns: 0, lateness_ns: 1_000 };
    assert_eq!(job.error_ns(5), 0);
    let apart = Job { groups: vec![vec![0, 1], vec![2, 3]], ..job };
    let tree = Tree::of(4, &mut Pairs::of(&apart.domains(), &apart.run(5)));
    assert!(!tree.is_whole());
    let offsets = tree.clocks.iter().map(|clock| clock.unwrap().line.offset_ns);
    assert_eq!(offsets.collect::<Vec<_>>(), [0, -400_000, 0, -50_900_000]);
}

#[test]
fn a_clock_that_jumps_once_does_not_mislead_the_others() {
    let clocks = [0, 250_000].map(|offset_ns| (offset_ns, Drift(0))).to_vec();
    let (period_ns, jitter_ns, lateness_ns) = (1_000_000, 0, 100_000);
    let job = Job { clocks, groups: all(2), collectives: 100, period_ns, jitter_ns, lateness_ns };
    let mut matched = job.run(2);
    for parts in &mut matched[95..] {
        let part = &mut parts[1];
        (part.start_ns, part.end_ns) = (part.start_ns + 3_600_000_000_000, part.end_ns + 3_600_000_000_000);
    }
    let mut pairs = Pairs::of(&job.domains(), &matched);
    let tree = Tree::of(2, &mut pairs);
    assert_eq!(tree.clocks[1].unwrap().line.offset_ns, -250_000);
    assert_eq!(pairs.contradictions(&tree.lines()), 5);
}

#[test]
fn collectives_that_a_rank_may_leave_early_say_nothing() {
    let job = Job {
        clocks: vec![(0, Drift(0)), (9, Drift(0))],
        groups: all(2),
        collectives: 4,
        period_ns: 10_000,
        jitter_ns: 0,
        lateness_ns: 10,
    };
    let mut matched = job.run(1);
    matched.iter_mut().flatten().for_each(|part| part.kind = Some(CollectiveKind::Broadcast));
    assert!(Pairs::of(&job.domains(), &matched).of_pair.is_empty());
}

proptest! {
    #[test]
    fn any_clocks_and_groups_come_out_without_jitter(
        offsets in prop::collection::vec(-1_000_000_000_i64..1_000_000_000, 2..9),
        chain in any::<bool>(), seed in any::<u64>(),
    ) {
        let ranks = offsets.len();
        let groups = if chain { (1..ranks).map(|rank| vec![rank - 1, rank]).collect() } else { all(ranks) };
        let clocks = offsets.into_iter().map(|offset_ns| (offset_ns, Drift(0))).collect();
        let job = Job { clocks, groups, collectives: 4, period_ns: 1_000_000, jitter_ns: 0, lateness_ns: 500_000 };
        prop_assert_eq!(job.error_ns(seed), 0);
        // On one clock nobody leaves before the last has come.
        let right = Job { clocks: vec![(0, Drift(0)); ranks], ..job };
        let pairs = Pairs::of(&right.domains(), &right.run(seed));
        prop_assert_eq!(pairs.contradictions(&vec![Line::default(); ranks]), 0);
    }
}
