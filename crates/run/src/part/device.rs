//! The rows of what devices' profilers reported: stream and correlation in columns, the rest as a JSON object.

use super::reading::{NameIds, Text, column, name_id};
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt8Array};
use arrow_schema::{DataType, Field};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, EventRecorded, MemoryKind, Overhead, Range, Synchronization,
    SynchronizationKind, WorkKind,
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

/// The kind of an activity record's row.
pub(super) fn kind(activity: &DeviceActivity) -> &'static str {
    match &activity.record {
        ActivityRecord::Work(work) => match work.kind {
            WorkKind::Kernel { .. } => kind::KERNEL,
            WorkKind::Memcpy { .. } => kind::MEMCPY,
            WorkKind::Memset { .. } => kind::MEMSET,
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

/// The name of an activity record's row; `None` for what has none but its kind.
pub(super) fn name<'a>(activity: &DeviceActivity, names: &'a [String]) -> Option<&'a str> {
    let id = match &activity.record {
        ActivityRecord::Synchronization(wait) => return Some(wait.kind.as_str()),
        ActivityRecord::Work(DeviceWork { kind: WorkKind::Kernel { name, .. }, .. })
        | ActivityRecord::Call(Call { name, .. })
        | ActivityRecord::Overhead(Overhead { name, .. })
        | ActivityRecord::Range(Range { name, .. }) => *name,
        _ => return None,
    };
    Some(id.and_then(|id| names.get(id as usize)).map_or("", String::as_str))
}

/// The device of an activity record, as far as one byte goes.
pub(super) fn device_index(activity: &DeviceActivity) -> Option<u8> {
    match &activity.record {
        ActivityRecord::Work(work) => u8::try_from(work.device).ok(),
        _ => None,
    }
}

/// Bytes that were copied or filled.
pub(super) fn bytes(activity: &DeviceActivity) -> Option<i64> {
    match &activity.record {
        ActivityRecord::Work(DeviceWork {
            kind: WorkKind::Memcpy { bytes, .. } | WorkKind::Memset { bytes, .. },
            ..
        }) => {
            // The same bits: no number is too large.
            Some(*bytes as i64)
        }
        _ => None,
    }
}

/// How many activity records were dropped.
pub(super) fn dropped(activity: &DeviceActivity) -> Option<i64> {
    match activity.record {
        ActivityRecord::Dropped(count) => Some(count as i64),
        _ => None,
    }
}

/// True of a range whose end was not recorded.
pub(super) fn is_unfinished(activity: &DeviceActivity) -> bool {
    matches!(activity.record, ActivityRecord::Range(range) if range.is_unfinished)
}

fn stream(activity: &DeviceActivity) -> Option<i64> {
    match &activity.record {
        ActivityRecord::Work(work) => Some(i64::from(work.stream)),
        ActivityRecord::EventRecorded(event) => Some(i64::from(event.stream)),
        ActivityRecord::Synchronization(wait) => wait.stream.map(i64::from),
        _ => None,
    }
}

fn correlation(activity: &DeviceActivity) -> Option<i64> {
    let found = match &activity.record {
        ActivityRecord::Work(work) => work.correlation,
        ActivityRecord::Call(call) => call.correlation,
        ActivityRecord::Synchronization(wait) => wait.correlation,
        ActivityRecord::EventRecorded(event) => event.correlation,
        _ => return None,
    };
    Some(i64::from(found))
}

