//! Activity records of devices: their clock, their threads, and what is damaged.

use super::super::device::finish;
use super::*;
use crate::decode::process::ProcessRecords;
use crate::device::{ActivityRecord, Api, Call, DeviceActivity, DeviceWork, Overhead, Range, WorkKind, encode};
use crate::layout::{SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, first_word, padded};
use crate::{Thread, TickClock};

/// What the device's clock says when the capture's says 0.
const DEVICE_NS: i64 = 1_700_000_000_000_000_000;
const CUDA: u8 = 1;

fn activity(record: ActivityRecord) -> DeviceActivity {
    DeviceActivity { device_type: CUDA, record }
}

fn work(start_ns: i64, end_ns: i64) -> DeviceActivity {
    activity(ActivityRecord::Work(DeviceWork { kind: WorkKind::Graph, start_ns, end_ns, ..DeviceWork::default() }))
}

fn call(thread: u32) -> DeviceActivity {
    let (start_ns, end_ns) = (DEVICE_NS, DEVICE_NS + 1);
    activity(ActivityRecord::Call(Call { api: Api::Runtime, thread, start_ns, end_ns, ..Call::default() }))
}

/// Activity records as the capture has them, when its ticks are nanoseconds and these moments of the device's clock are
/// known.
fn placed(activities: Vec<DeviceActivity>, moments: &[(i64, i64)], threads: &mut Vec<Thread>) -> Vec<DeviceActivity> {
    let moments = moments.iter().map(|(device_ns, at_ns)| (*device_ns, *at_ns as u64)).collect();
    let mut process = ProcessRecords::default();
    process.device_moments = moments;
    let clock = TickClock::new(ClockPoint { ticks: 0, monotonic_ns: 0, unix_ns: 0 }, []);
    let (placed, damage) = finish(activities.into(), &process, &clock, threads, 1_000_000);
    assert_eq!(damage, None);
    let mut placed = placed;
    placed.sort();
    placed.iter().collect()
}

fn times(activities: &[DeviceActivity]) -> Vec<(i64, i64)> {
    activities.iter().map(|activity| activity.record.span().expect("a span")).collect()
}

#[test]
fn times_lie_on_lines_between_the_moments_and_run_on_beyond_them() {
    // From 1,000 to 2,000 the device's clock is twice as quick, then a half as quick.
    let moments = [(DEVICE_NS + 5_000, 4_000), (DEVICE_NS, 1_000), (DEVICE_NS + 4_000, 2_000)];
    let at = |ns: i64| work(DEVICE_NS + ns, DEVICE_NS + ns + 100);
    let found = placed([-700, 0, 2_000, 4_500, 5_000, 9_000].map(at).to_vec(), &moments, &mut Vec::new());
    assert_eq!(
        times(&found),
        [(300, 400), (1_000, 1_025), (1_500, 1_525), (3_000, 3_200), (4_000, 4_100), (8_000, 8_100)]
    );
    // One moment is enough, and that it is far from 0 is no matter.
    let found = placed(vec![at(-1), at(0), at(86_400_000_000_000)], &moments[..1], &mut Vec::new());
    assert_eq!(times(&found)[2], (86_399_999_999_000, 86_399_999_999_100));
}

#[test]
fn reports_come_in_order_and_never_end_before_they_begin() {
    let found = placed(
        vec![work(DEVICE_NS + 50, DEVICE_NS + 40), work(DEVICE_NS + 9, DEVICE_NS + 10)],
        &[(DEVICE_NS, 0)],
        &mut Vec::new(),
    );
    assert_eq!(times(&found), [(9, 10), (50, 50)]);
    for hostile in [i64::MIN, -1, 0, i64::MAX] {
        let found = placed(vec![work(hostile, i64::MAX), work(0, hostile)], &[(DEVICE_NS, 0)], &mut Vec::new());
        assert!(times(&found).iter().all(|(start_ns, end_ns)| start_ns <= end_ns));
    }
}

#[test]
fn a_range_left_open_reaches_to_the_last_moment() {
    let found = placed(vec![range(1, 0), range(2, DEVICE_NS + 7)], &[(DEVICE_NS, 0)], &mut Vec::new());
    assert_eq!(times(&found), [(5, 7), (5, 1_000_000)]);
    assert_eq!(are_unfinished(&found), [false, true]);
}

/// A range with this number of the profiler's, told as it is written.
fn range(id: u32, end_ns: i64) -> DeviceActivity {
    let range = Range { start_ns: DEVICE_NS + 5, end_ns, id, is_unfinished: end_ns == 0, ..Range::default() };
    activity(ActivityRecord::Range(range))
}

fn are_unfinished(activities: &[DeviceActivity]) -> Vec<bool> {
    let is_unfinished = |activity: &DeviceActivity| match activity.record {
        ActivityRecord::Range(range) => (range.id == 0).then_some(range.is_unfinished),
        _ => None,
    };
    activities.iter().map(|activity| is_unfinished(activity).expect("a range that is read")).collect()
}

#[test]
fn a_range_that_was_told_while_it_was_open_is_one_range() {
    let at_stop = |id, end_ns| {
        let ActivityRecord::Range(range) = range(id, end_ns).record else { unreachable!() };
        activity(ActivityRecord::Range(Range { is_unfinished: true, ..range }))
    };
    let activities = vec![
        range(1, 0),
        range(2, 0),
        range(2, DEVICE_NS + 9),
        range(3, 0),
        at_stop(3, DEVICE_NS + 20),
        // The same number, at another time.
        activity(ActivityRecord::Range(Range {
            start_ns: DEVICE_NS + 1,
            end_ns: DEVICE_NS + 2,
            id: 1,
            ..Range::default()
        })),
    ];
    let found = placed(activities, &[(DEVICE_NS, 0)], &mut Vec::new());
    assert_eq!(times(&found), [(1, 2), (5, 9), (5, 20), (5, 1_000_000)]);
    assert_eq!(are_unfinished(&found), [false, false, true, true]);
}

