//! What a device's own profiler reports: work on the device, calls that enqueue it, waits. As records, and once
//! decoded.
//!
//! A record of [`Tag::Device`](crate::layout::Tag::Device) begins with a word that holds its kind in bits 0–7, the type
//! of device, as PyTorch numbers them, in bits 8–15, and in the upper half how many words follow. Whoever does not know
//! a kind passes over it. Times stand in it as the device's profiler has them: nanoseconds of a clock of its own, which
//! records of [`Tag::DeviceClock`](crate::layout::Tag::DeviceClock) tie to the capture's.

/// Words of the longest record, its first one and the one that says its kind included.
pub const LONGEST: usize = 16;
/// In place of the id of a name: there is none.
const NO_NAME: u32 = u32::MAX;

/// An activity record, and the kind of device that it is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceActivity {
    /// PyTorch's number of the kind of device: 1 CUDA, 6 HIP, 12 XPU … Once a capture is read, HIP is CUDA, as it is to
    /// PyTorch.
    pub device_type: u8,
    /// What it says. Once a capture is read its times are those of the monotonic clock, and its threads are
    /// ordinals.
    pub record: ActivityRecord,
}

/// What an activity record says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ActivityRecord {
    /// A kernel, a memcpy, a memset, or a whole graph ran on the device.
    Work(DeviceWork),
    /// A call of the runtime or of the driver.
    Call(Call),
    /// The host or a stream waited.
    Synchronization(Synchronization),
    /// An event was recorded into a stream.
    EventRecorded(EventRecorded),
    /// The device's profiler itself took time.
    Overhead(Overhead),
    /// A range that the program marked for the device's tools (NVTX).
    Range(Range),
    /// So many activity records were dropped since the one before: there was no room for them.
    Dropped(u64),
}

/// Something ran on the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DeviceWork {
    /// What ran.
    pub kind: WorkKind,
    /// Start, ns.
    pub start_ns: i64,
    /// End, ns.
    pub end_ns: i64,
    /// The device.
    pub device: u32,
    /// Its context.
    pub context: u32,
    /// The stream within the context.
    pub stream: u32,
    /// Joins it with the call that enqueued it.
    pub correlation: u32,
    /// The graph that it was launched with, as the device's profiler numbers them; 0 when none.
    pub graph: u32,
    /// Its node in the graph; 0 when none.
    pub graph_node: u64,
}

/// What ran on the device, with what is known of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum WorkKind {
    /// A function.
    Kernel {
        /// Id of its name; an index into the capture's names.
        name: Option<u32>,
        /// Blocks in x, y, z.
        grid: [u32; 3],
        /// Threads of a block in x, y, z.
        block: [u32; 3],
        /// Registers a thread.
        registers: u32,
        /// Bytes of shared memory a block that the code declares.
        static_shared_bytes: u32,
        /// And that the launch asked for.
        dynamic_shared_bytes: u32,
    },
    /// A memcpy.
    Memcpy {
        /// Bytes.
        bytes: u64,
        /// Where from and where to.
        direction: Direction,
        /// What kind of memory it reads.
        source: MemoryKind,
        /// What kind of memory it writes.
        destination: MemoryKind,
        /// The devices of both sides of a memcpy between devices.
        devices: Option<(u32, u32)>,
    },
    /// A memset.
    Memset {
        /// Bytes.
        bytes: u64,
        /// What kind of memory it sets.
        memory: MemoryKind,
    },
    /// All of a graph, where its nodes are not told.
    #[default]
    Graph,
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $value:literal $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(u8)]
        pub enum $name { $($(#[$item_doc])* $item = $value,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$item),*];

            /// The one with this number; of a number that is not known the one that says so.
            pub fn from_number(number: u8) -> Self {
                match number { $($value => Self::$item,)* _ => Self::default() }
            }

            /// Its name in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$item => $text,)* }
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Self {
                match name { $($text => Self::$item,)* _ => Self::default() }
            }
        }
    };
}

