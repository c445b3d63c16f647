//! # Definition
//! For each step of the job, on which ranks the chain of work lies that its length consists of: the critical path, followed
//! from rank to rank through collectives and messages. A row is a rank that has a part of the path of a step, the largest
//! part first; the rows of a step sum to its length, to the nanosecond. Rows of all complete steps together come first.
//!
//! Steps of ranks with the same number are one step of the job. It ends with the last of all ranks; there the path begins,
//! and goes backwards as `critical_path` defines it, with these additions:
//!
//! - Where the path comes to a communication that other ranks of the run take part in (a kernel, or a work that a thread of
//!   the backend carries out on the host), it is *transfer* back to when the last of them came. If that was another rank,
//!   the path *hops*: it goes on there, with what that rank's own part waited for before it began. Time in which ranks wait
//!   for each other is on no path.
//! - Who came last is known as in `stragglers`: from a collective ranks leave together, and the last is the one that it
//!   takes the shortest on; of several it is the rank where the path is, or else the one that began last. Ranks leave a
//!   broadcast, reduce, gather, scatter or message as in `what_if`: the last is the one that began last, of those that had
//!   begun when the rank left. What is received waits for what is sent.
//! - A work on the host began when it was asked for, or when the work before it on its thread ended. Of one that does not
//!   say which operator asked for it, as Gloo's in traces of `torch.profiler`, the thread that runs the step did.
//! - A thread that is in no operator, call or wait for data may wait for a work of a backend that ends meanwhile: the path
//!   goes on with the last that does. So does an operator whose purpose is to wait for collectives.
//! - Profilers seldom report which stream waits for which. For a rank of which none is reported, a kernel of communication
//!   also waited for all that was launched before it on its device, and other device events for the communication with
//!   other ranks that was launched before them: for what ended last before they began.
//!
//! The path ends at the start of the step on the rank that it is then on. So paths of successive steps follow each other,
//! also where some ranks begin a step earlier than others.
//!
//! # Units
//! Nanoseconds; `start_ns` counts from the start of the trace. The ratio is a share of the path, from 0 to 1. Counts of
//! ranks and hops.
//!
//! # Source
//! As `critical_path`; collectives and messages are matched as in `stragglers` and `what_if`.
//!
//! # Edge cases
//! A step that recording cut is given, and left out of the sum. With a single rank, or where nothing is matched, the path stays on the rank that ends last, and has the classes of its
//! `critical_path`. Transfer counts for the rank on which the path leaves the communication, though others take part in
//! it. Clocks of ranks differ a little also once they are corrected: a path that hops to a rank on which, as its clock
//! shows, the moment lies later goes on where it was, so that it never goes forward; and it takes no hop twice, so that it
//! ends also where matches contradict each other. A path that comes to a rank which has not yet begun the step ends there.
//! Communication of which the last rank does not have the step, or that only one rank of the run has, is communication
//! without a hop: waiting may be in it. What pauses for another reason is taken to have waited for the communication that
//! ended meanwhile: a thread, and a stream where waits of streams are not reported. Where a rank has several steps of one number, the first goes with the first of the others. Ranks that are
//! asked for select rows, and not what the path may go through.

use crate::critical_path::{JobPath, PathClass, PathParts, RankTime, job_paths};
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::cmp::Reverse;
use stepscope_trace::Trace;

columns! {
    /// The part of one rank in the critical path of a step of the job, or of all complete steps.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct CriticalPathRanks {
        /// The number of the step. Absent for all complete steps together.
        step: Option<i64> => Count,
        /// The rank that has a part of the path.
        rank: u32 => Count,
        /// Time of the path on this rank. It is the sum of the parts.
        path_ns: i64 => Nanoseconds,
        /// `path_ns` as a share of `length_ns`.
        path_ratio: f64 => Ratio,
        /// What the rank does on the path for longest: `transfer`, or a class.
        largest_part => Text = |row| row.largest_part(),
        /// How often the path comes to this rank from another one, as time passes.
        hops: i64 => Count,
        /// Length of the whole path, over all ranks.
        length_ns: i64 => Nanoseconds,
        /// The parts.
        time: RankTime,
        /// Time of the path in communication with other ranks, once the last of them has come. It is not in `comm_ns`.
        transfer_ns => Nanoseconds = |row| row.time.transfer_ns,
        ..PathParts = |row| &row.time.parts,
        /// When the path starts, counted from the start of the trace.
        start_ns: i64 => Nanoseconds,
        /// Number of ranks that have the step; of steps together the most.
        ranks: i64 => Count,
        /// Whether all of the step was recorded on all ranks.
        is_complete: bool => Flag,
        /// What the row is of: `one` for one step, `sum` for all complete steps.
        row => Text = |row| if row.step.is_some() { "one" } else { "sum" },
    }
}

/// Every rank asked for of the path of every step asked for: of complete steps together, then by step; the largest part first.
pub fn critical_path_ranks(trace: &Trace, selection: &Selection) -> Vec<CriticalPathRanks> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<CriticalPathRanks> {
    let paths = job_paths(context);
    let together = JobPath::sum(&paths).filter(|_| paths.len() > 1);
    let mut rows: Vec<CriticalPathRanks> = together.iter().chain(&paths).flat_map(of_path).collect();
    rows.retain(|row| context.selection.has_rank(row.rank));
    rows
}

fn of_path(path: &JobPath) -> Vec<CriticalPathRanks> {
    let row = |(rank, time): (&u32, &RankTime)| CriticalPathRanks {
        step: path.step,
        rank: *rank,
        path_ns: time.path_ns(),
        path_ratio: time.path_ns() as f64 / path.length_ns as f64,
        hops: time.hops,
        length_ns: path.length_ns,
        time: *time,
        start_ns: path.start_ns,
        ranks: path.ranks,
        is_complete: path.is_complete,
    };
    let mut rows: Vec<CriticalPathRanks> = path.on.iter().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.path_ns), row.rank));
    rows
}

impl CriticalPathRanks {
    fn largest_part(&self) -> &'static str {
        let of_class = |class: &PathClass| (self.time.parts.of(*class), class.as_str());
        let parts = std::iter::once((self.time.transfer_ns, "transfer")).chain(PathClass::ALL.iter().map(of_class));
        // Of equal ones the first.
        parts.reduce(|largest, part| if part.0 > largest.0 { part } else { largest }).map_or("", |(_, name)| name)
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::AllEvents);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;
