//! # Definition
//! Where the program itself spends the time of its steps: for each line of Python, the time in which the thread that runs
//! the steps is in none of these: an operator, a call of the device's API, a wait for its next batch, a call on a file, a
//! garbage collection; nor is the thread that runs its backward passes, for which it waits. How long that is, is exact. Which line it is, is known at the moments at which the thread was
//! sampled: a line has that share of the time which it has of the samples, so that lines sum to the time.
//!
//! `doing` is what the thread does there, as the system tells it: `running` (it runs, or could), `interpreter_lock` (another
//! thread has the interpreter's lock), `lock` (it waits for another thread), `sleep`, `file`, `connection` (a socket, a
//! pipe, or several at once), `process` (it waits for one to end), `system` (another call of the system).
//!
//! # Units
//! Nanoseconds; counts of samples; shares from 0 to 1 of the time of the steps. `error_ns` is one standard error of
//! `time_ns`, as that of a share of that number of samples.
//!
//! # Source
//! Samples of the stacks of Python's threads, and what was recorded of the thread that most was recorded of in the process
//! of the steps.
//!
//! # Edge cases
//! Without a step, or where none is complete, all of the recording. Samples whose stack could not be read are a row
//! without a line. A line is the innermost of the stack: a function in C has none, and counts for the line that calls it.
//! Without a sample in that time there is no row.

use crate::context::Shared;
use crate::device_busy::busy_of;
use crate::host_threads::{BackwardThreads, Doing as Does, MainThreads, Threads};
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{Doing, SliceRole, StackSample, StepSource, Trace, TrackId};

columns! {
    /// One line of Python, and what its thread does there.
    #[derive(Clone, PartialEq, Debug)]
    pub struct HostLine {
        /// The rank.
        rank: u32 => Count,
        /// The line, as `file.py(12): function`. Absent where the stack could not be read.
        line: Option<String> => Text,
        /// What the thread does there.
        doing: Doing => Text,
        /// Number of samples.
        samples: i64 => Count,
        /// About how long it is there, of the time of the steps.
        time_ns: i64 => Nanoseconds,
        /// The standard error of `time_ns`.
        error_ns: i64 => Nanoseconds,
        /// `time_ns` as a share of the time of the steps.
        ratio: f64 => Ratio,
    }
}

/// The lines of each rank, the longest first.
pub fn host_lines(trace: &Trace, selection: &Selection) -> Vec<HostLine> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<HostLine> {
    context.get::<Vec<HostTime>>().iter().flat_map(|time| of_rank(context.trace, time)).collect()
}

fn of_rank(trace: &Trace, time: &HostTime) -> Vec<HostLine> {
    let mut counts: BTreeMap<(Option<StringId>, Doing), i64> = BTreeMap::new();
    for sample in &time.samples {
        let line = sample.stack.and_then(|stack| trace.stacks.frames(stack).next());
        *counts.entry((line, sample.doing)).or_default() += 1;
    }
    let parts = time.parts(counts.values().copied());
    let row = |(((line, doing), samples), time_ns): (((Option<StringId>, Doing), i64), i64)| HostLine {
        rank: time.rank,
        line: line.map(|line| trace.strings.get(line).to_string()),
        doing,
        samples,
        time_ns,
        error_ns: time.error_ns(samples),
        ratio: time_ns as f64 / time.steps.total_ns() as f64,
    };
    let mut rows: Vec<HostLine> = counts.into_iter().zip(parts).map(row).collect();
    rows.sort_by(|a, b| (Reverse(a.samples), &a.line, a.doing).cmp(&(Reverse(b.samples), &b.line, b.doing)));
    rows
}

