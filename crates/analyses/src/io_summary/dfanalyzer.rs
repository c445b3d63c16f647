//! The summary of DFAnalyzer by its preset `posix`: facts about calls of the system and of C's streams, and its rules.
//! `dlio.rs` has rows of the same columns by its other preset.

use super::IoOfRanks;
use crate::AnalysisContext;
use crate::host_threads::first_lane;
use crate::io_calls::{IoCall, IoSums, calls, per_s, ratio};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::{IntervalSet, Span, StringId, StringTable};
use stepscope_trace::{IoAction, IoEvent, IoLayer, ProcessId, SliceKind, Trace, TrackId};

/// Requests below this are small.
const SMALL_BYTES: i64 = 1 << 20;

columns! {
    /// What DFAnalyzer says of one category or layer of a rank.
    #[derive(Clone, PartialEq, Debug)]
    pub(super) struct CategoryIo {
        /// The rank.
        rank: u32 => Count,
        /// The category: `all`, `data`, which is `read` and `write` together, `metadata`, which is all else, and `open`,
        /// which is a part of that. Grouped by layer, the layer.
        category: &'static str => Text,
        /// Number of calls. Of `compute`, `fetch_data`, `data_loader`, `reader` and `checkpoint`, of labels and waits.
        count: i64 => Count,
        /// Time in them, all of it added up.
        total_ns: i64 => Nanoseconds,
        /// Calls over `total_ns`.
        calls_per_s => Count = |row| per_s(row.count.into(), row.total_ns.into()),
        /// Bytes moved. Absent of labels and waits.
        bytes: Option<i64> => Bytes,
        /// Bytes over `total_ns`.
        bytes_per_s => BytesPerSecond = |row| per_s(row.bytes?.into(), row.total_ns.into()),
        /// Bytes over the number of reads and writes whose bytes are known.
        request_bytes_mean: Option<i64> => Bytes,
        /// Time in which any thread is in one.
        busy_ns: i64 => Nanoseconds,
        /// `busy_ns` over `job_ns`, which DFAnalyzer calls utilization.
        busy_ratio => Ratio = |row| ratio(row.busy_ns, row.job_ns),
        /// The part of `busy_ns` in which the rank computes. Absent where nothing says when it does.
        hidden_ns: Option<i64> => Nanoseconds,
        /// The part of `busy_ns` in which the rank does not compute. Absent where nothing says when it does.
        exposed_ns: Option<i64> => Nanoseconds,
        /// Number of known files. Absent of labels and waits.
        files: Option<i64> => Count,
        /// Number of processes.
        processes: i64 => Count,
        /// Number of threads, which DFAnalyzer calls processes.
        threads: i64 => Count,
        /// Number of known hosts.
        nodes: i64 => Count,
        /// From the first start to the last end of anything that was recorded of the rank.
        job_ns: i64 => Nanoseconds,
        /// The rules of DFAnalyzer that hold. Absent where none does, and of all categories but `all`.
        rules: Option<String> => Text,
    }
}

/// The categories of each rank asked for that has calls.
pub(super) fn rows(context: &AnalysisContext<'_>) -> Vec<CategoryIo> {
    let (trace, ranks) = (context.trace, context.get::<IoOfRanks>());
    let of_rank = |(rank, calls): (u32, Vec<IoCall>)| {
        let compute = ranks.get(rank).and_then(|of| of.compute.as_ref());
        let job_ns = job_ns(context, rank);
        let rows = CATEGORIES.iter().filter_map(|(category, is_in)| {
            let calls: Vec<&IoCall> = calls.iter().filter(|call| is_in(call.event.action)).collect();
            (!calls.is_empty()).then(|| of_calls(trace, (rank, category, job_ns), &calls, compute))
        });
        rows.collect::<Vec<_>>()
    };
    calls_by_rank(context).into_iter().flat_map(of_rank).collect()
}

/// The calls of the system and of C's streams of each rank asked for, those that lie in no other.
pub(super) fn calls_by_rank(context: &AnalysisContext<'_>) -> BTreeMap<u32, Vec<IoCall>> {
    let (trace, selection) = (context.trace, context.selection);
    let is_known = |event: &IoEvent| matches!(event.layer, IoLayer::Posix | IoLayer::Stdio);
    let is_part = |event: &IoEvent| {
        let mut around = trace.slices.with_ancestors(event.slice).skip(1);
        around.any(|id| {
            let at = trace.io.binary_search_by_key(&id, |event| event.slice);
            trace.slices.kind(id) == SliceKind::Io && at.is_ok_and(|at| is_known(&trace.io[at]))
        })
    };
    let mut by_rank: BTreeMap<u32, Vec<IoCall>> = BTreeMap::new();
    for call in calls(trace, selection, |event| is_known(event) && !is_part(event)) {
        by_rank.entry(call.rank).or_default().push(call);
    }
    by_rank
}

