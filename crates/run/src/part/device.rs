//! The rows of what devices' profilers reported: stream and correlation in columns, the rest as a JSON object.

use super::reading::{NameIds, Text, column, name_id};
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt8Array};
use arrow_schema::{DataType, Field};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::sync::Arc;
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Dropped, EventRecorded, FieldValue, Kernel, Memcpy, Memset, Overhead, Range,
    Synchronization, WorkKind,
};
use stepscope_capture::{Capture, DeviceActivity};

/// Kinds of rows.
mod kind {
    pub(super) const KERNEL: &str = "kernel";
    pub(super) const MEMCPY: &str = "memcpy";
    pub(super) const MEMSET: &str = "memset";
    pub(super) const GRAPH: &str = "graph";
    pub(super) const RUNTIME_CALL: &str = "runtime_call";
    pub(super) const DRIVER_CALL: &str = "driver_call";
    pub(super) const SYNCHRONIZATION: &str = "synchronization";
    pub(super) const EVENT_RECORDED: &str = "event_record";
    pub(super) const OVERHEAD: &str = "overhead";
    pub(super) const RANGE: &str = "device_range";
    pub(super) const DROPPED: &str = "device_lost";
}

// Fields that have columns of their own.
const STREAM: &str = "stream";
const CORRELATION: &str = "correlation";
const BYTES: &str = "bytes";
const DEVICE: &str = "device";
const COUNT: &str = "count";
const IS_UNFINISHED: &str = "is_unfinished";

/// The kind of an activity record's row.
pub(super) fn kind(activity: &DeviceActivity) -> &'static str {
    match &activity.record {
        ActivityRecord::Work(work) => match work.kind {
            WorkKind::Kernel(_) => kind::KERNEL,
            WorkKind::Memcpy(_) => kind::MEMCPY,
            WorkKind::Memset(_) => kind::MEMSET,
            WorkKind::Graph => kind::GRAPH,
        },
        ActivityRecord::Call(call) => match call.api {
            Api::Runtime => kind::RUNTIME_CALL,
            Api::Driver => kind::DRIVER_CALL,
        },
        ActivityRecord::Synchronization(_) => kind::SYNCHRONIZATION,
        ActivityRecord::EventRecorded(_) => kind::EVENT_RECORDED,
        ActivityRecord::Overhead(_) => kind::OVERHEAD,
        ActivityRecord::Range(_) => kind::RANGE,
        ActivityRecord::Dropped(_) => kind::DROPPED,
    }
}

/// A record of the kind, of which nothing is known; `None` for kinds of rows that are no device's.
fn blank(kind: &str) -> Option<ActivityRecord> {
    let work = |kind: WorkKind| ActivityRecord::Work(DeviceWork { kind, ..DeviceWork::default() });
    let call = |api: Api| ActivityRecord::Call(Call { api, ..Call::default() });
    Some(match kind {
        kind::KERNEL => work(WorkKind::Kernel(Kernel::default())),
        kind::MEMCPY => work(WorkKind::Memcpy(Memcpy::default())),
        kind::MEMSET => work(WorkKind::Memset(Memset::default())),
        kind::GRAPH => work(WorkKind::Graph),
        kind::RUNTIME_CALL => call(Api::Runtime),
        kind::DRIVER_CALL => call(Api::Driver),
        kind::SYNCHRONIZATION => ActivityRecord::Synchronization(Synchronization::default()),
        kind::EVENT_RECORDED => ActivityRecord::EventRecorded(EventRecorded::default()),
        kind::OVERHEAD => ActivityRecord::Overhead(Overhead::default()),
        kind::RANGE => ActivityRecord::Range(Range::default()),
        kind::DROPPED => ActivityRecord::Dropped(Dropped::default()),
        _ => return None,
    })
}

/// The name of an activity record's row; `None` for what has none but its kind.
pub(super) fn name<'a>(activity: &DeviceActivity, names: &'a [String]) -> Option<&'a str> {
    match activity.record {
        ActivityRecord::Synchronization(wait) => Some(wait.kind.as_str()),
        mut record => {
            let id = *record.name_mut()?;
            Some(id.and_then(|id| names.get(id as usize)).map_or("", String::as_str))
        }
    }
}

/// A number that has a column of its own.
fn number(activity: &DeviceActivity, name: &str) -> Option<u64> {
    if let Some(FieldValue::Number(number)) = activity.record.field(name) { Some(number) } else { None }
}

/// The device of an activity record, as far as one byte goes.
pub(super) fn device_index(activity: &DeviceActivity) -> Option<u8> {
    number(activity, DEVICE).and_then(|device| u8::try_from(device).ok())
}

/// Bytes that were copied or filled. The same bits: no number is too large.
pub(super) fn bytes(activity: &DeviceActivity) -> Option<i64> {
    number(activity, BYTES).map(|bytes| bytes as i64)
}

/// How many activity records were dropped.
pub(super) fn dropped(activity: &DeviceActivity) -> Option<i64> {
    number(activity, COUNT).map(|count| count as i64)
}

/// True of a range whose end was not recorded.
pub(super) fn is_unfinished(activity: &DeviceActivity) -> bool {
    number(activity, IS_UNFINISHED) == Some(1)
}

pub(super) fn fields() -> [Field; 3] {
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    [
        Field::new(STREAM, DataType::Int64, true),
        Field::new(CORRELATION, DataType::Int64, true),
        Field::new("device", dictionary, true),
    ]
}

/// What else an activity record says: members of a JSON object.
type Members = Vec<(&'static str, FieldValue<'static>)>;

