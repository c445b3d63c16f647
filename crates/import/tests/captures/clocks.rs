//! Hosts whose time of day is set while they are recorded.

use crate::made_capture::{MadeCapture, UNIX_NS};
use std::path::Path;
use stepscope_import::{open, recover};
use stepscope_trace::{FindingCode, Trace};

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND;

/// A process that records an operator of a second at each of these seconds.
fn process(pid: u64, opened_s: i64, seconds: &[i64]) -> MadeCapture {
    let mut made = MadeCapture::new(pid);
    made.opened_ns = opened_s * SECOND;
    made.thread(pid as u32, 0, "main");
    made.fact("host", "node7");
    for second in seconds {
        made.begin(second * SECOND, "op", None);
        made.end((second + 1) * SECOND);
    }
    made
}

/// Where operators lie, in seconds of the trace, its start, and what is said of the clock.
fn seen(trace: &Trace) -> (Vec<i64>, Option<i64>, Vec<String>) {
    let starts = trace.slices.start_ns.iter().map(|start_ns| start_ns / SECOND).collect();
    let found = trace.findings.iter().filter(|finding| finding.code == FindingCode::ClockMoved);
    (starts, trace.start_unix_ns, found.flat_map(|finding| finding.examples.clone()).collect())
}

/// Opened as captures, then as the process files that become of them.
fn check(captures: &[MadeCapture], expected: &(Vec<i64>, Option<i64>, Vec<String>)) {
    let folder = tempfile::tempdir().expect("a folder");
    captures.iter().for_each(|made| made.write(folder.path()));
    let copy = stepscope_run::read(folder.path()).expect("a run").captures;
    assert_eq!(&seen(&open(folder.path()).expect("a trace")), expected);
    recover(folder.path()).expect("compacted");
    assert!(!folder.path().join("raw").exists());
    let compacted = stepscope_run::read(folder.path()).expect("a run").captures;
    let clocks = |captures: &[stepscope_capture::Capture]| -> Vec<_> {
        captures.iter().map(|capture| capture.clocks.clone()).collect()
    };
    assert_eq!(clocks(&copy), clocks(&compacted));
    assert_eq!(&seen(&open(folder.path()).expect("a trace")), expected);
}

#[test]
fn a_time_of_day_that_is_set_moves_nothing_and_is_said() {
    let mut made = process(1, 100, &[0, 150]);
    (0..90).for_each(|second| made.clock(second * SECOND, 0));
    (90..160).for_each(|second| made.clock(second * SECOND, HOUR));
    let says = "node7: by 1.00 h, first seen 120 s after recording began".to_string();
    check(&[made], &(vec![0, 150], Some(UNIX_NS + 100 * SECOND), vec![says]));
}

#[test]
fn a_process_that_begins_after_that_is_placed_by_the_monotonic_clock() {
    let mut later = process(2, 130, &[5]);
    later.moved_ns = -HOUR;
    later.clock(10 * SECOND, -HOUR);
    let says = "node7: by -1.00 h, first seen 30.0 s after recording began".to_string();
    check(&[later, process(1, 100, &[0])], &(vec![0, 35], Some(UNIX_NS + 100 * SECOND), vec![says]));
}

#[test]
fn clocks_that_are_read_one_after_the_other_are_not_said_to_move() {
    let mut made = process(1, 100, &[0, 150]);
    (0..160).for_each(|second| made.clock(second * SECOND, second % 2 * 900_000));
    check(&[made], &(vec![0, 150], Some(UNIX_NS + 100 * SECOND), vec![]));
}

#[test]
fn files_without_snapshots_have_the_first() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/ddp-cpu");
    let captures = stepscope_run::read(&kept).expect("a run").captures;
    let first = |capture: &stepscope_capture::Capture| (capture.opened_ns, capture.unix_offset_ns);
    let clocks = |capture: &stepscope_capture::Capture| {
        capture.clocks.iter().map(|clock| (clock.monotonic_ns, clock.unix_offset_ns())).collect::<Vec<_>>()
    };
    assert_eq!(captures.len(), 3);
    captures.iter().for_each(|capture| assert_eq!(clocks(capture), [first(capture)]));
}
