//! The idle time of devices, gap by gap, each piece with its cause: what the analyses of idle time share.
//!
//! ```text
//! stream   ████··········████     the gap, up to the next device event
//! host     ·░loader░·op·▓▓···     ▓ the call that launched that event
//! cause        input   launch     by what the launching thread did; then by what held the launched work back
//! ```

use crate::Selection;
use crate::host_threads::{Doing, Thread, first_lane, innermost_of, main_threads, overhead, thread};
use crate::stream_waits::StreamWaits;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{DeviceEvent, DeviceEventClass, DeviceEventId, DeviceId, ProcessId, SliceId, Trace, TrackId};

/// Why a device idles. `idle_causes` defines each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IdleCause {
    /// The profiler itself took time.
    ProfilerOverhead,
    /// The host waited for a device.
    HostSync,
    /// The training loop waited for its next batch.
    Input,
    /// The host was busy with operators and calls until the launch, or the launch itself took so long.
    LaunchBound,
    /// Launched work was held back on the device.
    QueueWait,
    /// Launched work was held back by communication.
    PeerWait,
    /// The host did something else.
    HostOther,
    /// Nobody knows what was waited for.
    Unknown,
}

impl IdleCause {
    /// How many there are.
    pub(crate) const COUNT: usize = 8;

    /// The cause's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProfilerOverhead => "profiler_overhead",
            Self::HostSync => "host_sync",
            Self::Input => "input",
            Self::LaunchBound => "launch_bound",
            Self::QueueWait => "queue_wait",
            Self::PeerWait => "peer_wait",
            Self::HostOther => "host_other",
            Self::Unknown => "unknown",
        }
    }
}

/// A piece of a gap with one cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IdlePart {
    pub(crate) span: Span,
    pub(crate) cause: IdleCause,
    /// The thread whose doings are the cause.
    pub(crate) thread: Option<TrackId>,
    /// What that thread was in for the longest time, innermost.
    pub(crate) host: Option<SliceId>,
}

/// A time in which a device does nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IdleGap {
    pub(crate) span: Span,
    /// The device event that ends it.
    pub(crate) next: Option<DeviceEventId>,
}

/// The idle time of one device.
pub(crate) struct DeviceIdle {
    pub(crate) device: DeviceId,
    /// By time.
    pub(crate) gaps: Vec<IdleGap>,
    /// The parts of all gaps, by time.
    parts: Vec<IdlePart>,
    /// Where the parts of each gap end.
    part_ends: Vec<usize>,
    /// How long threads were innermost in slices of each name, by cause.
    pub(crate) host_ns: [Vec<i64>; IdleCause::COUNT],
}

impl DeviceIdle {
    /// The parts of a gap, by time.
    pub(crate) fn parts_of(&self, gap: usize) -> &[IdlePart] {
        let first = gap.checked_sub(1).map_or(0, |before| self.part_ends[before]);
        &self.parts[first..self.part_ends[gap]]
    }
}

/// The idle time of every device asked for that has device events, inside the window of `temporal_breakdown`.
pub(crate) fn idle(trace: &Trace, selection: &Selection) -> Vec<DeviceIdle> {
    let mut windows: BTreeMap<DeviceId, Span> = BTreeMap::new();
    for event in selection.device_events(trace) {
        let span = trace.slices.span(event.slice);
        let window = windows.entry(event.device).or_insert(span);
        *window = Span::new(window.start_ns.min(span.start_ns), window.end_ns.max(span.end_ns));
    }
    if windows.is_empty() {
        return Vec::new();
    }
    let mut events: BTreeMap<DeviceId, Vec<DeviceEventId>> = BTreeMap::new();
    for (at, event) in trace.device_events.iter().enumerate().filter(|(_, event)| windows.contains_key(&event.device)) {
        events.entry(event.device).or_default().push(DeviceEventId::from_index(at));
    }
    let mut host = Host::of(trace, selection);
    windows.into_iter().map(|(device, window)| of_device(trace, &mut host, device, window, &events[&device])).collect()
}

