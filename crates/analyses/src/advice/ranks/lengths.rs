//! Ranks compute batches of unequal size, now the one and now the other the longer, and all wait for the longest.
//!
//! ```text
//! rank 0   FFBBBB··········   FFFFFBBBBBBBBBB   FFFBBBBBB····
//! rank 1   FFFFFBBBBBBBBBB·   FFFBBBBBB······   FFFFBBBBBBBB·    what is longer forward is longer backward
//! ```

use super::super::{Advice, GainEstimate, Lacks, Rule};
use super::facts::JobFacts;
use super::{JobRule, Said, THRESHOLD};
use crate::micro_batches::{StepsPasses, correlation};
use crate::what_if::Job;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_align::Part;
use stepscope_base::units::{format_ns, format_ratio};

pub(super) const RULE: JobRule = Rule {
    code: "rank.lengths",
    fault: "Ranks compute batches of unequal size",
    disproof: "With the same batch on all ranks, the longest step is as long.",
    evidence: "micro_batches",
    to_do: "Give the ranks of a step batches that take as long: sort the samples of a few steps by length before they are \
            shared out, pack sequences to a fixed number of tokens, or pad them in groups of similar length. Attention takes \
            the square of a length, so that as many tokens may still take longer.",
    judge,
};

/// Fewer steps correlate by chance.
const LEAST_STEPS: usize = 8;
const LEAST_CORRELATION: f64 = 0.9;
/// A rank that causes more of the waiting does not take turns.
const MOST_OF_ONE: f64 = 0.8;
/// In one of how many steps another rank has to be the longest than in the step before.
const TURNS: usize = 4;

fn judge(facts: &JobFacts) -> Result<Said, Lacks> {
    let job = facts.job()?;
    facts.all_are_there()?;
    let passes = facts.context.get::<StepsPasses>();
    if passes.0.iter().all(|of_step| of_step.contains(&0)) {
        return Err(Lacks("no backward passes with the forward passes that they belong to"));
    }
    if job.step_lengths().len() < LEAST_STEPS {
        return Err(Lacks("fewer than eight whole steps of all ranks: record more steps"));
    }
    let said = Lengths::of(facts, job, passes).said(facts, job);
    Ok(said.filter(|_| facts.slow_ranks().is_ok_and(<[_]>::is_empty)).unwrap_or_default())
}

/// How the passes of ranks that do the same differ.
#[derive(Default)]
struct Lengths {
    /// For each rank how much longer than the mean its forward and its backward passes are in each step, times the number
    /// of ranks.
    excesses: BTreeMap<u32, Vec<[i64; 2]>>,
    /// By how much the longest is longer than the mean, over all steps, by which it is.
    by_longest_ns: BTreeMap<u32, i64>,
    /// The same of the ranks that differ by most in each step.
    excess_ns: i64,
    /// How long each rank waits for the longest.
    waits_ns: BTreeMap<u32, i64>,
    /// Steps behind another one, and those in which another rank is the longest than in that.
    pairs: usize,
    turns: usize,
}

impl Lengths {
    fn of(facts: &JobFacts, job: &Job, passes: &StepsPasses) -> Self {
        let mut known: BTreeMap<(i64, u32), [i64; 2]> = BTreeMap::new();
        for (step, passes_ns) in facts.context.trace.steps.iter().zip(&passes.0).filter(|(_, ns)| !ns.contains(&0)) {
            known.entry((step.number, step.rank)).or_insert(*passes_ns);
        }
        let (mut all, mut before) = (Self::default(), BTreeMap::new());
        for (number, groups) in job.alike() {
            let mut most_ns = 0;
            for ranks in groups.into_iter().filter(|ranks| ranks.len() > 1) {
                let times: Option<Vec<[i64; 2]>> =
                    ranks.iter().map(|rank| known.get(&(number, *rank)).copied()).collect();
                let Some(times) = times else { continue };
                let (longest, excess_ns) = all.add(&ranks, &times);
                most_ns = excess_ns.max(most_ns);
                if let Some(longest_before) = before.insert(ranks, longest) {
                    all.pairs += 1;
                    all.turns += usize::from(longest != longest_before);
                }
            }
            all.excess_ns += most_ns;
        }
        all
    }

    /// Takes in a step of ranks that do the same; gives the one that takes longest, and by how much longer than the mean.
    fn add(&mut self, ranks: &[u32], times: &[[i64; 2]]) -> (u32, i64) {
        let count = ranks.len() as i64;
        let sums = times.iter().fold([0; 2], |[a, b], [forward, backward]| [a + forward, b + backward]);
        let total_ns = |of: &[i64; 2]| of[0] + of[1];
        let of_ranks = || ranks.iter().copied().zip(times);
        let (longest, most) =
            of_ranks().max_by_key(|(rank, times)| (total_ns(times), Reverse(*rank))).expect("several");
        let excess_ns = total_ns(most) - total_ns(&sums) / count;
        *self.by_longest_ns.entry(longest).or_default() += excess_ns;
        for (rank, times) in of_ranks() {
            let excess = [0, 1].map(|pass| times[pass] * count - sums[pass]);
            self.excesses.entry(rank).or_default().push(excess);
            *self.waits_ns.entry(rank).or_default() += total_ns(most) - total_ns(times);
        }
        (longest, excess_ns)
    }

