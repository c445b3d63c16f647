//! The operators of a trace by themselves, without what lies between them: who encloses whom. One pass in slice order.

use crate::AnalysisContext;
use crate::context::Shared;
use stepscope_trace::{SliceId, SliceKind, Trace};

/// No operator.
pub(crate) const NONE: u32 = u32::MAX;

/// Operators in slice order: the rows of a track are adjacent, what encloses stands before what it encloses.
pub(crate) struct OpTree {
    /// The slice of each row.
    pub(crate) slice: Vec<SliceId>,
    /// The row of the innermost operator around each row, or [`NONE`].
    pub(crate) parent: Vec<u32>,
    /// One bit a slice, set for operators; a slice's row is the number of bits before its own.
    is_op: Vec<u64>,
    /// Rows before each word of `is_op`.
    rows_before: Vec<u32>,
}

impl Shared for OpTree {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self::of(context.trace)
    }
}

impl OpTree {
    /// The operators of `trace`.
    pub(crate) fn of(trace: &Trace) -> Self {
        let slices = &trace.slices;
        let mut is_op = vec![0_u64; slices.len().div_ceil(64)];
        for (word, kinds) in is_op.iter_mut().zip(slices.kind.chunks(64)) {
            let bits = kinds.iter().enumerate().map(|(bit, kind)| u64::from(*kind == SliceKind::Op) << bit);
            *word = bits.fold(0, |word, bit| word | bit);
        }
        let mut count = 0;
        let before = |word: &u64| {
            count += word.count_ones();
            count - word.count_ones()
        };
        let rows_before: Vec<u32> = is_op.iter().map(before).collect();
        let (slice, parent) = (Vec::with_capacity(count as usize), Vec::with_capacity(count as usize));
        let mut tree = Self { slice, parent, is_op, rows_before };
        let mut open: Vec<(u32, i64)> = Vec::new();
        for track in &trace.tracks {
            open.clear();
            for id in track.slice_ids().filter(|id| slices.kind(*id) == SliceKind::Op) {
                let span = slices.span(id);
                while open.last().is_some_and(|(_, end_ns)| *end_ns <= span.start_ns) {
                    open.pop();
                }
                let row = tree.slice.len() as u32;
                tree.slice.push(id);
                tree.parent.push(open.last().map_or(NONE, |(row, _)| *row));
                open.push((row, span.end_ns));
            }
        }
        assert!(tree.slice.is_sorted(), "tracks hold slices in order, each slice is in one");
        tree
    }

    /// Number of operators.
    pub(crate) fn len(&self) -> usize {
        self.slice.len()
    }

    /// The row of a slice that is an operator.
    pub(crate) fn row(&self, slice: Option<SliceId>) -> Option<u32> {
        let at = slice?.index();
        let (word, bit) = (self.is_op[at / 64], at % 64);
        let before = word & !(u64::MAX << bit);
        (word >> bit & 1 == 1).then(|| self.rows_before[at / 64] + before.count_ones())
    }

    /// A row and those around it, innermost first.
    pub(crate) fn with_enclosing(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(row), |row| Some(self.parent[*row as usize]).filter(|parent| *parent != NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::{Process, TraceBuilder, Track, TrackKind};

    proptest! {
        #[test]
        fn the_operator_around_is_the_nearest_ancestor_that_is_one(
            slices in prop::collection::vec((0_i64..20, 0_i64..8, any::<bool>()), 0..30)
        ) {
            let mut builder = TraceBuilder::new("tree");
            let process = builder.add_process(Process::default());
            let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
            for (start, dur, is_op) in slices {
                let kind = if is_op { SliceKind::Op } else { SliceKind::PythonFunction };
                builder.add_slice(track, kind, stepscope_base::StringTable::EMPTY, start, dur);
            }
            let trace = builder.finish();
            let tree = OpTree::of(&trace);
            for id in trace.slices.ids() {
                let Some(row) = tree.row(Some(id)) else { continue };
                let ops = trace.slices.with_ancestors(id).filter(|id| trace.slices.kind(*id) == SliceKind::Op);
                let found: Vec<SliceId> = tree.with_enclosing(row).map(|row| tree.slice[row as usize]).collect();
                prop_assert_eq!(found, ops.collect::<Vec<_>>());
            }
        }
    }
}
