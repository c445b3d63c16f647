//! # Definition
//! Each batch that a `DataLoader` made, and each piece of input work that the program labels with the index of a sample,
//! the slowest first: who made it, of which samples, how long that took, how much of it was spent in calls on files, and
//! which file took most of that. For a batch also how long the loop waited in the `next()` that took it, how long it lay
//! ready before, and the step in which it was taken.
//!
//! # Units
//! Nanoseconds; numbers of workers, batches and steps; counts of samples and page faults; bytes. `samples` is a list of
//! indices, of which only the first are recorded.
//!
//! # Source
//! What the recorder says of each batch that PyTorch's `DataLoader` makes, and of each `next()` of a loop; labels of
//! `stepscope.dataflow.data` and `preprocess` that say a sample; calls on files.
//!
//! # Edge cases
//! Calls on files are those of the thread that makes the batch, while it does; one inside another counts once. What is
//! read through a mapping of a file is no call: how much that is and how long it takes is not known, but the pages that had
//! to be read are counted. A file that the source does not tell has no name; of files that took the same time it is that
//! with most such pages, then the first by name. A batch that no `next()` took, as at the end of a pass, has neither a
//! step nor times of one, and so has a piece of work that is no batch. It lay ready from the end of making it to the end
//! of the `next()`; a batch that was made within the `next()` never lay. The samples of an `IterableDataset` have no
//! indices. For one step, or a window: what was taken in it, and of what was not taken, that whose making began in it.

use crate::batches::{Batch, Batches, PlacedRange, placed};
use crate::host_threads::{Doing, Threads, first_lane};
use crate::io_calls::IoCall;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::{IntervalSet, Span, StringId, StringTable};
use stepscope_trace::{DataflowRange, DataflowStage, IoAction, ProcessId, Step, StepSource, Trace, TrackId};

columns! {
    /// One batch, or one labelled piece of work.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct SampleTime {
        /// The rank.
        rank: u32 => Count,
        /// What it is: `fetch` of a batch, or the stage that the program labels.
        stage => Text = |row| row.said.stage,
        /// What the range says.
        said: DataflowRange,
        /// When it was made.
        span: Span,
        /// The number of the worker that made it, as its loader counts. Absent where the training process did.
        worker => Count = |row| row.said.worker,
        /// The process that made it.
        process: ProcessId,
        /// The id of the process that made it, on its host.
        pid => Count with |row, trace| trace.processes[row.process.index()].pid,
        /// The number of the batch, which a loader counts from 0 in each pass. Absent for labelled work.
        batch => Count = |row| row.said.batch,
        /// The indices of its first samples. Absent when they are not known.
        samples => Text = |row| Some(row.said.samples).filter(|samples| *samples != StringTable::EMPTY),
        /// Number of samples. Absent when it is not known.
        count => Count = |row| row.said.count,
        /// Time to make it.
        total_ns => Nanoseconds = |row| row.span.duration_ns(),
        /// Part of it in calls on files.
        reading_ns: i64 => Nanoseconds,
        /// Bytes read for it, as far as calls say it.
        read_bytes: i64 => Bytes,
        /// Number of major page faults: pages of mapped files that had to be read when they were touched.
        page_faults: i64 => Count,
        /// The file in whose calls most time was spent. Absent without calls on files, and when it is not known.
        file: Option<StringId> => Text,
        /// Time in calls on that file. Absent without calls on files.
        file_ns: Option<i64> => Nanoseconds,
        /// Time that the loop waited in the `next()` that took it. Absent when none did.
        waited_ns: Option<i64> => Nanoseconds,
        /// Time that it was ready before the `next()` that took it ended. Absent when none did.
        ready_ns: Option<i64> => Nanoseconds,
        /// The step in which it was taken. Absent when it was taken in none.
        step: Option<i64> => Count,
        /// When making it begins, counted from the start of the trace.
        start_ns => Nanoseconds = |row| row.span.start_ns,
    }
}

