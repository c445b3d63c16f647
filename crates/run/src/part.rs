//! One process's part: its events as a Parquet table that any tool reads, everything else in the file's metadata.

mod collectives;
mod device;
mod inputs;
mod io;
mod memory;
mod part_bytes;
mod process_metadata;
mod reading;
mod stack_samples;

pub use reading::read_part;
pub(crate) use reading::{PartSummary, part_summary, read_part_head};

use crate::RunError;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt8Array, UInt32Array,
    UInt64Array, new_null_array,
};
use arrow_schema::{DataType, Field, Schema};
use inputs::inputs_column;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use process_metadata::metadata_of;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use stepscope_capture::layout::scope;
use stepscope_capture::{
    Capture, CollectiveOf, DeviceActivity, IoCall, Mark, MemoryEvent, Sample, StackSample, StepRange,
};

/// The key of a part's metadata.
const METADATA_KEY: &str = "stepscope";
/// Rows that are put together and written at once: their values stay in the processor's cache.
const ROWS_PER_BATCH: usize = 1 << 13;
/// Rows that are read at once.
const ROWS_PER_READ: usize = 1 << 16;
/// Distinct inputs are kept once as long as they take no more than this.
const INPUTS_DICTIONARY_BYTES: usize = 32 << 20;

/// One row of a part's table.
struct Row<'a> {
    start_ns: i64,
    dur_ns: i64,
    kind: &'static str,
    name: &'a str,
    overload: Option<&'a str>,
    inputs: Option<u32>,
    scope: Option<u8>,
    thread: Option<u32>,
    step: Option<i64>,
    sequence_number: Option<i64>,
    forward_thread: Option<u64>,
    is_unfinished: bool,
    memory: Option<&'a MemoryEvent>,
    io: Option<&'a IoCall>,
    stack_sample: Option<&'a StackSample>,
    device: Option<DeviceActivity>,
    collective: Option<CollectiveOf>,
    module_class: Option<&'a str>,
    value: Option<i64>,
    is_async: Option<bool>,
}

fn schema() -> Schema {
    let dictionary = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Schema::new(
        [
            Field::new("start_ns", DataType::Int64, false),
            Field::new("dur_ns", DataType::Int64, false),
            Field::new("kind", dictionary(), false),
            Field::new("name", dictionary(), false),
            Field::new("scope", DataType::UInt8, true),
            Field::new("pid", DataType::Int64, false),
            Field::new("tid", DataType::Int64, true),
            Field::new("thread", DataType::UInt32, true),
            Field::new("thread_name", dictionary(), true),
            Field::new("step", DataType::Int64, true),
            Field::new("sequence_number", DataType::Int64, true),
            Field::new("forward_thread", DataType::UInt64, true),
            Field::new("is_unfinished", DataType::Boolean, false),
            Field::new("overload", dictionary(), true),
            Field::new("inputs", dictionary(), true),
            Field::new("collective", dictionary(), true),
            Field::new("collective_sequence_number", DataType::Int64, true),
            Field::new("module_class", dictionary(), true),
            Field::new("value", DataType::Int64, true),
        ]
        .into_iter()
        .chain(memory::fields())
        .chain([Field::new("is_async", DataType::Boolean, true)])
        .chain(device::fields())
        .chain(io::fields())
        .chain(stack_samples::fields())
        .collect::<Vec<_>>(),
    )
}

/// Writes what a process recorded as one Parquet file.
///
/// # Errors
/// When the file cannot be written; what was written is then of no use.
pub fn write_part(path: &Path, capture: &Capture) -> Result<(), RunError> {
    let io = |source| RunError::Io { action: "write the part", source, path: path.into() };
    let file = File::create(path).map_err(io)?;
    let failed = |error: parquet::errors::ParquetError| io(std::io::Error::other(error));
    let metadata = serde_json::to_string(&metadata_of(capture)).map_err(|error| io(error.into()))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(failed)?))
        .set_key_value_metadata(Some(vec![KeyValue::new(METADATA_KEY.into(), metadata)]))
        .set_column_dictionary_enabled("start_ns".into(), false)
        .set_column_encoding("start_ns".into(), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled("dur_ns".into(), false)
        .set_column_encoding("dur_ns".into(), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled("sequence_number".into(), false)
        .set_column_encoding("sequence_number".into(), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_page_size_limit("inputs".into(), INPUTS_DICTIONARY_BYTES)
        .build();
    let schema = Arc::new(schema());
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).map_err(failed)?;
    let mut rows = Vec::with_capacity(ROWS_PER_BATCH);
    let stacks = stack_samples::texts(capture);
    for recorded in recorded_in_order(capture).chunks(ROWS_PER_BATCH) {
        rows.clear();
        rows.extend(recorded.iter().map(|recorded| row_of(recorded, capture)));
        let columns = columns_of(&rows, capture, &stacks).map_err(|error| io(std::io::Error::other(error)))?;
        let batch =
            RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| io(std::io::Error::other(error)))?;
        writer.write(&batch).map_err(failed)?;
    }
    let file = writer.into_inner().map_err(failed)?;
    file.sync_all().map_err(io)
}

