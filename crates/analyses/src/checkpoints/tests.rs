use super::*;
use crate::io_calls::tests::with_calls;
use proptest::prelude::*;
use stepscope_trace::{DataflowRange, SliceId, SliceKind};

/// The drawing, in which labels `k` are labelled checkpoints, Python functions `s` write one, a write moves 1 MiB in each
/// microsecond when it is a `w`, and a `W` 100 bytes in all.
fn with_checkpoints(drawing: &str) -> Trace {
    let mut trace = with_calls(drawing);
    let labels = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Annotation);
    let labels: Vec<SliceId> = labels.filter(|id| trace.slice_name(*id) == "k").collect();
    trace.dataflow = labels.iter().map(|id| DataflowRange::new(*id, DataflowStage::Checkpoint)).collect();
    trace.roles = vec![(trace.strings.intern("s"), SliceRole::CheckpointWrite)];
    let slices: Vec<SliceId> = trace.io.iter().map(|event| event.slice).collect();
    for (at, slice) in slices.into_iter().enumerate() {
        if trace.io[at].action == IoAction::Write {
            let us = trace.slices.dur_ns[slice.index()] / 1_000;
            trace.io[at].bytes = Some(if trace.slice_name(slice) == "w" { us << 20 } else { 100 });
        }
    }
    trace
}

/// Rows as `known by name at start for time, blocking, MiB in files`, in us.
fn lines(trace: &Trace, selection: &Selection) -> Vec<String> {
    let shown = |value: Option<i64>| value.map_or("-".into(), |value| value.to_string());
    let line = |row: &Checkpoint| {
        format!(
            "{} {} at {} for {}, {} blocking, {} MiB in {}",
            row.known_by.as_str(),
            trace.strings.get(row.name),
            row.span.start_ns / 1_000,
            row.span.duration_ns() / 1_000,
            row.blocking_ns / 1_000,
            shown(row.write_bytes.map(|bytes| bytes >> 20)),
            shown(row.files)
        )
    };
    checkpoints(trace, selection).iter().map(line).collect()
}

#[test]
fn labels_and_functions_are_checkpoints_and_the_outer_one_counts() {
    let trace = with_checkpoints(
        "rank 0 cpu 1    aaaaaaaaaaaaaaaaaaaa
         rank 0 label 1  .kkkkk..............
         rank 0 python 1 ..ss.....ssss.......
         rank 0 io 1     ..ww.....r.w........",
    );
    let expected = ["label k at 1 for 5, 5 blocking, 2 MiB in 1", "call s at 9 for 4, 4 blocking, 1 MiB in 1"];
    assert_eq!(lines(&trace, &Selection::default()), expected);
    let rows = checkpoints(&trace, &Selection::default());
    assert_eq!((rows[0].writing_ns, rows[0].writes, rows[0].step), (Some(2_000), Some(1), None));
    assert_eq!(rows[0].write_bytes_per_s, Some((2 << 20) * 200_000));
    assert_eq!((rows[1].read_bytes, rows[1].write_bytes), (Some(100), Some(1 << 20)));
}

#[test]
fn much_that_is_written_at_once_is_a_checkpoint_and_blocks_where_the_main_thread_writes() {
    let trace = with_checkpoints(
        "rank 0 step    00000000001111111111
         rank 0 cpu 1   aaaaaaaaaaaaaaaaaaaa
         rank 0 io 1    ..o.w.wc............
         rank 0 label 2 ............bbbbbb..
         rank 0 io 2    ............o.ww.c..",
    );
    let expected = ["writes file at 2 for 6, 6 blocking, 2 MiB in 1", "writes b at 12 for 6, 0 blocking, 2 MiB in 1"];
    assert_eq!(lines(&trace, &Selection::default()), expected);
    let second = Selection { step: Some(1), ..Selection::default() };
    assert_eq!(lines(&trace, &second), [expected[1]]);
    assert_eq!(checkpoints(&trace, &second)[0].step, Some(1));
}

