//! When a rank computes beside input and output, and when it does either without computing.
//!
//! ```text
//! computes  ████████····        only computing  ██··········
//! output    ··██····██··        hidden output   ··██····      exposed output  ········██··
//! input     ···███···███        hidden input    ····██··      exposed input   ··········██
//! ```
//!
//! Output is divided once more, into that of checkpoints and all other.

use crate::checkpoints::CheckpointTimes;
use crate::host_threads::{Doing, MainThreads, Threads, first_lane};
use crate::io_calls::IoCall;
use crate::io_files::helpers;
use crate::ranks_overview::{RankBusy, computing};
use crate::{AnalysisContext, Selection};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::Calls;
use stepscope_base::{IntervalSet, Span, StringId, StringTable};
use stepscope_trace::{IoAction, ProcessId, SliceRole, StepSource, TrackId, TrackKind};

/// The parts of a stretch of time of a rank; they sum to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Parts {
    pub(super) compute_ns: i64,
    pub(super) hidden_input_ns: i64,
    pub(super) exposed_input_ns: i64,
    pub(super) hidden_checkpoint_ns: i64,
    pub(super) exposed_checkpoint_ns: i64,
    pub(super) hidden_output_ns: i64,
    pub(super) exposed_output_ns: i64,
    pub(super) other_ns: i64,
    /// Whether anything says when the rank computes.
    pub(super) is_compute_known: bool,
}

impl Parts {
    pub(super) fn total_ns(&self) -> i64 {
        let hidden_ns = self.hidden_input_ns + self.hidden_checkpoint_ns + self.hidden_output_ns;
        let exposed_ns = self.exposed_input_ns + self.exposed_checkpoint_ns + self.exposed_output_ns;
        self.compute_ns + hidden_ns + exposed_ns + self.other_ns
    }

    /// Those of two stretches together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            compute_ns: self.compute_ns + other.compute_ns,
            hidden_input_ns: self.hidden_input_ns + other.hidden_input_ns,
            exposed_input_ns: self.exposed_input_ns + other.exposed_input_ns,
            hidden_checkpoint_ns: self.hidden_checkpoint_ns + other.hidden_checkpoint_ns,
            exposed_checkpoint_ns: self.exposed_checkpoint_ns + other.exposed_checkpoint_ns,
            hidden_output_ns: self.hidden_output_ns + other.hidden_output_ns,
            exposed_output_ns: self.exposed_output_ns + other.exposed_output_ns,
            other_ns: self.other_ns + other.other_ns,
            is_compute_known: self.is_compute_known || other.is_compute_known,
        }
    }
}

/// What a rank does with files, over all of its time.
pub(crate) struct RankIo {
    /// When it computes; `None` where nothing says that.
    pub(crate) compute: Option<IntervalSet>,
    only_compute: IntervalSet,
    hidden_input: IntervalSet,
    pub(crate) exposed_input: IntervalSet,
    hidden_checkpoint: IntervalSet,
    exposed_checkpoint: IntervalSet,
    hidden_output: IntervalSet,
    exposed_output: IntervalSet,
}

impl RankIo {
    /// That of a rank with all of its calls, by start, of whose processes `checkpoints` says when they write some; `None`
    /// where it neither calls files nor waits for data.
    pub(super) fn of<'a>(
        context: &AnalysisContext<'_>,
        rank: u32,
        calls: impl Iterator<Item = &'a IoCall> + Clone,
        checkpoints: &CheckpointTimes,
    ) -> Option<Self> {
        let runners = Runners::of(context, rank);
        let waits = runners.doing(context, Doing::DataLoader);
        if calls.clone().next().is_none() && waits.is_empty() {
            return None;
        }
        let compute = runners.compute(context, rank, &waits);
        let written = written_files(calls.clone());
        let tracks = &context.trace.tracks;
        let is_first = |track| runners.threads.contains(&first_lane(context.trace, track));
        let is_first: Vec<bool> = (0..tracks.len()).map(|at| is_first(TrackId::from_index(at))).collect();
        let is_runner: Vec<bool> = tracks.iter().map(|track| runners.processes.contains(&track.process)).collect();
        let (mut input_of_first, mut all, mut of_runners) = (IntervalSet::default(), Sets::default(), Sets::default());
        for call in calls {
            let (is_output, track) = (is_output(call, &written), call.track.index());
            let is_checkpoint = is_output && checkpoints.contain(call);
            if !is_output && is_first[track] {
                input_of_first.push(call.span);
            }
            let sets = std::iter::once(&mut all).chain(is_runner[track].then_some(&mut of_runners));
            sets.for_each(|sets| sets.of(is_output, is_checkpoint).push(call.span));
        }
        // What the thread that runs the steps does counts first, then output, then input.
        let first = waits.union(&input_of_first);
        let [all, of_runners] = [all, of_runners].map(|sets| sets.apart(&first));
        let nothing = IntervalSet::default();
        let computes = compute.as_ref().unwrap_or(&nothing);
        Some(Self {
            only_compute: computes.subtract(&all.input.union(&all.checkpoint).union(&all.other_output)),
            hidden_input: all.input.intersect(computes),
            exposed_input: of_runners.input.subtract(computes),
            hidden_checkpoint: all.checkpoint.intersect(computes),
            exposed_checkpoint: of_runners.checkpoint.subtract(computes),
            hidden_output: all.other_output.intersect(computes),
            exposed_output: of_runners.other_output.subtract(computes),
            compute,
        })
    }

    /// The parts of a stretch of time.
    pub(super) fn parts(&self, span: Span) -> Parts {
        let ns = |set: &IntervalSet| set.clip(span).total_ns();
        let mut parts = Parts {
            compute_ns: ns(&self.only_compute),
            hidden_input_ns: ns(&self.hidden_input),
            exposed_input_ns: ns(&self.exposed_input),
            hidden_checkpoint_ns: ns(&self.hidden_checkpoint),
            exposed_checkpoint_ns: ns(&self.exposed_checkpoint),
            hidden_output_ns: ns(&self.hidden_output),
            exposed_output_ns: ns(&self.exposed_output),
            other_ns: 0,
            is_compute_known: self.compute.is_some(),
        };
        parts.other_ns = span.duration_ns() - parts.total_ns();
        assert!(parts.other_ns >= 0, "no moment is of two parts");
        parts
    }
}

