//! What sessions of PyTorch's own profiler told beside a capture: part of the trace, and of the part that it becomes.

use crate::made_capture::{MadeCapture, UNIX_NS};
use crate::replayed::{differences, host, kineto, zero_us};
use serde_json::{Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use stepscope_import::{RecordFilter, open, open_bytes, open_filtered, read_capture, recover};
use stepscope_run::Recovered;
use stepscope_trace::{FindingCode, Trace};

const PID: u64 = 70;
const MS: i64 = 1_000_000;

/// A run of one process with an op from 1 to 5 ms, and a session for each of `begins_ns`.
struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    fn new(begins_ns: &[i64]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut made = MadeCapture::new(PID);
        made.thread(70, 7, "main");
        for (number, begin_ns) in begins_ns.iter().enumerate() {
            made.fact(&format!("device_trace.{number}"), &fact(&format!("device/{number}.json"), *begin_ns));
        }
        made.begin(MS, "aten::mm", None);
        made.end(5 * MS);
        made.write(folder.path());
        let made = Self { folder };
        for (number, begin_ns) in begins_ns.iter().enumerate() {
            made.write(number, &session_rows(*begin_ns).to_string());
        }
        made
    }

    fn run(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, number: usize) -> PathBuf {
        self.run().join(format!("device/{number}.json"))
    }

    fn write(&self, number: usize, text: &str) {
        std::fs::create_dir_all(self.run().join("device")).expect("a folder");
        std::fs::write(self.file(number), text).expect("written");
    }

    fn open(&self) -> Trace {
        open(self.run()).expect("a run")
    }

    fn recover(&self) -> Recovered {
        let recovered = recover(self.run()).expect("a run");
        assert!(!self.run().join("raw").exists(), "it is a part now");
        recovered
    }

    /// How many rows of devices stand in the parts themselves.
    fn rows_of_parts(&self) -> usize {
        let parts =
            std::fs::read_dir(self.run().join("rank=0")).expect("a rank").map(|part| part.expect("a part").path());
        parts.map(|part| stepscope_run::read_part(&part).expect("a part").device.len()).sum()
    }
}

/// The metadata of a session.
fn fact(file: &str, begin_ns: i64) -> String {
    json!({"file": file, "monotonic_ns": begin_ns, "unix_ns": UNIX_NS + begin_ns, "device_type": 1}).to_string()
}

/// What a session tells: 1 ms after it began a call of 10 us, which launched a kernel of 100 us.
fn session_rows(begin_ns: i64) -> Value {
    let at_us = begin_ns / 1_000 + 1_000;
    let row = |cat: &str, name: &str, ts: i64, dur: i64, pid: u64, tid: u64, args: Value| json!({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args});
    let launch = json!({"correlation": 9});
    let kernel =
        json!({"device": 0, "stream": 7, "context": 1, "correlation": 9, "grid": [4, 1, 1], "block": [64, 1, 1]});
    json!({"baseTimeNanoseconds": UNIX_NS, "traceEvents": [
        row("cuda_runtime", "cudaLaunchKernel", at_us, 10, PID, 70, launch),
        row("kernel", "gemm", at_us + 50, 100, 0, 7, kernel),
    ]})
}

/// The work of devices: name, start and duration in us, and what launched it.
fn work(trace: &Trace) -> Vec<String> {
    let start_ns = trace.start_unix_ns.expect("a clock") - UNIX_NS;
    let rows = trace.device_events.iter().map(|event| {
        let span = trace.slices.span(event.slice);
        let launch = event.launch.map_or("nothing", |launch| trace.slice_name(launch));
        let (at_us, dur_us) = ((span.start_ns + start_ns) / 1_000, (span.end_ns - span.start_ns) / 1_000);
        format!("{} at {at_us} for {dur_us} by {launch}", trace.slice_name(event.slice))
    });
    rows.collect()
}

/// What was recorded in that time.
fn filter(span: Range<i64>) -> RecordFilter {
    RecordFilter { spans: vec![span], ..RecordFilter::default() }
}

