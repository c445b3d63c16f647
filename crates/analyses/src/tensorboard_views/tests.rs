//! The three cases of the plugin's own unit tests (pytorch/kineto, `tb_plugin/test/test_profiler.py`, `TestDistributed`),
//! with the numbers that it expects, in µs.

use super::*;
use crate::{Compat, Selection, stragglers};
use proptest::prelude::*;
use stepscope_trace::{Collective, CollectiveKind, Device, DeviceEvent, LaunchKey, Process, TraceBuilder, Track};

/// An operator: its thread, start and duration in µs, whether it is a broadcast or an all-reduce, and its kernel.
#[derive(Clone, Copy, Debug)]
struct Op {
    thread: i64,
    span: (i64, i64),
    collective: Option<CollectiveKind>,
    kernel: Option<(i64, i64)>,
}

const BROADCAST: Option<CollectiveKind> = Some(CollectiveKind::Broadcast);
const MEAN: Option<CollectiveKind> = Some(CollectiveKind::AllReduce);

fn op(thread: i64, span: (i64, i64), collective: Option<CollectiveKind>, kernel: Option<(i64, i64)>) -> Op {
    Op { thread, span, collective, kernel }
}

/// A trace of ranks that do this. Kernels are launched where the plugin does not look, as none is in its tests.
fn trace_of(ranks: &[Vec<Op>]) -> Trace {
    let mut builder = TraceBuilder::new("views");
    for (rank, ops) in (0..).zip(ranks) {
        let process = builder.add_process(Process { rank, ..Process::default() });
        let mut tracks = BTreeMap::new();
        let device = ops.iter().any(|op| op.kernel.is_some());
        let device = device.then(|| builder.add_device(Device { rank, ..Device::default() }));
        for (correlation, op) in (1..).zip(ops) {
            let mut track = |builder: &mut TraceBuilder, kind: TrackKind, number: i64| {
                *tracks.entry((kind, number)).or_insert_with(|| {
                    let mut track = Track::new(kind, process, format!("{number}"));
                    let is_stream = kind == TrackKind::Stream;
                    (track.tid, track.stream) = ((!is_stream).then_some(number), is_stream.then_some(number));
                    track.device = device.filter(|_| is_stream);
                    builder.add_track(track)
                })
            };
            let name = builder.strings.intern("op");
            let thread = track(&mut builder, TrackKind::Thread, op.thread);
            let (start_ns, dur_ns) = (op.span.0 * 1_000, op.span.1 * 1_000);
            let slice = builder.add_slice(thread, SliceKind::Op, name, start_ns, dur_ns);
            if let Some((start, dur)) = op.kernel {
                let (stream, class) = match op.collective {
                    Some(_) => (16, DeviceEventClass::Communication),
                    None => (7, DeviceEventClass::Compute),
                };
                let stream = track(&mut builder, TrackKind::Stream, stream);
                let launch = builder.add_slice(thread, SliceKind::Driver, name, start_ns, 1);
                let kernel = builder.add_slice(stream, SliceKind::Kernel, name, start * 1_000, dur * 1_000);
                builder.add_device_event(DeviceEvent::new(kernel, device.expect("it has one"), class));
                let key = LaunchKey { process, correlation };
                [launch, kernel].into_iter().for_each(|slice| builder.set_correlation(slice, key));
            }
            if let Some(kind) = op.collective {
                let said = said(&mut builder, slice, kind);
                builder.add_collective(said);
            }
        }
    }
    builder.finish()
}

fn said(builder: &mut TraceBuilder, slice: SliceId, kind: CollectiveKind) -> Collective {
    let mut text = |text: &str| builder.strings.intern(text);
    let elements = if kind == CollectiveKind::Broadcast { 53_120 } else { 2_049_000 };
    Collective {
        slice,
        name: text(kind.as_str()),
        kind: Some(kind),
        dtype: text("Float"),
        input_elements: Some(elements),
        output_elements: None,
        input_split_sizes: text(""),
        output_split_sizes: text(""),
        group: text(""),
        group_description: text(""),
        group_size: None,
        group_ranks: text(""),
        group_rank: None,
        source_rank: None,
        destination_rank: None,
        is_async: None,
        sequence_number: None,
    }
}

fn tensorboard() -> Selection {
    Selection { compat: Some(Compat::Tb), ..Selection::default() }
}

fn us(ns: i64) -> i64 {
    (ns + 500) / 1_000
}

