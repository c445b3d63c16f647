//! How many steps of two runs take how long.

use super::step_times;
use crate::{Outcome, Selection};
use stepscope_base::percentiles::nearest_rank;
use stepscope_trace::Trace;

/// The number of ranges into which the middle of all steps, from the 5th to the 95th percentile, is cut, …
const IN_THE_MIDDLE: i64 = 20;
/// … unless all steps would need more than about this number: a single slow one would have thousands.
const ALTOGETHER: i64 = 100;

columns! {
    /// A range of durations.
    struct DurationRange {
        /// The shortest duration of the range.
        from_ns: i64 => Nanoseconds,
        /// The end of the range: the first duration that is too long for it.
        to_ns: i64 => Nanoseconds,
        /// Number of steps of the first run in the range.
        a_steps: i64 => Count,
        /// Number of steps of the second run in the range.
        b_steps: i64 => Count,
    }
}

/// A row is a range of durations; ranges follow each other, also those without a step.
pub(super) fn outcome(a: (&Trace, &Selection), b: (&Trace, &Selection)) -> Outcome {
    let (a, b) = (step_times::of(a.0, a.1), step_times::of(b.0, b.1));
    let ranges = ranges(&[a.as_slice(), b.as_slice()].concat());
    let row = |&(from_ns, to_ns): &(i64, i64)| {
        let count = |steps: &[i64]| steps.iter().filter(|ns| (from_ns..to_ns).contains(*ns)).count() as i64;
        DurationRange { from_ns, to_ns, a_steps: count(&a), b_steps: count(&b) }
    };
    Outcome::of_runs(&ranges.iter().map(row).collect::<Vec<_>>())
}

/// Ranges of one round width that hold all `durations`.
fn ranges(durations: &[i64]) -> Vec<(i64, i64)> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let (Some(least), Some(most)) = (sorted.first().copied(), sorted.last().copied()) else { return Vec::new() };
    let middle = match (nearest_rank(&sorted, 5), nearest_rank(&sorted, 95)) {
        (Some(low), Some(high)) => high - low,
        _ => 0,
    };
    let width = round_up((middle / IN_THE_MIDDLE).max((most - least) / ALTOGETHER));
    let mut from_ns = least.div_euclid(width) * width;
    let mut ranges = Vec::new();
    loop {
        let to_ns = from_ns.saturating_add(width);
        ranges.push((from_ns, to_ns));
        if most < to_ns || to_ns == i64::MAX {
            return ranges;
        }
        from_ns = to_ns;
    }
}

/// The next of 1, 2, 5, 10, 20, … that is not less.
fn round_up(ns: i64) -> i64 {
    let powers = (0..18).map(|power| 10_i64.pow(power));
    let round = powers.flat_map(|power| [power, 2 * power, 5 * power]).find(|width| *width >= ns);
    round.unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_round_and_follow_each_other() {
        assert_eq!(ranges(&[]), []);
        assert_eq!(ranges(&[7]), [(7, 8)]);
        let expected: Vec<_> = (0..21).map(|at| (1_000_000 + 2 * at, 1_000_002 + 2 * at)).collect();
        assert_eq!(ranges(&[1_000_000, 1_000_041]), expected);
        assert_eq!([0, 1, 3, 11, 50, 51].map(round_up), [1, 1, 5, 20, 50, 100]);
    }

    proptest! {
        #[test]
        fn every_duration_lies_in_one_of_few_ranges(
            durations in prop::collection::vec(0_i64..3_000_000_000, 1..60), slow in 0..=i64::MAX / 2
        ) {
            let durations = [durations, vec![slow]].concat();
            let ranges = ranges(&durations);
            prop_assert!(ranges.len() <= 102, "{}", ranges.len());
            prop_assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
            for ns in durations {
                prop_assert_eq!(ranges.iter().filter(|(from_ns, to_ns)| *from_ns <= ns && ns < *to_ns).count(), 1);
            }
        }
    }
}