/// From the first start to the last end of what is asked for of a rank.
pub(super) fn job_ns(context: &AnalysisContext<'_>, rank: u32) -> i64 {
    let (trace, selection) = (context.trace, context.selection.of_rank(rank));
    let spans = selection.slices(trace).map(|id| trace.slices.span(id));
    let job = spans.reduce(|a, b| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns)));
    job.map_or(0, Span::duration_ns)
}

type Category = (&'static str, fn(IoAction) -> bool);

const CATEGORIES: [Category; 6] = [
    ("all", |_| true),
    ("data", IoAction::moves_bytes),
    ("read", |action| action == IoAction::Read),
    ("write", |action| action == IoAction::Write),
    ("metadata", |action| !action.moves_bytes()),
    ("open", |action| action == IoAction::Open),
];

/// What a row is of: its rank, its category, and the time of the rank.
type RowOf = (u32, &'static str, i64);

/// The row of `calls`.
pub(super) fn of_calls(trace: &Trace, of: RowOf, calls: &[&IoCall], compute: Option<&IntervalSet>) -> CategoryIo {
    let sums = IoSums::of(calls.iter().copied());
    let row = of_spans(trace, of, &calls.iter().map(|call| (call.span, call.track)).collect::<Vec<_>>(), compute);
    let files: BTreeSet<StringId> = calls.iter().map(|call| call.event.file).collect();
    let bytes = sums.bytes();
    let sized = sums.reads.sized + sums.writes.sized;
    let unoverlapped_ratio = row.exposed_ns.and_then(|exposed_ns| ratio(exposed_ns, row.busy_ns));
    let rules = (row.category == "all").then(|| rules(&sums, unoverlapped_ratio)).filter(|rules| !rules.is_empty());
    CategoryIo {
        bytes,
        request_bytes_mean: bytes.filter(|_| sized > 0).map(|bytes| bytes / sized),
        files: Some(files.iter().filter(|file| **file != StringTable::EMPTY).count() as i64),
        rules,
        ..row
    }
}

/// The row of what runs at these times on these tracks, of which bytes and files are not known.
pub(super) fn of_spans(
    trace: &Trace,
    (rank, category, job_ns): RowOf,
    spans: &[(Span, TrackId)],
    compute: Option<&IntervalSet>,
) -> CategoryIo {
    let busy: IntervalSet = spans.iter().map(|(span, _)| *span).collect();
    let (busy_ns, hidden_ns) = (busy.total_ns(), compute.map(|compute| busy.intersect(compute).total_ns()));
    let threads: BTreeSet<TrackId> = spans.iter().map(|(_, track)| first_lane(trace, *track)).collect();
    let processes: BTreeSet<ProcessId> = threads.iter().map(|track| trace.tracks[track.index()].process).collect();
    let nodes: BTreeSet<&str> =
        processes.iter().filter_map(|process| trace.processes[process.index()].host.as_deref()).collect();
    CategoryIo {
        rank,
        category,
        count: spans.len() as i64,
        total_ns: spans.iter().fold(0_i64, |sum, (span, _)| sum.saturating_add(span.duration_ns())),
        bytes: None,
        request_bytes_mean: None,
        busy_ns,
        hidden_ns,
        exposed_ns: hidden_ns.map(|hidden_ns| busy_ns - hidden_ns),
        files: None,
        processes: processes.len() as i64,
        threads: threads.len() as i64,
        nodes: nodes.len() as i64,
        job_ns,
        rules: None,
    }
}

/// The names of the rules that hold, as DFAnalyzer has them.
fn rules(sums: &IoSums, unoverlapped_ratio: Option<f64>) -> String {
    let (reads, writes) = (&sums.reads, &sums.writes);
    let above = |part: i64, whole: i64, threshold: f64| ratio(part, whole).is_some_and(|ratio| ratio > threshold);
    let is_small = |bytes: Option<i64>, sized: i64| bytes.is_some_and(|bytes| sized > 0 && bytes / sized < SMALL_BYTES);
    let apart = |a: i64, b: i64| a.saturating_sub(b).saturating_abs();
    let (read_bytes, write_bytes) = (reads.bytes(), writes.bytes());
    let bytes_apart = apart(read_bytes.unwrap_or(0), write_bytes.unwrap_or(0));
    let holds = [
        ("excessive_metadata_access", sums.metadata_ns_ratio().is_some_and(|ratio| ratio >= 0.5)),
        ("operation_imbalance", above(apart(reads.count, writes.count), sums.count, 0.1)),
        ("random_operations", above(sums.jumps(), sums.count, 0.5)),
        ("size_imbalance", above(bytes_apart, sums.bytes().unwrap_or(0), 0.1)),
        ("small_reads", above(reads.ns, sums.total_ns, 0.5) && is_small(read_bytes, reads.sized)),
        ("small_writes", above(writes.ns, sums.total_ns, 0.5) && is_small(write_bytes, writes.sized)),
        ("unoverlapped_io", unoverlapped_ratio.is_some_and(|ratio| ratio > 0.5)),
    ];
    holds.iter().filter(|(_, holds)| *holds).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
