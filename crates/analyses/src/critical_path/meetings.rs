//! Communication of several ranks, as a path comes to it: who came last, and where that rank's own part is.

use crate::AnalysisContext;
use crate::communication::came_last;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::{Joined, Part};
use stepscope_base::Span;
use stepscope_trace::{DeviceEventClass, DeviceEventId, ProcessId, SliceId, SyncKind, Trace, TrackId};

/// What ranks do together.
pub(super) struct Meetings {
    joined: Joined,
    /// The device events that carry it out.
    kernels: FxHashMap<SliceId, DeviceEventId>,
    /// Works of threads of backends by process, ascending by end.
    works: BTreeMap<ProcessId, Vec<(i64, SliceId)>>,
    /// For each work the last on its thread that ended before it began.
    previous: FxHashMap<SliceId, SliceId>,
    /// Ranks of which it is reported what a stream waits for on another one.
    reported: BTreeSet<u32>,
}

impl Meetings {
    pub(super) fn of(context: &AnalysisContext<'_>) -> Self {
        let (trace, joined) = (context.trace, Joined::of(context.trace));
        let mut kernels = FxHashMap::default();
        for (at, event) in trace.device_events.iter().enumerate() {
            let is_joined = || !joined.of_slice(trace, event.slice).is_empty();
            if event.class == DeviceEventClass::Communication && is_joined() {
                kernels.insert(event.slice, DeviceEventId::from_index(at));
            }
        }
        let mut works: BTreeMap<ProcessId, Vec<(i64, SliceId)>> = BTreeMap::new();
        let mut of_thread: BTreeMap<TrackId, Vec<(Span, SliceId)>> = BTreeMap::new();
        for part in joined.parts().iter().filter(|part| !kernels.contains_key(&part.carried_by)) {
            let (track, span) = (trace.slices.track[part.carried_by.index()], trace.slices.span(part.carried_by));
            works.entry(part.process).or_default().push((span.end_ns, part.carried_by));
            of_thread.entry(track).or_default().push((span, part.carried_by));
        }
        works.values_mut().for_each(|works| works.sort_unstable());
        let waits = trace.synchronizations.iter().filter(|row| row.kind == SyncKind::StreamWaitEvent);
        let waits = waits.filter(|row| row.call.is_some() && row.event_record.is_some());
        let reported = waits.map(|row| trace.devices[row.device.index()].rank).collect();
        Self { kernels, works, previous: previous(of_thread), reported, joined }
    }

    /// The device event that `slice` is, if it carries out what ranks do together.
    pub(super) fn kernel(&self, slice: SliceId) -> Option<DeviceEventId> {
        self.kernels.get(&slice).copied()
    }

    /// Whether waits between streams of a rank are reported.
    pub(super) fn has_waits(&self, rank: u32) -> bool {
        self.reported.contains(&rank)
    }

    /// Of what ranks do together, the part that `slice` carries out; that of the rank that it waited for last; and when
    /// that one came, on the clock of the former.
    pub(super) fn of_slice(&self, trace: &Trace, slice: SliceId) -> Option<(&Part, &Part, i64)> {
        let parts = self.joined.of_slice(trace, slice);
        let rank = trace.rank_of_track(trace.slices.track[slice.index()]);
        let own = parts.iter().find(|part| part.rank == rank)?;
        let (last, came_ns) = came_last(parts, own);
        Some((own, last, came_ns))
    }

    /// The last work of a process that ended up to a moment.
    pub(super) fn last_work(&self, process: ProcessId, at_ns: i64) -> Option<(i64, SliceId)> {
        let works = self.works.get(&process)?;
        works[..works.partition_point(|(end_ns, _)| *end_ns <= at_ns)].last().copied()
    }

    /// The work before `work` on its thread.
    pub(super) fn previous(&self, work: SliceId) -> Option<SliceId> {
        self.previous.get(&work).copied()
    }
}

fn previous(of_thread: BTreeMap<TrackId, Vec<(Span, SliceId)>>) -> FxHashMap<SliceId, SliceId> {
    let mut previous = FxHashMap::default();
    for mut works in of_thread.into_values() {
        works.sort_unstable();
        let mut ends: Vec<(i64, SliceId)> = works.iter().map(|(span, work)| (span.end_ns, *work)).collect();
        ends.sort_unstable();
        for (span, work) in works {
            let ended = ends.partition_point(|(end_ns, _)| *end_ns <= span.start_ns);
            previous.extend(ended.checked_sub(1).map(|last| (work, ends[last].1)));
        }
    }
    previous
}
