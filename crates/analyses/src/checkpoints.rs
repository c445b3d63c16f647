//! # Definition
//! Each time that a process writes its state: when, for how long, how many bytes, how fast, and for how long that keeps
//! its main thread. A checkpoint is, in this order,
//!
//! 1. a range that the program labels (`stepscope.dataflow.checkpoint`);
//! 2. a call of a function that is known to write one, such as `torch.save`, where Python's calls are recorded;
//! 3. writes of one process to one file that together are 1 MiB or more, 4 KiB or more each on average, and of which each
//!    begins within a second of the end of the one before, from the first to the last call on the file around them.
//!
//! What overlaps of one process is one checkpoint. Its bytes are those of the calls on files, of any thread of the
//! process, that begin in it. Its bandwidth is the bytes written over its whole time, since that is what the program
//! waits for. It *blocks* while the main thread is in such a range or function, or, where neither is known, between the
//! main thread's first and last call on its files.
//!
//! # Units
//! Nanoseconds; bytes; bytes in a second; counts of files and calls; the blocking share is a share from 0 to 1.
//!
//! # Source
//! Labels of `stepscope.dataflow` and of DFTracer's category `checkpoint`, Python calls, and calls on files.
//!
//! # Edge cases
//! A range in which state is read, and not written, is a row too. Without calls on files (`stepscope record --io`) bytes,
//! bandwidth and files are absent. Writes through a mapping of a file are not seen. Other large files that a program
//! writes look like checkpoints where neither labels nor Python's calls tell them apart: the column `known_by` says
//! `writes`. A checkpoint that several processes write has a row for each of them. What a process writes after a range has
//! ended, as another thread does for `async_save`, is a checkpoint of its own that does not block. The main thread is the
//! one that something is recorded of for the longest time. For one step, or a window, the checkpoints that begin in it.

use crate::host_threads::{MainThreads, first_lane};
use crate::io_calls::{IoCall, io_calls, per_s};
use crate::windows::contains;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::{IntervalSet, Span, StringId, StringTable};
use stepscope_trace::{DataflowStage, IoAction, ProcessId, SliceRole, StepSource, Trace, TrackId};

/// What is written within this time of what was written before belongs to it.
const PAUSE_NS: i64 = 1_000_000_000;
/// Fewer bytes, together and in a write, are something else.
const MIN_BYTES: i64 = 1 << 20;
const MIN_WRITE_BYTES: i64 = 4 << 10;

/// How a checkpoint is known to be one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KnownBy {
    /// The program labels it.
    Label,
    /// A function that writes checkpoints was called.
    Call,
    /// Much is written to a file.
    Writes,
}

impl KnownBy {
    /// Its name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Call => "call",
            Self::Writes => "writes",
        }
    }
}

named_cells!(KnownBy);

columns! {
    /// One checkpoint of one process.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct Checkpoint {
        /// The rank.
        rank: u32 => Count,
        /// The process.
        process: ProcessId,
        /// The id of the process on its host.
        pid => Count with |row, trace| trace.processes[row.process.index()].pid,
        /// How it is known: by a `label`, by the `call` of a function, or by its `writes`.
        known_by: KnownBy => Text,
        /// The label, the function, or the file that most was written to.
        name: StringId => Text,
        /// When it is.
        span: Span,
        /// When it starts, counted from the start of the trace.
        start_ns => Nanoseconds = |row| row.span.start_ns,
        /// How long it takes.
        total_ns => Nanoseconds = |row| row.span.duration_ns(),
        /// Part of it that keeps the main thread.
        blocking_ns: i64 => Nanoseconds,
        /// Share of it that keeps the main thread. Absent for one that takes no time.
        blocking_ratio => Ratio = |row| {
            let total_ns = row.span.duration_ns();
            (total_ns > 0).then(|| row.blocking_ns as f64 / total_ns as f64)
        },
        /// Bytes written, as far as calls say it. Absent without calls on files.
        write_bytes: Option<i64> => Bytes,
        /// Bytes read, as far as calls say it. Absent without calls on files.
        read_bytes: Option<i64> => Bytes,
        /// Bytes written over the whole time. Absent where it is not known.
        write_bytes_per_s: Option<i64> => BytesPerSecond,
        /// Part of it in which any thread is in a write.
        writing_ns: Option<i64> => Nanoseconds,
        /// Number of known files that were written. Absent without calls on files.
        files: Option<i64> => Count,
        /// Number of calls that write. Absent without calls on files.
        writes: Option<i64> => Count,
        /// The step in which it begins. Absent outside of all.
        step: Option<i64> => Count,
    }
}

