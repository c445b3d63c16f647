//! The table of slices.

use crate::TrackId;
use serde::{Deserialize, Serialize};
use stepscope_base::{Span, StringId};

stepscope_base::id_type! {
    /// A row of [`Slices`].
    SliceId
}

/// What a slice is. Decided once, by the reader; analyses compare kinds, never names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum SliceKind {
    /// A framework operator or autograd node on a CPU thread.
    Op,
    /// A label the user wrote (`record_function`): never work of its own.
    Annotation,
    /// A label projected onto device time: neither a step nor a kernel.
    DeviceAnnotation,
    /// One iteration, labelled on a host thread.
    Step,
    /// The training loop waits for its next batch.
    DataLoader,
    /// `Optimizer.step` or `Optimizer.zero_grad` as the framework labels them.
    Optimizer,
    /// A Python call.
    PythonFunction,
    /// A call of a module (`nn.Module`); its name is the module's, such as `Linear_0`.
    Module,
    /// A call of the device's runtime API on the host (`cudaLaunchKernel`).
    Runtime,
    /// A call of the device's driver API on the host (`cuLaunchKernel`).
    Driver,
    /// A call of either API in which the host waits for the device (`cudaDeviceSynchronize`).
    HostSync,
    /// A call that reads, writes or manages a file.
    Io,
    /// A synchronisation as the device's profiler reports it, on a device track.
    Synchronization,
    /// A device function.
    Kernel,
    /// A device copy.
    Memcpy,
    /// A device fill.
    Memset,
    /// Time the profiler itself took.
    Overhead,
    /// Anything else, kept as it is.
    Other,
}

impl SliceKind {
    /// True for work done by a device: kernel, copy, memset.
    pub fn is_device_event(self) -> bool {
        matches!(self, Self::Kernel | Self::Memcpy | Self::Memset)
    }

    /// True for calls of a device's API on the host: runtime, driver, synchronisation.
    pub fn is_api_call(self) -> bool {
        matches!(self, Self::Runtime | Self::Driver | Self::HostSync)
    }

    /// The kind's name in files and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Op => "op",
            Self::Annotation => "annotation",
            Self::DeviceAnnotation => "device_annotation",
            Self::Step => "step",
            Self::DataLoader => "dataloader",
            Self::Optimizer => "optimizer",
            Self::PythonFunction => "python_function",
            Self::Module => "module",
            Self::Runtime => "runtime",
            Self::Driver => "driver",
            Self::HostSync => "host_sync",
            Self::Io => "io",
            Self::Synchronization => "synchronization",
            Self::Kernel => "kernel",
            Self::Memcpy => "memcpy",
            Self::Memset => "memset",
            Self::Overhead => "overhead",
            Self::Other => "other",
        }
    }
}

/// Every event with a duration. A row is one slice; rows of one track are adjacent and ordered by
/// (start, longest first), so that a parent stands before its children. Filled by the builder. 32 bytes a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Slices {
    /// The track it lies on.
    pub track: Vec<TrackId>,
    /// Start, ns since the start of the trace.
    pub start_ns: Vec<i64>,
    /// Duration in ns, never negative.
    pub dur_ns: Vec<i64>,
    /// Its name.
    pub name: Vec<StringId>,
    /// What it is.
    pub kind: Vec<SliceKind>,
    /// The slice on the same track that directly contains it.
    pub parent: Vec<Option<SliceId>>,
    /// Number of slices on the same track that contain it.
    pub depth: Vec<u16>,
    /// True when its end was not recorded: it reaches to the last moment its process is known to have lived.
    pub is_unfinished: Vec<bool>,
    /// Where in its source it stands, in bytes of decompressed text, `u64::MAX` when it does not; empty when the source
    /// is no text.
    #[serde(skip)]
    pub source_place: Vec<u64>,
}

impl Slices {
    pub(crate) fn with_capacity(len: usize) -> Self {
        Self {
            track: Vec::with_capacity(len),
            start_ns: Vec::with_capacity(len),
            dur_ns: Vec::with_capacity(len),
            name: Vec::with_capacity(len),
            kind: Vec::with_capacity(len),
            parent: Vec::with_capacity(len),
            depth: Vec::with_capacity(len),
            is_unfinished: Vec::with_capacity(len),
            source_place: Vec::new(),
        }
    }

    /// Forgets all but the first `len`; [`Slices::source_place`] is filled later.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.track.truncate(len);
        self.start_ns.truncate(len);
        self.dur_ns.truncate(len);
        self.name.truncate(len);
        self.kind.truncate(len);
        self.parent.truncate(len);
        self.depth.truncate(len);
        self.is_unfinished.truncate(len);
    }

    /// Number of slices.
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    /// True without any slice.
    pub fn is_empty(&self) -> bool {
        self.start_ns.is_empty()
    }

    /// All ids, in row order.
    pub fn ids(&self) -> impl Iterator<Item = SliceId> + use<> {
        (0..self.len()).map(SliceId::from_index)
    }

    /// The time range of a slice.
    pub fn span(&self, id: SliceId) -> Span {
        let start_ns = self.start_ns[id.index()];
        Span::new(start_ns, start_ns + self.dur_ns[id.index()])
    }

    /// What a slice is.
    pub fn kind(&self, id: SliceId) -> SliceKind {
        self.kind[id.index()]
    }

    /// The slice on the same track that directly contains `id`.
    pub fn parent(&self, id: SliceId) -> Option<SliceId> {
        self.parent[id.index()]
    }

    /// The slice itself, then its parent, and so on outwards.
    pub fn with_ancestors(&self, id: SliceId) -> impl Iterator<Item = SliceId> + '_ {
        std::iter::successors(Some(id), |id| self.parent(*id))
    }
}
