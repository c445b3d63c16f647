use super::*;
use proptest::prelude::*;
use stepscope_trace::SliceKind;
use stepscope_trace::drawn::{SaidOfCollective as Said, drawn_with_collectives as trace_of};

fn line(row: &Collectives) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or("-".into());
    let number = |number: Option<i64>| number.map_or("-".into(), |number: i64| number.to_string());
    let us = |ns: Option<i64>| number(ns.map(|ns| ns / 1_000));
    format!(
        "{} {} {} {} B: {} calls {} us, {} works {} us, {} kernels {} us, {} exposed, in {} B, {} B/s",
        row.rank,
        text(&row.name),
        text(&row.dtype),
        number(row.size_bytes),
        number(row.calls),
        us(row.host_ns),
        number(row.works),
        us(row.work_ns),
        number(row.kernels),
        us(row.device_ns),
        us(row.exposed_ns),
        number(row.input_bytes),
        number(row.algorithm_bandwidth_bytes_per_s),
    )
}

fn check(trace: &Trace, selection: Selection, expected: &[&str]) {
    let rows = collectives(trace, &selection);
    assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
}

const KERNELS: &str = "rank 0 cpu 1    .aa..aa.............b......
                       rank 0 launch 1 .N...N.....................
                       rank 0 stream 7 ...NNNN.NN.............NNN.
                       rank 0 stream 8 .....KK....................";
const MEAN: Said = ("allreduce", "Float", Some(1_000), None);

#[test]
fn kernels_belong_to_the_call_that_launches_them_and_what_nobody_says_has_no_name() {
    let trace = trace_of(KERNELS, &[("a", SliceKind::Op, MEAN)]);
    let expected = [
        "0 allreduce Float 4000 B: 2 calls 4 us, - works - us, 2 kernels 6 us, 4 exposed, in 8000 B, 1333333333 B/s",
        "0 - - - B: - calls - us, - works - us, 1 kernels 3 us, 3 exposed, in - B, - B/s",
    ];
    check(&trace, Selection::default(), &expected);
}

#[test]
fn a_kernel_without_a_call_says_itself_what_it_carries() {
    let trace = trace_of(
        "rank 0 stream 7 ..NN.NN",
        &[("N", SliceKind::Kernel, ("_allgather_base", "BFloat16", Some(500), None))],
    );
    let expected = "0 _allgather_base BFloat16 1000 B: - calls - us, - works - us, 2 kernels 4 us, 4 exposed, in 2000 B, 500000000 B/s";
    check(&trace, Selection::default(), &[expected]);
}

#[test]
fn what_lies_in_a_call_tells_more_of_the_same_call() {
    let drawing = "rank 0 cpu 1    aaaaa
                   rank 0 cpu 1    .bbb.
                   rank 0 launch 1 ..N..
                   rank 0 stream 7 ...NN";
    let said = [("a", SliceKind::Op, ("allreduce", "", None, Some(1))), ("b", SliceKind::Op, MEAN)];
    let expected =
        "0 allreduce Float 4000 B: 1 calls 5 us, - works - us, 1 kernels 2 us, 2 exposed, in 4000 B, 2000000000 B/s";
    check(&trace_of(drawing, &said), Selection::default(), &[expected]);
}

#[test]
fn a_work_on_another_thread_is_that_of_the_call_with_its_number() {
    let drawing = "rank 0 cpu 1   aa..aa....
                   rank 0 label 2 .www..wwww
                   rank 1 cpu 1   aa........
                   rank 1 label 2 .......www";
    let work = ("all_reduce", "Float", Some(10), Some(7));
    let said = [("a", SliceKind::Op, ("allreduce", "", None, Some(7))), ("w", SliceKind::Annotation, work)];
    let expected = [
        "0 all_reduce Float 40 B: 2 calls 4 us, 2 works 7 us, - kernels - us, - exposed, in 80 B, 11428571 B/s",
        "1 all_reduce Float 40 B: 1 calls 2 us, 1 works 3 us, - kernels - us, - exposed, in 40 B, 13333333 B/s",
    ];
    check(&trace_of(drawing, &said), Selection::default(), &expected);
}

#[test]
fn a_work_that_is_under_way_during_others_on_the_same_thread_is_that_of_its_own_call() {
    let drawing = "rank 0 cpu 1   aa.bb.dd..
                   rank 0 label 1 .sssssssss
                   rank 0 label 1 ....rrr...
                   rank 0 label 1 .......tt.";
    let said = [
        ("a", SliceKind::Op, ("send", "", None, Some(7))),
        ("s", SliceKind::Annotation, ("send", "Float", Some(10), Some(7))),
        ("b", SliceKind::Op, ("recv", "", None, Some(8))),
        ("r", SliceKind::Annotation, ("recv", "Float", Some(20), Some(8))),
        ("d", SliceKind::Op, ("recv", "", None, Some(9))),
        ("t", SliceKind::Annotation, ("recv", "Float", Some(30), Some(9))),
    ];
    let expected = [
        "0 send Float 40 B: 1 calls 2 us, 1 works 9 us, - kernels - us, - exposed, in 40 B, 4444444 B/s",
        "0 recv Float 80 B: 1 calls 2 us, 1 works 3 us, - kernels - us, - exposed, in 80 B, 26666667 B/s",
        "0 recv Float 120 B: 1 calls 2 us, 1 works 2 us, - kernels - us, - exposed, in 120 B, 60000000 B/s",
    ];
    check(&trace_of(drawing, &said), Selection::default(), &expected);
}

