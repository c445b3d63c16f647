//! Numbers that join an operator with what happened inside it: `External id`.

use std::cmp::Reverse;
use stepscope_trace::{SliceId, SliceKind, Trace, Track};

/// What the recorder calls a collection of Python's garbage.
const COLLECTION: &str = "Python GC";

/// The numbers of a profile's operators, labels and steps, the same as its list of events has: by thread, then by start
/// and the longest first. Calls of Python have numbers of their own, from 1 on.
pub(super) struct Ids {
    /// By slice, where there are slices; 0 for what has none.
    of_slices: Vec<i64>,
    next: i64,
    next_call: i64,
}

impl Ids {
    /// Numbers from `first` on.
    pub(super) fn new(first: i64) -> Self {
        Self { of_slices: Vec::new(), next: first, next_call: 1 }
    }

    /// Numbers the slices of `trace`.
    pub(super) fn give_to(&mut self, trace: &Trace) {
        self.of_slices = vec![0; trace.slices.len()];
        let mut rows = Vec::new();
        for lanes in trace.tracks.chunk_by(|_, next| next.lane > 0) {
            let is_call = |id: SliceId| is_call(trace.slices.kind(id), trace.slice_name(id));
            let is_numbered = |id: &SliceId| is_range(trace.slices.kind(*id)) || is_call(*id);
            rows.extend(lanes.iter().flat_map(Track::slice_ids).filter(is_numbered));
            if lanes.len() > 1 {
                rows.sort_by_key(|id| (trace.slices.start_ns[id.index()], Reverse(trace.slices.dur_ns[id.index()])));
            }
            for row in rows.drain(..) {
                self.of_slices[row.index()] = if is_call(row) { self.take_call() } else { self.take() };
            }
        }
    }

    /// The number of an operator, a label, a step or a call of Python.
    pub(super) fn of_slice(&self, slice: SliceId) -> i64 {
        self.of_slices[slice.index()]
    }

    /// The number of the slice that is written next, where slices come in the order of their numbers.
    #[inline]
    pub(super) fn take(&mut self) -> i64 {
        self.next += 1;
        self.next - 1
    }

    /// The number of the call of Python that is written next.
    pub(super) fn take_call(&mut self) -> i64 {
        self.next_call += 1;
        self.next_call - 1
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

/// What is a call of Python. Collections of its garbage stand among calls, but nobody called them: they have no number.
#[inline]
pub(super) fn is_call(kind: SliceKind, name: &str) -> bool {
    matches!(kind, SliceKind::PythonFunction | SliceKind::Module) && name != COLLECTION
}
