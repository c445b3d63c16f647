//! Values sampled over time.

use crate::{DeviceId, ProcessId};
use stepscope_base::StringId;

/// One quantity, sampled.
#[derive(Clone, PartialEq, Debug)]
pub struct Counter {
    /// What is counted, as the source names it.
    pub name: StringId,
    /// Whose it is.
    pub process: ProcessId,
    /// The device, for counters of one.
    pub device: Option<DeviceId>,
    /// When, ns since the start of the trace, ascending.
    pub time_ns: Vec<i64>,
    /// The values at these moments.
    pub value: Vec<f64>,
}
