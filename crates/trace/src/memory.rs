//! Allocations and frees as the framework's allocators report them.

use crate::{DeviceId, SliceId, TrackId};

/// One allocation (`bytes` above 0) or free (below 0).
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
}
