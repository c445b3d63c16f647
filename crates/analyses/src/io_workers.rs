//! # Definition
//! For each worker of a `DataLoader`, what it does with its time. *Reading* is in calls on files while it makes a batch,
//! *decoding* is the rest of making batches, *waiting* is between two batches, when all that it was asked for is made, and
//! *idle* is before the first batch and after the last. They sum to its time, from the first to the last thing that was
//! recorded of its process. A worker that ends with each pass over the data and is started again is one row.
//!
//! Beside it stand how long the loop waited for the worker's batches, and how many workers would be enough: as many as
//! make batches as fast as the loop takes them when it never waits,
//!
//! ```text
//! mean time to make a batch, of all workers of the rank
//! ───────────────────────────────────────────────────────   rounded up
//! mean time from one `next()` of the loop to the one after
//! ```
//!
//! where the time from one `next()` to the one after begins when the first has ended, and both are of one pass.
//!
//! # Units
//! Nanoseconds; counts of batches, processes, workers and page faults; bytes.
//!
//! # Source
//! What the recorder says of each batch that PyTorch's `DataLoader` makes, and of each `next()` of a loop, and calls on
//! files.
//!
//! # Edge cases
//! Batches that the training process makes itself are a row without a worker, whose time is that of making batches. Calls
//! on files are those of the thread that makes the batch; without `stepscope record --io` none are recorded, and all is
//! decoding. What is read through a mapping of a file is no call: how much that is and how long it takes is not known, so
//! that it is in decoding, but the pages that had to be read are counted. Of a run in which only some steps are recorded,
//! what was not recorded between two batches counts as waiting: ask for one step. For a step, or a window, the parts that
//! lie in it; how many workers are enough is then of the batches made and taken in it.
//!
//! The number of workers that would be enough assumes that a batch takes as long to make beside more workers, which holds
//! while there are processors, memory and disk for them. It is a mean: with batches that differ much, more workers or a
//! higher `prefetch_factor` are needed to bridge the slow ones. It is not known with fewer than two batches taken, or
//! where the loop does nothing between them. Loaders of one rank that run at the same time are taken as one.

use crate::batches::{Batch, Batches, PlacedRange};
use crate::host_threads::{Doing, Threads};
use crate::io_calls::IoCall;
use crate::windows::contains;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{IoAction, ProcessId, Trace};

columns! {
    /// What one worker does.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct WorkerTime {
        /// The rank.
        rank: u32 => Count,
        /// The number of the worker, as its loader counts. Absent for batches that the training process makes itself.
        worker: Option<i64> => Count,
        /// Number of processes that were this worker, one after the other.
        processes: i64 => Count,
        /// Number of batches that it began to make.
        batches: i64 => Count,
        /// Number of workers of the rank.
        workers: i64 => Count,
        /// Number of workers of the rank that would be enough for the loop never to wait. Absent when it is not known.
        enough_workers: Option<i64> => Count,
        /// The time of its processes.
        total_ns: i64 => Nanoseconds,
        /// Time in calls on files while it makes batches.
        reading_ns: i64 => Nanoseconds,
        /// The other time of making batches.
        decoding_ns: i64 => Nanoseconds,
        /// Time between two batches.
        waiting_ns: i64 => Nanoseconds,
        /// Time before the first batch and after the last.
        idle_ns: i64 => Nanoseconds,
        /// Bytes read while it makes batches, as far as calls say it.
        read_bytes: i64 => Bytes,
        /// Number of major page faults while it makes batches: pages of mapped files that had to be read when they were
        /// touched.
        page_faults: i64 => Count,
        /// Time that the loop waited in `next()` for batches of this worker.
        waited_for_ns: i64 => Nanoseconds,
    }
}

/// Each worker, by rank and number; the training process comes first.
pub fn io_workers(trace: &Trace, selection: &Selection) -> Vec<WorkerTime> {
    rows(&AnalysisContext::new(trace, selection))
}

