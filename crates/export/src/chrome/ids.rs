//! Numbers that join an operator with what happened inside it: `External id`.

use std::cmp::Reverse;
use stepscope_trace::{SliceId, SliceKind, Trace, Track};

/// The numbers of a profile's operators, labels and steps, the same as its list of events has: by thread, then by start and
/// the longest first.
pub(super) struct Ids {
    /// By slice, where there are slices; 0 for what has none.
    of_slices: Vec<i64>,
    next: i64,
}

impl Ids {
    /// Numbers from `first` on.
    pub(super) fn new(first: i64) -> Self {
        Self { of_slices: Vec::new(), next: first }
    }

    /// Numbers the slices of `trace`.
    pub(super) fn give_to(&mut self, trace: &Trace) {
        self.of_slices = vec![0; trace.slices.len()];
        let mut rows = Vec::new();
        for lanes in trace.tracks.chunk_by(|_, next| next.lane > 0) {
            rows.extend(lanes.iter().flat_map(Track::slice_ids).filter(|id| is_range(trace.slices.kind(*id))));
            if lanes.len() > 1 {
                rows.sort_by_key(|id| (trace.slices.start_ns[id.index()], Reverse(trace.slices.dur_ns[id.index()])));
            }
            rows.drain(..).for_each(|row| self.of_slices[row.index()] = self.take());
        }
    }

    /// The number of an operator, a label or a step.
    pub(super) fn of_slice(&self, slice: SliceId) -> i64 {
        self.of_slices[slice.index()]
    }

    /// The number of the slice that is written next, where slices come in the order of their numbers.
    #[inline]
    pub(super) fn take(&mut self) -> i64 {
        self.next += 1;
        self.next - 1
    }

    /// The first number that no slice has.
    pub(super) fn next(&self) -> i64 {
        self.next
    }
}

/// What is listed with a number of its own.
pub(super) fn is_range(kind: SliceKind) -> bool {
    use SliceKind::{Annotation, DataLoader, Op, Optimizer, Step};
    matches!(kind, Op | Annotation | Step | DataLoader | Optimizer)
}
