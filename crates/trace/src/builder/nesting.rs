//! Parents, depths and overflow lanes.
//!
//! ```text
//! rows of one track     lane 0   ████████████······██
//!   A ████████████               ··███···············
//!   B ··███             lane 1   ········█████████···   C overlaps A without nesting
//!   C ········█████████
//!   D ··················██
//! ```

use super::RawSlice;
use crate::{FindingCode, Findings, SliceId, SliceKind, Slices, Track, TrackId};
use std::cmp::Reverse;

/// The finished tables, and where each provisional id went.
pub(super) struct Nested {
    pub(super) tracks: Vec<Track>,
    pub(super) slices: Slices,
    pub(super) slice_of: Vec<SliceId>,
    pub(super) track_of: Vec<TrackId>,
}

/// Groups rows by track and start, gives each its lane, parent and depth.
pub(super) fn nest(tracks: &[Track], rows: &[RawSlice], findings: &mut Findings) -> Nested {
    let mut nested = Nested {
        tracks: Vec::with_capacity(tracks.len()),
        slices: Slices::with_capacity(rows.len()),
        slice_of: vec![SliceId(0); rows.len()],
        track_of: Vec::with_capacity(tracks.len()),
    };
    let (mut order, limits) = by_track(tracks.len(), rows);
    for (track, limits) in tracks.iter().zip(limits.windows(2)) {
        let own = &mut order[limits[0]..limits[1]];
        sort_by_start(own, rows);
        nested.track_of.push(TrackId::from_index(nested.tracks.len()));
        if push_lane(&mut nested, track, 0, own, rows) {
            continue;
        }
        let lanes = split_into_lanes(own, rows);
        for at in lanes.iter().skip(1).flatten() {
            findings.add(FindingCode::OverlappingSlices, || {
                format!("on {} at {} ns", track.name, rows[*at as usize].start_ns)
            });
        }
        for (lane, members) in lanes.into_iter().enumerate() {
            let is_nested = push_lane(&mut nested, track, lane, &members, rows);
            assert!(is_nested, "members of a lane nest");
        }
    }
    nested
}

/// The rows of one track after those of another, in the order they were added, and where each track's begin.
fn by_track(tracks: usize, rows: &[RawSlice]) -> (Vec<u32>, Vec<usize>) {
    let mut limits = vec![0; tracks + 1];
    rows.iter().for_each(|row| limits[row.track.index() + 1] += 1);
    (0..tracks).for_each(|track| limits[track + 1] += limits[track]);
    let mut next = limits.clone();
    let mut order = vec![0; rows.len()];
    for (at, row) in rows.iter().enumerate() {
        let place = &mut next[row.track.index()];
        order[*place] = at as u32;
        *place += 1;
    }
    (order, limits)
}

/// Sorts rows of one track by (start, longest first, order of adding).
fn sort_by_start(own: &mut [u32], rows: &[RawSlice]) {
    let key = |at: &u32| {
        let row = &rows[*at as usize];
        (row.start_ns, Reverse(row.dur_ns), *at)
    };
    if own.is_sorted_by_key(key) {
        return;
    }
    // Sources write one sorted run behind another, which a stable sort merges.
    let mut starts: Vec<(i64, u32)> = own.iter().map(|at| (rows[*at as usize].start_ns, *at)).collect();
    starts.sort_by_key(|(start_ns, _)| *start_ns);
    for same in starts.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        same.sort_unstable_by_key(|(_, at)| (Reverse(rows[*at as usize].dur_ns), *at));
    }
    own.iter_mut().zip(starts).for_each(|(place, (_, at))| *place = at);
}

/// Places of rows, in the order of the slices they became; none when no row has one.
pub(super) fn in_new_order(places: &[u64], slice_of: &[SliceId]) -> Vec<u64> {
    if places.is_empty() {
        return Vec::new();
    }
    let mut ordered = vec![u64::MAX; slice_of.len()];
    places.iter().zip(slice_of).for_each(|(place, slice)| ordered[slice.index()] = *place);
    ordered
}

