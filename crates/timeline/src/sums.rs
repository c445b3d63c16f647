//! What lies in a stretch of time, summed up.

use crate::slice_summary::shown_name;
use crate::sum_blocks::{BLOCK, Common};
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
    /// Their self time in the window: without slices inside them.
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

impl Sum {
    /// Adds slices of which this is the longest, the first of several.
    fn add(&mut self, slices: u64, total_ns: i64, longest: (i64, SliceId)) {
        self.slices += slices;
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.self_ns += total_ns;
        let is_longer = |(best_ns, best): (i64, SliceId)| (longest.0, best) > (best_ns, longest.1);
        if self.longest.is_none_or(is_longer) {
            self.longest = Some(longest);
        }
    }
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
        let key = |track: usize, common: &Common| match by {
            SumBy::Name => common.name.index(),
            SumBy::Kind => common.kind as usize,
            SumBy::Class => common.class as usize,
            // Lanes are one track.
            SumBy::Track => track - usize::from(trace.tracks[track].lane),
        };
        let common = |slice: usize| Common {
            name: trace.slices.name[slice],
            depth: trace.slices.depth[slice],
            kind: trace.slices.kind[slice],
            class: self.classes.of_slices[slice],
        };
        let mut sums = vec![Sum::default(); len];
        for (at, track) in trace.tracks.iter().enumerate() {
            let Some(first_row) = self.first_row(at) else { continue };
            let is_shown = |depth: u16| is_asked.get(first_row + usize::from(depth)).is_some_and(|is_asked| *is_asked);
            let (from, to) = (track.slices.start as usize, track.slices.end as usize);
            let starts = &trace.slices.start_ns[from..to];
            let first = from + starts.partition_point(|start_ns| *start_ns < window.start_ns);
            let end = from + starts.partition_point(|start_ns| *start_ns < window.end_ns);
            let add = |sums: &mut [Sum], slice: usize| {
                let span = trace.slices.span(SliceId::from_index(slice));
                let inside_ns = span.intersect(window).duration_ns().max(0);
                let of_slice = common(slice);
                if is_shown(of_slice.depth) {
                    let parent = trace.slices.parent[slice].map(|parent| common(parent.index()));
                    if let Some(parent) = parent.filter(|parent| is_shown(parent.depth)) {
                        sums[key(at, &parent)].self_ns -= inside_ns;
                    }
                    sums[key(at, &of_slice)].add(1, inside_ns, (inside_ns, SliceId::from_index(slice)));
                }
            };
            let open_at = |next: usize, at_ns: i64| {
                let before = (next > from).then(|| SliceId::from_index(next - 1));
                let open = before.into_iter().flat_map(|before| trace.slices.with_ancestors(before));
                open.filter(move |id| trace.slices.span(*id).end_ns > at_ns)
            };
            // What is open where the window begins contains the last slice that began before it.
            if window.start_ns < window.end_ns {
                open_at(first, window.start_ns).for_each(|id| add(&mut sums, id.index()));
            }
            // What is open where it ends counts in part: its blocks are walked through.
            let cut: Vec<usize> = open_at(end, window.end_ns).map(|id| (id.index() - from) / BLOCK).collect();
            let mut next = first;
            while next < end {
                let number = (next - from) / BLOCK;
                let block_end = from + (number + 1) * BLOCK;
                let is_whole = next + BLOCK == block_end && block_end <= end && !cut.contains(&number);
                let Some(block) = self.sum_blocks.get(at, number).filter(|_| is_whole) else {
                    (next..block_end.min(end)).for_each(|slice| add(&mut sums, slice));
                    next = block_end;
                    continue;
                };
                for of_block in block.iter().filter(|sum| is_shown(sum.common.depth)) {
                    let sum = &mut sums[key(at, &of_block.common)];
                    // What is inside takes its time from what is around it, if both are asked for.
                    if is_shown(of_block.common.depth.saturating_add(1)) {
                        sum.self_ns -= of_block.inside_ns;
                    }
                    if let Some(longest) = of_block.longest {
                        sum.add(u64::from(of_block.slices), of_block.total_ns, longest);
                    }
                }
                next = block_end;
            }
        }
        let found = sums.iter().enumerate().filter_map(|(key, sum)| Some((key, sum, sum.longest?.1)));
        let mut found: Vec<(usize, &Sum, SliceId)> = found.collect();
        let names = found.len() as u64;
        found.sort_by_key(|(key, sum, _)| (std::cmp::Reverse((sum.self_ns, sum.total_ns)), *key));
        let row = |(key, sum, longest): (usize, &Sum, SliceId)| {
            let (kind, class) = (trace.slices.kind(longest).as_str(), self.classes.of_slices[longest.index()]);
            let name = match by {
                SumBy::Name => shown_name(trace.slice_name(longest)),
                SumBy::Kind => kind.to_string(),
                SumBy::Class => class.as_str().to_string(),
                SumBy::Track => self.track_name(key),
            };
            let Sum { slices, total_ns, self_ns, .. } = *sum;
            SumRow { name, kind, class, slices, total_ns, self_ns, longest: longest.0 }
        };
        let slices = sums.iter().map(|sum| sum.slices).sum();
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
    use crate::sum_blocks::SumBlocks;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{Process, SliceKind, TraceBuilder, Track, TrackKind};

