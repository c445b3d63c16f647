//! Activity records among a small capture's operators.

use super::{DeviceActivities, activity, launches};
use crate::events::tests::capture;
use crate::{Events, Grouping, NO_ROW, Wanted, averages};
use proptest::prelude::*;
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, Dropped, Kernel, Memcpy, MemoryKind, Memset, Overhead,
    Synchronization, SynchronizationKind, WorkKind,
};
use stepscope_capture::{Capture, DeviceActivity, Event};
use stepscope_run::ExcludeDevice;

const CUDA: u8 = 1;

fn device_activity(record: ActivityRecord) -> DeviceActivity {
    DeviceActivity { device_type: CUDA, record }
}

fn call(name: u32, thread: u32, start_ns: i64, end_ns: i64, correlation: u32) -> DeviceActivity {
    let (api, name) = (Api::Runtime, Some(name));
    device_activity(ActivityRecord::Call(Call { api, name, start_ns, end_ns, thread, correlation, status: 0 }))
}

fn work(kind: WorkKind, stream: u32, start_ns: i64, end_ns: i64, correlation: u32) -> DeviceActivity {
    let work = DeviceWork {
        kind,
        start_ns,
        end_ns,
        device: 3,
        context: Some(1),
        stream: Some(stream),
        correlation,
        ..DeviceWork::default()
    };
    device_activity(ActivityRecord::Work(work))
}

fn kernel(name: u32) -> WorkKind {
    WorkKind::Kernel(Kernel { name: Some(name), ..Kernel::default() })
}

const NAMES: [&str; 7] = ["op", "label", "cudaLaunchKernel", "gemm", "cudaGetDevice_v3020", "cuLaunchKernel", "cuInit"];

/// A label with two operators, the first of which launches from inside of a second one.
fn scene() -> Capture {
    let events = [(0, 1, 7, 100, 200), (0, 0, 0, 110, 150), (0, 0, 0, 120, 140), (0, 0, 0, 142, 143)];
    let mut capture = capture(&NAMES, &events, &[(5, 90, 300)]);
    capture.device = vec![
        call(2, 0, 125, 130, 1),
        call(4, 0, 131, 132, 2),
        call(2, 0, 250, 260, 3),
        work(kernel(3), 7, 400, 440, 1),
        work(kernel(3), 8, 430, 500, 3),
        work(kernel(3), 7, 450, 451, 99),
    ]
    .into();
    capture
}

/// Name, start, duration, activity, the row that launched it.
fn listed(events: &Events) -> Vec<(&str, i64, i64, u8, u32)> {
    let row = |row: usize| {
        let name = events.names[events.name[row] as usize].as_str();
        let linked = events.device.linked.get(row).copied().unwrap_or(NO_ROW);
        (name, events.start_ns[row], events.dur_ns[row], events.device.activity(row), linked)
    };
    (0..events.len()).map(row).collect()
}

#[test]
fn what_runs_on_a_device_belongs_to_the_innermost_operator_and_label_of_its_call() {
    let events = Events::of(&scene(), 0, Wanted::default());
    let (host, call, kernel, label) = (activity::HOST, activity::RUNTIME_CALL, activity::KERNEL, activity::ANNOTATION);
    assert_eq!(
        listed(&events),
        [
            ("ProfilerStep*", 90, 210, host, NO_ROW),
            ("label", 100, 100, host, NO_ROW),
            ("op", 110, 40, host, NO_ROW),
            ("op", 120, 20, host, NO_ROW),
            ("cudaLaunchKernel", 125, 5, call, 3),
            ("op", 142, 1, host, NO_ROW),
            ("cudaLaunchKernel", 250, 10, call, NO_ROW),
            ("gemm", 400, 40, kernel, 3),
            ("label", 400, 40, label, 1),
            ("gemm", 430, 70, kernel, NO_ROW),
            ("ProfilerStep*", 430, 70, label, 0),
            ("gemm", 450, 1, kernel, NO_ROW),
        ]
    );
    assert_eq!(events.parent[4], 3, "a call lies in what made it");
    assert_eq!(events.traced_names, [(0, "ProfilerStep#5".into()), (10, "ProfilerStep#5".into())]);
    assert_eq!(events.device.total_ns, [40, 40, 40, 40, 0, 0, 0, 40, 40, 70, 70, 1]);
    assert_eq!(events.device.self_ns, [0, 0, 0, 40, 0, 0, 0, 40, 40, 70, 70, 1]);
    assert_eq!((&events.device.stream[7..10], events.device.device[7]), (&[7, 7, 8][..], 3));
    assert_eq!(&events.self_ns[7..], [0; 5], "no time of the host's");
    assert!(!events.is_async.contains(&true));
    assert_eq!((events.is_label(8), events.is_label(7)), (true, false));
}