/// Every checkpoint, by rank and start.
pub fn checkpoints(trace: &Trace, selection: &Selection) -> Vec<Checkpoint> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<Checkpoint> {
    let (trace, selection) = (context.trace, context.selection);
    // What is asked for is checkpoints, whose calls may lie behind it.
    let calls = io_calls(trace, &Selection::default());
    let found = found(trace, &calls);
    let calls = by_process(&calls);
    let mains = context.get::<MainThreads>();
    let mut rows = Vec::new();
    for (process, found) in &found {
        let rank = trace.processes[process.index()].rank;
        let windows = selection.windows(trace, rank);
        let is_asked = |found: &&Found| windows.as_ref().is_none_or(|windows| contains(windows, found.span.start_ns));
        let of_process = Process {
            trace,
            process: *process,
            main: mains.0.get(process).copied(),
            calls: calls.get(process).map(Vec::as_slice),
        };
        if selection.has_rank(rank) {
            rows.extend(found.iter().filter(is_asked).map(|found| of_process.row(found)));
        }
    }
    rows.sort_by_key(|row| (row.rank, row.span.start_ns, row.process));
    rows
}

/// When each process writes checkpoints.
pub(crate) struct CheckpointTimes(BTreeMap<ProcessId, IntervalSet>);

impl CheckpointTimes {
    /// Those of processes of which `calls` are all calls on files.
    pub(crate) fn of(trace: &Trace, calls: &[IoCall]) -> Self {
        let found = found(trace, calls);
        let times = |found: Vec<Found>| found.iter().map(|found| found.span).collect();
        Self(found.into_iter().map(|(process, found)| (process, times(found))).collect())
    }

    /// Whether a call is of a checkpoint: it begins in one of its process.
    pub(crate) fn contain(&self, call: &IoCall) -> bool {
        self.0.get(&call.process).is_some_and(|times| contains(times.spans(), call.span.start_ns))
    }
}

/// The calls of each process, by start.
fn by_process<'a>(calls: impl IntoIterator<Item = &'a IoCall>) -> BTreeMap<ProcessId, Vec<&'a IoCall>> {
    let mut by_process: BTreeMap<ProcessId, Vec<&IoCall>> = BTreeMap::new();
    calls.into_iter().for_each(|call| by_process.entry(call.process).or_default().push(call));
    by_process.values_mut().for_each(|calls| calls.sort_by_key(|call| (call.span.start_ns, call.event.slice)));
    by_process
}

/// Every checkpoint of each process, by start. `calls` are all of theirs.
fn found(trace: &Trace, calls: &[IoCall]) -> BTreeMap<ProcessId, Vec<Found>> {
    let mut found = marked(trace);
    // Most files of a training are only read.
    let writes = calls.iter().filter(|call| call.event.action == IoAction::Write);
    let written: FxHashSet<(ProcessId, StringId)> = writes.map(|call| (call.process, call.event.file)).collect();
    let is_on_written = |call: &&IoCall| written.contains(&(call.process, call.event.file));
    for (process, calls) in by_process(calls.iter().filter(is_on_written)) {
        let of_process = found.entry(process).or_default();
        let is_outside = |call: &&IoCall| !of_process.iter().any(|found| found.span.contains(call.span.start_ns));
        let outside: Vec<&IoCall> = calls.into_iter().filter(is_outside).collect();
        of_process.extend(merged(episodes(trace, &outside)));
        of_process.sort_by_key(|found| (found.span.start_ns, found.span.end_ns));
    }
    found
}

/// A checkpoint, and what says that it is one.
#[derive(Clone, Debug)]
struct Found {
    known_by: KnownBy,
    name: StringId,
    span: Span,
    /// Ranges and calls on threads, by first lane.
    on_threads: Vec<(TrackId, Span)>,
}

/// Labels and calls of functions, by process.
fn marked(trace: &Trace) -> BTreeMap<ProcessId, Vec<Found>> {
    let labels = trace.dataflow.iter().filter(|said| said.stage == DataflowStage::Checkpoint);
    let labels = labels.map(|said| (said.slice, KnownBy::Label));
    let has_functions = trace.roles.iter().any(|(_, role)| *role == SliceRole::CheckpointWrite);
    let functions =
        trace.slices.ids().filter(|id| has_functions && trace.role(*id) == Some(SliceRole::CheckpointWrite));
    let mut of_processes: BTreeMap<ProcessId, Vec<Found>> = BTreeMap::new();
    for (slice, known_by) in labels.chain(functions.map(|slice| (slice, KnownBy::Call))) {
        let (track, span) = (trace.slices.track[slice.index()], trace.slices.span(slice));
        let on_threads = vec![(first_lane(trace, track), span)];
        let found = Found { known_by, name: trace.slices.name[slice.index()], span, on_threads };
        of_processes.entry(trace.tracks[track.index()].process).or_default().push(found);
    }
    of_processes.into_iter().map(|(process, found)| (process, merged(found))).collect()
}

/// What overlaps as one, which is known by what says it best, and called as that which begins first of those.
fn merged(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|found| (found.span.start_ns, std::cmp::Reverse(found.span.end_ns), found.known_by));
    let mut all: Vec<Found> = Vec::new();
    for next in found {
        match all.last_mut().filter(|last| next.span.start_ns < last.span.end_ns) {
            Some(last) => {
                if next.known_by < last.known_by {
                    (last.known_by, last.name) = (next.known_by, next.name);
                }
                last.span = Span::new(last.span.start_ns, last.span.end_ns.max(next.span.end_ns));
                last.on_threads.extend(next.on_threads);
            }
            None => all.push(next),
        }
    }
    all
}