/// What becomes a row; rows themselves are made a batch at a time, since they are large.
#[derive(Clone, Copy)]
enum Recorded<'a> {
    /// By its place in the capture, as the last one.
    Event(usize),
    Step(&'a StepRange),
    OptimizerStep(&'a Mark),
    Memory(&'a MemoryEvent),
    Io(&'a IoCall),
    Sample(&'a Sample),
    StackSample(&'a StackSample),
    Device(usize),
}

impl Recorded<'_> {
    /// Thread, start, and duration. What has no time of its own stands where the recording begins.
    fn place(&self, capture: &Capture) -> (Option<u32>, i64, i64) {
        let (thread, start_ns, end_ns) = match self {
            Self::Device(at) => {
                let (start_ns, end_ns) = capture.device.span_of(*at).unwrap_or((capture.opened_ns, capture.opened_ns));
                let thread = capture.device.about()[capture.device.about_of(*at)].record.thread();
                return (thread, start_ns, end_ns.saturating_sub(start_ns).max(0));
            }
            Self::Event(at) => {
                let event = capture.events.at(*at);
                (event.thread, event.start_ns, event.end_ns)
            }
            Self::Step(step) => (step.thread, step.start_ns, step.end_ns),
            Self::OptimizerStep(mark) => (mark.thread, mark.time_ns, mark.time_ns),
            Self::Memory(event) => (event.thread, event.time_ns, event.time_ns),
            Self::Io(call) => (call.thread, call.start_ns, call.end_ns),
            Self::Sample(sample) => (sample.thread, sample.time_ns, sample.time_ns),
            Self::StackSample(sample) => (sample.thread, sample.time_ns, sample.time_ns),
        };
        (Some(thread), start_ns, end_ns.saturating_sub(start_ns).max(0))
    }
}

/// Everything, by (thread, start, longest first); what lies on no thread comes last.
fn recorded_in_order(capture: &Capture) -> Vec<Recorded<'_>> {
    let mut all: Vec<Recorded> = Vec::with_capacity(capture.events.len() + capture.memory.len() + capture.io.len());
    all.extend((0..capture.events.len()).map(Recorded::Event));
    all.extend(capture.steps.iter().map(Recorded::Step));
    all.extend(capture.optimizer_steps.iter().map(Recorded::OptimizerStep));
    all.extend(capture.memory.iter().map(Recorded::Memory));
    all.extend(capture.io.iter().map(Recorded::Io));
    all.extend(capture.samples.iter().map(Recorded::Sample));
    all.extend(capture.stack_samples.iter().map(Recorded::StackSample));
    all.extend((0..capture.device.len()).map(Recorded::Device));
    // Lists that are in order already, one after the other: the sort finds and merges them.
    all.sort_by_key(|recorded| {
        let (thread, start_ns, dur_ns) = recorded.place(capture);
        (thread.unwrap_or(u32::MAX), start_ns.saturating_add(capture.unix_offset_ns), Reverse(dur_ns))
    });
    all
}

fn row_of<'a>(recorded: &Recorded<'a>, capture: &'a Capture) -> Row<'a> {
    let (thread, start_ns, dur_ns) = recorded.place(capture);
    let empty = |kind| Row {
        start_ns: start_ns.saturating_add(capture.unix_offset_ns),
        dur_ns,
        kind,
        name: kind,
        overload: None,
        inputs: None,
        scope: None,
        thread,
        step: None,
        sequence_number: None,
        forward_thread: None,
        is_unfinished: false,
        memory: None,
        io: None,
        stack_sample: None,
        device: None,
        collective: None,
        module_class: None,
        value: None,
        is_async: None,
    };
    let name_of = |name: u32| capture.names.get(name as usize).map_or("", String::as_str);
    match recorded {
        Recorded::Event(at) => {
            let event = capture.events.at(*at);
            let is_collection = event.scope == scope::GARBAGE_COLLECTION;
            let (module_class, name) = split_module(name_of(event.name), event.scope);
            Row {
                name,
                overload: capture
                    .overloads
                    .get(event.name as usize)
                    .map(String::as_str)
                    .filter(|text| !text.is_empty()),
                inputs: event.inputs,
                scope: Some(event.scope),
                sequence_number: event.sequence_number.filter(|_| !is_collection),
                forward_thread: event.forward_thread,
                is_unfinished: event.is_unfinished,
                is_async: Some(event.is_async).filter(|_| !scope::is_call(event.scope)),
                collective: event.collective,
                module_class,
                value: event.sequence_number.filter(|_| is_collection),
                ..empty(kind_of(event.scope))
            }
        }
        Recorded::Step(step) => Row { step: Some(step.number), is_unfinished: step.is_unfinished, ..empty("step") },
        Recorded::OptimizerStep(mark) => Row { step: mark.number, ..empty("optimizer_step") },
        Recorded::Memory(event) => Row { memory: Some(event), ..empty(memory::kind(event)) },
        Recorded::Io(call) => Row { name: call.function.name(), io: Some(call), ..empty(io::KIND) },
        Recorded::Sample(sample) => Row { name: name_of(sample.name), value: Some(sample.value), ..empty("counter") },
        Recorded::StackSample(sample) => {
            let kind = stack_samples::KIND;
            let name = stack_samples::name(sample, capture).unwrap_or(kind);
            Row { name, stack_sample: Some(sample), ..empty(kind) }
        }
        Recorded::Device(at) => {
            let activity = capture.device.at(*at);
            let kind = device::kind(&activity);
            let name = device::name(&activity, &capture.names).unwrap_or(kind);
            let is_unfinished = device::is_unfinished(&activity);
            Row { name, device: Some(activity), value: device::dropped(&activity), is_unfinished, ..empty(kind) }
        }
    }
}

fn kind_of(scope: u8) -> &'static str {
    match scope {
        scope::LABEL => "label",
        scope::PYTHON_CALL => "python_call",
        scope::C_CALL => "c_call",
        scope::MODULE => "module",
        scope::GARBAGE_COLLECTION => "garbage_collection",
        _ => "op",
    }
}

/// Class and path of a module; other names are not taken apart.
fn split_module(name: &str, scope: u8) -> (Option<&str>, &str) {
    let parts = name.split_once(':').filter(|_| scope == scope::MODULE);
    parts.map_or((None, name), |(class, path)| (Some(class), path))
}

fn columns_of(rows: &[Row], capture: &Capture, stacks: &[String]) -> Result<Vec<ArrayRef>, arrow_schema::ArrowError> {
    let thread = |row: &Row| row.thread.and_then(|thread| capture.threads.get(thread as usize));
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.start_ns))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.dur_ns))),
        text_column(rows.iter().map(|row| Some(row.kind)))?,
        text_column(rows.iter().map(|row| Some(row.name)))?,
        Arc::new(UInt8Array::from_iter(rows.iter().map(|row| row.scope))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|_| capture.process.pid as i64))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| Some(thread(row)?.tid as i64).filter(|tid| *tid != 0)))),
        Arc::new(UInt32Array::from_iter(rows.iter().map(|row| row.thread))),
        text_column(rows.iter().map(|row| Some(thread(row)?.name.as_str())))?,
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.step))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.sequence_number))),
        Arc::new(UInt64Array::from_iter(rows.iter().map(|row| row.forward_thread))),
        Arc::new(rows.iter().map(|row| Some(row.is_unfinished)).collect::<BooleanArray>()),
        text_column(rows.iter().map(|row| row.overload))?,
        inputs_column(&rows.iter().map(|row| row.inputs).collect::<Vec<_>>(), &capture.inputs)?,
        collectives::texts(rows.iter().map(|row| row.collective), &capture.names),
        collectives::sequence_numbers(rows.iter().map(|row| row.collective)),
        text_column(rows.iter().map(|row| row.module_class))?,
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.value))),
    ];
    if capture.memory.is_empty() && capture.device.is_empty() && capture.io.is_empty() {
        columns.extend(nulls(&memory::fields(), rows.len()));
    } else {
        columns.extend(memory::columns(rows.iter().map(|row| (row.memory, row.device.as_ref(), row.io))));
    }
    columns.push(Arc::new(rows.iter().map(|row| row.is_async).collect::<BooleanArray>()));
    if capture.device.is_empty() {
        columns.extend(nulls(&device::fields(), rows.len()));
    } else {
        columns.extend(device::columns(rows.iter().map(|row| row.device.as_ref())));
    }
    if capture.io.is_empty() {
        columns.extend(nulls(&io::fields(), rows.len()));
    } else {
        columns.extend(io::columns(rows.iter().map(|row| row.io), &capture.files)?);
    }
    if capture.stack_samples.is_empty() {
        columns.extend(nulls(&stack_samples::fields(), rows.len()));
    } else {
        columns.extend(stack_samples::columns(rows.iter().map(|row| row.stack_sample), stacks)?);
    }
    Ok(columns)
}

