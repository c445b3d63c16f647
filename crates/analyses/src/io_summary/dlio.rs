//! The layers of DFAnalyzer's preset `dlio`, by what labels and calls are for instead of by names and folders.

use super::IoOfRanks;
use super::dfanalyzer::{CategoryIo, calls_by_rank, job_ns, of_calls, of_spans};
use crate::AnalysisContext;
use crate::io_calls::IoCall;
use crate::windows::Windows;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::Span;
use stepscope_trace::{DataflowStage, SliceId, SliceKind, SliceRole, Trace, TrackId};

/// The layers in the order of rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Layer {
    Compute,
    FetchData,
    DataLoader,
    Reader,
    ReaderPosix,
    Checkpoint,
    CheckpointPosix,
    OtherPosix,
}

impl Layer {
    /// Its name, as DFAnalyzer has it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::FetchData => "fetch_data",
            Self::DataLoader => "data_loader",
            Self::Reader => "reader",
            Self::ReaderPosix => "reader_posix",
            Self::Checkpoint => "checkpoint",
            Self::CheckpointPosix => "checkpoint_posix",
            Self::OtherPosix => "other_posix",
        }
    }
}

/// What is in a layer: labels, waits and functions, or calls.
#[derive(Default)]
struct Contents {
    spans: Vec<(Span, TrackId)>,
    calls: Vec<IoCall>,
}

/// The layers of each rank asked for that have anything.
pub(super) fn rows(context: &AnalysisContext<'_>) -> Vec<CategoryIo> {
    let (trace, ranks) = (context.trace, context.get::<IoOfRanks>());
    let stages: FxHashMap<SliceId, DataflowStage> =
        trace.dataflow.iter().map(|said| (said.slice, said.stage)).collect();
    let layer_of = |id: SliceId| layer_of(trace, &stages, id);
    let mut layers: BTreeMap<(u32, Layer), Contents> = BTreeMap::new();
    let windows = Windows::of(trace, context.selection);
    for slice in trace.slices.ids() {
        let around = || trace.slices.with_ancestors(slice).skip(1);
        if let Some(layer) = layer_of(slice)
            && windows.has_slice(trace, slice)
            && !around().any(|id| layer_of(id) == Some(layer))
        {
            let track = trace.slices.track[slice.index()];
            let of_layer = layers.entry((trace.rank_of_track(track), layer)).or_default();
            of_layer.spans.push((trace.slices.span(slice), track));
        }
    }
    let is_of_reader = |id: SliceId| matches!(layer_of(id), Some(Layer::FetchData | Layer::DataLoader | Layer::Reader));
    for (rank, calls) in calls_by_rank(context) {
        for call in calls {
            let layer = match () {
                () if trace.slices.with_ancestors(call.event.slice).any(is_of_reader) => Layer::ReaderPosix,
                () if ranks.checkpoints.contain(&call) => Layer::CheckpointPosix,
                () => Layer::OtherPosix,
            };
            layers.entry((rank, layer)).or_default().calls.push(call);
        }
    }
    let mut jobs: BTreeMap<u32, i64> = BTreeMap::new();
    for (rank, _) in layers.keys() {
        jobs.entry(*rank).or_insert_with(|| job_ns(context, *rank));
    }
    let row = |((rank, layer), contents): ((u32, Layer), Contents)| {
        let compute = ranks.get(rank)?.compute.as_ref();
        let of_rank = (rank, layer.as_str(), jobs[&rank]);
        Some(match contents.calls.is_empty() {
            true => of_spans(trace, of_rank, &contents.spans, compute),
            false => of_calls(trace, of_rank, &contents.calls.iter().collect::<Vec<_>>(), compute),
        })
    };
    layers.into_iter().filter_map(row).collect()
}

/// The layer of a label, a wait or a function; `None` for most.
fn layer_of(trace: &Trace, stages: &FxHashMap<SliceId, DataflowStage>, id: SliceId) -> Option<Layer> {
    let by_stage = match stages.get(&id) {
        Some(DataflowStage::Next | DataflowStage::DataLoader) => Some(Layer::FetchData),
        Some(DataflowStage::Fetch) => Some(Layer::DataLoader),
        Some(DataflowStage::Data | DataflowStage::Preprocess) => Some(Layer::Reader),
        Some(DataflowStage::Checkpoint) => Some(Layer::Checkpoint),
        Some(DataflowStage::Compute) => Some(Layer::Compute),
        Some(DataflowStage::Comm | DataflowStage::Epoch) | None => None,
    };
    let by_role = || match trace.role(id) {
        Some(SliceRole::Compute) => Some(Layer::Compute),
        Some(SliceRole::Reader) => Some(Layer::Reader),
        Some(SliceRole::CheckpointWrite) => Some(Layer::Checkpoint),
        _ => None,
    };
    let by_kind = || (trace.slices.kind(id) == SliceKind::DataLoader).then_some(Layer::FetchData);
    by_stage.or_else(by_role).or_else(by_kind)
}