    /// The ranks take turns, whichever passes they are in.
    fn take_turns(&self) -> bool {
        let all_ns: i64 = self.by_longest_ns.values().sum();
        let most_ns = self.by_longest_ns.values().copied().max().unwrap_or(0);
        self.turns * TURNS >= self.pairs && most_ns as f64 <= MOST_OF_ONE * all_ns as f64
    }

    /// Of all ranks the lowest correlation between what forward and backward passes take longer.
    fn correlation(&self) -> Option<f64> {
        let of_ranks = self.excesses.values().map(|excesses| correlation_of_most(excesses));
        of_ranks.collect::<Option<Vec<f64>>>()?.into_iter().min_by(f64::total_cmp)
    }

    fn said(self, facts: &JobFacts, job: &Job) -> Option<Said> {
        let correlation = self.correlation().filter(|ratio| *ratio >= LEAST_CORRELATION && self.take_turns())?;
        let (window_ns, steps) = (job.measured_ns(), job.step_lengths().len() as i64);
        let equal = job.with_equal_work()?;
        let (gain_ns, estimate) = match equal.is_clear() {
            true => (equal.gain_ns, GainEstimate::Replay),
            false => (self.excess_ns, GainEstimate::Bound),
        };
        let gain_ns = gain_ns.min(window_ns);
        let ratio = gain_ns as f64 / window_ns as f64;
        if ratio < THRESHOLD {
            return None;
        }
        let row = Advice {
            says: format!(
                "In a step the longest rank computes {} longer than the mean of those that do the same, and in {} of {} steps it \
                 is another rank than before. Who takes longer forward takes longer backward (correlation {correlation:.2}), \
                 as with longer sequences: batches of equal size would save {} ({}).",
                format_ns(self.excess_ns / steps),
                self.turns,
                self.pairs,
                format_ns(gain_ns),
                format_ratio(ratio),
            ),
            gain: Some((gain_ns, estimate)),
            error_ns: equal.error_ns(),
            window_ns: Some(window_ns),
            measured_ratio: Some(ratio),
            threshold_ratio: Some(THRESHOLD),
            measured_ns: Some(self.excess_ns),
            count: Some(self.turns as i64),
            place: longest_wait(facts).map(|part| facts.place(&part)),
            ..Advice::default()
        };
        Some(Said { rows: vec![row], waits_ns: self.waits_ns, ..Said::default() })
    }
}

/// The correlation of the nine tenths that correlate best: other programs disturb a pass now and then.
fn correlation_of_most(pairs: &[[i64; 2]]) -> Option<f64> {
    let mut left: Vec<[i64; 2]> = pairs.to_vec();
    for _ in 0..pairs.len() / 10 {
        let all = left.iter().fold([0.0; 6], |sums, pair| added(sums, pair, 1.0));
        let without = left.iter().enumerate().map(|(at, pair)| (of_sums(added(all, pair, -1.0)), at));
        let (_, worst) = without.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        left.swap_remove(worst);
    }
    correlation(&left).filter(|ratio| !ratio.is_nan())
}

/// Number, sums, sums of squares and of products, with a pair more, or less.
fn added(sums: [f64; 6], pair: &[i64; 2], sign: f64) -> [f64; 6] {
    let [a, b] = pair.map(|ns| ns as f64);
    let of_pair = [1.0, a, b, a * a, b * b, a * b];
    std::array::from_fn(|at| sums[at] + sign * of_pair[at])
}

/// Pearson's correlation; -1 where nothing differs.
fn of_sums([count, a, b, aa, bb, ab]: [f64; 6]) -> f64 {
    let variances = (count * aa - a * a) * (count * bb - b * b);
    if variances > 0.0 { (count * ab - a * b) / variances.sqrt() } else { -1.0 }
}

