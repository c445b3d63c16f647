//! Sets of nanoseconds as sorted, disjoint, non-touching spans. Every operation is one sweep: exact, no sampling.
//!
//! ```text
//! a        ███···██
//! b        ··██████
//! union    ████████      intersect ··█···██      subtract ██······
//! ```

use crate::Span;

/// A set of nanoseconds. Spans are sorted, non-empty, and neither overlap nor touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IntervalSet {
    spans: Vec<Span>,
}

impl IntervalSet {
    /// The set covered by `spans`, in any order, overlapping or not; empty ones are ignored.
    pub fn from_unsorted(spans: impl IntoIterator<Item = Span>) -> Self {
        // What comes is most often sorted, or a few ascending runs: what overlaps in one is put together at once.
        let mut merged: Vec<Span> = Vec::new();
        let mut is_sorted = true;
        for span in spans.into_iter().filter(|span| !span.is_empty()) {
            match merged.last_mut() {
                Some(last) if (last.start_ns..=last.end_ns).contains(&span.start_ns) => {
                    last.end_ns = last.end_ns.max(span.end_ns);
                }
                last => {
                    is_sorted &= last.is_none_or(|last| last.start_ns < span.start_ns);
                    merged.push(span);
                }
            }
        }
        if is_sorted {
            return Self { spans: merged };
        }
        // Stable, since that merges ascending runs in one go.
        merged.sort_by_key(|span| span.start_ns);
        let len = merged.len();
        Self::from_sorted(merged.into_iter(), len)
    }

    /// The set covered by at most `len` spans that are not empty, in order of their start.
    fn from_sorted(spans: impl Iterator<Item = Span>, len: usize) -> Self {
        let mut merged: Vec<Span> = Vec::with_capacity(len);
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.start_ns <= last.end_ns => last.end_ns = last.end_ns.max(span.end_ns),
                _ => merged.push(span),
            }
        }
        Self { spans: merged }
    }

    /// Adds a span that starts no earlier than any before.
    ///
    /// # Panics
    /// When it starts before the last one in the set.
    pub fn push(&mut self, span: Span) {
        match self.spans.last_mut() {
            _ if span.is_empty() => {}
            Some(last) if span.start_ns <= last.end_ns => {
                assert!(last.start_ns <= span.start_ns, "spans are added in order of their start");
                last.end_ns = last.end_ns.max(span.end_ns);
            }
            _ => self.spans.push(span),
        }
    }

    /// The set of one span; empty for an empty span.
    pub fn of(span: Span) -> Self {
        Self::from_unsorted([span])
    }

    /// The spans, sorted and disjoint.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Nanoseconds in the set.
    pub fn total_ns(&self) -> i64 {
        self.spans.iter().map(|span| span.duration_ns()).sum()
    }

    /// True when the set holds nothing.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// From the first nanosecond in the set to the last; `None` when empty.
    pub fn hull(&self) -> Option<Span> {
        Some(Span::new(self.spans.first()?.start_ns, self.spans.last()?.end_ns))
    }

    /// Nanoseconds in either set.
    pub fn union(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.spans.iter().peekable(), other.spans.iter().peekable());
        let next = || match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if a.start_ns <= b.start_ns => left.next().copied(),
            (_, Some(_)) => right.next().copied(),
            (_, None) => left.next().copied(),
        };
        Self::from_sorted(std::iter::from_fn(next), self.spans.len() + other.spans.len())
    }

    /// Nanoseconds in both sets.
    pub fn intersect(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.spans.iter().peekable(), other.spans.iter().peekable());
        let mut spans = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let both = a.intersect(**b);
            if !both.is_empty() {
                spans.push(both);
            }
            if a.end_ns <= b.end_ns {
                left.next();
            } else {
                right.next();
            }
        }
        Self { spans }
    }

    /// Nanoseconds in this set and not in `other`.
    pub fn subtract(&self, other: &Self) -> Self {
        let mut holes = other.spans.iter().peekable();
        let mut spans = Vec::new();
        for span in &self.spans {
            let mut start_ns = span.start_ns;
            while holes.next_if(|hole| hole.end_ns <= start_ns).is_some() {}
            while let Some(hole) = holes.peek().filter(|hole| hole.start_ns < span.end_ns) {
                if hole.start_ns > start_ns {
                    spans.push(Span::new(start_ns, hole.start_ns));
                }
                start_ns = start_ns.max(hole.end_ns);
                if hole.end_ns > span.end_ns {
                    break;
                }
                holes.next();
            }
            if start_ns < span.end_ns {
                spans.push(Span::new(start_ns, span.end_ns));
            }
        }
        Self { spans }
    }

    /// The part of the set inside `window`.
    pub fn clip(&self, window: Span) -> Self {
        let first = self.spans.partition_point(|span| span.end_ns <= window.start_ns);
        let inside = self.spans[first..].iter().take_while(|span| span.start_ns < window.end_ns);
        let parts = inside.map(|span| span.intersect(window)).filter(|part| !part.is_empty());
        Self { spans: parts.collect() }
    }
}

