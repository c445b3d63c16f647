//! The table of device events: kernels, copies, memsets.

use crate::{DeviceId, SliceId};
use rustc_hash::FxHashMap;

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
    /// The device's context, as its profiler numbers them.
    pub context: Option<i64>,
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
            context: None,
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

/// What many device events have in common: everything but their slice and what that is linked to. A trace has few
/// distinct ones, since a program launches the same work again and again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Common {
    device: DeviceId,
    stream: Option<i64>,
    context: Option<i64>,
    class: DeviceEventClass,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    registers: Option<u32>,
    shared_bytes: Option<u64>,
    /// The bits of a float, so that equal ones are equal.
    blocks_per_sm: Option<u32>,
    occupancy_ratio: Option<u32>,
    bytes: Option<i64>,
    graph: Option<i64>,
    graph_node: Option<i64>,
    uses_tensor_cores: bool,
    is_pageable: Option<bool>,
}

impl Common {
    fn of(event: &DeviceEvent) -> Self {
        Self {
            device: event.device,
            stream: event.stream,
            context: event.context,
            class: event.class,
            grid: event.grid,
            block: event.block,
            registers: event.registers,
            shared_bytes: event.shared_bytes,
            blocks_per_sm: event.blocks_per_sm.map(f32::to_bits),
            occupancy_ratio: event.occupancy_ratio.map(f32::to_bits),
            bytes: event.bytes,
            graph: event.graph,
            graph_node: event.graph_node,
            uses_tensor_cores: event.uses_tensor_cores,
            is_pageable: event.is_pageable,
        }
    }
}

/// One device event: what is its own, and the row of what it has in common with others. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceEventRow {
    pub(crate) slice: SliceId,
    pub(crate) launch: Option<SliceId>,
    pub(crate) op: Option<SliceId>,
    common: u32,
}

/// Device events while a trace is built, in the order of their adding.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceEventRows {
    pub(crate) rows: Vec<DeviceEventRow>,
    common: CommonTable,
}

impl DeviceEventRows {
    /// Adds an event.
    pub(crate) fn add(&mut self, event: &DeviceEvent) {
        let common = self.common.intern(Common::of(event));
        self.rows.push(DeviceEventRow { slice: event.slice, launch: event.launch, op: event.op, common });
    }

    /// Takes the rows out and leaves what they have in common, for [`CommonTable::finish`].
    pub(crate) fn into_parts(self) -> (Vec<DeviceEventRow>, CommonTable) {
        (self.rows, self.common)
    }

    /// Gives every device a new id; different devices stay different.
    pub(crate) fn rename_devices(&mut self, new_id: impl Fn(DeviceId) -> DeviceId) {
        self.common.rows.iter_mut().for_each(|common| common.device = new_id(common.device));
        self.common.ids = self.common.rows.iter().copied().zip(0..).collect();
    }
}

/// What device events have in common, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommonTable {
    rows: Vec<Common>,
    ids: FxHashMap<Common, u32>,
}

impl CommonTable {
    fn intern(&mut self, common: Common) -> u32 {
        let Self { rows, ids } = self;
        *ids.entry(common).or_insert_with(|| {
            rows.push(common);
            u32::try_from(rows.len() - 1).expect("no more than events")
        })
    }

    /// What an event spends its time on.
    pub(crate) fn class(&self, row: &DeviceEventRow) -> DeviceEventClass {
        self.rows[row.common as usize].class
    }

    /// Changes what one event spends its time on.
    pub(crate) fn set_class(&mut self, row: &mut DeviceEventRow, class: DeviceEventClass) {
        row.common = self.intern(Common { class, ..self.rows[row.common as usize] });
    }

    /// The table of `rows`, which are in order of (start, slice).
    pub(crate) fn finish(self, rows: Vec<DeviceEventRow>) -> DeviceEvents {
        DeviceEvents { rows, common: self.rows }
    }
}

/// Kernels, copies and memsets, ordered by (start, slice). Filled by the builder, which resolves `launch` and `op`. 24
/// bytes a row, and 184 for each distinct device, stream, class, launch size …
#[derive(Clone, Debug, Default)]
pub struct DeviceEvents {
    rows: Vec<DeviceEventRow>,
    common: Vec<Common>,
}

