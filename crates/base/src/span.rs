//! A bare half-open time range.

use serde::{Deserialize, Serialize};

/// The half-open range `[start_ns, end_ns)`. Empty when `end_ns <= start_ns`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Span {
    /// First nanosecond inside.
    pub start_ns: i64,
    /// First nanosecond after.
    pub end_ns: i64,
}

impl Span {
    /// The range from `start_ns` up to, not including, `end_ns`.
    pub fn new(start_ns: i64, end_ns: i64) -> Self {
        Self { start_ns, end_ns }
    }

    /// Length in nanoseconds; 0 when empty.
    pub fn duration_ns(self) -> i64 {
        (self.end_ns - self.start_ns).max(0)
    }

    /// True when no nanosecond lies inside.
    pub fn is_empty(self) -> bool {
        self.end_ns <= self.start_ns
    }

    /// True when `at_ns` lies inside.
    pub fn contains(self, at_ns: i64) -> bool {
        self.start_ns <= at_ns && at_ns < self.end_ns
    }

    /// The part that lies in both; possibly empty.
    pub fn intersect(self, other: Span) -> Span {
        Span::new(self.start_ns.max(other.start_ns), self.end_ns.min(other.end_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_touch_share_nothing() {
        assert!(Span::new(0, 5).intersect(Span::new(5, 9)).is_empty());
        assert_eq!(Span::new(0, 5).intersect(Span::new(3, 9)), Span::new(3, 5));
        assert_eq!(Span::new(7, 3).duration_ns(), 0);
        assert!(!Span::new(0, 5).contains(5));
    }
}
