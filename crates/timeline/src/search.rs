//! Slices by their name, over a whole trace: which names have a text in them, how often they are there and when.

use crate::Timeline;
use crate::slice_summary::shown_name;
use serde::Serialize;
use stepscope_base::{Span, StringId};
use stepscope_trace::{SliceId, Trace};

/// Parts of the span that hits are counted in.
const PARTS: usize = 512;
/// From this number on a name's slices are counted when the index is made: 2 KiB a name, 4 bytes a slice at most.
const MANY: u32 = 1 << 9;
/// No histogram was made.
const NONE: u32 = u32::MAX;
/// Between names in the text that is searched; no name has it.
const BETWEEN: u8 = 0xff;

/// The slices of each name, ordered by time.
#[derive(Clone, Debug, Default)]
pub struct SearchIndex {
    /// Names that slices have, without regard to case, one after another.
    text: Vec<u8>,
    /// Where each begins in it.
    begins: Vec<u32>,
    names: Vec<StringId>,
    /// Where the slices of each begin, and where the last end.
    first: Vec<u32>,
    slices: Vec<SliceId>,
    total_ns: Vec<i64>,
    /// The length of a part.
    part_ns: i64,
    /// Which of the histograms each name has, if it has one.
    histogram: Vec<u32>,
    /// How many slices begin in each part, a histogram after the other.
    histograms: Vec<u32>,
}

/// What a search finds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// Slices.
    pub slices: u64,
    /// Their names, those that take the most time first.
    pub names: Vec<FoundName>,
    /// How many names there are in all.
    pub name_count: u64,
    /// How many slices begin in each of 512 equal parts of the trace.
    pub histogram: Vec<u64>,
}

/// A name that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FoundName {
    /// The name, of a long one the begin.
    pub name: String,
    /// Slices of it.
    pub slices: u64,
    /// Their time together.
    pub total_ns: i64,
}

/// From where a search goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchPlace {
    /// The first slice that begins at this moment or later.
    From(i64),
    /// The last slice that begins before this moment.
    Before(i64),
    /// The one after this one.
    AfterSlice(SliceId),
    /// The one before this one.
    BeforeSlice(SliceId),
}

/// A hit, and which of how many it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextHit {
    /// The slice; none when there is none further on.
    pub slice: Option<SliceId>,
    /// Its number among all hits by time, from 0.
    pub position: u64,
    /// Number of hits.
    pub slices: u64,
}

impl SearchIndex {
    /// The index of `trace`. Whatever it is asked later must be asked with the same trace.
    pub fn of(trace: &Trace) -> Self {
        let slices = &trace.slices;
        let mut count = vec![0_u32; trace.strings.len()];
        slices.name.iter().for_each(|name| count[name.index()] += 1);
        let mut index = Self::default();
        // Where the next slice of each name goes.
        let mut next = vec![0_u32; count.len()];
        // By name, as above.
        let mut histogram = vec![NONE; count.len()];
        let mut histograms = 0;
        for (at, count) in count.iter().enumerate().filter(|(_, count)| **count > 0) {
            let name = StringId::from_index(at);
            next[at] = index.first.last().copied().unwrap_or(0);
            if index.first.is_empty() {
                index.first.push(0);
            }
            index.first.push(next[at] + count);
            index.begins.push(index.text.len() as u32);
            index.text.extend_from_slice(trace.strings.get(name).to_lowercase().as_bytes());
            index.text.push(BETWEEN);
            index.names.push(name);
            if *count >= MANY {
                histogram[at] = histograms;
                histograms += 1;
            }
        }
        let span = trace.span().unwrap_or(Span::new(0, 0));
        index.part_ns = (span.duration_ns().max(1) as u64).div_ceil(PARTS as u64) as i64;
        index.histograms = vec![0; histograms as usize * PARTS];
        // Tracks are ordered by time already: merging them is most of it.
        let mut order: Vec<SliceId> = slices.ids().collect();
        order.sort_by_key(|id| slices.start_ns[id.index()]);
        index.slices = vec![SliceId(0); order.len()];
        let mut total_ns = vec![0_i64; count.len()];
        for id in order {
            let name = slices.name[id.index()].index();
            index.slices[next[name] as usize] = id;
            next[name] += 1;
            total_ns[name] = total_ns[name].saturating_add(slices.dur_ns[id.index()]);
            if histogram[name] != NONE {
                let part = index.part(span, slices.start_ns[id.index()]);
                index.histograms[histogram[name] as usize * PARTS + part] += 1;
            }
        }
        index.histogram = index.names.iter().map(|name| histogram[name.index()]).collect();
        index.total_ns = index.names.iter().map(|name| total_ns[name.index()]).collect();
        index
    }