numbered! {
    /// Where a memcpy goes, in CUPTI's numbers.
    Direction {
        /// Not known.
        #[default]
        Unknown = 0 "unknown";
        /// Host to device.
        HostToDevice = 1 "HtoD";
        /// Device to host.
        DeviceToHost = 2 "DtoH";
        /// Host to array.
        HostToArray = 3 "HtoA";
        /// Array to host.
        ArrayToHost = 4 "AtoH";
        /// Array to array.
        ArrayToArray = 5 "AtoA";
        /// Array to device.
        ArrayToDevice = 6 "AtoD";
        /// Device to array.
        DeviceToArray = 7 "DtoA";
        /// Within a device.
        DeviceToDevice = 8 "DtoD";
        /// Within the host.
        HostToHost = 9 "HtoH";
        /// Between devices.
        PeerToPeer = 10 "PtoP";
    }
}

numbered! {
    /// A kind of memory, in CUPTI's numbers.
    MemoryKind {
        /// Not known.
        #[default]
        Unknown = 0 "Unknown";
        /// Host memory that may be paged out.
        Pageable = 1 "Pageable";
        /// Host memory that may not.
        Pinned = 2 "Pinned";
        /// Of a device.
        Device = 3 "Device";
        /// An array of a device.
        Array = 4 "Array";
        /// Moved by the driver between host and devices.
        Managed = 5 "Managed";
        /// Of a device, static.
        DeviceStatic = 6 "Device Static";
        /// Moved by the driver, static.
        ManagedStatic = 7 "Managed Static";
    }
}

numbered! {
    /// Whose function was called.
    Api {
        /// The driver's.
        #[default]
        Driver = 0 "driver";
        /// The runtime's.
        Runtime = 1 "runtime";
    }
}

numbered! {
    /// Who waits for what, in CUPTI's numbers and Kineto's names.
    SynchronizationKind {
        /// Not known.
        #[default]
        Unknown = 0 "Unknown";
        /// The host for an event.
        Event = 1 "Event Sync";
        /// A stream for an event.
        StreamWaitEvent = 2 "Stream Wait Event";
        /// The host for a stream.
        Stream = 3 "Stream Sync";
        /// The host for a context.
        Context = 4 "Context Sync";
    }
}

/// A call of the runtime or of the driver, on a thread of the host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Call {
    /// Whose function.
    pub api: Api,
    /// Id of its name.
    pub name: Option<u32>,
    /// Start, ns.
    pub start_ns: i64,
    /// End, ns.
    pub end_ns: i64,
    /// The thread: see [`Handle`].
    pub thread: u32,
    /// Joins it with the work that it enqueued.
    pub correlation: u32,
    /// What it returned; 0 is success.
    pub status: u32,
}

/// The host or a stream waited.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Synchronization {
    /// Who for what.
    pub kind: SynchronizationKind,
    /// Start, ns.
    pub start_ns: i64,
    /// End, ns.
    pub end_ns: i64,
    /// The context.
    pub context: u32,
    /// The stream that is waited for, or that waits; `None` where it is all of them.
    pub stream: Option<u32>,
    /// Joins it with the call that waits.
    pub correlation: u32,
    /// The event that is waited for; 0 when none.
    pub event: u32,
    /// Which of the event's recordings; 0 when not told.
    pub event_sync: u64,
}

/// An event was recorded into a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EventRecorded {
    /// The event.
    pub event: u32,
    /// Which of its recordings; 0 when not told.
    pub event_sync: u64,
    /// The context.
    pub context: u32,
    /// The stream.
    pub stream: u32,
    /// Joins it with the call that recorded it.
    pub correlation: u32,
}

/// The device's profiler took time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Overhead {
    /// Id of what it did.
    pub name: Option<u32>,
    /// Start, ns.
    pub start_ns: i64,
    /// End, ns.
    pub end_ns: i64,
    /// The thread, where it is one's: see [`Handle`].
    pub thread: u32,
}

/// A range that the program marked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Range {
    /// Id of its name.
    pub name: Option<u32>,
    /// Start, ns.
    pub start_ns: i64,
    /// End, ns. While it is open 0, and then an activity record of the same range may follow that has an end. Once a
    /// capture is read there is one activity record of a range, and this the last known moment where none is told.
    pub end_ns: i64,
    /// The thread where it began: see [`Handle`].
    pub thread: u32,
    /// The number that the device's profiler has for it; 0 once a capture is read.
    pub id: u32,
    /// It had not ended at `end_ns`.
    pub is_unfinished: bool,
}

