//! One process's part: its events as a Parquet table that any tool reads, everything else in the file's metadata.

mod collectives;
mod inputs;
mod memory;

use crate::RunError;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt8Array,
    UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use collectives::Collectives;
use inputs::{InputsOfPart, inputs_column};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use stepscope_capture::layout::scope;
use stepscope_capture::{
    Capture, CollectiveOf, Event, Mark, MemoryEvent, ProcessIdentity, RingWindow, Sample, State, StepRange, Thread,
    Window,
};

/// The key of a part's metadata.
const METADATA_KEY: &str = "stepscope";
/// Version of the part's format that this code writes, and the newest it reads.
const PART_VERSION: u32 = 2;
const ROWS_PER_BATCH: usize = 1 << 16;
/// Distinct inputs are kept once as long as they take no more than this.
const INPUTS_DICTIONARY_BYTES: usize = 32 << 20;

/// A part's metadata: what holds for the whole process.
#[derive(Serialize, Deserialize)]
struct ProcessMetadata {
    version: u32,
    pid: u64,
    parent_pid: u64,
    process_start_ticks: u64,
    pid_namespace: u64,
    boot_id: String,
    is_killed: bool,
    opened_ns: i64,
    unix_offset_ns: i64,
    last_ns: i64,
    facts: Vec<(String, String)>,
    threads: Vec<ThreadMetadata>,
    windows: Vec<(i64, bool, u64)>,
    dropped: u64,
    is_disk_full: bool,
    damaged: Vec<String>,
    #[serde(default)]
    ring: Option<RingMetadata>,
}

/// What a ring kept of the process.
#[derive(Serialize, Deserialize)]
struct RingMetadata {
    asked_ns: i64,
    since_ns: Option<i64>,
    lost_begins: u64,
}

#[derive(Serialize, Deserialize)]
struct ThreadMetadata {
    tid: u64,
    framework_thread: u64,
    name: String,
}

/// One row of a part's table.
struct Row<'a> {
    start_ns: i64,
    dur_ns: i64,
    kind: &'static str,
    name: &'a str,
    overload: Option<&'a str>,
    inputs: Option<u32>,
    scope: Option<u8>,
    thread: u32,
    step: Option<i64>,
    sequence_number: Option<i64>,
    forward_thread: Option<u64>,
    is_unfinished: bool,
    memory: Option<&'a MemoryEvent>,
    collective: Option<CollectiveOf>,
    module_class: Option<&'a str>,
    value: Option<i64>,
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
            Field::new("tid", DataType::Int64, false),
            Field::new("thread", DataType::UInt32, false),
            Field::new("thread_name", dictionary(), false),
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
    for recorded in recorded_in_order(capture).chunks(ROWS_PER_BATCH) {
        rows.clear();
        rows.extend(recorded.iter().map(|recorded| row_of(recorded, capture)));
        let columns = columns_of(&rows, capture).map_err(|error| io(std::io::Error::other(error)))?;
        let batch =
            RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| io(std::io::Error::other(error)))?;
        writer.write(&batch).map_err(failed)?;
    }
    let file = writer.into_inner().map_err(failed)?;
    file.sync_all().map_err(io)
}

fn metadata_of(capture: &Capture) -> ProcessMetadata {
    let thread = |thread: &Thread| ThreadMetadata {
        tid: thread.tid,
        framework_thread: thread.framework_thread,
        name: thread.name.clone(),
    };
    ProcessMetadata {
        version: PART_VERSION,
        pid: capture.process.pid,
        parent_pid: capture.parent_pid,
        process_start_ticks: capture.process.start_ticks,
        pid_namespace: capture.process.pid_namespace,
        boot_id: format!("{:032x}", u128::from_be_bytes(capture.process.boot_id)),
        is_killed: capture.state != State::Closed,
        opened_ns: capture.opened_ns,
        unix_offset_ns: capture.unix_offset_ns,
        last_ns: capture.last_ns,
        facts: capture.facts.clone(),
        threads: capture.threads.iter().map(thread).collect(),
        windows: capture.windows.iter().map(|window| (window.time_ns, window.is_on, window.cycle)).collect(),
        dropped: capture.dropped,
        is_disk_full: capture.is_disk_full,
        damaged: capture.damaged.clone(),
        ring: capture.ring.map(|ring| RingMetadata {
            asked_ns: ring.asked_ns,
            since_ns: ring.since_ns,
            lost_begins: ring.lost_begins,
        }),
    }
}

