//! A part is read back into what was written.

use super::collectives::Collectives;
use super::inputs::InputsOfPart;
use super::part_bytes::{self, PartBytes};
use super::process_metadata::{PART_VERSION, ProcessMetadata, ThreadMetadata};
use super::{METADATA_KEY, ROWS_PER_READ, device, io, memory, stack_samples};
use crate::RunError;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, BooleanArray, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::path::Path;
use stepscope_capture::device::ActivityList;
use stepscope_capture::{
    Capture, ClockSnapshot, Event, EventList, Mark, ProcessIdentity, ProfilerState, RingWindow, Sample, State,
    StepRange, Thread, Window,
};

/// The most rows that room is made for before they are read.
const MOST_ROWS_AT_ONCE: usize = 16 << 20;
/// Columns of texts that a part may do without.
const OPTIONAL_TEXTS: [&str; 9] =
    ["overload", "inputs", "collective", "module_class", "device", "file", "other_file", "stack", "doing"];
/// The metadata that says of what records calls on files alone that it does: nothing closes it.
const RECORDER: &str = "recorder";
const FILES: &str = "files";
/// What is wrong with a part whose boot id cannot be read.
const BOOT_ID: &str = "its boot id is not hexadecimal";

/// What a part says without its rows being read.
pub(crate) struct PartSummary {
    /// How its process ended; `None` where what was recorded says nothing of that.
    pub(crate) state: Option<State>,
    /// Its rows.
    pub(crate) events: u64,
    /// Which process it is of: several parts may be of one.
    pub(crate) process: (String, u64, u64, u64),
}

/// How a part's process ended, and how many rows it has, without reading them.
pub(crate) fn part_summary(path: &Path) -> Result<PartSummary, RunError> {
    guarded(path, |bytes| read_summary(bytes, path))
}

/// What a part says of its process, without its rows.
pub(crate) fn read_part_head(path: &Path) -> Result<Capture, RunError> {
    let metadata = guarded(path, |bytes| read_footer(bytes, path))?.0;
    empty_capture(metadata).ok_or_else(|| RunError::DamagedPart { reason: BOOT_ID.into(), path: path.into() })
}

fn read_summary(bytes: PartBytes, path: &Path) -> Result<PartSummary, RunError> {
    let (metadata, events) = read_footer(bytes, path)?;
    let is_of_files = metadata.metadata.iter().any(|(key, value)| key == RECORDER && value == FILES);
    let state = if metadata.is_killed { State::Killed } else { State::Closed };
    let process = (metadata.boot_id, metadata.pid_namespace, metadata.pid, metadata.process_start_ticks);
    Ok(PartSummary { state: (!is_of_files).then_some(state), events, process })
}

/// The metadata of a part, and how many rows it has.
fn read_footer(bytes: PartBytes, path: &Path) -> Result<(ProcessMetadata, u64), RunError> {
    let damaged = |reason: String| RunError::DamagedPart { reason, path: path.into() };
    let reader = SerializedFileReader::new(bytes).map_err(|error| damaged(error.to_string()))?;
    let file_metadata = reader.metadata().file_metadata();
    let metadata = parse_metadata(file_metadata.key_value_metadata(), path)?;
    Ok((metadata, file_metadata.num_rows().max(0) as u64))
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
    guarded(path, |bytes| read_table(bytes, path))
}

/// What `read` makes of the bytes of a part. Damage that makes the Parquet library panic is an error, and what a store
/// refuses is no damage: of that the library hands on the text.
fn guarded<T>(path: &Path, read: impl FnOnce(PartBytes) -> Result<T, RunError>) -> Result<T, RunError> {
    let io = |source| RunError::Io { action: "read the part", source, path: path.into() };
    let bytes = part_bytes::open(path).map_err(io)?;
    let file = bytes.file().map_err(io)?;
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(bytes))).unwrap_or_else(|_| {
        Err(RunError::DamagedPart { reason: "the Parquet library gave up on it".into(), path: path.into() })
    });
    read.map_err(|error| file.failure().map_or(error, io))
}

