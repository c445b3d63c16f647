//! The tables of what slices say beside their time: `collective`, `io_call`, `flow`; and `finding`.

use super::sheet::Sheet;
use super::slices::{DUR, PID, SLICE, START, TID};
use super::source::Source;
use stepscope_engine::finding_rows;
use stepscope_trace::{Collective, IoEvent};

/// A row is what one slice says of a collective.
pub(super) fn collective<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let collective = |row: usize| -> &Collective { &trace.collectives[row] };
    Sheet::new(
        "collective",
        "What one operator or kernel says of the collective that it belongs to.",
        trace.collectives.len(),
    )
    .id("slice", SLICE, move |row| Some(source.id(collective(row).slice)))
    .rank(move |row| source.rank_of(collective(row).slice))
    .text("slice_kind", "Whether an operator says it (op, annotation) or a kernel.", move |row| {
        Some(trace.slices.kind(collective(row).slice).as_str())
    })
    .ns("start_ns", START, move |row| Some(source.start_ns(collective(row).slice)))
    .ns("dur_ns", DUR, move |row| Some(source.dur_ns(collective(row).slice)))
    .int("step", "The step that the slice belongs to; null outside of steps.", move |row| {
        source.step(collective(row).slice)
    })
    .named("name", "What the source calls it: allreduce, _allgather_base …", source, move |row| {
        source.known(collective(row).name)
    })
    .text("kind", "What it does, whatever the source calls it: all_reduce, all_gather, send …", move |row| {
        collective(row).kind.map(|kind| kind.as_str())
    })
    .named("dtype", "The type of its elements.", source, move |row| source.known(collective(row).dtype))
    .int("input_elements", "Elements that go in on this rank.", move |row| collective(row).input_elements)
    .int("output_elements", "Elements that come out on this rank.", move |row| collective(row).output_elements)
    .named("group", "The group's name.", source, move |row| source.known(collective(row).group))
    .named("group_description", "What the group is for.", source, move |row| {
        source.known(collective(row).group_description)
    })
    .int("group_size", "Ranks of the group.", move |row| collective(row).group_size)
    .named("group_ranks", "Which ranks these are, as JSON.", source, move |row| {
        source.known(collective(row).group_ranks)
    })
    .id("sequence_number", "Its number within the group.", move |row| collective(row).sequence_number)
    .named("input_split_sizes", "Elements to each rank, as JSON.", source, move |row| {
        source.known(collective(row).input_split_sizes)
    })
    .named("output_split_sizes", "Elements from each rank, as JSON.", source, move |row| {
        source.known(collective(row).output_split_sizes)
    })
    .int("group_rank", "The place of this rank in the group.", move |row| collective(row).group_rank)
    .int("source_rank", "The rank that sends.", move |row| collective(row).source_rank)
    .int("destination_rank", "The rank that receives.", move |row| collective(row).destination_rank)
    .flag("is_async", "Whether the program goes on before it is done.", move |row| collective(row).is_async)
}

/// A row is a call on a file.
pub(super) fn io_call<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let call = |row: usize| -> &IoEvent { &trace.io[row] };
    let slice = move |row: usize| call(row).slice;
    let track = move |row: usize| source.track_of(slice(row));
    Sheet::new("io_call", "A call on a file.", trace.io.len())
        .id("slice", SLICE, move |row| Some(source.id(slice(row))))
        .named("name", "The function.", source, move |row| Some(trace.slices.name[slice(row).index()]))
        .text("layer", "The interface: posix, stdio, mpi, hdf5 …", move |row| Some(call(row).layer.as_str()))
        .text("action", "What it does: read, write, open, close, metadata …", move |row| {
            Some(call(row).action.as_str())
        })
        .named("file", "The file's path.", source, move |row| source.known(call(row).file))
        .named("other_file", "The other file: what it is renamed to, or bytes are copied to.", source, move |row| {
            source.known(call(row).other_file)
        })
        .bytes("bytes", "Bytes that were moved.", move |row| call(row).bytes)
        .bytes("asked_bytes", "Bytes that were asked for; null where as many were moved.", move |row| {
            call(row).asked_bytes
        })
        .int("offset", "Where in the file; null where it is not known.", move |row| call(row).offset)
        .int("errno", "The error of a call that failed; 65535 where it is not told which.", move |row| {
            call(row).errno.map(|errno| errno.get().into())
        })
        .ns("start_ns", START, move |row| Some(source.start_ns(slice(row))))
        .ns("dur_ns", DUR, move |row| Some(source.dur_ns(slice(row))))
        .int("step", "The step in which it starts; null outside of steps.", move |row| source.step(slice(row)))
        .rank(move |row| source.rank_of(slice(row)))
        .id("pid", PID, move |row| source.process_of(track(row)).pid)
        .id("tid", TID, move |row| track(row).tid)
}

/// A row is an edge between two slices.
pub(super) fn flow<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let flow = |row: usize| trace.flows[row];
    Sheet::new("flow", "An edge between two slices.", trace.flows.len())
        .rank(move |row| source.rank_of(flow(row).from))
        .id("from_slice", "Where it begins.", move |row| Some(source.id(flow(row).from)))
        .id("to_slice", "Where it ends.", move |row| Some(source.id(flow(row).to)))
        .text(
            "kind",
            "What it joins: a launch and what it launched, a forward operator and its backward node …",
            move |row| Some(flow(row).kind.as_str()),
        )
}

/// A row is a finding.
pub(super) fn finding<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let rows: std::sync::Arc<[_]> = finding_rows(&source.trace.findings).into();
    let [codes, severities, counts, says, examples] = std::array::from_fn(|_| std::sync::Arc::clone(&rows));
    Sheet::new("finding", "What is doubtful or missing in the trace.", rows.len())
        .text("code", "Its stable name.", move |row| Some(codes[row].code))
        .text("severity", "info, suspect, severe.", move |row| Some(severities[row].severity))
        .int("count", "How many cases.", move |row| Some(counts[row].count as i64))
        .text("says", "One sentence.", move |row| Some(says[row].says))
        .made(
            "examples",
            "The first cases, a line each.",
            |row| Some(row as u64),
            move |row| examples[row].examples.join("\n"),
        )
}
