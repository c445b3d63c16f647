//! What has no duration: allocations, instants, values over time.

use super::Document;
use std::io;
use stepscope_trace::{MemoryEvent, TrackKind};

/// Allocations and frees.
pub(super) const MEMORY: &str = "[memory]";
/// Allocations that failed.
pub(super) const OUT_OF_MEMORY: &str = "[OutOfMemory]";

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    write_memory(document)?;
    write_instants(document)?;
    write_counters(document)
}

fn write_memory(document: &mut Document<'_>) -> io::Result<()> {
    let trace = document.trace;
    let memory = trace.memory.iter().map(|event| (event, MEMORY));
    for (event, name) in memory.chain(trace.out_of_memory.iter().map(|event| (event, OUT_OF_MEMORY))) {
        if document.has_track(event.track) {
            write_allocation(document, event, name)?;
        }
    }
    Ok(())
}

/// An allocation, a free, or one that failed.
pub(super) fn write_allocation(document: &mut Document<'_>, event: &MemoryEvent, name: &str) -> io::Result<()> {
    let row = document.row(event.track);
    document.begin_event("i", "cpu_instant_event", name, row);
    let device = event.device.map(|device| document.device(device));
    let json = &mut document.json;
    json.text("s", "t");
    json.time(event.time_ns);
    json.open(Some("args"));
    event.reserved_bytes.into_iter().for_each(|bytes| json.int("Total Reserved", bytes));
    event.allocated_bytes.into_iter().for_each(|bytes| json.int("Total Allocated", bytes));
    json.int("Bytes", event.bytes);
    if event.address != 0 {
        json.unsigned("Addr", event.address);
    }
    // PyTorch's device types: 0 is the CPU, 1 is CUDA.
    json.int("Device Id", device.unwrap_or(-1));
    json.int("Device Type", i64::from(device.is_some()));
    if let Some(profile) = &mut document.profile {
        json.verbatim("finished", "false");
        profile.write_number(json);
    }
    json.close();
    document.end_event()
}

fn write_instants(document: &mut Document<'_>) -> io::Result<()> {
    let instants = &document.trace.instants;
    for at in 0..instants.len() {
        let track = instants.track[at];
        if !document.has_track(track) {
            continue;
        }
        let is_thread = document.trace.tracks[track.index()].kind == TrackKind::Thread;
        let category = if is_thread { "cpu_instant_event" } else { "" };
        document.begin_event("i", category, document.trace.strings.get(instants.name[at]), document.row(track));
        document.json.text("s", "t");
        document.json.time(instants.time_ns[at]);
        document.end_event()?;
    }
    Ok(())
}

fn write_counters(document: &mut Document<'_>) -> io::Result<()> {
    for counter in &document.trace.counters {
        if !document.has_rank(document.trace.processes[counter.process.index()].rank) {
            continue;
        }
        let name = document.trace.strings.get(counter.name);
        let pid = match counter.device {
            Some(device) => document.device(device),
            None => document.numbers.pid[counter.process.index()],
        };
        for (time_ns, value) in counter.time_ns.iter().zip(&counter.value) {
            document.begin_event("C", "", name, (pid, 0));
            document.json.time(*time_ns);
            document.json.open(Some("args"));
            document.json.any_key(name);
            document.json.float_value(*value);
            document.json.close();
            document.end_event()?;
        }
    }
    Ok(())
}
