//! What lies in a stretch of time, summed up.

use crate::timeline::within_reach;
use crate::{Class, RowId, Timeline};
use serde::Serialize;
use stepscope_base::Span;
use stepscope_trace::{SliceId, Trace};

/// What is summed up together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SumBy {
    /// Slices of one name.
    Name,
    /// Slices of one kind.
    Kind,
    /// Slices of one track.
    Track,
    /// Slices of one class.
    Class,
}

impl SumBy {
    /// The choice that is written so.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "name" => Some(Self::Name),
            "kind" => Some(Self::Kind),
            "track" => Some(Self::Track),
            "class" => Some(Self::Class),
            _ => None,
        }
    }
}

/// Slices that were summed up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SumRow {
    /// What they have in common: their name, kind, track or class.
    pub name: String,
    /// The kind of the longest.
    pub kind: &'static str,
    /// The class of the longest.
    pub class: Class,
    /// How many lie in the window at least in part.
    pub slices: u64,
    /// Their time in the window.
    pub total_ns: i64,
    /// The same without slices inside them.
    pub self_ns: i64,
    /// The one with the most time in the window.
    pub longest: u32,
}

/// What lies in a window.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Sums {
    /// Those with the most time of their own first.
    pub rows: Vec<SumRow>,
    /// Slices in all.
    pub slices: u64,
    /// How many rows there would be without a limit.
    pub names: u64,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    slices: u64,
    total_ns: i64,
    self_ns: i64,
    longest: Option<(i64, SliceId)>,
}

impl Timeline {
    /// What of `rows` lies in `window`, at most `limit` rows of sums. Without any `rows`, of all.
    pub fn sums(&self, trace: &Trace, rows: &[RowId], window: Span, by: SumBy, limit: usize) -> Sums {
        let window = within_reach(window);
        let mut is_asked = vec![rows.is_empty(); self.rows.len()];
        for row in rows.iter().filter(|row| (**row as usize) < self.rows.len()) {
            is_asked[*row as usize] = true;
        }
        let len = match by {
            SumBy::Name => trace.strings.len(),
            SumBy::Kind | SumBy::Class => 1 << 8,
            SumBy::Track => trace.tracks.len(),
        };
        let key = |slice: usize| match by {
            SumBy::Name => trace.slices.name[slice].index(),
            SumBy::Kind => trace.slices.kind[slice] as usize,
            SumBy::Class => self.classes[slice] as usize,
            // Lanes are one track.
            SumBy::Track => {
                let track = trace.slices.track[slice].index();
                track - usize::from(trace.tracks[track].lane)
            }
        };
        let mut sums = vec![Sum::default(); len];
        let mut slices = 0;
        for (at, track) in trace.tracks.iter().enumerate() {
            let Some(first_row) = self.first_row(at) else { continue };
            let is_shown = |slice: usize| is_asked[first_row + usize::from(trace.slices.depth[slice])];
            let (from, to) = (track.slices.start as usize, track.slices.end as usize);
            let starts = &trace.slices.start_ns[from..to];
            let first = from + starts.partition_point(|start_ns| *start_ns < window.start_ns);
            let end = from + starts.partition_point(|start_ns| *start_ns < window.end_ns);
            let mut add = |slice: usize| {
                let span = trace.slices.span(SliceId::from_index(slice));
                let inside_ns = span.intersect(window).duration_ns().max(0);
                if is_shown(slice) {
                    if let Some(parent) = trace.slices.parent[slice].filter(|parent| is_shown(parent.index())) {
                        sums[key(parent.index())].self_ns -= inside_ns;
                    }
                    slices += 1;
                    let sum = &mut sums[key(slice)];
                    sum.slices += 1;
                    sum.total_ns = sum.total_ns.saturating_add(inside_ns);
                    sum.self_ns += inside_ns;
                    if sum.longest.is_none_or(|(longest_ns, _)| inside_ns > longest_ns) {
                        sum.longest = Some((inside_ns, SliceId::from_index(slice)));
                    }
                }
            };
            // What is open where the window begins contains the last slice that began before it.
            if first > from {
                let before = SliceId::from_index(first - 1);
                let open = trace.slices.with_ancestors(before);
                let open = open
                    .filter(|id| trace.slices.span(*id).end_ns > window.start_ns && window.start_ns < window.end_ns);
                open.for_each(|id| add(id.index()));
            }
            (first..end).for_each(add);
        }
        let found = sums.iter().enumerate().filter_map(|(key, sum)| Some((key, sum, sum.longest?.1)));
        let mut found: Vec<(usize, &Sum, SliceId)> = found.collect();
        let names = found.len() as u64;
        found.sort_by_key(|(key, sum, _)| (std::cmp::Reverse((sum.self_ns, sum.total_ns)), *key));
        let row = |(key, sum, longest): (usize, &Sum, SliceId)| {
            let (kind, class) = (trace.slices.kind(longest).as_str(), self.classes[longest.index()]);
            let name = match by {
                SumBy::Name => trace.slice_name(longest).to_string(),
                SumBy::Kind => kind.to_string(),
                SumBy::Class => class.as_str().to_string(),
                SumBy::Track => self.track_name(key),
            };
            let Sum { slices, total_ns, self_ns, .. } = *sum;
            SumRow { name, kind, class, slices, total_ns, self_ns, longest: longest.0 }
        };
        Sums { rows: found.into_iter().take(limit).map(row).collect(), slices, names }
    }