/// The same of a context.
pub(crate) fn rows(context: &AnalysisContext<'_>) -> Vec<WorkerTime> {
    let (trace, selection) = (context.trace, context.selection);
    let Batches { batches, nexts } = context.get();
    let mut rows: BTreeMap<(u32, Option<i64>), WorkerTime> = BTreeMap::new();
    let mut loops: BTreeMap<u32, Loop> = BTreeMap::new();
    let mut makers: FxHashMap<ProcessId, ((u32, Option<i64>), IntervalSet)> = FxHashMap::default();
    for made in batches.chunk_by(|a, b| a.fetch.process == b.fetch.process) {
        let PlacedRange { rank, process, .. } = made[0].fetch;
        if !selection.has_rank(rank) {
            continue;
        }
        let parts = Parts(selection.windows(trace, rank));
        // The training process may make batches of its own beside those of its workers; a worker makes no other's.
        let worker = made.iter().find_map(|batch| batch.fetch.said.worker);
        let row = rows.entry((rank, worker)).or_insert(WorkerTime { rank, worker, ..WorkerTime::default() });
        let fetching = row.add(context, (process, worker.is_some()), made, &parts);
        makers.insert(process, ((rank, worker), fetching));
        let of_rank = loops.entry(rank).or_default();
        let begun = made.iter().map(|batch| batch.fetch.span).filter(|span| parts.contains(span.start_ns));
        begun.for_each(|span| of_rank.add_made(span));
    }
    for call in context.get::<Vec<IoCall>>().iter().filter(|call| call.event.action == IoAction::Read) {
        if let Some((row, fetching)) = makers.get(&call.process)
            && contains(fetching.spans(), call.span.start_ns)
            && let Some(row) = rows.get_mut(row)
        {
            row.read_bytes = row.read_bytes.saturating_add(call.event.bytes.unwrap_or(0));
            row.page_faults += i64::from(call.is_major_page_fault());
        }
    }
    for taken in nexts.chunk_by(|a, b| a.thread == b.thread).filter(|taken| selection.has_rank(taken[0].rank)) {
        let parts = Parts(selection.windows(trace, taken[0].rank));
        let taken: Vec<&PlacedRange> = taken.iter().filter(|next| parts.contains(next.span.start_ns)).collect();
        for next in &taken {
            if let Some(row) = rows.get_mut(&(next.rank, next.said.worker)) {
                row.waited_for_ns += next.span.duration_ns();
            }
        }
        let Some(of_rank) = taken.first().and_then(|next| loops.get_mut(&next.rank)) else { continue };
        taken.windows(2).for_each(|pair| of_rank.add_turn(pair[0], pair[1]));
    }
    let mut workers: BTreeMap<u32, BTreeSet<i64>> = BTreeMap::new();
    rows.keys().for_each(|(rank, worker)| workers.entry(*rank).or_default().extend(*worker));
    for row in rows.values_mut() {
        row.workers = workers[&row.rank].len() as i64;
        row.enough_workers = loops[&row.rank].enough_workers();
        let sum_ns = row.reading_ns + row.decoding_ns + row.waiting_ns + row.idle_ns;
        assert_eq!(sum_ns, row.total_ns, "the parts of a worker's time sum to it");
    }
    rows.into_values().collect()
}

impl WorkerTime {
    /// Adds a process that made `made`; gives when it did.
    fn add(
        &mut self,
        context: &AnalysisContext<'_>,
        (process, is_worker): (ProcessId, bool),
        made: &[Batch],
        parts: &Parts,
    ) -> IntervalSet {
        let trace = context.trace;
        let spans = |of: &[Batch]| of.iter().map(|batch| batch.fetch.span).collect::<IntervalSet>();
        let (fetching, threads) = (spans(made), context.get::<Threads>());
        let mut reading = IntervalSet::default();
        for of_thread in made.chunk_by(|a, b| a.fetch.thread == b.fetch.thread) {
            let in_calls = threads.get(trace, of_thread[0].fetch.thread).doing(Doing::Io);
            reading = reading.union(&spans(of_thread).intersect(in_calls));
        }
        let between = fetching.hull().map_or_else(IntervalSet::default, IntervalSet::of);
        let life = if is_worker { life_of(trace, process) } else { fetching.clone() };
        // Nothing between batches of the training process is the loader's.
        let between = between.intersect(&life);
        let part_ns = |set: &IntervalSet| parts.part_ns(set);
        self.processes += 1;
        self.batches += made.iter().filter(|batch| parts.contains(batch.fetch.span.start_ns)).count() as i64;
        self.total_ns += part_ns(&life);
        self.reading_ns += part_ns(&reading);
        self.decoding_ns += part_ns(&fetching.subtract(&reading));
        self.waiting_ns += part_ns(&between.subtract(&fetching));
        self.idle_ns += part_ns(&life.subtract(&between));
        fetching
    }
}

/// From the first to the last thing of a process.
fn life_of(trace: &Trace, process: ProcessId) -> IntervalSet {
    let tracks = trace.tracks.iter().filter(|track| track.process == process);
    let spans = tracks.flat_map(|track| track.slice_ids()).map(|id| trace.slices.span(id));
    let whole = spans.reduce(|a, b| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns)));
    whole.map_or_else(IntervalSet::default, IntervalSet::of)
}

/// The parts of a rank's time that are asked for; `None` for all of it.
struct Parts(Option<Vec<Span>>);