/// Each batch and each labelled piece of work, by rank, the slowest first.
pub fn io_samples(trace: &Trace, selection: &Selection) -> Vec<SampleTime> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<SampleTime> {
    let (trace, selection) = (context.trace, context.selection);
    let labelled = trace.dataflow.iter().filter(|said| {
        matches!(said.stage, DataflowStage::Data | DataflowStage::Preprocess) && said.samples != StringTable::EMPTY
    });
    let labelled = labelled.map(|said| Batch { fetch: placed(trace, said), next: None });
    let windows: BTreeMap<u32, Option<Vec<Span>>> =
        trace.ranks().into_iter().map(|rank| (rank, selection.windows(trace, rank))).collect();
    let is_asked = |batch: &Batch| {
        // It ends where the loop goes on with the batch.
        let at_ns = batch.next.map_or(batch.fetch.span.start_ns, |next| next.span.end_ns);
        let windows = windows[&batch.fetch.rank].as_ref();
        selection.has_rank(batch.fetch.rank) && windows.is_none_or(|windows| crate::windows::contains(windows, at_ns))
    };
    let batches = context.get::<Batches>().batches.iter().copied().chain(labelled).filter(is_asked);
    let (calls, steps) = (Calls::of(trace), Steps::of(trace));
    let mut rows: Vec<SampleTime> = batches.map(|batch| row(context, &calls, &steps, &batch)).collect();
    rows.sort_by_key(|row| (row.rank, Reverse(row.span.duration_ns()), row.span.start_ns, row.said.slice));
    rows
}

fn row(context: &AnalysisContext<'_>, calls: &Calls, steps: &Steps<'_>, batch: &Batch) -> SampleTime {
    let trace = context.trace;
    let Batch { fetch: made, next } = *batch;
    let in_calls = context.get::<Threads>().get(trace, made.thread).doing(Doing::Io).clip(made.span);
    let Within { file, read_bytes, page_faults } = calls.within(trace, &made);
    SampleTime {
        rank: made.rank,
        said: made.said,
        span: made.span,
        process: made.process,
        reading_ns: in_calls.total_ns(),
        read_bytes,
        page_faults,
        file: file.map(|(file, _)| file).filter(|file| *file != StringTable::EMPTY),
        file_ns: file.map(|(_, ns)| ns),
        waited_ns: next.map(|next| next.span.duration_ns()),
        ready_ns: next.map(|next| if made.process == next.process { 0 } else { next.span.end_ns - made.span.end_ns }),
        step: next.and_then(|next| steps.at(next.rank, next.span.end_ns)),
    }
}

/// The calls on files of each thread, by start.
struct Calls(FxHashMap<TrackId, Vec<IoCall>>);

impl Calls {
    /// All of them, since what was read for a batch may have been read before the part that is asked for.
    fn of(trace: &Trace) -> Self {
        let mut of_threads: FxHashMap<TrackId, Vec<IoCall>> = FxHashMap::default();
        let everything = Selection::default();
        let context = AnalysisContext::new(trace, &everything);
        for call in context.get::<Vec<IoCall>>() {
            let thread = first_lane(trace, trace.slices.track[call.event.slice.index()]);
            of_threads.entry(thread).or_default().push(*call);
        }
        of_threads.values_mut().for_each(|calls| calls.sort_by_key(|call| (call.span.start_ns, call.event.slice)));
        Self(of_threads)
    }

