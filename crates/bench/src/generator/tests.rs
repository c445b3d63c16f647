//! A small generated trace, read as JSON and as a trace: it must be possible.

use super::{Options, Size, Written, write};
use serde_json::Value;
use std::collections::HashMap;
use stepscope_import::open_bytes;
use stepscope_trace::Severity;

const OPTIONS: Options = Options { layers: 2, seed: 7, has_stacks: true, has_memory: true };

fn generated(options: Options, size: Size) -> (Vec<u8>, Written) {
    let mut text = Vec::new();
    let written = write(options, size, &mut text).expect("memory takes all");
    (text, written)
}

fn rows() -> Vec<Value> {
    let (text, _) = generated(OPTIONS, Size::Bytes(4_000_000));
    let mut document: Value = serde_json::from_slice(&text).expect("JSON");
    match document["traceEvents"].take() {
        Value::Array(rows) => rows,
        other => panic!("a list of rows, not {other}"),
    }
}

/// A time in nanoseconds.
fn ns(time: &Value) -> i64 {
    let text = time.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    whole.parse::<i64>().expect("digits") * 1000 + format!("{fraction:0<3}").parse::<i64>().expect("digits")
}

fn span(row: &Value) -> (i64, i64) {
    (ns(&row["ts"]), ns(&row["ts"]) + ns(&row["dur"]))
}

fn is(row: &Value, categories: &[&str]) -> bool {
    row["cat"].as_str().is_some_and(|category| categories.contains(&category)) && row["ph"] == "X"
}

const DEVICE: [&str; 3] = ["kernel", "gpu_memcpy", "gpu_memset"];
const CALLS: [&str; 2] = ["cuda_runtime", "cuda_driver"];

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let text = |seed| generated(Options { seed, ..OPTIONS }, Size::Bytes(3_000_000)).0;
    assert!(text(1) == text(1));
    assert!(text(1) != text(2));
}

#[test]
fn sizes_come_out_as_asked_for_up_to_half_a_step() {
    let (one, step) = generated(OPTIONS, Size::Bytes(1));
    assert_eq!(step.steps, 1);
    let (text, written) = generated(OPTIONS, Size::Bytes(10_000_000));
    assert_eq!(written.bytes, text.len() as u64);
    assert!((10_000_000 - text.len() as i64).abs() < one.len() as i64 * 3 / 4, "{written:?}");
    let (text, written) = generated(OPTIONS, Size::Events(40_000));
    assert!((40_000 - written.events as i64).abs() < step.events as i64 * 3 / 4, "{written:?}");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(document["traceEvents"].as_array().map(Vec::len), Some(written.events as usize));
}

#[test]
fn device_work_starts_after_its_launch_in_the_order_of_its_stream() {
    let rows = rows();
    let correlation = |row: &Value| row["args"]["correlation"].as_u64().expect("a number");
    let mut launches = HashMap::new();
    for row in rows.iter().filter(|row| is(row, &CALLS)) {
        assert!(launches.insert(correlation(row), span(row).0).is_none(), "correlation ids are unique: {row}");
    }
    let mut free_ns: HashMap<u64, i64> = HashMap::new();
    let mut works: Vec<&Value> = rows.iter().filter(|row| is(row, &DEVICE)).collect();
    assert!(works.len() > 500);
    works.sort_by_key(|row| correlation(row));
    for row in works {
        let (start, end) = span(row);
        assert!(start > launches[&correlation(row)], "{row}");
        let free = free_ns.entry(row["tid"].as_u64().expect("a stream")).or_insert(i64::MIN);
        assert!(start >= *free && end > start, "{row}");
        *free = end;
    }
    assert_eq!(free_ns.len(), 3);
}

#[test]
fn streams_wait_for_events_that_were_recorded_before() {
    let rows = rows();
    let records: HashMap<u64, i64> = rows
        .iter()
        .filter(|row| row["name"] == "cudaEventRecord")
        .map(|row| (row["args"]["correlation"].as_u64().expect("a number"), span(row).1))
        .collect();
    let waits: Vec<&Value> = rows.iter().filter(|row| row["name"] == "Stream Wait Event").collect();
    assert!(waits.len() > 5);
    for row in waits {
        let record = row["args"]["wait_on_cuda_event_record_corr_id"].as_u64().expect("a number");
        assert!(records[&record] < span(row).0 && row["args"]["stream"] != row["args"]["wait_on_stream"], "{row}");
    }
}

