//! What one rank did in each step: its own time, cut where it begins to communicate and where it waits. Nothing here is
//! of another rank, so that it can be kept beside the rank.
//!
//! ```text
//! work  WWWWWWWW....WWWW..        work 3, begin a, work 5, begin b, wait for a, work 4, idle 1, begin c, …
//! comm     aaaaaaa..ccccccc       a ends where the work pauses: what follows waited for it
//!                bbbb             b is behind a in its queue
//! ```

use super::alone::{Alone, Category};
use crate::AnalysisContext;
use crate::communication::Parts;
use crate::context::Shared;
use crate::host_threads::first_lane;
use crate::op_classes::{COPY, NOT_LINKED, OpClasses};
use crate::windows::contains;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_align::{Calls, Part};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{DeviceEventClass, SliceKind, Step, StepSource, Trace, TrackId, TrackKind};

/// A pause that waited for a communication is at least this many times as long as what is recorded of that behind it.
const PAUSE_PER_LATE_END: i64 = 4;

/// What a rank does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    /// It computes or copies, for as long, ns.
    Work(i64),
    /// It does neither and waits for no communication, for as long, ns: on a rank with devices mostly for its host.
    Idle(i64),
    /// It is ready for a communication, and goes on.
    Begin(usize),
    /// It does not go on before a communication is over.
    Wait(usize),
}

/// A communication of the rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comm {
    pub(crate) part: Part,
    /// The one before it in its queue, which is its stream or its thread.
    pub(crate) after: Option<usize>,
    /// How long it takes to begin once the rank is ready for it and the one before is over, ns.
    pub(crate) lag_ns: i64,
}

/// How long a piece of work is of one category, with none of another beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WorkAlone {
    /// Which of the [`Act::Work`] of the step.
    pub(crate) work: u32,
    pub(crate) category: Category,
    pub(crate) ns: i64,
}

/// One step of a rank.
#[derive(Clone, Debug)]
pub(crate) struct RankStep {
    pub(crate) rank: u32,
    /// From when all that was begun before the step is over, to when all that was begun before its end is.
    pub(crate) span: Span,
    pub(crate) acts: Vec<Act>,
    /// By work.
    pub(crate) alone: Vec<WorkAlone>,
    /// In the order in which the rank begins them.
    pub(crate) comms: Vec<Comm>,
}

/// What happened in each step of the trace, in their order: of a step that recording cut nothing is known.
pub(crate) struct RankSteps(pub(crate) Vec<Option<RankStep>>);

impl Shared for RankSteps {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let trace = context.trace;
        let ranks = Rank::of_trace(trace, context.get::<Calls>(), &context.get::<Parts>().0);
        let is_known = |step: &Step| step.is_complete || step.source == StepSource::Whole;
        let of_step = |step: &Step| ranks.get(&step.rank).filter(|_| is_known(step)).map(|rank| rank.step(trace, step));
        Self(trace.steps.iter().map(of_step).collect())
    }
}

/// A piece of work, and from when the host has launched it; on a rank without devices when it starts.
#[derive(Clone, Copy)]
struct Piece {
    launch_ns: i64,
    span: Span,
}

/// What happens on a rank.
#[derive(Default)]
struct Rank {
    has_devices: bool,
    /// By launch.
    work: Vec<Piece>,
    busy: IntervalSet,
    /// The same work by track, until it is put in order.
    of_tracks: BTreeMap<TrackId, Vec<(Span, Category)>>,
    alone: Alone,
    /// When work ends, ascending.
    ends_ns: Vec<i64>,
    /// When what starts at a moment was launched; empty without devices.
    launched_ns: FxHashMap<i64, i64>,
    /// When the host waits for a device, by start, none over another.
    syncs: Vec<Span>,
    parts: Vec<Part>,
    /// Work and communication by launch, each with the latest end up to there.
    done: Vec<(i64, i64)>,
}