    /// The calls that begin while something is made.
    fn within(&self, trace: &Trace, made: &PlacedRange) -> Within {
        let calls = self.0.get(&made.thread).map_or(&[][..], Vec::as_slice);
        let first = calls.partition_point(|call| call.span.start_ns < made.span.start_ns);
        let calls = calls[first..].iter().take_while(|call| call.span.start_ns < made.span.end_ns);
        let (mut of_files, mut read_bytes): (BTreeMap<StringId, (Vec<Span>, i64)>, i64) = (BTreeMap::new(), 0);
        for call in calls {
            let (spans, page_faults) = of_files.entry(call.event.file).or_default();
            spans.push(call.span.intersect(made.span));
            *page_faults += i64::from(call.is_major_page_fault());
            let bytes = call.event.bytes.filter(|_| call.event.action == IoAction::Read);
            read_bytes = read_bytes.saturating_add(bytes.unwrap_or(0));
        }
        let page_faults = of_files.values().map(|(_, page_faults)| page_faults).sum();
        let times = of_files
            .into_iter()
            .map(|(file, (spans, page_faults))| (file, IntervalSet::from_unsorted(spans).total_ns(), page_faults));
        let order = |(file, ns, page_faults): &(StringId, i64, i64)| {
            (Reverse(*ns), Reverse(*page_faults), trace.strings.get(*file))
        };
        let longest = times.min_by_key(order);
        Within { file: longest.map(|(file, ns, _)| (file, ns)), read_bytes, page_faults }
    }
}

/// What is done on files while something is made.
struct Within {
    /// The file that took most time, and that time.
    file: Option<(StringId, i64)>,
    read_bytes: i64,
    page_faults: i64,
}

/// The steps of each rank, by start.
struct Steps<'a>(BTreeMap<u32, Vec<&'a Step>>);

impl<'a> Steps<'a> {
    fn of(trace: &'a Trace) -> Self {
        let mut of_ranks: BTreeMap<u32, Vec<&Step>> = BTreeMap::new();
        let steps = trace.steps.iter().filter(|step| step.source != StepSource::Whole);
        steps.for_each(|step| of_ranks.entry(step.rank).or_default().push(step));
        Self(of_ranks)
    }