#[test]
fn calls_lie_inside_their_callers() {
    let mut threads: HashMap<u64, Vec<(i64, i64)>> = HashMap::new();
    let host = ["cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver"];
    for row in rows().iter().filter(|row| is(row, &host)) {
        threads.entry(row["tid"].as_u64().expect("a thread")).or_default().push(span(row));
    }
    assert_eq!(threads.len(), 2);
    for spans in threads.values_mut() {
        spans.sort_by_key(|(begin, end)| (*begin, -end));
        let (mut open, mut deepest) = (Vec::<(i64, i64)>::new(), 0);
        for (begin, end) in spans {
            while open.last().is_some_and(|(_, outer)| outer <= begin) {
                open.pop();
            }
            assert!(open.last().is_none_or(|(_, outer)| *end < *outer), "{begin} to {end} reaches out");
            open.push((*begin, *end));
            deepest = deepest.max(open.len());
        }
        assert!(deepest >= 5, "{deepest}");
    }
}

#[test]
fn arrows_have_both_ends_where_kineto_draws_both() {
    let rows = rows();
    let ends = |category: &str, phase: &str| -> HashMap<u64, &Value> {
        let of_category = rows.iter().filter(|row| row["cat"] == category && row["ph"] == phase);
        of_category.map(|row| (row["id"].as_u64().expect("a number"), row)).collect()
    };
    let (starts, finishes) = (ends("fwdbwd", "s"), ends("fwdbwd", "f"));
    assert!(starts.len() > 100 && starts.len() == finishes.len());
    assert!(starts.iter().all(|(id, start)| ns(&start["ts"]) < ns(&finishes[id]["ts"])));
    let (starts, finishes) = (ends("ac2g", "s"), ends("ac2g", "f"));
    let works = rows.iter().filter(|row| is(row, &DEVICE)).map(|row| row["args"]["correlation"].as_u64().expect("one"));
    assert!(works.into_iter().all(|id| starts.contains_key(&id) && finishes.contains_key(&id)));
}

#[test]
fn python_calls_name_the_call_around_them() {
    let rows = rows();
    let calls: HashMap<u64, &Value> = rows
        .iter()
        .filter(|row| is(row, &["python_function"]))
        .map(|row| (row["args"]["Python id"].as_u64().expect("a number"), row))
        .collect();
    let outermost = calls.values().filter(|row| row["args"]["Python parent id"].is_null()).count();
    assert!(calls.len() > 500 && outermost == 1);
    for row in calls.values() {
        let Some(parent) = row["args"]["Python parent id"].as_u64() else { continue };
        let ((begin, end), (outer, outer_end)) = (span(row), span(calls[&parent]));
        assert!(outer < begin && end < outer_end, "{row}");
    }
}

#[test]
fn row_numbers_go_up_one_by_one() {
    let numbers: Vec<u64> = rows().iter().filter_map(|row| row["args"]["Ev Idx"].as_u64()).collect();
    assert!(numbers.iter().zip(0..).all(|(number, expected)| *number == expected));
}

#[test]
fn it_opens_as_a_trace_about_which_nothing_is_doubtful() {
    for (has_stacks, has_memory) in [(true, true), (false, false)] {
        let options = Options { has_stacks, has_memory, ..OPTIONS };
        let (text, written) = generated(options, Size::Bytes(4_000_000));
        let trace = open_bytes("generated.json", &text).expect("a trace");
        let doubtful: Vec<_> = trace.findings.iter().filter(|row| row.code.severity() >= Severity::Suspect).collect();
        assert!(doubtful.is_empty(), "{doubtful:?}");
        assert_eq!(trace.steps.len() as u64, written.steps);
        assert!(trace.device_events.len() > 500 && !trace.flows.is_empty());
        for (category, is_wanted) in [("python_function", has_stacks), ("cpu_instant_event", has_memory)] {
            let text = String::from_utf8_lossy(&text);
            assert_eq!(text.contains(&format!("\"cat\": \"{category}\"")), is_wanted, "{category}");
        }
    }
}