impl FromIterator<Span> for IntervalSet {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        Self::from_unsorted(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(row: &str) -> IntervalSet {
        row.bytes().enumerate().filter(|(_, b)| *b != b'.').map(|(i, _)| Span::new(i as i64, i as i64 + 1)).collect()
    }

    #[test]
    fn drawings_combine_as_they_look() {
        let (a, b) = (drawn("###..##."), drawn("..####.."));
        assert_eq!(a.union(&b), drawn("#######."));
        assert_eq!(a.intersect(&b), drawn("..#..#.."));
        assert_eq!(a.subtract(&b), drawn("##....#."));
        assert_eq!(a.clip(Span::new(1, 6)), drawn(".##..#.."));
        assert_eq!(a.hull(), Some(Span::new(0, 7)));
        assert_eq!(drawn("....").hull(), None);
    }

    #[test]
    fn one_hole_can_cut_several_spans() {
        assert_eq!(drawn("##.##.##").subtract(&drawn(".######.")), drawn("#......#"));
    }

    fn spans() -> impl Strategy<Value = Vec<(i64, i64)>> {
        prop::collection::vec((0i64..60, 0i64..9), 0..14)
    }

    fn bits(spans: &[(i64, i64)]) -> [bool; 70] {
        let mut bits = [false; 70];
        spans.iter().for_each(|(start, len)| (*start..start + len).for_each(|i| bits[i as usize] = true));
        bits
    }

    proptest! {
        #[test]
        fn sweeps_equal_one_bit_per_nanosecond(left in spans(), right in spans()) {
            let set = |spans: &[(i64, i64)]| -> IntervalSet {
                spans.iter().map(|(start, len)| Span::new(*start, start + len)).collect()
            };
            let (a, b, abits, bbits) = (set(&left), set(&right), bits(&left), bits(&right));
            let inside = |set: &IntervalSet, at: usize| set.spans().iter().any(|span| span.contains(at as i64));
            for at in 0..70 {
                prop_assert_eq!(inside(&a.union(&b), at), abits[at] || bbits[at]);
                prop_assert_eq!(inside(&a.intersect(&b), at), abits[at] && bbits[at]);
                prop_assert_eq!(inside(&a.subtract(&b), at), abits[at] && !bbits[at]);
                prop_assert_eq!(inside(&a.clip(Span::new(20, 40)), at), abits[at] && (20..40).contains(&at));
            }
            let mut ordered = left.clone();
            ordered.sort_unstable_by_key(|(start, _)| *start);
            let mut pushed = IntervalSet::default();
            ordered.iter().for_each(|(start, len)| pushed.push(Span::new(*start, start + len)));
            prop_assert_eq!(&pushed, &a);
            prop_assert_eq!(a.total_ns(), a.intersect(&b).total_ns() + a.subtract(&b).total_ns());
        }
    }
}
