//! Allocations and frees as the framework's allocators report them.

use crate::{DeviceId, SliceId, StackId, TrackId};

/// One allocation (`bytes` above 0) or free (below 0); with 0 bytes, a change of what is reserved alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryEvent {
    /// When, ns since the start of the trace.
    pub time_ns: i64,
    /// The thread that asked for it.
    pub track: TrackId,
    /// The device whose memory it is; `None` for the host's.
    pub device: Option<DeviceId>,
    /// Its address; 0 when the source gives none.
    pub address: u64,
    /// Bytes allocated, negative for a free.
    pub bytes: i64,
    /// Bytes in use on that device after it, as the allocator counts.
    pub allocated_bytes: Option<i64>,
    /// Bytes the allocator holds from the device after it.
    pub reserved_bytes: Option<i64>,
    /// The innermost op open on the thread at that moment; resolved by the builder.
    pub op: Option<SliceId>,
    /// The stream that the memory is for, as the source names it.
    pub stream: Option<i64>,
    /// The call stack of the allocation or free, where the source gives one.
    pub stack: Option<StackId>,
}