impl Rank {
    /// Every rank, with the communication that `parts` are.
    fn of_trace(trace: &Trace, calls: &Calls, parts: &[Part]) -> BTreeMap<u32, Self> {
        let mut ranks: BTreeMap<u32, Self> = BTreeMap::new();
        let start_ns = |slice: stepscope_trace::SliceId| trace.slices.start_ns[slice.index()];
        let mut classes = OpClasses::new(&trace.strings);
        let mut category_of = |op: stepscope_trace::SliceId| classes.get(trace.slices.name[op.index()]).category;
        for event in trace.device_events.iter() {
            let rank = ranks.entry(trace.devices[event.device.index()].rank).or_default();
            rank.has_devices = true;
            let span = trace.slices.span(event.slice);
            if event.class != DeviceEventClass::Communication && !span.is_empty() {
                rank.work.push(Piece { launch_ns: start_ns(event.launch.unwrap_or(event.slice)), span });
                let category = match event.class {
                    DeviceEventClass::Compute => event.op.map_or(NOT_LINKED, &mut category_of),
                    _ => COPY,
                };
                let track = trace.slices.track[event.slice.index()];
                rank.of_tracks.entry(track).or_default().push((span, category));
            }
        }
        for (at, track) in trace.tracks.iter().enumerate().filter(|(_, track)| track.kind == TrackKind::Thread) {
            let rank = ranks.entry(trace.processes[track.process.index()].rank).or_default();
            for id in track.slice_ids().filter(|id| trace.slices.dur_ns[id.index()] > 0) {
                let span = trace.slices.span(id);
                match trace.slices.kind(id) {
                    SliceKind::HostSync => rank.syncs.push(span),
                    SliceKind::Op if !rank.has_devices && calls.around(trace, id).is_none() => {
                        rank.work.push(Piece { launch_ns: span.start_ns, span });
                        let of_track = rank.of_tracks.entry(TrackId::from_index(at)).or_default();
                        of_track.push((span, category_of(id)));
                    }
                    _ => {}
                }
            }
        }
        for part in parts {
            ranks.entry(part.rank).or_default().parts.push(*part);
        }
        ranks.values_mut().for_each(|rank| rank.order(trace));
        ranks
    }

    fn order(&mut self, trace: &Trace) {
        self.syncs = IntervalSet::from_unsorted(std::mem::take(&mut self.syncs)).spans().to_vec();
        self.ends_ns = self.work.iter().map(|piece| piece.span.end_ns).collect();
        self.ends_ns.sort_unstable();
        for piece in self.work.iter().filter(|_| self.has_devices) {
            note_launch(&mut self.launched_ns, piece.span.start_ns, piece.launch_ns);
        }
        self.busy = IntervalSet::from_unsorted(self.work.iter().map(|piece| piece.span));
        self.alone = Alone::of(std::mem::take(&mut self.of_tracks).into_values());
        self.work.sort_by_key(|piece| (piece.launch_ns, piece.span.start_ns));
        self.parts.sort_by_key(|part| (asked_ns(trace, part), part.start_ns));
        let comms = self.parts.iter().map(|part| (asked_ns(trace, part), part.end_ns));
        self.done = self.work.iter().map(|piece| (piece.launch_ns, piece.span.end_ns)).chain(comms).collect();
        self.done.sort_unstable();
        let mut latest_ns = i64::MIN;
        for (_, end_ns) in &mut self.done {
            latest_ns = latest_ns.max(*end_ns);
            *end_ns = latest_ns;
        }
    }

    /// When all that was begun before `at_ns` is over, at the earliest at `at_ns`.
    fn over_ns(&self, at_ns: i64) -> i64 {
        let before = self.done.partition_point(|(launch_ns, _)| *launch_ns < at_ns);
        before.checked_sub(1).map_or(at_ns, |last| self.done[last].1.max(at_ns))
    }

    fn step(&self, trace: &Trace, step: &Step) -> RankStep {
        let span = Span::new(self.over_ns(step.span.start_ns), self.over_ns(step.span.end_ns));
        let first = self.parts.partition_point(|part| asked_ns(trace, part) < step.span.start_ns);
        let count = self.parts[first..].partition_point(|part| asked_ns(trace, part) < step.span.end_ns);
        let parts = &self.parts[first..first + count];
        let mut ends: Vec<(i64, usize)> = parts.iter().enumerate().map(|(at, part)| (part.end_ns, at)).collect();
        ends.sort_unstable();
        let ready = |at: usize| {
            let ready_ns = self.after_waiting_ns(trace, parts, &ends, at);
            (ready_ns.clamp(span.start_ns, span.end_ns), parts[at])
        };
        let mut begun: Vec<(i64, Part)> = (0..parts.len()).map(ready).collect();
        // Stable: what is ready at once stays as it was asked for.
        begun.sort_by_key(|(ready_ns, _)| *ready_ns);
        let comms = queued(trace, &begun);
        let (acts, alone) = self.acts(trace, span, &begun);
        RankStep { rank: step.rank, span, acts, alone, comms }
    }