/// Files to which much is written at once. `calls` are those of a process on files that it writes, by start.
fn episodes(trace: &Trace, calls: &[&IoCall]) -> Vec<Found> {
    let mut of_files: BTreeMap<StringId, Vec<&IoCall>> = BTreeMap::new();
    let named = calls.iter().filter(|call| call.event.file != StringTable::EMPTY);
    named.for_each(|call| of_files.entry(call.event.file).or_default().push(call));
    let mut found = Vec::new();
    for (file, calls) in of_files {
        let mut end_ns = i64::MIN;
        let mut of_file: Vec<Vec<&IoCall>> = Vec::new();
        for call in calls {
            match of_file.last_mut().filter(|_| call.span.start_ns.saturating_sub(end_ns) <= PAUSE_NS) {
                Some(episode) => episode.push(call),
                None => of_file.push(vec![call]),
            }
            end_ns = end_ns.max(call.span.end_ns);
        }
        for episode in of_file.iter().filter(|episode| is_much(episode)) {
            let whole = episode.iter().map(|call| call.span).reduce(hull).expect("there are calls");
            let mut on_threads: BTreeMap<TrackId, Span> = BTreeMap::new();
            for call in episode {
                let thread = first_lane(trace, trace.slices.track[call.event.slice.index()]);
                on_threads.entry(thread).and_modify(|span| *span = hull(*span, call.span)).or_insert(call.span);
            }
            let on_threads = on_threads.into_iter().collect();
            found.push(Found { known_by: KnownBy::Writes, name: file, span: whole, on_threads });
        }
    }
    found
}

fn is_much(calls: &[&IoCall]) -> bool {
    let writes = calls.iter().filter(|call| call.event.action == IoAction::Write);
    let sizes: Vec<i64> = writes.filter_map(|call| call.event.bytes).filter(|bytes| *bytes > 0).collect();
    let bytes = sizes.iter().fold(0_i64, |sum, bytes| sum.saturating_add(*bytes));
    bytes >= MIN_BYTES && bytes / sizes.len() as i64 >= MIN_WRITE_BYTES
}

fn hull(a: Span, b: Span) -> Span {
    Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns))
}

/// What rows of a process are made of.
struct Process<'a> {
    trace: &'a Trace,
    process: ProcessId,
    main: Option<TrackId>,
    /// By start.
    calls: Option<&'a [&'a IoCall]>,
}

impl Process<'_> {
    fn row(&self, found: &Found) -> Checkpoint {
        let (trace, span) = (self.trace, found.span);
        let rank = trace.processes[self.process.index()].rank;
        let of_main = found.on_threads.iter().filter(|(thread, _)| Some(*thread) == self.main);
        let blocking: IntervalSet = of_main.map(|(_, span)| *span).collect();
        let calls = self.calls.map(|calls| {
            let first = calls.partition_point(|call| call.span.start_ns < span.start_ns);
            let len = calls[first..].partition_point(|call| call.span.start_ns < span.end_ns);
            &calls[first..first + len]
        });
        let is = |action: IoAction| move |call: &&&IoCall| call.event.action == action;
        let bytes = |calls: &[&IoCall], action| {
            let bytes = calls.iter().filter(is(action)).filter_map(|call| call.event.bytes);
            bytes.fold(0_i64, i64::saturating_add)
        };
        let write_bytes = calls.map(|calls| bytes(calls, IoAction::Write));
        let writing = |calls: &[&IoCall]| {
            calls
                .iter()
                .filter(is(IoAction::Write))
                .map(|call| call.span)
                .collect::<IntervalSet>()
                .clip(span)
                .total_ns()
        };
        let mut written: FxHashMap<StringId, i64> = FxHashMap::default();
        for call in calls.into_iter().flatten().filter(|call| call.event.action == IoAction::Write) {
            *written.entry(call.event.file).or_default() += call.event.bytes.unwrap_or(0);
        }
        let files: BTreeSet<StringId> = written.keys().copied().filter(|file| *file != StringTable::EMPTY).collect();
        let most = files.iter().max_by_key(|file| (written[*file], std::cmp::Reverse(trace.strings.get(**file))));
        let step = trace
            .steps
            .iter()
            .find(|step| step.rank == rank && step.source != StepSource::Whole && step.span.contains(span.start_ns));
        Checkpoint {
            rank,
            process: self.process,
            known_by: found.known_by,
            name: most.copied().filter(|_| found.known_by == KnownBy::Writes).unwrap_or(found.name),
            span,
            blocking_ns: blocking.clip(span).total_ns(),
            write_bytes,
            read_bytes: calls.map(|calls| bytes(calls, IoAction::Read)),
            write_bytes_per_s: write_bytes
                .filter(|bytes| *bytes > 0)
                .and_then(|bytes| per_s(bytes.into(), span.duration_ns().into())),
            writing_ns: calls.map(writing),
            files: calls.map(|_| files.len() as i64),
            writes: calls.map(|calls| calls.iter().filter(is(IoAction::Write)).count() as i64),
            step: step.map(|step| step.number),
        }
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests;
