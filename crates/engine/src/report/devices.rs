//! Where each device's time goes, from `temporal_breakdown`.

use super::Breakdown;
use crate::Trace;
use serde::Serialize;
use stepscope_analyses::temporal_breakdown::TemporalBreakdown;

/// One device's time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceTime {
    /// The rank that uses it.
    pub rank: u32,
    /// Its number within the rank.
    pub device: i64,
    /// Product name.
    pub name: Option<String>,
    /// Kernels, copies and memsets.
    pub device_events: i64,
    /// Share of communication that computation hides; none without communication.
    pub overlap_ratio: Option<f64>,
    /// Its time: `compute`, `exposed_comm`, `exposed_copy`, `idle`.
    pub breakdown: Breakdown,
}

/// The devices that did something, in the order of the analysis.
pub(super) fn device_times(trace: &Trace, rows: &[TemporalBreakdown]) -> Vec<DeviceTime> {
    let device_time = |row: &TemporalBreakdown| {
        let classes = [
            ("compute", row.compute_ns),
            ("exposed_comm", row.exposed_comm_ns),
            ("exposed_copy", row.exposed_copy_ns),
            ("idle", row.idle_ns),
        ];
        let known = trace.devices.iter().find(|known| known.rank == row.rank && known.ordinal == row.device);
        DeviceTime {
            rank: row.rank,
            device: row.device,
            name: known.and_then(|known| known.name.clone()),
            device_events: row.device_events,
            overlap_ratio: row.overlap_ratio,
            breakdown: Breakdown::new(row.span_ns, classes),
        }
    };
    rows.iter().filter(|row| row.device_events > 0).map(device_time).collect()
}
