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

/// Declares device events: what is an event's own, and what many of them have in common. A trace has few distinct ones
/// of the latter, since a program launches the same work again and again.
macro_rules! device_event {
    (
        own { $($(#[$own_doc:meta])* $own:ident: $own_type:ty,)* }
        common { $($(#[$doc:meta])* $common:ident: $type:ty $(= $exact:ident)?,)* }
    ) => {
        /// One device event, as the builder takes it and [`DeviceEvents::get`] gives it.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct DeviceEvent {
            /// Its slice.
            pub slice: SliceId,
            $($(#[$own_doc])* pub $own: $own_type,)*
            /// The device it ran on.
            pub device: DeviceId,
            /// What it spends its time on.
            pub class: DeviceEventClass,
            $($(#[$doc])* pub $common: $type,)*
        }

        impl DeviceEvent {
            /// An event of which only slice, device and class are known.
            pub fn new(slice: SliceId, device: DeviceId, class: DeviceEventClass) -> Self {
                Self { slice, $($own: Default::default(),)* device, class, $($common: Default::default(),)* }
            }
        }

        /// What many device events have in common.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        struct Common {
            device: DeviceId,
            class: DeviceEventClass,
            $($common: device_event!(@stored $type $(= $exact)?),)*
        }

        impl Common {
            fn of(event: &DeviceEvent) -> Self {
                let (device, class) = (event.device, event.class);
                Self { device, class, $($common: device_event!(@store event.$common $(= $exact)?),)* }
            }
        }

        impl DeviceEvents {
            /// Small, and inlined so that what a caller does not look at is not read.
            #[inline(always)]
            fn event(&self, row: &DeviceEventRow) -> DeviceEvent {
                let common = &self.common[row.common as usize];
                DeviceEvent {
                    slice: row.slice,
                    $($own: row.$own,)*
                    device: common.device,
                    class: common.class,
                    $($common: device_event!(@load common.$common $(= $exact)?),)*
                }
            }
        }
    };
    // The bits of a float, so that equal ones are equal.
    (@stored $type:ty = bits) => { Option<u32> };
    (@store $event:ident.$field:ident = bits) => { $event.$field.map(f32::to_bits) };
    (@load $common:ident.$field:ident = bits) => { $common.$field.map(f32::from_bits) };
    (@stored $type:ty) => { $type };
    (@store $event:ident.$field:ident) => { $event.$field };
    (@load $common:ident.$field:ident) => { $common.$field };
}

device_event! {
    own {
        /// The API call that enqueued it.
        launch: Option<SliceId>,
        /// The innermost op open on the launching thread when the launch started.
        op: Option<SliceId>,
    }
    common {
        /// The stream it ran on.
        stream: Option<i64>,
        /// Blocks of the launch in x, y, z.
        grid: Option<[u32; 3]>,
        /// Threads of a block in x, y, z.
        block: Option<[u32; 3]>,
        /// Registers per thread.
        registers: Option<u32>,
        /// Bytes of shared memory per block.
        shared_bytes: Option<u64>,
        /// Blocks of the launch over the device's multiprocessors.
        blocks_per_sm: Option<f32> = bits,
        /// Estimated achieved occupancy, 0..=1.
        occupancy_ratio: Option<f32> = bits,
        /// Bytes copied or filled.
        bytes: Option<i64>,
        /// The CUDA graph it belongs to.
        graph: Option<i64>,
        /// Its node in that graph.
        graph_node: Option<i64>,
        /// Whether it uses tensor cores, by the table of kernel names; always false for copies and fills.
        uses_tensor_cores: bool,
        /// Whether the host memory of a copy is pageable; `None` when not told.
        is_pageable: Option<bool>,
        /// The device's context, as its profiler numbers them.
        context: Option<i64>,
    }
}

/// What may be known of a device event, for tables and lists of all that is known.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFact {
    /// Its name in tables, with the unit.
    pub column: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Its value in an event.
    pub value: FactValue,
}

/// How the value of a [`DeviceFact`] is read, by its type.
#[derive(Clone, Copy, Debug)]
pub enum FactValue {
    /// Sizes in x, y, z.
    Sizes(fn(&DeviceEvent) -> Option<[u32; 3]>),
    /// A whole number.
    Int(fn(&DeviceEvent) -> Option<i64>),
    /// A whole number that may be beyond those.
    Unsigned(fn(&DeviceEvent) -> Option<u64>),
    /// A number.
    Float(fn(&DeviceEvent) -> Option<f32>),
    /// A share of a whole, 0..=1.
    Ratio(fn(&DeviceEvent) -> Option<f32>),
    /// True or false.
    Flag(fn(&DeviceEvent) -> Option<bool>),
}

impl DeviceFact {
    /// All of them, in the order of tables.
    pub const ALL: &[Self] = {
        use FactValue::{Flag, Float, Int, Ratio, Sizes, Unsigned};
        &[
            Self::new("grid", "grid", "Blocks of the launch.", Sizes(|event| event.grid)),
            Self::new("block", "block", "Threads of a block.", Sizes(|event| event.block)),
            Self::new(
                "registers",
                "registers per thread",
                "Registers of a thread.",
                Int(|event| event.registers.map(i64::from)),
            ),
            Self::new(
                "shared_bytes",
                "shared memory bytes",
                "Bytes of shared memory of a block.",
                Unsigned(|event| event.shared_bytes),
            ),
            Self::new(
                "blocks_per_sm",
                "blocks per SM",
                "Blocks of the launch over the device's multiprocessors.",
                Float(|event| event.blocks_per_sm),
            ),
            Self::new(
                "occupancy_ratio",
                "occupancy ratio",
                "Estimated share of a multiprocessor's threads that can be in use.",
                Ratio(|event| event.occupancy_ratio),
            ),
            Self::new("bytes", "bytes", "Bytes copied or filled.", Int(|event| event.bytes)),
            Self::new("graph", "graph", "The CUDA graph that it belongs to.", Int(|event| event.graph)),
            Self::new("graph_node", "graph node", "Its node in that graph.", Int(|event| event.graph_node)),
            Self::new(
                "tensor_cores",
                "tensor cores",
                "Whether its name is of those that use tensor cores.",
                Flag(|event| Some(event.uses_tensor_cores)),
            ),
            Self::new(
                "is_pageable",
                "pageable host memory",
                "Whether the host memory of a copy is pageable; null where it is not told.",
                Flag(|event| event.is_pageable),
            ),
            Self::new(
                "context",
                "context",
                "The device's context, as its profiler numbers them.",
                Int(|event| event.context),
            ),
        ]
    };

    const fn new(column: &'static str, title: &'static str, doc: &'static str, value: FactValue) -> Self {
        Self { column, title, doc, value }
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

    /// Puts the events in order of (start, slice), when starts have changed.
    pub(crate) fn order_by_start(&mut self, start_of: impl Fn(SliceId) -> i64) {
        let key = |row: &DeviceEventRow| (start_of(row.slice), row.slice);
        if !self.rows.is_sorted_by_key(key) {
            // Starts are looked up once, since those of many tracks lie far from each other.
            self.rows.sort_by_cached_key(key);
        }
    }

    /// All events, by start.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = DeviceEvent> + '_ {
        self.rows.iter().map(|row| self.event(row))
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