fn read_table(bytes: PartBytes, path: &Path) -> Result<Capture, RunError> {
    let damaged = |reason: String| RunError::DamagedPart { reason, path: path.into() };
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|error| damaged(error.to_string()))?;
    let metadata = parse_metadata(builder.metadata().file_metadata().key_value_metadata(), path)?;
    let rows = usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
    let read = columns_to_read(builder.metadata(), builder.parquet_schema());
    let builder = builder.with_projection(read).with_batch_size(ROWS_PER_READ);
    let reader = builder.build().map_err(|error| damaged(error.to_string()))?;
    let mut capture = empty_capture(metadata).ok_or_else(|| damaged(BOOT_ID.into()))?;
    // Room for all at once, where the file is not damaged: a list that grows is copied again and again.
    capture.events.try_reserve(rows.min(MOST_ROWS_AT_ONCE));
    let (mut names, mut inputs, mut files) = (NameIds::default(), InputsOfPart::default(), io::FileIds::default());
    let mut stacks = stack_samples::StackIds::default();
    for batch in reader {
        let batch = batch.map_err(|error| damaged(error.to_string()))?;
        read_batch(&batch, &mut capture, &mut names, &mut inputs, &mut files, &mut stacks)
            .ok_or_else(|| damaged("a column is missing or of another type".into()))?;
    }
    capture.steps.sort_by_key(|step| (step.start_ns, step.number));
    capture.optimizer_steps.sort_by_key(|mark| mark.time_ns);
    capture.device.sort();
    capture.samples.sort_by_key(|sample| (sample.time_ns, sample.name));
    Ok(capture)
}

/// All columns but the texts that no row has: the reader takes ten times as long for one of those as for any other
/// column.
fn columns_to_read(metadata: &ParquetMetaData, schema: &SchemaDescriptor) -> ProjectionMask {
    let is_empty = |column: usize| {
        let of_groups = metadata.row_groups().iter().map(|group| group.column(column));
        OPTIONAL_TEXTS.contains(&schema.column(column).name())
            && of_groups.map(|column| (column.statistics(), column.num_values())).all(|(statistics, rows)| {
                let nulls = statistics.and_then(Statistics::null_count_opt);
                nulls.is_some_and(|nulls| u64::try_from(rows) == Ok(nulls))
            })
    };
    ProjectionMask::leaves(schema, (0..schema.num_columns()).filter(|column| !is_empty(*column)))
}

