//! # Definition
//! For each step of each rank, how much of it is input and output that computing hides or does not hide.
//! Every nanosecond of the step belongs to exactly one part. While the rank computes these are: hidden input, hidden
//! checkpoints, other hidden output, or only computing. While it does not: exposed input, exposed checkpoints, other exposed
//! output, or other. The parts sum to the step, always. Each rank has a row with the sums over its steps, given when no
//! single step was asked for: its `row` is `sum`, that of a step `one`.
//!
//! - Computing is the time in which a computing kernel runs on a device of the rank. On a rank without device events it is
//!   the time in which the thread that runs the steps is in an operator, but does not wait for a collective or for data and
//!   is in no call on a file. In traces that have neither it is that in labels that say that they compute.
//! - Output is calls on files that the rank writes: checkpoints, logs. Of checkpoints are those that begin in a checkpoint
//!   of their process, as `checkpoints` lists them. Input is calls on all other files, and waits of the training loop for
//!   its next batch.
//! - While nothing computes, only the process that runs the steps counts: what its helpers, such as workers of a
//!   `DataLoader`, read in advance holds up nobody. While the rank computes, all of its processes count.
//! - Of input and output at the same moment the first of these counts: the thread that runs the steps waits for data or is
//!   in a call of input; anything is in a call of output, first one of a checkpoint; anything else is in a call of input.
//!
//! Grouped by layer, a row is one layer of a rank over all of its time: how often it is used, with which errors, for how
//! long, how much of that the rank computes beside, what it moves, how fast, in what sizes and in which order; sizes are
//! those of `io_files`. Layers lie in each other, so that they do not sum to anything:
//!
//! - `application`: labels of the program that calls on files lie directly in, without those of the reader;
//! - `reader`: waits of the training loop for its next batch, and labels that say that they read samples;
//! - `hdf5`, `mpiio`, `stdio`, `posix`: calls of HDF5's library, of MPI's file interface, of C's streams, and of the system.
//!   What lies in a call of the same layer is a part of it;
//! - `page_fault`: pages of mapped files that were touched, as `io_files` counts them. Their time and bytes are not known.
//!
//! `--compat dfanalyzer` gives the summary of DFAnalyzer by its preset `posix`, with its facts about calls that read,
//! write and do anything else, and its rules. Its totals are wrong in these ways, and here they are right: it leaves out
//! calls whose file is not known or is not given by a hash, and files in folders of the system; it knows the names of ten
//! calls that move bytes, so that `pread64` moves none; it takes the items of `fread` for bytes; it divides bytes by calls
//! of every kind for a mean request; its count of nodes is always 0; and what is overlapped it computes from sums of
//! durations, not from when calls run. It prints sums over all ranks; here each rank has rows.
//!
//! With `--group-by layer`, too, it gives the layers of DFAnalyzer's preset `dlio`: `compute`, labels that compute;
//! `fetch_data`, waits of the training loop for its next batch; `data_loader`, batches that a loader makes; `reader`, labels
//! that read or prepare samples; `checkpoint`, labels and functions that write or read checkpoints; and the calls of the
//! system and of C's streams, each in the first layer that fits: `reader_posix` in any of `fetch_data`, `data_loader` and
//! `reader`; `checkpoint_posix` in a checkpoint of its process, as `checkpoints` lists them; `other_posix`. These three sum
//! to `all`. DFAnalyzer tells its layers by categories and names of DLIO's functions, and calls of readers and of checkpoints
//! by `/data` and `/checkpoint` in the paths of files; `__getitem__` of a data set, which it takes for the loader's, is a
//! reader's here. Its `app` is `job_ns`; `training` and forks are not there, nor what depends on `/lustre` or `/ssd` in a
//! path.
//!
//! # Units
//! Nanoseconds; bytes; bytes in a second; counts, also of calls in a second; shares from 0 to 1.
//!
//! # Source
//! Calls on files as for `io_files`; waits for data as for `step_breakdown`; checkpoints as for `checkpoints`; computing as
//! for `ranks_overview`, of the thread that runs the steps.
//!
//! # Edge cases
//! Where nothing says when a rank computes, what is hidden is not known, and all input and output counts as exposed. A rank
//! without calls on files and waits for data has no rows. Without marked steps the whole trace is one, and all processes
//! that no other one of the rank started run it. Steps that were cut count in the sum. A step counts the calls that begin
//! in it; its parts have the calls that reach into it. A call on a file that is not known is output if it writes, else input.
//! One that copies from file to file is output, also in the half of its time in which it counts as a read.

mod dfanalyzer;
mod dlio;
mod layers;
mod rank_io;

use crate::checkpoints::CheckpointTimes;
use crate::context::Shared;
use crate::io_calls::{IoCall, IoSums, io_calls, per_s};
use crate::{Analysis, AnalysisContext, Compat, GroupBy, Needs, Options, Outcome, Selection};
use rank_io::{Parts, RankIo};
pub(crate) use rank_io::{Runners, is_output, written_files};
use std::collections::BTreeMap;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{Step, StepSource, Trace};

