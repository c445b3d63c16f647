//! CUPTI's records: where they have their fields, and what they are as ours.
//!
//! The places are bytes from the beginning of a record, the same from CUDA 11.8 to 13.5.
//! `tests/python/test_cupti_headers.py` reads them and compares them with CUPTI's headers.

use super::kinds::kind;
use super::places::fields;
use stepscope_recorder::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, EventRecorded, Kernel, Memcpy, MemoryKind, Memset, Overhead,
    Synchronization, SynchronizationKind, WorkKind,
};

fields! {
    /// `CUpti_ActivityKernel8` and later.
    kernel {
        registersPerThread = 6 as u16;
        start = 16 as u64;
        end = 24 as u64;
        deviceId = 40 as u32;
        contextId = 44 as u32;
        streamId = 48 as u32;
        gridX = 52 as u32;
        gridY = 56 as u32;
        gridZ = 60 as u32;
        blockX = 64 as u32;
        blockY = 68 as u32;
        blockZ = 72 as u32;
        staticSharedMemory = 76 as u32;
        dynamicSharedMemory = 80 as u32;
        correlationId = 92 as u32;
        name = 104 as u64;
        graphNodeId = 144 as u64;
        graphId = 156 as u32;
    }
}

fields! {
    /// `CUpti_ActivityMemcpy5` and later.
    memcpy {
        copyKind = 4 as u8;
        srcKind = 5 as u8;
        dstKind = 6 as u8;
        bytes = 8 as u64;
        start = 16 as u64;
        end = 24 as u64;
        deviceId = 32 as u32;
        contextId = 36 as u32;
        streamId = 40 as u32;
        correlationId = 44 as u32;
        graphNodeId = 64 as u64;
        graphId = 72 as u32;
    }
}

fields! {
    /// `CUpti_ActivityMemcpyPtoP4`.
    memcpy_between {
        copyKind = 4 as u8;
        srcKind = 5 as u8;
        dstKind = 6 as u8;
        bytes = 8 as u64;
        start = 16 as u64;
        end = 24 as u64;
        deviceId = 32 as u32;
        contextId = 36 as u32;
        streamId = 40 as u32;
        srcDeviceId = 44 as u32;
        dstDeviceId = 52 as u32;
        correlationId = 60 as u32;
        graphNodeId = 72 as u64;
        graphId = 80 as u32;
    }
}

fields! {
    /// `CUpti_ActivityMemset4` and later.
    memset {
        bytes = 8 as u64;
        start = 16 as u64;
        end = 24 as u64;
        deviceId = 32 as u32;
        contextId = 36 as u32;
        streamId = 40 as u32;
        correlationId = 44 as u32;
        memoryKind = 50 as u16;
        graphNodeId = 64 as u64;
        graphId = 72 as u32;
    }
}

fields! {
    /// `CUpti_ActivityGraphTrace` and later.
    graph {
        correlationId = 4 as u32;
        start = 8 as u64;
        end = 16 as u64;
        deviceId = 24 as u32;
        graphId = 28 as u32;
        contextId = 32 as u32;
        streamId = 36 as u32;
    }
}

fields! {
    /// `CUpti_ActivityAPI`.
    call {
        cbid = 4 as u32;
        start = 8 as u64;
        end = 16 as u64;
        threadId = 28 as u32;
        correlationId = 32 as u32;
        returnValue = 36 as u32;
    }
}

fields! {
    /// `CUpti_ActivityOverhead` and later; the thread is of `objectId`, where `objectKind` is a thread.
    overhead {
        overheadKind = 4 as u32;
        objectKind = 8 as u32;
        thread = 16 as u32;
        start = 24 as u64;
        end = 32 as u64;
    }
}

fields! {
    /// `CUpti_ActivitySynchronization` and later; the last field is there from CUDA 12.8 on.
    synchronization {
        r#type = 4 as u32;
        start = 8 as u64;
        end = 16 as u64;
        correlationId = 24 as u32;
        contextId = 28 as u32;
        streamId = 32 as u32;
        cudaEventId = 36 as u32;
        cudaEventSyncId = 40 as u64;
    }
}

fields! {
    /// `CUpti_ActivityCudaEvent` and later; the last field is there from CUDA 12.8 on.
    event {
        correlationId = 4 as u32;
        contextId = 8 as u32;
        streamId = 12 as u32;
        eventId = 16 as u32;
        cudaEventSyncId = 48 as u64;
    }
}

