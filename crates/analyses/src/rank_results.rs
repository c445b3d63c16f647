//! What the analyses of several ranks need of the events of one: a trace of few slices, and what was computed from all
//! others. Both are small, so that they can be kept beside a rank and many ranks can be compared at once.
//!
//! ```text
//! whole trace of a rank ─▶ condensed ─▶ few slices + RankResults ─▶ merged with those of other ranks ─▶ given ─▶ analyses
//! ```

mod first_ids;

pub use first_ids::FirstIds;

use crate::communication::Parts;
use crate::context::SharedResults;
use crate::coverage::Launched;
use crate::device_work::{DeviceWork, device_work};
use crate::host_threads::MainThreads;
use crate::imbalance::{StepKernels, StepsKernels};
use crate::micro_batches::StepsPasses;
use crate::op_classes::category_named;
use crate::processor_waits::StepsProcessorWaits;
use crate::ranks_overview::{StepBusy, StepsBusy};
use crate::stretches::{Stretch, Stretches};
use crate::what_if::of_rank::{Act, Comm, RankStep, RankSteps, WorkAlone};
use crate::{AnalysisContext, Coverage, Selection, hangs};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepscope_align::Part;
use stepscope_base::Span;
use stepscope_trace::{DeviceEventClass, ProcessId, Reduced, SliceId, Step, StepSource, Trace, TrackId};

/// What was computed of the events of one trace. Its slices, tracks and processes are those of the condensed trace.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RankResults {
    steps: Vec<StepResults>,
    stretches: Vec<StretchRow>,
    main_threads: Vec<MainThread>,
    launched: Vec<LaunchedOfRank>,
    work: Vec<DeviceWork>,
}

/// What is known of a step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct StepResults {
    /// The process of the step.
    process: ProcessId,
    /// The how-manieth step of its process it is.
    place: u32,
    busy: StepBusy,
    kernels: StepKernels,
    launched: Launched,
    /// Computing of forward and of backward passes.
    passes_ns: [i64; 2],
    /// How long its thread could have run, and did not.
    processor_waits_ns: i64,
    replay: Option<Replay>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct LaunchedOfRank {
    rank: u32,
    launched: Launched,
}

/// A [`Stretch`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct StretchRow {
    asked_by: SliceId,
    previous: SliceId,
    parts_ns: Vec<i64>,
    clock_mhz: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct MainThread {
    process: ProcessId,
    track: TrackId,
}

/// A [`RankStep`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Replay {
    /// From the start of the step to that of its span, and to the end of it.
    begins_after_ns: i64,
    ends_after_ns: i64,
    acts: Vec<ActRow>,
    alone: Vec<WorkAloneRow>,
    comms: Vec<CommRow>,
}

/// A [`WorkAlone`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct WorkAloneRow {
    work: u32,
    category: String,
    ns: i64,
}

/// Work, time without work, and what comes then, if anything does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct ActRow {
    work_ns: i64,
    idle_ns: i64,
    begins: Option<u32>,
    awaits: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct CommRow {
    asked_by: SliceId,
    after: Option<u32>,
    lag_ns: i64,
}

/// The trace of `context`, whatever part of it is asked for, with the slices that other ranks are compared by, and what
/// was computed of all of it.
pub fn condensed(context: &AnalysisContext<'_>) -> (Trace, RankResults) {
    let reduced = context.trace.reduced_to(kept_slices(context));
    let results = RankResults::of(context, &reduced);
    let mut trace = reduced.trace;
    trace.device_events =
        trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Communication).collect();
    (trace, results)
}

/// What says that a slice is a collective, carries it out or launches it; what was going on when a recording ended; the
/// first and the last slice; and one call of a file, which tells that files were recorded.
fn kept_slices(context: &AnalysisContext<'_>) -> Vec<SliceId> {
    let trace = context.trace;
    let ids = || trace.slices.ids();
    let mut kept: Vec<SliceId> = trace.collectives.iter().map(|said| said.slice).collect();
    for event in trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Communication) {
        kept.extend([Some(event.slice), event.launch, event.op].into_iter().flatten());
    }
    kept.extend(ids().min_by_key(|id| trace.slices.start_ns[id.index()]));
    kept.extend(ids().max_by_key(|id| trace.slices.span(*id).end_ns));
    kept.extend(trace.io.first().map(|call| call.slice));
    let open = ids().filter(|id| trace.slices.is_unfinished[id.index()]);
    let last = hangs::last_slices(context);
    kept.extend(open.chain(last).flat_map(|id| trace.slices.with_ancestors(id)));
    kept
}

