//! What one rank did between its collectives, as a closed account: all that is needed of a rank to say why it came late.
//! Nothing here looks at another rank.
//!
//! ```text
//! group 0   ███░░░░░░░░░░░░███     the stretch ░, from the end of one collective to the start of the next
//! device       CC···H···CCC        computes, idles, copies
//! host            gc  op           why it idles
//! ```

use crate::communication::Parts;
use crate::context::Shared;
use crate::device_busy::DeviceBusy;
use crate::host_threads::{Doing, MainThreads, Threads, first_lane, overhead};
use crate::idle::{DeviceIdle, IdleCause};
use crate::sm_clock::SmClock;
use crate::{AnalysisContext, Selection};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use stepscope_align::{Calls, Part};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{ProcessId, SliceId, SliceKind, SliceRole, TrackId, TrackKind};

/// What a rank does before a collective, and so may come late by. `lateness` defines each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LateCause {
    /// It computes.
    Compute,
    /// It computes for longer since the clock of its devices is slower. Only two ranks together show it.
    SlowClock,
    /// It is in a collective of another group.
    OtherCollective,
    /// It copies or fills.
    Copy,
    /// The profiler itself takes time.
    ProfilerOverhead,
    /// Python collects its garbage.
    GarbageCollection,
    /// It allocates or frees memory of a device.
    Allocation,
    /// The host waits for the device.
    HostSync,
    /// The training loop waits for its next batch.
    Input,
    /// The host is in a call on a file.
    Io,
    /// The host is busy with operators and calls of the device's API.
    LaunchBound,
    /// The host does something else that was recorded.
    HostOther,
    /// Launched work is held back on the device.
    DeviceWait,
    /// Nothing is known of the time.
    Unknown,
    /// No class of the time before accounts for it.
    Unexplained,
}

named_cells!(LateCause);

impl LateCause {
    /// How many there are.
    pub(crate) const COUNT: usize = 15;

    /// All, in the order of their numbers.
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::Compute,
        Self::SlowClock,
        Self::OtherCollective,
        Self::Copy,
        Self::ProfilerOverhead,
        Self::GarbageCollection,
        Self::Allocation,
        Self::HostSync,
        Self::Input,
        Self::Io,
        Self::LaunchBound,
        Self::HostOther,
        Self::DeviceWait,
        Self::Unknown,
        Self::Unexplained,
    ];

    /// The cause's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::SlowClock => "slow_clock",
            Self::OtherCollective => "other_collective",
            Self::Copy => "copy",
            Self::ProfilerOverhead => "profiler_overhead",
            Self::GarbageCollection => "garbage_collection",
            Self::Allocation => "allocation",
            Self::HostSync => "host_sync",
            Self::Input => "input",
            Self::Io => "io",
            Self::LaunchBound => "launch_bound",
            Self::HostOther => "host_other",
            Self::DeviceWait => "device_wait",
            Self::Unknown => "unknown",
            Self::Unexplained => "unexplained",
        }
    }
}

/// The time of one rank from the end of a collective to the start of the next of the same group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    /// Where the rank asked for the collective before.
    pub(crate) previous: SliceId,
    /// The stretch by what the rank did, in the order of [`LateCause::ALL`]; they sum to it. None is unexplained,
    /// or because of a slow clock.
    pub(crate) parts_ns: [i64; LateCause::COUNT],
    /// The clock of the rank's devices, MHz.
    pub(crate) clock_mhz: Option<i64>,
}

/// The stretch before each collective that has one before it, by where the rank asked for it. Of the whole trace,
/// whatever part of it is asked for.
pub(crate) struct Stretches(pub(crate) FxHashMap<SliceId, Stretch>);

impl Shared for Stretches {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let all = Selection::default();
        if *context.selection != all {
            return Self::compute(&AnalysisContext::new(context.trace, &all));
        }
        let parts = collectives(context);
        let host = host(context, &parts);
        let mut stretches = FxHashMap::default();
        for of_process in parts.chunk_by(|a, b| a.process == b.process) {
            let device = Device::of(context, of_process[0].rank);
            let clock = SmClock::of(context.trace, of_process[0].rank);
            let account = Account::of(&host, device.as_ref(), of_process[0].process);
            let group = |part: &Part| (part.group, part.group_description);
            for pair in of_process.windows(2).filter(|pair| group(&pair[0]) == group(&pair[1])) {
                let (from_ns, to_ns) = (pair[0].end_ns, pair[1].start_ns);
                let span = Span::new(from_ns.min(to_ns), to_ns);
                let (parts_ns, clock_mhz) = (account.divide(span), clock.mean_mhz(span));
                let stretch = Stretch { previous: pair[0].asked_by, parts_ns, clock_mhz };
                stretches.insert(pair[1].asked_by, stretch);
            }
        }
        Self(stretches)
    }
}

