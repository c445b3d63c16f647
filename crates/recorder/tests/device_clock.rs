//! The clock of a device's profiler, some of whose readings fail.
#![cfg(target_os = "linux")]

use std::time::{SystemTime, UNIX_EPOCH};
use stepscope_capture::device::{ActivityRecord, DeviceWork, WorkKind};
use stepscope_recorder as recorder;

fn unix_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
}

#[test]
fn a_reading_that_fails_says_nothing_of_the_clock() {
    let run = tempfile::tempdir().unwrap();
    let capture = recorder::open(run.path(), &[]).unwrap().path;
    let mut readings = 0;
    recorder::device_clock(|| {
        readings += 1;
        // Those that fail are the quickest.
        (readings == 3).then(unix_ns)
    });
    recorder::device_clock(|| None);
    let at_ns = unix_ns();
    let record = ActivityRecord::Work(DeviceWork {
        kind: WorkKind::Graph,
        start_ns: at_ns,
        end_ns: at_ns + 50,
        ..DeviceWork::default()
    });
    recorder::device_activity(&stepscope_capture::DeviceActivity { device_type: 1, record }, None);
    recorder::close();
    let capture = stepscope_capture::read(&capture).unwrap();
    assert!(capture.damaged.is_empty(), "{:?}", capture.damaged);
    let (start_ns, end_ns) = capture.device.at(0).record.span().unwrap();
    assert_eq!(end_ns - start_ns, 50);
    // A line through a reading of 0 would put it decades away.
    assert!((capture.opened_ns..=capture.last_ns + 1_000_000_000).contains(&start_ns), "{start_ns}");
}