    /// The names that have `query` in them, by their place in the index.
    fn matching(&self, query: &str) -> Vec<usize> {
        let query = query.to_lowercase();
        if query.is_empty() || query.as_bytes().contains(&BETWEEN) {
            return Vec::new();
        }
        let mut found: Vec<usize> = Vec::new();
        for at in memchr::memmem::find_iter(&self.text, query.as_bytes()) {
            let name = self.begins.partition_point(|begin| *begin as usize <= at) - 1;
            if found.last() != Some(&name) {
                found.push(name);
            }
        }
        found
    }

    /// The part of the span in which a moment lies.
    fn part(&self, span: Span, at_ns: i64) -> usize {
        (((at_ns - span.start_ns).max(0) / self.part_ns) as usize).min(PARTS - 1)
    }

    fn slices_of(&self, name: usize) -> &[SliceId] {
        &self.slices[self.first[name] as usize..self.first[name + 1] as usize]
    }

    /// What has `query` in its name, whatever its case; at most `limit` names. `span` is the trace's.
    pub fn find(&self, trace: &Trace, query: &str, span: Span, limit: usize) -> Found {
        let mut matching = self.matching(query);
        let mut histogram = vec![0_u64; PARTS];
        for name in &matching {
            if self.histogram[*name] == NONE {
                for slice in self.slices_of(*name) {
                    histogram[self.part(span, trace.slices.start_ns[slice.index()])] += 1;
                }
                continue;
            }
            let made = self.histogram[*name] as usize * PARTS;
            let made = &self.histograms[made..made + PARTS];
            histogram.iter_mut().zip(made).for_each(|(count, made)| *count += u64::from(*made));
        }
        let slices = matching.iter().map(|name| self.slices_of(*name).len() as u64).sum();
        let name_count = matching.len() as u64;
        matching.sort_by_key(|name| (std::cmp::Reverse(self.total_ns[*name]), *name));
        let names = matching.iter().take(limit).map(|name| FoundName {
            name: shown_name(trace.strings.get(self.names[*name])),
            slices: self.slices_of(*name).len() as u64,
            total_ns: self.total_ns[*name],
        });
        Found { slices, names: names.collect(), name_count, histogram }
    }

    /// The hit that comes next, and which of all it is.
    pub fn next(&self, trace: &Trace, query: &str, from: SearchPlace) -> NextHit {
        let key = |slice: SliceId| (trace.slices.start_ns[slice.index()], slice);
        let is_known = |slice: SliceId| slice.index() < trace.slices.len();
        // Hits before this one are on one side, the others on the other.
        let (limit, is_forward) = match from {
            SearchPlace::From(at_ns) => ((at_ns, SliceId(0)), true),
            SearchPlace::Before(at_ns) => ((at_ns, SliceId(0)), false),
            SearchPlace::AfterSlice(slice) if is_known(slice) => ((key(slice).0, SliceId(slice.0 + 1)), true),
            SearchPlace::BeforeSlice(slice) if is_known(slice) => (key(slice), false),
            SearchPlace::AfterSlice(_) => ((i64::MAX, SliceId(u32::MAX)), true),
            SearchPlace::BeforeSlice(_) => ((i64::MIN, SliceId(0)), false),
        };
        let (mut before, mut slices, mut found) = (0_u64, 0_u64, None);
        for name in self.matching(query) {
            let of_name = self.slices_of(name);
            let split = of_name.partition_point(|slice| key(*slice) < limit);
            before += split as u64;
            slices += of_name.len() as u64;
            let candidate = if is_forward { of_name.get(split) } else { split.checked_sub(1).map(|at| &of_name[at]) };
            let Some(candidate) = candidate.map(|slice| key(*slice)) else { continue };
            let is_nearer = |best: (i64, SliceId)| if is_forward { candidate < best } else { candidate > best };
            if found.is_none_or(is_nearer) {
                found = Some(candidate);
            }
        }
        let position = if is_forward { before } else { before.saturating_sub(1) };
        NextHit { slice: found.map(|(_, slice)| slice), position, slices }
    }
}