    /// When the rank is ready for the communication `parts[at]`: after it has waited for another one, if that ended last
    /// before it begins, in a pause of work and not in its own queue. `ends` are those of `parts`, ascending.
    fn after_waiting_ns(&self, trace: &Trace, parts: &[Part], ends: &[(i64, usize)], at: usize) -> i64 {
        let ready_ns = self.ready_ns(trace, &parts[at]);
        let ended = &ends[..ends.partition_point(|(end_ns, _)| *end_ns <= parts[at].start_ns)];
        for (end_ns, other) in ended.iter().rev().take_while(|(end_ns, _)| *end_ns > ready_ns) {
            if queue(trace, &parts[*other]) == queue(trace, &parts[at]) {
                break;
            }
            if *other < at && !contains(self.busy.spans(), end_ns - 1) {
                return *end_ns;
            }
        }
        ready_ns
    }

    /// When the rank is ready for a communication, whatever others do. A kernel of communication begins when what was launched before it is
    /// over, and it is launched itself.
    fn ready_ns(&self, trace: &Trace, part: &Part) -> i64 {
        let has_ended = |piece: &&Piece| piece.span.end_ns <= part.start_ns;
        let end_of = |slice: stepscope_trace::SliceId| trace.slices.span(slice).end_ns.min(part.start_ns);
        match part.launch {
            Some(launch) => {
                let launch_ns = trace.slices.start_ns[launch.index()];
                let before = &self.work[..self.work.partition_point(|piece| piece.launch_ns <= launch_ns)];
                let last = before.iter().rev().find(has_ended);
                last.map_or(i64::MIN, |piece| piece.span.end_ns).max(end_of(launch))
            }
            None if self.has_devices => {
                let ended = self.ends_ns.partition_point(|end_ns| *end_ns <= part.start_ns);
                ended.checked_sub(1).map_or(part.start_ns, |last| self.ends_ns[last])
            }
            None => end_of(part.asked_by),
        }
    }

    fn acts(&self, trace: &Trace, span: Span, begun: &[(i64, Part)]) -> (Vec<Act>, Vec<WorkAlone>) {
        let (busy, asking) = (self.busy.clip(span), self.asking(trace, begun).clip(span));
        let mut cuts = vec![span.start_ns, span.end_ns];
        cuts.extend(busy.spans().iter().chain(asking.spans()).flat_map(|span| [span.start_ns, span.end_ns]));
        cuts.extend(begun.iter().map(|(ready_ns, _)| *ready_ns));
        cuts.sort_unstable();
        cuts.dedup();
        let mut ends: Vec<(i64, usize)> = begun.iter().enumerate().map(|(at, (_, part))| (part.end_ns, at)).collect();
        ends.sort_unstable();
        let mut begun_launched_ns = FxHashMap::default();
        for (ready_ns, part) in begun {
            if let Some(launch) = part.launch {
                note_launch(&mut begun_launched_ns, *ready_ns, trace.slices.start_ns[launch.index()]);
            }
        }
        let (mut acts, mut next) = (Acts::default(), 0);
        for cut in 0..cuts.len() {
            let (from_ns, to_ns) = (cuts[cut], cuts.get(cut + 1).copied());
            while begun.get(next).is_some_and(|(ready_ns, _)| *ready_ns == from_ns) {
                acts.meet(Act::Begin(next));
                next += 1;
            }
            let Some(to_ns) = to_ns else { break };
            if contains(busy.spans(), from_ns) {
                acts.work_ns += to_ns - from_ns;
                self.alone.add_to(Span::new(from_ns, to_ns), &mut acts.alone_ns);
                continue;
            }
            if contains(asking.spans(), from_ns) {
                acts.idle_ns += to_ns - from_ns;
                continue;
            }
            let first = ends.partition_point(|(end_ns, _)| *end_ns <= from_ns);
            let ended = &ends[first..ends.partition_point(|(end_ns, _)| *end_ns <= to_ns)];
            let last_ns = ended.last().map(|(end_ns, _)| *end_ns);
            let launched = [&self.launched_ns, &begun_launched_ns].into_iter().filter_map(|of| of.get(&to_ns));
            let launched_ns = launched.min().copied();
            let is_awaited = |last_ns: &i64| self.waits_until(*last_ns, launched_ns);
            match last_ns.filter(is_awaited) {
                Some(last_ns) => {
                    let last = ended.iter().filter(|(end_ns, _)| *end_ns == last_ns);
                    last.for_each(|(_, at)| acts.meet(Act::Wait(*at)));
                    acts.idle_ns += to_ns - last_ns;
                }
                None => match self.ends_late(begun, &ends, Span::new(from_ns, to_ns)) {
                    Some(at) => acts.meet(Act::Wait(at)),
                    None => acts.idle_ns += to_ns - from_ns,
                },
            }
        }
        acts.finish()
    }

