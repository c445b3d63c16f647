//! # Definition
//! For each step, where the time of its host window goes: every nanosecond belongs to exactly one class.
//! Of what happens at a moment the first of these counts: a computing kernel runs, a communication kernel runs
//! (communication is what compute does not hide), a copy runs, a fill runs, a thread is inside a call of the device's
//! runtime or driver, the training loop waits for its next batch, a thread is inside a call on a file, a thread is
//! inside an operator, other. The parts sum to the step, always.
//!
//! The host window is the step's own label; without labels, from one optimizer step to the next; without either, from one
//! to the next of a sequence of kernels that repeats; else the whole trace. A row without a step number is the average
//! over the complete steps of its rank, given when no single step was asked for: its `row` is `mean`, that of a step `one`.
//!
//! `--compat tb` cuts steps and orders classes as the TensorBoard plugin of PyTorch's profiler does: copies and fills
//! come before communication; labels count as operators, driver calls and calls on files not at all; a step ends when its device work
//! does, and the next begins there; the last step is dropped when it launched less than 0.8 of the device work of the
//! one before, as are steps after the last device work; the average is over all steps that are left.
//!
//! # Units
//! Nanoseconds. `start_ns` counts from the start of the trace.
//!
//! # Source
//! Device time is that of all devices of the step's rank, whichever step launched it; host time is that of all threads
//! of the process that runs the step.
//!
//! # Edge cases
//! A step that recording cut is given, marked incomplete, and left out of averages; without a complete step there is no
//! average. In an average every part is within 1 ns of its exact mean, so that the parts still sum to it. Labels
//! (`record_function`) and Python frames are no work of their own: what they hold counts as what it is.
//!
//! Three faults of the plugin are left out of `--compat tb`. Where one class fills every moment, the plugin counts later
//! classes once more: here parts always sum. It takes a step's label that was projected onto the device for another
//! step. And it knows communication by ten names of operators: here it is what the recording says.

mod busy;
mod named;
mod tensorboard;

pub(crate) use named::NamedParts;

use crate::context::Shared;
use crate::mean_parts::mean_parts;
use crate::{Analysis, AnalysisContext, Compat, Needs, Options, Outcome, Selection};
use busy::Busy;
use serde::{Deserialize, Serialize};
use stepscope_base::IntervalSet;
use stepscope_trace::{Iteration, IterationKind, Step, StepSource, Trace};

columns! {
    /// Where the time of one step went, or of the average over a rank's complete steps.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct StepBreakdown {
        /// The rank.
        rank: u32 => Count,
        /// The number of the step. Absent for the average.
        step: Option<i64> => Count,
        /// When the step starts on the host, counted from the start of the trace. Absent for the average.
        start_ns: Option<i64> => Nanoseconds,
        /// Length of the step on the host. It is the sum of all parts.
        total_ns: i64 => Nanoseconds,
        /// Time in which a computing kernel runs.
        kernel_ns: i64 => Nanoseconds,
        /// Time in which a communication kernel runs and no computing one.
        comm_ns: i64 => Nanoseconds,
        /// Time in which a memcpy runs and no kernel.
        memcpy_ns: i64 => Nanoseconds,
        /// Time in which a memset runs and no kernel or memcpy.
        memset_ns: i64 => Nanoseconds,
        /// Time in which a thread is in a call of the device's API and no device works.
        runtime_ns: i64 => Nanoseconds,
        /// Time in which the training loop waits for its next batch, and which no part before this one has.
        dataloader_ns: i64 => Nanoseconds,
        /// Time in which a thread is in a call on a file, and which no part before this one has.
        io_ns: i64 => Nanoseconds,
        /// Time in which a thread is in an operator, and which no part before this one has.
        cpu_ns: i64 => Nanoseconds,
        /// The rest of the step.
        other_ns: i64 => Nanoseconds,
        /// Whether all of the step was recorded. Absent for the average.
        is_complete: Option<bool> => Flag,
        /// How the limits of the step are known. Absent for the average.
        source: Option<StepSource> => Text,
        /// What an inference server does in the step: `prefill`, `decode`, `mixed`, or `verify` what a smaller model has
        /// guessed. Absent when not known.
        iteration: Option<IterationKind> => Text,
        /// How many requests a server computes together. Absent when not known.
        requests: Option<i64> => Count,
        /// How many tokens of them it computes. Absent when not known.
        tokens: Option<i64> => Count,
        /// What the row is: `one` for one step, `mean` for the average over the steps of the rank.
        row => Text = |row| if row.step.is_some() { "one" } else { "mean" },
    }
}

