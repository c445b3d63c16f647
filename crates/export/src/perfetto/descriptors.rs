//! Tracks: processes with their threads, devices with their streams, an own track for each overflow lane.

use super::{Document, Message, packet};
use std::io;
use stepscope_trace::{DeviceId, ProcessId, TrackId, TrackKind};

/// Fields of `track_descriptor.proto`, `process_descriptor.proto`, `thread_descriptor.proto`.
const UUID: u32 = 1;
const NAME: u32 = 2;
const PROCESS: u32 = 3;
const THREAD: u32 = 4;
const PARENT: u32 = 5;
const PLACE: u32 = 12;
const PID: u32 = 1;
const TID: u32 = 2;
const THREAD_NAME: u32 = 5;
const PROCESS_NAME: u32 = 6;

/// Numbers of tracks: 0 is Perfetto's own.
pub(super) fn process_uuid(process: ProcessId) -> u64 {
    1 << 40 | u64::from(process.0)
}

pub(super) fn device_uuid(device: DeviceId) -> u64 {
    2 << 40 | u64::from(device.0)
}

pub(super) fn track_uuid(track: TrackId) -> u64 {
    3 << 40 | u64::from(track.0)
}

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let trace = document.trace;
    let has_ranks = trace.ranks().len() > 1;
    for id in (0..trace.processes.len()).map(ProcessId::from_index) {
        let process = &trace.processes[id.index()];
        let mut of_process = Message::default();
        of_process.int(PID, document.numbers.pid[id.index()]);
        let name = if has_ranks { format!("rank {}: {}", process.rank, process.name) } else { process.name.clone() };
        of_process.text(PROCESS_NAME, &name);
        let mut descriptor = Message::default();
        descriptor.number(UUID, process_uuid(id));
        descriptor.message(PROCESS, &of_process);
        add(document, &descriptor)?;
    }
    for id in (0..trace.devices.len()).map(DeviceId::from_index) {
        let device = &trace.devices[id.index()];
        let product = device.name.as_deref().map(|name| format!(": {name}")).unwrap_or_default();
        let rank = if has_ranks { format!("rank {} ", device.rank) } else { String::new() };
        let owner = trace.processes.iter().position(|process| process.rank == device.rank);
        let owner = owner.map(|at| process_uuid(ProcessId::from_index(at)));
        let name = format!("{rank}GPU {}{product}", device.ordinal);
        add(document, &named(device_uuid(id), &name, owner, i64::from(id.0)))?;
    }
    (0..trace.tracks.len()).map(TrackId::from_index).try_for_each(|id| write_track(document, id))
}

fn write_track(document: &mut Document<'_>, id: TrackId) -> io::Result<()> {
    let track = &document.trace.tracks[id.index()];
    let process = process_uuid(track.process);
    if track.lane > 0 {
        let first = TrackId::from_index(id.index() - usize::from(track.lane));
        let name = format!("{} (overlapping {})", track.name, track.lane);
        // A track of a thread cannot nest below another of it in every viewer: lanes stand beside it.
        let parent = if track.kind == TrackKind::Thread { process } else { parent_of(document, first) };
        return add(document, &named(track_uuid(id), &name, Some(parent), i64::from(id.0)));
    }
    if track.kind == TrackKind::Thread {
        let mut thread = Message::default();
        thread.int(PID, document.numbers.pid[track.process.index()]);
        thread.int(TID, document.numbers.tid[id.index()]);
        thread.text(THREAD_NAME, &track.name);
        let mut descriptor = Message::default();
        descriptor.number(UUID, track_uuid(id));
        descriptor.number(PARENT, process);
        descriptor.message(THREAD, &thread);
        return add(document, &descriptor);
    }
    let what = match track.kind {
        TrackKind::StreamSync => " synchronizations",
        TrackKind::Projection => " labels",
        _ => "",
    };
    let name = format!("{}{what}", track.name);
    let parent = parent_of(document, id);
    add(document, &named(track_uuid(id), &name, Some(parent), i64::from(id.0)))
}

fn parent_of(document: &Document<'_>, id: TrackId) -> u64 {
    let track = &document.trace.tracks[id.index()];
    track.device.map_or(process_uuid(track.process), device_uuid)
}

fn named(uuid: u64, name: &str, parent: Option<u64>, place: i64) -> Message {
    let mut descriptor = Message::default();
    descriptor.number(UUID, uuid);
    descriptor.text(NAME, name);
    parent.into_iter().for_each(|parent| descriptor.number(PARENT, parent));
    descriptor.int(PLACE, place.min(i64::from(i32::MAX)));
    descriptor
}

/// Adds the packet of a track.
pub(super) fn add(document: &mut Document<'_>, descriptor: &Message) -> io::Result<()> {
    let mut packet = Message::default();
    packet.number(packet::SEQUENCE_ID, super::SEQUENCE);
    packet.message(packet::TRACK_DESCRIPTOR, descriptor);
    document.packet(&packet)
}
