//! The training loops that rules judge by: the complete steps of one process, and the thread that runs them.

use super::Advice;
use super::facts::share;
use crate::device_busy::busy_of;
use crate::host_threads::MainThreads;
use crate::{AnalysisContext, Selection};
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{DeviceId, ProcessId, SliceId, SliceKind, Step, Trace, TrackId};

/// Share of the steps from which on a rule of loops applies; less is noise.
pub(super) const THRESHOLD: f64 = 0.04;
/// And in time.
const LEAST_NS: i64 = 1_000_000;
/// With fewer steps nobody knows what is a habit.
pub(super) const LEAST_STEPS: usize = 5;

/// The steps of one process.
pub(super) struct Loop {
    pub(super) rank: u32,
    pub(super) process: ProcessId,
    /// The thread that runs them, by its first lane; `None` when nothing is recorded of a thread.
    pub(super) thread: Option<TrackId>,
    /// Complete ones, in order.
    pub(super) steps: Vec<Step>,
    /// The steps together.
    pub(super) windows: IntervalSet,
    /// When a device of the rank works.
    pub(super) device: IntervalSet,
}

/// The loops of the steps asked for that have enough of them.
pub(super) fn loops(context: &AnalysisContext<'_>, selection: &Selection) -> Vec<Loop> {
    let steps: Vec<Step> = selection.complete_steps(context.trace).copied().collect();
    let of_processes = steps.chunk_by(|a, b| (a.rank, a.process) == (b.rank, b.process));
    of_processes.filter(|steps| steps.len() >= LEAST_STEPS).map(|steps| Loop::of(context, steps)).collect()
}

impl Loop {
    fn of(context: &AnalysisContext<'_>, steps: &[Step]) -> Self {
        let Step { rank, process, .. } = steps[0];
        Self {
            rank,
            process,
            thread: context.get::<MainThreads>().0.get(&process).copied(),
            steps: steps.to_vec(),
            windows: steps.iter().map(|step| step.span).collect(),
            device: busy_of(context, rank),
        }
    }

    /// Time of the steps.
    pub(super) fn window_ns(&self) -> i64 {
        self.windows.total_ns()
    }

    /// A row about `ns` of the steps, when it is worth a word.
    pub(super) fn row(&self, ns: i64) -> Option<Advice> {
        let row = share(ns, self.window_ns(), THRESHOLD).filter(|_| ns >= LEAST_NS)?;
        Some(Advice { rank: Some(self.rank), ..row })
    }

    /// How many of `count` are in a step, on average, rounded.
    pub(super) fn per_step(&self, count: i64) -> i64 {
        let steps = self.steps.len() as i64;
        (count + steps / 2) / steps
    }

    /// The slices of its process, on any thread, that begin in a step.
    pub(super) fn slices<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = SliceId> + 'a {
        let tracks = trace.tracks.iter().filter(|track| track.process == self.process);
        tracks.flat_map(|track| track.slice_ids()).filter(|id| self.has(trace.slices.start_ns[id.index()]))
    }

    /// The devices of its rank.
    pub(super) fn devices(&self, trace: &Trace) -> impl Iterator<Item = DeviceId> {
        let of_rank = trace.devices.iter().enumerate().filter(|(_, device)| device.rank == self.rank);
        of_rank.map(|(at, _)| DeviceId::from_index(at)).collect::<Vec<_>>().into_iter()
    }

    /// Whether a moment is in a step.
    pub(super) fn has(&self, at_ns: i64) -> bool {
        self.step_at(at_ns).is_some()
    }

    /// The place of the step that a moment is in; steps of one process follow each other.
    pub(super) fn step_at(&self, at_ns: i64) -> Option<usize> {
        let at = self.steps.partition_point(|step| step.span.end_ns <= at_ns);
        self.steps.get(at).filter(|step| step.span.contains(at_ns)).map(|_| at)
    }

    /// How long each step takes its device or its host, whichever is longer. The host runs ahead of the device until a queue
    /// is full: the first steps are short, and later ones wait for the work of those before.
    pub(super) fn paces(&self, trace: &Trace) -> Vec<i64> {
        let mut worked = vec![Vec::new(); self.steps.len()];
        for event in trace.device_events.iter().filter(|event| trace.devices[event.device.index()].rank == self.rank) {
            let step = event.launch.and_then(|launch| self.step_at(trace.slices.start_ns[launch.index()]));
            step.into_iter().for_each(|step| worked[step].push(trace.slices.span(event.slice)));
        }
        let pace = |(step, spans): (&Step, Vec<Span>)| {
            step.span.duration_ns().max(IntervalSet::from_unsorted(spans).total_ns())
        };
        self.steps.iter().zip(worked).map(pace).collect()
    }

    /// Where a step begins: the label that marks it, where there is one.
    pub(super) fn label(&self, trace: &Trace, span: Span) -> Option<SliceId> {
        let tracks = trace.tracks.iter().filter(|track| track.process == self.process);
        let mut labels = tracks.flat_map(|track| track.slice_ids());
        labels.find(|id| trace.slices.kind(*id) == SliceKind::Step && trace.slices.span(*id) == span)
    }
}

/// The median of some durations; 0 without any.
pub(super) fn median(values: impl IntoIterator<Item = i64>) -> i64 {
    nearest_rank_of_unsorted(&mut values.into_iter().collect::<Vec<i64>>(), 50).unwrap_or(0)
}

/// Drawings of loops, for tests.
#[cfg(test)]
pub(super) mod tests {
    /// Rows of `count` equal steps: each row is its head and the cells of one step.
    pub(in crate::advice) fn repeated(count: usize, rows: &[(&str, &str)]) -> String {
        joined(&vec![rows; count])
    }

    /// Rows of steps one after the other. The same row of each step has the same head.
    pub(in crate::advice) fn joined(steps: &[&[(&str, &str)]]) -> String {
        let digit = |at: usize| char::from_digit((at % 10) as u32, 10).expect("a digit").to_string();
        let marks = steps.iter().enumerate().map(|(at, step)| digit(at).repeat(step[0].1.len()));
        let mut drawing = format!("rank 0 step {}\n", marks.collect::<String>());
        for (at, (head, _)) in steps[0].iter().enumerate() {
            // A bar keeps what two steps have apart.
            let cells: Vec<&str> = steps.iter().map(|step| step[at].1).collect();
            drawing += &format!("rank 0 {head} {}\n", cells.join("|"));
        }
        drawing
    }
}