/// The steps of a trace with the process of each and the how-manieth of its process it is.
fn places(trace: &Trace) -> impl Iterator<Item = ((ProcessId, u32), &Step)> {
    let mut counts: FxHashMap<ProcessId, u32> = FxHashMap::default();
    trace.steps.iter().map(move |step| {
        let count = counts.entry(step.process).or_default();
        *count += 1;
        ((step.process, *count - 1), step)
    })
}

impl RankResults {
    fn of(context: &AnalysisContext<'_>, reduced: &Reduced) -> Self {
        let trace = context.trace;
        let slice = |id: SliceId| reduced.slice(id).expect("what results refer to is kept");
        let (busy, kernels) = (context.get::<StepsBusy>(), context.get::<StepsKernels>());
        let passes = context.get::<StepsPasses>();
        let processor_waits = context.get::<StepsProcessorWaits>();
        let replays = context.get::<RankSteps>();
        let launches = Launches::of(trace);
        let steps = places(trace).enumerate().map(|(at, ((process, place), step))| StepResults {
            process,
            place,
            busy: busy.0[at],
            kernels: kernels.0[at].clone(),
            launched: launches.of_step(step),
            passes_ns: passes.0[at],
            processor_waits_ns: processor_waits.0[at],
            replay: replays.0[at].as_ref().map(|replay| Replay::of(step, replay, slice)),
        });
        let stretch = |(asked_by, stretch): (&SliceId, &Stretch)| StretchRow {
            asked_by: slice(*asked_by),
            previous: slice(stretch.previous),
            parts_ns: stretch.parts_ns.to_vec(),
            clock_mhz: stretch.clock_mhz,
        };
        let mut stretches: Vec<StretchRow> = context.get::<Stretches>().0.iter().map(stretch).collect();
        stretches.sort_by_key(|row| row.asked_by);
        let main_threads = context.get::<MainThreads>().0.iter();
        Self {
            steps: steps.collect(),
            stretches,
            main_threads: main_threads
                .map(|(process, track)| MainThread { process: *process, track: *track })
                .collect(),
            launched: launches.of_ranks(),
            work: device_work(context),
        }
    }

    /// When the devices of each rank do anything but communicate, in the order of ranks.
    pub fn work(&self) -> &[DeviceWork] {
        &self.work
    }

    /// States that all of it is of this rank.
    pub fn set_rank(&mut self, rank: u32) {
        self.launched.iter_mut().for_each(|of_rank| of_rank.rank = rank);
        self.work.iter_mut().for_each(|work| work.rank = rank);
    }

    /// Takes every moment as `of` has it.
    pub fn set_moments(&mut self, of: impl Fn(i64) -> i64) {
        for span in self.work.iter_mut().flat_map(|work| &mut work.spans) {
            *span = Span::new(of(span.start_ns), of(span.end_ns));
        }
    }

    /// Whether it fits `trace`: what it refers to is there.
    pub fn fits(&self, trace: &Trace) -> bool {
        let is_slice = |id: SliceId| id.index() < trace.slices.len();
        let is_process = |id: ProcessId| id.index() < trace.processes.len();
        let fits_comms = |replay: &Replay| {
            let is_comm = |at: Option<u32>| at.is_none_or(|at| (at as usize) < replay.comms.len());
            replay.comms.iter().all(|row| is_slice(row.asked_by) && is_comm(row.after))
                && replay.acts.iter().all(|row| is_comm(row.begins) && is_comm(row.awaits))
        };
        let is_in_order = |spans: &[Span]| {
            spans.iter().all(|span| !span.is_empty()) && spans.windows(2).all(|pair| pair[0].end_ns < pair[1].start_ns)
        };
        let own_places = self.steps.iter().map(|step| (step.process, step.place));
        own_places.eq(places(trace).map(|(place, _)| place))
            && self.steps.iter().filter_map(|step| step.replay.as_ref()).all(fits_comms)
            && self.stretches.iter().all(|row| {
                is_slice(row.asked_by) && is_slice(row.previous) && row.parts_ns.len() == crate::LateCause::ALL.len()
            })
            && self.work.iter().all(|work| is_in_order(&work.spans))
            && self.main_threads.iter().all(|row| is_process(row.process) && row.track.index() < trace.tracks.len())
    }
}

