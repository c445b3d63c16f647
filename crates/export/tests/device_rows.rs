//! Rows of devices have what those of `torch.profiler` have: a trace that it wrote on a GPU, and what we write of it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// Arguments that are not written, and why.
const NOT_WRITTEN: [(&str, &str, &str); 4] = [
    ("kernel", "queued", "always 0 unless latency timestamps are asked for, which torch.profiler never does"),
    ("cuda_runtime", "cbid", "CUPTI's number of the function, whose name is there"),
    ("cuda_sync", "context", "waits are told by device and stream"),
    ("cuda_sync", "wait_on_cuda_event_id", "the call that recorded it is there"),
];

fn original() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/kineto/a100_alexnet_sync.json.gz");
    let packed = std::fs::read(path).expect("a fixture");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

fn exported(document: &Value) -> Value {
    let trace = stepscope_import::open_bytes("trace.json", document.to_string().as_bytes()).expect("a trace");
    let mut bytes = Vec::new();
    stepscope_export::write_chrome(&trace, &mut bytes).expect("memory takes everything");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn rows<'a>(document: &'a Value, category: &'a str) -> impl Iterator<Item = &'a Value> {
    let events = document["traceEvents"].as_array().expect("a list");
    events.iter().filter(move |event| event["cat"] == category && event["ph"] == "X")
}

fn keys(document: &Value, category: &str) -> BTreeSet<String> {
    rows(document, category).flat_map(|row| row["args"].as_object().expect("arguments").keys().cloned()).collect()
}

/// Rows of a category by where they lie, since the order is another one.
fn by_place<'a>(document: &'a Value, category: &'a str) -> BTreeMap<String, &'a Value> {
    let first_us = rows(document, "user_annotation").map(|row| row["ts"].as_f64().expect("a time"));
    let zero_us = first_us.fold(f64::INFINITY, f64::min);
    let place =
        |row: &Value| format!("{} {} {}", row["tid"], row["ts"].as_f64().expect("a time") - zero_us, row["name"]);
    rows(document, category).map(|row| (place(row), row)).collect()
}

fn is_near(before: &Value, after: &Value) -> bool {
    match (before.as_f64(), after.as_f64()) {
        (Some(before), Some(after)) => (before - after).abs() <= before.abs() * 1e-6,
        _ => before == after,
    }
}

#[test]
fn no_argument_of_kineto_is_missing() {
    let before = original();
    let after = exported(&before);
    for category in ["kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_sync"] {
        let missing: Vec<String> = keys(&before, category).difference(&keys(&after, category)).cloned().collect();
        let is_known = |key: &String| NOT_WRITTEN.iter().any(|(of, known, _)| *of == category && known == key);
        assert!(missing.iter().all(is_known), "{category}: {missing:?}");
        assert_eq!(rows(&before, category).count(), rows(&after, category).count());
    }
}

#[test]
fn arguments_have_the_values_that_kineto_wrote() {
    let before = original();
    let after = exported(&before);
    // Ids that join rows are new.
    let is_id = |key: &str| matches!(key, "External id" | "correlation" | "queued");
    for category in ["kernel", "gpu_memcpy", "gpu_memset"] {
        let (before, after) = (by_place(&before, category), by_place(&after, category));
        assert!(!before.is_empty());
        for (place, row) in &before {
            let again = after.get(place).unwrap_or_else(|| panic!("{place} is there"));
            for (key, value) in row["args"].as_object().expect("arguments").iter().filter(|(key, _)| !is_id(key)) {
                // Written from durations in nanoseconds, which this file's have lost.
                let is_bandwidth = key == "memory bandwidth (GB/s)";
                assert!(
                    is_bandwidth || is_near(value, &again["args"][key]),
                    "{place} {key}: {value} {}",
                    again["args"]
                );
            }
        }
    }
    let bandwidths = rows(&after, "gpu_memcpy").map(|row| (&row["args"], row["dur"].as_f64().expect("a time")));
    for (args, dur_us) in bandwidths {
        let bytes = args["bytes"].as_f64().expect("a size");
        assert!(is_near(&(bytes / dur_us / 1e3).into(), &args["memory bandwidth (GB/s)"]), "{args}");
    }
}

#[test]
fn occupancy_that_was_not_recorded_is_what_kineto_would_have_written() {
    let before = original();
    let mut without = before.clone();
    for event in without["traceEvents"].as_array_mut().expect("a list") {
        if let Some(args) = event.get_mut("args").and_then(Value::as_object_mut) {
            args.remove("est. achieved occupancy %");
        }
    }
    let after = exported(&without);
    let (before, after) = (by_place(&before, "kernel"), by_place(&after, "kernel"));
    let percent = |row: &Value| row["args"]["est. achieved occupancy %"].as_f64().expect("a percentage");
    let pairs: Vec<(f64, f64)> = before.iter().map(|(place, row)| (percent(row), percent(after[place]))).collect();
    // Of blocks with more than 48 KiB of shared memory Kineto says 0, which no kernel that ran has.
    let (zeros, others): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(before, _)| *before == 0.0);
    assert!(others.iter().all(|(before, after)| before == after), "{others:?}");
    assert!(zeros.iter().all(|(_, after)| *after > 0.0), "{zeros:?}");
    assert!(others.len() > 50 && !zeros.is_empty());
}

#[test]
fn every_launch_that_kineto_joined_has_an_arrow() {
    let before = original();
    let after = exported(&before);
    let ends = |document: &Value| {
        let events = document["traceEvents"].as_array().expect("a list");
        let (mut from, mut to) = (BTreeSet::new(), 0);
        for event in events.iter().filter(|event| event["cat"] == "ac2g") {
            match event["ph"].as_str() {
                Some("s") => drop(from.insert(event["id"].to_string())),
                _ => to += 1,
            }
        }
        (from, to)
    };
    let (from, to) = ends(&after);
    let work: usize =
        ["kernel", "gpu_memcpy", "gpu_memset"].map(|category| rows(&before, category).count()).iter().sum();
    assert_eq!((from.len(), to), (work, work), "each has a launch of its own in this file");
    let correlations: BTreeSet<String> =
        rows(&after, "cuda_runtime").map(|row| row["args"]["correlation"].to_string()).collect();
    assert!(from.is_subset(&correlations));
}

#[test]
fn what_is_said_of_devices_stays() {
    let before = original();
    let after = exported(&before);
    let known = ["id", "name", "totalGlobalMem", "computeMajor", "computeMinor", "numSms", "warpSize"];
    let more = ["maxThreadsPerMultiprocessor", "regsPerMultiprocessor", "sharedMemPerMultiprocessor"];
    for key in known.into_iter().chain(more) {
        let of = |document: &Value| document["deviceProperties"][0][key].clone();
        assert_eq!(of(&before), of(&after), "{key}");
    }
}
