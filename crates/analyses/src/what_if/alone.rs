//! When a rank does work of one category, and none of another beside it.
//!
//! ```text
//! stream 7  mmmmmm..ee     m, e: categories
//! stream 9  ...eeeee..
//! alone     mmm...eeee
//! ```

use std::collections::BTreeMap;
use stepscope_base::Span;

/// The category of a piece of work.
pub(crate) type Category = &'static str;

/// Stretches in which all work is of one category, ascending and disjoint.
#[derive(Default)]
pub(super) struct Alone(Vec<(Span, Category)>);

impl Alone {
    /// Of the work on several tracks. Of work within work on one track the inner one counts.
    pub(super) fn of(tracks: impl Iterator<Item = Vec<(Span, Category)>>) -> Self {
        let mut edges: Vec<(i64, bool, Category)> = Vec::new();
        for (span, category) in tracks.flat_map(innermost) {
            edges.extend([(span.start_ns, true, category), (span.end_ns, false, category)]);
        }
        edges.sort_unstable();
        let mut running: BTreeMap<Category, usize> = BTreeMap::new();
        let mut alone: Vec<(Span, Category)> = Vec::new();
        let mut from_ns = 0;
        for (at_ns, begins, category) in edges {
            if let Some((only, _)) = running.first_key_value().filter(|_| running.len() == 1 && from_ns < at_ns) {
                match alone.last_mut() {
                    Some((last, of)) if last.end_ns == from_ns && of == only => last.end_ns = at_ns,
                    _ => alone.push((Span::new(from_ns, at_ns), only)),
                }
            }
            from_ns = at_ns;
            let count = running.entry(category).or_default();
            *count = if begins { *count + 1 } else { *count - 1 };
            if *count == 0 {
                running.remove(category);
            }
        }
        Self(alone)
    }

    /// Adds to each category how long it is alone in `span`.
    pub(super) fn add_to(&self, span: Span, sums_ns: &mut BTreeMap<Category, i64>) {
        let first = self.0.partition_point(|(alone, _)| alone.end_ns <= span.start_ns);
        for (alone, category) in self.0[first..].iter().take_while(|(alone, _)| alone.start_ns < span.end_ns) {
            *sums_ns.entry(category).or_default() += alone.end_ns.min(span.end_ns) - alone.start_ns.max(span.start_ns);
        }
    }
}

/// What runs on one track, cut so that each moment has the piece that began last.
fn innermost(mut work: Vec<(Span, Category)>) -> Vec<(Span, Category)> {
    work.sort_by_key(|(span, _)| (span.start_ns, std::cmp::Reverse(span.end_ns)));
    let mut cut = Vec::with_capacity(work.len());
    let mut open: Vec<(Span, Category)> = Vec::new();
    let mut from_ns = i64::MIN;
    let mut until = |open: &mut Vec<(Span, Category)>, at_ns: i64| {
        while let Some((span, category)) = open.last().copied() {
            let (start_ns, end_ns) = (span.start_ns.max(from_ns), span.end_ns.min(at_ns));
            if start_ns < end_ns {
                cut.push((Span::new(start_ns, end_ns), category));
                from_ns = end_ns;
            }
            if span.end_ns > at_ns {
                break;
            }
            open.pop();
        }
    };
    for piece in work {
        until(&mut open, piece.0.start_ns);
        open.push(piece);
    }
    until(&mut open, i64::MAX);
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CATEGORIES: [Category; 3] = ["a", "b", "c"];

    fn work() -> impl Strategy<Value = Vec<(Span, Category)>> {
        let piece = (0_i64..20, 1_i64..8, 0_usize..3);
        prop::collection::vec(piece.prop_map(|(at, len, of)| (Span::new(at, at + len), CATEGORIES[of])), 0..6)
    }

    /// The category of what began last of what runs at `at`: of several the one that ends first, else the last.
    fn inner(track: &[(Span, Category)], at: i64) -> Option<Category> {
        let running = track.iter().filter(|(span, _)| span.contains(at));
        running.max_by_key(|(span, _)| (span.start_ns, std::cmp::Reverse(span.end_ns))).map(|(_, of)| *of)
    }

    #[test]
    fn a_category_is_alone_where_no_other_runs() {
        let span = |start_ns, end_ns| Span::new(start_ns, end_ns);
        let tracks = [vec![(span(0, 6), "m"), (span(8, 10), "e")], vec![(span(3, 8), "e")]];
        let alone = Alone::of(tracks.into_iter());
        assert_eq!(alone.0, [(span(0, 3), "m"), (span(6, 10), "e")]);
        let mut sums_ns = BTreeMap::new();
        alone.add_to(span(2, 7), &mut sums_ns);
        assert_eq!(sums_ns, BTreeMap::from([("m", 1), ("e", 1)]));
    }

    #[test]
    fn of_work_within_work_the_inner_one_counts() {
        let span = |start_ns, end_ns| Span::new(start_ns, end_ns);
        let track = vec![(span(0, 9), "outer"), (span(2, 4), "inner"), (span(4, 6), "outer")];
        let alone = Alone::of(std::iter::once(track));
        assert_eq!(alone.0, [(span(0, 2), "outer"), (span(2, 4), "inner"), (span(4, 9), "outer")]);
    }

    proptest! {
        #[test]
        fn each_moment_is_of_the_one_category_that_runs(tracks in prop::collection::vec(work(), 1..4)) {
            let alone = Alone::of(tracks.clone().into_iter());
            for at in 0..30 {
                let mut running: Vec<Category> = tracks.iter().filter_map(|track| inner(track, at)).collect();
                running.sort_unstable();
                running.dedup();
                let mut sums_ns = BTreeMap::new();
                alone.add_to(Span::new(at, at + 1), &mut sums_ns);
                let found: Vec<Category> = sums_ns.into_keys().collect();
                // Of pieces that begin and end together on one track either may count.
                let is_clear = tracks.iter().all(|track| {
                    let mut spans: Vec<Span> = track.iter().map(|(span, _)| *span).collect();
                    spans.sort_by_key(|span| (span.start_ns, span.end_ns));
                    spans.windows(2).all(|pair| pair[0] != pair[1])
                });
                if is_clear {
                    let expected = if running.len() == 1 { running } else { Vec::new() };
                    prop_assert_eq!(found, expected, "at {}", at);
                }
            }
        }
    }
}