/// How device profilers name a thread of the host: the lower half of what `pthread_self` gives, or the system's number
/// of the thread ([`names_threads_by_tid`]). 0 is none. Once a capture is read, the thread's ordinal stands in its
/// place.
pub type Handle = u32;

/// CUDA, to PyTorch.
const CUDA: u8 = 1;
/// AMD's GPUs, which PyTorch names CUDA wherever it speaks of them.
const HIP: u8 = 6;
/// Intel's GPUs.
const XPU: u8 = 12;

/// True of the types of devices whose profilers name threads by the system's numbers: HIP and XPU, and not CUDA.
pub fn names_threads_by_tid(device_type: u8) -> bool {
    matches!(device_type, HIP | XPU)
}

/// The type that PyTorch has for a device of this one: its memory is reported and its events are listed under that.
pub fn as_pytorch_says(device_type: u8) -> u8 {
    if device_type == HIP { CUDA } else { device_type }
}

impl ActivityRecord {
    /// Start and end, ns; `None` for what has no time of its own.
    pub fn span(&self) -> Option<(i64, i64)> {
        match self {
            Self::Work(work) => Some((work.start_ns, work.end_ns)),
            Self::Call(call) => Some((call.start_ns, call.end_ns)),
            Self::Synchronization(wait) => Some((wait.start_ns, wait.end_ns)),
            Self::Overhead(overhead) => Some((overhead.start_ns, overhead.end_ns)),
            Self::Range(range) => Some((range.start_ns, range.end_ns)),
            Self::EventRecorded(_) | Self::Dropped(_) => None,
        }
    }

    /// Start and end, to be changed.
    pub fn span_mut(&mut self) -> Option<(&mut i64, &mut i64)> {
        match self {
            Self::Work(work) => Some((&mut work.start_ns, &mut work.end_ns)),
            Self::Call(call) => Some((&mut call.start_ns, &mut call.end_ns)),
            Self::Synchronization(wait) => Some((&mut wait.start_ns, &mut wait.end_ns)),
            Self::Overhead(overhead) => Some((&mut overhead.start_ns, &mut overhead.end_ns)),
            Self::Range(range) => Some((&mut range.start_ns, &mut range.end_ns)),
            Self::EventRecorded(_) | Self::Dropped(_) => None,
        }
    }

    /// The thread of the host that it lies on; `None` for what lies on none.
    pub fn thread(&self) -> Option<u32> {
        match self {
            Self::Call(Call { thread, .. })
            | Self::Overhead(Overhead { thread, .. })
            | Self::Range(Range { thread, .. }) => Some(*thread),
            _ => None,
        }
    }

    /// The thread of the host that it lies on, to be changed.
    pub fn thread_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Call(Call { thread, .. })
            | Self::Overhead(Overhead { thread, .. })
            | Self::Range(Range { thread, .. }) => Some(thread),
            _ => None,
        }
    }

    /// What joins it with the call that enqueued it, or that it is, to be changed; `None` for what has no such number.
    pub fn correlation_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Work(DeviceWork { correlation, .. })
            | Self::Call(Call { correlation, .. })
            | Self::Synchronization(Synchronization { correlation, .. })
            | Self::EventRecorded(EventRecorded { correlation, .. }) => Some(correlation),
            _ => None,
        }
    }

    /// The id of the name in it, to be changed; `None` for what has none.
    pub fn name_mut(&mut self) -> Option<&mut Option<u32>> {
        match self {
            Self::Work(DeviceWork { kind: WorkKind::Kernel { name, .. }, .. })
            | Self::Call(Call { name, .. })
            | Self::Overhead(Overhead { name, .. })
            | Self::Range(Range { name, .. }) => Some(name),
            _ => None,
        }
    }
}

mod list;
mod words;

pub use list::ActivityList;
pub(crate) use words::split;
pub use words::{Words, decode, encode, lengths};
