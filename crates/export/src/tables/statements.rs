//! The tables of what slices say beside their time: waits, collectives, calls on files; and of moments.

use super::events::{id, known};
use super::sheet::Sheet;
use super::slices::process;
use stepscope_trace::{Collective, IoEvent, Synchronization, Trace};

/// A row is a wait between host, streams and events.
pub(super) fn synchronizations(trace: &Trace) -> Sheet<'_> {
    let wait = |row: usize| -> &Synchronization { &trace.synchronizations[row] };
    let device = move |row: usize| &trace.devices[wait(row).device.index()];
    Sheet::new("synchronizations", trace.synchronizations.len())
        .int("slice", move |row| id(Some(wait(row).slice)))
        .text("name", move |row| Some(trace.slice_name(wait(row).slice)))
        .text("kind", move |row| Some(wait(row).kind.as_str()))
        .int("start_ns", move |row| Some(trace.slices.start_ns[wait(row).slice.index()]))
        .int("dur_ns", move |row| Some(trace.slices.dur_ns[wait(row).slice.index()]))
        .int("rank", move |row| Some(device(row).rank.into()))
        .int("device", move |row| Some(device(row).ordinal))
        .int("stream", move |row| wait(row).stream)
        .int("event_stream", move |row| wait(row).event_stream)
        .int("call", move |row| id(wait(row).call))
        .int("event_record", move |row| id(wait(row).event_record))
}

/// A row is what one slice says of a collective.
pub(super) fn collectives(trace: &Trace) -> Sheet<'_> {
    let collective = |row: usize| -> &Collective { &trace.collectives[row] };
    let rank = move |row: usize| trace.rank_of_track(trace.slices.track[collective(row).slice.index()]);
    Sheet::new("collectives", trace.collectives.len())
        .int("slice", move |row| id(Some(collective(row).slice)))
        .int("rank", move |row| Some(rank(row).into()))
        .text("name", move |row| known(trace, collective(row).name))
        .text("dtype", move |row| known(trace, collective(row).dtype))
        .int("input_elements", move |row| collective(row).input_elements)
        .int("output_elements", move |row| collective(row).output_elements)
        .text("group", move |row| known(trace, collective(row).group))
        .text("group_description", move |row| known(trace, collective(row).group_description))
        .int("group_size", move |row| collective(row).group_size)
        .text("group_ranks", move |row| known(trace, collective(row).group_ranks))
        .int("sequence_number", move |row| collective(row).sequence_number)
        .text("input_split_sizes", move |row| known(trace, collective(row).input_split_sizes))
        .text("output_split_sizes", move |row| known(trace, collective(row).output_split_sizes))
        .int("group_rank", move |row| collective(row).group_rank)
        .int("source_rank", move |row| collective(row).source_rank)
        .int("destination_rank", move |row| collective(row).destination_rank)
        .flag("is_async", move |row| collective(row).is_async)
}

/// A row is a call on a file.
pub(super) fn io(trace: &Trace) -> Sheet<'_> {
    let call = |row: usize| -> &IoEvent { &trace.io[row] };
    let slice = move |row: usize| call(row).slice;
    let track = move |row: usize| &trace.tracks[trace.slices.track[slice(row).index()].index()];
    Sheet::new("io", trace.io.len())
        .int("slice", move |row| id(Some(slice(row))))
        .text("name", move |row| Some(trace.slice_name(slice(row))))
        .text("layer", move |row| Some(call(row).layer.as_str()))
        .text("action", move |row| Some(call(row).action.as_str()))
        .text("file", move |row| known(trace, call(row).file))
        .text("other_file", move |row| known(trace, call(row).other_file))
        .int("bytes", move |row| call(row).bytes)
        .int("asked_bytes", move |row| call(row).asked_bytes)
        .int("offset", move |row| call(row).offset)
        .int("errno", move |row| call(row).errno.map(|errno| errno.get().into()))
        .int("start_ns", move |row| Some(trace.slices.start_ns[slice(row).index()]))
        .int("dur_ns", move |row| Some(trace.slices.dur_ns[slice(row).index()]))
        .int("rank", move |row| Some(process(trace, track(row)).rank.into()))
        .int("pid", move |row| process(trace, track(row)).pid)
        .int("tid", move |row| track(row).tid)
}

/// A row is an event without duration.
pub(super) fn instants(trace: &Trace) -> Sheet<'_> {
    let instants = &trace.instants;
    let track = |row: usize| &trace.tracks[instants.track[row].index()];
    Sheet::new("instants", instants.len())
        .text("name", |row| Some(trace.strings.get(instants.name[row])))
        .int("time_ns", |row| Some(instants.time_ns[row]))
        .int("rank", move |row| Some(process(trace, track(row)).rank.into()))
        .int("pid", move |row| process(trace, track(row)).pid)
        .int("tid", move |row| track(row).tid)
        .int("track", |row| Some(instants.track[row].0.into()))
}