/// The collectives of all ranks, without messages from one rank to another: by process, group and start.
fn collectives(context: &AnalysisContext<'_>) -> Vec<Part> {
    let parts = &context.get::<Parts>().0;
    let mut parts: Vec<Part> = parts.iter().filter(|part| !part.is_between_two()).copied().collect();
    parts.sort_by_key(|part| (part.process, part.group, part.group_description, part.start_ns, part.asked_by));
    parts
}

/// When a process does what on the host, by cause. Operators are [`LateCause::Compute`].
type Host = FxHashMap<(ProcessId, LateCause), IntervalSet>;

/// That of each process which `parts` are of. A collection stops all threads of a process, and taking memory from a device
/// all its work: they count on every thread. For the rest those threads are asked that ask for collectives, and the main one.
fn host(context: &AnalysisContext<'_>, parts: &[Part]) -> Host {
    let (trace, calls) = (context.trace, context.get::<Calls>());
    let mut spans: FxHashMap<(ProcessId, LateCause), Vec<Span>> = FxHashMap::default();
    let mut add = |process: ProcessId, cause: LateCause, of: &[Span]| {
        spans.entry((process, cause)).or_default().extend(of);
    };
    overhead(trace).iter().for_each(|(process, set)| add(*process, LateCause::ProfilerOverhead, set.spans()));
    for track in trace.tracks.iter().filter(|track| track.kind == TrackKind::Thread) {
        for id in track.slice_ids() {
            let is_computing = || trace.slices.kind(id) == SliceKind::Op && calls.around(trace, id).is_none();
            let cause = match trace.role(id) {
                Some(SliceRole::GarbageCollection) => LateCause::GarbageCollection,
                Some(SliceRole::DeviceAllocation) => LateCause::Allocation,
                _ if is_computing() => LateCause::Compute,
                _ => continue,
            };
            add(track.process, cause, &[trace.slices.span(id)]);
        }
    }
    for work in calls.calls.iter().filter_map(|call| call.work) {
        let process = trace.tracks[trace.slices.track[work.index()].index()].process;
        add(process, LateCause::OtherCollective, &[trace.slices.span(work)]);
    }
    for (process, track) in asked_threads(context, parts) {
        let thread = context.get::<Threads>().get(trace, track);
        for (doing, cause) in DOINGS {
            add(process, cause, thread.doing(doing).spans());
        }
    }
    spans.into_iter().map(|(key, spans)| (key, IntervalSet::from_unsorted(spans))).collect()
}

const DOINGS: [(Doing, LateCause); 5] = [
    (Doing::HostSync, LateCause::HostSync),
    (Doing::DataLoader, LateCause::Input),
    (Doing::Io, LateCause::Io),
    (Doing::ApiCall, LateCause::LaunchBound),
    (Doing::Recorded, LateCause::HostOther),
];

/// The main thread of each process that `parts` are of, and the threads that ask for collectives.
fn asked_threads(context: &AnalysisContext<'_>, parts: &[Part]) -> BTreeSet<(ProcessId, TrackId)> {
    let (trace, main) = (context.trace, context.get::<MainThreads>());
    let asking = |part: &Part| {
        let track = trace.slices.track[part.asked_by.index()];
        let is_thread = trace.tracks[track.index()].kind == TrackKind::Thread;
        is_thread.then(|| (part.process, first_lane(trace, track)))
    };
    let main = |part: &Part| main.0.get(&part.process).map(|track| (part.process, *track));
    parts.iter().filter_map(asking).chain(parts.iter().filter_map(main)).collect()
}

/// What the devices of a rank do, and why they idle.
#[derive(Default)]
struct Device {
    busy: DeviceBusy,
    idle: [IntervalSet; IdleCause::COUNT],
}