/// Rows, ordered by (start, longest first), each to the first lane where it nests; at least one lane. Operators go first
/// and calls of Python last: an operator is within the operators around it, whatever label or function it overlaps.
fn split_into_lanes(order: &[u32], rows: &[RawSlice]) -> Vec<Vec<u32>> {
    let mut lanes = vec![Lane::default()];
    for rank in 0..=rank(SliceKind::PythonFunction) {
        for at in order.iter().filter(|at| self::rank(rows[**at as usize].kind) == rank) {
            let row = &rows[*at as usize];
            let fits = |lane: &mut Lane| lane.fits(row.start_ns, row.start_ns + row.dur_ns);
            let lane = lanes.iter_mut().position(fits).unwrap_or_else(|| {
                lanes.push(Lane::default());
                lanes.len() - 1
            });
            lanes[lane].new.push(*at);
            lanes[lane].open_ends.push(row.start_ns + row.dur_ns);
        }
        lanes.iter_mut().for_each(|lane| lane.take_new(rows));
    }
    lanes.into_iter().map(|lane| lane.members).collect()
}

fn rank(kind: SliceKind) -> u8 {
    match kind {
        SliceKind::Op => 0,
        SliceKind::PythonFunction | SliceKind::Module => 2,
        _ => 1,
    }
}

/// A lane to which the rows of one rank after another are added.
#[derive(Default)]
struct Lane {
    /// Those of the ranks before, by (start, longest first).
    members: Vec<u32>,
    nodes: Vec<Node>,
    /// Those of this rank, and the ends of the open ones, the innermost last.
    new: Vec<u32>,
    open_ends: Vec<i64>,
}

/// A member among those around it: `jump` leads far outwards, so that any of them is found in few steps.
#[derive(Clone, Copy)]
struct Node {
    start_ns: i64,
    end_ns: i64,
    depth: u32,
    parent: u32,
    jump: u32,
}

const NO_NODE: u32 = u32::MAX;

impl Lane {
    /// Whether what is next by (start, longest first) of its rank nests with everything here.
    fn fits(&mut self, start_ns: i64, end_ns: i64) -> bool {
        while self.open_ends.last().is_some_and(|open_end| *open_end <= start_ns) {
            self.open_ends.pop();
        }
        self.open_ends.last().is_none_or(|open_end| end_ns <= *open_end)
            && self.innermost_across(start_ns).is_none_or(|node| end_ns <= node.end_ns)
            && self.innermost_across(end_ns).is_none_or(|node| node.start_ns <= start_ns)
    }

    /// The innermost member that begins before a moment and ends after it.
    fn innermost_across(&self, at_ns: i64) -> Option<Node> {
        let mut node = self.node(self.nodes.partition_point(|node| node.start_ns < at_ns).checked_sub(1)? as u32)?;
        while node.end_ns <= at_ns {
            let far = self.node(node.jump).filter(|far| far.end_ns <= at_ns);
            node = far.or_else(|| self.node(node.parent))?;
        }
        Some(node)
    }

    fn node(&self, at: u32) -> Option<Node> {
        self.nodes.get(at as usize).copied()
    }

    fn take_new(&mut self, rows: &[RawSlice]) {
        if self.new.is_empty() {
            return;
        }
        self.open_ends.clear();
        self.members.append(&mut self.new);
        sort_by_start(&mut self.members, rows);
        self.nodes.clear();
        let mut parent = NO_NODE;
        for at in &self.members {
            let row = &rows[*at as usize];
            let around = |of: u32| self.nodes.get(of as usize).copied();
            while let Some(ended) = around(parent).filter(|node| node.end_ns <= row.start_ns) {
                parent = ended.parent;
            }
            let depth_of = |of: u32| around(of).map_or(0, |node| node.depth);
            let jump_of = |of: u32| around(of).map_or(NO_NODE, |node| node.jump);
            let (once, twice) = (jump_of(parent), jump_of(jump_of(parent)));
            let is_as_far = depth_of(parent) - depth_of(once) == depth_of(once) - depth_of(twice);
            let node = Node {
                start_ns: row.start_ns,
                end_ns: row.start_ns + row.dur_ns,
                depth: depth_of(parent) + 1,
                parent,
                jump: if is_as_far { twice } else { parent },
            };
            parent = self.nodes.len() as u32;
            self.nodes.push(node);
        }
    }
}