/// Columns without any value.
fn nulls(fields: &[Field], rows: usize) -> impl Iterator<Item = ArrayRef> {
    fields.iter().map(move |field| new_null_array(field.data_type(), rows)).collect::<Vec<_>>().into_iter()
}

/// A dictionary column. Texts that repeat are the same text in memory, so that where it lies says which it is; one that
/// lies in two places is twice in the dictionary, which the writer evens out.
fn text_column<'a>(
    texts: impl ExactSizeIterator<Item = Option<&'a str>>,
) -> Result<ArrayRef, arrow_schema::ArrowError> {
    let (mut values, mut keys) = (Vec::new(), Vec::with_capacity(texts.len()));
    let mut known: FxHashMap<(*const u8, usize), i32> = FxHashMap::default();
    let mut last = None;
    for text in texts {
        let Some(text) = text else {
            keys.push(None);
            continue;
        };
        let place = (text.as_ptr(), text.len());
        let key = match last {
            Some((last_place, key)) if last_place == place => key,
            _ => *known.entry(place).or_insert_with(|| {
                values.push(text);
                values.len() as i32 - 1
            }),
        };
        last = Some((place, key));
        keys.push(Some(key));
    }
    let values = StringArray::from_iter_values(values);
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), Arc::new(values))?))
}