fn warnings(trace: &Trace) -> Vec<String> {
    let of_devices = trace.findings.iter().filter(|finding| finding.code == FindingCode::DeviceNotRecorded);
    of_devices.flat_map(|finding| finding.examples.clone()).collect()
}

const FIRST: &str = "gemm at 2050 for 100 by cudaLaunchKernel";
const SECOND: &str = "gemm at 4050 for 100 by cudaLaunchKernel";

#[test]
fn a_part_has_what_sessions_told_and_needs_their_files_no_longer() {
    let made = Made::new(&[MS, 3 * MS]);
    assert_eq!(made.recover().processes, 1);
    assert_eq!(made.rows_of_parts(), 4, "two calls, two kernels");
    assert_eq!(made.recover().processes, 1, "and again");
    assert_eq!(work(&made.open()), [FIRST, SECOND], "each once, though the files are there");
    std::fs::remove_dir_all(made.run().join("device")).expect("removed");
    let trace = made.open();
    assert_eq!((work(&trace), warnings(&trace)), (vec![FIRST.to_string(), SECOND.to_string()], vec![]));
}

#[test]
fn to_open_a_run_makes_the_same_part() {
    let made = Made::new(&[MS]);
    assert_eq!(work(&made.open()), [FIRST]);
    assert_eq!(made.rows_of_parts(), 2);
}

#[test]
fn a_part_without_them_is_completed_each_time() {
    let made = Made::new(&[MS]);
    stepscope_run::recover(made.run()).expect("a run");
    assert_eq!(made.rows_of_parts(), 0);
    assert_eq!([work(&made.open()), work(&made.open())], [[FIRST], [FIRST]]);
}

#[test]
fn a_file_that_is_lost_is_said_and_may_come_back() {
    let made = Made::new(&[MS, 3 * MS]);
    std::fs::rename(made.file(0), made.run().join("elsewhere")).expect("moved");
    made.recover();
    assert_eq!(made.rows_of_parts(), 2);
    let trace = made.open();
    assert_eq!(work(&trace), [SECOND]);
    assert_eq!(warnings(&trace), ["what PyTorch's profiler told is not there: device/0.json"]);
    std::fs::rename(made.run().join("elsewhere"), made.file(0)).expect("moved");
    let trace = made.open();
    assert_eq!((work(&trace), warnings(&trace)), (vec![FIRST.to_string(), SECOND.to_string()], vec![]));
}

#[test]
fn a_file_that_is_cut_gives_its_beginning_and_is_said_each_time() {
    let made = Made::new(&[MS, 3 * MS]);
    let mut rows = session_rows(3 * MS);
    let more = rows["traceEvents"][1].clone();
    rows["traceEvents"].as_array_mut().expect("a list").push(more);
    let text = rows.to_string();
    made.write(1, &text[..text.len() - 20]);
    made.recover();
    assert_eq!(made.rows_of_parts(), 4);
    for _ in 0..2 {
        let trace = made.open();
        assert_eq!(work(&trace), [FIRST, SECOND]);
        assert_eq!(warnings(&trace), ["the end of what PyTorch's profiler told cannot be read: device/1.json"]);
    }
}

#[test]
fn rows_that_are_damaged_are_counted() {
    let made = Made::new(&[MS]);
    let mut rows = session_rows(MS);
    let mut damaged = rows["traceEvents"][1].clone();
    damaged["ts"] = json!("soon");
    rows["traceEvents"].as_array_mut().expect("a list").push(damaged);
    made.write(0, &rows.to_string());
    made.recover();
    let trace = made.open();
    assert_eq!(work(&trace), [FIRST]);
    assert_eq!(warnings(&trace), ["1 of the events that PyTorch's profiler told cannot be read: device/0.json"]);
}

