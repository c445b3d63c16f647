//! How fast the multiprocessors of a rank's devices run, as it was sampled.

use stepscope_base::Span;
use stepscope_trace::Trace;

/// How the recorder ends the names of such counters.
const COUNTER: &str = "SM clock (MHz)";
/// Samples from so long before a stretch count for it: there are five a second.
const BEFORE_NS: i64 = 1_000_000_000;

/// The samples of all devices of a rank, ascending by time.
pub(crate) struct SmClock {
    time_ns: Vec<i64>,
    /// The sum of all samples before each, and of all, MHz.
    sums: Vec<i64>,
}

impl SmClock {
    /// That of `rank`.
    pub(crate) fn of(trace: &Trace, rank: u32) -> Self {
        let is_of_rank = |device: stepscope_trace::DeviceId| trace.devices[device.index()].rank == rank;
        let is_clock = |name: stepscope_base::StringId| trace.strings.get(name).ends_with(COUNTER);
        let counters =
            trace.counters.iter().filter(|counter| counter.device.is_some_and(is_of_rank) && is_clock(counter.name));
        let mut samples: Vec<(i64, i64)> = counters
            .flat_map(|counter| counter.time_ns.iter().copied().zip(counter.value.iter().map(|value| *value as i64)))
            .collect();
        samples.sort_unstable();
        let mut sum = 0_i64;
        let mut sums = vec![0];
        sums.extend(samples.iter().map(|(_, mhz)| {
            sum = sum.saturating_add(*mhz);
            sum
        }));
        Self { time_ns: samples.into_iter().map(|(time_ns, _)| time_ns).collect(), sums }
    }

    /// The mean of the samples from a second before `span` to its end, MHz, rounded down; `None` without any.
    pub(crate) fn mean_mhz(&self, span: Span) -> Option<i64> {
        let from = self.time_ns.partition_point(|time_ns| *time_ns < span.start_ns.saturating_sub(BEFORE_NS));
        let to = self.time_ns.partition_point(|time_ns| *time_ns <= span.end_ns);
        let count = i64::try_from(to.checked_sub(from)?).ok().filter(|count| *count > 0)?;
        Some((self.sums[to] - self.sums[from]) / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::{add_sm_clock, drawn};

    #[test]
    fn samples_of_a_second_before_count_and_those_of_other_ranks_and_later_ones_do_not() {
        let mut trace = drawn("rank 0 stream 7 AB\nrank 1 stream 7 AB");
        add_sm_clock(&mut trace, 0, &[(0, 1_000), (900_000_000, 1_400), (1_500_000_000, 1_201), (4_000_000_000, 9)]);
        add_sm_clock(&mut trace, 1, &[(1_000_000_000, 7)]);
        let mean = |rank, start_ns, end_ns| SmClock::of(&trace, rank).mean_mhz(Span::new(start_ns, end_ns));
        assert_eq!(mean(0, 1_000_000_000, 1_000_000_001), Some(1_200));
        assert_eq!(mean(0, 1_600_000_000, 2_000_000_000), Some(1_300));
        assert_eq!(mean(0, 2_600_000_000, 3_999_999_999), None);
        assert_eq!((mean(1, 0, 5), mean(1, 0, 1_000_000_000), mean(2, 0, i64::MAX)), (None, Some(7), None));
    }
}