#[test]
fn threads_are_known_by_their_handle_and_others_are_added_once() {
    let known = |ordinal, handle| Thread { ordinal, handle, tid: 100 + u64::from(ordinal), ..Thread::default() };
    let mut threads = vec![known(0, 0), known(1, 0xdead_beef)];
    let overhead = |thread| {
        activity(ActivityRecord::Overhead(Overhead { start_ns: DEVICE_NS + 9, thread, ..Overhead::default() }))
    };
    let activities = vec![call(0xdead_beef), call(0xf00d), call(0), call(0xf00d), overhead(0xf00d)];
    let found = placed(activities, &[(DEVICE_NS, 0)], &mut threads);
    let ordinals: Vec<_> = found.iter().map(|activity| activity.record.thread()).collect();
    // A thread that recorded nothing has a number that no thread of the capture has; a call without a thread is on none
    // that is known, though one has no handle.
    assert_eq!(ordinals, [1, 2, 3, 2, 2].map(Some));
    let summary: Vec<_> = threads.iter().map(|thread| (thread.ordinal, thread.tid, thread.name.as_str())).collect();
    assert_eq!(summary, [(0, 100, ""), (1, 101, ""), (2, 0, "thread 0xf00d"), (3, 0, "no thread")]);
}

/// A segment of one thread, whose records these are.
fn segment(records: &[(Tag, Vec<u64>)]) -> Vec<u8> {
    let mut words = vec![u64::from(SEGMENT_MAGIC) << 32, 0];
    assert_eq!(words.len() * 8, SEGMENT_HEADER_BYTES);
    words.extend([first_word(1_000, Tag::Thread), 0, 70 | 7 << 32, 0]);
    for (tag, rest) in records {
        words.push(first_word(2_000, *tag));
        words.extend(rest);
    }
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(SEGMENT, 0);
    bytes
}

#[test]
fn kinds_that_are_not_known_are_passed_over_and_longer_ones_are_read() {
    let mut longer = encode(&work(DEVICE_NS + 1, DEVICE_NS + 2).record, CUDA).as_slice().to_vec();
    longer[0] += 2 << 32;
    longer.extend([77, 78]);
    let records = [
        (Tag::DeviceClock, vec![DEVICE_NS as u64]),
        (Tag::Device, vec![200 | 2 << 32, 5, 6]),
        (Tag::Device, longer),
        (Tag::Device, encode(&call(7).record, CUDA).as_slice().to_vec()),
    ];
    let decoded = decoded(&segment(&records));
    assert_eq!(decoded.damaged, [""; 0]);
    assert_eq!(times(&decoded.device.iter().collect::<Vec<_>>()), [(6_000, 6_001), (6_001, 6_002)]);
    assert_eq!((decoded.threads.len(), decoded.threads[0].tid, decoded.threads[0].handle), (1, 70, 7));
    assert_eq!(decoded.device.at(0).record.thread(), Some(0));
}

#[test]
fn without_its_clock_nothing_is_placed_and_how_much_is_said() {
    let records = vec![(Tag::Device, encode(&call(7).record, CUDA).as_slice().to_vec()); 3];
    let decoded = decoded(&segment(&records));
    assert!(decoded.device.is_empty());
    assert_eq!(decoded.damaged, ["3 reports of a device's profiler whose clock was never read"]);
}

#[test]
fn a_report_longer_than_its_segment_is_damage() {
    let decoded = decoded(&segment(&[(Tag::Device, vec![1 | u64::from(u32::MAX) << 32])]));
    assert_eq!((decoded.device.len(), decoded.damaged.len()), (0, 1));
}

/// The words of a range with that name, and with a text behind them when it is not empty.
fn named(name: Option<u32>, text: &str) -> (Tag, Vec<u64>) {
    let range = Range { name, start_ns: DEVICE_NS, end_ns: DEVICE_NS, ..Range::default() };
    let words = encode(&ActivityRecord::Range(range), CUDA).with_text(text.len());
    let mut words = words.as_slice().to_vec();
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(padded(text.len()), 0);
    words.extend(bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())));
    (Tag::Device, words)
}

/// The records, and what their names are.
fn names_of(records: &[(Tag, Vec<u64>)]) -> Vec<Option<String>> {
    let clock = (Tag::DeviceClock, vec![DEVICE_NS as u64]);
    let decoded = decoded(&segment(&[&[clock], records].concat()));
    assert_eq!(decoded.damaged, [""; 0]);
    let ids = decoded.device.iter().map(|mut activity| *activity.record.name_mut().expect("it has a name"));
    ids.map(|id| id.map(|id| decoded.names[id as usize].clone())).collect()
}

#[test]
fn a_name_that_is_not_there_is_none() {
    assert_eq!(names_of(&[named(Some(0), ""), named(None, ""), named(Some(u32::MAX), "")]), [None, None, None]);
}

#[test]
fn a_name_without_an_id_stands_in_the_record() {
    let name = (Tag::Name, vec![4 << 32, u64::from_le_bytes(*b"mine\0\0\0\0")]);
    let records = [
        name,
        named(None, "gemm"),
        named(Some(0), ""),
        named(None, "a longer one"),
        named(None, "gemm"),
        named(None, ""),
    ];
    let expected = [Some("gemm"), Some("mine"), Some("a longer one"), Some("gemm"), None];
    assert_eq!(names_of(&records), expected.map(|name| name.map(String::from)));
}