impl FromIterator<DeviceEvent> for DeviceEvents {
    /// Of rows that are in order already.
    fn from_iter<I: IntoIterator<Item = DeviceEvent>>(rows: I) -> Self {
        let mut all = DeviceEventRows::default();
        rows.into_iter().for_each(|row| all.add(&row));
        let (rows, common) = all.into_parts();
        common.finish(rows)
    }
}

impl DeviceEvents {
    /// Number of device events.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without any device event.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One event.
    #[inline]
    pub fn get(&self, id: DeviceEventId) -> DeviceEvent {
        self.event(&self.rows[id.index()])
    }

    /// All events, by start.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = DeviceEvent> + '_ {
        self.rows.iter().map(|row| self.event(row))
    }

    /// Small, and inlined so that what a caller does not look at is not read.
    #[inline(always)]
    fn event(&self, row: &DeviceEventRow) -> DeviceEvent {
        let common = &self.common[row.common as usize];
        DeviceEvent {
            slice: row.slice,
            device: common.device,
            stream: common.stream,
            context: common.context,
            class: common.class,
            launch: row.launch,
            op: row.op,
            grid: common.grid,
            block: common.block,
            registers: common.registers,
            shared_bytes: common.shared_bytes,
            blocks_per_sm: common.blocks_per_sm.map(f32::from_bits),
            occupancy_ratio: common.occupancy_ratio.map(f32::from_bits),
            bytes: common.bytes,
            graph: common.graph,
            graph_node: common.graph_node,
            uses_tensor_cores: common.uses_tensor_cores,
            is_pageable: common.is_pageable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Events of few kinds, so that some have all in common.
    fn event() -> impl Strategy<Value = DeviceEvent> {
        let own = (0_u32..9, prop::option::of(0_u32..9), prop::option::of(0_u32..9));
        let shared = (0_u32..2, prop::option::of(0_i64..2), any::<bool>(), prop::option::of(prop::bool::ANY));
        let size = (prop::option::of(prop_oneof![Just(0.0_f32), Just(-0.0), Just(0.5)]), prop::option::of(1_u32..3));
        (own, shared, size).prop_map(|((slice, launch, op), (device, stream, is_copy, flag), (ratio, size))| {
            let class = if is_copy { DeviceEventClass::Memset } else { DeviceEventClass::Compute };
            DeviceEvent {
                stream,
                launch: launch.map(SliceId),
                op: op.map(SliceId),
                grid: size.map(|size| [size, 1, 1]),
                block: size.map(|size| [32, size, 1]),
                registers: size,
                shared_bytes: size.map(u64::from),
                blocks_per_sm: ratio,
                occupancy_ratio: ratio.map(|ratio| ratio / 2.0),
                bytes: size.map(i64::from),
                context: size.map(i64::from),
                graph: stream,
                graph_node: size.map(i64::from),
                uses_tensor_cores: flag == Some(true),
                is_pageable: flag,
                ..DeviceEvent::new(SliceId(slice), DeviceId(device), class)
            }
        })
    }

    proptest! {
        #[test]
        fn events_come_back_as_they_were_added(mut events in prop::collection::vec(event(), 0..20), swaps in any::<bool>()) {
            let mut added = DeviceEventRows::default();
            events.iter().for_each(|event| added.add(event));
            let new_id = |id: DeviceId| if swaps { DeviceId(1 - id.0) } else { id };
            added.rename_devices(new_id);
            let (mut rows, mut common) = added.into_parts();
            for (row, event) in rows.iter_mut().zip(&mut events).step_by(3) {
                common.set_class(row, DeviceEventClass::Communication);
                event.class = DeviceEventClass::Communication;
            }
            events.iter_mut().for_each(|event| event.device = new_id(event.device));
            let classes: Vec<DeviceEventClass> = rows.iter().map(|row| common.class(row)).collect();
            prop_assert_eq!(classes, events.iter().map(|event| event.class).collect::<Vec<_>>());
            let found = common.finish(rows);
            prop_assert_eq!((found.len(), found.is_empty()), (events.len(), events.is_empty()));
            // By their text, which tells 0 from -0.
            let text = |event: DeviceEvent| format!("{event:?}");
            prop_assert_eq!(found.iter().map(text).collect::<Vec<_>>(), events.iter().copied().map(text).collect::<Vec<_>>());
            let by_id = (0..events.len()).map(|at| text(found.get(DeviceEventId::from_index(at))));
            prop_assert_eq!(by_id.collect::<Vec<_>>(), events.iter().copied().map(text).collect::<Vec<_>>());
        }
    }
}
