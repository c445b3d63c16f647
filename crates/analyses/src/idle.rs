//! The idle time of devices, gap by gap, each piece with its cause: what the analyses of idle time share.
//!
//! ```text
//! stream   ████··········████     the gap, up to the next device event
//! host     ·░loader░·op·▓▓···     ▓ the call that launched that event
//! cause        input   launch     by what the launching thread did; then by what held the launched work back
//! ```

use crate::AnalysisContext;
use crate::context::Shared;
use crate::device_busy::DeviceBusy;
use crate::device_windows::{DeviceWindow, slots_of_devices};
use crate::host_threads::{Doing, MainThreads, Threads, first_lane, innermost_of, overhead};
use crate::stream_waits::StreamWaits;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{DeviceEventClass, DeviceEventId, DeviceId, ProcessId, SliceId, Trace, TrackId};

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

named_cells!(IdleCause);

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

/// Times by cause and name. A map, since a run has as many of them as devices, and each device few of all names.
pub(crate) type HostTimes = FxHashMap<(IdleCause, StringId), i64>;

/// The idle time of one device.
pub(crate) struct DeviceIdle {
    pub(crate) device: DeviceId,
    /// By time.
    pub(crate) gaps: Vec<IdleGap>,
    /// The parts of all gaps, by time.
    parts: Vec<IdlePart>,
    /// Where the parts of each gap end.
    part_ends: Vec<usize>,
    /// How long threads were innermost in slices of a name.
    pub(crate) host_ns: HostTimes,
}

impl DeviceIdle {
    /// The parts of a gap, by time.
    pub(crate) fn parts_of(&self, gap: usize) -> &[IdlePart] {
        let first = gap.checked_sub(1).map_or(0, |before| self.part_ends[before]);
        &self.parts[first..self.part_ends[gap]]
    }
}

/// The idle time of every device asked for that has device events, inside the window of `temporal_breakdown`.
impl Shared for Vec<DeviceIdle> {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let (trace, windows) = (context.trace, context.get::<Vec<DeviceWindow>>());
        if windows.is_empty() {
            return Vec::new();
        }
        let busy = context.get::<Vec<DeviceBusy>>();
        let host = Host {
            trace,
            threads: context.get(),
            main_threads: context.get(),
            stream_waits: context.get(),
            overhead: overhead(trace),
        };
        let starts = starts_by_device(trace, windows);
        let idle = |(window, starts): (&DeviceWindow, Vec<Start>)| {
            of_device(&host, window, &busy[window.device.index()], &starts)
        };
        windows.iter().zip(starts).map(idle).collect()
    }
}

/// A device event and its start.
type Start = (i64, DeviceEventId);

/// All device events of the device of each window, by start, whatever launched them.
fn starts_by_device(trace: &Trace, windows: &[DeviceWindow]) -> Vec<Vec<Start>> {
    let slot_of = slots_of_devices(trace, windows);
    let mut starts: Vec<Vec<Start>> = vec![Vec::new(); windows.len()];
    for (at, event) in trace.device_events.iter().enumerate() {
        if let Some(slot) = slot_of[event.device.index()] {
            starts[slot].push((trace.slices.start_ns[event.slice.index()], DeviceEventId::from_index(at)));
        }
    }
    starts
}

/// What is needed of the host.
struct Host<'a> {
    trace: &'a Trace,
    threads: &'a Threads,
    main_threads: &'a MainThreads,
    stream_waits: &'a StreamWaits,
    overhead: FxHashMap<ProcessId, IntervalSet>,
}

fn of_device(host: &Host<'_>, window: &DeviceWindow, busy: &DeviceBusy, starts: &[Start]) -> DeviceIdle {
    let (trace, busy) = (host.trace, busy.any.clip(window.span));
    let gaps = gaps(trace, window.span, &busy, starts);
    let mut parts: Vec<IdlePart> = Vec::new();
    let mut waiting: BTreeMap<TrackId, Vec<(Span, Span)>> = BTreeMap::new();
    for gap in &gaps {
        let event = gap.next.map(|next| (next, trace.device_events.get(next)));
        let Some((id, launch)) = event.and_then(|(id, event)| Some((id, event.launch?))) else {
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
        parts.extend(on_device(trace, host.stream_waits, id, call, gap.span));
    }
    for (track, waiting) in &waiting {
        parts.extend(on_host(host, *track, waiting));
    }
    parts.sort_by_key(|part| part.span);
    let host_ns = name(trace, &mut parts);
    DeviceIdle { device: window.device, part_ends: part_ends(&gaps, &parts), gaps, parts, host_ns }
}

/// The gaps in `window` and what ends each: of the device events that start there the first with a known launch, or
/// else the first.
fn gaps(trace: &Trace, window: Span, busy: &IntervalSet, starts: &[Start]) -> Vec<IdleGap> {
    let mut at = 0;
    let ends_with = |gap: &Span| {
        at += starts[at..].iter().take_while(|(start_ns, _)| *start_ns < gap.end_ns).count();
        let mut candidates = starts[at..].iter().take_while(|(start_ns, _)| *start_ns == gap.end_ns);
        let is_linked = |(_, id): &&Start| trace.device_events.get(*id).launch.is_some();
        let next = candidates.clone().find(is_linked).or_else(|| candidates.next());
        IdleGap { span: *gap, next: next.map(|(_, id)| *id) }
    };
    IntervalSet::of(window).subtract(busy).spans().iter().map(ends_with).collect()
}

/// The causes of the times up to the end of the launches that were waited for, by what `track` did: (the time, the
/// call that launched).
fn on_host(host: &Host<'_>, track: TrackId, waiting: &[(Span, Span)]) -> Vec<IdlePart> {
    let process = host.trace.tracks[track.index()].process;
    let main = host.main_threads.0.get(&process).copied().filter(|main| *main != track);
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
    let take_doings = |take: &mut dyn FnMut(&IntervalSet, IdleCause, Option<TrackId>), track: TrackId| {
        let thread = host.threads.get(host.trace, track);
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
fn on_device(trace: &Trace, waits: &StreamWaits, event: DeviceEventId, call: Span, gap: Span) -> Option<IdlePart> {
    let span = Span::new(call.end_ns.max(gap.start_ns), gap.end_ns);
    let ahead = waits.ahead_of(event).map(|id| {
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
fn name(trace: &Trace, parts: &mut Vec<IdlePart>) -> HostTimes {
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
    let mut host_ns = HostTimes::default();
    for (thread, rows) in &of_thread {
        let spans: Vec<Span> = rows.iter().map(|at| parts[*at].span).collect();
        let longest = innermost_of(trace, *thread, &spans, |at, id, ns| {
            *host_ns.entry((parts[rows[at]].cause, trace.slices.name[id.index()])).or_default() += ns;
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