/// When some processes are in calls of each sort.
#[derive(Default)]
struct Sets {
    input: IntervalSet,
    checkpoint: IntervalSet,
    other_output: IntervalSet,
}

impl Sets {
    fn of(&mut self, is_output: bool, is_checkpoint: bool) -> &mut IntervalSet {
        match (is_output, is_checkpoint) {
            (false, _) => &mut self.input,
            (true, true) => &mut self.checkpoint,
            (true, false) => &mut self.other_output,
        }
    }

    /// Without what lies over each other: `first` is input, and counts before all else.
    fn apart(&self, first: &IntervalSet) -> Self {
        let output = self.checkpoint.union(&self.other_output);
        Self {
            input: first.union(&self.input.subtract(&output)),
            checkpoint: self.checkpoint.subtract(first),
            other_output: self.other_output.subtract(first).subtract(&self.checkpoint),
        }
    }
}

/// The files that some of `calls` write.
pub(crate) fn written_files<'a>(calls: impl IntoIterator<Item = &'a IoCall>) -> FxHashSet<StringId> {
    let writes = calls.into_iter().filter(|call| call.event.action == IoAction::Write);
    writes.map(|call| call.event.file).filter(|file| *file != StringTable::EMPTY).collect()
}

/// Whether a call is one on a file that is written, or copies to one.
pub(crate) fn is_output(call: &IoCall, written: &FxHashSet<StringId>) -> bool {
    call.event.action == IoAction::Write || call.event.copies() || written.contains(&call.event.file)
}

/// The processes of a rank that run its steps, and their threads that do.
pub(crate) struct Runners {
    pub(crate) processes: BTreeSet<ProcessId>,
    /// By their first lanes.
    pub(crate) threads: BTreeSet<TrackId>,
}

impl Runners {
    pub(crate) fn of(context: &AnalysisContext<'_>, rank: u32) -> Self {
        let trace = context.trace;
        let whole = Selection { ranks: rank.into(), ..Selection::default() };
        let steps = whole.steps(trace).filter(|step| step.source != StepSource::Whole);
        let mut processes: BTreeSet<ProcessId> = steps.map(|step| step.process).collect();
        if processes.is_empty() {
            let all = helpers(trace).into_iter().enumerate().filter(|(_, is_helper)| !is_helper);
            let ids = all.map(|(at, _)| ProcessId::from_index(at));
            processes = ids.filter(|id| trace.processes[id.index()].rank == rank).collect();
        }
        let main_threads = &context.get::<MainThreads>().0;
        let threads = processes.iter().filter_map(|process| main_threads.get(process).copied()).collect();
        Self { processes, threads }
    }

    /// When one of the threads does something.
    pub(crate) fn doing(&self, context: &AnalysisContext<'_>, what: Doing) -> IntervalSet {
        let threads = context.get::<Threads>();
        let of_thread = |track: &TrackId| threads.get(context.trace, *track).doing(what).spans().iter().copied();
        self.threads.iter().flat_map(of_thread).collect()
    }

    /// When the rank computes; `None` where nothing says that.
    fn compute(&self, context: &AnalysisContext<'_>, rank: u32, waits: &IntervalSet) -> Option<IntervalSet> {
        let trace = context.trace;
        if let Some(busy) = context.get::<BTreeMap<u32, RankBusy>>().get(&rank).filter(|busy| busy.has_device_events) {
            return Some(busy.compute.clone());
        }
        let calls = context.get::<Calls>();
        let lanes = self.threads.iter().flat_map(|thread| trace.lanes(*thread));
        let in_operators: Vec<Span> =
            lanes.flat_map(|lane| computing(trace, calls, &trace.tracks[lane.index()]).spans().to_vec()).collect();
        let busy = if in_operators.is_empty() { self.in_labels(context) } else { in_operators };
        let elsewhere = waits.union(&self.doing(context, Doing::Io));
        (!busy.is_empty()).then(|| IntervalSet::from_unsorted(busy).subtract(&elsewhere))
    }

    /// When labels say that they compute.
    fn in_labels(&self, context: &AnalysisContext<'_>) -> Vec<Span> {
        let trace = context.trace;
        if !trace.roles.iter().any(|(_, role)| *role == SliceRole::Compute) {
            return Vec::new();
        }
        let is_own = |track: &&stepscope_trace::Track| {
            track.kind == TrackKind::Thread && self.processes.contains(&track.process)
        };
        let slices = trace.tracks.iter().filter(is_own).flat_map(|track| track.slice_ids());
        slices.filter(|id| trace.role(*id) == Some(SliceRole::Compute)).map(|id| trace.slices.span(id)).collect()
    }
}
