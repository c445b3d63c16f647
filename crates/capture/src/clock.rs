//! From ticks to nanoseconds: piecewise linear through the moments at which the recorder read all clocks.

use crate::layout::TICK_BITS;

/// One moment, read on all clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockPoint {
    /// Ticks, modulo 2^56.
    pub ticks: u64,
    /// Monotonic clock, ns.
    pub monotonic_ns: i64,
    /// Unix time, ns.
    pub unix_ns: i64,
}

/// A snapshot of the clocks: what the time of day was at a moment of the monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockSnapshot {
    /// Monotonic clock, ns.
    pub monotonic_ns: i64,
    /// Unix time, ns.
    pub unix_ns: i64,
}

impl ClockSnapshot {
    /// Time from one kept snapshot to the next, ns.
    const PERIOD_NS: i64 = 60_000_000_000;

    /// Unix time minus monotonic clock.
    pub fn unix_offset_ns(&self) -> i64 {
        self.unix_ns.saturating_sub(self.monotonic_ns)
    }

    /// Of the moments of a capture, which begin with `opened`, by time: that one, one a minute, and the last.
    pub(crate) fn kept(opened: ClockPoint, points: &[ClockPoint]) -> Vec<Self> {
        let of = |point: &ClockPoint| Self { monotonic_ns: point.monotonic_ns, unix_ns: point.unix_ns };
        let mut points: Vec<Self> = points.iter().map(of).collect();
        points.sort_by_key(|point| point.monotonic_ns);
        let mut kept = vec![of(&opened)];
        for (at, point) in points.iter().enumerate() {
            let since_ns = point.monotonic_ns.saturating_sub(kept[kept.len() - 1].monotonic_ns);
            if since_ns >= Self::PERIOD_NS || (since_ns > 0 && at + 1 == points.len()) {
                kept.push(*point);
            }
        }
        kept
    }
}

/// Maps ticks to monotonic nanoseconds; exact at every point it was given, monotonic between and beyond.
#[derive(Clone, Debug)]
pub struct TickClock {
    /// (ticks relative to the first point, monotonic ns), both strictly ascending.
    points: Vec<(i64, i64)>,
    origin_ticks: u64,
}

impl TickClock {
    /// The clock through `points`, of which the first is the origin. Ticks that are nanoseconds already need one point
    /// only; so does a capture that was killed before its second.
    pub fn new(first: ClockPoint, more: impl IntoIterator<Item = ClockPoint>) -> Self {
        let mut clock = Self { points: vec![(0, first.monotonic_ns)], origin_ticks: first.ticks };
        let mut points: Vec<_> =
            more.into_iter().map(|point| (clock.relative(point.ticks), point.monotonic_ns)).collect();
        points.sort_unstable();
        for (ticks, ns) in points {
            let (last_ticks, last_ns) = clock.points[clock.points.len() - 1];
            if ticks > last_ticks && ns > last_ns {
                clock.points.push((ticks, ns));
            }
        }
        clock
    }

    /// Monotonic nanoseconds at `ticks`.
    pub fn monotonic_ns(&self, ticks: u64) -> i64 {
        let at = self.relative(ticks);
        if self.points.len() == 1 {
            return self.points[0].1.saturating_add(at);
        }
        self.on_line(at, self.line_of(at))
    }

    /// Converts ticks to monotonic nanoseconds, quickly where one moment follows the other.
    pub(crate) fn cursor(&self) -> TickCursor<'_> {
        TickCursor { clock: self, line: Line::default() }
    }

    /// The index of the point that ends the line on which `at` lies.
    fn line_of(&self, at: i64) -> usize {
        self.points.partition_point(|(ticks, _)| *ticks <= at).clamp(1, self.points.len() - 1)
    }

    /// Nanoseconds at `at` on the line that ends at point `line`.
    #[inline]
    fn on_line(&self, at: i64, line: usize) -> i64 {
        let ((t0, n0), (t1, n1)) = (self.points[line - 1], self.points[line]);
        let in_64_bits = || {
            let product = at.checked_sub(t0)?.checked_mul(n1.checked_sub(n0)?)?;
            n0.checked_add(product.div_euclid(t1.checked_sub(t0)?))
        };
        in_64_bits().unwrap_or_else(|| {
            // Wide, since a damaged capture may hold any numbers.
            let (t0, n0, t1, n1) = (i128::from(t0), i128::from(n0), i128::from(t1), i128::from(n1));
            let ns = n0 + ((i128::from(at) - t0) * (n1 - n0)).div_euclid(t1 - t0);
            ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        })
    }

    /// Ticks since the origin, negative before it, although only 56 bits are kept.
    fn relative(&self, ticks: u64) -> i64 {
        let shift = 64 - TICK_BITS;
        (ticks.wrapping_sub(self.origin_ticks) << shift) as i64 >> shift
    }
}

/// A [`TickClock`] that is asked for moments in nearly ascending order: it remembers the line it used last.
pub(crate) struct TickCursor<'a> {
    clock: &'a TickClock,
    line: Line,
}

/// A line between two points that are near enough for 64 bits; none has a length of 0.
#[derive(Clone, Copy, Default)]
struct Line {
    start_ticks: i64,
    start_ns: i64,
    ticks: i64,
    ns: i64,
    ns_per_tick: f64,
}

