//! Operators nest among operators, whatever functions of Python and labels begin or end within them: drawn rows and real
//! traces, each against a slow count.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use stepscope_analyses::Selection;
use stepscope_analyses::operators::operators;
use stepscope_base::{IntervalSet, Span};
use stepscope_import::{open, open_bytes};
use stepscope_trace::{SliceId, SliceKind, Trace, TrackKind};

/// By operator: host total and self, device total and self, in ns.
type Times = BTreeMap<String, [i64; 4]>;

fn times(trace: &Trace) -> Times {
    let rows = operators(trace, &Selection::default()).into_iter();
    let numbers = rows
        .map(|row| (row.label.name, [row.host_total_ns, row.host_self_ns, row.device_total_ns, row.device_self_ns]));
    numbers.collect()
}

/// A row of a thread, in us: category, name, start and duration.
type Row = (&'static str, String, i64, i64);

/// The trace of a thread with `rows`, and with kernels of 100 us that were launched at `launches`.
fn trace_of(rows: &[Row], launches: &[i64]) -> Trace {
    let mut text = String::from("{\"schemaVersion\": 1, \"traceEvents\": [");
    let mut add = |category: &str, name: &str, (pid, tid): (i64, i64), (ts, dur): (i64, i64), args: &str| {
        let comma = if text.ends_with('[') { "" } else { ",\n" };
        write!(
            text,
            "{comma}{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {pid}, \"tid\": {tid}, \"ts\": {ts}, \
             \"dur\": {dur}, \"args\": {{{args}}}}}"
        )
        .expect("text");
    };
    for (category, name, start, dur) in rows {
        add(category, name, (1, 1), (*start, *dur), "");
    }
    for (at, launched) in (1..).zip(launches) {
        let joined = format!("\"correlation\": {at}, \"device\": 0, \"stream\": 7");
        add("cuda_runtime", "cudaLaunchKernel", (1, 1), (*launched, 1), &format!("\"correlation\": {at}"));
        add("kernel", "kernel", (0, 7), (100_000 + at * 200, 100), &joined);
    }
    text += "]}";
    open_bytes("drawn.json", text.as_bytes()).expect("a trace")
}

#[test]
fn a_function_that_begins_or_ends_within_an_operator_takes_nothing_from_its_parent() {
    for (category, start, dur) in [
        ("python_function", 10, 490),
        ("python_function", 450, 300),
        ("user_annotation", 10, 490),
        ("python_function", 10, 2),
    ] {
        let rows = [("cpu_op", "P", 0, 1000), ("cpu_op", "C", 400, 200), (category, "f", start, dur)];
        let trace = trace_of(&rows.map(|(of, name, start, dur)| (of, name.to_string(), start, dur)), &[450, 700]);
        let expected = [("C", [200_000, 200_000, 100_000, 100_000]), ("P", [1_000_000, 800_000, 200_000, 100_000])];
        assert_eq!(times(&trace), expected.map(|(name, times)| (name.to_string(), times)).into());
    }
}

/// Operators that nest, from what begins (`true`) and ends one after another; each has a name of its own.
fn nested(does: &[bool]) -> Vec<Row> {
    let (mut rows, mut open): (Vec<Row>, Vec<usize>) = (Vec::new(), Vec::new());
    let end = does.len() as i64 * 10;
    for (at, begins) in does.iter().enumerate() {
        let now = at as i64 * 10;
        if *begins {
            open.push(rows.len());
            rows.push(("cpu_op", format!("op {at}"), now, end - now));
        } else if let Some(ended) = open.pop() {
            rows[ended].3 = now - rows[ended].2;
        }
    }
    rows
}

/// The same numbers, moment by moment: an operator has what no operator within it has.
fn counted(ops: &[Row], launches: &[i64]) -> Times {
    let mut times: Times = ops.iter().map(|(_, name, _, dur)| (name.clone(), [*dur, 0, 0, 0])).collect();
    let open = |at: i64| ops.iter().filter(move |(_, _, start, dur)| *start <= at && at < start + dur);
    let innermost = |at: i64| open(at).max_by_key(|(_, _, start, _)| *start);
    for at in 0..ops.iter().map(|(_, _, start, dur)| start + dur).max().unwrap_or(0) {
        innermost(at).into_iter().for_each(|(_, name, ..)| times.get_mut(name).unwrap()[1] += 1);
    }
    for at in launches {
        open(*at).for_each(|(_, name, ..)| times.get_mut(name).unwrap()[2] += 100);
        innermost(*at).into_iter().for_each(|(_, name, ..)| times.get_mut(name).unwrap()[3] += 100);
    }
    times.values_mut().flatten().for_each(|us| *us *= 1_000);
    times
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn operators_have_the_same_times_with_any_functions_and_labels(
        does in prop::collection::vec(any::<bool>(), 1..40),
        others in prop::collection::vec((any::<bool>(), 0_i64..400, 1_i64..300), 0..12),
        launches in prop::collection::vec(0_i64..40, 0..6),
    ) {
        let ops = nested(&does);
        // Launches lie within one operator or another, never across the border of one.
        let launches: Vec<i64> = launches.iter().map(|at| at * 10 + 5).collect();
        let mut rows = ops.clone();
        rows.extend(others.iter().map(|(is_label, start, dur)| {
            (if *is_label { "user_annotation" } else { "python_function" }, "other".to_string(), *start, *dur)
        }));
        prop_assert_eq!(times(&trace_of(&rows, &launches)), counted(&ops, &launches));
    }
}

/// Time in which an operator is open, over all threads.
fn open_ns(trace: &Trace) -> i64 {
    let mut spans: BTreeMap<usize, Vec<Span>> = BTreeMap::new();
    let is_op = |id: &SliceId| trace.slices.kind(*id) == SliceKind::Op;
    for id in trace.slices.ids().filter(is_op) {
        let track = trace.slices.track[id.index()].index();
        spans.entry(track - usize::from(trace.tracks[track].lane)).or_default().push(trace.slices.span(id));
    }
    spans.into_values().map(|spans| IntervalSet::from_unsorted(spans).total_ns()).sum()
}

/// In none of these do operators overlap one another.
#[test]
fn self_times_of_real_traces_sum_to_the_time_in_which_operators_run() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("STEPSCOPE_TRACES").map_or(beside, Into::into).join("kineto");
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let trace = open(&path).expect("a trace");
        let found: i64 = times(&trace).values().map(|[_, own_ns, ..]| own_ns).sum();
        assert_eq!(found, open_ns(&trace), "{}", path.display());
        for track in trace.tracks.iter().filter(|track| track.kind == TrackKind::Thread && track.lane > 0) {
            let mut kinds = track.slice_ids().map(|id| trace.slices.kind(id));
            assert!(kinds.all(|kind| kind != SliceKind::Op), "{}: {}", path.display(), track.name);
        }
    }
}
