//! Each layer of software through which files are used.

use super::IoOfRanks;
use crate::AnalysisContext;
use crate::io_calls::{IoCall, IoSums, RequestSizes, calls, io_calls, per_s};
use crate::windows::Windows;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{IoEvent, IoLayer, SliceId, SliceKind, SliceRole, Trace};

columns! {
    /// One layer of a rank.
    #[derive(Clone, PartialEq, Debug)]
    pub(super) struct LayerIo {
        /// The rank.
        rank: u32 => Count,
        /// The layer: `application`, `reader`, or one of the calls on files such as `posix`.
        layer: &'static str => Text,
        /// Number of calls of the layer; of the application and of the reader, of labels and waits.
        count: i64 => Count,
        /// Number of calls that failed. Of labels and waits, of the calls in them.
        errors: i64 => Count,
        /// Time in calls, all of them added up.
        total_ns: i64 => Nanoseconds,
        /// Time in which any thread is in a call.
        busy_ns: i64 => Nanoseconds,
        /// The part of `busy_ns` in which the rank computes. Absent where nothing says when it does.
        hidden_ns: Option<i64> => Nanoseconds,
        /// The part of `busy_ns` in which the rank does not compute. Absent where nothing says when it does.
        exposed_ns: Option<i64> => Nanoseconds,
        /// Bytes read. Of labels and waits, by the calls in them.
        read_bytes: Option<i64> => Bytes,
        /// Bytes written. Of labels and waits, by the calls in them.
        write_bytes: Option<i64> => Bytes,
        /// Bytes read over the time of the calls that read.
        read_bytes_per_s: Option<i64> => BytesPerSecond,
        /// Bytes written over the time of the calls that write.
        write_bytes_per_s: Option<i64> => BytesPerSecond,
        /// `count` over `busy_ns`: calls in a second of the time in which there are any.
        calls_per_s => Count = |row| per_s(row.count.into(), row.busy_ns.into()),
        /// Bytes of the smallest read or write that moved any. Of labels and waits, of the calls in them.
        request_bytes_min: Option<i64> => Bytes,
        /// Median bytes of the reads and writes that moved any. Of labels and waits, of the calls in them.
        request_bytes_median: Option<i64> => Bytes,
        /// Bytes of the largest read or write. Of labels and waits, of the calls in them.
        request_bytes_max: Option<i64> => Bytes,
        /// Share of the reads and writes that begin where the one before of the same process on the same file ended.
        /// Absent where no offsets are known.
        sequential_ratio: Option<f64> => Ratio,
        /// Share of the calls that neither read nor write. Absent of page faults.
        metadata_ratio: Option<f64> => Ratio,
        /// Share of the time in calls that neither read nor write.
        metadata_ns_ratio: Option<f64> => Ratio,
    }
}

/// What the rows of a layer are summed up from.
#[derive(Default)]
struct Layer {
    /// Slices of the program, where these are what counts, each once.
    ranges: Option<FxHashSet<SliceId>>,
    spans: Vec<Span>,
    sums: IoSums,
    requests: RequestSizes,
}

/// The layers of each rank asked for, from the program down to the system.
pub(super) fn rows(context: &AnalysisContext<'_>) -> Vec<LayerIo> {
    let ranks = context.get::<IoOfRanks>();
    let mut layers: BTreeMap<(u32, Place), Layer> = BTreeMap::new();
    add_ranges(context, &mut layers);
    add_calls(context, &mut layers);
    let row = |((rank, place), layer): ((u32, Place), Layer)| {
        let compute = ranks.get(rank).and_then(|of| of.compute.as_ref());
        layer.row(rank, place.as_str(), compute)
    };
    layers.into_iter().map(row).collect()
}

/// The layers, the outermost first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Application,
    Reader,
    /// The calls of a layer, those that others carry out last.
    Calls(Reverse<IoLayer>),
    PageFaults,
}

impl Place {
    fn of(layer: IoLayer) -> Self {
        if layer == IoLayer::PageFault { Self::PageFaults } else { Self::Calls(Reverse(layer)) }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Reader => "reader",
            Self::Calls(layer) => layer.0.as_str(),
            Self::PageFaults => IoLayer::PageFault.as_str(),
        }
    }
}