/// Adds a lane of `members`, ordered by (start, longest first). False, and nothing is added, when they do not nest.
fn push_lane(nested: &mut Nested, track: &Track, lane: usize, members: &[u32], rows: &[RawSlice]) -> bool {
    let track_id = TrackId::from_index(nested.tracks.len());
    let first = nested.slices.len();
    let mut open: Vec<(SliceId, i64)> = Vec::new();
    for at in members {
        let row = &rows[*at as usize];
        let end_ns = row.start_ns + row.dur_ns;
        let id = SliceId::from_index(nested.slices.len());
        while open.last().is_some_and(|(_, open_end_ns)| *open_end_ns <= row.start_ns) {
            open.pop();
        }
        if open.last().is_some_and(|(_, open_end_ns)| *open_end_ns < end_ns) {
            nested.slices.truncate(first);
            return false;
        }
        nested.slice_of[*at as usize] = id;
        let slices = &mut nested.slices;
        slices.track.push(track_id);
        slices.start_ns.push(row.start_ns);
        slices.dur_ns.push(row.dur_ns);
        slices.name.push(row.name);
        slices.kind.push(row.kind);
        slices.parent.push(open.last().map(|(parent, _)| *parent));
        slices.depth.push(open.len().min(u16::MAX as usize) as u16);
        slices.is_unfinished.push(row.is_unfinished);
        open.push((id, end_ns));
    }
    let lane = lane.min(u16::MAX as usize) as u16;
    nested.tracks.push(Track { lane, slices: first as u32..nested.slices.len() as u32, ..track.clone() });
    true
}

#[cfg(test)]
mod tests {
    use crate::{FindingCode, Process, SliceKind, Trace, TraceBuilder, Track, TrackKind};
    use proptest::prelude::*;

    /// Builds one thread from (name, start, end) and prints each lane as `name@parent`. What begins with an `f` is a
    /// function, with an `l` a label, all else an operator.
    fn lanes(rows: &[(&str, i64, i64)]) -> (Vec<String>, Trace) {
        let mut builder = TraceBuilder::new("drawn");
        let process = builder.add_process(Process::default());
        let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        for (text, start, end) in rows {
            let name = builder.strings.intern(text);
            let kind = match text.as_bytes()[0] {
                b'f' => SliceKind::PythonFunction,
                b'l' => SliceKind::Annotation,
                _ => SliceKind::Op,
            };
            builder.add_slice(track, kind, name, *start, end - start);
        }
        let trace = builder.finish();
        let print = |track: &Track| {
            let slice = |id| match trace.slices.parent(id) {
                Some(parent) => format!("{}@{}", trace.slice_name(id), trace.slice_name(parent)),
                None => trace.slice_name(id).to_string(),
            };
            track.slice_ids().map(slice).collect::<Vec<_>>().join(" ")
        };
        (trace.tracks.iter().map(print).collect(), trace.clone())
    }

    #[test]
    fn what_overlaps_goes_to_a_lane_of_its_own() {
        let (lanes, trace) = lanes(&[("D", 18, 20), ("A", 0, 12), ("C", 8, 17), ("B", 2, 5)]);
        assert_eq!(lanes, ["A B@A D", "C"]);
        assert_eq!(trace.findings.count(FindingCode::OverlappingSlices), 1);
        assert_eq!(trace.tracks[1].lane, 1);
    }

