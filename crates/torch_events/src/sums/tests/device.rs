//! Activity records of devices' profilers among the ranges.

use super::{CASES, Does, check_bytes, filter, finished, start, thread};
use proptest::prelude::*;
use std::sync::atomic::Ordering;
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, Dropped, EventRecorded, Kernel, Memcpy, MemoryKind, Memset,
    Overhead, Range as Marked, Synchronization, SynchronizationKind, WorkKind, encode,
};
use stepscope_capture::layout::Tag;
use stepscope_run::{ExcludeDevice, RecordFilter};

/// Beside these: an operator's, a step's, one that is not listed and one that the capture does not have.
pub(super) const NAMES: [&str; 4] = ["cudaLaunchKernel", "cudaGetDevice_v3020", "gemm", "cuLaunchKernel"];
const FIRST: u32 = super::NAMES.len() as u32;
/// The clock of the device's profiler is this much ahead.
const AHEAD_NS: i64 = 1_000_000;

/// An activity record, whose times count as those of the capture, and its type of device.
type Activity = (ActivityRecord, u8);

fn name() -> impl Strategy<Value = Option<u32>> {
    let names = FIRST..FIRST + NAMES.len() as u32;
    prop_oneof![8 => names.prop_map(Some), 3 => (0..FIRST).prop_map(Some), 1 => Just(None), 1 => Just(Some(999))]
}

/// Numbers that meet, near each other or far.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![20 => 0_u32..12, 1 => (0_u32..12).prop_map(|number| number << 24)]
}

fn work() -> impl Strategy<Value = ActivityRecord> {
    let memory = prop::sample::select(vec![MemoryKind::Device, MemoryKind::Pinned]);
    let kind = prop_oneof![
        4 => name().prop_map(|name| WorkKind::Kernel(Kernel { name, ..Kernel::default() })),
        1 => (memory.clone(), any::<bool>()).prop_map(|(source, is_peer)| WorkKind::Memcpy(Memcpy {
            bytes: Some(7),
            direction: Direction::HostToDevice,
            source,
            destination: MemoryKind::Device,
            devices: is_peer.then_some((0, 1)),
        })),
        1 => memory.prop_map(|memory| WorkKind::Memset(Memset { bytes: Some(9), memory })),
        1 => Just(WorkKind::Graph),
    ];
    let at = (100_i64..1_200, 0_i64..60);
    (kind, at, (0_u32..2, 0_u32..2, 0_u32..3), number()).prop_map(|(kind, at, on, correlation)| {
        let (start_ns, end_ns, graph, graph_node) = (at.0, at.0 + at.1, 0, 0);
        let (device, context, stream) = (on.0, Some(on.1), Some(on.2));
        ActivityRecord::Work(DeviceWork {
            kind,
            start_ns,
            end_ns,
            device,
            context,
            stream,
            correlation,
            graph,
            graph_node,
        })
    })
}

fn wait() -> impl Strategy<Value = ActivityRecord> {
    let kinds = vec![
        SynchronizationKind::Stream,
        SynchronizationKind::StreamWaitEvent,
        SynchronizationKind::StreamWaitEvent,
        SynchronizationKind::Context,
    ];
    let on = (0_u32..3, prop::option::of(0_u32..4));
    (prop::sample::select(kinds), 100_i64..1_200, 0_i64..40, on, number()).prop_map(
        |(kind, at, len, on, correlation)| {
            let (start_ns, end_ns, event, event_sync) = (at, at + len, 0, 0);
            let (context, stream) = (Some(on.0), on.1);
            ActivityRecord::Synchronization(Synchronization {
                kind,
                start_ns,
                end_ns,
                context,
                stream,
                correlation,
                event,
                event_sync,
            })
        },
    )
}

fn call() -> impl Strategy<Value = ActivityRecord> {
    let api = prop_oneof![4 => Just(Api::Runtime), 1 => Just(Api::Driver)];
    let len = prop_oneof![10 => 0_i64..12, 1 => 0_i64..200];
    (api, name(), 0_u32..6, 95_i64..900, len, number()).prop_map(|(api, name, thread, start_ns, len, correlation)| {
        // Of some devices threads have the system's numbers, which the test's threads have from 100 on.
        let (thread, end_ns, status) = (if thread > 3 { 96 + thread } else { 70 + thread }, start_ns + len, 0);
        ActivityRecord::Call(Call { api, name, start_ns, end_ns, thread, correlation, status })
    })
}

