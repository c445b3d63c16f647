//! Which of a device's activity records are not asked for.

use stepscope_capture::device::{ActivityRecord, Api, WorkKind};

/// Kinds of activity records of a device's profiler that are not asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HiddenDevice {
    /// Kernels, and graphs as a whole.
    pub kernels: bool,
    /// Memcpys.
    pub copies: bool,
    /// Memsets.
    pub fills: bool,
    /// Labels, as the span of what was launched in them. They are no activity records: who lists them heeds it.
    pub annotations: bool,
    /// Calls of the runtime.
    pub runtime_calls: bool,
    /// Calls of the driver.
    pub driver_calls: bool,
    /// What the device's profiler itself takes.
    pub overheads: bool,
    /// Synchronizations of the host and of streams.
    pub waits: bool,
}

impl HiddenDevice {
    /// True when an activity record is not asked for.
    pub fn hides(&self, record: &ActivityRecord) -> bool {
        match record {
            ActivityRecord::Work(work) => match work.kind {
                WorkKind::Kernel { .. } | WorkKind::Graph => self.kernels,
                WorkKind::Memcpy { .. } => self.copies,
                WorkKind::Memset { .. } => self.fills,
            },
            ActivityRecord::Call(call) => match call.api {
                Api::Runtime => self.runtime_calls,
                Api::Driver => self.driver_calls,
            },
            ActivityRecord::Overhead(_) => self.overheads,
            ActivityRecord::Synchronization(_) => self.waits,
            ActivityRecord::EventRecorded(_) | ActivityRecord::Range(_) | ActivityRecord::Dropped(_) => false,
        }
    }
}