/// What is known of the time of a rank's steps in which nothing else was recorded of the thread that runs them.
pub(crate) struct HostTime {
    pub(crate) rank: u32,
    /// The thread that runs the steps.
    pub(crate) track: TrackId,
    /// The steps.
    pub(crate) steps: IntervalSet,
    /// How many they are; 0 where none is known.
    pub(crate) step_count: usize,
    /// When each of them begins, in order.
    pub(crate) starts_ns: Vec<i64>,
    /// The time in them of which nothing else is known.
    pub(crate) own: IntervalSet,
    /// The part of it in which no device of the rank works: what holds the steps up.
    pub(crate) exposed: IntervalSet,
    /// Samples of the thread in that time.
    pub(crate) samples: Vec<StackSample>,
}

impl HostTime {
    /// Shares the time out as samples are; the parts sum to it.
    pub(crate) fn parts(&self, counts: impl Iterator<Item = i64>) -> Vec<i64> {
        let (own_ns, all) = (i128::from(self.own.total_ns()), self.samples.len().max(1) as i128);
        let mut before = 0;
        let part = |count: i64| {
            let until = before + i128::from(count);
            let ns = own_ns * until / all - own_ns * before / all;
            before = until;
            ns as i64
        };
        counts.map(part).collect()
    }

    /// The time that some of the samples stand for: for each, the part between the sample before and this one.
    pub(crate) fn before(&self, trace: &Trace, samples: &[&StackSample]) -> IntervalSet {
        let all = samples_of(trace, self.track);
        let before = |sample: &&StackSample| {
            let at = all.partition_point(|other| other.time_ns < sample.time_ns);
            let from_ns = at.checked_sub(1).map_or(sample.time_ns, |before| all[before].time_ns);
            Span::new(from_ns, sample.time_ns)
        };
        let spans: IntervalSet = samples.iter().map(before).collect();
        spans.intersect(&self.own)
    }

    /// The standard error of the time that this number of samples stands for.
    pub(crate) fn error_ns(&self, count: i64) -> i64 {
        let (count, all) = (count as f64, self.samples.len() as f64);
        let ratio = count / all;
        ((ratio * (1.0 - ratio) / all).sqrt() * self.own.total_ns() as f64) as i64
    }
}

impl Shared for Vec<HostTime> {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let ranks = trace.ranks().into_iter().filter(|rank| selection.has_rank(*rank));
        ranks.filter_map(|rank| host_time(context, rank)).collect()
    }
}

fn host_time(context: &AnalysisContext<'_>, rank: u32) -> Option<HostTime> {
    let AnalysisContext { trace, selection, .. } = *context;
    let of_rank = selection.of_rank(rank);
    let whole = |source: StepSource| source != StepSource::Whole;
    let steps: Vec<_> = of_rank.steps(trace).filter(|step| step.is_complete && whole(step.source)).collect();
    let main = context.get::<MainThreads>();
    let (track, windows) = match steps.first() {
        Some(first) => {
            let of_process = steps.iter().filter(|step| step.process == first.process);
            (*main.0.get(&first.process)?, of_process.map(|step| step.span).collect::<Vec<Span>>())
        }
        None => {
            let of_rank = |track: &&TrackId| trace.processes[trace.tracks[track.index()].process.index()].rank == rank;
            let samples_of = |track: &&TrackId| samples_of(trace, **track).len();
            let track = *main.0.values().filter(of_rank).max_by_key(samples_of)?;
            let samples = samples_of(&&track);
            if samples == 0 {
                return None;
            }
            let times = samples_of_track_times(trace, track);
            (track, selection.windows(trace, rank).unwrap_or_else(|| vec![times]))
        }
    };
    let step_count = steps.len();
    let mut starts_ns: Vec<i64> = windows.iter().map(|window| window.start_ns).collect();
    starts_ns.sort_unstable();
    let steps = IntervalSet::from_unsorted(windows);
    let thread = context.get::<Threads>().get(trace, track);
    let collections: IntervalSet = trace
        .lanes(track)
        .flat_map(|lane| trace.tracks[lane.index()].slice_ids())
        .filter(|id| trace.role(*id) == Some(SliceRole::GarbageCollection))
        .map(|id| trace.slices.span(id))
        .collect::<Vec<Span>>()
        .into_iter()
        .collect();
    let mut known = thread.work().union(thread.doing(Does::Io)).union(&collections);
    for other in context.get::<BackwardThreads>().of(track) {
        known = known.union(&context.get::<Threads>().get(trace, other).work());
    }
    let own = steps.subtract(&known);
    let is_inside = |sample: &&StackSample| crate::windows::contains(own.spans(), sample.time_ns);
    let samples: Vec<StackSample> = samples_of(trace, track).iter().filter(is_inside).copied().collect();
    let exposed = own.subtract(&busy_of(context, rank));
    Some(HostTime { rank, track, steps, step_count, starts_ns, own, exposed, samples })
}

