//! What one training step does, apart from when: the acts of its threads in order, and the rows that the profiler writes
//! of them with everything already as text that is the same in every step.

use super::kernels::Stream;

/// A thread of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Thread {
    /// Runs the program.
    #[default]
    Main,
    /// Runs the backward pass while the main thread waits for it.
    Autograd,
}

/// What happens next. Numbers are places in the lists of [`Script`]; slices are numbered by `costs_ns`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// A slice of the host begins.
    Begin(u32),
    /// It ends; whatever began inside has ended.
    End(u32),
    /// Memory is taken or given back.
    Memory(u32),
    /// Work is put into its stream.
    Enqueue(u32),
    /// One stream goes on only after everything that is in another now.
    StreamWaits(Stream, Stream),
    /// The host goes on only after everything that is in the stream now.
    HostWaits(Stream),
}

/// An operator or a label.
#[derive(Debug)]
pub(super) struct OpRow {
    pub(super) slice: u32,
    /// The row up to the end of its name.
    pub(super) head: String,
    /// The number of the step belongs to the name.
    pub(super) is_numbered: bool,
    /// Counted over all operators and labels of the step.
    pub(super) external: u32,
    /// Autograd's number, and the thread that it names as the forward one.
    pub(super) sequence: Option<(u32, u8)>,
    /// Arguments that are the same in every step.
    pub(super) arguments: String,
    /// The arrow from forward to backward that begins or ends here.
    pub(super) arrow: Option<u32>,
}

/// A Python call.
#[derive(Debug)]
pub(super) struct PythonRow {
    pub(super) slice: u32,
    /// The row up to the end of its name.
    pub(super) head: String,
    /// Its caller inside the step.
    pub(super) parent: Option<u32>,
    /// Which module of its class it calls.
    pub(super) module: Option<u32>,
}

/// Memory taken or given back.
#[derive(Debug)]
pub(super) struct MemoryRow {
    pub(super) thread: Thread,
    /// Arguments that are the same in every step.
    pub(super) arguments: String,
}

/// A call of the CUDA runtime or driver.
#[derive(Debug)]
pub(super) struct CallRow {
    pub(super) slice: u32,
    pub(super) thread: Thread,
    /// The row up to the end of its name.
    pub(super) head: String,
    pub(super) cbid: u32,
    /// The operator that it was called from.
    pub(super) external: Option<u32>,
    /// Counted from the first of the step, with gaps.
    pub(super) correlation: u32,
    /// Calls that can launch begin an arrow, all others end one.
    pub(super) can_launch: bool,
    pub(super) work: Option<u32>,
    pub(super) sync: Option<Sync>,
}

/// What the device's profiler reports of a call that synchronises.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sync {
    /// The host waited for a stream.
    Stream(Stream),
    /// A stream waits for an event that was recorded in another, by the call with this correlation id of the step.
    Event(Stream, Stream, u32),
}

/// A kernel, copy or memset.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) stream: Stream,
    pub(super) ns: u32,
    /// The row up to its time.
    pub(super) head: String,
    /// Arguments between external id and correlation.
    pub(super) place: String,
    /// Arguments after the correlation.
    pub(super) arguments: String,
    /// Bytes copied or set: the row ends with their rate.
    pub(super) bytes: Option<u64>,
    /// The label around the call.
    pub(super) projection: Option<u32>,
}

/// A label as it is projected onto a stream.
#[derive(Debug)]
pub(super) struct Projection {
    pub(super) stream: Stream,
    /// The row up to the end of its name.
    pub(super) head: String,
    /// The number of the step belongs to the name.
    pub(super) is_numbered: bool,
    pub(super) external: u32,
}

/// One step.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// What happens, in order. Only one thread of the host runs at a time.
    pub(super) acts: Vec<Act>,
    /// What each slice of the host takes by itself, about.
    pub(super) costs_ns: Vec<u32>,
    /// Operators and labels of the main thread, in order of begin.
    pub(super) main: Vec<OpRow>,
    /// Operators and labels of the backward pass's thread, in order of begin.
    pub(super) autograd: Vec<OpRow>,
    /// Python calls, in order of begin.
    pub(super) python: Vec<PythonRow>,
    /// Memory, in order.
    pub(super) memory: Vec<MemoryRow>,
    /// Runtime calls, in order of begin.
    pub(super) calls: Vec<CallRow>,
    /// Device work, in order of launch.
    pub(super) works: Vec<Work>,
    /// Labels with device work, in order of their first launch.
    pub(super) projections: Vec<Projection>,
    /// How many numbers of autograd a step takes.
    pub(super) sequences: u32,
    /// How many forward→backward arrows a step has.
    pub(super) arrows: u32,
    /// How many correlation ids a step takes, gaps included.
    pub(super) correlations: u32,
}

impl Script {
    /// Number of external ids that a step takes.
    pub(super) fn externals(&self) -> u64 {
        (self.main.len() + self.autograd.len()) as u64
    }
}