    fn first_row(&self, track: usize) -> Option<usize> {
        self.first_row[track].map(|row| row as usize)
    }

    fn track_name(&self, track: usize) -> String {
        self.first_row(track).map(|row| self.rows[row].info.name.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_slice_counts_with_its_part_in_the_window() {
        let trace = drawn("rank 0 cpu 1 aaaaaabb\nrank 0 cpu 1 .xx.yy..\nrank 0 stream 7 CCC.NN..");
        let timeline = Timeline::of(&trace);
        let sums = timeline.sums(&trace, &[], Span::new(2_000, 7_000), SumBy::Name, 99);
        let told: Vec<(&str, u64, i64, i64)> =
            sums.rows.iter().map(|row| (row.name.as_str(), row.slices, row.total_ns, row.self_ns)).collect();
        let expected = [
            ("y", 1, 2_000, 2_000),
            ("N", 1, 2_000, 2_000),
            ("a", 1, 4_000, 1_000),
            ("x", 1, 1_000, 1_000),
            ("b", 1, 1_000, 1_000),
            ("C", 1, 1_000, 1_000),
        ];
        for row in expected {
            assert!(told.contains(&row), "{row:?} in {told:?}");
        }
        assert_eq!((told.len(), sums.slices), (6, 6));
        let by_class = timeline.sums(&trace, &[], Span::new(2_000, 7_000), SumBy::Class, 1);
        assert_eq!((by_class.rows[0].name.as_str(), by_class.rows[0].self_ns, by_class.names), ("host_op", 5_000, 3));
    }

    proptest! {
        /// Self times of nested slices are the time that anything covers.
        #[test]
        fn own_times_add_up_to_what_is_covered(host in "[.aab|]{30}", inner in "[.xy|]{30}", a in 0_i64..31, b in 0_i64..31) {
            let trace = drawn(&format!("rank 0 cpu 1 {host}\nrank 0 cpu 1 {inner}"));
            let timeline = Timeline::of(&trace);
            let window = Span::new(a.min(b) * 1_000 + 300, a.max(b) * 1_000 + 300);
            let spans: Vec<Span> = trace.slices.ids().map(|id| trace.slices.span(id)).collect();
            // Lanes hold what overlaps without nesting: there the sum is by lane.
            prop_assume!(trace.tracks.iter().all(|track| track.lane == 0));
            let covered = stepscope_base::IntervalSet::from_unsorted(spans.clone()).clip(window).total_ns();
            for by in [SumBy::Name, SumBy::Kind, SumBy::Track, SumBy::Class] {
                let sums = timeline.sums(&trace, &[], window, by, 99);
                prop_assert_eq!(sums.rows.iter().map(|row| row.self_ns).sum::<i64>(), covered);
                let total: i64 = spans.iter().map(|span| span.intersect(window).duration_ns().max(0)).sum();
                prop_assert_eq!(sums.rows.iter().map(|row| row.total_ns).sum::<i64>(), total);
            }
        }
    }
}
