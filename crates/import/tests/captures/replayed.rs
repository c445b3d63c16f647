//! A trace that `torch.profiler` recorded on a GPU, turned into what our own recorder would have written of the same run:
//! every analysis says the same of both.

use crate::made_capture::MadeCapture;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use stepscope_analyses::{AnalysisContext, Column, Selection, Values, catalogue};
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, EventRecorded, Kernel, Memcpy, MemoryKind, Memset,
    Synchronization, SynchronizationKind, WorkKind,
};
use stepscope_import::{open, open_bytes};
use stepscope_trace::{FindingCode, Trace};

/// A trace of `torch.profiler`, without the marks that Kineto ends its files with: our recorder writes none.
pub(crate) fn kineto(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/kineto").join(name);
    let packed = std::fs::read(path).expect("a fixture");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("gzip");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    let events = document["traceEvents"].as_array_mut().expect("a list");
    events.retain(|event| event["cat"] != "Trace" && event["ph"] != "i");
    document
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn whole(value: &Value, key: &str) -> i64 {
    value[key].as_i64().unwrap_or(0)
}

/// Microseconds, of which these files have no fractions, from the first row on.
fn span(event: &Value, zero_us: i64) -> (i64, i64) {
    let start_ns = (whole(event, "ts") - zero_us) * 1_000;
    (start_ns, start_ns + whole(event, "dur") * 1_000)
}

fn sizes(value: &Value) -> [u32; 3] {
    [0, 1, 2].map(|axis| value[axis].as_u64().unwrap_or(0) as u32)
}

/// What lies between the brackets of `Memcpy HtoD (Pageable -> Device)`.
fn kinds_of_memory(name: &str) -> Vec<MemoryKind> {
    let inside = name.split(['(', ')']).nth(1).unwrap_or_default();
    inside.split(" -> ").map(MemoryKind::from_name).collect()
}

/// What the device's profiler reported of a row, and the name that goes with it.
fn activity(event: &Value, zero_us: i64, handle: u32) -> Option<(ActivityRecord, Option<&str>)> {
    let (args, name) = (&event["args"], text(event, "name"));
    let (start_ns, end_ns) = span(event, zero_us);
    let number = |key: &str| whole(args, key) as u32;
    let work = |kind: WorkKind| DeviceWork {
        kind,
        start_ns,
        end_ns,
        device: number("device"),
        context: Some(number("context")),
        stream: Some(number("stream")),
        correlation: number("correlation"),
        graph: 0,
        graph_node: 0,
    };
    let record = match text(event, "cat") {
        "kernel" => {
            let kind = WorkKind::Kernel(Kernel {
                name: None,
                grid: Some(sizes(&args["grid"])),
                block: Some(sizes(&args["block"])),
                registers: Some(number("registers per thread")),
                static_shared_bytes: Some(number("shared memory") / 4),
                dynamic_shared_bytes: Some(number("shared memory") - number("shared memory") / 4),
            });
            return Some((ActivityRecord::Work(work(kind)), Some(name)));
        }
        "gpu_memcpy" => {
            let direction = Direction::from_name(name.split(' ').nth(1).unwrap_or_default());
            let [source, destination] = kinds_of_memory(name).try_into().expect("two kinds");
            let bytes = Some(whole(args, "bytes") as u64);
            let copy = Memcpy { bytes, direction, source, destination, devices: None };
            ActivityRecord::Work(work(WorkKind::Memcpy(copy)))
        }
        "gpu_memset" => {
            let memory = kinds_of_memory(name)[0];
            let bytes = Some(whole(args, "bytes") as u64);
            ActivityRecord::Work(work(WorkKind::Memset(Memset { bytes, memory })))
        }
        "cuda_sync" => ActivityRecord::Synchronization(Synchronization {
            kind: SynchronizationKind::from_name(name),
            start_ns,
            end_ns,
            context: Some(number("context")),
            stream: Some(whole(args, "stream")).filter(|id| !matches!(id, -1 | 0xffff_ffff)).map(|id| id as u32),
            correlation: number("correlation"),
            event: number("wait_on_cuda_event_id"),
            event_sync: 0,
        }),
        "cuda_runtime" => {
            let (thread, correlation) = (handle, number("correlation"));
            let call = Call { api: Api::Runtime, name: None, start_ns, end_ns, thread, correlation, status: 0 };
            return Some((ActivityRecord::Call(call), Some(name)));
        }
        _ => return None,
    };
    Some((record, None))
}

/// The recording of the event that a wait waits for, as Kineto joined them.
fn recorded_event(event: &Value) -> Option<ActivityRecord> {
    let args = &event["args"];
    let correlation = args["wait_on_cuda_event_record_corr_id"].as_i64().and_then(|id| u32::try_from(id).ok())?;
    let stream = u32::try_from(whole(args, "wait_on_stream")).ok()?;
    let (event, context) = (whole(args, "wait_on_cuda_event_id") as u32, Some(whole(args, "context") as u32));
    Some(ActivityRecord::EventRecorded(EventRecorded { event, event_sync: 0, context, stream, correlation }))
}

fn complete(document: &Value) -> impl Iterator<Item = &Value> {
    document["traceEvents"].as_array().expect("a list").iter().filter(|event| event["ph"] == "X")
}

/// When the first row begins.
pub(crate) fn zero_us(document: &Value) -> i64 {
    complete(document).map(|event| whole(event, "ts")).min().expect("rows")
}

fn handle(tid: i64) -> u32 {
    0xdead_0000_u32.wrapping_add(tid as u32)
}

/// What the process did itself, as `stepscope record` would have captured it.
pub(crate) fn host(document: &Value) -> MadeCapture {
    let (complete, zero_us) = (|| complete(document), zero_us(document));
    let main = complete().find(|event| event["cat"] == "cpu_op").expect("an op");
    let mut made = MadeCapture::new(main["pid"].as_u64().expect("a number"));
    let mut threads: Vec<i64> =
        complete().filter(|event| event["pid"] == main["pid"]).map(|e| whole(e, "tid")).collect();
    threads.sort_unstable();
    threads.dedup();
    for tid in &threads {
        made.thread(*tid as u32, handle(*tid), &format!("thread {tid}"));
        let is_host = |event: &&Value| matches!(text(event, "cat"), "cpu_op" | "user_annotation");
        let mut rows: Vec<&Value> = complete().filter(|event| whole(event, "tid") == *tid).filter(is_host).collect();
        rows.sort_by_key(|event| (whole(event, "ts"), -whole(event, "dur")));
        let mut open: Vec<i64> = Vec::new();
        for row in rows {
            let (start_ns, end_ns) = span(row, zero_us);
            while let Some(ended_ns) = open.pop_if(|open_end_ns| *open_end_ns <= start_ns) {
                made.end(ended_ns);
            }
            match text(row, "cat") {
                "cpu_op" => made.begin(start_ns, text(row, "name"), row["args"]["Sequence number"].as_u64()),
                _ => made.begin_label(start_ns, text(row, "name")),
            }
            open.push(end_ns);
        }
        open.into_iter().rev().for_each(|end_ns| made.end(end_ns));
    }
    made.fact("rank", "0");
    made
}

/// The same with what the device's profiler reported.
fn replayed(document: &Value) -> MadeCapture {
    let (complete, zero_us) = (|| complete(document), zero_us(document));
    let mut made = host(document);
    made.fact("devices", &devices(document).to_string());
    made.thread(1, 1, "stepscope gpu");
    made.device_clock(0);
    // Kineto orders rows by track; a device's profiler reports them as they come.
    for event in complete() {
        recorded_event(event).into_iter().for_each(|record| made.activity(record, None));
        if let Some((record, name)) = activity(event, zero_us, handle(whole(event, "tid"))) {
            made.activity(record, name);
        }
    }
    made.device_clock(60_000_000_000);
    made
}

fn devices(document: &Value) -> Value {
    let properties = document["deviceProperties"].as_array().expect("a list");
    let device = |of: &Value| {
        json!({
            "type": "cuda", "index": of["id"], "name": of["name"], "memory_bytes": of["totalGlobalMem"],
            "sm_count": of["numSms"], "compute_capability_major": of["computeMajor"],
            "compute_capability_minor": of["computeMinor"],
            "max_threads_per_sm": of["maxThreadsPerMultiprocessor"], "warp_size": of["warpSize"],
            "registers_per_sm": of["regsPerMultiprocessor"],
            "shared_bytes_per_sm": of["sharedMemPerMultiprocessor"],
        })
    };
    properties.iter().map(device).collect()
}

/// How far apart a column's fractions may be: Kineto writes occupancy in whole percents, and blocks per multiprocessor in
/// seven digits.
fn tolerance(column: &Column, value: f64) -> f64 {
    if column.name.contains("occupancy") { 0.005 } else { value.abs() * 1e-6 }
}

/// The first row in which two columns are not the same, or that one of them has not.
fn first_difference(theirs: &Column, ours: &Column) -> Option<String> {
    let is_near = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= tolerance(theirs, *a),
        (a, b) => a == b,
    };
    let is_same = match (&theirs.values, &ours.values) {
        (Values::Float(a), Values::Float(b)) => a.len() == b.len() && a.iter().zip(b).all(is_near),
        (a, b) => a == b,
    };
    (!is_same).then(|| format!("{:?} and {:?}", theirs.values, ours.values))
}