impl Line {
    /// The line between two neighbouring points; none when its numbers are those of a damaged capture.
    fn between((t0, n0): (i64, i64), (t1, n1): (i64, i64)) -> Self {
        let near = |from: i64, to: i64| to.checked_sub(from).filter(|length| *length < 1 << 40);
        let line = near(t0, t1).zip(near(n0, n1)).filter(|(ticks, ns)| ticks.checked_mul(*ns).is_some());
        line.map_or(Self::default(), |(ticks, ns)| Self {
            start_ticks: t0,
            start_ns: n0,
            ticks,
            ns,
            ns_per_tick: ns as f64 / ticks as f64,
        })
    }

    /// Nanoseconds at a point of the line, exactly: a product that is off by one at most, put right, is quicker than a
    /// division.
    #[inline]
    fn ns_at(&self, at: i64) -> Option<i64> {
        let ticks = at.checked_sub(self.start_ticks).filter(|ticks| (0..self.ticks).contains(ticks))?;
        let mut ns = (ticks as f64 * self.ns_per_tick) as i64;
        let rest = ticks * self.ns - ns * self.ticks;
        ns += i64::from(rest >= self.ticks) - i64::from(rest < 0);
        Some(self.start_ns + ns)
    }
}

impl TickCursor<'_> {
    /// What [`TickClock::monotonic_ns`] says.
    #[inline]
    pub(crate) fn monotonic_ns(&mut self, ticks: u64) -> i64 {
        let at = self.clock.relative(ticks);
        match self.line.ns_at(at) {
            Some(ns) => ns,
            None => self.on_another_line(ticks, at),
        }
    }

    #[cold]
    fn on_another_line(&mut self, ticks: u64, at: i64) -> i64 {
        if let points @ [_, _, ..] = self.clock.points.as_slice() {
            let end = self.clock.line_of(at);
            self.line = Line::between(points[end - 1], points[end]);
        }
        self.clock.monotonic_ns(ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point(ticks: u64, monotonic_ns: i64) -> ClockPoint {
        ClockPoint { ticks, monotonic_ns, unix_ns: 0 }
    }

    #[test]
    fn points_are_met_exactly_and_lines_run_between_and_beyond() {
        let clock = TickClock::new(point(1_000, 50), [point(3_000, 1_050), point(4_000, 1_250)]);
        let ns = [1_000, 2_000, 3_000, 3_500, 4_000, 5_000, 0].map(|ticks| clock.monotonic_ns(ticks));
        assert_eq!(ns, [50, 550, 1_050, 1_150, 1_250, 1_450, -450]);
    }

    #[test]
    fn one_point_takes_ticks_for_nanoseconds() {
        assert_eq!(TickClock::new(point(1_000, 70), []).monotonic_ns(1_005), 75);
    }

    #[test]
    fn a_counter_that_wraps_goes_on() {
        let near_end = (1 << TICK_BITS) - 10;
        let clock = TickClock::new(point(near_end, 0), [point(90, 50)]);
        assert_eq!(clock.monotonic_ns(10), 10);
    }

    #[test]
    fn the_first_snapshot_one_a_minute_and_the_last_are_kept() {
        let second = |second: i64| ClockPoint {
            ticks: 0,
            monotonic_ns: second * 1_000_000_000,
            // Set an hour ahead after 100 seconds.
            unix_ns: (second + if second < 100 { 0 } else { 3_600 }) * 1_000_000_000,
        };
        let kept = |seconds: &[i64]| -> Vec<(i64, i64)> {
            let points: Vec<ClockPoint> = seconds.iter().copied().map(second).collect();
            let kept = ClockSnapshot::kept(second(5), &points).into_iter();
            kept.map(|point| (point.monotonic_ns / 1_000_000_000, point.unix_offset_ns() / 1_000_000_000)).collect()
        };
        assert_eq!(kept(&(6..200).collect::<Vec<_>>()), [(5, 0), (65, 0), (125, 3_600), (185, 3_600), (199, 3_600)]);
        assert_eq!(kept(&[6, 5, 7]), [(5, 0), (7, 0)]);
        assert_eq!(kept(&[300, 7, 301, 4]), [(5, 0), (300, 3_600), (301, 3_600)], "in any order");
        assert_eq!(kept(&[]), [(5, 0)], "it was killed at once");
    }

    proptest! {
        #[test]
        fn a_cursor_says_what_its_clock_says(
            points in prop::collection::vec((0u64..1 << 56, 0i64..i64::MAX), 0..6),
            near in prop::collection::vec((0u64..9_000, 0i64..9_000), 0..6),
            at in prop::collection::vec(prop_oneof![0u64..10_000, 0u64..1 << 56], 1..30),
        ) {
            let clock = TickClock::new(point(100, 50), points.into_iter().chain(near).map(|(ticks, ns)| point(ticks, ns)));
            let mut cursor = clock.cursor();
            for ticks in at {
                prop_assert_eq!(cursor.monotonic_ns(ticks), clock.monotonic_ns(ticks));
            }
        }

        #[test]
        fn later_ticks_are_never_earlier(steps in prop::collection::vec((1u64..5_000, 1i64..9_000), 1..20), at in 0u64..90_000, by in 0u64..90_000) {
            let mut last = (1u64 << 40, 0i64);
            let points: Vec<_> = steps.iter().map(|(ticks, ns)| { last = (last.0 + ticks, last.1 + ns); point(last.0, last.1) }).collect();
            let clock = TickClock::new(point(1 << 40, 0), points);
            prop_assert!(clock.monotonic_ns((1 << 40) + at) <= clock.monotonic_ns((1 << 40) + at + by));
        }
    }
}