/// What else an activity record says. Fields that say nothing are left out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
struct ExtraFields<'a> {
    #[serde(skip_serializing_if = "is_default")]
    device: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    context: u32,
    #[serde(skip_serializing_if = "is_default")]
    grid: Option<[u32; 3]>,
    #[serde(skip_serializing_if = "is_default")]
    block: Option<[u32; 3]>,
    #[serde(skip_serializing_if = "is_default")]
    registers: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    static_shared_bytes: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    dynamic_shared_bytes: Option<u32>,
    #[serde(skip_serializing_if = "is_default", borrow)]
    direction: Option<&'a str>,
    #[serde(skip_serializing_if = "is_default")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "is_default")]
    destination: Option<&'a str>,
    #[serde(skip_serializing_if = "is_default")]
    devices: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "is_default")]
    memory: Option<&'a str>,
    #[serde(skip_serializing_if = "is_default")]
    graph: u32,
    #[serde(skip_serializing_if = "is_default")]
    graph_node: u64,
    #[serde(skip_serializing_if = "is_default")]
    event: u32,
    #[serde(skip_serializing_if = "is_default")]
    event_sync: u64,
    #[serde(skip_serializing_if = "is_default")]
    status: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ExtraFields<'static> {
    fn of(activity: &DeviceActivity) -> Self {
        let nothing = Self::default();
        match &activity.record {
            ActivityRecord::Work(work) => {
                let DeviceWork { device, context, graph, graph_node, .. } = *work;
                // The column has room for 255 of them.
                let device = Some(device).filter(|device| u8::try_from(*device).is_err());
                let common = Self { device, context, graph, graph_node, ..nothing };
                match work.kind {
                    WorkKind::Kernel { grid, block, registers, static_shared_bytes, dynamic_shared_bytes, .. } => {
                        Self {
                            grid: Some(grid),
                            block: Some(block),
                            registers: Some(registers),
                            static_shared_bytes: Some(static_shared_bytes),
                            dynamic_shared_bytes: Some(dynamic_shared_bytes),
                            ..common
                        }
                    }
                    WorkKind::Memcpy { direction, source, destination, devices, .. } => Self {
                        direction: Some(direction.as_str()),
                        source: Some(source.as_str()),
                        destination: Some(destination.as_str()),
                        devices,
                        ..common
                    },
                    WorkKind::Memset { memory, .. } => Self { memory: Some(memory.as_str()), ..common },
                    WorkKind::Graph => common,
                }
            }
            ActivityRecord::Call(call) => Self { status: call.status, ..nothing },
            ActivityRecord::Synchronization(Synchronization { context, event, event_sync, .. })
            | ActivityRecord::EventRecorded(EventRecorded { context, event, event_sync, .. }) => {
                Self { context: *context, event: *event, event_sync: *event_sync, ..nothing }
            }
            _ => nothing,
        }
    }
}

pub(super) fn fields() -> [Field; 3] {
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    [
        Field::new("stream", DataType::Int64, true),
        Field::new("correlation", DataType::Int64, true),
        Field::new("device", dictionary, true),
    ]
}

