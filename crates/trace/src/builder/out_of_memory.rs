//! Allocations that failed, as a finding: on which device, how often, when first.

use crate::{DeviceId, FindingCode, MemoryEvent, Trace};
use std::collections::BTreeMap;

/// Adds one example for each rank and device, in their order.
pub(super) fn report(trace: &mut Trace) {
    // Rank and device; none is the host.
    let mut failed: BTreeMap<(u32, Option<DeviceId>), (u64, &MemoryEvent)> = BTreeMap::new();
    for event in &trace.out_of_memory {
        let process = trace.tracks[event.track.index()].process;
        let rank = trace.processes[process.index()].rank;
        failed.entry((rank, event.device)).or_insert((0, event)).0 += 1;
    }
    let mut findings = std::mem::take(&mut trace.findings);
    for ((rank, device), (count, first)) in failed {
        findings.add(FindingCode::OutOfMemory, || {
            let place = device
                .map_or("the host".to_string(), |device| format!("device {}", trace.devices[device.index()].ordinal));
            let first = format!("{} bytes at {} ns", first.bytes, first.time_ns);
            format!("{place} of rank {rank}: {count}, the first of {first}")
        });
        findings.add_count(FindingCode::OutOfMemory, count - 1);
    }
    trace.findings = findings;
}

#[cfg(test)]
mod tests {
    use crate::{Device, FindingCode, MemoryEvent, Process, TraceBuilder, Track, TrackKind};

    #[test]
    fn each_device_says_how_often_and_when_first() {
        let mut builder = TraceBuilder::new("oom");
        let process = builder.add_process(Process { rank: 3, ..Process::default() });
        let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let device = builder.add_device(Device { rank: 3, ordinal: 1, ..Device::default() });
        for (time_ns, device, bytes) in [(90, None, 8), (50, Some(device), 7), (20, None, 5), (0, None, 6)] {
            let event = MemoryEvent {
                time_ns,
                track: thread,
                device,
                address: 0,
                bytes,
                allocated_bytes: None,
                reserved_bytes: None,
                op: None,
                stream: None,
                stack: None,
            };
            builder.add_out_of_memory(event);
        }
        let trace = builder.finish();
        let finding = trace.findings.iter().find(|finding| finding.code == FindingCode::OutOfMemory).expect("found");
        assert_eq!(finding.count, 4);
        assert_eq!(
            finding.examples,
            [
                "the host of rank 3: 3, the first of 6 bytes at 0 ns",
                "device 1 of rank 3: 1, the first of 7 bytes at 50 ns"
            ]
        );
    }
}
