//! When each rank of a job comes to its collectives and leaves them, and what the clock of its host shows then.
//!
//! A rank computes between two collectives, and waits in each for the last of its group. All ranks of the job reduce
//! together, and so do, in turn with that, the eight of each host. One rank computes slower than the others.

use crate::random::Random;
use std::ops::Range;

/// Ranks of a host: they have one clock, and are a tensor-parallel group.
pub(super) const HOST_RANKS: usize = 8;
/// How long something takes at least, of 256 parts of what it took in the step that is repeated. More than that, so that
/// no two moments become one.
const LEAST: i64 = 282;
/// Up to as much more, different each time.
const JITTER: u64 = 16;
/// As much more for the rank that is slow.
const SLOW: i64 = 48;
/// A rank leaves a collective up to this much later than it is done, ns.
const LEAVE_NS: u64 = 2_000;
/// A clock is off by up to this much, ns.
const OFFSET_NS: u64 = 5_000_000;
/// A clock runs too fast by up to this much of 10^9.
const DRIFT: u64 = 40_000;

/// The clock of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct HostClock {
    /// What it shows beyond the true time when the job begins.
    pub(super) offset_ns: i64,
    /// By how much it runs too fast, in parts of 10^9.
    pub(super) drift: i64,
}

impl HostClock {
    /// That of a host; the first is right.
    pub(super) fn of(host: usize) -> Self {
        let mut random = Random::of([3, host as u64, 0, 0]);
        let offset_ns = random.below(2 * OFFSET_NS) as i64 - OFFSET_NS as i64;
        if host == 0 { Self::default() } else { Self { offset_ns, drift: random.below(DRIFT) as i64 } }
    }

    /// What it shows at a true time, in a job that begins at `begin_ns`.
    pub(super) fn shown_ns(self, true_ns: i64, begin_ns: i64) -> i64 {
        let drift_ns = i128::from(self.drift) * i128::from(true_ns - begin_ns) / 1_000_000_000;
        true_ns + self.offset_ns + drift_ns as i64
    }
}

/// What ranks do in a step.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// From its first to its last moment.
    pub(super) step_ns: Range<i64>,
    /// Its collectives, one after the other.
    pub(super) collectives: Vec<Range<i64>>,
}

impl Shape {
    /// When something begins or ends that is the same for all ranks: the step, and each collective.
    fn marks_ns(&self) -> Vec<i64> {
        let inner = self.collectives.iter().flat_map(|collective| [collective.start, collective.end]);
        std::iter::once(self.step_ns.start).chain(inner).chain([self.step_ns.end]).collect()
    }
}

/// A job that ran.
pub(super) struct Job {
    ranks: usize,
    begin_ns: i64,
    marks_ns: Vec<i64>,
    /// By rank and step: the true times of the marks.
    times_ns: Vec<Vec<i64>>,
}

impl Job {
    /// Runs it.
    pub(super) fn of(shape: &Shape, ranks: usize, steps: u64) -> Self {
        let begin_ns = shape.step_ns.start;
        let mut job = Self { ranks, begin_ns, marks_ns: shape.marks_ns(), times_ns: vec![Vec::new(); ranks] };
        let mut now_ns = vec![begin_ns; ranks];
        for step in 0..steps {
            for mark in 0..job.marks_ns.len() {
                job.pass(step, mark, &mut now_ns);
            }
            now_ns.iter_mut().for_each(|now_ns| *now_ns += crate::generator::BETWEEN_NS);
        }
        job
    }

    /// The rank that is slow.
    pub(super) fn straggler(ranks: usize) -> usize {
        ranks * 5 / 8
    }

    /// The ranks that a collective of a step is among, for this rank.
    pub(super) fn group(ranks: usize, collective: usize, rank: usize) -> Range<usize> {
        let first = rank / HOST_RANKS * HOST_RANKS;
        if collective.is_multiple_of(2) { first..ranks.min(first + HOST_RANKS) } else { 0..ranks }
    }

