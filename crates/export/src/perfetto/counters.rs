//! Values over time: memory in use and held, a track for each process and device, and the source's own counters.

use super::descriptors::{add, device_uuid, process_uuid};
use super::slices::track_event;
use super::{Document, Message};
use std::io;
use stepscope_trace::{DeviceId, MemoryEvent, ProcessId};

/// Fields and values of `track_descriptor.proto` and `counter_descriptor.proto`.
const UUID: u32 = 1;
const NAME: u32 = 2;
const PARENT: u32 = 5;
const COUNTER: u32 = 8;
const UNIT: u32 = 3;
const UNIT_BYTES: u64 = 3;
/// Numbers of these tracks begin here.
const FIRST_UUID: u64 = 4 << 40;

/// What a counter of memory shows.
type Quantity = (&'static str, fn(&MemoryEvent) -> Option<i64>);
const QUANTITIES: [Quantity; 2] =
    [("allocated", |event| event.allocated_bytes), ("reserved", |event| event.reserved_bytes)];

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let mut uuid = FIRST_UUID;
    write_memory(document, &mut uuid)?;
    for counter in &document.trace.counters {
        let parent = counter.device.map_or(process_uuid(counter.process), device_uuid);
        describe(document, &mut uuid, document.trace.strings.get(counter.name), parent, false)?;
        for (time_ns, value) in counter.time_ns.iter().zip(&counter.value) {
            let mut event = sample(uuid);
            event.double(track_event::FRACTION, *value);
            document.event(*time_ns, &event)?;
        }
    }
    Ok(())
}

fn write_memory(document: &mut Document<'_>, uuid: &mut u64) -> io::Result<()> {
    let trace = document.trace;
    let owner = |event: &MemoryEvent| (trace.tracks[event.track.index()].process, event.device);
    let mut owners: Vec<(ProcessId, Option<DeviceId>)> = trace.memory.iter().map(owner).collect();
    owners.sort_unstable();
    owners.dedup();
    for (process, device) in owners {
        let parent = device.map_or(process_uuid(process), device_uuid);
        for (what, bytes) in QUANTITIES {
            let events = trace.memory.iter().filter(|event| owner(event) == (process, device));
            let mut samples = events.filter_map(|event| Some((event.time_ns, bytes(event)?))).peekable();
            if samples.peek().is_none() {
                continue;
            }
            let place = if device.is_some() { "GPU memory" } else { "CPU memory" };
            describe(document, uuid, &format!("{place} {what}"), parent, true)?;
            for (time_ns, bytes) in samples {
                let mut event = sample(*uuid);
                event.int(track_event::COUNT, bytes);
                document.event(time_ns, &event)?;
            }
        }
    }
    Ok(())
}

/// Adds the packet of the next counter's track.
fn describe(document: &mut Document<'_>, uuid: &mut u64, name: &str, parent: u64, is_bytes: bool) -> io::Result<()> {
    *uuid += 1;
    let mut counter = Message::default();
    if is_bytes {
        counter.number(UNIT, UNIT_BYTES);
    }
    let mut descriptor = Message::default();
    descriptor.number(UUID, *uuid);
    descriptor.text(NAME, name);
    descriptor.number(PARENT, parent);
    descriptor.message(COUNTER, &counter);
    add(document, &descriptor)
}

fn sample(uuid: u64) -> Message {
    let mut event = Message::default();
    event.number(track_event::TYPE, track_event::COUNTER);
    event.number(track_event::TRACK, uuid);
    event
}
