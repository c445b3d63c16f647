//! Activity records of a device's profiler, written by the real core and read back.
#![cfg(target_os = "linux")]

mod scenario;

use scenario::{captures, run};
use std::time::{Duration, Instant};
use stepscope_capture::device::{ActivityRecord, Overhead, Range};
use stepscope_capture::{Capture, DeviceActivity, State};
use stepscope_recorder as recorder;

/// More names than the table has room for.
const NAMES: usize = 70_000;
/// How much of the past the ring keeps.
const WINDOW: Duration = Duration::from_millis(200);
/// Longer than a name that is kept whole.
const LONG: usize = 5_000;

fn write(record: ActivityRecord, name: &str) {
    recorder::device_activity(&DeviceActivity { device_type: 1, record }, Some(name));
}

/// An activity record that begins at `at_ns`, so that those that are read stand in the order of these.
fn overhead(at_ns: i64) -> ActivityRecord {
    ActivityRecord::Overhead(Overhead { start_ns: at_ns, end_ns: at_ns, ..Overhead::default() })
}

/// Not a test of its own: what the processes started by `run` do.
#[test]
fn scenarios() {
    let Some((scenario, run)) = scenario::asked() else { return };
    recorder::open(&run, &[]).expect("the capture opens");
    recorder::device_clock(|| Some(1_000_000));
    match scenario.as_str() {
        "many_names" => {
            for at in 0..NAMES as i64 {
                let name = format!("kernel {at}");
                write(overhead(1_000_000 + at), &name);
                write(ActivityRecord::Range(Range { start_ns: at, end_ns: 2_000_000, ..Range::default() }), &name);
            }
            write(overhead(3_000_000), &"é".repeat(LONG / 2));
            recorder::counter("kernel 7", 1);
            recorder::counter("a quantity that comes late", 2);
            recorder::close();
        }
        "ring" => {
            recorder::close();
            recorder::open_ring(&run, &[], Some(WINDOW)).expect("the capture opens");
            recorder::set_metadata("devices", "[{}]");
            recorder::device_clock(|| Some(1_000_000_000));
            let begun = Instant::now();
            // The device's clock runs on with the monotonic one, and is not read again.
            for at in 0.. {
                let since_ns = begun.elapsed().as_nanos() as i64;
                if since_ns > 10 * WINDOW.as_nanos() as i64 {
                    break;
                }
                write(overhead(1_000_000_000 + since_ns), if at == 0 { "first" } else { "later" });
                if at % 64 == 0 {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
            recorder::close();
        }
        other => panic!("no scenario {other}"),
    }
}

/// Names of overheads in order, of which all are there.
fn overheads(capture: &Capture) -> Vec<&str> {
    let name = |activity: DeviceActivity| match activity.record {
        ActivityRecord::Overhead(overhead) => overhead.name.map(|id| capture.names[id as usize].as_str()),
        _ => None,
    };
    capture.device.iter().filter_map(name).collect()
}

#[test]
fn names_that_have_no_room_in_the_table_are_not_lost() {
    let (folder, status) = run("many_names");
    assert!(status.success());
    let [capture] = &captures(folder.path())[..] else { panic!("one capture") };
    assert_eq!((capture.state, capture.damaged.len()), (State::Closed, 0));
    let found = overheads(capture);
    assert_eq!(found.len(), NAMES + 1);
    for (at, name) in found[..NAMES].iter().enumerate() {
        assert_eq!(*name, format!("kernel {at}"));
    }
    assert_eq!(found[NAMES..], [&"é".repeat(2048)]);
    let ranges = capture.device.iter().filter_map(|activity| match activity.record {
        ActivityRecord::Range(range) => Some(range.name.map(|id| capture.names[id as usize].clone())),
        _ => None,
    });
    let mut ranges: Vec<_> = ranges.collect();
    ranges.sort_unstable();
    ranges.dedup();
    assert!(ranges.len() == NAMES && ranges[0].is_some());
    // A sample has no room for a name; it is counted.
    let samples: Vec<_> = capture.samples.iter().map(|sample| capture.names[sample.name as usize].as_str()).collect();
    assert_eq!((samples, capture.dropped), (vec!["kernel 7"], 1));
}

#[test]
fn a_ring_that_gave_up_the_readings_of_the_clock_still_knows_it() {
    let (folder, status) = run("ring");
    assert!(status.success());
    let [_, capture] = &captures(folder.path())[..] else { panic!("two captures") };
    assert_eq!((capture.damaged.len(), capture.dropped), (0, 0));
    let window = capture.ring.expect("a ring");
    let since_ns = window.since_ns.expect("several laps");
    assert!(capture.last_ns - since_ns < 4 * WINDOW.as_nanos() as i64);
    let found = overheads(capture);
    assert!(found.len() > 1_000 && found.iter().all(|name| *name == "later"), "{} reports", found.len());
    // Of a wrong clock the activity records would lie anywhere; they lie where they were made, between which the writer
    // slept.
    let times: Vec<i64> = capture.device.iter().filter_map(|activity| Some(activity.record.span()?.0)).collect();
    assert!(times[0] >= since_ns && times[0] < since_ns + 50_000_000, "{} after the window began", times[0] - since_ns);
    assert!(times[times.len() - 1] <= capture.last_ns + 1_000_000);
    assert!(capture.metadata.contains(&("devices".into(), "[{}]".into())));
}
