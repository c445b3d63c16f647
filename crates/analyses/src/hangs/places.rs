//! What the threads of ranks did last.

use crate::AnalysisContext;
use crate::host_threads::{MainThreads, first_lane};
use std::collections::BTreeMap;
use stepscope_align::{Call, Calls};
use stepscope_base::StringTable;
use stepscope_trace::{ProcessId, SliceId, SliceKind, Trace, TrackId};

/// What the threads of ranks did last.
pub(super) struct Places {
    pub(super) of_rank: BTreeMap<u32, SliceId>,
}

impl Places {
    pub(super) fn of(context: &AnalysisContext<'_>) -> Self {
        let trace = context.trace;
        let mut last_call: BTreeMap<u32, SliceId> = BTreeMap::new();
        let start_ns = |slice: SliceId| (trace.slices.start_ns[slice.index()], slice);
        let calls = context.get::<Calls>().calls.iter().filter(|call| Self::is_of_caller(trace, call));
        for slice in calls.map(|call| call.slice) {
            let rank = trace.rank_of_track(trace.slices.track[slice.index()]);
            let last = last_call.entry(rank).or_insert(slice);
            *last = if start_ns(slice) > start_ns(*last) { slice } else { *last };
        }
        let mains = context.get::<MainThreads>();
        let main_of = |rank: u32| {
            let of_rank = |process: &&ProcessId| trace.processes[process.index()].rank == rank;
            let is_helper = |process: &&ProcessId| trace.processes[process.index()].parent_pid.is_some();
            let main = mains.0.keys().filter(of_rank).min_by_key(|process| (is_helper(process), **process));
            main.map(|process| mains.0[process])
        };
        let thread_of = |rank: u32| match last_call.get(&rank) {
            Some(slice) => Some(first_lane(trace, trace.slices.track[slice.index()])),
            None => main_of(rank),
        };
        let last = |rank: u32| Some((rank, last_of_thread(trace, thread_of(rank)?)?));
        Self { of_rank: trace.ranks().into_iter().filter_map(last).collect() }
    }

    /// Whether a call lies on the thread that called it, which is not known of works alone.
    fn is_of_caller(trace: &Trace, call: &Call) -> bool {
        call.is_asked() || trace.ops.get(call.slice).is_some()
    }
}

/// The innermost slice of a thread that has no end, or else the one that began last.
fn last_of_thread(trace: &Trace, thread: TrackId) -> Option<SliceId> {
    let slices = trace.lanes(thread).flat_map(|lane| trace.tracks[lane.index()].slice_ids());
    let slices = slices.filter(|slice| trace.slices.kind(*slice) != SliceKind::Overhead);
    slices.max_by_key(|slice| {
        let at = slice.index();
        (trace.slices.is_unfinished[at], trace.slices.start_ns[at], trace.slices.depth[at], *slice)
    })
}

/// The call stack of a slice, or the names of those around it.
pub(super) fn stack(trace: &Trace, slice: SliceId) -> Option<String> {
    let own = trace.ops.get(slice).map_or(StringTable::EMPTY, |info| info.stack);
    if own != StringTable::EMPTY {
        return Some(trace.strings.get(own).to_string());
    }
    let around: Vec<&str> = trace.slices.with_ancestors(slice).skip(1).map(|outer| trace.slice_name(outer)).collect();
    (!around.is_empty()).then(|| around.join(";"))
}
