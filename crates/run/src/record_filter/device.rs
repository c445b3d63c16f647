//! Which of a device's activity records a filter excludes.

use stepscope_capture::device::{ActivityRecord, Api, WorkKind};

/// Kinds of a device's activity records that a filter excludes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExcludeDevice {
    /// Kernels, and graphs as a whole.
    pub kernels: bool,
    /// Memcpys.
    pub memcpys: bool,
    /// Memsets.
    pub memsets: bool,
    /// Labels, as the span of what was launched in them. They are no activity records: what lists them must check this.
    pub annotations: bool,
    /// Calls of the runtime.
    pub runtime_calls: bool,
    /// Calls of the driver.
    pub driver_calls: bool,
    /// What the device's profiler itself takes.
    pub overheads: bool,
    /// Synchronizations of the host and of streams.
    pub synchronizations: bool,
}

impl ExcludeDevice {
    /// True when an activity record is excluded.
    pub fn excludes(&self, record: &ActivityRecord) -> bool {
        match record {
            ActivityRecord::Work(work) => match work.kind {
                WorkKind::Kernel(_) | WorkKind::Graph => self.kernels,
                WorkKind::Memcpy(_) => self.memcpys,
                WorkKind::Memset(_) => self.memsets,
            },
            ActivityRecord::Call(call) => match call.api {
                Api::Runtime => self.runtime_calls,
                Api::Driver => self.driver_calls,
            },
            ActivityRecord::Overhead(_) => self.overheads,
            ActivityRecord::Synchronization(_) => self.synchronizations,
            ActivityRecord::EventRecorded(_) | ActivityRecord::Range(_) | ActivityRecord::Dropped(_) => false,
        }
    }
}