fn device_activity() -> impl Strategy<Value = Activity> {
    let overhead = (name(), 100_i64..900, 0_i64..30, 70_u32..74).prop_map(|(name, start_ns, len, thread)| {
        ActivityRecord::Overhead(Overhead { name, start_ns, end_ns: start_ns + len, thread })
    });
    let range = (100_i64..900, 70_u32..76).prop_map(|(start_ns, thread)| {
        ActivityRecord::Range(Marked { start_ns, end_ns: start_ns + 5, thread, ..Marked::default() })
    });
    let rest = prop_oneof![
        Just(ActivityRecord::EventRecorded(EventRecorded::default())),
        Just(ActivityRecord::Dropped(Dropped { count: 3 }))
    ];
    let record = prop_oneof![8 => work(), 8 => call(), 2 => wait(), 2 => overhead, 1 => range, 1 => rest];
    (record, prop_oneof![20 => Just(1_u8), 1 => Just(6_u8), 1 => Just(12_u8)])
}

/// Two threads write the activity records, in segments that lie among each other, some before the one they follow.
fn capture_bytes(threads: &[Vec<(u64, Does)>], activities: &[Activity], has_clock: bool) -> Vec<u8> {
    let mut made = start();
    threads.iter().enumerate().for_each(|(ordinal, does)| super::put_thread(&mut made, ordinal, does));
    let writers = [threads.len() as u64, threads.len() as u64 + 1];
    for (at, chunk) in activities.chunks(6).enumerate() {
        let writer = writers[at % 2];
        made.thread = vec![writer, 100 + writer, 1 + writer];
        made.part = (at as u64 / 2) ^ 1;
        made.next_segment(200);
        for (record, device_type) in chunk {
            let mut record = *record;
            if let Some((start_ns, end_ns)) = record.span_mut() {
                (*start_ns, *end_ns) = (*start_ns + AHEAD_NS, *end_ns + AHEAD_NS);
            }
            made.put(300, Tag::Device, encode(&record, *device_type).as_slice());
        }
        if has_clock && at == 0 {
            made.put(100, Tag::DeviceClock, &[(AHEAD_NS + 100) as u64]);
            made.put(5_000, Tag::DeviceClock, &[(AHEAD_NS + 5_000) as u64]);
        }
        made.end_segment();
    }
    finished(made)
}

fn hidden() -> impl Strategy<Value = ExcludeDevice> {
    prop::collection::vec(prop::bool::weighted(0.1), 8).prop_map(|exclude| ExcludeDevice {
        kernels: exclude[0],
        memcpys: exclude[1],
        memsets: exclude[2],
        annotations: exclude[3],
        runtime_calls: exclude[4],
        driver_calls: exclude[5],
        overheads: exclude[6],
        synchronizations: exclude[7],
    })
}

#[test]
fn what_devices_did_is_added_up_as_a_list_says() {
    let threads = prop::collection::vec(thread(), 1..4);
    let cases =
        (threads, prop::collection::vec(device_activity(), 1..60), filter(), hidden(), prop::bool::weighted(0.95));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(6_000));
    runner
        .run(&cases, |(threads, activities, mut filter, exclude, has_clock)| {
            filter.exclude.device = exclude;
            check_bytes(&capture_bytes(&threads, &activities, has_clock), &filter, 1)
        })
        .unwrap();
    let cases = CASES[1].load(Ordering::Relaxed);
    assert!(cases > 2_000, "{cases} had an event");
}

/// A call reaches beyond the operator that made it, as one does whose clock is a little off.
#[test]
fn a_call_may_reach_beyond_its_operator() {
    let begin = |name| Does::Begin { name, scope: 0, forward: 0, sizes: None };
    let does = vec![(10, begin(0)), (10, begin(1)), (20, Does::End), (20, begin(5)), (10, Does::End), (10, Does::End)];
    let call = |start_ns, end_ns, correlation| {
        let (api, name, thread, status) = (Api::Runtime, Some(FIRST), 70, 0);
        (ActivityRecord::Call(Call { api, name, start_ns, end_ns, thread, correlation, status }), 1)
    };
    let exclude = stepscope_run::Exclude { calls: true, ..Default::default() };
    let filter =
        RecordFilter { spans: vec![std::ops::Range { start: 0, end: 4_000 }], exclude, ..RecordFilter::default() };
    for start_ns in 105..185 {
        for len in 0..60 {
            let kernel = ActivityRecord::Work(DeviceWork {
                start_ns: 900,
                end_ns: 950,
                correlation: 1,
                ..DeviceWork::default()
            });
            let activities = [call(start_ns, start_ns + len, 1), (kernel, 1)];
            check_bytes(&capture_bytes(std::slice::from_ref(&does), &activities, true), &filter, 2).unwrap();
        }
    }
}
