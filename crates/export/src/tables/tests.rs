//! The tables read back by the Parquet reader.

use super::{sheets, write_slices, write_tables};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::path::Path;
use stepscope_trace::Trace;
use stepscope_trace::drawn::drawn;

fn read(path: &Path) -> Vec<RecordBatch> {
    let file = std::fs::File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(1 << 20).build().unwrap();
    reader.map(Result::unwrap).collect()
}

fn ints(batches: &[RecordBatch], column: &str) -> Vec<Option<i64>> {
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

/// Writes every table of `trace` and compares the columns that matter with the trace.
fn check(trace: &Trace) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tables");
    write_tables(trace, &path).unwrap();
    let table = |name: &str| read(&path.join(format!("{name}.parquet")));
    let slices = table("slices");
    assert_eq!(ints(&slices, "start_ns"), trace.slices.start_ns.iter().copied().map(Some).collect::<Vec<_>>());
    assert_eq!(ints(&slices, "dur_ns"), trace.slices.dur_ns.iter().copied().map(Some).collect::<Vec<_>>());
    let names: Vec<_> = trace.slices.ids().map(|id| Some(trace.slice_name(id).to_string())).collect();
    assert_eq!(texts(&slices, "name"), names);
    let parents: Vec<_> = trace.slices.parent.iter().map(|parent| parent.map(|id| i64::from(id.0))).collect();
    assert_eq!(ints(&slices, "parent"), parents);
    let launches: Vec<_> = trace.device_events.iter().map(|event| event.launch.map(|id| i64::from(id.0))).collect();
    assert_eq!(ints(&table("device_events"), "launch"), launches);
    let bytes: Vec<_> = trace.memory.iter().map(|event| Some(event.bytes)).collect();
    assert_eq!(ints(&table("memory"), "bytes"), bytes);
    let steps: Vec<_> = trace.steps.iter().map(|step| Some(step.number)).collect();
    assert_eq!(ints(&table("steps"), "step"), steps);
    let ends: Vec<_> = trace.flows.iter().map(|flow| Some(i64::from(flow.to.0))).collect();
    assert_eq!(ints(&table("flows"), "to"), ends);
    let dims = |id| Some(trace.strings.get(trace.ops.inputs(id).dims).to_string()).filter(|text| !text.is_empty());
    let dims: Vec<_> = trace.ops.info.iter().map(|info| dims(info.inputs)).collect();
    assert_eq!(texts(&table("ops"), "input_dims"), dims);
    let stacks = trace.stack_samples.iter().map(|of| Some(trace.stacks.text(of.stack?, &trace.strings)));
    assert_eq!(texts(&table("stack_samples"), "stack"), stacks.collect::<Vec<_>>());
    let samples: usize = trace.counters.iter().map(|counter| counter.value.len()).sum();
    assert_eq!(ints(&table("counters"), "time_ns").len(), samples);
    check_waits(trace, &table("synchronizations"));
    check_collectives(trace, &table("collectives"));
    check_io(trace, &table("io"));
    let instants = table("instants");
    assert_eq!(ints(&instants, "time_ns"), trace.instants.time_ns.iter().copied().map(Some).collect::<Vec<_>>());
    let names: Vec<_> = trace.instants.name.iter().map(|name| Some(trace.strings.get(*name).to_string())).collect();
    assert_eq!(texts(&instants, "name"), names);
    let tracks: Vec<_> = trace.instants.track.iter().map(|track| Some(i64::from(track.0))).collect();
    assert_eq!(ints(&instants, "track"), tracks);
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), sheets(trace).len());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

fn number(slice: stepscope_trace::SliceId) -> Option<i64> {
    Some(i64::from(slice.0))
}

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

fn check_waits(trace: &Trace, table: &[RecordBatch]) {
    let rows = &trace.synchronizations;
    check_ints(table, "slice", rows, |row| number(row.slice));
    check_texts(table, "name", rows, |row| trace.slice_name(row.slice));
    check_texts(table, "kind", rows, |row| row.kind.as_str());
    check_ints(table, "start_ns", rows, |row| Some(trace.slices.span(row.slice).start_ns));
    check_ints(table, "dur_ns", rows, |row| Some(trace.slices.span(row.slice).duration_ns()));
    check_ints(table, "rank", rows, |row| Some(trace.devices[row.device.index()].rank.into()));
    check_ints(table, "device", rows, |row| Some(trace.devices[row.device.index()].ordinal));
    check_ints(table, "stream", rows, |row| row.stream);
    check_ints(table, "event_stream", rows, |row| row.event_stream);
    check_ints(table, "call", rows, |row| row.call.and_then(number));
    check_ints(table, "event_record", rows, |row| row.event_record.and_then(number));
}

fn check_collectives(trace: &Trace, table: &[RecordBatch]) {
    let rows = &trace.collectives;
    check_ints(table, "slice", rows, |row| number(row.slice));
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

fn check_io(trace: &Trace, table: &[RecordBatch]) {
    let rows = &trace.io;
    check_ints(table, "slice", rows, |row| number(row.slice));
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
    write_tables(&drawn(DRAWING), folder.path()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 13);
    assert!(write_tables(&drawn(DRAWING), &folder.path().join("notes/a")).is_err());
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