/// The columns, from each row's activity record.
pub(super) fn columns<'a>(activities: impl Iterator<Item = Option<&'a DeviceActivity>> + Clone) -> [ArrayRef; 3] {
    let mut texts = StringDictionaryBuilder::<Int32Type>::new();
    let mut known: FxHashMap<Members, String> = FxHashMap::default();
    let mut members = Members::new();
    for activity in activities.clone() {
        members.clear();
        if let Some(activity) = activity {
            // The column has room for 255 of them.
            let device = number(activity, DEVICE).filter(|device| u8::try_from(*device).is_err());
            members.extend(device.map(|device| (DEVICE, FieldValue::Number(device))));
            activity.record.for_each_member(|name, value| members.push((name, value)));
        }
        if members.is_empty() {
            texts.append_null();
        } else if let Some(text) = known.get(&members) {
            texts.append_value(text);
        } else {
            texts.append_value(known.entry(members.clone()).or_insert_with(|| json_of(&members)));
        }
    }
    let numbers = |name| activities.clone().map(move |activity| Some(number(activity?, name)? as i64));
    [
        Arc::new(numbers(STREAM).collect::<Int64Array>()),
        Arc::new(numbers(CORRELATION).collect::<Int64Array>()),
        Arc::new(texts.finish()),
    ]
}

fn json_of(members: &Members) -> String {
    let value = |value: &FieldValue<'_>| match value {
        FieldValue::Number(number) => json!(number),
        FieldValue::Sizes(sizes) => json!(sizes),
        FieldValue::Pair(pair) => json!(pair),
        FieldValue::Word(word) => json!(word),
    };
    Value::Object(members.iter().map(|(name, of)| (name.to_string(), value(of))).collect()).to_string()
}

/// `None` for what no field can be.
fn value_of(json: &Value) -> Option<FieldValue<'_>> {
    match json {
        Value::String(word) => Some(FieldValue::Word(word)),
        Value::Array(numbers) => {
            let mut numbers = numbers.iter().map(|number| u32::try_from(number.as_u64()?).ok());
            match [(); 4].map(|()| numbers.next()) {
                [Some(Some(x)), Some(Some(y)), Some(Some(z)), None] => Some(FieldValue::Sizes([x, y, z])),
                [Some(Some(first)), Some(Some(second)), None, None] => Some(FieldValue::Pair([first, second])),
                _ => None,
            }
        }
        number => number.as_u64().map(FieldValue::Number),
    }
}

/// What one row of a device says.
pub(super) struct DeviceRow<'a> {
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) thread: Option<u32>,
    pub(super) value: Option<i64>,
    pub(super) is_unfinished: bool,
}

/// The columns of a batch.
pub(super) struct Columns<'a> {
    /// Numbers that have columns of their own.
    numbers: [(&'static str, &'a Int64Array); 3],
    members: Option<Text<'a>>,
    /// What each text of the dictionary says, of each kind of row that has it.
    records: FxHashMap<(Option<usize>, &'a str), ActivityRecord>,
    device_type: &'a UInt8Array,
    device_index: &'a UInt8Array,
}

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Option<Self> {
        Some(Self {
            numbers: [
                (STREAM, column(batch, STREAM)?),
                (CORRELATION, column(batch, CORRELATION)?),
                (BYTES, column(batch, BYTES)?),
            ],
            members: Text::of(batch, "device"),
            records: FxHashMap::default(),
            device_type: column(batch, "device_type")?,
            device_index: column(batch, "device_index")?,
        })
    }

    /// The activity record of a row; `None` where it has no thread and needs one.
    pub(super) fn activity(
        &mut self,
        at: usize,
        row: &DeviceRow<'a>,
        capture: &mut Capture,
        names: &mut NameIds,
    ) -> Option<DeviceActivity> {
        let index = self.device_index.is_valid(at).then(|| self.device_index.value(at));
        let mut record = self.record(self.members.as_ref().and_then(|members| members.key(at)), row.kind)?;
        let mut set = |name: &str, number: u64| record.set_field(name, FieldValue::Number(number));
        for (name, column) in self.numbers.iter().filter(|(_, column)| column.is_valid(at)) {
            set(name, column.value(at) as u64);
        }
        index.into_iter().for_each(|device| set(DEVICE, device.into()));
        row.value.into_iter().for_each(|count| set(COUNT, count as u64));
        set(IS_UNFINISHED, row.is_unfinished.into());
        record.set_field("kind", FieldValue::Word(row.name));
        if let Some((start_ns, end_ns)) = record.span_mut() {
            (*start_ns, *end_ns) = (row.start_ns, row.end_ns);
        }
        if let Some(thread) = record.thread_mut() {
            *thread = row.thread?;
        }
        if let Some(name) = record.name_mut() {
            *name = Some(row.name).filter(|name| !name.is_empty()).map(|name| name_id(name, "", capture, names));
        }
        let device_type = if self.device_type.is_valid(at) { self.device_type.value(at) } else { 0 };
        Some(DeviceActivity { device_type, record })
    }

    /// A record of this kind with these members.
    fn record(&mut self, members: Option<usize>, kind: &'a str) -> Option<ActivityRecord> {
        if let Some(known) = self.records.get(&(members, kind)) {
            return Some(*known);
        }
        let mut record = blank(kind)?;
        let text = self.members.as_ref().zip(members).map(|(texts, key)| texts.text(key));
        let object: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        for (name, value) in object.as_object().into_iter().flatten() {
            value_of(value).into_iter().for_each(|value| record.set_field(name, value));
        }
        if let ActivityRecord::Work(DeviceWork { kind: WorkKind::Kernel(kernel), .. }) = &mut record {
            *kernel = kernel.with_unknown_zeros();
        }
        self.records.insert((members, kind), record);
        Some(record)
    }
}

/// Whether rows of this kind are a device's.
pub(super) fn is_device(kind: &str) -> bool {
    blank(kind).is_some()
}