/// What is needed of the host, each thread when it is first asked for.
struct Host {
    threads: FxHashMap<TrackId, Thread>,
    main: BTreeMap<ProcessId, TrackId>,
    overhead: FxHashMap<ProcessId, IntervalSet>,
    waits: StreamWaits,
}

impl Host {
    fn of(trace: &Trace, selection: &Selection) -> Self {
        let is_wanted = |process: ProcessId| selection.has_rank(trace.processes[process.index()].rank);
        let main = main_threads(trace, is_wanted);
        Self { threads: FxHashMap::default(), main, overhead: overhead(trace), waits: StreamWaits::of(trace) }
    }

    fn thread(&mut self, trace: &Trace, first: TrackId) -> &Thread {
        self.threads.entry(first).or_insert_with(|| thread(trace, first))
    }
}

fn of_device(trace: &Trace, host: &mut Host, device: DeviceId, window: Span, events: &[DeviceEventId]) -> DeviceIdle {
    let gaps = gaps(trace, window, events);
    let mut parts: Vec<IdlePart> = Vec::new();
    let mut waiting: BTreeMap<TrackId, Vec<(Span, Span)>> = BTreeMap::new();
    for gap in &gaps {
        let event = gap.next.map(|next| trace.device_events.get(next));
        let Some((event, launch)) = event.and_then(|event| Some((event, event.launch?))) else {
            parts.push(IdlePart { span: gap.span, cause: IdleCause::Unknown, thread: None, host: None });
            continue;
        };
        let call = trace.slices.span(launch);
        let launched_ns = call.end_ns.clamp(gap.span.start_ns, gap.span.end_ns);
        let until_launched = Span::new(gap.span.start_ns, launched_ns);
        if !until_launched.is_empty() {
            let track = first_lane(trace, trace.slices.track[launch.index()]);
            waiting.entry(track).or_default().push((until_launched, call));
        }
        parts.extend(on_device(trace, &host.waits, event, call, gap.span));
    }
    for (track, waiting) in &waiting {
        parts.extend(on_host(trace, host, *track, waiting));
    }
    parts.sort_by_key(|part| part.span);
    let host_ns = name(trace, &mut parts);
    DeviceIdle { device, part_ends: part_ends(&gaps, &parts), gaps, parts, host_ns }
}

/// The gaps in `window` and what ends each: of the device events that start there the first with a known launch, or
/// else the first.
fn gaps(trace: &Trace, window: Span, events: &[DeviceEventId]) -> Vec<IdleGap> {
    let span = |id: &DeviceEventId| trace.slices.span(trace.device_events.get(*id).slice);
    let busy: IntervalSet = events.iter().map(|id| span(id).intersect(window)).collect();
    let mut at = 0;
    let ends_with = |gap: &Span| {
        at += events[at..].iter().take_while(|id| span(id).start_ns < gap.end_ns).count();
        let mut candidates = events[at..].iter().take_while(|id| span(id).start_ns == gap.end_ns);
        let is_linked = |id: &&DeviceEventId| trace.device_events.get(**id).launch.is_some();
        let next = candidates.clone().find(is_linked).or_else(|| candidates.next());
        IdleGap { span: *gap, next: next.copied() }
    };
    IntervalSet::of(window).subtract(&busy).spans().iter().map(ends_with).collect()
}

