//! What a path can go on with, found by time: work on streams, work of threads, what a call waited for.

use super::meetings::Meetings;
use crate::host_threads::{Doing, MainThreads, Thread, Threads, first_lane};
use crate::stream_waits::{Stream, StreamWaits};
use crate::{AnalysisContext, Ranks};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::Part;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{
    DeviceEventId, FlowKind, ProcessId, SliceId, SliceKind, SliceRole, Step, SyncKind, Synchronization, Trace, TrackId,
};

/// A thread that a path can be on.
pub(super) struct PathThread<'a> {
    pub(super) track: TrackId,
    pub(super) process: ProcessId,
    pub(super) doings: &'a Thread,
    /// When it is in an operator, a call, or a wait for data.
    pub(super) work: IntervalSet,
    /// Calls that wait for the device, outermost ones, by start. Across ranks also operators that wait for a collective.
    pub(super) syncs: Vec<(Span, SliceId)>,
}

/// Ranks, put together in one pass over the trace.
pub(super) struct Graph<'a> {
    pub(super) trace: &'a Trace,
    pub(super) threads: Vec<PathThread<'a>>,
    threads_of: BTreeMap<ProcessId, Vec<usize>>,
    thread_of: FxHashMap<TrackId, usize>,
    main: &'a BTreeMap<ProcessId, TrackId>,
    step_track: BTreeMap<(ProcessId, Span), TrackId>,
    waits: &'a StreamWaits,
    /// For each device event with a duration the last on its stream that ended before it began, by its id.
    previous: Vec<Option<DeviceEventId>>,
    /// Ends of device events with a duration, by rank.
    ends: BTreeMap<u32, Ends>,
    /// Device events by the start of their launch, each with the latest end up to there.
    launched: BTreeMap<ProcessId, Vec<(i64, DeviceEventId)>>,
    reported: FxHashMap<SliceId, Synchronization>,
    /// What ranks do together, when paths go from one to another.
    meetings: Option<Meetings>,
}

/// Ends of the device events of a rank, ascending: of each stream, and of all.
#[derive(Default)]
struct Ends {
    of_stream: FxHashMap<Stream, Vec<(i64, DeviceEventId)>>,
    all: Vec<(i64, DeviceEventId)>,
}

impl<'a> Graph<'a> {
    /// Of paths that each stay on one of these ranks.
    pub(super) fn of(context: &'a AnalysisContext<'_>, ranks: &Ranks) -> Self {
        Self::with(context, ranks, None)
    }

    /// Of paths that may go from any rank to any other.
    pub(super) fn across(context: &'a AnalysisContext<'_>) -> Self {
        Self::with(context, &Ranks::default(), Some(Meetings::of(context)))
    }

    fn with(context: &'a AnalysisContext<'_>, ranks: &Ranks, meetings: Option<Meetings>) -> Self {
        let trace = context.trace;
        let is_own = |process: ProcessId| ranks.has(trace.processes[process.index()].rank);
        let mut graph = Self {
            trace,
            threads: Vec::new(),
            threads_of: BTreeMap::new(),
            thread_of: FxHashMap::default(),
            main: &context.get::<MainThreads>().0,
            step_track: step_tracks(trace, ranks),
            waits: context.get(),
            previous: Vec::new(),
            ends: BTreeMap::new(),
            launched: BTreeMap::new(),
            reported: FxHashMap::default(),
            meetings,
        };
        let track_of = |slice: SliceId| first_lane(trace, trace.slices.track[slice.index()]);
        let main = graph.main.iter().filter(|(process, _)| is_own(**process)).map(|(_, track)| track);
        let mut tracks: BTreeSet<TrackId> = main.chain(graph.step_track.values()).copied().collect();
        for flow in trace.flows.iter().filter(|flow| flow.kind == FlowKind::ForwardBackward) {
            let (from, to) = (track_of(flow.from), track_of(flow.to));
            if from != to && ranks.has(trace.rank_of_track(to)) {
                tracks.extend([from, to]);
            }
        }
        for (at, event) in trace.device_events.iter().enumerate() {
            let span = trace.slices.span(event.slice);
            let rank = trace.devices[event.device.index()].rank;
            if !ranks.has(rank) || span.is_empty() {
                continue;
            }
            let id = DeviceEventId::from_index(at);
            let ends = graph.ends.entry(rank).or_default();
            ends.of_stream.entry((event.device, event.stream)).or_default().push((span.end_ns, id));
            if let Some(launch) = event.launch {
                let track = track_of(launch);
                tracks.insert(track);
                let row = (trace.slices.start_ns[launch.index()], id);
                graph.launched.entry(trace.tracks[track.index()].process).or_default().push(row);
            }
        }
        for Ends { of_stream, all } in graph.ends.values_mut() {
            of_stream.values_mut().for_each(|ends| ends.sort_unstable());
            // Stable, since that merges the streams, which are ordered already, in one go.
            *all = of_stream.values().flatten().copied().collect();
            all.sort();
        }
        graph.previous = graph.previous_on_streams();
        graph.launched.values_mut().for_each(|launched| launched.sort_unstable());
        for row in &trace.synchronizations {
            if let Some(call) = row.call.filter(|_| row.kind != SyncKind::StreamWaitEvent) {
                graph.reported.insert(call, *row);
            }
        }
        graph.threads = tracks.into_iter().map(|track| path_thread(context, track, graph.meetings.is_some())).collect();
        for (at, thread) in graph.threads.iter().enumerate() {
            graph.thread_of.insert(thread.track, at);
            graph.threads_of.entry(thread.process).or_default().push(at);
        }
        graph
    }

