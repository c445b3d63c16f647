//! Two halves of a time sum to the whole, in every number that can be added: on drawn traces, and on traces that other
//! people's profilers wrote where the folder with them is there.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stepscope_analyses::{AnalysisContext, GroupBy, Selection, Table, Values, catalogue, find};
use stepscope_base::Span;
use stepscope_trace::Trace;
use stepscope_trace::drawn::drawn;

/// What each analysis has that can be added; calls of `memory_statistics` can touch memory in both halves. An analysis that is not here has no such column: it tells of stretches of
/// time, of what is most or longest, or of shares.
const ADDITIVE: [(&str, &[&str]); 24] = [
    ("operators", &["count", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns", "flops"]),
    (
        "modules",
        &[
            "count",
            "forward_host_total_ns",
            "forward_host_self_ns",
            "backward_host_total_ns",
            "backward_host_self_ns",
            "device_total_ns",
            "forward_device_total_ns",
            "forward_device_self_ns",
            "backward_device_total_ns",
            "backward_device_self_ns",
            "allocated_bytes",
            "allocated_self_bytes",
            "flops",
        ],
    ),
    ("call_tree", &["count", "host_self_ns", "device_self_ns"]),
    ("source_lines", &["count", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"]),
    ("roofline", &["count", "device_ns", "flops"]),
    ("kernels", &["count", "total_ns"]),
    ("kernel_durations", &["count", "total_ns"]),
    (
        "launch_statistics",
        &["launches", "device_events", "launch_total_ns", "short_events", "early_events", "device_total_ns"],
    ),
    ("queue_length", &["device_events"]),
    ("queue_length_curve", &["waiting_ns", "running_ns"]),
    ("device_clocks", &["device_events", "before_launch"]),
    ("temporal_breakdown", &["device_events"]),
    (
        "graphs",
        &["launches", "device_events", "kernels", "launch_total_ns", "device_total_ns", "span_ns", "busy_ns", "gap_ns"],
    ),
    ("copies", &["count", "total_ns", "bytes"]),
    (
        "collectives",
        &["calls", "works", "kernels", "host_ns", "device_ns", "exposed_ns", "input_bytes", "output_bytes"],
    ),
    ("stragglers", &["calls", "last_calls", "held_up_ns", "late_ns", "total_ns", "transfer_ns", "waiting_ns"]),
    ("lateness", &["late_ns", "calls"]),
    ("slow_groups", &["calls", "transfer_ns"]),
    ("micro_batches", &["micro_batches", "forward_ns", "backward_ns"]),
    ("synchronizations", &["count", "total_ns", "busy_ns", "idle_ns"]),
    ("memory_summary", &["allocations", "frees"]),
    (
        "memory_statistics",
        &[
            "size_increase_bytes",
            "self_size_increase_bytes",
            "allocations",
            "self_allocations",
            "allocation_bytes",
            "self_allocation_bytes",
        ],
    ),
    ("memory_timeline", &["bytes"]),
    ("io_files", &["count", "opens", "reads", "writes", "read_bytes", "write_bytes", "total_ns"]),
];

/// The columns that tell rows apart.
const KEYS: [&str; 31] = [
    "rank",
    "device",
    "stream",
    "name",
    "category",
    "shapes",
    "stack",
    "module",
    "path",
    "file",
    "line",
    "function",
    "process",
    "kind",
    "op",
    "grid",
    "block",
    "registers",
    "shared_bytes",
    "call",
    "graph",
    "direction",
    "memory",
    "group",
    "dtype",
    "waits_for",
    "inside",
    "from_ns",
    "action",
    "cause",
    "thread",
];

fn texts(table: &Table, name: &str) -> Option<Vec<String>> {
    Some(match &table.column(name)?.values {
        Values::Int(values) => values.iter().map(|value| format!("{value:?}")).collect(),
        Values::Float(values) => values.iter().map(|value| format!("{value:?}")).collect(),
        Values::Text(values) => values.iter().map(|value| format!("{value:?}")).collect(),
        Values::Bool(values) => values.iter().map(|value| format!("{value:?}")).collect(),
    })
}

type Sums = BTreeMap<Vec<String>, Vec<i64>>;

/// Adds what `table` has in `columns` by what tells its rows apart; what adds nothing has no place.
fn add(sums: &mut Sums, table: &Table, columns: &[&str]) {
    let keys: Vec<Vec<String>> = KEYS.iter().filter_map(|name| texts(table, name)).collect();
    for (at, name) in columns.iter().enumerate() {
        let Some(Values::Int(values)) = table.column(name).map(|column| &column.values) else { continue };
        for (row, value) in values.iter().enumerate() {
            let key = keys.iter().map(|column| column[row].clone()).collect();
            sums.entry(key).or_insert_with(|| vec![0; columns.len()])[at] += value.unwrap_or(0);
        }
    }
    sums.retain(|_, sums| sums.iter().any(|sum| *sum != 0));
}

/// The first analysis whose halves, cut at `middle_ns`, do not sum to the whole, with what does not.
fn broken(trace: &Trace, window: Span, middle_ns: i64) -> Option<String> {
    let halves = [Span::new(window.start_ns, middle_ns), Span::new(middle_ns, window.end_ns)];
    for (name, columns) in ADDITIVE {
        let analysis = find(name).expect("in the catalogue");
        let groups = analysis.options.group_by.iter().copied().map(Some);
        // A launch has a row of its own there, which tells it from no other; and a call whose caller began in the other half
        // has fewer callers than in the whole.
        let is_asked =
            |by: &Option<GroupBy>| !matches!(by, Some(GroupBy::Launch | GroupBy::Callers | GroupBy::CallersByThread));
        for group_by in groups.chain([None]).filter(is_asked) {
            let sums = |spans: &[Span]| {
                let mut sums = Sums::new();
                for window in spans {
                    let selection = Selection { window: Some(*window), group_by, ..Selection::default() };
                    add(&mut sums, &(analysis.run)(&AnalysisContext::new(trace, &selection)).table, columns);
                }
                sums
            };
            let (whole, halves) = (sums(&[window]), sums(&halves));
            if whole != halves {
                let differs = |key: &&Vec<String>| whole.get(*key) != halves.get(*key);
                let key = whole.keys().chain(halves.keys()).find(differs).expect("they differ");
                let of = |sums: &Sums| format!("{:?}", sums.get(key));
                return Some(format!("{name} by {group_by:?}, {key:?}: {} is not {}", of(&halves), of(&whole)));
            }
        }
    }
    None
}

#[test]
fn every_column_that_can_be_added_is_one_of_its_analysis() {
    let known = |name: &str| catalogue().iter().find(|analysis| analysis.name == name);
    for (name, columns) in ADDITIVE {
        let selection = Selection::default();
        let table = (known(name).unwrap().run)(&AnalysisContext::new(&Trace::default(), &selection)).table;
        columns.iter().for_each(|column| assert!(table.column(column).is_some(), "{name} has no {column}"));
    }
}

#[test]
fn work_of_unknown_launch_lies_in_the_window_in_which_it_starts() {
    let trace = drawn("rank 0 cpu 1 aaaaaaaa\nrank 0 launch 1 .K......\nrank 0 stream 7 ...KUUVV");
    let kernels = |from_us: i64, to_us: i64| {
        let selection = Selection { window: Some(Span::new(from_us * 1_000, to_us * 1_000)), ..Selection::default() };
        let outcome = (find("kernels").unwrap().run)(&AnalysisContext::new(&trace, &selection));
        let mut names = texts(&outcome.table, "name").unwrap();
        names.sort_unstable();
        (names.concat().replace(['S', 'o', 'm', 'e', '(', ')', '"'], ""), outcome.coverage.device_ns_linked_ratio)
    };
    assert_eq!(kernels(0, 4), ("K".into(), Some(1.0)));
    assert_eq!(kernels(0, 6), ("KU".into(), Some(1.0 / 3.0)));
    assert_eq!(kernels(4, 8), ("UV".into(), Some(0.0)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// `C` and `D` are launched, as far as there are launches; the rest is not.
    #[test]
    fn two_halves_of_a_window_sum_to_the_whole(
        host in "[.axs|]{30}", inner in "[.ab|]{30}", modules in "[.m|]{30}", launch in "[.CDN|]{30}",
        streams in prop::collection::vec("[.CDNHZU|]{30}", 1..3), sync in "[.s|]{30}", memory in "[.abcABC]{30}",
        steps in "0{1,12}1{1,12}2{1,12}", [from, middle, to] in [0_i64..40, 0_i64..40, 0_i64..40],
    ) {
        let mut drawing = format!(
            "rank 0 step {steps}\nrank 0 module 1 {modules}\nrank 0 cpu 1 {host}\nrank 0 cpu 2 {inner}\n\
             rank 0 launch 1 {launch}\nrank 0 sync 1 {sync}\nrank 0 memory 1 {memory}\n"
        );
        streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
        let mut limits = [from, middle, to].map(|at| at * 500);
        limits.sort_unstable();
        let broken = broken(&drawn(&drawing), Span::new(limits[0], limits[2]), limits[1]);
        prop_assert!(broken.is_none(), "{}", broken.unwrap_or_default());
    }
}

fn real_traces() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("STEPSCOPE_TRACES").map_or(beside, PathBuf::from).join("kineto");
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    // Beside traces that are looked at there is a folder of what is kept of them.
    paths.retain(|path| path.is_file());
    paths.sort_unstable();
    paths
}

/// Small ones, with work of unknown launch, graphs, and steps.
#[test]
fn two_halves_of_a_real_trace_sum_to_the_whole() {
    for path in real_traces() {
        if path.metadata().expect("a file").len() > 500_000 {
            continue;
        }
        let trace = stepscope_import::open(&path).expect("a readable trace");
        let Some(span) = trace.span() else { continue };
        let window = Span::new(span.start_ns, span.end_ns + 1);
        let broken = broken(&trace, window, span.start_ns + span.duration_ns() / 3);
        assert!(broken.is_none(), "{}: {}", path.display(), broken.unwrap_or_default());
    }
}