impl Timeline {
    /// What has `query` in its name, whatever its case.
    pub fn search(&self, trace: &Trace, index: &SearchIndex, query: &str, limit: usize) -> Found {
        index.find(trace, query, self.span(), limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::{Process, SliceKind, TraceBuilder, Track, TrackKind};

    const NAMES: [&str; 6] = ["aten::add", "aten::Add_", "ncclAllReduce", "Größe", "add", ""];

    fn trace_of(slices: &[(usize, usize, i64, i64)]) -> Trace {
        let mut builder = TraceBuilder::new("search");
        let process = builder.add_process(Process::default());
        let tracks = [0, 1, 2].map(|_| builder.add_track(Track::new(TrackKind::Thread, process, "thread")));
        for (track, name, start_ns, dur_ns) in slices {
            let name = builder.strings.intern(NAMES[*name]);
            builder.add_slice(tracks[*track], SliceKind::Op, name, *start_ns, *dur_ns);
        }
        builder.finish()
    }

    proptest! {
        #[test]
        fn hits_are_those_that_a_walk_finds(
            slices in prop::collection::vec((0_usize..3, 0_usize..6, 0_i64..100, 0_i64..50), 1..60),
            query in "(a|add|ADD|größ|nccl|aten::|xyz|)",
        ) {
            let trace = trace_of(&slices);
            let index = SearchIndex::of(&trace);
            let span = trace.span().expect("slices");
            let has_query = |id: &SliceId| !query.is_empty() && trace.slice_name(*id).to_lowercase().contains(&query.to_lowercase());
            let mut hits: Vec<SliceId> = trace.slices.ids().filter(has_query).collect();
            hits.sort_by_key(|id| (trace.slices.start_ns[id.index()], *id));
            let found = index.find(&trace, &query, span, 99);
            prop_assert_eq!(found.slices as usize, hits.len());
            prop_assert_eq!(found.histogram.iter().sum::<u64>(), found.slices);
            prop_assert_eq!(found.names.iter().map(|name| name.slices).sum::<u64>(), found.slices);
            let total: i64 = hits.iter().map(|id| trace.slices.dur_ns[id.index()]).sum();
            prop_assert_eq!(found.names.iter().map(|name| name.total_ns).sum::<i64>(), total);
            // Forwards through all hits, and back again.
            let mut place = SearchPlace::From(i64::MIN);
            for (position, hit) in hits.iter().enumerate() {
                let next = index.next(&trace, &query, place);
                prop_assert_eq!(next, NextHit { slice: Some(*hit), position: position as u64, slices: hits.len() as u64 });
                place = SearchPlace::AfterSlice(*hit);
            }
            prop_assert_eq!(index.next(&trace, &query, place).slice, None);
            let mut place = SearchPlace::Before(i64::MAX);
            for (position, hit) in hits.iter().enumerate().rev() {
                let next = index.next(&trace, &query, place);
                prop_assert_eq!((next.slice, next.position), (Some(*hit), position as u64));
                place = SearchPlace::BeforeSlice(*hit);
            }
            prop_assert_eq!(index.next(&trace, &query, place).slice, None);
        }
    }

    #[test]
    fn many_slices_are_counted_in_the_same_parts_as_few() {
        let many: Vec<_> = (0..2 * MANY as i64).map(|at| (0, 0, at * 7 % 5_000, 0)).collect();
        let trace = trace_of(&many);
        let span = trace.span().expect("slices");
        let found = SearchIndex::of(&trace).find(&trace, "add", span, 1);
        let part_ns = (span.duration_ns() as u64).div_ceil(PARTS as u64) as i64;
        let mut counted = vec![0_u64; PARTS];
        trace.slices.start_ns.iter().for_each(|start_ns| counted[(start_ns / part_ns) as usize] += 1);
        assert_eq!(found.histogram, counted);
    }

    #[test]
    fn an_empty_trace_has_no_hits() {
        let trace = Trace::default();
        let index = SearchIndex::of(&trace);
        assert_eq!(index.find(&trace, "a", Span::new(0, 0), 5).slices, 0);
        assert_eq!(index.next(&trace, "a", SearchPlace::From(0)), NextHit { slice: None, position: 0, slices: 0 });
    }
}
