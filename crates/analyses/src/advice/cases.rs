//! How often something happens: what happens once or twice is no habit, and no advice.

use super::Advice;
use super::facts::share;
use stepscope_base::Span;

/// What happens less often is no habit.
const LEAST_CASES: i64 = 3;

/// How often something happened and how long it took.
#[derive(Clone, Copy, Default)]
pub(super) struct Cases {
    pub(super) count: i64,
    pub(super) total_ns: i64,
    pub(super) longest_ns: i64,
}

impl Cases {
    /// Those of some spans.
    pub(super) fn of(spans: &[Span]) -> Self {
        let mut cases = Self::default();
        spans.iter().for_each(|span| cases.add(span.duration_ns()));
        cases
    }

    pub(super) fn add(&mut self, ns: i64) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.longest_ns = self.longest_ns.max(ns);
    }

    /// Whether what a row says of them is a habit: they are several, and without the longest it would be worth a word as
    /// well.
    pub(super) fn are_habit(self, row: &Advice) -> bool {
        let (measured_ns, window_ns) = (row.measured_ns.unwrap_or(0), row.window_ns.unwrap_or(0));
        let left = i128::from(measured_ns) * i128::from(self.total_ns - self.longest_ns);
        let left_ns = (left / i128::from(self.total_ns.max(1))) as i64;
        self.count >= LEAST_CASES && share(left_ns, window_ns, row.threshold_ratio.unwrap_or(0.0)).is_some()
    }
}