#[test]
fn a_file_that_is_no_trace_adds_nothing() {
    for damaged in ["", "not a trace", "{\"traceEvents\": 3}", "\u{1f}\u{8b}\u{8}junk"] {
        let made = Made::new(&[MS, 3 * MS]);
        made.write(0, damaged);
        made.recover();
        assert_eq!(made.rows_of_parts(), 2, "{damaged:?}");
        let trace = made.open();
        assert_eq!(work(&trace), [SECOND], "{damaged:?}");
        let warnings = warnings(&trace);
        assert!(warnings.len() == 1 && warnings[0].contains("device/0.json"), "{damaged:?}: {warnings:?}");
    }
}

#[test]
fn facts_that_make_no_sense_are_said() {
    let check = |value: &str, expected: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut made = MadeCapture::new(PID);
        made.thread(70, 7, "main");
        made.fact("device_trace.0", value);
        made.begin(MS, "aten::mm", None);
        made.end(5 * MS);
        made.write(folder.path());
        std::fs::write(folder.path().join("run.txt"), session_rows(MS).to_string()).expect("written");
        recover(folder.path()).expect("a run");
        let trace = open(folder.path()).expect("a run");
        assert_eq!((work(&trace).len(), warnings(&trace)), (0, vec![expected.to_string()]), "{value}");
    };
    for value in ["{", "3", "{}", r#"{"file": 3}"#] {
        check(value, "a session's fact names no file");
    }
    check(r#"{"file": ""}"#, "what PyTorch's profiler told is not there: ");
    for file in ["../run.txt", "/run.txt", "device/../run.txt"] {
        check(&fact(file, MS), &format!("a session's file is not of the run: {file}"));
    }
}

/// What is known of each piece of work, beside its place in time.
fn known_of_work(trace: &Trace) -> Vec<String> {
    let rows = trace.device_events.iter().map(|event| {
        let (sizes, bytes) = ((event.grid, event.block), (event.registers, event.shared_bytes, event.bytes));
        let place = (event.stream, event.context, event.graph, event.graph_node);
        format!("{}: {sizes:?} {bytes:?} {place:?}", trace.slice_name(event.slice))
    });
    rows.collect()
}

#[test]
fn what_a_session_does_not_say_stays_unknown() {
    let made = Made::new(&[MS]);
    let mut rows = session_rows(MS);
    let events = rows["traceEvents"].as_array_mut().expect("a list");
    let kernel = events[1].clone();
    let mut add = |cat: &str, name: &str, args: Value| {
        let mut row = kernel.clone();
        row["ts"] = json!(kernel["ts"].as_i64().expect("a time") + 1_000 * events.len() as i64);
        (row["cat"], row["name"], row["args"]) = (json!(cat), json!(name), args);
        events.push(row);
    };
    // As of AMD's GPUs: neither registers nor shared memory nor a context.
    add("kernel", "Cijk", json!({"device": 0, "stream": 7, "grid": [4, 1, 1], "block": [64, 1, 1]}));
    add("kernel", "tiny", json!({"device": 0, "stream": 7, "registers per thread": 0, "shared memory": 0}));
    add("kernel", "nothing", json!({"device": 0}));
    add("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", json!({"device": 0, "stream": 7, "context": 3}));
    add("gpu_memset", "Memset (Device)", json!({"device": 0, "stream": 7, "bytes": 0}));
    let text = rows.to_string();
    made.write(0, &text);
    let theirs = known_of_work(&open_bytes("session.json", text.as_bytes()).expect("a trace"));
    assert_eq!(theirs.len(), 6);
    assert_eq!(theirs[1], "Cijk: (Some([4, 1, 1]), Some([64, 1, 1])) (None, None, None) (Some(7), None, None, None)");
    let raw = made.run().join(format!("raw/{PID}-1.capture"));
    assert_eq!(known_of_work(&open_filtered(&raw, &filter(0..20 * MS)).expect("a trace")), theirs, "from the capture");
    assert_eq!(known_of_work(&made.open()), theirs, "from the process file");
}