/// All samples of a thread.
pub(crate) fn samples_of(trace: &Trace, track: TrackId) -> &[StackSample] {
    let first = trace.stack_samples.partition_point(|sample| sample.track < track);
    let end = trace.stack_samples.partition_point(|sample| sample.track <= track);
    &trace.stack_samples[first..end]
}

/// From the first sample of a thread to the last.
fn samples_of_track_times(trace: &Trace, track: TrackId) -> Span {
    let samples = samples_of(trace, track);
    let at = |sample: Option<&StackSample>| sample.map_or(0, |sample| sample.time_ns);
    Span::new(at(samples.first()), at(samples.last()))
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

named_cells!(Doing);

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{Flow, FlowKind};

    fn lines(drawing: &str) -> Vec<String> {
        let line = |row: &HostLine| {
            let HostLine { line, doing, samples, time_ns, error_ns, .. } = row;
            format!("{} {} {samples}: {time_ns} ± {error_ns}", line.as_deref().unwrap_or("-"), doing.as_str())
        };
        host_lines(&drawn(drawing), &Selection::default()).iter().map(line).collect()
    }

    #[test]
    fn lines_have_the_time_outside_of_operators_as_they_have_samples() {
        // Of 20 us 12 are of no operator; one of five samples is in an operator.
        let drawing = "
            rank 0 step      00000000001111111111
            rank 0 cpu 1     aaaa......bbbb......
            rank 0 samples 1 .a...f.f......f..G..";
        assert_eq!(
            lines(drawing),
            ["f.py(7): f running 3: 9000 ± 2598", "g.py(7): g sleep 1: 3000 ± 2598"],
            "parts sum to 12 us"
        );
    }

    #[test]
    fn a_backward_pass_on_a_thread_of_its_own_is_known_time() {
        let drawing = "
            rank 0 step      0000000000
            rank 0 cpu 1     aa.......b
            rank 0 cpu 2     ..ccccc...
            rank 0 samples 1 ...F.F.fF.";
        assert_eq!(lines(drawing), ["f.py(7): f sleep 3: 5250 ± 1515", "f.py(7): f running 1: 1750 ± 1515"]);
        let mut trace = drawn(drawing);
        let slice = |name| trace.slices.ids().find(|id| trace.slice_name(*id) == name).unwrap();
        trace.flows.push(Flow { from: slice("a"), to: slice("c"), kind: FlowKind::ForwardBackward });
        let rows = host_lines(&trace, &Selection::default());
        let rows: Vec<_> = rows.iter().map(|row| (row.doing, row.samples, row.time_ns)).collect();
        assert_eq!(
            rows,
            [(Doing::Running, 1, 1000), (Doing::Sleep, 1, 1000)],
            "the thread waits for c, and 2 us are left"
        );
    }

    #[test]
    fn what_is_known_otherwise_is_left_out() {
        let drawing = "
            rank 0 step      0000000000
            rank 0 cpu 1     a.........
            rank 0 io 1      ..rrr.....
            rank 0 input 1   .....ii...
            rank 0 samples 1 a..a.a.f|f.";
        assert_eq!(lines(drawing), ["f.py(7): f running 2: 4000 ± 0"]);
        assert_eq!(lines("rank 0 step 0000\nrank 0 cpu 1 a...\nrank 0 samples 1 f..."), [""; 0], "no sample");
        assert_eq!(lines("rank 0 step 0000\nrank 0 cpu 1 a..."), [""; 0]);
    }
}