    /// The thread that runs a step.
    pub(super) fn thread_of_step(&self, step: &Step) -> Option<usize> {
        let track = self.step_track.get(&(step.process, step.span)).or_else(|| self.main.get(&step.process))?;
        self.thread_of.get(track).copied()
    }

    /// The threads of a process, by their places.
    pub(super) fn threads_of(&self, process: ProcessId) -> impl Iterator<Item = (usize, &PathThread<'a>)> {
        let threads = self.threads_of.get(&process).into_iter().flatten();
        threads.map(|at| (*at, &self.threads[*at]))
    }

    /// The thread that a launch is on.
    pub(super) fn thread_of_launch(&self, launch: SliceId) -> Option<usize> {
        let track = first_lane(self.trace, self.trace.slices.track[launch.index()]);
        self.thread_of.get(&track).copied()
    }

    /// Of the device events launched inside a step, the one that ends last.
    pub(super) fn last_of_step(&self, step: &Step) -> Option<(i64, DeviceEventId)> {
        self.launched_in(step).map(|id| (self.span(id).end_ns, id)).max()
    }

    /// One pass over each stream: events come by start, and so does what ended before each.
    fn previous_on_streams(&self) -> Vec<Option<DeviceEventId>> {
        let mut previous = vec![None; self.trace.device_events.len()];
        for ends in self.ends.values().flat_map(|ends| ends.of_stream.values()) {
            let mut by_start: Vec<DeviceEventId> = ends.iter().map(|(_, id)| *id).collect();
            by_start.sort_unstable();
            let mut ended = 0;
            for id in by_start {
                let start_ns = self.span(id).start_ns;
                ended += ends[ended..].iter().take_while(|(end_ns, _)| *end_ns <= start_ns).count();
                previous[id.index()] = ended.checked_sub(1).map(|last| ends[last].1);
            }
        }
        previous
    }

    /// What a device event had to wait for on the device, and until when: the last of it.
    pub(super) fn ahead_of(&self, id: DeviceEventId, start_ns: i64) -> Option<(i64, DeviceEventId)> {
        let (on_stream, others) = self.all_ahead_of(id, start_ns);
        let other = others.max();
        if on_stream.map(|row| row.0) >= other.map(|row| row.0) { on_stream } else { other }
    }

    /// What a device event had to wait for on the device, and until when: the event before it on its stream, and those
    /// of other streams.
    pub(super) fn all_ahead_of(
        &self,
        id: DeviceEventId,
        start_ns: i64,
    ) -> (Option<(i64, DeviceEventId)>, impl Iterator<Item = (i64, DeviceEventId)> + '_) {
        let on_stream = self.previous[id.index()].map(|id| (self.span(id).end_ns, id));
        let others = self.waits.ahead_of(id).map(|id| (self.span(id), id));
        let others = others.filter(move |(span, _)| span.end_ns <= start_ns && !span.is_empty());
        (on_stream, others.map(|(span, id)| (span.end_ns, id)))
    }

