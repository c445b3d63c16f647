mod categories;

use super::*;
use crate::io_calls::tests::with_calls;
use crate::io_files::io_files;
use proptest::prelude::*;
use stepscope_trace::{DataflowRange, DataflowStage, IoAction, IoLayer, SliceId, SliceKind, SliceRole};

/// The drawing with its `io` rows as calls: those called `w` and `s` are on a file that is written where anything writes,
/// all others on another one. Labels `k` are labelled checkpoints.
fn job(drawing: &str) -> Trace {
    let mut trace = with_calls(drawing);
    let [input, output] = ["in", "out"].map(|name| trace.strings.intern(name));
    for at in 0..trace.io.len() {
        let is_output = matches!(trace.slice_name(trace.io[at].slice), "w" | "s");
        trace.io[at].file = if is_output { output } else { input };
    }
    let is_checkpoint = |id: &SliceId| trace.slices.kind(*id) == SliceKind::Annotation && trace.slice_name(*id) == "k";
    let labels = trace.slices.ids().filter(is_checkpoint);
    trace.dataflow = labels.map(|id| DataflowRange::new(id, DataflowStage::Checkpoint)).collect();
    trace
}

/// The same, with what is drawn as rank 1 a worker that rank 0 started.
fn with_worker(drawing: &str) -> Trace {
    let mut trace = job(drawing);
    trace.processes[0].pid = Some(7);
    for worker in &mut trace.processes[1..] {
        (worker.rank, worker.pid, worker.parent_pid) = (0, Some(8), Some(7));
    }
    trace.steps.retain(|step| step.process.index() == 0);
    trace
}

/// Rows as `rank/step total = part name + …`, in us, empty parts left out, `?` for hidden parts that are not known.
fn line(row: &StepIo) -> String {
    let us = |ns: i64| ns / 1_000;
    let unknown = if row.compute_ns.is_none() { "? + " } else { "" };
    let parts = PARTS.map(|name| (name, part(row, name))).into_iter();
    let parts: Vec<String> = parts.filter(|(_, ns)| *ns > 0).map(|(name, ns)| format!("{} {name}", us(ns))).collect();
    let step = row.step.map_or("sum".into(), |step| step.to_string());
    format!("{}/{step} {} = {unknown}{}", row.rank, us(row.total_ns), parts.join(" + "))
}

#[track_caller]
fn check(trace: &Trace, selection: &Selection, expected: &[&str]) {
    assert_eq!(io_summary(trace, selection).iter().map(line).collect::<Vec<_>>(), expected);
}