/// Labels and waits of the program, with the calls in them.
fn add_ranges(context: &AnalysisContext<'_>, layers: &mut BTreeMap<(u32, Place), Layer>) {
    let (trace, selection) = (context.trace, context.selection);
    let mut add = |slice: SliceId, place: Place, calls: &[IoCall]| {
        let rank = trace.rank_of_track(trace.slices.track[slice.index()]);
        let layer = layers.entry((rank, place)).or_default();
        if layer.ranges.get_or_insert_default().insert(slice) {
            layer.spans.push(trace.slices.span(slice));
        }
        calls.iter().for_each(|call| layer.add(call));
    };
    let windows = Windows::of(trace, selection);
    let is_outermost = |id: SliceId| !trace.slices.with_ancestors(id).skip(1).any(|id| is_reader(trace, id));
    let readers = trace.slices.ids().filter(|id| is_reader(trace, *id) && windows.has_slice(trace, *id));
    readers.filter(|id| is_outermost(*id)).for_each(|id| add(id, Place::Reader, &[]));
    for call in io_calls(trace, selection) {
        let around = || trace.slices.with_ancestors(call.event.slice).skip(1);
        // What reads a sample and lies in a label or a wait that does: the outer one counts.
        if let Some(reader) = around().filter(|id| is_reader(trace, *id)).last() {
            add(reader, Place::Reader, &[call]);
        }
        if let Some(label) = around().find(|id| is_label(trace, *id)) {
            add(label, Place::Application, &[call]);
        }
    }
}

fn is_reader(trace: &Trace, id: SliceId) -> bool {
    match trace.slices.kind(id) {
        SliceKind::DataLoader => true,
        SliceKind::Annotation => trace.role(id) == Some(SliceRole::Reader),
        _ => false,
    }
}

fn is_label(trace: &Trace, id: SliceId) -> bool {
    trace.slices.kind(id) == SliceKind::Annotation && !is_reader(trace, id)
}

/// The calls of each layer that lie in no other of it.
fn add_calls(context: &AnalysisContext<'_>, layers: &mut BTreeMap<(u32, Place), Layer>) {
    let trace = context.trace;
    let layer_of = |id: SliceId| {
        let at = trace.io.binary_search_by_key(&id, |event| event.slice).ok()?;
        Some(trace.io[at].layer)
    };
    let is_wanted = |event: &IoEvent| {
        let mut around = trace.slices.with_ancestors(event.slice).skip(1);
        !around.any(|id| trace.slices.kind(id) == SliceKind::Io && layer_of(id) == Some(event.layer))
    };
    for call in calls(trace, context.selection, is_wanted) {
        let layer = layers.entry((call.rank, Place::of(call.event.layer))).or_default();
        layer.spans.push(call.span);
        layer.add(&call);
    }
}

impl Layer {
    fn add(&mut self, call: &IoCall) {
        self.sums.add(call);
        self.requests.add(call);
    }

    fn row(self, rank: u32, layer: &'static str, compute: Option<&IntervalSet>) -> LayerIo {
        let Self { ranges, spans, sums, mut requests } = self;
        let total_ns = spans.iter().fold(0_i64, |sum, span| sum.saturating_add(span.duration_ns()));
        let count = spans.len() as i64;
        let busy = IntervalSet::from_unsorted(spans);
        let (busy_ns, hidden_ns) = (busy.total_ns(), compute.map(|compute| busy.intersect(compute).total_ns()));
        // What follows from the order and the sort of calls is said of the calls themselves.
        let of_calls = |ratio: Option<f64>| ratio.filter(|_| ranges.is_none());
        LayerIo {
            rank,
            layer,
            count,
            errors: sums.errors,
            total_ns,
            busy_ns,
            hidden_ns,
            exposed_ns: hidden_ns.map(|hidden_ns| busy_ns - hidden_ns),
            read_bytes: sums.reads.bytes(),
            write_bytes: sums.writes.bytes(),
            read_bytes_per_s: sums.reads.bytes_per_s(),
            write_bytes_per_s: sums.writes.bytes_per_s(),
            request_bytes_min: requests.min(),
            request_bytes_median: requests.median(),
            request_bytes_max: requests.max(),
            sequential_ratio: of_calls(sums.sequential_ratio()),
            metadata_ratio: of_calls(sums.metadata_ratio()),
            metadata_ns_ratio: of_calls(sums.metadata_ns_ratio()),
        }
    }
}
