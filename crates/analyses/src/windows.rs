//! The part of each track that a selection asks for: found once a rank, then asked once a slice.

use crate::Selection;
use crate::op_tree::OpTree;
use std::collections::BTreeMap;
use stepscope_base::Span;
use stepscope_trace::{ProcessId, SliceId, Trace, Track};

/// What is asked for, by rank.
pub(crate) struct Windows {
    /// The host windows of each rank asked for; `None` for all of it.
    by_rank: BTreeMap<u32, Option<Vec<Span>>>,
}

impl Windows {
    /// What `selection` asks for.
    pub(crate) fn of(trace: &Trace, selection: &Selection) -> Self {
        let ranks = trace.ranks().into_iter().filter(|rank| selection.has_rank(*rank));
        Self { by_rank: ranks.map(|rank| (rank, selection.windows(trace, rank))).collect() }
    }

    /// The windows of a track: `None` when nothing of it is asked for.
    pub(crate) fn track(&self, trace: &Trace, track: &Track) -> Option<TrackWindows<'_>> {
        let windows = self.by_rank.get(&trace.processes[track.process.index()].rank)?;
        Some(TrackWindows(windows.as_deref()))
    }

    /// Whether a slice is asked for: whether it begins in a window of its track.
    pub(crate) fn has_slice(&self, trace: &Trace, slice: SliceId) -> bool {
        let track = &trace.tracks[trace.slices.track[slice.index()].index()];
        self.track(trace, track).is_some_and(|windows| windows.contains(trace.slices.start_ns[slice.index()]))
    }

    /// For each operator whether it is asked for.
    pub(crate) fn ops(&self, trace: &Trace, tree: &OpTree) -> Vec<bool> {
        let mut is_asked = vec![false; tree.len()];
        for track in &trace.tracks {
            let Some(windows) = self.track(trace, track) else { continue };
            let first = tree.slice.partition_point(|slice| slice.0 < track.slices.start);
            let end = tree.slice.partition_point(|slice| slice.0 < track.slices.end);
            for (is_asked, slice) in is_asked[first..end].iter_mut().zip(&tree.slice[first..end]) {
                *is_asked = windows.contains(trace.slices.start_ns[slice.index()]);
            }
        }
        is_asked
    }
}

/// What is asked for of one track.
#[derive(Clone, Copy)]
pub(crate) struct TrackWindows<'a>(Option<&'a [Span]>);

impl TrackWindows<'_> {
    /// True when what starts at `at_ns` is asked for.
    pub(crate) fn contains(&self, at_ns: i64) -> bool {
        self.0.is_none_or(|windows| contains(windows, at_ns))
    }
}

/// The steps of each process by start, each with its place among those of the trace.
pub(crate) fn steps_of_processes(trace: &Trace) -> BTreeMap<ProcessId, Vec<(Span, usize)>> {
    let mut of_processes: BTreeMap<ProcessId, Vec<(Span, usize)>> = BTreeMap::new();
    for (at, step) in trace.steps.iter().enumerate() {
        of_processes.entry(step.process).or_default().push((step.span, at));
    }
    of_processes.values_mut().for_each(|steps| steps.sort_unstable_by_key(|(span, _)| span.start_ns));
    of_processes
}

/// Whether one of `windows`, by start and none over another, has a moment.
pub(crate) fn contains(windows: &[Span], at_ns: i64) -> bool {
    let behind = windows.partition_point(|span| span.start_ns <= at_ns);
    behind > 0 && windows[behind - 1].contains(at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_selection_asks_the_same_of_tracks_as_of_slices() {
        let trace = drawn("rank 0 step 000111\nrank 0 cpu 1 a.bb.c\nrank 1 step 001122\nrank 1 cpu 1 aabb.c");
        let tree = OpTree::of(&trace);
        for (rank, step) in [(None, None), (Some(1), None), (None, Some(1)), (Some(0), Some(0)), (Some(0), Some(2))] {
            let selection = Selection { ranks: rank.into(), step, ..Selection::default() };
            let is_asked = Windows::of(&trace, &selection).ops(&trace, &tree);
            let found = tree.slice.iter().zip(is_asked).filter(|(_, is_asked)| *is_asked).map(|(slice, _)| *slice);
            let slices = selection.slices(&trace).filter(|id| tree.row(Some(*id)).is_some());
            assert_eq!(found.collect::<Vec<_>>(), slices.collect::<Vec<_>>());
        }
    }
}
