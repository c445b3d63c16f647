//! Spans of time, from a start to before an end, in ns.

/// A span: start and end.
pub(crate) type Span = (i64, i64);

/// Spans that are put together one by one, and merged from time to time.
#[derive(Debug, Default)]
pub(crate) struct SpanSet {
    /// The first `merged` are in order and apart.
    spans: Vec<Span>,
    merged: usize,
}

/// Spans that are added before a merge, at least.
const ADDED: usize = 1 << 16;

impl SpanSet {
    /// Adds a span; one without a duration is none.
    pub(crate) fn add(&mut self, start_ns: i64, end_ns: i64) {
        if end_ns <= start_ns {
            return;
        }
        // Most come in order.
        if self.merged == self.spans.len()
            && let Some(last) = self.spans.last_mut()
            && start_ns >= last.0
        {
            if start_ns <= last.1 {
                last.1 = last.1.max(end_ns);
                return;
            }
            self.merged += 1;
        } else if self.spans.is_empty() {
            self.merged = 1;
        }
        self.spans.push((start_ns, end_ns));
        if self.spans.len() - self.merged > self.merged.max(ADDED) {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.spans.sort_unstable();
        let mut kept = 0;
        for at in 0..self.spans.len() {
            let (start_ns, end_ns) = self.spans[at];
            if kept > 0 && start_ns <= self.spans[kept - 1].1 {
                let last = &mut self.spans[kept - 1];
                last.1 = last.1.max(end_ns);
            } else {
                self.spans[kept] = (start_ns, end_ns);
                kept += 1;
            }
        }
        self.spans.truncate(kept);
        self.merged = kept;
    }

    /// Its spans in order, none of which touch.
    pub(crate) fn spans(&mut self) -> &[Span] {
        if self.merged < self.spans.len() {
            self.merge();
        }
        &self.spans
    }

    /// How long they are together.
    pub(crate) fn total_ns(&mut self) -> i64 {
        self.spans().iter().fold(0, |total, (start_ns, end_ns)| total.saturating_add(end_ns.saturating_sub(*start_ns)))
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.spans.capacity() * size_of::<Span>()
    }
}

impl FromIterator<Span> for SpanSet {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut set = Self::default();
        spans.into_iter().for_each(|(start_ns, end_ns)| set.add(start_ns, end_ns));
        set
    }
}

/// What lies in both of two lists of spans, each in order and apart.
pub(crate) fn intersection(one: &[Span], other: &[Span]) -> Vec<Span> {
    let (mut at, mut in_other, mut both) = (0, 0, Vec::new());
    while let (Some(a), Some(b)) = (one.get(at), other.get(in_other)) {
        let (start_ns, end_ns) = (a.0.max(b.0), a.1.min(b.1));
        if start_ns < end_ns {
            both.push((start_ns, end_ns));
        }
        if a.1 < b.1 { at += 1 } else { in_other += 1 }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the moments 0..100 are in some spans.
    fn moments(spans: &[Span]) -> Vec<bool> {
        (0..100).map(|at| spans.iter().any(|(start, end)| *start <= at && at < *end)).collect()
    }

    /// Numbers that look random.
    fn numbers(mut seed: u64) -> impl FnMut() -> i64 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from((seed >> 33) % 100).unwrap_or(0)
        }
    }

    #[test]
    fn unions_and_intersections_are_those_of_moments() {
        for seed in 0..300 {
            let mut next = numbers(seed);
            let mut some = || -> Vec<Span> { (0..next() % 12).map(|_| (next(), next())).collect() };
            let (one, other) = (some(), some());
            let [mut a, mut b]: [SpanSet; 2] = [&one, &other].map(|spans| spans.iter().copied().collect());
            for (set, spans) in [(&mut a, &one), (&mut b, &other)] {
                assert_eq!(moments(set.spans()), moments(spans));
                assert!(set.spans().windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", set.spans());
                assert_eq!(set.total_ns(), moments(spans).iter().filter(|is_in| **is_in).count() as i64);
            }
            let both: Vec<bool> = moments(&one).iter().zip(moments(&other)).map(|(one, other)| *one && other).collect();
            assert_eq!(moments(&intersection(a.spans(), b.spans())), both);
        }
    }

    #[test]
    fn many_are_merged_on_the_way() {
        let mut set = SpanSet::default();
        (0..1_000_000).rev().for_each(|at| set.add(at, at + 2));
        assert!(set.bytes() < 5_000_000, "{} bytes", set.bytes());
        assert_eq!(set.spans(), [(0, 1_000_001)]);
    }
}