/// Number of classes; the last is "other".
pub(crate) const CLASSES: usize = 9;

/// What the classes are called: as their columns, without the unit.
pub(crate) const NAMES: [&str; CLASSES] =
    ["kernel", "comm", "memcpy", "memset", "runtime", "dataloader", "io", "cpu", "other"];

/// The first class that is busy counts: kernel, communication, copy, fill, runtime, wait for data, file, operator.
const ORDER: [usize; CLASSES - 1] = [0, 1, 2, 3, 4, 5, 6, 7];

/// The TensorBoard plugin's: kernel, copy, fill, communication, and so on.
const TENSORBOARD_ORDER: [usize; CLASSES - 1] = [0, 2, 3, 1, 4, 5, 6, 7];

/// Every step asked for, ordered by rank and start, each rank's average after its steps.
pub fn step_breakdown(trace: &Trace, selection: &Selection) -> Vec<StepBreakdown> {
    rows(&AnalysisContext::new(trace, selection))
}

/// The same in a context, which other analyses may share.
pub fn rows(context: &AnalysisContext<'_>) -> Vec<StepBreakdown> {
    context.get::<StepBreakdowns>().0.clone()
}

/// Where the time of each step goes.
pub(crate) struct StepBreakdowns(pub(crate) Vec<StepBreakdown>);

impl Shared for StepBreakdowns {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self(broken_down(context))
    }
}

fn broken_down(context: &AnalysisContext<'_>) -> Vec<StepBreakdown> {
    let AnalysisContext { trace, selection, .. } = *context;
    let is_compat = selection.compat == Some(Compat::Tb);
    let busy = Busy::of(context, is_compat);
    let mut rows = Vec::new();
    for steps in windows(trace, selection, is_compat).chunk_by(|a, b| a.rank == b.rank) {
        let first = rows.len();
        rows.extend(steps.iter().map(|step| of_step(step, &busy)));
        if selection.step.is_none() {
            let average = average(&rows[first..], is_compat);
            rows.extend(average);
        }
    }
    rows
}

/// The steps asked for, each with the window that it is to be broken down over.
fn windows(trace: &Trace, selection: &Selection, is_compat: bool) -> Vec<Step> {
    if is_compat { tensorboard_steps(trace, selection) } else { selection.steps(trace).copied().collect() }
}

/// The steps asked for as the TensorBoard plugin cuts them.
pub(crate) fn tensorboard_steps(trace: &Trace, selection: &Selection) -> Vec<Step> {
    // Where a step begins hangs on the one before, whichever was asked for.
    let processes = trace.steps.chunk_by(|a, b| (a.rank, a.process) == (b.rank, b.process));
    let steps = processes.flat_map(|own| tensorboard::steps(trace, own));
    steps.filter(|step| selection.has_step(step)).collect()
}

/// When each class counts in a step: together they are the step, and none lies over another.
fn classes_of(step: &Step, busy: &Busy) -> [IntervalSet; CLASSES] {
    let mut covered = IntervalSet::default();
    let mut sets: [IntervalSet; CLASSES] = Default::default();
    for class in busy.order {
        let Some(set) = busy.class(step, class) else { continue };
        let own = set.clip(step.span);
        sets[class] = own.subtract(&covered);
        covered = covered.union(&own);
    }
    sets[CLASSES - 1] = IntervalSet::of(step.span).subtract(&covered);
    sets
}

fn of_step(step: &Step, busy: &Busy) -> StepBreakdown {
    let parts = classes_of(step, busy).map(|set| set.total_ns());
    let total_ns = step.span.duration_ns();
    let row = from_parts(step.rank, parts);
    assert_eq!(row.total_ns, total_ns, "parts sum to the step");
    let (start_ns, is_complete) = (Some(step.span.start_ns), Some(step.is_complete));
    let Iteration { kind: iteration, requests, tokens } = step.iteration;
    let (step, source) = (Some(step.number), Some(step.source));
    StepBreakdown { step, start_ns, is_complete, source, iteration, requests, tokens, ..row }
}

