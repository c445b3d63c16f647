//! What a device's own profiler reports: work on the device, calls that enqueue it, waits. As records, and once
//! decoded.
//!
//! A record of [`Tag::Device`](crate::layout::Tag::Device) begins with a word that holds its kind in bits 0–7, the type
//! of device, as PyTorch numbers them, in bits 8–15, and in the upper half how many words follow. A reader that does
//! not know a kind passes over it. Times stand in it as the device's profiler has them: nanoseconds of a clock of its
//! own, which records of [`Tag::DeviceClock`](crate::layout::Tag::DeviceClock) tie to the capture's.

mod access;
mod fields;
mod kinds;
mod list;
mod words;

pub use fields::FieldValue;
use fields::{Field, Record, number_at, record};
pub use kinds::{Api, Direction, MemoryKind, SynchronizationKind};
pub use list::ActivityList;
pub(crate) use words::split;
pub use words::{Words, decode, encode, lengths};

/// Words of the longest record, its first one and the one that says its kind included.
pub const LONGEST: usize = 16;

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
    /// Activity records were dropped: there was no room for them.
    Dropped(Dropped),
}

record! {
    /// Something ran on the device.
    DeviceWork {
        /// What ran.
        kind: WorkKind,
        =>
        /// Start, ns.
        start_ns: i64 = [8] column,
        /// End, ns.
        end_ns: i64 = [16] column,
        /// The device.
        device: u32 = [24] column,
        /// Its context.
        context: Option<u32> = [28],
        /// The stream within the context.
        stream: Option<u32> = [32] column,
        /// Joins it with the call that enqueued it; 0 when none.
        correlation: u32 = [36] column,
        /// The graph that it was launched with, as the device's profiler numbers them; 0 when none.
        graph: u32 = [48],
        /// Its node in the graph; 0 when none.
        graph_node: u64 = [40],
    }
}

/// What ran on the device, with what is known of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum WorkKind {
    /// A function.
    Kernel(Kernel),
    /// A memcpy.
    Memcpy(Memcpy),
    /// A memset.
    Memset(Memset),
    /// All of a graph, where its nodes are not told.
    #[default]
    Graph,
}

record! {
    /// A function that ran on the device. What its profiler does not report is `None`.
    Kernel {
        =>
        /// Id of its name; an index into the capture's names.
        name: Option<u32> = [52] column,
        /// Blocks in x, y, z.
        grid: Option<[u32; 3]> = [56, 60, 64],
        /// Threads of a block in x, y, z.
        block: Option<[u32; 3]> = [72, 76, 80],
        /// Registers per thread.
        registers: Option<u32> = [68],
        /// Bytes of shared memory per block that the code declares.
        static_shared_bytes: Option<u32> = [84],
        /// Bytes of shared memory per block that the launch requested; all bytes where `static_shared_bytes` is
        /// unknown.
        dynamic_shared_bytes: Option<u32> = [88],
    }
}

impl Kernel {
    /// Bytes of shared memory per block.
    pub fn shared_bytes(&self) -> Option<u64> {
        let known = [self.static_shared_bytes, self.dynamic_shared_bytes].into_iter().flatten();
        known.map(u64::from).reduce(|a, b| a + b)
    }

    /// As it was read from a file. Files that were written before unknown values had a mark of their own have 0 for
    /// each, and are recognized by a grid of 0.
    pub fn with_unknown_zeros(self) -> Self {
        if self.grid != Some([0; 3]) {
            return self;
        }
        let known = |value: Option<u32>| value.filter(|value| *value != 0);
        Self {
            grid: None,
            block: self.block.filter(|block| *block != [0; 3]),
            registers: known(self.registers),
            static_shared_bytes: known(self.static_shared_bytes),
            dynamic_shared_bytes: known(self.dynamic_shared_bytes),
            ..self
        }
    }
}

record! {
    /// A copy.
    Memcpy {
        =>
        /// Bytes.
        bytes: Option<u64> = [56] column,
        /// Where from and where to.
        direction: Direction = [52],
        /// What kind of memory it reads.
        source: MemoryKind = [53],
        /// What kind of memory it writes.
        destination: MemoryKind = [54],
        /// The devices of both sides of a memcpy between devices.
        devices: Option<(u32, u32)> = [64, 68, 55],
    }
}

record! {
    /// A fill.
    Memset {
        =>
        /// Bytes.
        bytes: Option<u64> = [56] column,
        /// What kind of memory it sets.
        memory: MemoryKind = [52],
    }
}

record! {
    /// A call of the runtime or of the driver, on a thread of the host.
    Call {
        =>
        /// Whose function.
        api: Api = [28] column,
        /// Id of its name.
        name: Option<u32> = [24] column,
        /// Start, ns.
        start_ns: i64 = [8] column,
        /// End, ns.
        end_ns: i64 = [16] column,
        /// The thread: see [`Handle`].
        thread: u32 = [32] column,
        /// Joins it with the work that it enqueued.
        correlation: u32 = [36] column,
        /// What it returned; 0 is success, or not known.
        status: u32 = [40],
    }
}

record! {
    /// The host or a stream waited.
    Synchronization {
        =>
        /// Who for what.
        kind: SynchronizationKind = [40] column,
        /// Start, ns.
        start_ns: i64 = [8] column,
        /// End, ns.
        end_ns: i64 = [16] column,
        /// The context.
        context: Option<u32> = [24],
        /// The stream that is waited for, or that waits; `None` where it is all of them.
        stream: Option<u32> = [28] column,
        /// Joins it with the call that waits.
        correlation: u32 = [32] column,
        /// The event that is waited for; 0 when none.
        event: u32 = [36],
        /// Which of the event's recordings; 0 when not told.
        event_sync: u64 = [48],
    }
}

record! {
    /// An event was recorded into a stream.
    EventRecorded {
        =>
        /// The event.
        event: u32 = [20],
        /// Which of its recordings; 0 when not told.
        event_sync: u64 = [24],
        /// The context.
        context: Option<u32> = [8],
        /// The stream.
        stream: u32 = [12] column,
        /// Joins it with the call that recorded it.
        correlation: u32 = [16] column,
    }
}

record! {
    /// The device's profiler took time.
    Overhead {
        =>
        /// Id of what it did.
        name: Option<u32> = [24] column,
        /// Start, ns.
        start_ns: i64 = [8] column,
        /// End, ns.
        end_ns: i64 = [16] column,
        /// The thread, where it is one's: see [`Handle`].
        thread: u32 = [28] column,
    }
}

record! {
    /// A range that the program marked.
    Range {
        =>
        /// Id of its name.
        name: Option<u32> = [24] column,
        /// Start, ns.
        start_ns: i64 = [8] column,
        /// End, ns. While it is open 0, and then an activity record of the same range may follow that has an end. Once
        /// a capture is read there is one activity record of a range, and this the last known moment where none is
        /// told.
        end_ns: i64 = [16] column,
        /// The thread where it began: see [`Handle`].
        thread: u32 = [28] column,
        /// The number that the device's profiler has for it; 0 once a capture is read.
        id: u32 = [32] column,
        /// It had not ended at `end_ns`.
        is_unfinished: bool = [36] column,
    }
}

record! {
    /// Activity records were dropped.
    Dropped {
        =>
        /// How many since the record before that says so.
        count: u64 = [8] column,
    }
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