#[test]
fn a_collective_that_is_done_by_another_one_keeps_its_name_and_what_goes_in() {
    let drawing = "rank 0 cpu 1   aa..
                   rank 0 label 2 .www";
    let work = |name, number| ("w", SliceKind::Annotation, (name, "Float", Some(10), Some(number)));
    let asked = |name| ("a", SliceKind::Op, (name, "", None, Some(7)));
    let trace = trace_of(drawing, &[asked("reduce_scatter"), work("allreduce", 7)]);
    let expected =
        "0 reduce_scatter Float 40 B: 1 calls 2 us, 1 works 3 us, - kernels - us, - exposed, in 40 B, 13333333 B/s";
    check(&trace, Selection::default(), &[expected]);
    let row = &collectives(&trace, &Selection::default())[0];
    assert_eq!((row.output_elements, row.output_bytes), (None, None));
    // Half of what goes in stays where it is.
    assert_eq!(row.bus_bandwidth_bytes_per_s, Some(6_666_667));
}

#[test]
fn the_size_of_an_all_gather_is_what_comes_out_of_it() {
    let drawing = "rank 0 cpu 1   aa..
                   rank 0 label 2 .www";
    let said = [
        ("a", SliceKind::Op, ("all_gather", "", None, Some(7))),
        ("w", SliceKind::Annotation, ("all_gather", "Float", Some(10), Some(7))),
    ];
    let mut trace = trace_of(drawing, &said);
    let size = |trace: &Trace| collectives(trace, &Selection::default())[0].size_bytes;
    assert_eq!(size(&trace), Some(40));
    trace.collectives.iter_mut().for_each(|said| said.output_elements = None);
    assert_eq!(size(&trace), Some(80));
    trace.collectives.iter_mut().for_each(|said| said.group_size = None);
    assert_eq!(size(&trace), None);
}

#[test]
fn works_without_a_number_or_with_that_of_another_are_not_joined() {
    let drawing = "rank 0 cpu 1   aa......
                   rank 0 label 2 .www....
                   rank 0 label 3 ....www.";
    let call = ("a", SliceKind::Op, ("allreduce", "", None, Some(7)));
    let apart = [
        "0 all_reduce Float 40 B: - calls - us, 2 works 6 us, - kernels - us, - exposed, in 80 B, 13333333 B/s",
        "0 allreduce - - B: 1 calls 2 us, - works - us, - kernels - us, - exposed, in - B, - B/s",
    ];
    let trace = trace_of(drawing, &[call, ("w", SliceKind::Annotation, ("all_reduce", "Float", Some(10), None))]);
    check(&trace, Selection::default(), &apart);
    let mut trace =
        trace_of(drawing, &[call, ("w", SliceKind::Annotation, ("all_reduce", "Float", Some(10), Some(7)))]);
    trace.collectives.iter_mut().for_each(|said| said.sequence_number = Some(7));
    check(&trace, Selection::default(), &apart);
}

#[test]
fn a_step_has_the_calls_that_begin_in_it_and_the_kernels_launched_in_it() {
    let drawing = "rank 0 step     0000011111
                   rank 0 cpu 1    .aa..aaa..
                   rank 0 launch 1 .N....N...
                   rank 0 stream 7 ....NNN.NN";
    let trace = trace_of(drawing, &[("a", SliceKind::Op, MEAN)]);
    let expected =
        "0 allreduce Float 4000 B: 1 calls 3 us, - works - us, 1 kernels 2 us, 2 exposed, in 4000 B, 2000000000 B/s";
    check(&trace, Selection { step: Some(1), ..Selection::default() }, &[expected]);
    check(&trace, Selection { ranks: 1.into(), ..Selection::default() }, &[]);
}

#[test]
fn sizes_that_make_no_sense_are_not_known() {
    let sizes = |elements| {
        let trace = trace_of("rank 0 cpu 1 a", &[("a", SliceKind::Op, ("allreduce", "Double", elements, None))]);
        let row = collectives(&trace, &Selection::default()).remove(0);
        (row.size_bytes, row.input_bytes, row.output_bytes)
    };
    assert_eq!(sizes(Some(3)), (Some(24), Some(24), Some(24)));
    assert_eq!(sizes(Some(0)), (Some(0), Some(0), Some(0)));
    for elements in [None, Some(-1), Some(i64::MIN), Some(i64::MAX)] {
        assert_eq!(sizes(elements), (None, None, None), "{elements:?}");
    }
    assert_eq!(
        ["BFloat16", "Float8_e4m3fn", "ComplexDouble", "Bits4x2", ""].map(element_bytes),
        [Some(2), Some(1), Some(16), None, None]
    );
}

