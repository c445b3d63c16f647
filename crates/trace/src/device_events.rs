//! The table of device events: kernels, copies, memsets.

use crate::{DeviceId, SliceId};

stepscope_base::id_type! {
    /// A row of [`DeviceEvents`].
    DeviceEventId
}

/// What a device event spends its time on. Decided at import: metadata first, then the table of kernel names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeviceEventClass {
    /// A kernel that computes.
    Compute,
    /// A kernel that communicates between ranks.
    Communication,
    /// A copy.
    Memcpy(CopyDirection),
    /// A fill.
    Memset,
}

impl DeviceEventClass {
    /// The class's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Memcpy(_) => "memcpy",
            Self::Memset => "memset",
        }
    }
}

/// Where a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CopyDirection {
    /// Host to device.
    HostToDevice,
    /// Device to host.
    DeviceToHost,
    /// Within a device.
    DeviceToDevice,
    /// Between devices.
    PeerToPeer,
    /// The source does not say.
    Unknown,
}

impl CopyDirection {
    /// The direction's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostToDevice => "host_to_device",
            Self::DeviceToHost => "device_to_host",
            Self::DeviceToDevice => "device_to_device",
            Self::PeerToPeer => "peer_to_peer",
            Self::Unknown => "unknown",
        }
    }
}

/// One device event, as the builder takes it and [`DeviceEvents::get`] gives it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceEvent {
    /// Its slice.
    pub slice: SliceId,
    /// The device it ran on.
    pub device: DeviceId,
    /// The stream it ran on.
    pub stream: Option<i64>,
    /// What it spends its time on.
    pub class: DeviceEventClass,
    /// The API call that enqueued it.
    pub launch: Option<SliceId>,
    /// The innermost op open on the launching thread when the launch started.
    pub op: Option<SliceId>,
    /// Blocks of the launch in x, y, z.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Bytes of shared memory a block.
    pub shared_bytes: Option<u64>,
    /// Blocks of the launch over the device's multiprocessors.
    pub blocks_per_sm: Option<f32>,
    /// Estimated achieved occupancy, 0..=1.
    pub occupancy_ratio: Option<f32>,
    /// Bytes copied or filled.
    pub bytes: Option<i64>,
    /// The CUDA graph it belongs to.
    pub graph: Option<i64>,
    /// Its node in that graph.
    pub graph_node: Option<i64>,
    /// Whether it uses tensor cores, by the table of kernel names; always false for copies and fills.
    pub uses_tensor_cores: bool,
    /// Whether the host memory of a copy is pageable; `None` when not told.
    pub is_pageable: Option<bool>,
}

impl DeviceEvent {
    /// An event of which only slice, device and class are known.
    pub fn new(slice: SliceId, device: DeviceId, class: DeviceEventClass) -> Self {
        Self {
            slice,
            device,
            class,
            stream: None,
            launch: None,
            op: None,
            grid: None,
            block: None,
            registers: None,
            shared_bytes: None,
            blocks_per_sm: None,
            occupancy_ratio: None,
            bytes: None,
            graph: None,
            graph_node: None,
            uses_tensor_cores: false,
            is_pageable: None,
        }
    }
}

/// Kernels, copies and memsets, ordered by (start, slice). Filled by the builder, which resolves `launch` and `op`.
#[derive(Clone, Debug, Default)]
pub struct DeviceEvents {
    rows: Vec<DeviceEvent>,
}

impl FromIterator<DeviceEvent> for DeviceEvents {
    /// Of rows that are in order already.
    fn from_iter<I: IntoIterator<Item = DeviceEvent>>(rows: I) -> Self {
        Self::from_rows(rows.into_iter().collect())
    }
}

impl DeviceEvents {
    pub(crate) fn from_rows(rows: Vec<DeviceEvent>) -> Self {
        Self { rows }
    }

    /// Number of device events.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without any device event.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One event.
    pub fn get(&self, id: DeviceEventId) -> &DeviceEvent {
        &self.rows[id.index()]
    }

    /// All events, by start.
    pub fn iter(&self) -> impl Iterator<Item = &DeviceEvent> {
        self.rows.iter()
    }
}
