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
use crate::{FindingCode, Findings, SliceId, Slices, Track, TrackId};
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
    if !own.is_sorted_by_key(key) {
        own.sort_by_cached_key(key);
    }
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

/// The lanes of a track: each slice goes to the first one where it nests.
#[derive(Debug)]
pub struct Lanes {
    /// When the open slices of each lane end, the innermost last.
    open_ends: Vec<Vec<i64>>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { open_ends: vec![Vec::new()] }
    }
}

impl Lanes {
    /// The lane of the next slice; slices come by (start, longest first).
    #[inline]
    pub fn place(&mut self, start_ns: i64, end_ns: i64) -> usize {
        let fits = |open_ends: &mut Vec<i64>| {
            while open_ends.last().is_some_and(|open_end| *open_end <= start_ns) {
                open_ends.pop();
            }
            open_ends.last().is_none_or(|open_end| end_ns <= *open_end)
        };
        let lane = self.open_ends.iter_mut().position(fits).unwrap_or_else(|| {
            self.open_ends.push(Vec::new());
            self.open_ends.len() - 1
        });
        self.open_ends[lane].push(end_ns);
        lane
    }
}

/// Rows, ordered by (start, longest first), each to its lane; at least one lane.
fn split_into_lanes(order: &[u32], rows: &[RawSlice]) -> Vec<Vec<u32>> {
    let mut open = Lanes::default();
    let mut lanes: Vec<Vec<u32>> = vec![Vec::new()];
    for at in order {
        let row = &rows[*at as usize];
        let lane = open.place(row.start_ns, row.start_ns + row.dur_ns);
        if lane == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[lane].push(*at);
    }
    lanes
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

    /// Builds one thread from (name, start, end) and prints each lane as `name@parent`.
    fn lanes(rows: &[(&str, i64, i64)]) -> (Vec<String>, Trace) {
        let mut builder = TraceBuilder::new("drawn");
        let process = builder.add_process(Process::default());
        let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        for (name, start, end) in rows {
            let name = builder.strings.intern(name);
            builder.add_slice(track, SliceKind::Op, name, *start, end - start);
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