    #[test]
    fn an_operator_stays_within_its_parent_whatever_function_or_label_it_overlaps() {
        for overlapping in ["f", "l"] {
            let rows = [("P", 0, 1000), (overlapping, 10, 500), ("A", 50, 60), ("C", 400, 600), ("D", 420, 430)];
            let (lanes, trace) = lanes(&rows);
            assert_eq!(lanes, ["P A@P C@P D@C", overlapping]);
            assert_eq!(trace.findings.count(FindingCode::OverlappingSlices), 1);
        }
        assert_eq!(lanes(&[("f", 0, 50), ("C", 40, 60), ("A", 70, 80)]).0, ["C A", "f"], "it ends within");
        assert_eq!(lanes(&[("C", 40, 60), ("f", 50, 90), ("A", 70, 80)]).0, ["C A", "f"], "it begins within");
        assert_eq!(lanes(&[("f", 0, 50), ("l", 40, 90), ("A", 70, 80)]).0, ["l A@l", "f"], "labels are around more");
    }

    /// A row of a random thread: 0 an operator, 1 a label, 2 a function; start and duration.
    fn rows() -> impl Strategy<Value = Vec<(u8, i64, i64)>> {
        prop::collection::vec((0_u8..3, 0_i64..40, 0_i64..20), 0..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn each_slice_is_in_the_first_lane_where_it_nests_with_those_that_go_before(rows in rows()) {
            let mut builder = TraceBuilder::new("drawn");
            let process = builder.add_process(Process::default());
            let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
            let kinds = [SliceKind::Op, SliceKind::Annotation, SliceKind::PythonFunction];
            for (at, (rank, start, dur)) in rows.iter().enumerate() {
                let name = builder.strings.intern(&at.to_string());
                builder.add_slice(track, kinds[usize::from(*rank)], name, *start, *dur);
            }
            // What a row overlaps, looked for among all: the slow way.
            let mut order: Vec<usize> = (0..rows.len()).collect();
            order.sort_by_key(|at| (rows[*at].0, rows[*at].1, -rows[*at].2, *at));
            let mut expected: Vec<Vec<usize>> = vec![];
            for at in order {
                let (_, start, dur) = rows[at];
                let overlaps = |other: &usize| {
                    let (_, begin, len) = rows[*other];
                    let crosses = |a: (i64, i64), b: (i64, i64)| a.0 < b.0 && b.0 < a.1 && a.1 < b.1;
                    crosses((start, start + dur), (begin, begin + len)) || crosses((begin, begin + len), (start, start + dur))
                };
                match expected.iter_mut().find(|lane| !lane.iter().any(overlaps)) {
                    Some(lane) => lane.push(at),
                    None => expected.push(vec![at]),
                }
            }
            expected.iter_mut().for_each(|lane| lane.sort_by_key(|at| (rows[*at].1, -rows[*at].2, *at)));
            let trace = builder.finish();
            let of_lane = |track: &Track| track.slice_ids().map(|id| trace.slice_name(id).parse().unwrap()).collect();
            let lanes: Vec<Vec<usize>> = trace.tracks.iter().map(of_lane).collect();
            prop_assert_eq!(&lanes, &if rows.is_empty() { vec![vec![]] } else { expected });
            for id in trace.slices.ids() {
                let span = trace.slices.span(id);
                let around = trace.slices.parent(id).map(|parent| trace.slices.span(parent));
                prop_assert!(around.is_none_or(|around| around.start_ns <= span.start_ns && span.end_ns <= around.end_ns));
            }
        }
    }

    #[test]
    fn slices_that_touch_are_siblings_and_empty_ones_nest() {
        assert_eq!(lanes(&[("A", 0, 5), ("B", 5, 9), ("z", 5, 5)]).0, ["A B z@B"]);
    }

    #[test]
    fn of_two_equal_slices_the_one_added_first_is_outside() {
        assert_eq!(lanes(&[("outer", 3, 7), ("inner", 3, 7)]).0, ["outer inner@outer"]);
    }

    #[test]
    fn time_starts_at_the_earliest_event() {
        let (_, trace) = lanes(&[("A", 1_000, 1_005), ("B", 1_007, 1_009)]);
        assert_eq!(trace.slices.start_ns, [0, 7]);
    }
}
