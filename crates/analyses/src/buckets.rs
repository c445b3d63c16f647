//! A window of time in buckets, as curves have them.

use stepscope_base::{IntervalSet, Span};

/// How wide a bucket is where no width is asked for.
pub(crate) const DEFAULT_BUCKET_NS: i64 = 10_000_000;
const MOST_BUCKETS: i64 = 100_000;

/// A window in buckets, which begin at whole multiples of their width; the first and the last one are cut.
pub(crate) struct Buckets {
    window: Span,
    width_ns: i64,
}

impl Buckets {
    /// Buckets of `bucket_ns`, or as much wider as it takes. The window is not empty.
    pub(crate) fn of(window: Span, bucket_ns: i64) -> Self {
        let mut buckets = Self { window, width_ns: bucket_ns };
        while buckets.len() > MOST_BUCKETS {
            buckets.width_ns = buckets.width_ns.saturating_mul(10);
        }
        buckets
    }

    /// All of them together.
    pub(crate) fn window(&self) -> Span {
        self.window
    }

    fn first(&self) -> i64 {
        self.window.start_ns.div_euclid(self.width_ns)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> i64 {
        (self.window.end_ns - 1).div_euclid(self.width_ns) - self.first() + 1
    }

    /// The bucket of a moment in the window.
    pub(crate) fn at(&self, at_ns: i64) -> usize {
        (at_ns.min(self.window.end_ns - 1).div_euclid(self.width_ns) - self.first()) as usize
    }

    /// The part of the window that a bucket is.
    pub(crate) fn span(&self, at: usize) -> Span {
        let start_ns = (self.first() + at as i64).saturating_mul(self.width_ns);
        Span::new(start_ns, start_ns.saturating_add(self.width_ns)).intersect(self.window)
    }

    /// Calls `part` with each bucket that a span in the window touches, and how much of the span lies in it.
    pub(crate) fn cut(&self, span: Span, mut part: impl FnMut(usize, i64)) {
        let mut start_ns = span.start_ns;
        while start_ns < span.end_ns {
            let at = self.at(start_ns);
            let end_ns = self.span(at).end_ns.min(span.end_ns);
            part(at, end_ns - start_ns);
            start_ns = end_ns;
        }
    }

    /// How much of each bucket `set` covers.
    pub(crate) fn covered_ns(&self, set: &IntervalSet) -> Vec<i64> {
        let mut covered = vec![0; self.len() as usize];
        for span in set.spans() {
            self.cut(*span, |at, ns| covered[at] += ns);
        }
        covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_buckets_become_wider_by_powers_of_ten() {
        let width_ns = |window, bucket_ns| Buckets::of(window, bucket_ns).width_ns;
        assert_eq!(width_ns(Span::new(0, 1_000_000), 10), 10);
        assert_eq!(width_ns(Span::new(5, 1_000_005), 10), 100);
        assert_eq!(width_ns(Span::new(0, i64::MAX), 1), 100_000_000_000_000);
    }

    #[test]
    fn a_span_is_cut_where_buckets_end() {
        let buckets = Buckets::of(Span::new(3, 27), 10);
        let mut parts = Vec::new();
        buckets.cut(Span::new(5, 25), |at, ns| parts.push((at, ns)));
        assert_eq!(parts, [(0, 5), (1, 10), (2, 5)]);
        assert_eq!([0, 1, 2].map(|at| buckets.span(at)), [Span::new(3, 10), Span::new(10, 20), Span::new(20, 27)]);
        buckets.cut(Span::new(7, 7), |_, _| panic!("nothing of it lies anywhere"));
    }
}