    /// What a device event waited for on its device that no profiler reported, of what ended since `since_ns`: the last
    /// that was launched before it, where one of the two carries out what ranks do together.
    pub(super) fn unreported_ahead_of(&self, id: DeviceEventId, since_ns: Option<i64>) -> Option<(i64, DeviceEventId)> {
        let event = self.trace.device_events.get(id);
        let (meetings, rank) = (self.meetings.as_ref()?, self.trace.devices[event.device.index()].rank);
        if meetings.has_waits(rank) {
            return None;
        }
        let is_joined = |slice: SliceId| meetings.kernel(slice).is_some();
        let launch_ns = |launch: Option<SliceId>| launch.map(|launch| self.trace.slices.start_ns[launch.index()]);
        let is_ahead = |row: &&(i64, DeviceEventId)| {
            let other = self.trace.device_events.get(row.1);
            let is_before = launch_ns(other.launch) <= launch_ns(event.launch) && row.1 != id;
            is_before && other.device == event.device && (is_joined(event.slice) || is_joined(other.slice))
        };
        let ended = last_up_to(&self.ends.get(&rank)?.all, self.span(id).start_ns);
        ended.iter().rev().take_while(|row| Some(row.0) > since_ns).find(is_ahead).copied()
    }

    /// Of what ranks do together, the part that a slice carries out, and that of the rank that it waited for last; and
    /// when that one came, on the clock of the former.
    pub(super) fn meeting(&self, slice: SliceId) -> Option<(&Part, &Part, i64)> {
        self.meetings.as_ref()?.of_slice(self.trace, slice)
    }

    /// The device event that a slice is, if it carries out what ranks do together.
    pub(super) fn kernel(&self, slice: SliceId) -> Option<DeviceEventId> {
        self.meetings.as_ref()?.kernel(slice)
    }

    /// The last work of a backend of a process that ended after one moment, up to another.
    pub(super) fn work_since(&self, process: ProcessId, since_ns: i64, at_ns: i64) -> Option<(i64, SliceId)> {
        self.meetings.as_ref()?.last_work(process, at_ns).filter(|(end_ns, _)| *end_ns > since_ns)
    }

    /// The work of a backend before another on its thread.
    pub(super) fn previous_work(&self, work: SliceId) -> Option<SliceId> {
        self.meetings.as_ref()?.previous(work)
    }

    /// The last device event that a call waited for, of those that ended inside it up to `at_ns`.
    pub(super) fn waited_for(&self, call: SliceId, at_ns: i64) -> Option<(i64, DeviceEventId)> {
        let start_ns = self.trace.slices.start_ns[call.index()];
        let is_inside = |row: &&(i64, DeviceEventId)| row.0 > start_ns && row.0 <= at_ns;
        let is_enqueued = |row: &&(i64, DeviceEventId)| {
            let launch = self.trace.device_events.get(row.1).launch;
            launch.is_none_or(|launch| self.trace.slices.start_ns[launch.index()] <= start_ns)
        };
        let last = |ends: &[(i64, DeviceEventId)]| {
            last_up_to(ends, at_ns).iter().rev().take_while(is_inside).find(is_enqueued).copied()
        };
        let (reported, ends) = (self.reported.get(&call), self.ends_at(call));
        match reported.map(|row| (row.kind, row)) {
            Some((SyncKind::Stream, row)) if row.stream.is_some() => {
                ends?.of_stream.get(&(row.device, row.stream)).and_then(|ends| last(ends))
            }
            Some((SyncKind::Event, row)) if row.event_record.is_some() && row.event_stream.is_some() => {
                let record_ns = row.event_record.map(|record| self.trace.slices.start_ns[record.index()])?;
                let id = self.waits.last_before((row.device, row.event_stream), record_ns)?;
                Some((self.span(id).end_ns, id)).filter(|row| is_inside(&row))
            }
            _ => last(&ends?.all),
        }
    }

