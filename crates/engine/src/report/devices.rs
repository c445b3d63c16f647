//! Where each device's time goes, from `temporal_breakdown`.

use super::Breakdown;
use crate::cells::Cells;
use crate::{Table, Trace};
use serde::Serialize;

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
pub(super) fn device_times(trace: &Trace, temporal: &Table) -> Vec<DeviceTime> {
    let device_time = |row: usize| {
        let (rank, device) = (temporal.int_at("rank", row)?, temporal.int_at("device", row)?);
        let rank = u32::try_from(rank).ok()?;
        let ns = |column| temporal.int_at(column, row).unwrap_or(0);
        let classes = [
            ("compute", ns("compute_ns")),
            ("exposed_comm", ns("exposed_comm_ns")),
            ("exposed_copy", ns("exposed_copy_ns")),
            ("idle", ns("idle_ns")),
        ];
        let known = trace.devices.iter().find(|known| known.rank == rank && known.ordinal == device);
        Some(DeviceTime {
            rank,
            device,
            name: known.and_then(|known| known.name.clone()),
            device_events: ns("device_events"),
            overlap_ratio: temporal.float_at("overlap_ratio", row),
            breakdown: Breakdown::new(temporal.int_at("span_ns", row)?, classes),
        })
    };
    (0..temporal.len()).filter_map(device_time).filter(|device| device.device_events > 0).collect()
}
