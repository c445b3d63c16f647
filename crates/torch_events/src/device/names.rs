//! What activity records are called, and which of them have no place in the list.

use rustc_hash::FxHashMap;
use stepscope_capture::DeviceActivity;
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, Memcpy, MemoryKind, Overhead, Synchronization,
    SynchronizationKind, WorkKind,
};

/// Calls of CUDA's runtime that `torch.profiler` leaves out: there are many of them and they do little.
const LEFT_OUT: [&str; 6] = [
    "cudaGetDevice",
    "cudaSetDevice",
    "cudaGetLastError",
    "cudaEventCreate",
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
];
/// Of calls of CUDA's driver, those that it has.
const DRIVER_CALLS: [&str; 8] = [
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuMemCreate",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemRelease",
    "cuMemExportToShareableHandle",
    "cuMemImportFromShareableHandle",
];
/// PyTorch's number of CUDA devices.
const CUDA: u8 = 1;

/// A name that is not among those of the capture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Text {
    /// It was lost.
    None,
    Memcpy(Direction, MemoryKind, MemoryKind),
    Memset(MemoryKind),
    Graph,
    Synchronization(SynchronizationKind),
}

impl Text {
    fn written(self) -> String {
        match self {
            Self::None => "(name lost)".into(),
            Self::Memcpy(direction, source, destination) => {
                format!("Memcpy {} ({} -> {})", direction.as_str(), source.as_str(), destination.as_str())
            }
            Self::Memset(memory) => format!("Memset ({})", memory.as_str()),
            Self::Graph => "CUDA graph".into(),
            Self::Synchronization(kind) => kind.as_str().into(),
        }
    }
}

/// Finds names.
pub(crate) struct Names<'a> {
    /// For each name of the capture the first that is listed alike.
    listed: &'a [Option<u32>],
    /// By name of the capture.
    is_left_out: Vec<bool>,
    is_driver_call: Vec<bool>,
    ids: FxHashMap<Text, u32>,
    texts: Vec<String>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(names: &[String], listed: &'a [Option<u32>]) -> Self {
        let is_one = |of: &[&str]| names.iter().map(|name| of.contains(&unversioned(name))).collect();
        let (is_left_out, is_driver_call) = (is_one(&LEFT_OUT), is_one(&DRIVER_CALLS));
        Self { listed, is_left_out, is_driver_call, ids: FxHashMap::default(), texts: Vec::new() }
    }

    /// The number of an activity record's name; `None` for what is not listed.
    pub(crate) fn name(&mut self, device_activity: &DeviceActivity) -> Option<u32> {
        let (name, text) = match device_activity.record {
            ActivityRecord::Work(DeviceWork { kind, .. }) => match kind {
                WorkKind::Kernel(kernel) => (kernel.name, Text::None),
                WorkKind::Memcpy(Memcpy { direction, source, destination, .. }) => {
                    (None, Text::Memcpy(direction, source, destination))
                }
                WorkKind::Memset(fill) => (None, Text::Memset(fill.memory)),
                WorkKind::Graph => (None, Text::Graph),
            },
            ActivityRecord::Call(Call { api, name, .. }) => {
                let is_shown = match (api, name) {
                    (Api::Driver, Some(name)) => {
                        device_activity.device_type != CUDA || self.is_driver_call[name as usize]
                    }
                    (Api::Runtime, Some(name)) => !self.is_left_out[name as usize],
                    (_, None) => true,
                };
                is_shown.then_some((name, Text::None))?
            }
            ActivityRecord::Overhead(Overhead { name, .. }) => (name, Text::None),
            ActivityRecord::Synchronization(Synchronization { kind, .. }) => (None, Text::Synchronization(kind)),
            ActivityRecord::EventRecorded(_) | ActivityRecord::Range(_) | ActivityRecord::Dropped(_) => return None,
        };
        match name {
            Some(name) => self.listed[name as usize],
            None => Some(self.id(text)),
        }
    }

    fn id(&mut self, text: Text) -> u32 {
        *self.ids.entry(text).or_insert_with(|| {
            self.texts.push(text.written());
            // Behind the capture's names stands that of all steps.
            (self.listed.len() + self.texts.len()) as u32
        })
    }

    /// The names that the capture does not have, in order.
    pub(crate) fn texts(self) -> Vec<String> {
        self.texts
    }
}

/// The name of a function without the version that CUPTI hangs on it: `cudaGetDevice_v3020`.
fn unversioned(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((function, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => function,
        _ => name,
    }
}