/// Every column of every analysis that the two traces do not share. Findings are looked at elsewhere.
pub(crate) fn differences(theirs: &Trace, ours: &Trace) -> Vec<String> {
    let mut found = Vec::new();
    let selection = Selection::default();
    let (theirs, ours) = (AnalysisContext::new(theirs, &selection), AnalysisContext::new(ours, &selection));
    for analysis in catalogue().iter().filter(|analysis| analysis.name != "findings") {
        let (theirs, ours) = ((analysis.run)(&theirs), (analysis.run)(&ours));
        if theirs.coverage != ours.coverage {
            found.push(format!("{}: {:?} and {:?}", analysis.name, theirs.coverage, ours.coverage));
        }
        // Only Kineto says what threads are called.
        let columns = theirs.table.columns.iter().zip(&ours.table.columns);
        for (theirs, ours) in columns.filter(|(theirs, _)| theirs.name != "track") {
            let difference = first_difference(theirs, ours);
            found.extend(difference.map(|difference| format!("{} {}: {difference}", analysis.name, theirs.name)));
        }
    }
    found
}

/// What is doubtful, beside that nobody wrote a `run.json`.
fn recorded(trace: &Trace) -> Vec<String> {
    let findings = trace.findings.iter().filter(|finding| finding.code != FindingCode::ManifestMissing);
    findings.map(|finding| format!("{} {} {:?}", finding.code.code(), finding.count, finding.examples)).collect()
}

/// From the capture, and from the Parquet part that it becomes.
fn check(name: &str) {
    let document = kineto(name);
    let theirs = open_bytes(name, document.to_string().as_bytes()).expect("a trace");
    let folder = tempfile::tempdir().expect("a folder");
    replayed(&document).write(folder.path());
    let ours = open(folder.path()).expect("a run");
    assert_eq!(differences(&theirs, &ours), [""; 0], "from the capture");
    assert_eq!(recorded(&theirs), recorded(&ours));
    let of = |trace: &Trace| (trace.device_events.len(), trace.synchronizations.len(), trace.flows.len());
    assert_eq!(of(&theirs), of(&ours));
    stepscope_run::recover(folder.path()).expect("a run");
    assert!(!folder.path().join("raw").exists(), "it is a part now");
    let part = open(folder.path()).expect("a run");
    assert_eq!(differences(&ours, &part), [""; 0], "from the part");
    assert_eq!(recorded(&theirs), recorded(&part));
}

#[test]
fn a_training_step_with_copies_waits_and_two_streams_is_the_same() {
    check("a100_alexnet_sync.json.gz");
}

#[test]
fn streams_that_wait_for_each_other_are_the_same() {
    check("a100_event_sync_multi_stream.json.gz");
}