/// What the plugin expects of each rank: the four parts of its step, transfer and waiting, and each operator's calls, size,
/// mean size, latency, mean latency, transfer and mean transfer.
type Expected = [([i64; 4], [i64; 2], Vec<(&'static str, [i64; 7])>); 2];

#[track_caller]
fn check(ranks: &[Vec<Op>; 2], expected: Expected) {
    let trace = trace_of(ranks);
    let selection = tensorboard();
    let context = AnalysisContext::new(&trace, &selection);
    let (overview, transfers, operations) = (overview(&context), transfers(&context), operations(&context));
    for (rank, (parts, transfer, ops)) in (0..).zip(expected) {
        let row = overview.iter().find(|row| row.rank == rank && row.is_complete.is_some()).expect("it has a step");
        let found = [row.compute_ns, row.overlap_ns, row.exposed_comm_ns, row.other_ns].map(us);
        assert_eq!(found, parts, "overview of rank {rank}");
        let found =
            transfers.iter().filter(|row| row.rank == rank).map(|row| [row.transfer_ns, row.waiting_ns].map(us));
        // A step, and the mean over it alone.
        assert_eq!(found.collect::<Vec<_>>(), [transfer; 2], "rank {rank}");
        let of_rank = operations.iter().filter(|row| row.rank == rank);
        let line = |row: &Communication| {
            let (size, transfer) = (row.total_size_bytes.unwrap(), row.transfer_ns.unwrap());
            let mean = [row.mean_size_bytes.unwrap(), row.mean_latency_ns, row.mean_transfer_ns.unwrap()];
            let numbers = [row.calls, size, mean[0], us(row.total_latency_ns), us(mean[1]), us(transfer), us(mean[2])];
            (row.name.clone().unwrap(), numbers)
        };
        let ops: Vec<(String, [i64; 7])> = ops.into_iter().map(|(name, numbers)| (name.into(), numbers)).collect();
        assert_eq!(of_rank.map(line).collect::<Vec<_>>(), ops, "operators of rank {rank}");
    }
}

#[test]
fn nccl_is_divided_as_the_plugin_does() {
    let ranks = [
        vec![
            op(1, (0, 75), BROADCAST, Some((16, 16))),
            op(1, (100, 20), None, Some((130, 161))),
            op(2, (160, 75), MEAN, Some((162, 1_556))),
        ],
        vec![
            op(1, (0, 20), BROADCAST, Some((8, 31))),
            op(1, (25, 20), None, Some((30, 161))),
            op(2, (160, 75), MEAN, Some((562, 1_058))),
        ],
    ];
    let ops = |broadcast: i64, mean: i64| {
        vec![
            ("broadcast", [1, 212_480, 212_480, broadcast, broadcast, 36, 36]),
            ("all_reduce", [1, 8_196_000, 8_196_000, mean, mean, 1_133, 1_133]),
        ]
    };
    let expected = [([30, 75, 75, 55], [1_169, 464], ops(75, 1_558)), ([121, 40, 74, 0], [1_169, 3], ops(39, 1_133))];
    check(&ranks, expected);
}

/// The collectives of Gloo in both other cases.
fn gloo(rank: usize) -> Vec<Op> {
    let spans = [
        [(1, (16, 38)), (2, (25, 36)), (1, (66, 18)), (2, (110, 18)), (1, (120, 36))],
        [(1, (20, 28)), (2, (28, 30)), (1, (77, 6)), (2, (88, 38)), (1, (130, 16))],
    ][rank];
    let kind = |at: usize| if at < 3 { BROADCAST } else { MEAN };
    spans.iter().enumerate().map(|(at, (thread, span))| op(*thread, *span, kind(at), None)).collect()
}

fn gloo_operators(broadcasts: [i64; 4], means: [i64; 4]) -> Vec<(&'static str, [i64; 7])> {
    let with = |calls: i64, size: i64, [a, b, c, d]: [i64; 4]| [calls, calls * size, size, a, b, c, d];
    vec![("broadcast", with(3, 212_480, broadcasts)), ("all_reduce", with(2, 8_196_000, means))]
}

#[test]
fn gloo_is_divided_as_the_plugin_does_with_and_without_a_device() {
    let ops =
        || [gloo_operators([63, 21, 41, 14], [46, 23, 34, 17]), gloo_operators([44, 15, 44, 15], [54, 27, 34, 17])];
    let with = |rank: usize, others: [Op; 2]| [gloo(rank), others.to_vec()].concat();
    // A thread of its own computes; the kernel of a device or a second operator.
    let add = |dur: i64, kernel: Option<(i64, i64)>| op(0, (0, dur), None, kernel);
    let on_device =
        [[gloo(0), vec![add(20, Some((30, 101)))]].concat(), [gloo(1), vec![add(30, Some((70, 70)))]].concat()];
    let [first, second] = ops();
    check(&on_device, [([31, 70, 39, 16], [75, 34], first), ([16, 54, 44, 32], [78, 20], second)]);
    let on_host =
        [with(0, [add(20, None), op(0, (30, 101), None, None)]), with(1, [add(30, None), op(0, (70, 70), None, None)])];
    let [first, second] = ops();
    check(&on_host, [([47, 74, 35, 0], [75, 34], first), ([36, 64, 34, 12], [78, 20], second)]);
}

#[test]
fn ranks_with_other_collectives_have_no_transfer() {
    let trace = trace_of(&[gloo(0), gloo(1)[..4].to_vec()]);
    let selection = tensorboard();
    let context = AnalysisContext::new(&trace, &selection);
    assert!(transfers(&context).is_empty());
    let rows = operations(&context);
    assert_eq!(rows.iter().map(|row| row.calls).collect::<Vec<_>>(), [3, 2, 3, 1]);
    assert!(rows.iter().all(|row| row.transfer_ns.is_none() && row.mean_transfer_ns.is_none()));
}

#[test]
fn analyses_answer_so_when_asked_to() {
    let trace = trace_of(&[gloo(0), gloo(1)]);
    let columns = |analysis: &crate::Analysis, compat: Option<Compat>| {
        let selection = Selection { compat, ..Selection::default() };
        let table = (analysis.run)(&AnalysisContext::new(&trace, &selection)).table;
        table.columns.iter().map(|column| column.name).collect::<Vec<_>>()
    };
    let tb = Some(Compat::Tb);
    assert!(
        columns(&stragglers::ANALYSIS, tb).contains(&"step") && !columns(&stragglers::ANALYSIS, None).contains(&"step")
    );
    assert!(columns(&collectives::ANALYSIS, tb).contains(&"mean_transfer_ns"));
    assert_eq!(columns(&ranks_overview::ANALYSIS, tb), columns(&ranks_overview::ANALYSIS, None));
}

proptest! {
    /// Each rank is asked each microsecond whether it transfers, waits, or does neither.
    #[test]
    fn times_are_those_found_by_looking_at_each_microsecond(
        ops in prop::collection::vec([((0_i64..40, 1_i64..20), any::<bool>()), ((0_i64..40, 1_i64..20), any::<bool>())], 1..6),
    ) {
        // A thread for each, so that no collective lies in another one.
        let of_rank = |rank: usize| -> Vec<Op> {
            (0..).zip(&ops).map(|(thread, both)| op(thread, both[rank].0, if both[0].1 { MEAN } else { BROADCAST }, None)).collect()
        };
        let ranks = [of_rank(0), of_rank(1)];
        let trace = trace_of(&ranks);
        let selection = tensorboard();
    let context = AnalysisContext::new(&trace, &selection);
        let rows = transfers(&context);
        let mut sorted = ranks.clone().map(|ops| ops.iter().map(|op| op.span).collect::<Vec<_>>());
        sorted.iter_mut().for_each(|spans| spans.sort_by_key(|(start, dur)| (*start, Reverse(*dur))));
        for (rank, spans) in sorted.iter().enumerate() {
            let shortest = |at: usize| sorted.iter().map(|spans| spans[at].1).min().unwrap();
            let is_in = |us: i64| spans.iter().any(|(start, dur)| (*start..start + dur).contains(&us));
            let transfers = |us: i64| {
                let mut all = spans.iter().enumerate();
                all.any(|(at, (start, dur))| (start + dur - shortest(at)..start + dur).contains(&us))
            };
            let count = |is: &dyn Fn(i64) -> bool| (0..60).filter(|us| is(*us)).count() as i64 * 1_000;
            let row = rows.iter().find(|row| row.rank as usize == rank && row.row == "one").expect("it has a step");
            prop_assert_eq!((row.total_ns, row.transfer_ns), (count(&is_in), count(&transfers)));
            prop_assert_eq!(row.transfer_ns + row.waiting_ns, row.total_ns);
        }
    }
}
