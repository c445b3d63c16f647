//! How much memory was allocated, less what was freed, while an event ran.

/// Bytes over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// Ascending.
    times_ns: Vec<i64>,
    /// Sum of the bytes up to and with the same row of `times_ns`.
    sums: Vec<i64>,
}

impl Usage {
    /// Of allocations (above 0) and frees (below 0), in any order.
    pub(crate) fn new(mut changes: Vec<(i64, i64)>) -> Self {
        changes.sort_by_key(|(time_ns, _)| *time_ns);
        let sum = |sum: &mut i64, (_, bytes): &(i64, i64)| {
            *sum = sum.saturating_add(*bytes);
            Some(*sum)
        };
        let sums = changes.iter().scan(0, sum).collect();
        Self { times_ns: changes.iter().map(|(time_ns, _)| *time_ns).collect(), sums }
    }

    /// From `start_ns` to `end_ns`, both included.
    pub(crate) fn between(&self, start_ns: i64, end_ns: i64) -> i64 {
        let before = |found: usize| found.checked_sub(1).map_or(0, |last| self.sums[last]);
        let start = self.times_ns.partition_point(|time_ns| *time_ns < start_ns);
        let end = self.times_ns.partition_point(|time_ns| *time_ns <= end_ns).max(start);
        before(end).saturating_sub(before(start))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.times_ns.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_belong_to_it() {
        let usage = Usage::new(vec![(30, -5), (10, 8), (20, 4)]);
        assert_eq!(
            [(10, 10), (11, 19), (10, 20), (20, 30), (31, 99)].map(|(a, b)| usage.between(a, b)),
            [8, 0, 12, -1, 0]
        );
        assert_eq!(Usage::default().between(0, 9), 0);
        assert!(Usage::default().is_empty());
    }
}
