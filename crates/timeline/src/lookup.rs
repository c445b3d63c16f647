//! Single slices: the one at a place, its neighbours, the one that a link names.

use crate::items::Items;
use crate::samples::{named_sample, sample_of};
use crate::{RowId, Timeline};
use stepscope_trace::{SliceId, Trace};

impl Timeline {
    fn items(&self, trace: &Trace, row: RowId) -> Option<&Items> {
        self.rows.get(row as usize)?.content.items(trace)
    }

    /// The slice that a row shows at a moment; one of no duration only at its very begin.
    pub fn slice_at(&self, trace: &Trace, row: RowId, at_ns: i64) -> Option<SliceId> {
        let items = self.items(trace, row)?;
        let after = items.first_from(trace, 0, at_ns.checked_add(1)?);
        let item = items.get(trace, after.checked_sub(1)?);
        (item.end_ns() > at_ns || item.start_ns == at_ns).then_some(item.slice).flatten()
    }

    /// The slice that follows another one on a row.
    pub fn next_on_row(&self, trace: &Trace, row: RowId, slice: SliceId) -> Option<SliceId> {
        let items = self.items(trace, row)?;
        let at = place_of(trace, items, slice)?;
        (at + 1 < items.len()).then(|| items.get(trace, at + 1).slice).flatten()
    }

    /// The slice before another one on a row.
    pub fn previous_on_row(&self, trace: &Trace, row: RowId, slice: SliceId) -> Option<SliceId> {
        let items = self.items(trace, row)?;
        items.get(trace, place_of(trace, items, slice)?.checked_sub(1)?).slice
    }
}

/// Where a slice stands among items that stand for slices of the trace, or for ranges drawn elsewhere.
fn place_of(trace: &Trace, items: &Items, slice: SliceId) -> Option<usize> {
    let of_sample = || sample_of(trace, slice).map(|sample| sample.time_ns);
    let start_ns = trace.slices.start_ns.get(slice.index()).copied().or_else(of_sample)?;
    let is_it = |at: &usize| items.get(trace, *at).slice == Some(slice);
    let first = items.first_from(trace, 0, start_ns);
    let same_start = (first..items.len()).take_while(|at| items.get(trace, *at).start_ns == start_ns);
    same_start.clone().find(is_it).or_else(|| (0..items.len()).find(is_it))
}

/// The slice of a rank that begins at a moment and has a name, of several the outermost; where none begins, the sample
/// that was taken then in a line of that name, else the innermost slice of that name that is open then, as advice names a
/// pause and what the host is in. A name that ends with
/// `…`, as a link clips it, stands for all that begin so.
pub fn named_slice(trace: &Trace, rank: u32, start_ns: i64, name: &str) -> Option<SliceId> {
    let (whole, begin) = (trace.strings.find(name), name.strip_suffix('…').filter(|begin| !begin.is_empty()));
    let is_it = |id| Some(id) == whole || begin.is_some_and(|begin| trace.strings.get(id).starts_with(begin));
    let of_rank = |track: &&stepscope_trace::Track| trace.processes[track.process.index()].rank == rank;
    let places = trace.tracks.iter().filter(of_rank).map(|track| {
        let (from, to) = (track.slices.start as usize, track.slices.end as usize);
        (from, from + trace.slices.start_ns[from..to].partition_point(|start| *start < start_ns), to)
    });
    let begins = |(_, first, to): (usize, usize, usize)| {
        let mut same_start = (first..to).take_while(|at| trace.slices.start_ns[*at] == start_ns);
        same_start.find(|at| is_it(trace.slices.name[*at])).map(SliceId::from_index)
    };
    let is_open = |(from, first, _): (usize, usize, usize)| {
        let last = (first > from).then(|| SliceId::from_index(first - 1))?;
        let is_open = |slice: &SliceId| trace.slices.span(*slice).end_ns > start_ns;
        trace.slices.with_ancestors(last).filter(is_open).find(|slice| is_it(trace.slices.name[slice.index()]))
    };
    let sample = || named_sample(trace, rank, start_ns, is_it);
    places.clone().find_map(begins).or_else(sample).or_else(|| places.clone().find_map(is_open))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn neighbours_and_places() {
        let trace = drawn("rank 0 cpu 1 aab..c\nrank 0 cpu 1 .x....\nrank 1 cpu 1 ..b...");
        let timeline = Timeline::of(&trace);
        let slice = |rank, at_ns, name| named_slice(&trace, rank, at_ns, name).expect("such a slice");
        let (a, b, c) = (slice(0, 0, "a"), slice(0, 2_000, "b"), slice(0, 5_000, "c"));
        let row = timeline.row_of(&trace, a).expect("a row");
        assert_eq!(timeline.slice_at(&trace, row, 1_999), Some(a));
        assert_eq!(timeline.slice_at(&trace, row, 2_000), Some(b));
        assert_eq!(timeline.slice_at(&trace, row, 3_000), None);
        assert_eq!(timeline.slice_at(&trace, row, i64::MAX), None);
        assert_eq!(timeline.next_on_row(&trace, row, a), Some(b));
        assert_eq!(timeline.next_on_row(&trace, row, c), None);
        assert_eq!(timeline.previous_on_row(&trace, row, c), Some(b));
        assert_eq!(timeline.previous_on_row(&trace, row, a), None);
        assert_eq!(timeline.next_on_row(&trace, 9_999, a), None);
        assert_ne!(slice(1, 2_000, "b"), b);
        assert_eq!(named_slice(&trace, 0, 2_000, "a"), None);
        // Nothing of this name begins there, but one is open.
        assert_eq!(named_slice(&trace, 0, 1_500, "a"), Some(a));
        assert_eq!([named_slice(&trace, 0, 4_999, "c"), named_slice(&trace, 1, 1_500, "a")], [None, None]);
        assert_eq!(named_slice(&trace, 0, 2_000, "unknown"), None);
        let long = stepscope_trace::drawn::drawn("rank 0 cpu 1 a");
        let named = |name: &str| named_slice(&long, 0, 0, name).map(SliceId::index);
        assert_eq!([named("a…"), named("b…"), named("…"), named("a")], [Some(0), None, None, Some(0)]);
    }
}
