//! Whose device is whose: ranks, contexts, counters, memory; and work without a name.

use crate::made_capture::MadeCapture;
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, Kernel, Memcpy, MemoryKind, Memset, Overhead, Range,
    Synchronization, SynchronizationKind, WorkKind,
};
use stepscope_import::open;
use stepscope_trace::{CopyDirection, DeviceEventClass, SliceKind, Trace, TrackKind};

const MS: i64 = 1_000_000;
const MAIN: u32 = 0xabc;

fn work(kind: WorkKind, device: u32, (start_ms, end_ms): (i64, i64), correlation: u32) -> ActivityRecord {
    let (start_ns, end_ns) = (start_ms * MS, end_ms * MS);
    let work = DeviceWork {
        kind,
        start_ns,
        end_ns,
        device,
        context: Some(device + 1),
        stream: Some(7),
        correlation,
        ..DeviceWork::default()
    };
    ActivityRecord::Work(work)
}

fn kernel() -> WorkKind {
    WorkKind::Kernel(Kernel { grid: Some([216, 1, 1]), block: Some([128, 1, 1]), ..Kernel::default() })
}

fn call(at_ms: i64, thread: u32, correlation: u32) -> ActivityRecord {
    let (start_ns, end_ns) = (at_ms * MS, at_ms * MS + MS / 2);
    ActivityRecord::Call(Call { api: Api::Runtime, name: None, start_ns, end_ns, thread, correlation, status: 0 })
}

