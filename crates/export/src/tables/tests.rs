//! The tables read back by the Parquet reader.

use super::source::Source;
use super::{OF_RANKS, OF_RUN, table_descriptions, write_slices, write_tables};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use stepscope_engine::{OpenOptions, OpenedRun, Progress, Ranks, finding_rows};
use stepscope_trace::drawn::drawn;
use stepscope_trace::{SliceId, SliceKind, Trace};

pub(super) fn read(path: &Path) -> Vec<RecordBatch> {
    let file = std::fs::File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(1 << 20).build().unwrap();
    reader.map(Result::unwrap).collect()
}

pub(super) fn ints(batches: &[RecordBatch], column: &str) -> Vec<Option<i64>> {
    let of = |batch: &RecordBatch| {
        batch.column_by_name(column).unwrap().as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

fn flags(batches: &[RecordBatch], column: &str) -> Vec<Option<bool>> {
    let of = |batch: &RecordBatch| batch.column_by_name(column).unwrap().as_boolean().iter().collect::<Vec<_>>();
    batches.iter().flat_map(of).collect()
}

fn texts(batches: &[RecordBatch], column: &str) -> Vec<Option<String>> {
    let of = |batch: &RecordBatch| {
        let column = batch.column_by_name(column).unwrap();
        assert!(matches!(column.data_type(), DataType::Dictionary(_, _)), "texts are dictionary-encoded");
        let array = column.as_dictionary::<Int32Type>();
        let values = array.values().as_string::<i32>();
        array.keys().iter().map(|key| Some(values.value(key? as usize).to_string())).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

/// The table of a trace called `name`, with the rows of all ranks in the order of the trace.
fn table(trace: &Trace, name: &str) -> Vec<RecordBatch> {
    let source = Source::new(trace);
    let sheets = OF_RANKS.iter().chain(OF_RUN).map(|make| make(&source));
    let sheet = sheets.into_iter().find(|sheet| sheet.name == name).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    sheet.write_all(trace, file.as_file_mut()).unwrap();
    read(file.path())
}

/// Every table as it is written.
fn sums(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().flat_map(|table| std::fs::read_dir(table.unwrap().path()).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files.map(|file| (file.strip_prefix(folder).unwrap().display().to_string(), std::fs::read(file).unwrap())).collect()
}

/// The id of a slice, counted.
fn id(trace: &Trace, slice: SliceId) -> Option<i64> {
    let rank = |slice: SliceId| trace.rank_of_track(trace.slices.track[slice.index()]);
    let of_rank = rank(slice);
    let before = trace.slices.ids().take(slice.index()).filter(|other| rank(*other) == of_rank).count();
    Some((i64::from(of_rank) << 32) + before as i64)
}

/// Compares the columns that matter of every table with the trace.
fn check(trace: &Trace) {
    let table = |name: &str| table(trace, name);
    let source = Source::new(trace);
    let ids: Vec<Option<i64>> = trace.slices.ids().map(|slice| Some(source.id(slice))).collect();
    for slice in trace.slices.ids().step_by(trace.slices.len().div_ceil(50).max(1)) {
        assert_eq!(ids[slice.index()], id(trace, slice));
    }
    let number = |slice: Option<SliceId>| slice.and_then(|slice| ids[slice.index()]);
    let slices = table("slice");
    assert_eq!(ints(&slices, "slice"), ids);
    assert_eq!(ints(&slices, "start_ns"), trace.slices.start_ns.iter().copied().map(Some).collect::<Vec<_>>());
    assert_eq!(ints(&slices, "dur_ns"), trace.slices.dur_ns.iter().copied().map(Some).collect::<Vec<_>>());
    let names: Vec<_> = trace.slices.ids().map(|id| Some(trace.slice_name(id).to_string())).collect();
    assert_eq!(texts(&slices, "name"), names);
    let parents: Vec<_> = trace.slices.parent.iter().map(|parent| number(*parent)).collect();
    assert_eq!(ints(&slices, "parent"), parents);
    check_own_times(trace, &slices);
    check_steps(trace, &slices);
    check_events(trace, &number);
    let bytes: Vec<_> = trace.memory.iter().map(|event| Some(event.bytes)).collect();
    assert_eq!(ints(&table("memory"), "bytes"), bytes);
    let steps: Vec<_> = trace.steps.iter().map(|step| Some(step.number)).collect();
    assert_eq!(ints(&table("step"), "step"), steps);
    let ends: Vec<_> = trace.flows.iter().map(|flow| number(Some(flow.to))).collect();
    assert_eq!(ints(&table("flow"), "to_slice"), ends);
    check_ops(trace, &table("op"));
    let stacks = trace.stack_samples.iter().map(|of| Some(trace.stacks.text(of.stack?, &trace.strings)));
    assert_eq!(texts(&table("sample"), "stack"), stacks.collect::<Vec<_>>());
    let samples: usize = trace.counters.iter().map(|counter| counter.value.len()).sum();
    assert_eq!(ints(&table("counter"), "time_ns").len(), samples);
    check_waits(trace, &table("sync"), &number);
    check_collectives(trace, &table("collective"), &number);
    check_io(trace, &table("io_call"), &number);
    let instants = table("instant");
    assert_eq!(ints(&instants, "time_ns"), trace.instants.time_ns.iter().copied().map(Some).collect::<Vec<_>>());
    let names: Vec<_> = trace.instants.name.iter().map(|name| Some(trace.strings.get(*name).to_string())).collect();
    assert_eq!(texts(&instants, "name"), names);
    let on_tracks: i64 = ints(&table("track"), "slices").iter().flatten().sum();
    assert_eq!(on_tracks, trace.slices.len() as i64);
    let processes: Vec<_> = trace.processes.iter().map(|process| process.pid).collect();
    assert_eq!(ints(&table("process"), "pid"), processes);
    let codes: Vec<_> = finding_rows(&trace.findings).iter().map(|row| Some(row.code.to_string())).collect();
    assert_eq!(texts(&table("finding"), "code"), codes);
    check_files(trace);
}

/// Own times of slices of a track sum to the time that its outermost take.
fn check_own_times(trace: &Trace, slices: &[RecordBatch]) {
    let own: i64 = ints(slices, "self_ns").iter().flatten().sum();
    let outermost = trace.slices.ids().filter(|id| trace.slices.parent(*id).is_none());
    assert_eq!(own, outermost.map(|id| trace.slices.dur_ns[id.index()]).sum::<i64>());
}

/// What belongs to a step is what analyses of it look at: what begins in it on the host, and what is launched in it.
fn check_steps(trace: &Trace, slices: &[RecordBatch]) {
    let launches: HashMap<SliceId, SliceId> =
        trace.device_events.iter().filter_map(|event| Some((event.slice, event.launch?))).collect();
    let expected = |id: SliceId| {
        let id = launches.get(&id).copied().unwrap_or(id);
        let (rank, start_ns) = (trace.rank_of_track(trace.slices.track[id.index()]), trace.slices.start_ns[id.index()]);
        let of_rank = trace.steps.iter().filter(|step| step.rank == rank);
        of_rank.filter(|step| step.span.contains(start_ns)).map(|step| step.number).next_back()
    };
    let found = ints(slices, "step");
    for id in trace.slices.ids().step_by(trace.slices.len().div_ceil(2_000).max(1)) {
        assert_eq!(found[id.index()], expected(id), "{}", trace.slice_name(id));
    }
}

/// Kernels and copies are all device events, and launches those of which the call is known.
fn check_events(trace: &Trace, number: &dyn Fn(Option<SliceId>) -> Option<i64>) {
    let [kernels, copies, launches] = ["kernel", "copy", "launch"].map(|name| table(trace, name));
    let mut found: Vec<_> = [&kernels, &copies]
        .into_iter()
        .flat_map(|events| {
            let [slices, launches, ops] = ["slice", "launch", "op"].map(|column| ints(events, column));
            slices.into_iter().zip(launches).zip(ops).collect::<Vec<_>>()
        })
        .collect();
    let all = trace.device_events.iter();
    let mut expected: Vec<_> =
        all.map(|event| ((number(Some(event.slice)), number(event.launch)), number(event.op))).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let mut launched: Vec<_> = ints(&launches, "launched").into_iter().zip(ints(&launches, "slice")).collect();
    launched.sort_unstable();
    let known = trace.device_events.iter().filter(|event| event.launch.is_some());
    let mut expected: Vec<_> = known.map(|event| (number(Some(event.slice)), number(event.launch))).collect();
    expected.sort_unstable();
    assert_eq!(launched, expected);
}

fn check_ops(trace: &Trace, table: &[RecordBatch]) {
    let dims = |id| Some(trace.strings.get(trace.ops.inputs(id).dims).to_string()).filter(|text| !text.is_empty());
    let known: HashMap<SliceId, _> =
        trace.ops.slice.iter().copied().zip(trace.ops.info.iter().map(|info| dims(info.inputs))).collect();
    let is_row = |id: &SliceId| trace.slices.kind(*id) == SliceKind::Op || known.contains_key(id);
    let expected: Vec<_> = trace.slices.ids().filter(is_row).map(|id| known.get(&id).cloned().flatten()).collect();
    assert_eq!(texts(table, "input_dims"), expected);
    // Own times of operators sum to the time that the outermost take.
    let is_op = |id: SliceId| trace.slices.kind(id) == SliceKind::Op;
    let is_outermost = |id: &SliceId| is_op(*id) && !trace.slices.with_ancestors(*id).skip(1).any(is_op);
    let outermost = trace.slices.ids().filter(is_outermost).map(|id| trace.slices.dur_ns[id.index()]);
    let kinds = texts(table, "kind").into_iter().zip(ints(table, "self_ns"));
    let own = kinds.filter(|(kind, _)| kind.as_deref() == Some("op")).filter_map(|(_, own_ns)| own_ns);
    assert_eq!(own.sum::<i64>(), outermost.sum::<i64>());
}

/// All files together have each row once, each file those of one rank; and those of a rank are the same without the others.
fn check_files(trace: &Trace) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tables");
    let run = OpenedRun::of(trace.clone());
    assert_eq!(write_tables(&run, &Ranks::default(), &path).unwrap(), trace.slices.len() as u64);
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), OF_RANKS.len() + OF_RUN.len());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    let mut rows = 0;
    for file in std::fs::read_dir(path.join("slice")).into_iter().flatten() {
        let ranks = ints(&read(&file.unwrap().path()), "rank");
        rows += ranks.len();
        assert!(ranks.windows(2).all(|pair| pair[0] == pair[1]));
    }
    assert_eq!(rows, trace.slices.len());
    let Some(last) = trace.ranks().pop() else { return };
    let alone = folder.path().join("alone");
    write_tables(&run, &last.into(), &alone).unwrap();
    let of_rank = format!("rank-{last}.parquet");
    let all: BTreeMap<_, _> = sums(&path).into_iter().filter(|(name, _)| name.ends_with(&of_rank)).collect();
    let only: BTreeMap<_, _> = sums(&alone).into_iter().filter(|(name, _)| name.ends_with(&of_rank)).collect();
    assert!(all == only && !all.is_empty());
}

type Number<'a> = &'a dyn Fn(Option<SliceId>) -> Option<i64>;

/// A column of whole numbers and what the trace says instead.
fn check_ints<T>(table: &[RecordBatch], column: &str, rows: &[T], of: impl Fn(&T) -> Option<i64>) {
    assert_eq!(ints(table, column), rows.iter().map(of).collect::<Vec<_>>(), "{column}");
}

/// A column of texts and what the trace says instead; an empty text is not known.
fn check_texts<'a, T>(table: &[RecordBatch], column: &str, rows: &'a [T], of: impl Fn(&'a T) -> &'a str) {
    let expected: Vec<_> = rows.iter().map(|row| Some(of(row).to_string()).filter(|text| !text.is_empty())).collect();
    assert_eq!(texts(table, column), expected, "{column}");
}

fn check_flags<T>(table: &[RecordBatch], column: &str, rows: &[T], of: impl Fn(&T) -> Option<bool>) {
    let expected: Vec<Option<bool>> = rows.iter().map(of).collect();
    assert_eq!(flags(table, column), expected, "{column}");
}

fn check_waits(trace: &Trace, table: &[RecordBatch], number: Number<'_>) {
    let rows = &trace.synchronizations;
    check_ints(table, "slice", rows, |row| number(Some(row.slice)));
    check_texts(table, "name", rows, |row| trace.slice_name(row.slice));
    check_texts(table, "kind", rows, |row| row.kind.as_str());
    check_ints(table, "start_ns", rows, |row| Some(trace.slices.span(row.slice).start_ns));
    check_ints(table, "dur_ns", rows, |row| Some(trace.slices.span(row.slice).duration_ns()));
    check_ints(table, "rank", rows, |row| Some(trace.devices[row.device.index()].rank.into()));
    check_ints(table, "device", rows, |row| Some(trace.devices[row.device.index()].ordinal));
    check_ints(table, "stream", rows, |row| row.stream);
    check_ints(table, "event_stream", rows, |row| row.event_stream);
    check_ints(table, "call", rows, |row| number(row.call));
    check_ints(table, "event_record", rows, |row| number(row.event_record));
}

fn check_collectives(trace: &Trace, table: &[RecordBatch], number: Number<'_>) {
    let rows = &trace.collectives;
    check_ints(table, "slice", rows, |row| number(Some(row.slice)));
    check_texts(table, "name", rows, |row| trace.strings.get(row.name));
    check_texts(table, "dtype", rows, |row| trace.strings.get(row.dtype));
    check_ints(table, "input_elements", rows, |row| row.input_elements);
    check_ints(table, "output_elements", rows, |row| row.output_elements);
    check_texts(table, "group", rows, |row| trace.strings.get(row.group));
    check_texts(table, "group_description", rows, |row| trace.strings.get(row.group_description));
    check_ints(table, "group_size", rows, |row| row.group_size);
    check_texts(table, "group_ranks", rows, |row| trace.strings.get(row.group_ranks));
    check_ints(table, "sequence_number", rows, |row| row.sequence_number);
    check_texts(table, "input_split_sizes", rows, |row| trace.strings.get(row.input_split_sizes));
    check_texts(table, "output_split_sizes", rows, |row| trace.strings.get(row.output_split_sizes));
    check_ints(table, "group_rank", rows, |row| row.group_rank);
    check_ints(table, "source_rank", rows, |row| row.source_rank);
    check_ints(table, "destination_rank", rows, |row| row.destination_rank);
    check_flags(table, "is_async", rows, |row| row.is_async);
}

fn check_io(trace: &Trace, table: &[RecordBatch], number: Number<'_>) {
    let rows = &trace.io;
    check_ints(table, "slice", rows, |row| number(Some(row.slice)));
    check_texts(table, "name", rows, |row| trace.slice_name(row.slice));
    check_texts(table, "layer", rows, |row| row.layer.as_str());
    check_texts(table, "action", rows, |row| row.action.as_str());
    check_texts(table, "file", rows, |row| trace.strings.get(row.file));
    check_texts(table, "other_file", rows, |row| trace.strings.get(row.other_file));
    check_ints(table, "bytes", rows, |row| row.bytes);
    check_ints(table, "asked_bytes", rows, |row| row.asked_bytes);
    check_ints(table, "offset", rows, |row| row.offset);
    check_ints(table, "errno", rows, |row| row.errno.map(|errno| errno.get().into()));
    check_ints(table, "dur_ns", rows, |row| Some(trace.slices.span(row.slice).duration_ns()));
}

const DRAWING: &str = "
    rank 0 step      00001111
    rank 0 cpu 1     aaaabbbb
    rank 0 launch 1  .C......
    rank 0 stream 7  ..CC.HHH
    rank 1 cpu 1     ..aa....";

#[test]
fn tables_are_read_back_as_they_were() {
    check(&drawn(DRAWING));
    check(&drawn("rank 0 cpu 1 aa..\nrank 0 samples 1 f.G."));
    check(&Trace::default());
}

/// A file of the checkout, opened.
fn opened(path: &str) -> Trace {
    stepscope_import::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).expect("a trace")
}

#[test]
fn what_slices_say_is_read_back() {
    let kineto = opened("crates/fuzz/src/seeds/kineto.json");
    assert_eq!((kineto.synchronizations.len(), kineto.collectives.len(), kineto.instants.len()), (2, 2, 1));
    check(&kineto);
    let dftracer = opened("tests/fixtures/dftracer/wheel-1.0.9.pfw");
    assert!(dftracer.io.iter().any(|call| call.bytes.is_some() && call.offset.is_some()));
    check(&dftracer);
}

#[test]
fn a_folder_that_is_there_keeps_what_else_lies_in_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes"), "mine").unwrap();
    let run = OpenedRun::of(drawn(DRAWING));
    write_tables(&run, &Ranks::default(), folder.path()).unwrap();
    let one_rank = OpenedRun::of(drawn("rank 0 cpu 1 aabb"));
    write_tables(&one_rank, &Ranks::default(), folder.path()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), OF_RANKS.len() + OF_RUN.len() + 1);
    assert_eq!(std::fs::read_dir(folder.path().join("slice")).unwrap().count(), 1, "nothing is left of rank 1");
    assert!(write_tables(&run, &Ranks::default(), &folder.path().join("notes/a")).is_err());
}

