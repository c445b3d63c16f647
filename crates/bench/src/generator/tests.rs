//! A small generated trace, read as JSON and as a trace: it must be possible.

use super::{Size, Written, write};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use stepscope_import::open_bytes;
use stepscope_trace::Severity;

fn generated(seed: u64, size: Size) -> (Vec<u8>, Written) {
    let mut text = Vec::new();
    let written = write(seed, size, &mut text).expect("memory takes all");
    (text, written)
}

/// The rows of two steps.
fn rows() -> Vec<Value> {
    let (text, _) = generated(7, Size::Events(17_000));
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

fn correlation(row: &Value) -> u64 {
    row["args"]["correlation"].as_u64().expect("a number")
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let text = |seed| generated(seed, Size::Bytes(3_000_000)).0;
    assert!(text(1) == text(1));
    assert!(text(1) != text(2));
}

#[test]
fn sizes_come_out_as_asked_for_up_to_half_a_step() {
    let (one, step) = generated(1, Size::Bytes(1));
    assert_eq!(step.steps, 1);
    let (text, written) = generated(1, Size::Bytes(10_000_000));
    assert_eq!(written.bytes, text.len() as u64);
    assert!((10_000_000 - text.len() as i64).abs() < one.len() as i64 * 3 / 4, "{written:?}");
    let (text, written) = generated(1, Size::Events(40_000));
    assert!((40_000 - written.events as i64).abs() < step.events as i64 * 3 / 4, "{written:?}");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(document["traceEvents"].as_array().map(Vec::len), Some(written.events as usize));
}

#[test]
fn device_work_starts_after_its_launch_in_the_order_of_its_stream() {
    let rows = rows();
    let mut launches = HashMap::new();
    for row in rows.iter().filter(|row| is(row, &["cuda_runtime", "cuda_driver"])) {
        assert!(launches.insert(correlation(row), span(row).0).is_none(), "correlation ids are unique: {row}");
    }
    let mut free_ns: HashMap<u64, i64> = HashMap::new();
    let mut works: Vec<&Value> = rows.iter().filter(|row| is(row, &["kernel", "gpu_memcpy", "gpu_memset"])).collect();
    assert!(works.len() > 1_000);
    works.sort_by_key(|row| correlation(row));
    for row in works {
        let (start, end) = span(row);
        assert!(start > launches[&correlation(row)], "{row}");
        let free = free_ns.entry(row["tid"].as_u64().expect("a stream")).or_insert(i64::MIN);
        assert!(start >= *free && end > start, "{row}");
        *free = end;
    }
    assert_eq!(free_ns.len(), 3);
    let waits: Vec<&Value> = rows.iter().filter(|row| row["name"] == "Stream Wait Event").collect();
    let record = |row: &Value| row["args"]["wait_on_cuda_event_record_corr_id"].as_u64().expect("a number");
    assert!(waits.len() > 5 && waits.iter().all(|row| launches[&record(row)] < span(row).0));
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
        let mut open = Vec::<(i64, i64)>::new();
        for (begin, end) in spans {
            while open.last().is_some_and(|(_, outer)| outer <= begin) {
                open.pop();
            }
            assert!(open.last().is_none_or(|(_, outer)| *end < *outer), "{begin} to {end} reaches out");
            open.push((*begin, *end));
        }
    }
}

#[test]
fn every_row_that_points_to_another_finds_it_in_its_step() {
    let rows = rows();
    let ends = |phase: &str| -> HashSet<(&str, u64)> {
        let of_phase = rows.iter().filter(|row| row["ph"] == phase);
        of_phase.map(|row| (row["cat"].as_str().expect("text"), row["id"].as_u64().expect("a number"))).collect()
    };
    let (starts, finishes) = (ends("s"), ends("f"));
    assert!(starts.iter().filter(|(category, _)| *category == "fwdbwd").all(|start| finishes.contains(start)));
    for row in rows.iter().filter(|row| is(row, &["kernel", "gpu_memcpy", "gpu_memset"])) {
        assert!([&starts, &finishes].iter().all(|ends| ends.contains(&("ac2g", correlation(row)))), "{row}");
    }
    let python = || rows.iter().filter(|row| is(row, &["python_function"]));
    let calls: HashMap<u64, &Value> =
        python().map(|row| (row["args"]["Python id"].as_u64().expect("a number"), row)).collect();
    assert_eq!(calls.len(), python().count());
    for row in python() {
        let Some(parent) = row["args"]["Python parent id"].as_u64() else { continue };
        let ((begin, end), (outer, outer_end)) = (span(row), span(calls[&parent]));
        assert!(outer < begin && end < outer_end, "{row}");
    }
}

#[test]
fn it_opens_as_a_trace_about_which_nothing_is_doubtful() {
    let (text, written) = generated(1, Size::Bytes(6_000_000));
    let trace = open_bytes("generated.json", &text).expect("a trace");
    let doubtful: Vec<_> = trace.findings.iter().filter(|row| row.code.severity() >= Severity::Suspect).collect();
    assert!(doubtful.is_empty(), "{doubtful:?}");
    assert_eq!((trace.steps.len() as u64, written.steps), (2, 2));
    assert!(trace.device_events.len() > 1_000 && !trace.flows.is_empty());
}