/// What was launched, by rank and moment.
struct Launches {
    of_rank: BTreeMap<u32, Vec<(i64, Launched)>>,
}

impl Launches {
    fn of(trace: &Trace) -> Self {
        let mut of_rank: BTreeMap<u32, Vec<(i64, Launched)>> = BTreeMap::new();
        for event in trace.device_events.iter() {
            let at_ns = trace.slices.start_ns[event.launch.unwrap_or(event.slice).index()];
            let rank = trace.devices[event.device.index()].rank;
            of_rank.entry(rank).or_default().push((at_ns, Launched::of_event(trace, &event)));
        }
        of_rank.values_mut().for_each(|launches| launches.sort_unstable_by_key(|(at_ns, _)| *at_ns));
        Self { of_rank }
    }

    fn of_step(&self, step: &Step) -> Launched {
        let all = self.of_rank.get(&step.rank).map_or(&[][..], |all| all);
        let first = all.partition_point(|(at_ns, _)| *at_ns < step.span.start_ns);
        let inside = all[first..].iter().take_while(|(at_ns, _)| *at_ns < step.span.end_ns);
        inside.map(|(_, launched)| *launched).sum()
    }

    fn of_ranks(&self) -> Vec<LaunchedOfRank> {
        let sum = |all: &Vec<(i64, Launched)>| all.iter().map(|(_, launched)| *launched).sum();
        self.of_rank.iter().map(|(rank, all)| LaunchedOfRank { rank: *rank, launched: sum(all) }).collect()
    }
}

impl Replay {
    fn of(step: &Step, replay: &RankStep, slice: impl Fn(SliceId) -> SliceId) -> Self {
        let (mut acts, mut own) = (Vec::new(), ActRow::default());
        let place = |at: usize| u32::try_from(at).ok();
        for act in &replay.acts {
            match *act {
                Act::Work(ns) => own.work_ns += ns,
                Act::Idle(ns) => own.idle_ns += ns,
                Act::Begin(at) => acts.push(ActRow { begins: place(at), ..std::mem::take(&mut own) }),
                Act::Wait(at) => acts.push(ActRow { awaits: place(at), ..std::mem::take(&mut own) }),
            }
        }
        acts.push(own);
        let comm = |comm: &Comm| CommRow {
            asked_by: slice(comm.part.asked_by),
            after: comm.after.and_then(place),
            lag_ns: comm.lag_ns,
        };
        let alone =
            |alone: &WorkAlone| WorkAloneRow { work: alone.work, category: alone.category.into(), ns: alone.ns };
        Self {
            begins_after_ns: replay.span.start_ns - step.span.start_ns,
            ends_after_ns: replay.span.end_ns - step.span.start_ns,
            acts,
            alone: replay.alone.iter().map(alone).collect(),
            comms: replay.comms.iter().map(comm).collect(),
        }
    }

    /// The step again, with the parts that its communications are; `None` when one of them is not there.
    fn replayed(&self, step: &Step, part: impl Fn(SliceId) -> Option<Part>) -> Option<RankStep> {
        let comm = |row: &CommRow| {
            let after = row.after.map(|at| at as usize);
            Some(Comm { part: part(row.asked_by)?, after, lag_ns: row.lag_ns })
        };
        let acts = self.acts.iter().flat_map(|row| {
            let begin = row.begins.map(|at| Act::Begin(at as usize));
            let wait = row.awaits.map(|at| Act::Wait(at as usize));
            let own = [Act::Work(row.work_ns), Act::Idle(row.idle_ns)];
            let own = own.into_iter().filter(|act| !matches!(act, Act::Work(0) | Act::Idle(0)));
            own.chain(begin).chain(wait)
        });
        let alone = |row: &WorkAloneRow| {
            Some(WorkAlone { work: row.work, category: category_named(&row.category)?, ns: row.ns })
        };
        let start_ns = step.span.start_ns;
        Some(RankStep {
            rank: step.rank,
            span: Span::new(start_ns + self.begins_after_ns, start_ns + self.ends_after_ns),
            acts: acts.collect(),
            alone: self.alone.iter().filter_map(alone).collect(),
            comms: self.comms.iter().map(comm).collect::<Option<_>>()?,
        })
    }
}