fields! {
    /// `CUpti_ActivityMarker2`; the thread is of `objectId`, where `objectKind` is a thread.
    marker {
        flags = 4 as u32;
        timestamp = 8 as u64;
        id = 16 as u32;
        objectKind = 20 as u32;
        thread = 28 as u32;
        name = 40 as u64;
    }
}

/// In place of a stream or of an event: not applicable.
const INVALID: u32 = u32::MAX;
/// An object that is a thread.
const THREAD: u32 = 2;

/// What a record says, and where its name is to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decoded {
    /// Of which the name is the text at an address of the process.
    Named(ActivityRecord, u64),
    /// A call, of which the name has a number.
    Call(Call, u32),
    /// CUPTI's own time, for something with a number.
    Overhead(Overhead, u32),
    /// Without a name.
    Plain(ActivityRecord),
    /// A range begins or ends, or is a moment.
    Marker(Marker),
    /// Work that has no times: it had not ended, or there was no room to keep them.
    Untimed,
}

/// One end of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marker {
    pub(super) flags: u32,
    pub(super) at_ns: i64,
    pub(super) id: u32,
    pub(super) thread: u32,
    pub(super) name: u64,
}

/// What the record says; `None` for a kind that is not known, or when it is shorter than its kind.
pub(super) fn decode(record: &[u8]) -> Option<Decoded> {
    let number = u32::from_ne_bytes(*record.first_chunk()?);
    Some(match number {
        kind::CONCURRENT_KERNEL | kind::KERNEL => decode_kernel(record)?,
        kind::MEMCPY => timed(decode_memcpy(record)?),
        kind::MEMCPY2 => timed(decode_memcpy_between(record)?),
        kind::MEMSET => timed(decode_memset(record)?),
        kind::GRAPH_TRACE => timed(decode_graph(record)?),
        kind::RUNTIME => decode_call(record, Api::Runtime)?,
        kind::DRIVER => decode_call(record, Api::Driver)?,
        kind::OVERHEAD => decode_overhead(record)?,
        kind::SYNCHRONIZATION => Decoded::Plain(ActivityRecord::Synchronization(decode_synchronization(record)?)),
        kind::CUDA_EVENT => Decoded::Plain(ActivityRecord::EventRecorded(decode_event(record)?)),
        kind::MARKER => Decoded::Marker(decode_marker(record)?),
        _ => return None,
    })
}

/// What records of all kinds of work have, each at places of its own.
macro_rules! work {
    ($layout:ident of $record:ident) => {
        DeviceWork { graph_node: $layout::graphNodeId.of($record)?, ..work!($layout of $record, without a node) }
    };
    ($layout:ident of $record:ident, without a node) => {
        DeviceWork {
            start_ns: $layout::start.of($record)? as i64,
            end_ns: $layout::end.of($record)? as i64,
            device: $layout::deviceId.of($record)?,
            context: Some($layout::contextId.of($record)?),
            stream: Some($layout::streamId.of($record)?),
            correlation: $layout::correlationId.of($record)?,
            graph: $layout::graphId.of($record)?,
            ..DeviceWork::default()
        }
    };
}

fn timed(work: DeviceWork) -> Decoded {
    if has_times(&work) { Decoded::Plain(ActivityRecord::Work(work)) } else { Decoded::Untimed }
}

fn has_times(work: &DeviceWork) -> bool {
    work.start_ns > 0 && work.end_ns >= work.start_ns
}

fn decode_kernel(record: &[u8]) -> Option<Decoded> {
    let decoded = Kernel {
        name: None,
        grid: Some([kernel::gridX.of(record)?, kernel::gridY.of(record)?, kernel::gridZ.of(record)?]),
        block: Some([kernel::blockX.of(record)?, kernel::blockY.of(record)?, kernel::blockZ.of(record)?]),
        registers: Some(kernel::registersPerThread.of(record)?.into()),
        static_shared_bytes: Some(kernel::staticSharedMemory.of(record)?),
        dynamic_shared_bytes: Some(kernel::dynamicSharedMemory.of(record)?),
    };
    let work = DeviceWork { kind: WorkKind::Kernel(decoded), ..work!(kernel of record) };
    let name = kernel::name.of(record)?;
    Some(if has_times(&work) { Decoded::Named(ActivityRecord::Work(work), name) } else { Decoded::Untimed })
}