    /// The communication that a pause of a rank without devices waited for, though its end is recorded after the pause: the
    /// thread that carries it out wakes the one that waits first.
    fn ends_late(&self, begun: &[(i64, Part)], ends: &[(i64, usize)], pause: Span) -> Option<usize> {
        let (end_ns, at) = *ends.get(ends.partition_point(|(end_ns, _)| *end_ns <= pause.end_ns))?;
        let is_late = (end_ns - pause.end_ns).saturating_mul(PAUSE_PER_LATE_END) <= pause.duration_ns();
        (!self.has_devices && is_late && begun[at].0 <= pause.start_ns).then_some(at)
    }

    /// When a rank without devices asks for communication, up to where it is ready: then it waits for none.
    fn asking(&self, trace: &Trace, begun: &[(i64, Part)]) -> IntervalSet {
        let asked = begun.iter().filter(|_| !self.has_devices).map(|(ready_ns, part)| {
            let asked_ns = trace.slices.start_ns[part.asked_by.index()];
            Span::new(asked_ns.min(*ready_ns), *ready_ns)
        });
        IntervalSet::from_unsorted(asked)
    }

    /// Whether what comes next may have waited for a communication that ended at `end_ns`: unless the host launched it
    /// later, without having waited for the device.
    fn waits_until(&self, end_ns: i64, next_launch_ns: Option<i64>) -> bool {
        let before = self.syncs.partition_point(|span| span.start_ns < end_ns).checked_sub(1);
        let sync = before.map(|at| self.syncs[at]);
        next_launch_ns.is_none_or(|launch_ns| launch_ns <= end_ns) || sync.is_some_and(|span| span.end_ns >= end_ns)
    }
}

/// Acts as they are put together. Between two meetings with others only sums count: they are one act each.
#[derive(Default)]
struct Acts {
    acts: Vec<Act>,
    alone: Vec<WorkAlone>,
    /// Pieces of work among `acts`.
    works: u32,
    work_ns: i64,
    /// The part of `work_ns` in which one category runs alone.
    alone_ns: BTreeMap<Category, i64>,
    idle_ns: i64,
}

impl Acts {
    /// Adds a beginning or a wait.
    fn meet(&mut self, act: Act) {
        self.flush();
        self.acts.push(act);
    }

    fn flush(&mut self) {
        let work = self.works;
        let alone = std::mem::take(&mut self.alone_ns);
        self.alone.extend(alone.into_iter().map(|(category, ns)| WorkAlone { work, category, ns }));
        self.works += u32::from(self.work_ns > 0);
        let own = [Act::Work(std::mem::take(&mut self.work_ns)), Act::Idle(std::mem::take(&mut self.idle_ns))];
        self.acts.extend(own.into_iter().filter(|act| !matches!(act, Act::Work(0) | Act::Idle(0))));
    }

    fn finish(mut self) -> (Vec<Act>, Vec<WorkAlone>) {
        self.flush();
        (self.acts, self.alone)
    }
}

/// Notes when what begins at a moment was launched: the first of it.
fn note_launch(launched_ns: &mut FxHashMap<i64, i64>, at_ns: i64, launch_ns: i64) {
    launched_ns.entry(at_ns).and_modify(|known| *known = launch_ns.min(*known)).or_insert(launch_ns);
}

/// When the host asks for a communication; that of a kernel without a call when it is launched or starts.
fn asked_ns(trace: &Trace, part: &Part) -> i64 {
    let slice = if part.asked_by == part.carried_by { part.launch.unwrap_or(part.asked_by) } else { part.asked_by };
    trace.slices.start_ns[slice.index()]
}

/// The stream or thread on which a communication is carried out.
fn queue(trace: &Trace, part: &Part) -> TrackId {
    first_lane(trace, trace.slices.track[part.carried_by.index()])
}

/// Communications with the ones before them in their queues.
fn queued(trace: &Trace, begun: &[(i64, Part)]) -> Vec<Comm> {
    let mut by_start: Vec<usize> = (0..begun.len()).collect();
    by_start.sort_by_key(|at| begun[*at].1.start_ns);
    let mut last_of: FxHashMap<TrackId, usize> = FxHashMap::default();
    let mut after: Vec<Option<usize>> = vec![None; begun.len()];
    for at in by_start {
        let part = &begun[at].1;
        let before = last_of.insert(queue(trace, part), at);
        after[at] = before.filter(|before| begun[*before].1.end_ns <= part.start_ns);
    }
    let comm = |((ready_ns, part), after): (&(i64, Part), Option<usize>)| {
        let free_ns = after.map_or(*ready_ns, |before: usize| begun[before].1.end_ns.max(*ready_ns));
        Comm { part: *part, after, lag_ns: (part.start_ns - free_ns).max(0) }
    };
    begun.iter().zip(after).map(comm).collect()
}
