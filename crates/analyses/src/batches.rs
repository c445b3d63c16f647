//! The batches of a loader: where each was made, and which wait of the loop took it.
//!
//! ```text
//! worker 1     ..aaaa..bbbbbb....    a fetch
//! main thread  ....nnn.....nnnnn.    a next: the first takes batch a, the second batch b
//! ```

use crate::AnalysisContext;
use crate::context::Shared;
use crate::host_threads::first_lane;
use rustc_hash::FxHashMap;
use stepscope_base::Span;
use stepscope_trace::{DataflowRange, DataflowStage, FlowKind, ProcessId, SliceId, Trace, TrackId};

/// A range of the dataflow, and where it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlacedRange {
    pub(crate) said: DataflowRange,
    pub(crate) rank: u32,
    pub(crate) process: ProcessId,
    /// The first lane of its thread.
    pub(crate) thread: TrackId,
    pub(crate) span: Span,
}

/// A batch that a loader made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Batch {
    pub(crate) fetch: PlacedRange,
    /// The `next` that took it; `None` when none did, or it is not known.
    pub(crate) next: Option<PlacedRange>,
}

/// All batches of a trace, by process, thread and start, and all that took one; nothing is selected.
pub(crate) struct Batches {
    pub(crate) batches: Vec<Batch>,
    /// By thread and start.
    pub(crate) nexts: Vec<PlacedRange>,
}

impl Shared for Batches {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        batches(context.trace)
    }
}

/// A range of `trace`, with its place.
pub(crate) fn placed(trace: &Trace, said: &DataflowRange) -> PlacedRange {
    let track = trace.slices.track[said.slice.index()];
    let process = trace.tracks[track.index()].process;
    PlacedRange {
        said: *said,
        rank: trace.processes[process.index()].rank,
        process,
        thread: first_lane(trace, track),
        span: trace.slices.span(said.slice),
    }
}

fn batches(trace: &Trace) -> Batches {
    let of = |stage: DataflowStage| {
        let ranges = trace.dataflow.iter().filter(|said| said.stage == stage);
        let mut ranges: Vec<PlacedRange> = ranges.map(|said| placed(trace, said)).collect();
        ranges.sort_by_key(|range| (range.process, range.thread, range.span.start_ns, range.said.slice));
        ranges
    };
    let nexts = of(DataflowStage::Next);
    let by_slice: FxHashMap<SliceId, &PlacedRange> = nexts.iter().map(|next| (next.said.slice, next)).collect();
    let next_of = |fetch: &PlacedRange| {
        let taken = trace.flows_from(fetch.said.slice).iter().find(|flow| flow.kind == FlowKind::Batch)?;
        by_slice.get(&taken.to).map(|next| **next)
    };
    let fetches = of(DataflowStage::Fetch);
    let batches = fetches.iter().map(|fetch| Batch { fetch: *fetch, next: next_of(fetch) }).collect();
    Batches { batches, nexts }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::io_calls::tests::with_calls;
    use stepscope_trace::SliceKind;

    /// The drawing, of which rank 0 is a process that trains and each other rank a worker of its loader. A label is the
    /// fetch of the batch that its letter numbers, of the sample with that number; an `input` takes the batch of its
    /// letter.
    pub(crate) fn with_batches(drawing: &str) -> Trace {
        let mut trace = with_calls(drawing);
        // A worker has no steps beside those of its rank.
        trace.steps.retain(|step| step.rank == 0);
        let mut workers = vec![None; trace.processes.len()];
        for (process, worker) in trace.processes.iter_mut().zip(&mut workers) {
            let rank = i64::from(process.rank);
            process.pid = Some(100 + rank);
            *worker = (rank > 0).then_some(rank - 1);
            process.rank = 0;
        }
        let number = |trace: &Trace, slice| i64::from(trace.slice_name(slice).as_bytes()[0]) - i64::from(b'a');
        let mut makers: FxHashMap<i64, ProcessId> = FxHashMap::default();
        for slice in trace.slices.ids().collect::<Vec<_>>() {
            let process = trace.tracks[trace.slices.track[slice.index()].index()].process;
            if trace.slices.kind(slice) == SliceKind::Annotation {
                let batch = number(&trace, slice);
                makers.insert(batch, process);
                let samples = trace.strings.intern(&format!("[{batch}]"));
                let worker = workers[process.index()];
                let range = DataflowRange::new(slice, DataflowStage::Fetch);
                let count = Some(1);
                trace.dataflow.push(DataflowRange { batch: Some(batch), worker, samples, count, ..range });
            }
        }
        for slice in trace.slices.ids().filter(|slice| trace.slices.kind(*slice) == SliceKind::DataLoader) {
            let batch = number(&trace, slice);
            let maker = makers.get(&batch).copied().filter(|maker| workers[maker.index()].is_some());
            let worker = maker.and_then(|maker| workers[maker.index()]);
            let worker_pid = maker.and_then(|maker| trace.processes[maker.index()].pid);
            let range = DataflowRange::new(slice, DataflowStage::Next);
            trace.dataflow.push(DataflowRange { batch: Some(batch), worker, worker_pid, ..range });
        }
        trace.dataflow.sort_by_key(|range| range.slice);
        trace.link_batches();
        trace
    }

    /// Batches as `letter@start<-start of what took it`, in us.
    fn taken(drawing: &str) -> Vec<String> {
        let trace = with_batches(drawing);
        let us = |range: &PlacedRange| range.span.start_ns / 1_000;
        let line = |batch: &Batch| {
            let next = batch.next.as_ref().map_or("-".into(), |next| us(next).to_string());
            format!("{}@{}<-{next}", trace.slice_name(batch.fetch.said.slice), us(&batch.fetch))
        };
        batches(&trace).batches.iter().map(line).collect()
    }

    #[test]
    fn a_next_takes_the_last_batch_with_its_number_that_was_made_before_it_ended() {
        let drawing = "rank 0 input 1 ..a.b..a..c.
                       rank 1 label 1 aa..aa......
                       rank 2 label 1 bb....c.....
                       rank 2 label 1 .......d....";
        assert_eq!(taken(drawing), ["a@0<-2", "a@4<-7", "b@0<-4", "c@6<-10", "d@7<--"]);
    }

    #[test]
    fn without_workers_a_batch_is_made_within_what_takes_it() {
        let drawing = "rank 0 input 1 aaa.bb.c.
                       rank 0 label 1 .aa.b...c";
        assert_eq!(taken(drawing), ["a@1<-0", "b@4<-4", "c@8<--"]);
    }
}
