//! Ranges that say what a program does with its data: the batches of a loader, and what a program labels itself.

use crate::{Flow, FlowKind, ProcessId, SliceId, Trace};
use rustc_hash::FxHashMap;
use stepscope_base::StringId;

/// What is done in a range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DataflowStage {
    /// A loop takes its next batch from a loader.
    Next,
    /// A loader makes a batch.
    Fetch,
    /// Anything of an input, such as reading a sample.
    Data,
    /// The program waits for its next batch, as it says itself.
    DataLoader,
    /// A sample or a batch is decoded or changed.
    Preprocess,
    /// The state of the program is written or read.
    Checkpoint,
    /// The model is computed.
    Compute,
    /// Ranks communicate.
    Comm,
    /// One pass over a data set.
    Epoch,
}

impl DataflowStage {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Next,
        Self::Fetch,
        Self::Data,
        Self::DataLoader,
        Self::Preprocess,
        Self::Checkpoint,
        Self::Compute,
        Self::Comm,
        Self::Epoch,
    ];

    /// The stage's name in recordings, JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Fetch => "fetch",
            Self::Data => "data",
            Self::DataLoader => "dataloader",
            Self::Preprocess => "preprocess",
            Self::Checkpoint => "checkpoint",
            Self::Compute => "compute",
            Self::Comm => "comm",
            Self::Epoch => "epoch",
        }
    }

    /// The stage with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == name)
    }
}

/// What one range says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataflowRange {
    /// Its slice.
    pub slice: SliceId,
    /// What is done.
    pub stage: DataflowStage,
    /// Which worker of its loader makes, or made, the batch.
    pub worker: Option<i64>,
    /// The process id of the worker that made the batch which a loop takes.
    pub worker_pid: Option<i64>,
    /// The number of the batch, which a loader counts from 0 in each pass.
    pub batch: Option<i64>,
    /// The step, as the program counts.
    pub step: Option<i64>,
    /// The epoch, as the program counts.
    pub epoch: Option<i64>,
    /// The indices of the first samples, as a JSON list; empty when not told.
    pub samples: StringId,
    /// The number of samples.
    pub count: Option<i64>,
    /// The size of what is worked on.
    pub bytes: Option<i64>,
}

impl DataflowRange {
    /// A range that says no more than what is done.
    pub fn new(slice: SliceId, stage: DataflowStage) -> Self {
        Self {
            slice,
            stage,
            worker: None,
            worker_pid: None,
            batch: None,
            step: None,
            epoch: None,
            samples: stepscope_base::StringTable::EMPTY,
            count: None,
            bytes: None,
        }
    }
}

impl Trace {
    /// Joins the making of each batch with the `next()` that takes it. A `next` says the process and the number of its batch. Numbers begin anew in each pass over the data, so it
    /// takes the last batch with that number that was made before it ended. Of several that would take one, the first does.
    pub fn link_batches(&mut self) {
        let trace = &*self;
        let process = |slice: SliceId| trace.tracks[trace.slices.track[slice.index()].index()].process;
        let pids: FxHashMap<(u32, i64), ProcessId> = trace
            .processes
            .iter()
            .enumerate()
            .filter_map(|(at, process)| Some(((process.rank, process.pid?), ProcessId::from_index(at))))
            .collect();
        let of = |stage: DataflowStage| trace.dataflow.iter().filter(move |range| range.stage == stage);
        // The batches with a number of a process, by the end of making them.
        let mut made: FxHashMap<(ProcessId, i64), Vec<(i64, SliceId)>> = FxHashMap::default();
        for fetch in of(DataflowStage::Fetch) {
            if let Some(number) = fetch.batch {
                let end_ns = trace.slices.span(fetch.slice).end_ns;
                made.entry((process(fetch.slice), number)).or_default().push((end_ns, fetch.slice));
            }
        }
        made.values_mut().for_each(|made| made.sort_unstable());
        let mut nexts: Vec<&DataflowRange> = of(DataflowStage::Next).collect();
        nexts.sort_by_key(|next| (trace.slices.start_ns[next.slice.index()], next.slice));
        let mut taken: FxHashMap<SliceId, SliceId> = FxHashMap::default();
        for next in nexts {
            let own = process(next.slice);
            let maker = match next.worker_pid {
                Some(pid) => pids.get(&(trace.processes[own.index()].rank, pid)).copied(),
                None => Some(own),
            };
            let made = maker.zip(next.batch).and_then(|of| made.get(&of));
            let end_ns = trace.slices.span(next.slice).end_ns;
            let before = made.and_then(|made| made[..made.partition_point(|(made_ns, _)| *made_ns <= end_ns)].last());
            if let Some((_, fetch)) = before {
                taken.entry(*fetch).or_insert(next.slice);
            }
        }
        self.flows.extend(taken.into_iter().map(|(from, to)| Flow { from, to, kind: FlowKind::Batch }));
        self.flows.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_is_found_by_its_name() {
        assert!(DataflowStage::ALL.iter().all(|stage| DataflowStage::named(stage.as_str()) == Some(*stage)));
        assert_eq!(DataflowStage::named("fetches"), None);
    }
}