    fn at(&self, rank: u32, at_ns: i64) -> Option<i64> {
        let steps = self.0.get(&rank)?;
        let behind = steps.partition_point(|step| step.span.start_ns <= at_ns);
        steps[..behind].last().filter(|step| step.span.contains(at_ns)).map(|step| step.number)
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::tests::with_batches;
    use crate::io_calls::tests::with_page_faults;
    use proptest::prelude::*;
    use stepscope_trace::SliceKind;

    /// Rows as `worker/batch samples total of which reading, bytes, file and its time; waited, ready, step`, in us.
    fn lines(trace: &Trace, selection: &Selection) -> Vec<String> {
        let shown = |value: Option<i64>| value.map_or("-".into(), |value| value.to_string());
        let us = |ns: i64| ns / 1_000;
        let line = |row: &SampleTime| {
            let said = row.said;
            format!(
                "{}/{} {} {} of which {} {}B {} {}; {} {} step {}",
                shown(said.worker),
                shown(said.batch),
                trace.strings.get(said.samples),
                us(row.span.duration_ns()),
                us(row.reading_ns),
                row.read_bytes,
                row.file.map_or("-", |file| trace.strings.get(file)),
                shown(row.file_ns.map(us)),
                shown(row.waited_ns.map(us)),
                shown(row.ready_ns.map(us)),
                shown(row.step)
            )
        };
        io_samples(trace, selection).iter().map(line).collect()
    }

    const JOB: &str = "rank 0 step    00000000111111
                       rank 0 input 1 .aaa.....b....
                       rank 1 label 1 aaa.ccccc.....
                       rank 1 io 1    or...rr.......
                       rank 2 label 1 .bbbb.........";

    #[test]
    fn the_slowest_come_first_with_who_made_them_and_who_took_them() {
        let trace = with_batches(JOB);
        let expected = [
            "0/2 [2] 5 of which 2 200B c 2; - - step -",
            "1/1 [1] 4 of which 0 0B - -; 1 5 step 1",
            "0/0 [0] 3 of which 2 100B a 2; 3 1 step 0",
        ];
        assert_eq!(lines(&trace, &Selection::default()), expected);
        let step = |step| Selection { step: Some(step), ..Selection::default() };
        assert_eq!(lines(&trace, &step(0)), [expected[0], expected[2]]);
        assert_eq!(lines(&trace, &step(1)), [expected[1]]);
    }

    #[test]
    fn a_batch_of_a_mapped_file_has_its_pages_and_no_time() {
        let mut trace =
            with_page_faults(with_batches("rank 0 input 1 .aaaabb\nrank 1 label 1 aaaabb.\nrank 1 io 1    R|R|RmR|r."));
        for (event, name) in trace.io.iter_mut().zip(["x", "y", "y", "x", "z", "x"]) {
            event.file = trace.strings.intern(name);
        }
        let row = |row: &SampleTime| {
            let file = row.file.map(|file| trace.strings.get(file));
            (row.page_faults, row.read_bytes, row.reading_ns, file, row.file_ns)
        };
        let expected = [(3, 0, 0, Some("y"), Some(0)), (1, 100, 1_000, Some("x"), Some(1_000))];
        assert_eq!(io_samples(&trace, &Selection::default()).iter().map(row).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_the_training_process_makes_never_lies_ready() {
        let trace = with_batches("rank 0 input 1 aaaa\nrank 0 label 1 .aa.");
        assert_eq!(lines(&trace, &Selection::default()), ["-/0 [0] 2 of which 0 0B - -; 4 0 step -"]);
    }

    #[test]
    fn work_that_the_program_labels_with_a_sample_is_a_row() {
        let mut trace = with_batches("rank 0 label 1 .aaa.bb.\nrank 0 io 1 ..w.....");
        trace.dataflow[0].stage = DataflowStage::Data;
        trace.dataflow[1].stage = DataflowStage::Preprocess;
        trace.dataflow[1].samples = StringTable::EMPTY;
        let rows = io_samples(&trace, &Selection::default());
        assert_eq!(lines(&trace, &Selection::default()), ["-/0 [0] 3 of which 1 0B a 1; - - step -"]);
        assert_eq!(rows[0].said.stage, DataflowStage::Data);
    }

    proptest! {
        #[test]
        fn every_batch_is_a_row_and_its_time_in_calls_is_that_of_the_slow_count(
            fetches in prop::collection::vec("[.a-d|]{20}", 1..3), calls in prop::collection::vec("[..rwcRm|]{20}", 2),
            takes in "[...a-d]{20}",
        ) {
            let mut drawing = format!("rank 0 input 1 {takes}\n");
            for (at, (fetch, call)) in fetches.iter().zip(&calls).enumerate() {
                drawing += &format!("rank {0} label 1 {fetch}\nrank {0} io 1 {call}\n", at + 1);
            }
            let trace = with_page_faults(with_batches(&drawing));
            let rows = io_samples(&trace, &Selection::default());
            prop_assert!(rows.is_sorted_by_key(|row| Reverse(row.span.duration_ns())));
            let mut made: Vec<_> = rows.iter().map(|row| row.said.slice).collect();
            made.sort_unstable();
            let expected = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Annotation);
            prop_assert_eq!(made, expected.collect::<Vec<_>>());
            let process = |slice: stepscope_trace::SliceId| trace.tracks[trace.slices.track[slice.index()].index()].process;
            for row in rows {
                let of_process = || trace.io.iter().filter(|event| process(event.slice) == row.process);
                let spans: Vec<Span> = of_process().map(|event| trace.slices.span(event.slice)).collect();
                let faults = of_process().filter(|event| {
                    trace.slice_name(event.slice) == "R" && row.span.contains(trace.slices.start_ns[event.slice.index()])
                });
                prop_assert_eq!(row.page_faults, faults.count() as i64);
                let us = (0..20_i64).map(|us| us * 1_000).filter(|at_ns| row.span.contains(*at_ns));
                let reading = us.filter(|at_ns| spans.iter().any(|span| span.contains(*at_ns))).count();
                prop_assert_eq!(row.reading_ns, 1_000 * reading as i64);
                prop_assert!(row.file_ns.unwrap_or(0) <= row.reading_ns);
                prop_assert!(row.ready_ns.is_none_or(|ready_ns| ready_ns >= 0));
            }
        }
    }
}