/// What becomes a row; rows themselves are made a batch at a time, since they are large.
#[derive(Clone, Copy)]
enum Recorded<'a> {
    Event(&'a Event),
    Step(&'a StepRange),
    OptimizerStep(&'a Mark),
    Memory(&'a MemoryEvent),
    Sample(&'a Sample),
}

impl Recorded<'_> {
    /// Thread, start, and duration.
    fn place(&self) -> (u32, i64, i64) {
        let (thread, start_ns, end_ns) = match self {
            Self::Event(event) => (event.thread, event.start_ns, event.end_ns),
            Self::Step(step) => (step.thread, step.start_ns, step.end_ns),
            Self::OptimizerStep(mark) => (mark.thread, mark.time_ns, mark.time_ns),
            Self::Memory(event) => (event.thread, event.time_ns, event.time_ns),
            Self::Sample(sample) => (sample.thread, sample.time_ns, sample.time_ns),
        };
        (thread, start_ns, end_ns.saturating_sub(start_ns).max(0))
    }
}

/// Everything, by (thread, start, longest first).
fn recorded_in_order(capture: &Capture) -> Vec<Recorded<'_>> {
    let mut all: Vec<Recorded> = Vec::with_capacity(capture.events.len() + capture.memory.len());
    all.extend(capture.events.iter().map(Recorded::Event));
    all.extend(capture.steps.iter().map(Recorded::Step));
    all.extend(capture.optimizer_steps.iter().map(Recorded::OptimizerStep));
    all.extend(capture.memory.iter().map(Recorded::Memory));
    all.extend(capture.samples.iter().map(Recorded::Sample));
    // Lists that are in order already, one after the other: the sort finds and merges them.
    all.sort_by_key(|recorded| {
        let (thread, start_ns, dur_ns) = recorded.place();
        (thread, start_ns.saturating_add(capture.unix_offset_ns), Reverse(dur_ns))
    });
    all
}

fn row_of<'a>(recorded: &Recorded<'a>, capture: &'a Capture) -> Row<'a> {
    let (thread, start_ns, dur_ns) = recorded.place();
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
        collective: None,
        module_class: None,
        value: None,
    };
    let name_of = |name: u32| capture.names.get(name as usize).map_or("", String::as_str);
    match recorded {
        Recorded::Event(event) => {
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
                collective: event.collective,
                module_class,
                value: event.sequence_number.filter(|_| is_collection),
                ..empty(kind_of(event.scope))
            }
        }
        Recorded::Step(step) => Row { step: Some(step.number), is_unfinished: step.is_unfinished, ..empty("step") },
        Recorded::OptimizerStep(mark) => Row { step: mark.number, ..empty("optimizer_step") },
        Recorded::Memory(event) => Row { memory: Some(event), ..empty(memory::kind(event)) },
        Recorded::Sample(sample) => Row { name: name_of(sample.name), value: Some(sample.value), ..empty("counter") },
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

fn columns_of(rows: &[Row], capture: &Capture) -> Result<Vec<ArrayRef>, arrow_schema::ArrowError> {
    let thread = |row: &Row| &capture.threads[row.thread as usize];
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.start_ns))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.dur_ns))),
        text_column(rows.iter().map(|row| Some(row.kind)))?,
        text_column(rows.iter().map(|row| Some(row.name)))?,
        Arc::new(UInt8Array::from_iter(rows.iter().map(|row| row.scope))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|_| capture.process.pid as i64))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| thread(row).tid as i64))),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.thread))),
        text_column(rows.iter().map(|row| Some(thread(row).name.as_str())))?,
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
    columns.extend(memory::columns(rows.iter().map(|row| row.memory)));
    Ok(columns)
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

/// How a part's process ended, and how many rows it has, without reading them.
pub(crate) fn part_summary(path: &Path) -> Result<(State, u64), RunError> {
    guarded(path, || read_summary(path))
}

fn read_summary(path: &Path) -> Result<(State, u64), RunError> {
    let damaged = |reason: String| RunError::DamagedPart { reason, path: path.into() };
    let file =
        File::open(path).map_err(|source| RunError::Io { action: "read the part", source, path: path.into() })?;
    let reader = SerializedFileReader::new(file).map_err(|error| damaged(error.to_string()))?;
    let file_metadata = reader.metadata().file_metadata();
    let metadata = parse_metadata(file_metadata.key_value_metadata(), path)?;
    let state = if metadata.is_killed { State::Killed } else { State::Closed };
    Ok((state, file_metadata.num_rows().max(0) as u64))
}

