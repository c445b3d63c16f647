//! Allocations, frees and allocations that failed.

use super::devices::Devices;
use super::{AlignedCapture, metadata_value};
use std::collections::BTreeMap;
use stepscope_capture::{Capture, MemoryEvent as Recorded};
use stepscope_trace::{DeviceId, FindingCode, Findings, MemoryEvent, TraceBuilder, TrackId};

/// PyTorch's number of the host among the kinds of devices.
pub(super) const HOST: u8 = 0;

impl AlignedCapture<'_> {
    pub(super) fn add_memory(
        &self,
        rank: u32,
        tracks: &BTreeMap<u32, TrackId>,
        devices: &mut Devices,
        builder: &mut TraceBuilder,
    ) {
        for event in &self.capture.memory {
            let ordinal = (event.device_type != HOST).then(|| i64::from(event.device_index.unwrap_or(0)));
            let device = ordinal.map(|ordinal| devices.of(rank, ordinal, builder));
            let time_ns = self.align(event.time_ns, event.time_ns).0;
            let seen = memory_event(event, (time_ns, tracks[&event.thread]), device);
            if event.is_out_of_memory() {
                builder.add_out_of_memory(seen);
            } else {
                builder.add_memory_event(seen);
            }
        }
    }
}

/// An allocation or a free in the model, at this time and on this track.
pub(super) fn memory_event(
    event: &Recorded,
    (time_ns, track): (i64, TrackId),
    device: Option<DeviceId>,
) -> MemoryEvent {
    MemoryEvent {
        time_ns,
        track,
        device,
        address: event.address.unwrap_or(0),
        bytes: event.bytes,
        allocated_bytes: event.allocated_bytes,
        reserved_bytes: event.reserved_bytes,
        op: None,
        stream: None,
        stack: None,
    }
}

/// Turns what is missing or doubtful into findings; `who` names the process.
pub(super) fn report(capture: &Capture, who: &dyn Fn() -> String, findings: &mut Findings) {
    let keys = [
        ("profiler_state_refused", FindingCode::ProfilerStateRefused),
        ("memory_not_recorded", FindingCode::MemoryNotRecorded),
    ];
    for (key, code) in keys {
        if let Some(reason) = metadata_value(capture, key) {
            findings.add(code, || format!("{}: {reason}", who()));
        }
    }
    if is_host_total_doubtful(capture) {
        findings.add(FindingCode::MemoryTotalTooHigh, who);
    }
}

/// PyTorch counts the host's bytes only while memory is recorded: allocated in one window and freed after it, they stay
/// in its count. Another window, or a count that does not begin at 0, shows that there was one before.
fn is_host_total_doubtful(capture: &Capture) -> bool {
    let mut of_host = capture.memory.iter().filter(|event| event.device_type == HOST && !event.is_out_of_memory());
    let has_memory = of_host.clone().next().is_some();
    let windows = capture.windows.iter().filter(|window| window.is_on).count();
    // What a ring gave up is no recording of its own.
    capture.ring.is_none()
        && has_memory
        && (windows > 1 || of_host.all(|event| event.allocated_bytes.is_some_and(|total| total > event.bytes)))
}
