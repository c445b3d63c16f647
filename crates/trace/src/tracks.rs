//! Who owns events: processes, devices, tracks.

use crate::{ProcessGroup, SliceId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

stepscope_base::id_type! {
    /// A row of [`crate::Trace::processes`].
    ProcessId
}
stepscope_base::id_type! {
    /// A row of [`crate::Trace::devices`].
    DeviceId
}
stepscope_base::id_type! {
    /// A row of [`crate::Trace::tracks`].
    TrackId
}

/// One operating-system process of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Process {
    /// Position in the job, `0..world_size`. Helpers (DataLoader workers) carry the rank of the process they serve.
    pub rank: u32,
    /// Number of ranks in the job when the source says it.
    pub world_size: Option<u32>,
    /// Process id on its host; `None` when the source gives none.
    pub pid: Option<i64>,
    /// The process that started it, when it is part of the run and of the same rank.
    pub parent_pid: Option<i64>,
    /// Host name.
    pub host: Option<String>,
    /// What a person calls it: `train.py`, `DataLoader worker 0`.
    pub name: String,
    /// How its model runs on several devices; `None` when nothing says so.
    pub data_parallelism: Option<DataParallelism>,
    /// What carries its collectives; `None` when the source does not say, or names another.
    pub comm_backend: Option<CommBackend>,
    /// The groups it is in, in the order that they were made; empty when the source names none.
    pub process_groups: Vec<ProcessGroup>,
    /// What it moved over sockets, in all of the recording; `None` where that was not counted.
    pub sockets: Option<Sockets>,
    /// What the program set for its loop.
    pub settings: Settings,
    /// The environment variables that are set to find a fault and cost time, as `CUDA_LAUNCH_BLOCKING=1`.
    pub debug_variables: Vec<String>,
    /// What the files of Python itself and of installed packages begin with, of those in sampled stacks, as `json/` and
    /// `threading.py`, in order. Empty where that was not recorded.
    pub library_files: Vec<String>,
}

/// What a program set for its loop; `None` where it was not recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Threads that an operator may compute with.
    pub threads: Option<i64>,
    /// Cores of the machine.
    pub cores: Option<i64>,
    /// Those that the thread that runs the steps may use.
    pub cores_allowed: Option<i64>,
    /// Ranks that share the machine, at most.
    pub ranks: Option<i64>,
    /// Whether autograd looks for the operator that made a NaN.
    pub is_anomaly_mode_on: Option<bool>,
    /// Elements of the parameters that the optimizer steps.
    pub parameters: Option<i64>,
    /// Those of them that are 64-bit floats.
    pub parameters_float64: Option<i64>,
    /// Where the machine has several NUMA nodes: what the process may use of them.
    pub numa_nodes: Option<NumaNodes>,
}

/// What a process may use of a machine's NUMA nodes, of which a number has the bit 2^number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NumaNodes {
    /// How many nodes have cores.
    pub with_cores: u32,
    /// Those of the cores that the thread that runs the steps may use.
    pub of_cpus: u64,
    /// Those from which the process may take memory.
    pub of_memory: u64,
}

impl Settings {
    /// Whether most of the parameters are known to be 64-bit floats.
    pub fn is_double(&self) -> bool {
        self.parameters.zip(self.parameters_float64).is_some_and(|(all, double)| 2 * double > all)
    }
}

/// What went over the sockets of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Sockets {
    /// Over the Internet protocols, also to the host itself.
    pub network: SocketSums,
    /// To processes of the same host over Unix sockets.
    pub unix: SocketSums,
}

/// What went over sockets of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SocketSums {
    /// Calls that moved bytes.
    pub count: i64,
    /// Bytes that were received.
    pub received_bytes: i64,
    /// Bytes that were sent.
    pub sent_bytes: i64,
}

impl SocketSums {
    fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            received_bytes: self.received_bytes.saturating_add(other.received_bytes),
            sent_bytes: self.sent_bytes.saturating_add(other.sent_bytes),
        }
    }
}

impl Sockets {
    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self { network: self.network.and(other.network), unix: self.unix.and(other.unix) }
    }
}

/// How copies of a model share a batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum DataParallelism {
    /// One process copies the model to all of its devices in every step (`torch.nn.DataParallel`).
    OneProcess,
    /// Each process has a copy of its own (`DistributedDataParallel`).
    Distributed,
}

/// What carries the collectives of a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum CommBackend {
    /// NCCL, or RCCL, which goes by the same name.
    Nccl,
    /// Gloo: through the host's memory.
    Gloo,
    /// MPI.
    Mpi,
}

/// One accelerator as seen by one rank.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Device {
    /// The rank that uses it.
    pub rank: u32,
    /// Its number within that rank's process.
    pub ordinal: i64,
    /// Product name.
    pub name: Option<String>,
    /// Bytes of device memory.
    pub memory_bytes: Option<i64>,
    /// Number of streaming multiprocessors (compute units).
    pub sm_count: Option<u32>,
    /// Compute capability (major, minor).
    pub compute_capability: Option<(u32, u32)>,
    /// Threads that one multiprocessor can hold.
    pub max_threads_per_sm: Option<u32>,
    /// Threads in a warp (wavefront).
    pub warp_size: Option<u32>,
    /// Registers of one multiprocessor.
    pub registers_per_sm: Option<u32>,
    /// Bytes of shared memory of one multiprocessor.
    pub shared_bytes_per_sm: Option<i64>,
}

/// What a track's slices are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum TrackKind {
    /// A CPU thread.
    Thread,
    /// A device stream: kernels, copies, memsets.
    Stream,
    /// Synchronisations and waits of a stream, as the device's profiler reports them.
    StreamSync,
    /// Labels projected onto a stream.
    Projection,
    /// Anything else: profiler bookkeeping, hardware ranges.
    Other,
}

/// One lane with one owner. Slices of a track nest or are disjoint.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Track {
    /// What its slices are.
    pub kind: TrackKind,
    /// The process that owns it.
    pub process: ProcessId,
    /// Thread id, or the source's own row id; `None` for streams.
    pub tid: Option<i64>,
    /// The thread id the framework itself uses (PyTorch's `Fwd thread id`), when the source tells.
    pub framework_thread: Option<u64>,
    /// The device, for device tracks.
    pub device: Option<DeviceId>,
    /// The stream, for device tracks.
    pub stream: Option<i64>,
    /// What a person calls it.
    pub name: String,
    /// 0 for the track itself; 1, 2 … for the overflow lanes that follow it and hold what overlaps without nesting.
    pub lane: u16,
    /// Its rows in the table of slices.
    pub slices: Range<u32>,
}

impl Track {
    /// A track without slices yet, in lane 0.
    pub fn new(kind: TrackKind, process: ProcessId, name: impl Into<String>) -> Self {
        let name = name.into();
        let (tid, framework_thread, device, stream) = (None, None, None, None);
        Self { kind, process, tid, framework_thread, device, stream, name, lane: 0, slices: 0..0 }
    }

    /// The track's slices, in order.
    pub fn slice_ids(&self) -> impl Iterator<Item = SliceId> + use<> {
        self.slices.clone().map(SliceId)
    }
}