    /// When the last of what a call waited for ended, of what ended by its return; and of each stream that it waited
    /// for the last event that `is_asked`, since what is before that on its stream ended before.
    pub(super) fn all_waited_for(
        &self,
        call: SliceId,
        returned_ns: i64,
        is_asked: impl Fn(DeviceEventId) -> bool,
    ) -> (Option<i64>, Vec<DeviceEventId>) {
        let start_ns = self.trace.slices.start_ns[call.index()];
        let is_enqueued = |row: &&(i64, DeviceEventId)| {
            let launch = self.trace.device_events.get(row.1).launch;
            launch.is_none_or(|launch| self.trace.slices.start_ns[launch.index()] <= start_ns)
        };
        let (mut last_ns, mut asked) = (None, Vec::new());
        let mut wait_for = |ends: &[(i64, DeviceEventId)]| {
            let mut enqueued = last_up_to(ends, returned_ns).iter().rev().filter(is_enqueued).peekable();
            last_ns = last_ns.max(enqueued.peek().map(|(end_ns, _)| *end_ns));
            asked.extend(enqueued.map(|(_, id)| *id).find(|id| is_asked(*id)));
        };
        let (reported, streams) = (self.reported.get(&call), self.ends_at(call).map(|ends| &ends.of_stream));
        match reported.map(|row| (row.kind, row)) {
            Some((SyncKind::Stream, row)) if row.stream.is_some() => {
                let ends = streams.and_then(|streams| streams.get(&(row.device, row.stream)));
                ends.into_iter().for_each(|ends| wait_for(ends));
            }
            Some((SyncKind::Event, row)) if row.event_record.is_some() && row.event_stream.is_some() => {
                let record_ns = row.event_record.map(|record| self.trace.slices.start_ns[record.index()]);
                let id = record_ns.and_then(|ns| self.waits.last_before((row.device, row.event_stream), ns));
                let id = id.filter(|id| !self.span(*id).is_empty());
                id.into_iter().for_each(|id| wait_for(&[(self.span(id).end_ns, id)]));
            }
            // In any order: what is asked for is a maximum and a set.
            _ => streams.into_iter().flat_map(|streams| streams.values()).for_each(|ends| wait_for(ends)),
        }
        (last_ns, asked)
    }

    /// Ends on the rank that makes a call.
    fn ends_at(&self, call: SliceId) -> Option<&Ends> {
        self.ends.get(&self.trace.rank_of_track(self.trace.slices.track[call.index()]))
    }

    /// Device events launched while a step runs on the host.
    pub(super) fn launched_in(&self, step: &Step) -> impl Iterator<Item = DeviceEventId> + '_ {
        let launched = self.launched.get(&step.process).map_or(&[][..], Vec::as_slice);
        let first = launched.partition_point(|(start_ns, _)| *start_ns < step.span.start_ns);
        let end_ns = step.span.end_ns;
        launched[first..].iter().take_while(move |(start_ns, _)| *start_ns < end_ns).map(|(_, id)| *id)
    }

    pub(super) fn span(&self, id: DeviceEventId) -> Span {
        self.trace.slices.span(self.trace.device_events.get(id).slice)
    }
}

fn last_up_to(ends: &[(i64, DeviceEventId)], at_ns: i64) -> &[(i64, DeviceEventId)] {
    &ends[..ends.partition_point(|(end_ns, _)| *end_ns <= at_ns)]
}

/// The threads of the labels that steps are from.
fn step_tracks(trace: &Trace, ranks: &Ranks) -> BTreeMap<(ProcessId, Span), TrackId> {
    let ids = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Step);
    let rows = ids.map(|id| {
        let track = first_lane(trace, trace.slices.track[id.index()]);
        ((trace.tracks[track.index()].process, trace.slices.span(id)), track)
    });
    rows.filter(|(_, track)| ranks.has(trace.rank_of_track(*track))).collect()
}

fn path_thread<'a>(context: &'a AnalysisContext<'_>, track: TrackId, is_across: bool) -> PathThread<'a> {
    let (trace, doings) = (context.trace, context.get::<Threads>().get(context.trace, track));
    let mut syncs: Vec<(Span, SliceId)> = Vec::new();
    let waits = |id: &SliceId| {
        let is_collective = || is_across && trace.role(*id) == Some(SliceRole::CollectiveWait);
        trace.slices.kind(*id) == SliceKind::HostSync || is_collective()
    };
    for lane in trace.lanes(track) {
        for id in trace.tracks[lane.index()].slice_ids().filter(waits) {
            syncs.push((trace.slices.span(id), id));
        }
    }
    syncs.sort_unstable_by_key(|(span, id)| (span.start_ns, std::cmp::Reverse(span.end_ns), *id));
    let mut covered_ns = i64::MIN;
    syncs.retain(|(span, _)| {
        let is_kept = span.end_ns > covered_ns && !span.is_empty();
        covered_ns = covered_ns.max(span.end_ns);
        is_kept
    });
    assert!(is_across || doings.doing(Doing::HostSync).is_empty() == syncs.is_empty(), "the same calls");
    let process = trace.tracks[track.index()].process;
    PathThread { track, process, work: doings.work(), doings, syncs }
}
