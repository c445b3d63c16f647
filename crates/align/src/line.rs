//! The line that explains by how much two clocks differ, at moments at which both were read.

use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_trace::Drift;

/// As exactly as clocks of devices are read: ends and begins that contradict by less do not.
const TOLERANCE_NS: i64 = 1_000;
/// Of fewer readings no drift is told.
const ENOUGH_FOR_DRIFT: usize = 20;
/// No drift is told of readings that lie closer together.
const LONG_ENOUGH_FOR_DRIFT_NS: i64 = 1_000_000_000;
/// A drift that comes to less over all readings is none.
const SMALLEST_DRIFT_NS: i64 = 2_000;

/// Two clocks, read at one moment: a collective that both sides leave together, and that neither leaves before the other
/// has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reading {
    /// When, on the second clock.
    pub(crate) at_ns: i64,
    /// What brings the second clock to the first: the difference of the ends.
    pub(crate) difference_ns: i64,
    /// The limits of that: with less the second side would leave before the first has come, with more the first before
    /// the second.
    pub(crate) least_ns: i64,
    pub(crate) most_ns: i64,
}

impl Reading {
    /// True when one side leaves before the other has come, once `difference_ns` is added to the second clock.
    pub(crate) fn contradicts(&self, difference_ns: i64) -> bool {
        difference_ns.saturating_add(TOLERANCE_NS) < self.least_ns
            || difference_ns.saturating_sub(TOLERANCE_NS) > self.most_ns
    }
}

/// What brings one clock to another: an offset at time 0, and a drift.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Line {
    pub(crate) offset_ns: i64,
    pub(crate) drift: Drift,
}

impl Line {
    /// The line through most of `readings`, of which there is at least one, within the limits of all where that is
    /// possible.
    pub(crate) fn through(readings: &mut [Reading]) -> Self {
        readings.sort_by_key(|reading| reading.at_ns);
        let drift = drift(readings);
        let mut offsets: Vec<i64> = readings.iter().map(|of| of.difference_ns - drift.over(of.at_ns)).collect();
        let offset_ns = nearest_rank_of_unsorted(&mut offsets, 50).expect("there is a reading");
        let least_ns = readings.iter().map(|of| of.least_ns - drift.over(of.at_ns)).max();
        let most_ns = readings.iter().map(|of| of.most_ns - drift.over(of.at_ns)).min();
        // Readings that contradict each other have outliers among them: the middle is all there is.
        let offset_ns = match (least_ns, most_ns) {
            (Some(least_ns), Some(most_ns)) if least_ns <= most_ns => offset_ns.clamp(least_ns, most_ns),
            _ => offset_ns,
        };
        Self { offset_ns, drift }
    }

    pub(crate) fn at(self, at_ns: i64) -> i64 {
        self.offset_ns.saturating_add(self.drift.over(at_ns))
    }

    /// What brings a clock to the first, when `self` brings it to a second one and `other` that one to the first.
    pub(crate) fn then(self, other: Self) -> Self {
        let offset_ns = self.offset_ns.saturating_add(other.at(self.offset_ns));
        Self { offset_ns, drift: Drift(self.drift.0.saturating_add(other.drift.0)) }
    }

    /// What brings the second clock of `self` to its first, seen from the other side.
    pub(crate) fn reversed(self) -> Self {
        // At 0 of the first clock the second one shows `-offset`, but for what it drifts in that time.
        Self { offset_ns: -self.at(-self.offset_ns), drift: Drift(-self.drift.0) }
    }
}