proptest! {
    /// What lies in a call is found without walking through all that is around it.
    #[test]
    fn a_slice_is_in_the_call_that_is_among_its_ancestors(
        outer in "[.ab|]{30}", inner in "[.ab|]{30}", launch in "[.NK|]{30}", works in "[.w|]{30}", first in prop::option::of(0_i64..3),
    ) {
        let threads = format!("rank 0 cpu 1 {outer}\nrank 0 cpu 1 {inner}\nrank 0 launch 1 {launch}\nrank 0 label 2 {works}");
        let work = ("all_reduce", "Float", Some(10), first);
        let said = [("a", SliceKind::Op, ("allreduce", "", None, Some(0))), ("w", SliceKind::Annotation, work)];
        let trace = trace_of(&threads, &said);
        let calls = Calls::of(&trace);
        for slice in trace.slices.ids() {
            let says = |id: &SliceId| trace.collectives.iter().any(|said| said.slice == *id);
            let outermost = trace.slices.with_ancestors(slice).filter(says).last();
            let is_of = |call: &Call, slice: SliceId| call.slice == slice || call.work == Some(slice);
            let slow = outermost.and_then(|slice| calls.calls.iter().position(|call| is_of(call, slice)));
            prop_assert_eq!(calls.around(&trace, slice), slow);
        }
    }

    /// Whatever launched them, all kernels of communication are in some row, once, with the time that nothing hides.
    #[test]
    fn no_kernel_is_lost_nor_counted_twice(
        host in "[.ab|]{30}", launch in "[.NK]{30}", streams in prop::collection::vec("[.NKH|]{30}", 1..3), speaks in any::<bool>(),
    ) {
        let mut drawing = format!("rank 0 cpu 1 {host}\nrank 0 launch 1 {launch}\n");
        streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
        let said = [("a", SliceKind::Op, MEAN), ("N", SliceKind::Kernel, ("broadcast", "Long", Some(5), None))];
        let trace = trace_of(&drawing, if speaks { &said } else { &said[..1] });
        let rows = collectives(&trace, &Selection::default());
        let is_comm = |event: &stepscope_trace::DeviceEvent| event.class == DeviceEventClass::Communication;
        let spans: Vec<Span> =
            trace.device_events.iter().filter(is_comm).map(|event| trace.slices.span(event.slice)).collect();
        let sum = |of: fn(&Collectives) -> Option<i64>| rows.iter().filter_map(of).sum::<i64>();
        prop_assert_eq!(sum(|row| row.kernels), spans.len() as i64);
        prop_assert_eq!(sum(|row| row.device_ns), spans.iter().map(|span| span.duration_ns()).sum::<i64>());
        let cells: Vec<Vec<char>> = streams.iter().map(|row| row.chars().filter(|cell| *cell != '|').collect()).collect();
        let computes = |at: i64| cells.iter().any(|row| row.get(at as usize) == Some(&'K'));
        let first_ns = |row: &str| row.chars().filter(|cell| *cell != '|').position(|cell| cell != '.');
        let rows_drawn = streams.iter().chain([&host, &launch]);
        let zero = rows_drawn.filter_map(|row| first_ns(row)).min().unwrap_or(0) as i64;
        let exposed = |span: &Span| {
            let moments = span.start_ns / 1_000..span.end_ns / 1_000;
            1_000 * moments.filter(|at| !computes(at + zero)).count() as i64
        };
        prop_assert_eq!(sum(|row| row.exposed_ns), spans.iter().map(exposed).sum::<i64>());
        let calls = trace.slices.ids().filter(|id| trace.slice_name(*id) == "a").count() as i64;
        prop_assert_eq!(sum(|row| row.calls), calls);
    }
}

#[test]
fn the_bus_bandwidth_is_that_of_nccl_tests() {
    let shares = [
        (CollectiveKind::AllReduce, Some((6, 4))),
        (CollectiveKind::AllGather, Some((3, 4))),
        (CollectiveKind::ReduceScatter, Some((3, 4))),
        (CollectiveKind::AllToAll, Some((3, 4))),
        (CollectiveKind::Broadcast, Some((1, 1))),
        (CollectiveKind::Gather, Some((3, 4))),
        (CollectiveKind::Barrier, None),
    ];
    for (kind, expected) in shares {
        assert_eq!(on_links(kind, Some(4)), expected, "{kind:?}");
    }
    assert_eq!(on_links(CollectiveKind::AllReduce, None), None);
    assert_eq!(on_links(CollectiveKind::Reduce, None), Some((1, 1)));
    // Of two ranks all of it crosses the link.
    let row = &collectives(&trace_of(KERNELS, &[("a", SliceKind::Op, MEAN)]), &Selection::default())[0];
    assert!(row.algorithm_bandwidth_bytes_per_s.is_some());
    assert_eq!(row.bus_bandwidth_bytes_per_s, row.algorithm_bandwidth_bytes_per_s);
}