#[test]
fn small_writes_and_little_in_all_are_no_checkpoint() {
    assert_eq!(lines(&with_checkpoints("rank 0 io 1 W.W|W.rr"), &Selection::default()), [""; 0]);
    let mut log = with_checkpoints("rank 0 io 1 w.w");
    log.io.iter_mut().for_each(|event| event.bytes = Some(MIN_BYTES / 2 - 1));
    assert_eq!(lines(&log, &Selection::default()), [""; 0]);
    log.io.iter_mut().for_each(|event| event.bytes = Some(MIN_BYTES / 2));
    assert_eq!(lines(&log, &Selection::default()), ["writes file at 0 for 3, 3 blocking, 1 MiB in 1"]);
}

#[test]
fn what_is_written_a_second_later_is_another_one_and_what_has_a_label_is_not_counted_twice() {
    let mut trace = with_checkpoints("rank 0 io 1 w.w");
    trace.slices.start_ns[1] = 1_000 + PAUSE_NS;
    assert_eq!(lines(&trace, &Selection::default()).len(), 1);
    trace.slices.start_ns[1] += 1;
    assert_eq!(lines(&trace, &Selection::default()).len(), 2);
    let labelled = with_checkpoints("rank 0 label 1 kkkk\nrank 0 io 2 .w.w.w");
    let expected = ["label k at 0 for 4, 4 blocking, 2 MiB in 1", "writes file at 5 for 1, 0 blocking, 1 MiB in 1"];
    assert_eq!(lines(&labelled, &Selection::default()), expected);
}

#[test]
fn without_calls_on_files_bytes_are_not_known() {
    let row = checkpoints(&with_checkpoints("rank 0 label 1 kk"), &Selection::default())[0];
    assert_eq!((row.write_bytes, row.files, row.writing_ns, row.write_bytes_per_s), (None, None, None, None));
}

proptest! {
    #[test]
    fn checkpoints_of_a_process_are_apart_and_hold_all_that_marks_them(
        labels in "[..k|]{30}", functions in "[..s|]{30}", calls in "[..wWroc|]{30}", elsewhere in "[...w]{30}",
    ) {
        let trace = with_checkpoints(&format!(
            "rank 0 cpu 1 {}\nrank 0 label 1 {labels}\nrank 0 python 1 {functions}\nrank 0 io 1 {calls}\nrank 0 io 2 {elsewhere}",
            "a".repeat(40)
        ));
        let rows = checkpoints(&trace, &Selection::default());
        prop_assert!(rows.is_sorted_by_key(|row| row.span.start_ns));
        let marked: Vec<&Checkpoint> = rows.iter().filter(|row| row.known_by != KnownBy::Writes).collect();
        prop_assert!(marked.windows(2).all(|pair| pair[0].span.end_ns <= pair[1].span.start_ns));
        // Each moment in a label or function is in one, and no other moment is.
        for us in 0..30_i64 {
            let at_ns = us * 1_000;
            let is_mark = |id: &SliceId| {
                let is_known = trace.dataflow.iter().any(|said| said.slice == *id) || trace.role(*id).is_some();
                is_known && trace.slices.span(*id).contains(at_ns)
            };
            let is_marked = trace.slices.ids().any(|id| is_mark(&id));
            prop_assert_eq!(is_marked, marked.iter().any(|row| row.span.contains(at_ns)), "{}", us);
        }
        // Each write of a marked one is counted in it, and in no other marked one.
        let outermost = AnalysisContext::new(&trace, &Selection::default()).get::<Vec<IoCall>>().clone();
        for row in &rows {
            let begins = |call: &&IoCall| call.event.action == IoAction::Write && row.span.contains(call.span.start_ns);
            let bytes: i64 = outermost.iter().filter(begins).filter_map(|call| call.event.bytes).sum();
            prop_assert_eq!(row.write_bytes.unwrap_or(0), bytes);
            prop_assert!((0..=row.span.duration_ns()).contains(&row.blocking_ns));
        }
    }
}