    /// What the clock of a rank shows, in a step, when something happens that happened at `ns` of the step that is
    /// repeated.
    pub(super) fn shown_ns(&self, rank: usize, step: u64, ns: i64) -> i64 {
        let count = self.marks_ns.len();
        let times_ns = &self.times_ns[rank][step as usize * count..][..count];
        let after = self.marks_ns.partition_point(|mark_ns| *mark_ns <= ns).clamp(1, count - 1);
        let (from, to) = (after - 1, after);
        let (length, new_length) = (self.marks_ns[to] - self.marks_ns[from], times_ns[to] - times_ns[from]);
        let since_ns = i128::from(ns - self.marks_ns[from]) * i128::from(new_length) / i128::from(length);
        HostClock::of(rank / HOST_RANKS).shown_ns(times_ns[from] + since_ns as i64, self.begin_ns)
    }

    /// All ranks go on to a mark of a step: the begin of the step, or from the mark before to this one.
    fn pass(&mut self, step: u64, mark: usize, now_ns: &mut [i64]) {
        let length_ns = mark.checked_sub(1).map_or(0, |before| self.marks_ns[mark] - self.marks_ns[before]);
        let is_end_of_collective = mark > 0 && mark.is_multiple_of(2);
        if is_end_of_collective {
            self.leave(step, mark, length_ns, now_ns);
        } else {
            for (rank, now_ns) in now_ns.iter_mut().enumerate() {
                let mut random = Random::of([1, rank as u64, step, mark as u64]);
                let slow = if rank == Self::straggler(self.ranks) { SLOW } else { 0 };
                *now_ns += length_ns * (LEAST + slow + random.below(JITTER) as i64) / 256;
            }
        }
        self.times_ns.iter_mut().zip(now_ns).for_each(|(times_ns, now_ns)| times_ns.push(*now_ns));
    }

    /// Each group is done once its last rank has come and data has gone to and fro.
    fn leave(&self, step: u64, mark: usize, length_ns: i64, now_ns: &mut [i64]) {
        let mut first = 0;
        while first < self.ranks {
            let group = Self::group(self.ranks, mark / 2 - 1, first);
            let come_ns = now_ns[group.clone()].iter().copied().max().expect("a group has ranks");
            for rank in group.clone() {
                let late_ns = Random::of([2, rank as u64, step, mark as u64]).below(LEAVE_NS) as i64;
                now_ns[rank] = come_ns + length_ns * LEAST / 256 + late_ns;
            }
            first = group.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_stays_later_and_groups_leave_together() {
        let shape = Shape { step_ns: 0..10_000, collectives: vec![1_000..2_000, 3_000..4_000] };
        let job = Job::of(&shape, 20, 3);
        for rank in 0..20 {
            let shown = |step, ns| job.shown_ns(rank, step, ns);
            assert!((0..3).all(|step| (0..10_000).all(|ns| shown(step, ns) < shown(step, ns + 1))));
            assert!((0..2).all(|step| shown(step, 10_000) < shown(step + 1, 0)));
        }
        // On the clock of the host, which ranks of a group of a host share.
        for (first, group) in [(0, 0..8), (8, 8..16), (16, 16..20)] {
            assert_eq!(Job::group(20, 0, first + 1), group);
            let starts = group.clone().map(|rank| job.shown_ns(rank, 1, 1_000));
            let ends = group.map(|rank| job.shown_ns(rank, 1, 2_000));
            let (last_start, first_end) = (starts.max().expect("ranks"), ends.clone().min().expect("ranks"));
            assert!(first_end > last_start && ends.max().expect("ranks") - first_end < 2_100);
        }
        assert_eq!(Job::group(20, 1, 17), 0..20);
    }

    #[test]
    fn the_slow_rank_comes_last() {
        let shape = Shape { step_ns: 0..10_000_000, collectives: vec![1_000_000..2_000_000, 3_000_000..4_000_000] };
        let job = Job::of(&shape, 8, 4);
        for step in 0..4 {
            let come_ns = |rank: &usize| job.shown_ns(*rank, step, 3_000_000);
            assert_eq!((0..8).max_by_key(come_ns), Some(Job::straggler(8)));
        }
    }
}