columns! {
    /// Input and output of one step of a rank, or of all its steps.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct StepIo {
        /// The rank.
        rank: u32 => Count,
        /// The number of the step. Absent for the sum.
        step: Option<i64> => Count,
        /// When the step starts on the host, counted from the start of the trace. Absent for the sum.
        start_ns: Option<i64> => Nanoseconds,
        /// Length of the step on the host. It is the sum of all parts.
        total_ns: i64 => Nanoseconds,
        /// Time in which the rank only computes. Absent where nothing says when it does.
        compute_ns: Option<i64> => Nanoseconds,
        /// Time in which the rank computes, and reads or waits for data. Absent where nothing says when it computes.
        hidden_input_ns: Option<i64> => Nanoseconds,
        /// Time in which the rank reads or waits for data, and does not compute.
        exposed_input_ns: i64 => Nanoseconds,
        /// Time in which the rank computes, and writes checkpoints. Absent where nothing says when it computes.
        hidden_checkpoint_ns: Option<i64> => Nanoseconds,
        /// Time in which the rank writes checkpoints, and does not compute.
        exposed_checkpoint_ns: i64 => Nanoseconds,
        /// Time in which the rank computes, and writes other files, such as logs. Absent where nothing says when it
        /// computes.
        hidden_output_ns: Option<i64> => Nanoseconds,
        /// Time in which the rank writes other files, such as logs, and does not compute.
        exposed_output_ns: i64 => Nanoseconds,
        /// The rest of the step.
        other_ns: i64 => Nanoseconds,
        /// Number of calls on files that begin in the step.
        count: i64 => Count,
        /// Number of those calls that failed.
        errors: i64 => Count,
        /// Bytes read by those calls.
        read_bytes: Option<i64> => Bytes,
        /// Bytes written by those calls.
        write_bytes: Option<i64> => Bytes,
        /// Bytes read over the time of those calls that read.
        read_bytes_per_s: Option<i64> => BytesPerSecond,
        /// Bytes written over the time of those calls that write.
        write_bytes_per_s: Option<i64> => BytesPerSecond,
        /// Time in which any thread is in one of those calls. It may reach beyond the step.
        busy_ns: i64 => Nanoseconds,
        /// Those calls, without page faults, over `busy_ns`: calls in a second of the time in which there are any.
        calls_per_s: Option<i64> => Count,
        /// Whether all of the step was recorded. Absent for the sum.
        is_complete: Option<bool> => Flag,
        /// How the limits of the step are known. Absent for the sum.
        source: Option<StepSource> => Text,
        /// What the row is: `one` for one step, `sum` for all steps of the rank together.
        row => Text = |row| if row.step.is_some() { "one" } else { "sum" },
    }
}

/// Every step asked for, by rank and start, each rank's sum after its steps.
pub fn io_summary(trace: &Trace, selection: &Selection) -> Vec<StepIo> {
    rows(&AnalysisContext::new(trace, selection))
}

/// The same of a context.
pub(crate) fn rows(context: &AnalysisContext<'_>) -> Vec<StepIo> {
    let (trace, selection, ranks) = (context.trace, context.selection, context.get::<IoOfRanks>());
    let steps: Vec<&Step> = match selection.complete_steps {
        true => selection.complete_steps(trace).collect(),
        false => selection.steps(trace).collect(),
    };
    let mut rows = Vec::new();
    for steps in steps.chunk_by(|a, b| a.rank == b.rank) {
        let Some(of_rank) = ranks.get(steps[0].rank) else { continue };
        let mut sum = Sum::default();
        for step in steps {
            let of_step = Sum::of(of_rank.parts(step.span), ranks.calls.in_step(step));
            sum = sum.and(&of_step);
            let row = of_step.row(step.rank);
            let (start_ns, is_complete) = (Some(step.span.start_ns), Some(step.is_complete));
            rows.push(StepIo { step: Some(step.number), start_ns, is_complete, source: Some(step.source), ..row });
        }
        if selection.step.is_none() {
            rows.push(sum.row(steps[0].rank));
        }
    }
    rows
}

/// One step of a rank, or several together.
#[derive(Default)]
struct Sum {
    parts: Parts,
    calls: IoSums,
    /// In which any thread is in a call.
    busy: Vec<Span>,
}