fn parse_metadata(pairs: Option<&Vec<KeyValue>>, path: &Path) -> Result<ProcessMetadata, RunError> {
    let damaged = |reason: &str| RunError::DamagedPart { reason: reason.into(), path: path.into() };
    let pair = pairs.into_iter().flatten().find(|pair| pair.key == METADATA_KEY);
    let text = pair.and_then(|pair| pair.value.as_deref()).ok_or_else(|| damaged("it was not written by stepscope"))?;
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let version = serde_json::from_str::<Version>(text).map_err(|error| damaged(&error.to_string()))?.version;
    if version > PART_VERSION {
        return Err(RunError::NewerVersion { found: version, supported: PART_VERSION, path: path.into() });
    }
    serde_json::from_str(text).map_err(|error| damaged(&error.to_string()))
}

/// Reads a part back into what [`write_part`] was given.
///
/// # Errors
/// When the file cannot be read, is no part, or is of a newer version.
pub fn read_part(path: &Path) -> Result<Capture, RunError> {
    guarded(path, || read_table(path))
}

/// Runs `read` with damage that makes the Parquet library panic turned into an error.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(RunError::DamagedPart { reason: "the Parquet library gave up on it".into(), path: path.into() })
    })
}

fn read_table(path: &Path) -> Result<Capture, RunError> {
    let damaged = |reason: String| RunError::DamagedPart { reason, path: path.into() };
    let file =
        File::open(path).map_err(|source| RunError::Io { action: "read the part", source, path: path.into() })?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| damaged(error.to_string()))?;
    let metadata = parse_metadata(builder.metadata().file_metadata().key_value_metadata(), path)?;
    let reader = builder.with_batch_size(ROWS_PER_BATCH).build().map_err(|error| damaged(error.to_string()))?;
    let mut capture = empty_capture(metadata).ok_or_else(|| damaged("its boot id is not hexadecimal".into()))?;
    let (mut names, mut inputs) = (NameIds::default(), InputsOfPart::default());
    for batch in reader {
        let batch = batch.map_err(|error| damaged(error.to_string()))?;
        read_batch(&batch, &mut capture, &mut names, &mut inputs)
            .ok_or_else(|| damaged("a column is missing or of another type".into()))?;
    }
    capture.steps.sort_by_key(|step| (step.start_ns, step.number));
    capture.optimizer_steps.sort_by_key(|mark| mark.time_ns);
    capture.samples.sort_by_key(|sample| (sample.time_ns, sample.name));
    Ok(capture)
}

fn empty_capture(metadata: ProcessMetadata) -> Option<Capture> {
    let thread = |(ordinal, thread): (usize, ThreadMetadata)| Thread {
        ordinal: ordinal as u32,
        tid: thread.tid,
        framework_thread: thread.framework_thread,
        name: thread.name,
    };
    let window = |(time_ns, is_on, cycle)| Window { time_ns, is_on, cycle };
    Some(Capture {
        process: ProcessIdentity {
            pid: metadata.pid,
            start_ticks: metadata.process_start_ticks,
            pid_namespace: metadata.pid_namespace,
            boot_id: u128::from_str_radix(&metadata.boot_id, 16).ok()?.to_be_bytes(),
        },
        parent_pid: metadata.parent_pid,
        state: if metadata.is_killed { State::Killed } else { State::Closed },
        opened_ns: metadata.opened_ns,
        unix_offset_ns: metadata.unix_offset_ns,
        last_ns: metadata.last_ns,
        facts: metadata.facts,
        threads: metadata.threads.into_iter().enumerate().map(thread).collect(),
        names: Vec::new(),
        overloads: Vec::new(),
        inputs: Vec::new(),
        events: Vec::new(),
        steps: Vec::new(),
        optimizer_steps: Vec::new(),
        memory: Vec::new(),
        samples: Vec::new(),
        windows: metadata.windows.into_iter().map(window).collect(),
        dropped: metadata.dropped,
        is_disk_full: metadata.is_disk_full,
        damaged: metadata.damaged,
        ring: metadata.ring.map(|ring| RingWindow {
            asked_ns: ring.asked_ns,
            since_ns: ring.since_ns,
            lost_begins: ring.lost_begins,
        }),
    })
}

/// Ids of names by their text and then their overload.
type NameIds = FxHashMap<String, FxHashMap<String, u32>>;