impl Device {
    /// All devices of `rank`; `None` when nothing runs on any.
    fn of(context: &AnalysisContext<'_>, rank: u32) -> Option<Self> {
        let trace = context.trace;
        let mut device = Self::default();
        let busy = trace.devices.iter().zip(context.get::<Vec<DeviceBusy>>());
        for (_, busy) in busy.filter(|(of, busy)| of.rank == rank && busy.has_events) {
            let sum = &mut device.busy;
            sum.compute = sum.compute.union(&busy.compute);
            sum.comm = sum.comm.union(&busy.comm);
            sum.memcpy = sum.memcpy.union(&busy.memcpy.union(&busy.memset));
            sum.has_events = true;
        }
        for idle in context.get::<Vec<DeviceIdle>>().iter() {
            if trace.devices[idle.device.index()].rank != rank {
                continue;
            }
            let mut spans: [Vec<Span>; IdleCause::COUNT] = Default::default();
            for part in (0..idle.gaps.len()).flat_map(|gap| idle.parts_of(gap)) {
                spans[part.cause as usize].push(part.span);
            }
            for (sum, spans) in device.idle.iter_mut().zip(spans) {
                *sum = sum.union(&IntervalSet::from_unsorted(spans));
            }
        }
        device.busy.has_events.then_some(device)
    }

    fn idle(&self, cause: IdleCause) -> &IntervalSet {
        &self.idle[cause as usize]
    }
}

/// When a process and its rank's devices do what; no two at the same moment.
#[derive(Default)]
struct Account {
    sets: Vec<(LateCause, IntervalSet)>,
    covered: IntervalSet,
}

impl Account {
    fn of(host: &Host, device: Option<&Device>, process: ProcessId) -> Self {
        use LateCause::*;
        let mut account = Self::default();
        let none = IntervalSet::default();
        let host = |cause: LateCause| host.get(&(process, cause)).unwrap_or(&none);
        if let Some(device) = device {
            account.add(Compute, &device.busy.compute);
            account.add(OtherCollective, &device.busy.comm);
            account.add(Copy, &device.busy.memcpy);
            account.add(ProfilerOverhead, device.idle(IdleCause::ProfilerOverhead));
            let running = device.idle(IdleCause::LaunchBound).union(device.idle(IdleCause::HostOther));
            let at_host = running.union(device.idle(IdleCause::HostSync)).union(device.idle(IdleCause::Input));
            account.add(GarbageCollection, &host(GarbageCollection).intersect(&at_host));
            account.add(Allocation, &host(Allocation).intersect(&at_host));
            account.add(HostSync, device.idle(IdleCause::HostSync));
            account.add(Input, device.idle(IdleCause::Input));
            account.add(Io, &host(Io).intersect(&running));
            account.add(LaunchBound, device.idle(IdleCause::LaunchBound));
            account.add(HostOther, device.idle(IdleCause::HostOther));
            account.add(DeviceWait, &device.idle(IdleCause::QueueWait).union(device.idle(IdleCause::PeerWait)));
            account.add(Unknown, device.idle(IdleCause::Unknown));
        }
        for cause in [ProfilerOverhead, GarbageCollection, Allocation, HostSync, Input] {
            account.add(cause, host(cause));
        }
        // Where devices compute, operators only prepare it.
        account.add(if device.is_some() { LaunchBound } else { Compute }, host(Compute));
        for cause in [OtherCollective, Io, LaunchBound, HostOther] {
            account.add(cause, host(cause));
        }
        account
    }

    /// The moments of `set` that nothing added before has.
    fn add(&mut self, cause: LateCause, set: &IntervalSet) {
        self.sets.push((cause, set.subtract(&self.covered)));
        self.covered = self.covered.union(set);
    }

    /// A span by cause.
    fn divide(&self, span: Span) -> [i64; LateCause::COUNT] {
        let mut parts_ns = [0; LateCause::COUNT];
        for (cause, set) in &self.sets {
            parts_ns[*cause as usize] += set.clip(span).total_ns();
        }
        let known_ns: i64 = parts_ns.iter().sum();
        assert!(known_ns <= span.duration_ns(), "no moment counts twice");
        parts_ns[LateCause::Unknown as usize] += span.duration_ns() - known_ns;
        parts_ns
    }
}

#[cfg(test)]
mod tests;