#[test]
fn more_rows_than_fit_into_a_batch_are_all_there() {
    let mut builder = stepscope_trace::TraceBuilder::new("long");
    let process = builder.add_process(stepscope_trace::Process::default());
    let track = stepscope_trace::Track::new(stepscope_trace::TrackKind::Thread, process, "main");
    let track = builder.add_track(track);
    for at in 0..200_000_i64 {
        let name = builder.strings.intern(&format!("op {}", at % 70_000));
        builder.add_slice(track, stepscope_trace::SliceKind::Op, name, at * 10, 5);
    }
    let trace = builder.finish();
    check(&trace);
    let mut bytes = Vec::new();
    write_slices(&trace, &mut bytes).unwrap();
    assert!(bytes.len() < 4_000_000, "{} bytes", bytes.len());
}

#[test]
fn real_traces_are_read_back_as_they_were() {
    for path in crate::tests::real_traces() {
        check(&stepscope_import::open(&path).expect("a trace"));
    }
}

#[test]
fn tables_and_columns_have_a_meaning_each() {
    let tables = table_descriptions();
    assert_eq!(tables.len(), OF_RANKS.len() + OF_RUN.len());
    for table in tables {
        assert!(
            table.row.ends_with('.') && table.columns.iter().all(|column| column.doc.ends_with(['.', '…'])),
            "{}",
            table.name
        );
        let names: std::collections::BTreeSet<_> = table.columns.iter().map(|column| &column.name).collect();
        assert_eq!(names.len(), table.columns.len(), "{}", table.name);
    }
}

