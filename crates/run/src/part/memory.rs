//! The columns of allocations and frees, some of which devices' activity records and calls on files use as well. Parts written before
//! there were any do not have them.

use super::device;
use super::reading::column;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt8Array, UInt64Array};
use arrow_schema::{DataType, Field};
use std::sync::Arc;
use stepscope_capture::{DeviceActivity, IoCall, MemoryEvent};

/// The kind of an allocation's or a free's row.
pub(super) const ALLOCATION: &str = "memory";
/// The kind of the row of an allocation that failed.
pub(super) const OUT_OF_MEMORY: &str = "out_of_memory";

pub(super) fn kind(event: &MemoryEvent) -> &'static str {
    if event.is_out_of_memory() { OUT_OF_MEMORY } else { ALLOCATION }
}

pub(super) fn fields() -> [Field; 6] {
    [
        Field::new("address", DataType::UInt64, true),
        Field::new("bytes", DataType::Int64, true),
        Field::new("allocated_bytes", DataType::Int64, true),
        Field::new("reserved_bytes", DataType::Int64, true),
        Field::new("device_type", DataType::UInt8, true),
        Field::new("device_index", DataType::UInt8, true),
    ]
}

/// What may have such columns.
pub(super) type Row<'a> = (Option<&'a MemoryEvent>, Option<&'a DeviceActivity>, Option<&'a IoCall>);

/// The columns, from each row's event, activity record or call.
pub(super) fn columns<'a>(rows: impl Iterator<Item = Row<'a>> + Clone) -> [ArrayRef; 6] {
    let of = || rows.clone().map(|(event, ..)| event);
    let bytes = |(event, activity, call): Row<'_>| match (event, call) {
        (Some(event), _) => Some(event.bytes),
        (None, Some(call)) => call.bytes,
        (None, None) => device::bytes(activity?),
    };
    let device_type =
        |(event, activity, _): Row<'_>| event.map(|event| event.device_type).or_else(|| Some(activity?.device_type));
    let device_index = |(event, activity, _): Row<'_>| match event {
        Some(event) => event.device_index,
        None => device::device_index(activity?),
    };
    [
        Arc::new(of().map(|event| event?.address).collect::<UInt64Array>()),
        Arc::new(rows.clone().map(bytes).collect::<Int64Array>()),
        Arc::new(of().map(|event| event?.allocated_bytes).collect::<Int64Array>()),
        Arc::new(of().map(|event| event?.reserved_bytes).collect::<Int64Array>()),
        Arc::new(rows.clone().map(device_type).collect::<UInt8Array>()),
        Arc::new(rows.clone().map(device_index).collect::<UInt8Array>()),
    ]
}

/// The columns of a batch.
pub(super) struct Columns<'a> {
    address: &'a UInt64Array,
    bytes: &'a Int64Array,
    allocated: &'a Int64Array,
    reserved: &'a Int64Array,
    device_type: &'a UInt8Array,
    device_index: &'a UInt8Array,
}

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Option<Self> {
        Some(Self {
            address: column(batch, "address")?,
            bytes: column(batch, "bytes")?,
            allocated: column(batch, "allocated_bytes")?,
            reserved: column(batch, "reserved_bytes")?,
            device_type: column(batch, "device_type")?,
            device_index: column(batch, "device_index")?,
        })
    }

    /// The event of a row; `None` when what it cannot be without is missing.
    pub(super) fn event(&self, row: usize, thread: u32, time_ns: i64) -> Option<MemoryEvent> {
        let signed = |column: &Int64Array| column.is_valid(row).then(|| column.value(row));
        let small = |column: &UInt8Array| column.is_valid(row).then(|| column.value(row));
        Some(MemoryEvent {
            thread,
            time_ns,
            address: self.address.is_valid(row).then(|| self.address.value(row)),
            bytes: signed(self.bytes)?,
            allocated_bytes: signed(self.allocated),
            reserved_bytes: signed(self.reserved),
            device_type: small(self.device_type)?,
            device_index: small(self.device_index),
        })
    }
}
