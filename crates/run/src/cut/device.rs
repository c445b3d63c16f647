//! Which of a device's reports are not asked for.

use stepscope_capture::device::{Api, DeviceRecord, WorkKind};

/// Kinds of reports of a device's profiler that are not asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HiddenDevice {
    /// Kernels, and graphs as a whole.
    pub kernels: bool,
    /// Copies.
    pub copies: bool,
    /// Fills.
    pub fills: bool,
    /// Labels, as the span of what was launched in them. They are no reports: who lists them heeds it.
    pub annotations: bool,
    /// Calls of the runtime.
    pub runtime_calls: bool,
    /// Calls of the driver.
    pub driver_calls: bool,
    /// What the device's profiler itself takes.
    pub overheads: bool,
    /// Waits of the host and of streams.
    pub waits: bool,
}

impl HiddenDevice {
    /// True when a report is not asked for.
    pub fn hides(&self, record: &DeviceRecord) -> bool {
        match record {
            DeviceRecord::Work(work) => match work.kind {
                WorkKind::Kernel { .. } | WorkKind::Graph => self.kernels,
                WorkKind::Copy { .. } => self.copies,
                WorkKind::Fill { .. } => self.fills,
            },
            DeviceRecord::Call(call) => match call.api {
                Api::Runtime => self.runtime_calls,
                Api::Driver => self.driver_calls,
            },
            DeviceRecord::Overhead(_) => self.overheads,
            DeviceRecord::Wait(_) => self.waits,
            DeviceRecord::EventRecorded(_) | DeviceRecord::Range(_) | DeviceRecord::Lost(_) => false,
        }
    }
}