#[test]
fn the_document_has_every_table_with_its_columns() {
    let document = include_str!("../../../../docs/export.md");
    for table in table_descriptions() {
        let columns: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let row = format!("| `{}` | {} | `{}` |", table.name, table.row.trim_end_matches('.'), columns.join(", "));
        assert!(document.contains(&row), "docs/export.md lacks this row:\n{row}");
    }
}

#[test]
fn tables_are_the_same_when_one_rank_after_the_other_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let ranks = folder.path().join("ranks");
    std::fs::create_dir(&ranks).unwrap();
    for rank in 0..3 {
        let (base, ts) = (1_000_000 + rank, 5 + rank * 3);
        let op = format!(r#"{{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":{ts},"dur":9}}"#);
        let inner = format!(r#"{{"ph":"X","cat":"cpu_op","name":"aten::t{rank}","pid":1,"tid":1,"ts":{ts},"dur":2}}"#);
        let about = format!(r#""distributedInfo": {{"rank": {rank}, "world_size": 3}}, "baseTimeNanoseconds": {base}"#);
        let text = format!(r#"{{{about}, "traceEvents": [{op}, {inner}]}}"#);
        std::fs::write(ranks.join(format!("{rank}.json")), text).unwrap();
    }
    let inputs = [ranks];
    let written = |run: &OpenedRun, name: &str| {
        let path = folder.path().join(name);
        assert_eq!(write_tables(run, &Ranks::default(), &path).unwrap(), 6);
        sums(&path)
    };
    let by_rank = OpenedRun::open(&inputs, &OpenOptions::default(), &Progress::default()).unwrap();
    assert!(!by_rank.has_all_events());
    let whole = OpenedRun::of(stepscope_engine::open_run(&inputs).unwrap());
    // Several processes write the ranks of one folder: one in the place of what it wrote before.
    let together = folder.path().join("together");
    for ranks in ["1", "0,2", "1"] {
        write_tables(&by_rank, &ranks.parse().unwrap(), &together).unwrap();
    }
    std::fs::write(together.join("slice/rank-1-7.parquet"), "of an earlier run").unwrap();
    write_tables(&by_rank, &"1".parse().unwrap(), &together).unwrap();
    let whole = written(&whole, "whole");
    for by_rank in [written(&by_rank, "by-rank"), sums(&together)] {
        assert_eq!(by_rank.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
        let differ = whole.iter().filter(|(name, bytes)| by_rank[*name] != **bytes).map(|(name, _)| name);
        assert_eq!(differ.collect::<Vec<_>>(), Vec::<&String>::new());
    }
}