#[test]
fn input_and_output_are_hidden_by_kernels_or_exposed() {
    let trace = job("rank 0 step     0000000000111111
                     rank 0 input 1  ii........i.....
                     rank 0 io 1     ....rr......ww..
                     rank 0 io 2     .......ww..w....
                     rank 0 stream 7 .CCCCCCC...CC...");
    let all = [
        "0/0 10 = 3 compute + 3 hidden input + 1 exposed input + 1 hidden output + 1 exposed output + 1 other",
        "0/1 6 = 1 exposed input + 2 hidden output + 1 exposed output + 2 other",
        "0/sum 16 = 3 compute + 3 hidden input + 2 exposed input + 3 hidden output + 2 exposed output + 3 other",
    ];
    check(&trace, &Selection::default(), &all);
    check(&trace, &Selection { step: Some(1), ..Selection::default() }, &all[1..2]);
    let row = io_summary(&trace, &Selection::default())[2];
    assert_eq!((row.count, row.read_bytes, row.write_bytes), (4, Some(200), Some(500)));
}

#[test]
fn output_that_begins_in_a_checkpoint_of_its_process_is_of_the_checkpoint() {
    let trace = job("rank 0 step     0000000000000000
                     rank 0 label 1  .kkkkkk.........
                     rank 0 io 1     ..ww.ww|w.r.w...
                     rank 0 io 2     ...w.w.....www..
                     rank 0 stream 7 ...C......CC.C..");
    let expected = "0/0 16 = 1 compute + 1 exposed input + 1 hidden checkpoint + 3 exposed checkpoint + 2 hidden output + \
                    2 exposed output + 6 other";
    check(&trace, &Selection { step: Some(0), ..Selection::default() }, &[expected]);
}

#[test]
fn much_that_is_written_to_a_file_at_once_is_a_checkpoint_without_a_label() {
    let mut trace = job("rank 0 step 00000000\nrank 0 io 1 o.ww.r..");
    let expected = |of| format!("0/0 8 = ? + 2 exposed input + 2 exposed {of} + 4 other");
    let first = Selection { step: Some(0), ..Selection::default() };
    check(&trace, &first, &[&expected("output")]);
    trace.io[1].bytes = Some(1 << 20);
    check(&trace, &first, &[&expected("checkpoint")]);
}

#[test]
fn rates_of_a_step_are_of_the_calls_that_begin_in_it() {
    let mut trace = job("rank 0 step  0000001111
                         rank 0 io 2  .rrr.rrr..
                         rank 0 io 3  ..rwwwc.R.");
    let fault = trace.io.iter_mut().find(|call| call.bytes.is_none() && call.action == IoAction::Read);
    fault.expect("it was drawn").layer = IoLayer::PageFault;
    let rates = |row: &StepIo| (row.busy_ns, row.calls_per_s, row.read_bytes_per_s, row.write_bytes_per_s);
    // Busy from 1 to 8 us: four calls; then a call that moves nothing, and a page fault, which is none.
    let expected = [
        (7_000, Some(571_429), Some(100_000_000), Some(100_000_000)),
        (2_000, Some(500_000), None, None),
        (8_000, Some(625_000), Some(100_000_000), Some(100_000_000)),
    ];
    assert_eq!(io_summary(&trace, &Selection::default()).iter().map(rates).collect::<Vec<_>>(), expected);
}

#[test]
fn a_copy_is_output_also_where_it_reads() {
    let mut trace = with_calls(
        "rank 0 step 0000000000
                                rank 0 io 1 .rrrr.r...",
    );
    let target = trace.strings.intern("target");
    trace.io[0].other_file = target;
    let expected = ["0/0 10 = ? + 1 exposed input + 4 exposed output + 5 other"];
    check(&trace, &Selection { step: Some(0), ..Selection::default() }, &expected);
    let row = io_summary(&trace, &Selection::default())[0];
    assert_eq!((row.read_bytes, row.write_bytes), (Some(500), Some(400)));
}

#[test]
fn what_helpers_read_while_nothing_computes_holds_up_nobody() {
    let drawing = "rank 0 step     00000000
                   rank 0 input 1  ....ii..
                   rank 0 stream 7 CC......
                   rank 1 io 5     .rrrr...
                   rank 1 cpu 5    ......aa";
    let trace = with_worker(drawing);
    let expected = "0/0 8 = 1 compute + 1 hidden input + 2 exposed input + 4 other";
    check(&trace, &Selection { step: Some(0), ..Selection::default() }, &[expected]);
}

#[test]
fn without_a_device_operators_of_the_thread_that_runs_steps_compute() {
    let drawing = "rank 0 step    00000000
                   rank 0 cpu 1   aaaaaa..
                   rank 0 input 1 .i......
                   rank 0 io 1    ..r...r.
                   rank 0 io 2    ...ww...
                   rank 0 cpu 2   .......b";
    let expected = "0/0 8 = 2 compute + 3 exposed input + 2 hidden output + 1 other";
    check(&job(drawing), &Selection { step: Some(0), ..Selection::default() }, &[expected]);
}

#[test]
fn without_operators_labels_say_when_a_program_computes() {
    let mut trace = job("rank 0 step 000000\nrank 0 label 1 cccxxx\nrank 0 io 1 r.....\nrank 0 io 2 .rrr..");
    let selection = Selection { step: Some(0), ..Selection::default() };
    check(&trace, &selection, &["0/0 6 = ? + 4 exposed input + 2 other"]);
    trace.roles = vec![(trace.strings.intern("c"), SliceRole::Compute)];
    check(&trace, &selection, &["0/0 6 = 2 hidden input + 2 exposed input + 2 other"]);
}

#[test]
fn a_rank_that_does_nothing_with_files_has_no_rows() {
    let trace = job("rank 0 step 0011\nrank 0 stream 7 CC..\nrank 1 step 0011\nrank 1 input 1 i...");
    let expected =
        ["1/0 2 = ? + 1 exposed input + 1 other", "1/1 2 = ? + 2 other", "1/sum 4 = ? + 1 exposed input + 3 other"];
    check(&trace, &Selection::default(), &expected);
}

/// A slice of a drawing: its kind and name, its process and its thread, and whether it begins in a checkpoint.
type Drawn<'a> = (SliceKind, &'a str, usize, i64, bool);

/// What a moment of a drawing belongs to, asked slice by slice.
fn class_at(trace: &Trace, at_ns: i64, has_device: bool) -> &'static str {
    let has_written = trace.io.iter().any(|call| trace.slice_name(call.slice) == "w");
    // A call is of a checkpoint where it begins in one of its process, on whichever thread.
    let is_checkpoint = |id: SliceId| {
        let process = |id: SliceId| trace.tracks[trace.slices.track[id.index()].index()].process;
        let at_ns = trace.slices.start_ns[id.index()];
        let is_around = |label: SliceId| {
            trace.slices.kind(label) == SliceKind::Annotation
                && process(label) == process(id)
                && trace.slices.span(label).contains(at_ns)
        };
        trace.slices.ids().any(is_around)
    };
    let open: Vec<Drawn<'_>> = trace
        .slices
        .ids()
        .filter(|id| trace.slices.span(*id).contains(at_ns))
        .map(|id| {
            let track = &trace.tracks[trace.slices.track[id.index()].index()];
            let thread = track.tid.unwrap_or(-1);
            (trace.slices.kind(id), trace.slice_name(id), track.process.index(), thread, is_checkpoint(id))
        })
        .collect();
    let is_output = |name: &str| name == "w" || name == "s" && has_written;
    let has = |is: &dyn Fn(&Drawn<'_>) -> bool| open.iter().any(is);
    let on_first = |row: &Drawn<'_>| row.2 == 0 && row.3 == 1;
    let waits =
        has(&|row| on_first(row) && (row.0 == SliceKind::DataLoader || row.0 == SliceKind::Io && !is_output(row.1)));
    let computes = match has_device {
        true => has(&|row| row.0 == SliceKind::Kernel),
        false => {
            let is_elsewhere = has(&|row| on_first(row) && matches!(row.0, SliceKind::DataLoader | SliceKind::Io));
            has(&|row| on_first(row) && row.0 == SliceKind::Op) && !is_elsewhere
        }
    };
    let counts = |row: &Drawn<'_>| row.0 == SliceKind::Io && (computes || row.2 == 0);
    let writes = has(&|row| counts(row) && is_output(row.1));
    let reads = has(&|row| counts(row) && !is_output(row.1));
    let saves = has(&|row| counts(row) && is_output(row.1) && row.4);
    match (computes, waits || reads && !writes, saves, writes) {
        (true, true, ..) => "hidden input",
        (true, false, true, _) => "hidden checkpoint",
        (true, false, false, true) => "hidden output",
        (true, false, false, false) => "compute",
        (false, true, ..) => "exposed input",
        (false, false, true, _) => "exposed checkpoint",
        (false, false, false, true) => "exposed output",
        (false, false, false, false) => "other",
    }
}

fn part(row: &StepIo, name: &str) -> i64 {
    match name {
        "hidden input" => row.hidden_input_ns.unwrap_or(0),
        "hidden checkpoint" => row.hidden_checkpoint_ns.unwrap_or(0),
        "hidden output" => row.hidden_output_ns.unwrap_or(0),
        "compute" => row.compute_ns.unwrap_or(0),
        "exposed input" => row.exposed_input_ns,
        "exposed checkpoint" => row.exposed_checkpoint_ns,
        "exposed output" => row.exposed_output_ns,
        _ => row.other_ns,
    }
}

/// A row whose slices end where a column is reached: nothing on the thread of the steps reaches over their limit.
fn cut(row: &str, column: usize) -> String {
    let mut columns = 0;
    let mut cell = |cell: char| {
        let is_limit = cell != '|' && columns == column;
        columns += usize::from(cell != '|');
        let before = is_limit.then_some('|');
        before.into_iter().chain([cell])
    };
    row.chars().flat_map(&mut cell).collect()
}

const PARTS: [&str; 8] = [
    "compute",
    "hidden input",
    "exposed input",
    "hidden checkpoint",
    "exposed checkpoint",
    "hidden output",
    "exposed output",
    "other",
];

proptest! {
    #[test]
    fn each_microsecond_is_of_the_part_that_a_look_at_all_slices_finds(
        operators in "[.a|]{24}", input in "[.....i|]{24}", first in "[.rwcs|]{24}", second in "[.rwcs|]{24}",
        worker in "[.rwcs|]{24}", of_worker in "[.b]{24}", stream in "[.C]{24}|[.]{24}", limit in 1_usize..23,
        checkpoints in prop::array::uniform2("[..k|]{24}"),
    ) {
        let steps = "0".repeat(limit) + &"1".repeat(24 - limit);
        let [operators, input, first] = [operators, input, first].map(|row| cut(&row, limit));
        let trace = with_worker(&format!(
            "rank 0 step {steps}\nrank 0 cpu 1 {operators}\nrank 0 input 1 {input}\nrank 0 io 1 {first}\n\
             rank 0 io 2 {second}\nrank 0 stream 7 {stream}\nrank 1 io 5 {worker}\nrank 1 cpu 5 {of_worker}\n\
             rank 0 label 3 {}\nrank 1 label 6 {}\n", checkpoints[0], checkpoints[1]
        ));
        let rows = io_summary(&trace, &Selection::default());
        if trace.io.is_empty() && !input.contains('i') {
            prop_assert!(rows.is_empty());
            return Ok(());
        }
        prop_assert_eq!(rows.len(), 3);
        let has_device = stream.contains('C');
        for (row, columns) in rows.iter().zip([0..limit, limit..24, 0..24]) {
            prop_assert_eq!(row.compute_ns.is_some(), has_device || operators.contains('a'));
            prop_assert_eq!(PARTS.iter().map(|name| part(row, name)).sum::<i64>(), row.total_ns);
            prop_assert_eq!(row.total_ns, columns.len() as i64 * 1_000);
            for name in PARTS {
                let is_of = |at: &usize| class_at(&trace, *at as i64 * 1_000, has_device) == name;
                let found = columns.clone().filter(is_of).count() as i64 * 1_000;
                prop_assert!(part(row, name) == found, "{name}: {found} of {row:?}");
            }
        }
        let calls: i64 = io_files(&trace, &Selection::default()).iter().map(|row| row.count).sum();
        prop_assert_eq!(rows[2].count, calls);
        prop_assert_eq!(rows[0].count + rows[1].count, calls);
        for (row, columns) in rows.iter().zip([0..limit, limit..24, 0..24]) {
            let spans = || trace.io.iter().map(|event| trace.slices.span(event.slice));
            let of_step: Vec<Span> = spans().filter(|span| columns.contains(&(span.start_ns as usize / 1_000))).collect();
            let is_busy = |at: &i64| of_step.iter().any(|span| span.contains(*at * 1_000));
            prop_assert_eq!(row.busy_ns, (0..24).filter(is_busy).count() as i64 * 1_000);
            prop_assert_eq!(row.calls_per_s, per_s(of_step.len() as i128, row.busy_ns.into()));
        }
    }
}

/// Rows as `rank/layer count total=busy=hidden+exposed us read/written B`.
fn layer_lines(trace: &Trace) -> Vec<String> {
    let selection = Selection { group_by: Some(GroupBy::Layer), ..Selection::default() };
    let shown = |value: Option<i64>, of: i64| value.map_or("-".into(), |value| (value / of).to_string());
    let line = |row: layers::LayerIo| {
        let (hidden, exposed) = (shown(row.hidden_ns, 1_000), shown(row.exposed_ns, 1_000));
        let (read, written) = (shown(row.read_bytes, 1), shown(row.write_bytes, 1));
        let (total, busy) = (row.total_ns / 1_000, row.busy_ns / 1_000);
        format!("{}/{} {} {total}={busy}={hidden}+{exposed} {read}/{written}", row.rank, row.layer, row.count)
    };
    layers::rows(&AnalysisContext::new(trace, &selection)).into_iter().map(line).collect()
}

#[test]
fn each_layer_is_counted_by_itself() {
    let mut trace = with_calls(
        "rank 0 step     000000000000
         rank 0 input 1  iii.........
         rank 0 label 1  ....eeeeaaa.
         rank 0 label 1  ....xxx.....
         rank 0 io 1     .r..rr..WW..
         rank 0 io 1     ........w...
         rank 0 io 2     .........rr.
         rank 0 stream 7 ....C....C..
         rank 1 io 1     r...........
         rank 1 io 2     RRRccc......",
    );
    // Pages of which one had to be read.
    for name in ["R", "c"] {
        let at = trace.io.iter().position(|call| trace.slice_name(call.slice) == name).expect("it was drawn");
        trace.io[at].layer = IoLayer::PageFault;
        trace.slices.dur_ns[trace.io[at].slice.index()] = 0;
    }
    trace.roles = vec![(trace.strings.intern("e"), SliceRole::Reader)];
    let outer = trace.io.iter().position(|call| trace.slice_name(call.slice) == "W").expect("it was drawn");
    trace.io[outer].layer = IoLayer::MpiIo;
    let expected = [
        "0/application 2 6=6=2+4 200/-",
        "0/reader 2 7=7=1+6 300/0",
        "0/mpiio 1 2=2=1+1 0/-",
        "0/posix 4 6=6=2+4 500/100",
        "1/posix 1 1=1=-+- 100/0",
        "1/page_fault 2 0=0=-+- -/0",
    ];
    assert_eq!(layer_lines(&trace), expected);
}

#[test]
fn a_layer_has_its_errors_its_order_and_its_metadata() {
    let mut trace = with_calls("rank 0 io 1 or|rrrc|ccc");
    trace.io.iter_mut().filter(|call| call.bytes.is_some()).for_each(|call| call.offset = Some(0));
    trace.io[3].errno = Some(stepscope_trace::IoEvent::UNKNOWN_ERROR);
    let selection = Selection { group_by: Some(GroupBy::Layer), ..Selection::default() };
    let row = layers::rows(&AnalysisContext::new(&trace, &selection)).remove(0);
    assert_eq!((row.layer, row.count, row.errors, row.sequential_ratio), ("posix", 5, 1, Some(0.0)));
    assert_eq!((row.metadata_ratio, row.metadata_ns_ratio), (Some(3.0 / 5.0), Some(5.0 / 9.0)));
    let sizes = (row.request_bytes_min, row.request_bytes_median, row.request_bytes_max);
    assert_eq!(sizes, (Some(100), Some(100), Some(300)));
}