/// The drift between the first and the last third of readings in order of time; none where it is not more than what
/// readings differ anyway.
fn drift(readings: &[Reading]) -> Drift {
    let third = readings.len() / 3;
    if readings.len() < ENOUGH_FOR_DRIFT {
        return Drift::default();
    }
    let middle = |readings: &[Reading], value: fn(&Reading) -> i64| {
        nearest_rank_of_unsorted(&mut readings.iter().map(value).collect::<Vec<_>>(), 50).expect("there is a reading")
    };
    let (first, last) = (&readings[..third], &readings[readings.len() - third..]);
    let [first_ns, last_ns] = [first, last].map(|of| middle(of, |reading| reading.difference_ns));
    let between_ns = middle(last, |reading| reading.at_ns) - middle(first, |reading| reading.at_ns);
    let spread = |of: &[Reading], middle_ns: i64| {
        let mut from_middle: Vec<i64> = of.iter().map(|reading| (reading.difference_ns - middle_ns).abs()).collect();
        nearest_rank_of_unsorted(&mut from_middle, 50).expect("there is a reading")
    };
    let spread_ns = spread(first, first_ns).max(spread(last, last_ns));
    // The middle of n values is off by about their spread over the root of n.
    let doubt_ns = (6 * spread_ns as i128 * 1_000 / isqrt(third as i128 * 1_000_000)) as i64;
    let change_ns = last_ns - first_ns;
    if between_ns < LONG_ENOUGH_FOR_DRIFT_NS || change_ns.abs() < SMALLEST_DRIFT_NS.max(doubt_ns) {
        return Drift::default();
    }
    Drift((i128::from(change_ns) * 1_000_000_000_000 / i128::from(between_ns)) as i64)
}

fn isqrt(value: i128) -> i128 {
    value.isqrt().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(at_ns: i64, difference_ns: i64) -> Reading {
        Reading { at_ns, difference_ns, least_ns: i64::MIN / 4, most_ns: i64::MAX / 4 }
    }

    #[test]
    fn most_readings_decide_and_limits_hold() {
        let mut readings = [reading(0, 10), reading(1, 12), reading(2, 900)];
        assert_eq!(Line::through(&mut readings), Line { offset_ns: 12, drift: Drift(0) });
        readings[0].most_ns = 11;
        assert_eq!(Line::through(&mut readings).offset_ns, 11);
        // Nothing fits all of these.
        readings[1].least_ns = 500;
        assert_eq!(Line::through(&mut readings).offset_ns, 12);
    }

    #[test]
    fn a_drift_is_told_of_enough_readings_over_enough_time_alone() {
        let drifting = |count: i64, step_ns: i64| {
            let mut readings: Vec<Reading> =
                (0..count).map(|at| reading(at * step_ns, 500 + at * step_ns / 100_000)).collect();
            Line::through(&mut readings)
        };
        let line = drifting(100, 100_000_000);
        assert!((line.drift.0 - 10_000_000).abs() < 2_000 && (line.offset_ns - 500).abs() <= 3, "{line:?}");
        assert_eq!(drifting(100, 1_000_000).drift, Drift(0));
        assert_eq!(drifting(10, 1_000_000_000).drift, Drift(0));
    }

    #[test]
    fn noise_is_no_drift() {
        // Differences that jump to and fro by 50 µs for ten seconds.
        let noise = |at: i64| (at * 7_919) % 101 * 1_000 - 50_000;
        let mut readings: Vec<Reading> = (0..1_000).map(|at| reading(at * 10_000_000, noise(at))).collect();
        assert_eq!(Line::through(&mut readings).drift, Drift(0));
    }

    proptest! {
        #[test]
        fn a_clock_that_is_brought_there_and_back_shows_the_same(
            first in (-1_000_000_000_i64..1_000_000_000, -50_000_000_i64..50_000_000),
            second in (-1_000_000_000_i64..1_000_000_000, -50_000_000_i64..50_000_000),
            at_ns in 0_i64..3_600_000_000_000,
        ) {
            let line = |(offset_ns, drift)| Line { offset_ns, drift: Drift(drift) };
            let (first, second) = (line(first), line(second));
            let apply = |line: Line, at_ns: i64| at_ns + line.at(at_ns);
            // A drift of 50 ppm of a drift of 50 ppm is 2.5 parts of 10^9.
            let allowed = 4 + at_ns / 100_000_000;
            prop_assert!((apply(first.then(second), at_ns) - apply(second, apply(first, at_ns))).abs() <= allowed);
            prop_assert!((apply(first.reversed(), apply(first, at_ns)) - at_ns).abs() <= allowed);
        }
    }
}