impl Sum {
    /// That of one step with its calls, by start.
    fn of<'a>(parts: Parts, calls: impl Iterator<Item = &'a IoCall>) -> Self {
        let mut sums = IoSums::default();
        let spans = calls.inspect(|call| sums.add(call)).map(|call| call.span);
        let busy = IntervalSet::from_unsorted(spans).spans().to_vec();
        Self { parts, calls: sums, busy }
    }

    /// With another one.
    fn and(mut self, other: &Self) -> Self {
        self.busy.extend_from_slice(&other.busy);
        Self { parts: self.parts.and(other.parts), calls: self.calls.and(&other.calls), busy: self.busy }
    }

    fn row(self, rank: u32) -> StepIo {
        let Self { parts, calls, busy } = self;
        let known = |ns: i64| Some(ns).filter(|_| parts.is_compute_known);
        let busy_ns = IntervalSet::from_unsorted(busy).total_ns();
        StepIo {
            rank,
            step: None,
            start_ns: None,
            total_ns: parts.total_ns(),
            compute_ns: known(parts.compute_ns),
            hidden_input_ns: known(parts.hidden_input_ns),
            exposed_input_ns: parts.exposed_input_ns,
            hidden_checkpoint_ns: known(parts.hidden_checkpoint_ns),
            exposed_checkpoint_ns: parts.exposed_checkpoint_ns,
            hidden_output_ns: known(parts.hidden_output_ns),
            exposed_output_ns: parts.exposed_output_ns,
            other_ns: parts.other_ns,
            count: calls.count,
            errors: calls.errors,
            read_bytes: calls.reads.bytes(),
            write_bytes: calls.writes.bytes(),
            read_bytes_per_s: calls.reads.bytes_per_s(),
            write_bytes_per_s: calls.writes.bytes_per_s(),
            busy_ns,
            calls_per_s: per_s(calls.without_faults().into(), busy_ns.into()),
            is_complete: None,
            source: None,
        }
    }
}

/// What each rank does with files, over all of its time, whatever part of it is asked for; without ranks that neither
/// call files nor wait for data.
pub(crate) struct IoOfRanks {
    ranks: BTreeMap<u32, RankIo>,
    calls: CallsByStart,
    checkpoints: CheckpointTimes,
}

impl Shared for IoOfRanks {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let (trace, selection) = (context.trace, context.selection);
        let whole = Selection { ranks: selection.ranks.clone(), ..Selection::default() };
        let calls = CallsByStart::of(io_calls(trace, &whole));
        let checkpoints = CheckpointTimes::of(trace, &calls.calls);
        let asked = trace.ranks().into_iter().filter(|rank| selection.has_rank(*rank));
        let of_rank = |rank| RankIo::of(context, rank, calls.of_rank(rank), &checkpoints);
        let ranks = asked.filter_map(|rank| Some((rank, of_rank(rank)?))).collect();
        Self { ranks, calls, checkpoints }
    }
}

impl IoOfRanks {
    /// What a rank does with files.
    pub(crate) fn get(&self, rank: u32) -> Option<&RankIo> {
        self.ranks.get(&rank)
    }
}

/// Calls of ranks, and their order.
struct CallsByStart {
    /// By thread and start.
    calls: Vec<IoCall>,
    /// Where in `calls` those of each rank are, by start.
    of_ranks: BTreeMap<u32, Vec<u32>>,
}

impl CallsByStart {
    fn of(calls: Vec<IoCall>) -> Self {
        let mut starts: BTreeMap<u32, Vec<(i64, u32)>> = BTreeMap::new();
        for (call, at) in calls.iter().zip(0..) {
            starts.entry(call.rank).or_default().push((call.span.start_ns, at));
        }
        let in_order = |mut starts: Vec<(i64, u32)>| {
            // Ascending runs, one of each thread.
            starts.sort();
            starts.into_iter().map(|(_, at)| at).collect()
        };
        let of_ranks = starts.into_iter().map(|(rank, starts)| (rank, in_order(starts))).collect();
        Self { calls, of_ranks }
    }

    /// All those of a rank.
    fn of_rank(&self, rank: u32) -> impl Iterator<Item = &IoCall> + Clone {
        self.at(self.of_ranks.get(&rank).map_or(&[][..], Vec::as_slice))
    }

    /// Those that begin in a step.
    fn in_step(&self, step: &Step) -> impl Iterator<Item = &IoCall> {
        let of_rank = self.of_ranks.get(&step.rank).map_or(&[][..], Vec::as_slice);
        let before = |ns: i64| of_rank.partition_point(|at| self.calls[*at as usize].span.start_ns < ns);
        self.at(&of_rank[before(step.span.start_ns)..before(step.span.end_ns)])
    }

    fn at(&self, places: &[u32]) -> impl Iterator<Item = &IoCall> + Clone {
        places.iter().map(|at| &self.calls[*at as usize])
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { group_by: &[GroupBy::Step, GroupBy::Layer], compat: &[Compat::DfAnalyzer], ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    match (context.selection.compat, context.selection.group_by) {
        (Some(Compat::DfAnalyzer), Some(GroupBy::Layer)) => Outcome::without_coverage(context, &dlio::rows(context)),
        (Some(Compat::DfAnalyzer), _) => Outcome::without_coverage(context, &dfanalyzer::rows(context)),
        (_, Some(GroupBy::Layer)) => Outcome::without_coverage(context, &layers::rows(context)),
        _ => Outcome::without_coverage(context, &rows(context)),
    }
}

#[cfg(test)]
mod tests;