/// The mean of the complete steps among `rows`, or of all, all of one rank.
fn average(rows: &[StepBreakdown], is_over_all: bool) -> Option<StepBreakdown> {
    let is_in = |row: &&StepBreakdown| is_over_all || row.is_complete == Some(true);
    Some(from_parts(rows.first()?.rank, mean_parts(rows.iter().filter(is_in).map(to_parts))?))
}

pub(crate) fn to_parts(row: &StepBreakdown) -> [i64; CLASSES] {
    [
        row.kernel_ns,
        row.comm_ns,
        row.memcpy_ns,
        row.memset_ns,
        row.runtime_ns,
        row.dataloader_ns,
        row.io_ns,
        row.cpu_ns,
        row.other_ns,
    ]
}

fn from_parts(rank: u32, parts: [i64; CLASSES]) -> StepBreakdown {
    let [kernel_ns, comm_ns, memcpy_ns, memset_ns, runtime_ns, dataloader_ns, io_ns, cpu_ns, other_ns] = parts;
    let (step, start_ns, is_complete, source) = (None, None, None, None);
    let (iteration, requests, tokens) = (None, None, None);
    let total_ns = parts.iter().sum();
    StepBreakdown {
        rank,
        step,
        start_ns,
        total_ns,
        kernel_ns,
        comm_ns,
        memcpy_ns,
        memset_ns,
        runtime_ns,
        dataloader_ns,
        io_ns,
        cpu_ns,
        other_ns,
        is_complete,
        source,
        iteration,
        requests,
        tokens,
    }
}

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { compat: &[Compat::Tb], ..Options::NONE }, ..Analysis::of(outcome) }
        .needing(Needs::Rows);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    /// Each row as `rank/step: total = part class + …`, in us, empty parts left out.
    fn line(row: &StepBreakdown) -> String {
        let parts = to_parts(row).into_iter().zip(NAMES).filter(|(ns, _)| *ns > 0);
        let parts: Vec<String> = parts.map(|(ns, name)| format!("{} {name}", ns as f64 / 1_000.0)).collect();
        let step = row.step.map_or("average".into(), |step| step.to_string());
        format!("{}/{step}: {} = {}", row.rank, row.total_ns as f64 / 1_000.0, parts.join(" + "))
    }

    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let rows = step_breakdown(&drawn(drawing), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_moment_belongs_to_the_first_class_that_is_busy() {
        check(
            "rank 0 step     0000000000
             rank 0 cpu 1    aaaaaaaa..
             rank 0 input 1  ........i.
             rank 0 io 3     ff....f.f.
             rank 0 launch 2 LLLLLL....
             rank 0 stream 7 C.........
             rank 0 stream 8 NN........
             rank 0 stream 9 HHH.......
             rank 0 stream 6 ZZZZ......",
            Selection { step: Some(0), ..Selection::default() },
            &["0/0: 10 = 1 kernel + 1 comm + 1 memcpy + 1 memset + 2 runtime + 1 dataloader + 1 io + 1 cpu + 1 other"],
        );
    }

    #[test]
    fn the_average_is_over_a_ranks_own_steps() {
        check(
            "rank 0 step     00011111
             rank 0 stream 7 .CCC....
             rank 1 step     44......
             rank 1 cpu 1    aa......",
            Selection::default(),
            &[
                "0/0: 3 = 2 kernel + 1 other",
                "0/1: 5 = 1 kernel + 4 other",
                "0/average: 4 = 1.5 kernel + 2.5 other",
                "1/4: 2 = 2 cpu",
                "1/average: 2 = 2 cpu",
            ],
        );
    }

    #[test]
    fn parts_of_an_average_sum_to_it_although_they_are_rounded() {
        let of = |kernel_ns, cpu_ns| StepBreakdown {
            is_complete: Some(true),
            ..from_parts(0, [kernel_ns, 0, 0, 0, 0, 0, 0, cpu_ns, 1])
        };
        let cut = StepBreakdown { is_complete: Some(false), ..from_parts(0, [1_000; CLASSES]) };
        let average = average(&[of(1, 0), of(1, 2), of(0, 0), cut], false).expect("complete steps");
        assert_eq!((average.kernel_ns, average.cpu_ns, average.other_ns, average.total_ns), (0, 1, 1, 2));
        assert_eq!(super::average(&[cut], false), None);
    }

    #[test]
    fn without_labels_the_whole_trace_is_one_step() {
        check(
            "rank 0 cpu 1 a.a",
            Selection::default(),
            &["0/0: 3 = 2 cpu + 1 other", "0/average: 3 = 2 cpu + 1 other"],
        );
    }

    #[test]
    fn the_tensorboard_plugins_steps_reach_to_their_device_work_and_copies_come_first() {
        let drawing = "rank 0 step     0000111...
                       rank 0 launch 1 N.H.CA....
                       rank 0 label 1  .l..l.....
                       rank 0 cpu 1    ......a...
                       rank 0 stream 7 ...HH...CA
                       rank 0 stream 8 ..NNNN....";
        let tensorboard = |step| Selection { compat: Some(Compat::Tb), step, ..Selection::default() };
        let rows = [
            "0/0: 6 = 2 comm + 2 memcpy + 1 runtime + 1 cpu",
            "0/1: 4 = 2 kernel + 1 cpu + 1 other",
            "0/average: 5 = 1 kernel + 1 comm + 1 memcpy + 0.5 runtime + 1 cpu + 0.5 other",
        ];
        check(drawing, tensorboard(None), &rows);
        check(drawing, tensorboard(Some(1)), &rows[1..2]);
    }

    #[test]
    fn the_tensorboard_plugin_knows_no_calls_on_files() {
        let drawing = "rank 0 step 0000\nrank 0 io 1 .ff.\nrank 0 cpu 2 ..aa";
        check(drawing, Selection { step: Some(0), ..Selection::default() }, &["0/0: 4 = 2 io + 1 cpu + 1 other"]);
        let tensorboard = Selection { compat: Some(Compat::Tb), step: Some(0), ..Selection::default() };
        check(drawing, tensorboard, &["0/0: 4 = 2 cpu + 2 other"]);
    }

    #[test]
    fn the_tensorboard_plugins_average_is_over_the_steps_it_keeps() {
        check(
            "rank 0 step     000011
             rank 0 launch 1 AB..C.
             rank 0 stream 7 ..AABC",
            Selection { compat: Some(Compat::Tb), ..Selection::default() },
            &["0/0: 5 = 3 kernel + 2 runtime", "0/average: 5 = 3 kernel + 2 runtime"],
        );
    }

    proptest! {
        #[test]
        fn sweeps_equal_one_cell_per_microsecond(
            cpu in "[.a]{30}", launch in "[.L]{30}", input in "[.i]{30}", io in "[.f]{30}", streams in prop::collection::vec("[.CNHZ]{30}", 0..3),
        ) {
            let mut text = format!("rank 0 step {}{}\nrank 0 cpu 1 {cpu}\nrank 0 launch 2 {launch}\nrank 0 input 3 {input}\nrank 0 io 3 {io}\n", "0".repeat(13), "1".repeat(17));
            streams.iter().enumerate().for_each(|(at, row)| text += &format!("rank 0 stream {at} {row}\n"));
            let rows = step_breakdown(&drawn(&text), &Selection::default());
            let rows_at = |at: usize| {
                let mut cells: String = streams.iter().map(|row| row.as_bytes()[at] as char).collect();
                cells.extend([&cpu, &launch, &input, &io].map(|row| row.as_bytes()[at] as char));
                cells
            };
            let class_at = |at: usize| ['C', 'N', 'H', 'Z', 'L', 'i', 'f', 'a'].iter().position(|cell| rows_at(at).contains(*cell)).unwrap_or(CLASSES - 1);
            for (row, window) in rows.iter().zip([0..13, 13..30]) {
                let mut expected = [0; CLASSES];
                window.for_each(|at| expected[class_at(at)] += 1_000);
                prop_assert_eq!(to_parts(row), expected);
            }
            prop_assert_eq!(rows.len(), 3);
        }
    }
}