impl Parts {
    fn contains(&self, at_ns: i64) -> bool {
        self.0.as_ref().is_none_or(|parts| contains(parts, at_ns))
    }

    fn part_ns(&self, set: &IntervalSet) -> i64 {
        match &self.0 {
            None => set.total_ns(),
            Some(parts) => parts.iter().map(|part| set.clip(*part).total_ns()).sum(),
        }
    }
}

/// How fast the batches of a rank are made and taken.
#[derive(Default)]
struct Loop {
    made: i128,
    made_ns: i128,
    turns: i128,
    turns_ns: i128,
}

impl Loop {
    fn add_made(&mut self, span: Span) {
        self.made += 1;
        self.made_ns += i128::from(span.duration_ns());
    }

    /// The loop took one batch, then the other.
    fn add_turn(&mut self, first: &PlacedRange, then: &PlacedRange) {
        // Between two passes there is more than a turn of the loop.
        if first.said.batch.zip(then.said.batch).is_some_and(|(first, then)| first < then) {
            self.turns += 1;
            self.turns_ns += i128::from((then.span.start_ns - first.span.end_ns).max(0));
        }
    }

    fn enough_workers(&self) -> Option<i64> {
        let (needed, available) = (self.made_ns * self.turns, self.turns_ns * self.made);
        let enough = (available > 0).then(|| (needed + available - 1) / available)?;
        i64::try_from(enough.max(1)).ok()
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::tests::with_batches;
    use crate::io_calls::tests::with_page_faults;
    use proptest::prelude::*;
    use stepscope_trace::{DataflowStage, SliceKind};

    /// Rows as `worker batches total=reading+decoding+waiting+idle in us, waited for, workers/enough`.
    fn lines(trace: &Trace, selection: &Selection) -> Vec<String> {
        let shown = |value: Option<i64>| value.map_or("-".into(), |value| value.to_string());
        let line = |row: &WorkerTime| {
            let us = |ns: i64| ns / 1_000;
            format!(
                "{} {} {}={}+{}+{}+{} {} {}/{}",
                shown(row.worker),
                row.batches,
                us(row.total_ns),
                us(row.reading_ns),
                us(row.decoding_ns),
                us(row.waiting_ns),
                us(row.idle_ns),
                us(row.waited_for_ns),
                row.workers,
                shown(row.enough_workers)
            )
        };
        io_workers(trace, selection).iter().map(line).collect()
    }

    const JOB: &str = "rank 0 step    000000111111111
                       rank 0 input 1 .aa..bb.c......
                       rank 1 python 2 x.............
                       rank 1 label 1 .aa...cccc.....
                       rank 1 io 1    .r....rr...r..r
                       rank 2 label 1 ..bbb..........";

    #[test]
    fn the_time_of_a_worker_has_four_parts() {
        let trace = with_batches(JOB);
        // Worker 0: from 0 to 15 us. A batch takes 9/3 us, a turn of the loop (2 + 1)/2.
        assert_eq!(lines(&trace, &Selection::default()), ["0 2 15=3+3+3+6 3 2/2", "1 1 3=0+3+0+0 2 2/2"]);
        assert_eq!(io_workers(&trace, &Selection::default())[0].read_bytes, 300);
    }

    #[test]
    fn pages_that_are_read_for_batches_are_counted_and_take_no_time() {
        let trace = with_page_faults(with_batches(
            "rank 0 step    0000011111
             rank 0 input 1 .a....b...
             rank 1 label 1 aaa..bbb..
             rank 1 io 1    R|Rm.RRrR.R",
        ));
        // The fault in the fourth column lies between the batches.
        let rows = |selection| io_workers(&trace, &selection);
        let counts = |row: &WorkerTime| (row.page_faults, row.read_bytes, row.reading_ns);
        assert_eq!(rows(Selection::default()).iter().map(counts).collect::<Vec<_>>(), [(3, 100, 1_000)]);
        let first = Selection { step: Some(0), ..Selection::default() };
        assert_eq!(rows(first).iter().map(counts).collect::<Vec<_>>(), [(2, 0, 0)]);
    }

    #[test]
    fn a_step_has_the_parts_that_lie_in_it() {
        let trace = with_batches(JOB);
        let second = Selection { step: Some(1), ..Selection::default() };
        assert_eq!(lines(&trace, &second), ["0 1 9=2+2+0+5 1 2/-", "1 0 0=0+0+0+0 0 2/-"]);
    }

    #[test]
    fn the_training_process_makes_batches_itself() {
        let trace = with_batches(
            "rank 0 input 1 aaa.bbb..c
             rank 0 label 1 .aa..bb..c
             rank 0 io 1    .r.r..rr..",
        );
        // A batch takes 5/3 us, a turn (1 + 2)/2.
        assert_eq!(lines(&trace, &Selection::default()), ["- 3 5=2+3+0+0 7 0/2"]);
    }

    #[test]
    fn a_loop_that_does_nothing_else_and_a_single_batch_tell_no_number() {
        let enough = |drawing: &str| io_workers(&with_batches(drawing), &Selection::default())[0].enough_workers;
        assert_eq!(enough("rank 0 input 1 aabb\nrank 1 label 1 ab.."), None);
        assert_eq!(enough("rank 0 input 1 ..a.\nrank 1 label 1 aa.."), None);
        // A new pass is no turn.
        assert_eq!(enough("rank 0 input 1 ..b....a\nrank 1 label 1 bb..aa.."), None);
        assert_eq!(enough("rank 0 input 1 ..a..b\nrank 1 label 1 aa|bb.."), Some(1));
        assert_eq!(enough("rank 0 input 1 ...a.b\nrank 1 label 1 aaabb."), Some(3));
    }

    #[test]
    fn without_workers_there_is_no_row() {
        assert_eq!(lines(&with_batches("rank 0 cpu 1 aa"), &Selection::default()), [""; 0]);
    }

    proptest! {
        #[test]
        fn each_microsecond_of_a_worker_is_one_thing(
            fetches in prop::collection::vec("[.a-e|]{24}", 1..4), reads in prop::collection::vec("[..rRm|]{24}", 3),
            other in "[...x]{24}", takes in "[..a-e]{24}", from in 0_i64..20, len in 1_i64..20, is_part in any::<bool>(),
        ) {
            let mut drawing = format!("rank 0 input 1 {takes}\n");
            for (at, (fetch, read)) in fetches.iter().zip(&reads).enumerate() {
                let rank = at + 1;
                drawing += &format!("rank {rank} label 1 {fetch}\nrank {rank} io 1 {read}\nrank {rank} cpu 2 {other}\n");
            }
            let trace = with_page_faults(with_batches(&drawing));
            let window = Span::new(from * 1_000, (from + len) * 1_000);
            let selection = Selection { window: is_part.then_some(window), ..Selection::default() };
            let asked = if is_part { window } else { Span::new(0, i64::MAX) };
            for row in io_workers(&trace, &selection) {
                let process = trace.processes.iter().position(|process| process.pid == Some(101 + row.worker.unwrap()));
                let process = ProcessId::from_index(process.unwrap());
                let of = |kind: Option<SliceKind>| -> Vec<Span> {
                    let ids = trace.slices.ids().filter(|id| {
                        trace.tracks[trace.slices.track[id.index()].index()].process == process
                    });
                    let ids = ids.filter(|id| kind.is_none_or(|kind| trace.slices.kind(*id) == kind));
                    ids.map(|id| trace.slices.span(id)).collect()
                };
                let (fetches, calls, all) = (of(Some(SliceKind::Annotation)), of(Some(SliceKind::Io)), of(None));
                let mut parts = [0; 4];
                for us in 0..24_i64 {
                    let at_ns = us * 1_000;
                    let is_in = |spans: &[Span]| spans.iter().any(|span| span.contains(at_ns));
                    let is_between = |spans: &[Span]| {
                        spans.iter().any(|span| span.start_ns <= at_ns) && spans.iter().any(|span| span.end_ns > at_ns)
                    };
                    if !asked.contains(at_ns) || !is_between(&all) {
                        continue;
                    }
                    let part = match () {
                        () if is_in(&fetches) && is_in(&calls) => 0,
                        () if is_in(&fetches) => 1,
                        () if is_between(&fetches) => 2,
                        () => 3,
                    };
                    parts[part] += 1_000;
                }
                prop_assert_eq!([row.reading_ns, row.decoding_ns, row.waiting_ns, row.idle_ns], parts);
                prop_assert_eq!(parts.iter().sum::<i64>(), row.total_ns);
                let of_fetches = |at_ns: i64| asked.contains(at_ns) && fetches.iter().any(|span| span.contains(at_ns));
                let faults = trace.io.iter().filter(|event| {
                    let slice = event.slice.index();
                    trace.tracks[trace.slices.track[slice].index()].process == process
                        && trace.slice_name(event.slice) == "R"
                        && of_fetches(trace.slices.start_ns[slice])
                });
                prop_assert_eq!(row.page_faults, faults.count() as i64);
                let took = trace.dataflow.iter().filter(|range| {
                    range.stage == DataflowStage::Next && range.worker == row.worker
                        && asked.contains(trace.slices.start_ns[range.slice.index()])
                });
                let took: i64 = took.map(|range| trace.slices.dur_ns[range.slice.index()]).sum();
                prop_assert_eq!(row.waited_for_ns, took);
            }
        }
    }
}