#[test]
fn sums_of_the_host_and_of_devices_are_apart() {
    let events = Events::of(&scene(), 0, Wanted::default());
    let found = averages(&[&events], Grouping::default());
    let summary: Vec<_> = found
        .iter()
        .map(|of| (of.first, of.is_on_device, of.count, of.total_ns, of.device_ns, of.self_device_ns))
        .collect();
    assert_eq!(
        summary,
        [
            (0, false, 1, 210, 40, 0),
            (1, false, 1, 100, 40, 0),
            (2, false, 3, 61, 80, 40),
            (4, false, 2, 15, 0, 0),
            (7, true, 3, 0, 111, 111),
            (8, true, 1, 0, 40, 40),
            (10, true, 1, 0, 70, 70),
        ]
    );
}

#[test]
fn what_an_only_child_of_the_same_name_launched_is_its_parents() {
    let mut capture = capture(&NAMES, &[(0, 0, 0, 0, 50), (0, 0, 0, 10, 40)], &[]);
    capture.device = vec![call(2, 0, 20, 30, 1), work(kernel(3), 7, 60, 70, 1)].into();
    let events = Events::of(&capture, 0, Wanted::default());
    let (call, kernel) = (activity::RUNTIME_CALL, activity::KERNEL);
    assert_eq!(
        listed(&events),
        [("op", 0, 50, 0, NO_ROW), ("cudaLaunchKernel", 20, 10, call, 0), ("gemm", 60, 10, kernel, 0)]
    );
    assert_eq!(events.device.total_ns, [10, 0, 10]);
}

#[test]
fn copies_fills_waits_and_overhead_are_named_as_torch_names_them() {
    let mut capture = capture(&NAMES, &[], &[]);
    let (direction, source, destination) = (Direction::HostToDevice, MemoryKind::Pageable, MemoryKind::Device);
    let driver = |name: u32, correlation| {
        let ActivityRecord::Call(of) = call(name, 0, 1, 2, correlation).record else { panic!("it is a call") };
        ActivityRecord::Call(Call { api: Api::Driver, ..of })
    };
    let wait = |kind, stream| {
        let (start_ns, end_ns, context, correlation, event, event_sync) = (60, 70, Some(1), 0, 0, 0);
        device_activity(ActivityRecord::Synchronization(Synchronization {
            kind,
            start_ns,
            end_ns,
            context,
            stream,
            correlation,
            event,
            event_sync,
        }))
    };
    capture.device = vec![
        work(WorkKind::Memcpy(Memcpy { bytes: Some(1), direction, source, destination, devices: None }), 7, 10, 20, 0),
        work(WorkKind::Memset(Memset { bytes: Some(1), memory: MemoryKind::Device }), 7, 30, 40, 0),
        work(WorkKind::Graph, 7, 50, 55, 0),
        wait(SynchronizationKind::Stream, Some(9)),
        wait(SynchronizationKind::StreamWaitEvent, Some(9)),
        wait(SynchronizationKind::StreamWaitEvent, Some(7)),
        wait(SynchronizationKind::Context, None),
        device_activity(ActivityRecord::Overhead(Overhead { name: None, start_ns: 80, end_ns: 81, thread: 0 })),
        device_activity(driver(5, 1)),
        device_activity(driver(6, 2)),
        DeviceActivity { device_type: 12, record: driver(6, 3) },
        device_activity(ActivityRecord::Dropped(Dropped { count: 4 })),
    ]
    .into();
    let events = Events::of(&capture, 0, Wanted::default());
    let named: Vec<_> = listed(&events).into_iter().map(|(name, _, _, activity, _)| (name, activity)).collect();
    assert_eq!(
        named,
        [
            ("cuLaunchKernel", activity::DRIVER_CALL),
            ("cuInit", activity::DRIVER_CALL),
            ("Memcpy HtoD (Pageable -> Device)", activity::MEMCPY),
            ("Memset (Device)", activity::MEMSET),
            ("CUDA graph", activity::KERNEL),
            ("Stream Sync", activity::SYNCHRONIZATION),
            ("Stream Wait Event", activity::SYNCHRONIZATION),
            ("Context Sync", activity::SYNCHRONIZATION),
            ("(name lost)", activity::OVERHEAD),
        ]
    );
    assert_eq!(&events.device.stream[5..8], [9, 7, -1]);
    assert_eq!(events.device.device[5], 3, "that of the context");
    let exclude_device =
        ExcludeDevice { kernels: true, synchronizations: true, overheads: true, ..ExcludeDevice::default() };
    let events = Events::of(&capture, 0, Wanted { exclude_device, ..Wanted::default() });
    assert_eq!(events.len(), 4);
    let exclude_device = ExcludeDevice { memcpys: true, memsets: true, driver_calls: true, ..exclude_device };
    assert!(Events::of(&capture, 0, Wanted { exclude_device, ..Wanted::default() }).is_empty());
}

#[test]
fn calls_that_are_hidden_still_say_who_launched_what() {
    let exclude_device = ExcludeDevice { runtime_calls: true, annotations: true, ..ExcludeDevice::default() };
    let events = Events::of(&scene(), 0, Wanted { exclude_device, ..Wanted::default() });
    let kernels: Vec<_> = listed(&events).into_iter().filter(|row| row.0 == "gemm").map(|row| row.4).collect();
    assert_eq!((events.len(), kernels), (8, vec![3, NO_ROW, NO_ROW]));
}

