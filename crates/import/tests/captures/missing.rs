//! Runs in which something of a device is missing: what is said, and what is not.

use crate::made_capture::MadeCapture;
use stepscope_capture::device::{ActivityRecord, DeviceWork, Dropped, Kernel, Range, WorkKind};
use stepscope_import::open;
use stepscope_trace::{FindingCode, SliceKind, Trace};

const MS: i64 = 1_000_000;

/// A process with one op, from 1 to 5 ms.
fn process() -> MadeCapture {
    let mut made = MadeCapture::new(70);
    made.thread(70, 7, "main");
    made.begin(MS, "aten::mm", None);
    made.end(5 * MS);
    made
}

fn kernel(start_ns: i64, end_ns: i64) -> ActivityRecord {
    ActivityRecord::Work(DeviceWork {
        kind: kernel_kind(),
        start_ns,
        end_ns,
        context: Some(1),
        stream: Some(7),
        ..DeviceWork::default()
    })
}

fn kernel_kind() -> WorkKind {
    WorkKind::Kernel(Kernel { grid: Some([10, 1, 1]), block: Some([128, 1, 1]), ..Kernel::default() })
}

fn opened(made: &MadeCapture) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    made.write(folder.path());
    let from_capture = open(folder.path()).expect("a run");
    stepscope_run::recover(folder.path()).expect("a run");
    let from_part = open(folder.path()).expect("a run");
    assert_eq!(from_capture.findings, from_part.findings);
    assert_eq!(from_capture.device_events.len(), from_part.device_events.len());
    from_capture
}

fn examples(trace: &Trace, code: FindingCode) -> Vec<String> {
    trace.findings.iter().filter(|finding| finding.code == code).flat_map(|finding| finding.examples.clone()).collect()
}

#[test]
fn a_run_without_a_device_says_nothing_of_one() {
    let trace = opened(&process());
    assert_eq!(examples(&trace, FindingCode::DeviceNotRecorded), [""; 0]);
    assert_eq!(trace.devices, []);
}

#[test]
fn a_process_that_uses_a_device_of_which_nothing_was_reported_says_so() {
    let expected = ["process (pid 70): nothing was reported of the device it uses"];
    let mut made = process();
    made.allocate(2 * MS, 0, 512);
    assert_eq!(examples(&opened(&made), FindingCode::DeviceNotRecorded), expected);
    let mut made = process();
    made.fact("devices", r#"[{"type":"cuda","index":0}]"#);
    assert_eq!(examples(&opened(&made), FindingCode::DeviceNotRecorded), expected);
    // The reason, where there is one, is said instead.
    made.fact("device_refused", "no libcupti.so was found");
    let expected = ["process (pid 70): no libcupti.so was found"];
    assert_eq!(examples(&opened(&made), FindingCode::DeviceNotRecorded), expected);
}

#[test]
fn what_the_profiler_remarked_is_said() {
    let mut made = process();
    made.device_clock(0);
    made.activity(kernel(2 * MS, 3 * MS), Some("k"));
    made.fact("device_remarks", "no waits: CUPTI says so\nno events: neither");
    let expected = ["process (pid 70): no waits: CUPTI says so", "process (pid 70): no events: neither"];
    assert_eq!(examples(&opened(&made), FindingCode::DeviceRemarks), expected);
}

#[test]
fn lost_reports_are_counted() {
    let mut made = process();
    made.device_clock(0);
    made.activity(kernel(2 * MS, 3 * MS), Some("k"));
    made.activity(ActivityRecord::Dropped(Dropped { count: 12 }), None);
    made.activity(ActivityRecord::Dropped(Dropped { count: 3 }), None);
    let trace = opened(&made);
    assert_eq!(trace.findings.count(FindingCode::DeviceReportsLost), 15);
    assert_eq!(examples(&trace, FindingCode::DeviceNotRecorded), [""; 0]);
}

#[test]
fn of_a_killed_process_it_is_said_from_when_on_nothing_is_known_of_its_device() {
    let mut made = process();
    made.device_clock(0);
    made.activity(kernel(2 * MS, 3 * MS), Some("k"));
    assert_eq!(examples(&opened(&made), FindingCode::DeviceUnknownAfter), [""; 0], "it closed in good order");
    made.is_killed = true;
    let expected = ["process (pid 70): 3.00 ms after recording began, 2.00 ms before it ended"];
    assert_eq!(examples(&opened(&made), FindingCode::DeviceUnknownAfter), expected);
    made.is_killed = false;
    made.fact("kept_because", "slow_step 7");
    assert_eq!(examples(&opened(&made), FindingCode::DeviceUnknownAfter), expected, "it went on");
    let mut without_a_device = process();
    without_a_device.is_killed = true;
    assert_eq!(examples(&opened(&without_a_device), FindingCode::DeviceUnknownAfter), [""; 0]);
}

#[test]
fn a_range_that_did_not_end_is_marked_and_says_nothing_of_the_device() {
    let mut made = process();
    made.device_clock(0);
    made.activity(kernel(2 * MS, 3 * MS), Some("k"));
    let range = |id, end_ns| {
        let is_unfinished = end_ns == 0;
        ActivityRecord::Range(Range { start_ns: MS, end_ns, id, is_unfinished, ..Range::default() })
    };
    made.activity(range(1, 3 * MS), Some("ended"));
    made.activity(range(2, 0), Some("open"));
    made.is_killed = true;
    let trace = opened(&made);
    let found: Vec<_> = trace
        .slices
        .ids()
        .filter(|id| trace.slices.kind(*id) == SliceKind::Annotation)
        .map(|id| (trace.slice_name(id), trace.slices.dur_ns[id.index()], trace.slices.is_unfinished[id.index()]))
        .collect();
    // The process is known to have lived for five.
    assert_eq!(found, [("open", 4 * MS, true), ("ended", 2 * MS, false)]);
    assert_eq!(examples(&trace, FindingCode::UnfinishedSlices), ["open in process (pid 70)"]);
    let expected = ["process (pid 70): 3.00 ms after recording began, 2.00 ms before it ended"];
    assert_eq!(examples(&trace, FindingCode::DeviceUnknownAfter), expected);
}

#[test]
fn a_clock_that_was_never_read_is_damage() {
    let mut made = process();
    made.activity(kernel(2 * MS, 3 * MS), Some("k"));
    let trace = opened(&made);
    let expected = ["process (pid 70): 1 reports of a device's profiler whose clock was never read"];
    assert_eq!(examples(&trace, FindingCode::DamagedSegment), expected);
    assert!(trace.device_events.is_empty());
}