/// What analyses share of `selection` of `trace`, which condensed traces were merged into, each with its results.
/// `in_window` is the device time that was asked for where the selection has a window, which results know nothing of.
pub fn given(
    trace: &Trace,
    ranks: &[(FirstIds, &RankResults)],
    selection: &Selection,
    in_window: Option<Launched>,
) -> SharedResults {
    let results = by_step(ranks);
    let steps: Vec<(&Step, FirstIds, &StepResults)> =
        places(trace).map(|(place, step)| (step, results[&place].0, results[&place].1)).collect();
    let shared = SharedResults::default();
    shared.give(StepsBusy(steps.iter().map(|(.., results)| results.busy).collect()));
    shared.give(StepsKernels(steps.iter().map(|(.., results)| results.kernels.clone()).collect()));
    shared.give(StepsPasses(steps.iter().map(|(.., results)| results.passes_ns).collect()));
    shared.give(StepsProcessorWaits(steps.iter().map(|(.., results)| results.processor_waits_ns).collect()));
    shared.give(in_window.map_or_else(|| coverage(trace, ranks, selection), Launched::coverage));
    let threads = ranks.iter().flat_map(|(first, results)| {
        let thread = |row: &MainThread| (ProcessId(first.process + row.process.0), TrackId(first.track + row.track.0));
        results.main_threads.iter().map(thread)
    });
    shared.give(MainThreads(threads.collect()));
    let stretches = ranks.iter().flat_map(|(first, results)| {
        let slice = |id: SliceId| SliceId(first.slice + id.0);
        results.stretches.iter().filter_map(move |row| {
            let parts_ns = row.parts_ns.as_slice().try_into().ok()?;
            let (previous, clock_mhz) = (slice(row.previous), row.clock_mhz);
            Some((slice(row.asked_by), Stretch { previous, parts_ns, clock_mhz }))
        })
    });
    shared.give(Stretches(stretches.collect()));
    let context = AnalysisContext::with_results(trace, selection, shared.clone());
    let parts: FxHashMap<SliceId, Part> = context.get::<Parts>().0.iter().map(|part| (part.asked_by, *part)).collect();
    let replays = steps.iter().map(|(step, first, results)| {
        let part = |id: SliceId| parts.get(&SliceId(first.slice + id.0)).copied();
        results.replay.as_ref()?.replayed(step, part)
    });
    shared.give(RankSteps(replays.collect()));
    shared
}

/// What results of `selection` rest on; it has no window.
fn coverage(trace: &Trace, ranks: &[(FirstIds, &RankResults)], selection: &Selection) -> Coverage {
    let launched: Launched = if selection.is_part() {
        let is_asked = |step: &Step| {
            let is_complete = step.is_complete && step.source != StepSource::Whole;
            selection.has_step(step) && (is_complete || !selection.complete_steps)
        };
        let results = by_step(ranks);
        let asked = places(trace).filter(|(_, step)| is_asked(step));
        asked.map(|(place, _)| results[&place].1.launched).sum()
    } else {
        let all = ranks.iter().flat_map(|(_, results)| &results.launched);
        all.filter(|of_rank| selection.has_rank(of_rank.rank)).map(|of_rank| of_rank.launched).sum()
    };
    launched.coverage()
}

/// The results of each step of the merged trace, with where those of its trace begin.
fn by_step<'a>(ranks: &[(FirstIds, &'a RankResults)]) -> FxHashMap<(ProcessId, u32), (FirstIds, &'a StepResults)> {
    let steps = ranks.iter().flat_map(|(first, results)| results.steps.iter().map(move |step| (*first, step)));
    steps.map(|(first, step)| ((ProcessId(first.process + step.process.0), step.place), (first, step))).collect()
}

#[cfg(test)]
pub(crate) mod tests;
