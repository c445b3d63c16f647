//! Waits between host, streams and events as the device's profiler reports them.

use crate::{DeviceId, SliceId};

/// Who waits for what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SyncKind {
    /// The host waits for all work of a device.
    Device,
    /// The host waits for all work of a stream.
    Stream,
    /// The host waits for an event.
    Event,
    /// A stream waits for an event of another stream.
    StreamWaitEvent,
    /// The source does not say.
    Unknown,
}

impl SyncKind {
    /// The kind's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Stream => "stream",
            Self::Event => "event",
            Self::StreamWaitEvent => "stream_wait_event",
            Self::Unknown => "unknown",
        }
    }
}

/// One wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Synchronization {
    /// Its slice, on a track of kind `StreamSync`.
    pub slice: SliceId,
    /// Who waits for what.
    pub kind: SyncKind,
    /// The device.
    pub device: DeviceId,
    /// The stream that is waited for, or that waits.
    pub stream: Option<i64>,
    /// For waits on an event: the stream that recorded it.
    pub event_stream: Option<i64>,
    /// The API call that waits; resolved by the builder.
    pub call: Option<SliceId>,
    /// For waits on an event: the API call that recorded it; resolved by the builder.
    pub event_record: Option<SliceId>,
}
