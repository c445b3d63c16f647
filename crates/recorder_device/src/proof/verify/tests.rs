use super::*;
use stepscope_recorder::device::Direction;

const THREAD: u32 = 77;
const TARGET: Target = Target { device: 1, thread: THREAD, kernel: "k" };
const GRID: [u32; 3] = [3, 1, 1];
const BLOCK: [u32; 3] = [64, 1, 1];
/// The profiler's clock is ahead by so much, and twice as fast.
const AHEAD_NS: i64 = 1_000_000_000_000;

/// Part of the refusal that detects it, and how it is done.
type Lie = (&'static str, fn(&mut Reported));

fn on_device(host_ns: i64) -> i64 {
    AHEAD_NS + 2 * host_ns
}

/// A copy, a kernel and a graph of two; what is right to report of them.
fn right() -> (Vec<Launched>, Reported) {
    let kernel = |is_of_graph| Expected::Kernel { grid: GRID, block: BLOCK, is_of_graph };
    let works = [
        ("cuMemcpyHtoDAsync", vec![Expected::Memcpy { direction: Direction::HostToDevice, bytes: 64 }]),
        ("cuMemsetD8Async", vec![Expected::Memset { bytes: 32 }]),
        ("cuLaunchKernel", vec![kernel(false)]),
        ("cuGraphLaunch", vec![kernel(true), kernel(true)]),
        ("cuStreamSynchronize", vec![]),
    ];
    let mut reported = Reported::default();
    for host_ns in [0, 100_000_000] {
        reported.moments.push(Moment { host_ns, device_ns: on_device(host_ns), took_ns: 100 });
    }
    let mut launched = Vec::new();
    for (number, (call, works)) in works.into_iter().enumerate() {
        let before_ns = 10_000_000 * (number as i64 + 1);
        let correlation = number as u32 + 9;
        let (start_ns, end_ns) = (on_device(before_ns + 10), on_device(before_ns + 20));
        let of_call = Call { start_ns, end_ns, thread: THREAD, correlation, ..Call::default() };
        reported.calls.push((of_call, format!("{call}_v2")));
        for (node, expected) in works.iter().enumerate() {
            let start_ns = before_ns + 1000 * (node as i64 + 1);
            let mut work =
                DeviceWork { device: 1, context: Some(1), stream: Some(7), correlation, ..DeviceWork::default() };
            (work.start_ns, work.end_ns) = (on_device(start_ns), on_device(start_ns + 500));
            (work.kind, work.graph) = match *expected {
                Expected::Kernel { grid, block, is_of_graph } => (kernel_of(grid, block), u32::from(is_of_graph)),
                Expected::Memcpy { direction, bytes } => (copy_of(direction, bytes), 0),
                Expected::Memset { bytes } => (WorkKind::Memset(Memset { bytes: Some(bytes), ..Memset::default() }), 0),
            };
            if work.graph > 0 {
                // Which stream a node runs on is the graph's own affair.
                (work.graph_node, work.stream) = (node as u64 + 1, Some(13));
            }
            let name = if matches!(expected, Expected::Kernel { .. }) { "k" } else { "" };
            reported.works.push((work, name.into()));
        }
        launched.push(Launched { call, before_ns, after_ns: before_ns + 100, works });
    }
    launched.last_mut().unwrap().after_ns = 90_000_000;
    (launched, reported)
}

fn kernel_of(grid: [u32; 3], block: [u32; 3]) -> WorkKind {
    WorkKind::Kernel(Kernel { grid: Some(grid), block: Some(block), ..Kernel::default() })
}

fn copy_of(direction: Direction, bytes: u64) -> WorkKind {
    let (source, destination) = Default::default();
    WorkKind::Memcpy(Memcpy { bytes: Some(bytes), direction, source, destination, devices: None })
}

#[test]
fn what_is_reported_as_it_was_launched_holds_in_any_order() {
    let (launched, mut reported) = right();
    assert_eq!(verify(&launched, &reported, &TARGET), Ok(()));
    reported.works.reverse();
    reported.calls.reverse();
    // Calls that launch nothing, as those that a graph is captured from, are no trouble.
    reported.calls.push((Call::default(), "cuLaunchKernel".into()));
    assert_eq!(verify(&launched, &reported, &TARGET), Ok(()));
}

#[test]
fn each_lie_is_told_by_what_is_wrong() {
    let lies: [Lie; 22] = [
        ("it lost 1 reports, or they could not be read", |reported| reported.dropped = 1),
        ("1 copies were launched, and it reports 0", |reported| drop(reported.works.remove(0))),
        ("1 fills were launched, and it reports 2", |reported| reported.works.push(reported.works[1].clone())),
        ("1 kernels were launched, and it reports 0", |reported| drop(reported.works.remove(2))),
        ("2 kernels of graphs were launched, and it reports 1", |reported| drop(reported.works.remove(4))),
        ("a copy (HostToDevice) of 64 bytes was launched, and it reports a copy (HostToDevice) of 65", |reported| {
            reported.works[0].0.kind = copy_of(Direction::HostToDevice, 65)
        }),
        ("it reports a copy (DeviceToHost)", |reported| {
            reported.works[0].0.kind = copy_of(Direction::DeviceToHost, 64)
        }),
        ("a fill of 32 bytes was launched", |reported| {
            reported.works[1].0.kind = WorkKind::Memset(Memset { bytes: Some(0), ..Memset::default() });
        }),
        ("(grid [3, 1, 1], block [64, 1, 1]) was launched", |reported| {
            reported.works[2].0.kind = kernel_of([1; 3], BLOCK)
        }),
        ("it calls the kernel k \"j\"", |reported| reported.works[2].1 = "j".into()),
        ("it reports work that took 0 ns", |reported| reported.works[2].0.end_ns = reported.works[2].0.start_ns),
        ("before it was launched", |reported| {
            reported.works[0].0.start_ns -= 20_000_000;
        }),
        ("after all was done", |reported| reported.works[4].0.end_ns += 200_000_000),
        ("after all was done", |reported| reported.works[4].0.end_ns = i64::MAX),
        ("was launched, and it reports", |reported| {
            let (copy, fill) = (reported.works[0].0.start_ns, reported.works[1].0.start_ns);
            (reported.works[0].0.start_ns, reported.works[1].0.start_ns) = (fill, copy);
        }),
        ("reported of device 0", |reported| reported.works[0].0.device = 0),
        ("what ran on one stream is reported of 2", |reported| reported.works[0].0.stream = Some(8)),
        ("is not joined with it alone", |reported| reported.works[3].0.correlation = 10),
        ("it reports no call, or several", |reported| drop(reported.calls.remove(0))),
        ("is joined with \"cuMemsetD8Async_v2\"", |reported| {
            (reported.calls[0].0.correlation, reported.calls[1].0.correlation) = (10, 9);
        }),
        ("it says that thread 0x1", |reported| reported.calls[0].0.thread = 1),
        ("took place at another time", |reported| reported.calls[0].0.end_ns += 40_000_000),
    ];
    for (number, (says, lie)) in lies.into_iter().enumerate() {
        let (launched, mut reported) = right();
        lie(&mut reported);
        let why = verify(&launched, &reported, &TARGET).unwrap_err();
        assert!(why.contains(says), "lie {number}: {why}");
    }
}

#[test]
fn nodes_of_a_graph_and_clocks_are_looked_at_too() {
    let lies: [Lie; 4] = [
        ("not told apart", |reported| reported.works[4].0.graph_node = reported.works[3].0.graph_node),
        ("not as of one graph", |reported| reported.works[4].0.graph = 2),
        ("its clock cannot be read", |reported| reported.moments.clear()),
        ("its clock stands still", |reported| reported.moments[1].device_ns = reported.moments[0].device_ns),
    ];
    for (says, lie) in lies {
        let (launched, mut reported) = right();
        lie(&mut reported);
        let why = verify(&launched, &reported, &TARGET).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
}