fn decode_memcpy(record: &[u8]) -> Option<DeviceWork> {
    Some(DeviceWork {
        kind: WorkKind::Memcpy(Memcpy {
            bytes: Some(memcpy::bytes.of(record)?),
            direction: Direction::from_number(memcpy::copyKind.of(record)?),
            source: MemoryKind::from_number(memcpy::srcKind.of(record)?),
            destination: MemoryKind::from_number(memcpy::dstKind.of(record)?),
            devices: None,
        }),
        ..work!(memcpy of record)
    })
}

fn decode_memcpy_between(record: &[u8]) -> Option<DeviceWork> {
    let devices = (memcpy_between::srcDeviceId.of(record)?, memcpy_between::dstDeviceId.of(record)?);
    Some(DeviceWork {
        kind: WorkKind::Memcpy(Memcpy {
            bytes: Some(memcpy_between::bytes.of(record)?),
            direction: Direction::from_number(memcpy_between::copyKind.of(record)?),
            source: MemoryKind::from_number(memcpy_between::srcKind.of(record)?),
            destination: MemoryKind::from_number(memcpy_between::dstKind.of(record)?),
            devices: Some(devices),
        }),
        ..work!(memcpy_between of record)
    })
}

fn decode_memset(record: &[u8]) -> Option<DeviceWork> {
    let memory = u8::try_from(memset::memoryKind.of(record)?).map(MemoryKind::from_number);
    Some(DeviceWork {
        kind: WorkKind::Memset(Memset { bytes: Some(memset::bytes.of(record)?), memory: memory.unwrap_or_default() }),
        ..work!(memset of record)
    })
}

fn decode_graph(record: &[u8]) -> Option<DeviceWork> {
    Some(DeviceWork { kind: WorkKind::Graph, ..work!(graph of record, without a node) })
}

fn decode_call(record: &[u8], api: Api) -> Option<Decoded> {
    let decoded = Call {
        api,
        name: None,
        start_ns: call::start.of(record)? as i64,
        end_ns: call::end.of(record)? as i64,
        thread: call::threadId.of(record)?,
        correlation: call::correlationId.of(record)?,
        status: call::returnValue.of(record)?,
    };
    Some(if decoded.end_ns == 0 { Decoded::Untimed } else { Decoded::Call(decoded, call::cbid.of(record)?) })
}

fn decode_overhead(record: &[u8]) -> Option<Decoded> {
    let is_of_thread = overhead::objectKind.of(record)? == THREAD;
    let decoded = Overhead {
        name: None,
        start_ns: overhead::start.of(record)? as i64,
        end_ns: overhead::end.of(record)? as i64,
        thread: if is_of_thread { overhead::thread.of(record)? } else { 0 },
    };
    Some(Decoded::Overhead(decoded, overhead::overheadKind.of(record)?))
}

fn decode_synchronization(record: &[u8]) -> Option<Synchronization> {
    let stream = synchronization::streamId.of(record)?;
    let event = synchronization::cudaEventId.of(record)?;
    let number = u8::try_from(synchronization::r#type.of(record)?);
    Some(Synchronization {
        kind: number.map(SynchronizationKind::from_number).unwrap_or_default(),
        start_ns: synchronization::start.of(record)? as i64,
        end_ns: synchronization::end.of(record)? as i64,
        context: Some(synchronization::contextId.of(record)?),
        stream: (stream != INVALID).then_some(stream),
        correlation: synchronization::correlationId.of(record)?,
        event: if event == INVALID { 0 } else { event },
        event_sync: synchronization::cudaEventSyncId.of(record).map_or(0, sync_of),
    })
}

/// CUPTI has both for none.
fn sync_of(number: u64) -> u64 {
    if number == u64::from(INVALID) || number == u64::MAX { 0 } else { number }
}

fn decode_event(record: &[u8]) -> Option<EventRecorded> {
    Some(EventRecorded {
        event: event::eventId.of(record)?,
        event_sync: event::cudaEventSyncId.of(record).map_or(0, sync_of),
        context: Some(event::contextId.of(record)?),
        stream: event::streamId.of(record)?,
        correlation: event::correlationId.of(record)?,
    })
}

fn decode_marker(record: &[u8]) -> Option<Marker> {
    let is_of_thread = marker::objectKind.of(record)? == THREAD;
    Some(Marker {
        flags: marker::flags.of(record)?,
        at_ns: marker::timestamp.of(record)? as i64,
        id: marker::id.of(record)?,
        thread: if is_of_thread { marker::thread.of(record)? } else { 0 },
        name: marker::name.of(record)?,
    })
}

#[cfg(test)]
mod tests;