/// Where the rank that came last asks for the collective in which another one waits longest.
fn longest_wait(facts: &JobFacts) -> Option<Part> {
    let wait = |(_, parts): (i64, Vec<Part>)| {
        let last = parts.iter().min_by_key(|part| part.dur_ns)?;
        Some((parts.iter().map(|part| part.dur_ns).max()? - last.dur_ns, *last))
    };
    facts.collectives().filter_map(wait).max_by_key(|(ns, last)| (*ns, Reverse(last.asked_by))).map(|(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::{correlation, correlation_of_most};
    use crate::advice::tests::check;
    use crate::rank_results::tests::linked;
    use stepscope_trace::Trace;
    use stepscope_trace::simulated::{Job, Schedule, Straggler};

    /// How much of 100 the passes of a rank take longer in a step, forward and backward.
    type Longer<'a> = &'a dyn Fn(i64, u32) -> [i64; 2];

    /// Twelve steps of 4.1 ms, of which a rank computes for 4 ms, with links from forward to backward passes.
    fn job(ranks: u32, longer: Longer) -> Trace {
        let schedule = Schedule::Ddp { buckets: 1, overlaps: false };
        let slow = |step: i64, rank: u32| {
            let passes = ["forward", "backward"].into_iter().zip(longer(step, rank));
            passes.map(move |(op, percent)| (step, Straggler { rank, op: Some(op), percent }))
        };
        let of_steps = (0..12).flat_map(|step| (0..ranks).flat_map(move |rank| slow(step, rank))).collect();
        let shape = Job { ranks, steps: 12, schedule, has_devices: false, ..Job::default() };
        let job = Job { compute_ns: 1_000_000, transfer_ns: 100_000, stragglers_of_steps: of_steps, ..shape };
        linked(job.run().trace())
    }

    /// Numbers from 0 to 99 without a pattern.
    fn drawn(step: i64, rank: u32) -> i64 {
        let number = (step as u64 * 31 + u64::from(rank) * 17 + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (number >> 40) as i64 % 100
    }

    #[test]
    fn batches_of_unequal_size_are_said_with_what_equal_ones_would_save() {
        // Of each of 100, forward and backward passes take 30 µs longer. The first step is not judged.
        let saved_ns = |ranks: u32| -> i64 {
            let of_step = |step: i64| {
                let longer: Vec<i64> = (0..ranks).map(|rank| 30_000 * drawn(step, rank)).collect();
                longer.iter().max().unwrap() - longer.iter().sum::<i64>() / i64::from(ranks)
            };
            (1..12).map(of_step).sum()
        };
        assert_eq!((saved_ns(2), saved_ns(4)), (7_590_000, 11_025_000));
        check(
            &job(2, &|step, rank| [drawn(step, rank); 2]),
            "rank.lengths",
            &[
                "7590 of 69051 replay high: In a step the longest rank computes 690 µs longer than the mean of those that do the same, and in 6 of 10 steps it is another rank than before. Who takes longer forward takes longer backward (correlation 1.00), as with longer sequences: batches of equal size would save 7.59 ms (11.0 %).",
            ],
        );
        check(
            &job(4, &|step, rank| [drawn(step, rank); 2]),
            "rank.lengths",
            &[
                "11025 of 72531 replay high: In a step the longest rank computes 1.00 ms longer than the mean of those that do the same, and in 9 of 10 steps it is another rank than before. Who takes longer forward takes longer backward (correlation 1.00), as with longer sequences: batches of equal size would save 11.0 ms (15.2 %).",
            ],
        );
    }

    #[test]
    fn batches_that_are_long_on_all_ranks_at_once_are_balanced() {
        check(&job(2, &|step, _| [drawn(step, 0); 2]), "rank.lengths", &[]);
        // Noise is not of both passes.
        check(&job(2, &|step, rank| [drawn(step, 0) + drawn(step, rank) / 4, drawn(step, 0)]), "rank.lengths", &[]);
    }

    #[test]
    fn one_rank_that_has_more_is_slow() {
        let trace = job(2, &|_, rank| [60 * i64::from(rank); 2]);
        check(&trace, "rank.lengths", &[]);
        assert!(crate::advice::advice(&trace, &Default::default()).iter().any(|row| row.rule.as_str() == "rank.slow"));
        // Now and then is no turn of another one.
        check(&job(3, &|step, rank| [if rank == 1 { drawn(step, 1) } else { 0 }; 2]), "rank.lengths", &[]);
    }

    #[test]
    fn a_pass_that_is_disturbed_now_and_then_does_not_hide_it() {
        let disturbed =
            |step, rank| [drawn(step, rank), drawn(step, rank) + if (step, rank) == (5, 1) { 300 } else { 0 }];
        let trace = job(2, &disturbed);
        assert!(
            crate::advice::advice(&trace, &Default::default()).iter().any(|row| row.rule.as_str() == "rank.lengths")
        );
        let pairs: Vec<[i64; 2]> =
            (0..20).map(|at| [drawn(at, 0), if at == 3 { -200 } else { 2 * drawn(at, 0) }]).collect();
        assert!(correlation(&pairs).is_some_and(|ratio| ratio < 0.9));
        assert!(correlation_of_most(&pairs).is_some_and(|ratio| ratio > 0.999));
        assert_eq!(correlation_of_most(&[[1, 1]; 20]), None);
    }

    #[test]
    fn what_holds_up_one_pass_alone_is_no_length() {
        check(&job(2, &|step, rank| [drawn(step, rank), 0]), "rank.lengths", &[]);
        check(&job(2, &|step, rank| [drawn(step, rank), drawn(step + 50, rank)]), "rank.lengths", &[]);
    }
}