#[test]
fn a_file_that_is_named_twice_is_added_once() {
    let made = Made::new(&[MS]);
    let mut twice = MadeCapture::new(PID);
    twice.thread(70, 7, "main");
    twice.fact("device_trace.0", &fact("device/0.json", MS));
    twice.fact("device_trace.1", &fact("device/./0.json", MS));
    twice.begin(MS, "aten::mm", None);
    twice.end(5 * MS);
    twice.write(made.run());
    let expected = "two sessions of PyTorch's profiler name one file: device/./0.json";
    for _ in 0..2 {
        let trace = made.open();
        assert_eq!((work(&trace), warnings(&trace)), (vec![FIRST.to_string()], vec![expected.to_string()]));
    }
}

#[test]
fn a_cut_has_the_sessions_that_listened_in_it_and_reads_no_others() {
    let made = Made::new(&[MS, 3 * MS]);
    let raw = made.run().join(format!("raw/{PID}-1.capture"));
    let (first, second) = (filter(MS..3 * MS - 1), filter(3 * MS..6 * MS));
    assert_eq!(work(&open_filtered(&raw, &filter(0..6 * MS)).expect("a trace")), [FIRST, SECOND]);
    std::fs::remove_file(made.file(0)).expect("removed");
    let trace = open_filtered(&raw, &second).expect("a trace");
    assert_eq!((work(&trace), warnings(&trace)), (vec![SECOND.to_string()], vec![]));
    assert_eq!(read_capture(&raw, &second).expect("a capture").device.len(), 2);
    assert_eq!(warnings(&open_filtered(&raw, &first).expect("a trace")).len(), 1);
    assert_eq!(read_capture(&raw, &filter(0..MS)).expect("a capture").device.len(), 0);
}

#[test]
fn a_capture_that_is_named_by_an_open_file_has_the_sessions_of_its_run() {
    let made = Made::new(&[MS]);
    let file = std::fs::File::open(made.run().join(format!("raw/{PID}-1.capture"))).expect("a capture");
    let named = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
    let filter = filter(0..6 * MS);
    assert_eq!(read_capture(&named, &filter).expect("a capture").device.len(), 2);
    made.recover();
    assert_eq!(read_capture(&named, &filter).expect("a capture").device.len(), 2, "its name is gone");
    assert_eq!(work(&open_filtered(&named, &filter).expect("a trace")), [FIRST]);
}

/// A trace of a GPU, its device's rows in a session's file: every analysis says the same of the trace, of the run, and
/// of the part without the file.
fn check(name: &str) {
    let mut document = kineto(name);
    let theirs = open_bytes(name, document.to_string().as_bytes()).expect("a trace");
    let folder = tempfile::tempdir().expect("a folder");
    let mut made = host(&document);
    made.fact("device_trace.0", &fact("device/0.json", 0));
    made.write(folder.path());
    let zero_us = zero_us(&document);
    document["baseTimeNanoseconds"] = json!(UNIX_NS);
    for row in document["traceEvents"].as_array_mut().expect("a list") {
        row["ts"] = row["ts"].as_i64().map_or(Value::Null, |us| json!(us - zero_us));
    }
    std::fs::create_dir(folder.path().join("device")).expect("a folder");
    std::fs::write(folder.path().join("device/0.json"), document.to_string()).expect("written");
    let ours = open(folder.path()).expect("a run");
    assert_eq!(warnings(&ours), [""; 0]);
    assert_eq!(differences(&theirs, &ours), [""; 0], "while the file is there");
    std::fs::remove_dir_all(folder.path().join("device")).expect("removed");
    let part = open(folder.path()).expect("a run");
    assert_eq!(differences(&theirs, &part), [""; 0], "from the part alone");
    assert_eq!(known_of_work(&ours), known_of_work(&theirs));
    let of = |trace: &Trace| (trace.device_events.len(), trace.synchronizations.len(), trace.flows.len());
    assert_eq!([of(&ours), of(&part)], [of(&theirs), of(&theirs)]);
}

#[test]
fn a_training_step_with_copies_waits_and_two_streams_is_the_same_by_a_session() {
    check("a100_alexnet_sync.json.gz");
}

#[test]
fn streams_that_wait_for_each_other_are_the_same_by_a_session() {
    check("a100_event_sync_multi_stream.json.gz");
}