/// The causes of the times up to the end of the launches that were waited for, by what `track` did: (the time, the
/// call that launched).
fn on_host(trace: &Trace, host: &mut Host, track: TrackId, waiting: &[(Span, Span)]) -> Vec<IdlePart> {
    let process = trace.tracks[track.index()].process;
    let main = host.main.get(&process).copied().filter(|main| *main != track);
    let mut rest: IntervalSet = waiting.iter().map(|(span, _)| *span).collect();
    let mut parts = Vec::new();
    let mut take = |set: &IntervalSet, cause: IdleCause, thread: Option<TrackId>| {
        if rest.is_empty() || set.is_empty() {
            return;
        }
        let part = |span: &Span| IdlePart { span: *span, cause, thread, host: None };
        parts.extend(rest.intersect(set).spans().iter().map(part));
        rest = rest.subtract(set);
    };
    if let Some(overhead) = host.overhead.get(&process) {
        take(overhead, IdleCause::ProfilerOverhead, None);
    }
    let launching: IntervalSet = waiting.iter().map(|(span, call)| span.intersect(*call)).collect();
    take(&launching, IdleCause::LaunchBound, Some(track));
    let mut take_doings = |take: &mut dyn FnMut(&IntervalSet, IdleCause, Option<TrackId>), track: TrackId| {
        let thread = host.thread(trace, track);
        take(thread.doing(Doing::HostSync), IdleCause::HostSync, Some(track));
        take(thread.doing(Doing::DataLoader), IdleCause::Input, Some(track));
        take(&thread.doing(Doing::ApiCall).union(thread.doing(Doing::Op)), IdleCause::LaunchBound, Some(track));
        take(thread.doing(Doing::Recorded), IdleCause::HostOther, Some(track));
    };
    take_doings(&mut take, track);
    if let Some(main) = main {
        take_doings(&mut take, main);
    }
    let left = rest.spans().iter();
    parts.extend(left.map(|span| IdlePart { span: *span, cause: IdleCause::HostOther, thread: None, host: None }));
    parts
}

/// The cause of the time between the end of the launch and the start of its device event, in `gap`.
fn on_device(trace: &Trace, waits: &StreamWaits, event: &DeviceEvent, call: Span, gap: Span) -> Option<IdlePart> {
    let span = Span::new(call.end_ns.max(gap.start_ns), gap.end_ns);
    let ahead = waits.ahead_of(trace, event).map(|id| {
        let ahead = trace.device_events.get(id);
        (trace.slices.span(ahead.slice).end_ns, ahead.class == DeviceEventClass::Communication)
    });
    let (ready_ns, is_peer) = ahead.max().unwrap_or((i64::MIN, false));
    let cause = match () {
        () if call.end_ns > gap.start_ns && ready_ns <= call.end_ns => IdleCause::LaunchBound,
        () if is_peer => IdleCause::PeerWait,
        () => IdleCause::QueueWait,
    };
    Some(IdlePart { span, cause, thread: None, host: None }).filter(|part| !part.span.is_empty())
}

/// Joins neighbours of one cause and thread, and finds what the thread did in each; returns the sums by cause and name.
fn name(trace: &Trace, parts: &mut Vec<IdlePart>) -> [Vec<i64>; IdleCause::COUNT] {
    parts.dedup_by(|next, part| {
        let is_same = (next.cause, next.thread) == (part.cause, part.thread) && next.span.start_ns == part.span.end_ns;
        part.span.end_ns = if is_same { next.span.end_ns } else { part.span.end_ns };
        is_same
    });
    let mut of_thread: BTreeMap<TrackId, Vec<usize>> = BTreeMap::new();
    for (at, part) in parts.iter().enumerate() {
        if let Some(thread) = part.thread {
            of_thread.entry(thread).or_default().push(at);
        }
    }
    let mut host_ns: [Vec<i64>; IdleCause::COUNT] = std::array::from_fn(|_| vec![0; trace.strings.len()]);
    for (thread, rows) in of_thread {
        let spans: Vec<Span> = rows.iter().map(|at| parts[*at].span).collect();
        let longest = innermost_of(trace, thread, &spans, |at, id, ns| {
            host_ns[parts[rows[at]].cause as usize][trace.slices.name[id.index()].index()] += ns;
        });
        rows.iter().zip(longest).for_each(|(at, longest)| parts[*at].host = longest.map(|(id, _)| id));
    }
    host_ns
}

fn part_ends(gaps: &[IdleGap], parts: &[IdlePart]) -> Vec<usize> {
    let mut next = 0;
    let end_of = |gap: &IdleGap| {
        let mut at_ns = gap.span.start_ns;
        while let Some(part) = parts.get(next).filter(|part| part.span.end_ns <= gap.span.end_ns) {
            assert_eq!(part.span.start_ns, at_ns, "parts fill the gap");
            (at_ns, next) = (part.span.end_ns, next + 1);
        }
        assert_eq!(at_ns, gap.span.end_ns, "parts fill the gap");
        next
    };
    gaps.iter().map(end_of).collect()
}