fn read_batch(
    batch: &RecordBatch,
    capture: &mut Capture,
    names: &mut NameIds,
    inputs: &mut InputsOfPart,
) -> Option<()> {
    let start = column::<Int64Array>(batch, "start_ns")?;
    let dur = column::<Int64Array>(batch, "dur_ns")?;
    let (kind, name) = (Text::of(batch, "kind")?, Text::of(batch, "name")?);
    // The capture's ids of the names in this batch's dictionary, once they are used.
    let mut ids: FxHashMap<(usize, Option<usize>), u32> = FxHashMap::default();
    let scope = column::<UInt8Array>(batch, "scope")?;
    let thread = column::<UInt32Array>(batch, "thread")?;
    let step = column::<Int64Array>(batch, "step")?;
    let sequence = column::<Int64Array>(batch, "sequence_number")?;
    let forward = column::<UInt64Array>(batch, "forward_thread")?;
    let unfinished = column::<BooleanArray>(batch, "is_unfinished")?;
    let memory = memory::Columns::of(batch);
    let collectives = Collectives::of(batch);
    let (overload, inputs_text) = (Text::of(batch, "overload"), Text::of(batch, "inputs"));
    let module_class = Text::of(batch, "module_class");
    let value = column::<Int64Array>(batch, "value");
    let value_of = |row: usize| value.filter(|value| value.is_valid(row)).map(|value| value.value(row));
    for row in 0..batch.num_rows() {
        let start_ns = start.value(row).saturating_sub(capture.unix_offset_ns);
        let (end_ns, is_unfinished) = (start_ns.saturating_add(dur.value(row).max(0)), unfinished.value(row));
        let thread = Some(thread.value(row)).filter(|thread| (*thread as usize) < capture.threads.len())?;
        match kind.value(row)? {
            "step" => {
                let number = step.is_valid(row).then(|| step.value(row))?;
                capture.steps.push(StepRange { thread, number, start_ns, end_ns, is_unfinished });
            }
            memory::ALLOCATION | memory::OUT_OF_MEMORY => {
                capture.memory.push(memory.as_ref()?.event(row, thread, start_ns)?);
            }
            "counter" => {
                let name = name_id(name.value(row)?, "", capture, names);
                capture.samples.push(Sample { thread, name, time_ns: start_ns, value: value_of(row)? });
            }
            "optimizer_step" => {
                let number = step.is_valid(row).then(|| step.value(row));
                capture.optimizer_steps.push(Mark { thread, time_ns: start_ns, number });
            }
            _ => {
                let class = module_class.as_ref().and_then(|class| class.value(row));
                let overload_key = overload.as_ref().and_then(|overload| overload.key(row));
                let id = match (class, ids.get(&(name.key(row)?, overload_key))) {
                    (Some(class), _) => name_id(&format!("{class}:{}", name.value(row)?), "", capture, names),
                    (None, Some(id)) => *id,
                    (None, None) => {
                        let overload = overload.as_ref().and_then(|overload| overload.value(row)).unwrap_or_default();
                        let id = name_id(name.value(row)?, overload, capture, names);
                        ids.insert((name.key(row)?, overload_key), id);
                        id
                    }
                };
                let text = inputs_text.as_ref().and_then(|text| text.value(row));
                let inputs = text.and_then(|text| inputs.row_of(text, &mut capture.inputs));
                let collective = collectives.as_ref().and_then(|columns| columns.value(row, capture, names));
                let sequence_number = sequence.is_valid(row).then(|| sequence.value(row));
                capture.events.push(Event {
                    thread,
                    name: id,
                    scope: scope.value(row),
                    start_ns,
                    end_ns,
                    is_unfinished,
                    sequence_number: sequence_number.or_else(|| value_of(row)),
                    forward_thread: forward.is_valid(row).then(|| forward.value(row)),
                    inputs,
                    collective,
                });
            }
        }
    }
    Some(())
}

/// The index of `text` with that overload in the capture's names, where it is added when it is new.
fn name_id(text: &str, overload: &str, capture: &mut Capture, names: &mut NameIds) -> u32 {
    if let Some(id) = names.get(text).and_then(|ids| ids.get(overload)) {
        return *id;
    }
    let id = capture.names.len() as u32;
    names.entry(text.into()).or_default().insert(overload.into(), id);
    capture.names.push(text.into());
    capture.overloads.push(overload.into());
    id
}

fn column<'a, T: 'static>(batch: &'a RecordBatch, name: &str) -> Option<&'a T> {
    batch.column_by_name(name)?.as_any().downcast_ref::<T>()
}

/// A dictionary column of texts.
struct Text<'a> {
    keys: &'a DictionaryArray<Int32Type>,
    values: &'a StringArray,
}

impl<'a> Text<'a> {
    fn of(batch: &'a RecordBatch, name: &str) -> Option<Self> {
        let keys = column::<DictionaryArray<Int32Type>>(batch, name)?;
        Some(Self { keys, values: keys.values().as_any().downcast_ref()? })
    }

    /// Index into the values.
    fn key(&self, row: usize) -> Option<usize> {
        let key = self.keys.is_valid(row).then(|| self.keys.keys().value(row) as usize)?;
        (key < self.values.len()).then_some(key)
    }

    fn value(&self, row: usize) -> Option<&'a str> {
        self.key(row).map(|key| self.values.value(key))
    }
}