    #[test]
    fn a_slice_counts_with_its_part_in_the_window() {
        let trace = drawn("rank 0 cpu 1 aaaaaabb\nrank 0 cpu 1 .xx.yy..\nrank 0 stream 7 CCC.NN..");
        let timeline = Timeline::of(&trace);
        let sums = timeline.sums(&trace, &[], Span::new(2_000, 7_000), SumBy::Name, 99);
        let summary: Vec<(&str, u64, i64, i64)> =
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
            assert!(summary.contains(&row), "{row:?} in {summary:?}");
        }
        assert_eq!((summary.len(), sums.slices), (6, 6));
        let by_class = timeline.sums(&trace, &[], Span::new(2_000, 7_000), SumBy::Class, 1);
        assert_eq!((by_class.rows[0].name.as_str(), by_class.rows[0].self_ns, by_class.names), ("host_op", 5_000, 3));
    }

    /// Two threads of calls in calls, in which some last over thousands of others; every seventh has no length.
    fn long_trace() -> Trace {
        let mut builder = TraceBuilder::new("sums");
        let process = builder.add_process(Process::default());
        for thread in 0..2_i64 {
            let track = builder.add_track(Track::new(TrackKind::Thread, process, "thread"));
            let mut call = |name: i64, kind, start_ns, dur_ns| {
                let name = builder.strings.intern(&format!("op{name}"));
                builder.add_slice(track, kind, name, start_ns, dur_ns);
            };
            for long in 0..5 {
                call(100 + long, SliceKind::Annotation, long * 500_000, 450_000 + thread);
                for at in 0..4_000 {
                    let start_ns = long * 500_000 + at * 100 + thread;
                    call(at % 13, SliceKind::Op, start_ns, 90);
                    call(at % 5, SliceKind::Op, start_ns + 10, 50);
                    call(at % 3, SliceKind::Runtime, start_ns + 20, if at % 7 == 0 { 0 } else { 30 });
                }
            }
        }
        builder.finish()
    }

    #[test]
    fn blocks_sum_up_what_a_walk_does() {
        let trace = long_trace();
        let timeline = Timeline::of(&trace);
        assert!(timeline.sum_blocks.get(0, 1).is_some() && timeline.sum_blocks.get(1, 2).is_some());
        let mut walking = timeline.clone();
        walking.sum_blocks = SumBlocks::none(&trace);
        let end_ns = trace.span().unwrap().end_ns;
        let places = [-5, 0, 25, 499_999, 1_030_025, 1_700_001, end_ns - 60, end_ns, end_ns + 1];
        for (at, from_ns) in places.into_iter().enumerate() {
            for to_ns in &places[at..] {
                let window = Span::new(from_ns, *to_ns);
                for rows in [&[][..], &[0, 1, 2, 4, 5], &[1], &[3, 7]] {
                    for by in [SumBy::Name, SumBy::Kind, SumBy::Track, SumBy::Class] {
                        let sums = timeline.sums(&trace, rows, window, by, 99);
                        assert_eq!(sums, walking.sums(&trace, rows, window, by, 99), "{window:?} {rows:?} {by:?}");
                    }
                }
            }
        }
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
