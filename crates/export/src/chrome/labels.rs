//! Names of processes, devices, threads and streams, and the order in which viewers show them.

use super::Document;
use std::collections::BTreeSet;
use std::io;
use stepscope_trace::TrackKind;

/// Devices stand below all processes.
const FIRST_DEVICE_PLACE: i64 = 1 << 24;

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let trace = document.trace;
    let has_ranks = document.rank.is_none() && trace.ranks().len() > 1;
    let with_rank = |rank: u32, name: &str| if has_ranks { format!("rank {rank}: {name}") } else { name.to_string() };
    for (at, device) in trace.devices.iter().enumerate() {
        if !document.has_rank(device.rank) {
            continue;
        }
        let number = document.numbers.device[at];
        let owner = trace.processes.iter().find(|process| process.rank == device.rank);
        let name = with_rank(device.rank, owner.map_or("", |process| &process.name));
        write_process(document, number, &name, &format!("GPU {number}"), FIRST_DEVICE_PLACE + number)?;
    }
    for (at, process) in trace.processes.iter().enumerate() {
        if !document.has_rank(process.rank) {
            continue;
        }
        let pid = document.numbers.pid[at];
        write_process(document, pid, &with_rank(process.rank, &process.name), "CPU", at as i64)?;
    }
    let mut named = BTreeSet::new();
    for (at, track) in trace.tracks.iter().enumerate() {
        let id = stepscope_trace::TrackId::from_index(at);
        let row = document.row(id);
        if !document.has_track(id)
            || !named.insert((track.kind == TrackKind::Thread || track.kind == TrackKind::Other, row))
        {
            continue;
        }
        write_label(document, "thread_name", row, |json| json.text("name", &track.name))?;
        let place = named.len() as i64 - 1;
        write_label(document, "thread_sort_index", row, |json| json.int("sort_index", place))?;
    }
    Ok(())
}

fn write_process(document: &mut Document<'_>, pid: i64, name: &str, label: &str, place: i64) -> io::Result<()> {
    if !name.is_empty() {
        write_label(document, "process_name", (pid, 0), |json| json.text("name", name))?;
    }
    write_label(document, "process_labels", (pid, 0), |json| json.text("labels", label))?;
    write_label(document, "process_sort_index", (pid, 0), |json| json.int("sort_index", place))
}

fn write_label(
    document: &mut Document<'_>,
    name: &str,
    row: (i64, i64),
    write_argument: impl FnOnce(&mut super::Json),
) -> io::Result<()> {
    document.begin_event("M", "", name, row);
    document.json.time(0);
    document.json.open(Some("args"));
    write_argument(&mut document.json);
    document.json.close();
    document.end_event()
}