#[test]
fn memory_is_not_of_what_runs_on_a_device() {
    let mut capture = scene();
    let event = stepscope_capture::MemoryEvent {
        thread: 0,
        time_ns: 420,
        address: Some(1),
        bytes: 64,
        allocated_bytes: None,
        reserved_bytes: None,
        device_type: 1,
        device_index: Some(0),
    };
    capture.memory = vec![event, stepscope_capture::MemoryEvent { time_ns: 255, ..event }];
    let events = Events::of(&capture, 0, Wanted { memory: true, ..Wanted::default() });
    let rows = listed(&events);
    let of = |name: &str| rows.iter().position(|row| row.0 == name).map(|row| events.device_bytes[row]);
    assert_eq!(of("[memory]"), Some(64), "no kernel covers it");
    assert_eq!((of("gemm"), events.device_bytes[6]), (Some(0), 64), "a call does");
}

#[test]
fn without_reports_there_are_no_columns() {
    let mut capture = scene();
    capture.device = Default::default();
    assert_eq!(Events::of(&capture, 0, Wanted::default()).device, super::DeviceColumns::default());
    assert!(DeviceActivities::of(&capture, ExcludeDevice::default(), &[]).is_empty());
}

/// Thread, scope, start and end of operators and labels; start and end of steps; thread, start and end of calls.
type Drawn = (Vec<(u32, u8, i64, i64)>, Vec<(i64, i64)>, Vec<(u32, i64, i64)>);

/// Operators and labels that lie in each other, and steps; calls anywhere.
fn nested() -> impl Strategy<Value = Drawn> {
    let range = (0_u32..2, prop_oneof![Just(0_u8), Just(7_u8)], 0_i64..80, 1_i64..30);
    let ranges = prop::collection::vec(range.prop_map(|(thread, scope, at, len)| (thread, scope, at, at + len)), 0..14);
    let steps = prop::collection::vec((0_i64..80, 1_i64..30).prop_map(|(at, len)| (at, at + len)), 0..3);
    let calls = prop::collection::vec((0_u32..3, 0_i64..110, 0_i64..9), 1..12);
    (ranges, steps, calls.prop_map(|calls| calls.into_iter().map(|(of, at, len)| (of, at, at + len)).collect()))
}

proptest! {
    #[test]
    fn a_launch_lies_in_what_began_last_of_all_that_is_open(
        (mut ranges, mut steps, calls) in nested(), stride in prop_oneof![Just(1_u32), Just(1 << 20)],
    ) {
        // What overlaps without lying inside has no innermost.
        let mut kept: Vec<(u32, u8, i64, i64)> = Vec::new();
        ranges.sort_by_key(|(thread, _, start, end)| (*thread, *start, -end));
        for range in ranges {
            let apart = |of: &(u32, u8, i64, i64)| of.0 != range.0 || of.3 <= range.2 || of.3 >= range.3;
            if kept.iter().all(apart) {
                kept.push(range);
            }
        }
        steps.sort_unstable();
        let is_apart = |(start, end): &(i64, i64)| {
            kept.iter().all(|of| of.0 != 0 || of.3 <= *start || of.2 >= *end || (of.2 > *start && of.3 <= *end))
        };
        steps.retain(is_apart);
        let mut last = 0;
        steps.retain(|(start, end)| { let fits = *start >= last; if fits { last = *end; } fits });
        let events: Vec<_> = kept.iter().map(|(thread, scope, start, end)| (*thread, 0, *scope, *start, *end)).collect();
        let numbered: Vec<_> = (0..).zip(&steps).map(|(number, (start, end))| (number, *start, *end)).collect();
        let mut capture = capture(&["op"], &events, &numbered);
        // Numbers near each other, and far.
        let number_of = |at: u32| at * stride;
        capture.device = (1..).zip(&calls).map(|(at, of)| call(0, of.0, of.1, of.2, number_of(at))).collect();
        let found = launches::launches(&capture, |_: &Event| true);
        for (number, (thread, start, end)) in (1..).map(number_of).zip(&calls) {
            let at = start + (end - start) / 2;
            let items = capture.events.iter().map(|of| (of.thread, of.scope, of.start_ns, of.end_ns));
            let items: Vec<_> = items.chain(steps.iter().map(|of| (0, 7, of.0, of.1))).collect();
            let slowly = |scope: u8| {
                let is_open = |item: &usize| {
                    let of = items[*item];
                    of.0 == *thread && of.1 == scope && of.2 <= at && at < of.3
                };
                // Of those that begin together the shorter is inside; of those that are alike the later.
                let open = (0..items.len()).filter(is_open);
                open.max_by_key(|item| (items[*item].2, -items[*item].3, *item < events.len(), *item))
            };
            let summary = |item: Option<usize>| item.map_or(NO_ROW, |item| item as u32);
            let launch = found.get(number).unwrap();
            prop_assert_eq!((launch.operator, launch.label), (summary(slowly(0)), summary(slowly(7))), "{:?}", number);
            prop_assert_eq!(launch.thread, *thread);
            prop_assert!(found.get(number - 1).is_none() || stride == 1);
        }
    }
}