/// The columns, from each row's activity record.
pub(super) fn columns<'a>(activities: impl Iterator<Item = Option<&'a DeviceActivity>> + Clone) -> [ArrayRef; 3] {
    let mut extra = StringDictionaryBuilder::<Int32Type>::new();
    let mut known: FxHashMap<ExtraFields, Option<String>> = FxHashMap::default();
    for activity in activities.clone() {
        let extra_fields = activity.map(ExtraFields::of).filter(|extra| *extra != ExtraFields::default());
        let text = extra_fields
            .and_then(|extra| known.entry(extra).or_insert_with(|| serde_json::to_string(&extra).ok()).as_deref());
        extra.append_option(text);
    }
    [
        Arc::new(activities.clone().map(|activity| stream(activity?)).collect::<Int64Array>()),
        Arc::new(activities.map(|activity| correlation(activity?)).collect::<Int64Array>()),
        Arc::new(extra.finish()),
    ]
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
    stream: &'a Int64Array,
    correlation: &'a Int64Array,
    extra: Option<Text<'a>>,
    /// What each text of the dictionary says.
    decoded: Vec<ExtraFields<'a>>,
    bytes: &'a Int64Array,
    device_type: &'a UInt8Array,
    device_index: &'a UInt8Array,
}

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Option<Self> {
        let extra = Text::of(batch, "device");
        let texts = extra.iter().flat_map(Text::values);
        let decoded = texts.map(|text| serde_json::from_str(text.unwrap_or("{}")).unwrap_or_default()).collect();
        Some(Self {
            stream: column(batch, "stream")?,
            correlation: column(batch, "correlation")?,
            extra,
            decoded,
            bytes: column(batch, "bytes")?,
            device_type: column(batch, "device_type")?,
            device_index: column(batch, "device_index")?,
        })
    }

    /// The activity record of a row; `None` for rows of other kinds.
    pub(super) fn activity(
        &self,
        at: usize,
        row: &DeviceRow<'_>,
        capture: &mut Capture,
        names: &mut NameIds,
    ) -> Option<DeviceActivity> {
        let decoded = self.extra.as_ref().and_then(|extra| self.decoded.get(extra.key(at)?));
        let extra = decoded.copied().unwrap_or_default();
        let DeviceRow { start_ns, end_ns, .. } = *row;
        let whole = |column: &Int64Array| column.is_valid(at).then(|| column.value(at));
        let index = self.device_index.is_valid(at).then(|| u32::from(self.device_index.value(at)));
        let stream = whole(self.stream).map(|stream| stream as u32);
        let correlation = whole(self.correlation).unwrap_or(0) as u32;
        let bytes = whole(self.bytes).unwrap_or(0) as u64;
        let mut name = || Some(row.name).filter(|name| !name.is_empty()).map(|name| name_id(name, "", capture, names));
        let work = |kind: WorkKind| {
            ActivityRecord::Work(DeviceWork {
                kind,
                start_ns,
                end_ns,
                device: extra.device.or(index).unwrap_or(0),
                context: extra.context,
                stream: stream.unwrap_or(0),
                correlation,
                graph: extra.graph,
                graph_node: extra.graph_node,
            })
        };
        let memory_kind = |name: Option<&str>| name.map_or(MemoryKind::Unknown, MemoryKind::from_name);
        let mut call = |api: Api| {
            let (name, status) = (name(), extra.status);
            Some(ActivityRecord::Call(Call { api, name, start_ns, end_ns, thread: row.thread?, correlation, status }))
        };
        let record = match row.kind {
            kind::KERNEL => work(WorkKind::Kernel {
                name: name(),
                grid: extra.grid.unwrap_or_default(),
                block: extra.block.unwrap_or_default(),
                registers: extra.registers.unwrap_or(0),
                static_shared_bytes: extra.static_shared_bytes.unwrap_or(0),
                dynamic_shared_bytes: extra.dynamic_shared_bytes.unwrap_or(0),
            }),
            kind::MEMCPY => work(WorkKind::Memcpy {
                bytes,
                direction: extra.direction.map_or(Direction::Unknown, Direction::from_name),
                source: memory_kind(extra.source),
                destination: memory_kind(extra.destination),
                devices: extra.devices,
            }),
            kind::MEMSET => work(WorkKind::Memset { bytes, memory: memory_kind(extra.memory) }),
            kind::GRAPH => work(WorkKind::Graph),
            kind::RUNTIME_CALL => call(Api::Runtime)?,
            kind::DRIVER_CALL => call(Api::Driver)?,
            kind::SYNCHRONIZATION => ActivityRecord::Synchronization(Synchronization {
                kind: SynchronizationKind::from_name(row.name),
                start_ns,
                end_ns,
                context: extra.context,
                stream,
                correlation,
                event: extra.event,
                event_sync: extra.event_sync,
            }),
            kind::EVENT_RECORDED => ActivityRecord::EventRecorded(EventRecorded {
                event: extra.event,
                event_sync: extra.event_sync,
                context: extra.context,
                stream: stream.unwrap_or(0),
                correlation,
            }),
            kind::OVERHEAD => {
                ActivityRecord::Overhead(Overhead { name: name(), start_ns, end_ns, thread: row.thread? })
            }
            kind::RANGE => {
                let (thread, is_unfinished) = (row.thread?, row.is_unfinished);
                ActivityRecord::Range(Range { name: name(), start_ns, end_ns, thread, id: 0, is_unfinished })
            }
            kind::DROPPED => ActivityRecord::Dropped(row.value.unwrap_or(0) as u64),
            _ => return None,
        };
        let device_type = if self.device_type.is_valid(at) { self.device_type.value(at) } else { 0 };
        Some(DeviceActivity { device_type, record })
    }
}

/// Whether rows of this kind are a device's.
pub(super) fn is_device(kind: &str) -> bool {
    matches!(
        kind,
        kind::KERNEL
            | kind::MEMCPY
            | kind::MEMSET
            | kind::GRAPH
            | kind::RUNTIME_CALL
            | kind::DRIVER_CALL
            | kind::SYNCHRONIZATION
            | kind::EVENT_RECORDED
            | kind::OVERHEAD
            | kind::RANGE
            | kind::DROPPED
    )
}
