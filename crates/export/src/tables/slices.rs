//! The table of slices, each with its track, process and rank.

use super::sheet::Sheet;
use stepscope_trace::{Process, Trace, Track, TrackKind};

/// A row is a slice; its place in the table is its id.
pub(super) fn slices(trace: &Trace) -> Sheet<'_> {
    let slices = &trace.slices;
    let track = |row: usize| &trace.tracks[slices.track[row].index()];
    Sheet::new("slices", slices.len())
        .int("slice", |row| Some(row as i64))
        .text("name", |row| Some(trace.strings.get(slices.name[row])))
        .text("kind", |row| Some(slices.kind[row].as_str()))
        .int("start_ns", |row| Some(slices.start_ns[row]))
        .int("dur_ns", |row| Some(slices.dur_ns[row]))
        .int("parent", |row| slices.parent[row].map(|parent| parent.0.into()))
        .int("depth", |row| Some(slices.depth[row].into()))
        .flag("is_unfinished", |row| Some(slices.is_unfinished[row]))
        .int("track", |row| Some(slices.track[row].0.into()))
        .text("track_name", move |row| Some(track(row).name.as_str()))
        .text("track_kind", move |row| Some(track_kind(track(row))))
        .int("lane", move |row| Some(track(row).lane.into()))
        .int("tid", move |row| track(row).tid)
        .int("device", move |row| track(row).device.map(|id| trace.devices[id.index()].ordinal))
        .int("stream", move |row| track(row).stream)
        .int("rank", move |row| Some(process(trace, track(row)).rank.into()))
        .int("pid", move |row| process(trace, track(row)).pid)
        .text("process", move |row| Some(process(trace, track(row)).name.as_str()))
}

pub(super) fn process<'a>(trace: &'a Trace, track: &Track) -> &'a Process {
    &trace.processes[track.process.index()]
}

fn track_kind(track: &Track) -> &'static str {
    match track.kind {
        TrackKind::Thread => "thread",
        TrackKind::Stream => "stream",
        TrackKind::StreamSync => "stream_sync",
        TrackKind::Projection => "projection",
        TrackKind::Other => "other",
    }
}