fn empty_capture(metadata: ProcessMetadata) -> Option<Capture> {
    let clock = |(monotonic_ns, unix_ns)| ClockSnapshot { monotonic_ns, unix_ns };
    // Older parts kept the first one alone.
    let opened = (metadata.opened_ns, metadata.opened_ns.saturating_add(metadata.unix_offset_ns));
    let clocks = if metadata.clocks.is_empty() { vec![opened] } else { metadata.clocks };
    let thread = |(ordinal, thread): (usize, ThreadMetadata)| Thread {
        ordinal: ordinal as u32,
        tid: thread.tid,
        framework_thread: thread.framework_thread,
        name: thread.name,
        handle: thread.handle,
    };
    let window = |(time_ns, is_on, cycle)| Window { time_ns, is_on, cycle };
    let state = |(thread, since_ns, number)| ProfilerState { thread, since_ns, number };
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
        clocks: clocks.into_iter().map(clock).collect(),
        last_ns: metadata.last_ns,
        metadata: metadata.metadata,
        threads: metadata.threads.into_iter().enumerate().map(thread).collect(),
        names: Vec::new(),
        overloads: Vec::new(),
        inputs: Vec::new(),
        events: EventList::default(),
        steps: Vec::new(),
        optimizer_steps: Vec::new(),
        memory: Vec::new(),
        files: Vec::new(),
        io: Vec::new(),
        samples: Vec::new(),
        stacks: Vec::new(),
        stack_samples: Vec::new(),
        device: ActivityList::default(),
        profiler_states: metadata.profiler_states.into_iter().map(state).collect(),
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
pub(super) type NameIds = FxHashMap<String, FxHashMap<String, u32>>;

fn read_batch(
    batch: &RecordBatch,
    capture: &mut Capture,
    names: &mut NameIds,
    inputs: &mut InputsOfPart,
    files: &mut io::FileIds,
    stacks: &mut stack_samples::StackIds,
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
    let io = io::Columns::of(batch);
    let stack_samples = stack_samples::Columns::of(batch);
    let mut of_devices = device::Columns::of(batch);
    let collectives = Collectives::of(batch);
    let (overload, inputs_text) = (Text::of(batch, "overload"), Text::of(batch, "inputs"));
    let module_class = Text::of(batch, "module_class");
    let value = column::<Int64Array>(batch, "value");
    let is_async = column::<BooleanArray>(batch, "is_async");
    let value_of = |row: usize| value.filter(|value| value.is_valid(row)).map(|value| value.value(row));
    for row in 0..batch.num_rows() {
        let start_ns = start.value(row).saturating_sub(capture.unix_offset_ns);
        let (end_ns, is_unfinished) = (start_ns.saturating_add(dur.value(row).max(0)), unfinished.value(row));
        let known = |thread: &u32| (*thread as usize) < capture.threads.len();
        let thread = thread.is_valid(row).then(|| thread.value(row)).filter(known);
        let kind = kind.value(row)?;
        if device::is_device(kind) {
            let (name, value) = (name.value(row)?, value_of(row));
            let found = device::DeviceRow { kind, name, start_ns, end_ns, thread, value, is_unfinished };
            let activity = of_devices.as_mut()?.activity(row, &found, capture, names)?;
            capture.device.push(activity);
            continue;
        }
        let thread = thread?;
        match kind {
            "step" => {
                let number = step.is_valid(row).then(|| step.value(row))?;
                capture.steps.push(StepRange { thread, number, start_ns, end_ns, is_unfinished });
            }
            io::KIND => {
                let call = (row, name.value(row)?);
                let call = io.as_ref()?.call(call, (thread, start_ns, end_ns), capture, files)?;
                capture.io.push(call);
            }
            memory::ALLOCATION | memory::OUT_OF_MEMORY => {
                capture.memory.push(memory.as_ref()?.event(row, thread, start_ns)?);
            }
            stack_samples::KIND => {
                let sample = stack_samples.as_ref()?.sample(row, (thread, start_ns), (capture, names, stacks));
                capture.stack_samples.push(sample);
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
                let overload = || overload.as_ref().and_then(|overload| overload.value(row)).unwrap_or_default();
                let id = match (class, ids.get(&(name.key(row)?, overload_key))) {
                    (Some(class), _) => name_id(&format!("{class}:{}", name.value(row)?), overload(), capture, names),
                    (None, Some(id)) => *id,
                    (None, None) => {
                        let id = name_id(name.value(row)?, overload(), capture, names);
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
                    is_async: is_async.is_some_and(|is_async| is_async.is_valid(row) && is_async.value(row)),
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
pub(super) fn name_id(text: &str, overload: &str, capture: &mut Capture, names: &mut NameIds) -> u32 {
    if let Some(id) = names.get(text).and_then(|ids| ids.get(overload)) {
        return *id;
    }
    let id = capture.names.len() as u32;
    names.entry(text.into()).or_default().insert(overload.into(), id);
    capture.names.push(text.into());
    capture.overloads.push(overload.into());
    id
}

pub(super) fn column<'a, T: 'static>(batch: &'a RecordBatch, name: &str) -> Option<&'a T> {
    batch.column_by_name(name)?.as_any().downcast_ref::<T>()
}

/// A dictionary column of texts.
pub(super) struct Text<'a> {
    keys: &'a DictionaryArray<Int32Type>,
    values: &'a StringArray,
}

impl<'a> Text<'a> {
    pub(super) fn of(batch: &'a RecordBatch, name: &str) -> Option<Self> {
        let keys = column::<DictionaryArray<Int32Type>>(batch, name)?;
        Some(Self { keys, values: keys.values().as_any().downcast_ref()? })
    }

    /// A text of the dictionary.
    pub(super) fn text(&self, key: usize) -> &'a str {
        self.values.value(key)
    }

    /// Index into the values.
    pub(super) fn key(&self, row: usize) -> Option<usize> {
        let key = self.keys.is_valid(row).then(|| self.keys.keys().value(row) as usize)?;
        (key < self.values.len()).then_some(key)
    }

    pub(super) fn value(&self, row: usize) -> Option<&'a str> {
        self.key(row).map(|key| self.text(key))
    }
}