/// A rank that computes on the GPU with its own number. Both number their calls, contexts and streams alike.
fn rank(rank: u32) -> MadeCapture {
    let mut made = MadeCapture::new(70 + u64::from(rank));
    made.thread(70 + rank, MAIN, "main");
    made.fact("rank", &rank.to_string());
    made.fact("devices", &format!(r#"[{{"type":"cuda","index":{rank},"name":"GPU of {rank}","sm_count":108}}]"#));
    made.begin(MS, &format!("op of {rank}"), None);
    made.end(4 * MS);
    made.allocate(2 * MS, rank as u8, 512);
    made.sample(3 * MS, &format!("GPU {rank}: power (mW)"), 250_000);
    made.sample(3 * MS, "something else", 1);
    made.device_clock(0);
    made.activity(call(2, MAIN, 5), Some("cudaLaunchKernel"));
    made.activity(work(kernel(), rank, (3, 6), 5), Some(&format!("kernel of {rank}")));
    let wait = Synchronization {
        kind: SynchronizationKind::Context,
        start_ns: 6 * MS,
        end_ns: 7 * MS,
        context: Some(99),
        ..Synchronization::default()
    };
    made.activity(ActivityRecord::Synchronization(wait), None);
    made
}

fn opened(captures: &[MadeCapture]) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    captures.iter().for_each(|made| made.write(folder.path()));
    open(folder.path()).expect("a run")
}

#[test]
fn two_ranks_on_two_devices_of_a_host_do_not_mix() {
    let trace = opened(&[rank(0), rank(1)]);
    let devices: Vec<_> = trace.devices.iter().map(|of| (of.rank, of.ordinal, of.name.as_deref())).collect();
    assert_eq!(devices, [(0, 0, Some("GPU of 0")), (1, 1, Some("GPU of 1"))]);
    let name = |slice| trace.slice_name(slice);
    let found: Vec<_> = trace
        .device_events
        .iter()
        .map(|event| (event.device.index(), name(event.slice), event.op.map(name), event.blocks_per_sm))
        .collect();
    let expected = [(0, "kernel of 0", Some("op of 0"), Some(2.0)), (1, "kernel of 1", Some("op of 1"), Some(2.0))];
    assert_eq!(found, expected);
    // A wait in a context in which nothing ran is of the only device.
    assert_eq!(trace.synchronizations.iter().map(|wait| wait.device.index()).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(
        trace.memory.iter().map(|event| event.device.map(|id| id.index())).collect::<Vec<_>>(),
        [Some(0), Some(1)]
    );
    let counters: Vec<_> = trace
        .counters
        .iter()
        .map(|counter| (trace.strings.get(counter.name), counter.device.map(|id| id.index()), counter.value.clone()))
        .collect();
    let expected = [
        ("GPU 0: power (mW)", Some(0), vec![250_000.0]),
        ("something else", None, vec![1.0]),
        ("GPU 1: power (mW)", Some(1), vec![250_000.0]),
        ("something else", None, vec![1.0]),
    ];
    assert_eq!(counters, expected);
}

#[test]
fn a_device_that_another_process_of_the_rank_used_first_is_described_all_the_same() {
    let mut worker = MadeCapture::new(60);
    worker.thread(60, 1, "main");
    worker.fact("rank", "0");
    worker.allocate(MS, 0, 512);
    let trace = opened(&[worker, rank(0)]);
    assert_eq!(trace.devices.iter().map(|of| of.name.as_deref()).collect::<Vec<_>>(), [Some("GPU of 0")]);
}

#[test]
fn work_is_named_and_classed_by_what_it_is() {
    let mut made = rank(0);
    let copy = |direction, source, destination, devices| {
        WorkKind::Memcpy(Memcpy { bytes: Some(64), direction, source, destination, devices })
    };
    let pinned = copy(Direction::HostToDevice, MemoryKind::Pinned, MemoryKind::Device, None);
    let peer = copy(Direction::PeerToPeer, MemoryKind::Device, MemoryKind::Device, Some((0, 1)));
    made.activity(work(pinned, 0, (10, 11), 0), None);
    made.activity(work(peer, 0, (12, 13), 0), None);
    made.activity(work(WorkKind::Memset(Memset { bytes: Some(4), memory: MemoryKind::Device }), 0, (14, 15), 0), None);
    made.activity(work(kernel(), 0, (16, 17), 0), Some("void at::native::f<int>(float*)"));
    made.activity(
        work(kernel(), 0, (18, 19), 0),
        Some("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    );
    made.activity(work(kernel(), 0, (20, 21), 0), None);
    let graph = DeviceWork {
        kind: WorkKind::Graph,
        start_ns: 22 * MS,
        end_ns: 23 * MS,
        graph: 4,
        context: Some(1),
        ..DeviceWork::default()
    };
    made.activity(ActivityRecord::Work(graph), None);
    let trace = opened(&[made]);
    let memcpy = DeviceEventClass::Memcpy;
    let found: Vec<_> =
        trace.device_events.iter().skip(1).map(|event| (trace.slice_name(event.slice), event.class)).collect();
    let expected = [
        ("Memcpy HtoD (Pinned -> Device)", memcpy(CopyDirection::HostToDevice)),
        ("Memcpy PtoP (Device -> Device)", memcpy(CopyDirection::PeerToPeer)),
        ("Memset (Device)", DeviceEventClass::Memset),
        ("void at::native::f<int>(float*)", DeviceEventClass::Compute),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", DeviceEventClass::Communication),
        ("(name lost)", DeviceEventClass::Compute),
        ("CUDA graph", DeviceEventClass::Compute),
    ];
    assert_eq!(found, expected);
    let graph = trace.device_events.iter().last().expect("events");
    assert_eq!((graph.graph, graph.stream, graph.context), (Some(4), None, Some(1)));
}

#[test]
fn ranges_and_calls_of_threads_that_recorded_nothing_have_tracks() {
    let mut made = rank(0);
    made.activity(call(8, 0x123, 9), Some("cudaStreamSynchronize"));
    let range = Range { start_ns: 8 * MS, end_ns: 10 * MS, thread: 0x123, ..Range::default() };
    made.activity(ActivityRecord::Range(range), Some("nvtx range"));
    let overhead = Overhead { name: None, start_ns: 8 * MS, end_ns: 9 * MS, thread: 0x123 };
    made.activity(ActivityRecord::Overhead(overhead), Some("Activity Buffer Request"));
    let trace = opened(&[made]);
    let found: Vec<_> = trace
        .slices
        .ids()
        .map(|id| (&trace.tracks[trace.slices.track[id.index()].index()], id))
        .filter(|(track, _)| track.kind != TrackKind::Stream && track.name != "main")
        .map(|(track, id)| (track.name.as_str(), trace.slices.kind(id), trace.slice_name(id)))
        .collect();
    let expected = [
        ("thread 0x123", SliceKind::Annotation, "nvtx range"),
        ("thread 0x123", SliceKind::HostSync, "cudaStreamSynchronize"),
        ("all streams", SliceKind::Synchronization, "Context Sync"),
        ("profiler overhead", SliceKind::Overhead, "Activity Buffer Request"),
    ];
    assert_eq!(found, expected);
}
