//! The tables of moments: `memory`, `counter`, `sample`, `instant`; and `step`.

use super::sheet::Sheet;
use super::slices::{PID, TID, TRACK};
use super::source::Source;
use stepscope_engine::Unit;
use stepscope_trace::{Counter, IterationKind, MemoryEvent, StackSample, StepSource};

const TIME: &str = "When, from the start of the trace.";

/// A row is an allocation or a free.
pub(super) fn memory<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let event = |row: usize| -> &MemoryEvent { &trace.memory[row] };
    let track = move |row: usize| &trace.tracks[event(row).track.index()];
    let stack = move |row: usize| event(row).stack;
    let text = move |row: usize| stack(row).map_or_else(String::new, |stack| trace.stacks.text(stack, &trace.strings));
    Sheet::new("memory", "An allocation or a free.", trace.memory.len())
        .ns("time_ns", TIME, move |row| Some(event(row).time_ns))
        .rank(move |row| source.rank_of_track(event(row).track))
        .int("step", "The step in which it is; null outside of steps.", move |row| {
            source.step_of(source.rank_of_track(event(row).track), event(row).time_ns)
        })
        .id("pid", PID, move |row| source.process_of(track(row)).pid)
        .id("tid", TID, move |row| track(row).tid)
        .id("track", TRACK, move |row| Some(source.track_id(event(row).track)))
        .int("device", "The device whose memory it is; null for the host's.", move |row| {
            event(row).device.map(|id| trace.devices[id.index()].ordinal)
        })
        .unsigned("address", "Its address; null where it is not told.", move |row| {
            Some(event(row).address).filter(|address| *address != 0)
        })
        .bytes("bytes", "Bytes that were allocated; of a free below 0.", move |row| Some(event(row).bytes))
        .bytes("allocated_bytes", "Bytes in use on that device afterwards, as the allocator counts.", move |row| {
            event(row).allocated_bytes
        })
        .bytes("reserved_bytes", "Bytes that the allocator holds from the device afterwards.", move |row| {
            event(row).reserved_bytes
        })
        .id("op", "The innermost operator around it.", move |row| source.maybe_id(event(row).op))
        .named("op_name", "What that operator is called.", source, move |row| {
            event(row).op.map(|op| trace.slices.name[op.index()])
        })
        .id("stream", "The stream that the memory is for.", move |row| event(row).stream)
        .made(
            "stack",
            "Its Python stack, innermost first, with ; between frames.",
            move |row| stack(row).map(|stack| stack.0.into()),
            text,
        )
}

/// A row is a sample of a thread's stack.
pub(super) fn sample<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let sample = |row: usize| -> &StackSample { &trace.stack_samples[row] };
    let track = move |row: usize| &trace.tracks[sample(row).track.index()];
    let stack = move |row: usize| sample(row).stack;
    let text = move |row: usize| stack(row).map_or_else(String::new, |stack| trace.stacks.text(stack, &trace.strings));
    Sheet::new("sample", "A sample of what a thread runs: a moment, never a duration.", trace.stack_samples.len())
        .ns("time_ns", TIME, move |row| Some(sample(row).time_ns))
        .rank(move |row| source.rank_of_track(sample(row).track))
        .int("step", "The step in which it is; null outside of steps.", move |row| {
            source.step_of(source.rank_of_track(sample(row).track), sample(row).time_ns)
        })
        .id("pid", PID, move |row| source.process_of(track(row)).pid)
        .id("tid", TID, move |row| track(row).tid)
        .id("track", TRACK, move |row| Some(source.track_id(sample(row).track)))
        .named("line", "The innermost frame: file, line, function.", source, move |row| {
            trace.stacks.frames(stack(row)?).next()
        })
        .text("doing", "What the thread did: running, sleep, lock, interpreter_lock, file …", move |row| {
            Some(sample(row).doing.as_str())
        })
        .ns("ran_ns", "How long the thread ran since its sample before.", move |row| sample(row).ran_ns)
        .ns("runnable_ns", "How long it could have run since then and did not.", move |row| sample(row).runnable_ns)
        .made(
            "stack",
            "Its stack, innermost first, with ; between frames.",
            move |row| stack(row).map(|stack| stack.0.into()),
            text,
        )
}

/// A row is an event without duration.
pub(super) fn instant<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let instants = &source.trace.instants;
    let track = |row: usize| &source.trace.tracks[instants.track[row].index()];
    Sheet::new("instant", "An event without a duration.", instants.len())
        .named("name", "What it is called.", source, |row| Some(instants.name[row]))
        .ns("time_ns", TIME, |row| Some(instants.time_ns[row]))
        .rank(|row| source.rank_of_track(instants.track[row]))
        .id("pid", PID, move |row| source.process_of(track(row)).pid)
        .id("tid", TID, move |row| track(row).tid)
        .id("track", TRACK, |row| Some(source.track_id(instants.track[row])))
}

/// A row is a step of a rank.
pub(super) fn step<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let steps = &trace.steps;
    Sheet::new("step", "A step of a rank.", steps.len())
        .rank(|row| steps[row].rank)
        .id("pid", "The process that runs it.", |row| trace.processes[steps[row].process.index()].pid)
        .int("step", "Its number, as the job counts.", |row| Some(steps[row].number))
        .ns("start_ns", "When it starts, from the start of the trace.", |row| Some(steps[row].span.start_ns))
        .ns("dur_ns", "How long it takes.", |row| Some(steps[row].span.duration_ns()))
        .text(
            "source",
            "How its limits are known: label, optimizer, kernels; whole where nothing marks steps.",
            |row| Some(steps[row].source.as_str()),
        )
        .flag(
            "is_complete",
            "Recorded from its start to its end. Numbers per step are over these, without those of source whole.",
            |row| Some(steps[row].is_complete),
        )
        .flag("is_step", "Complete, and known to be a step.", |row| {
            Some(steps[row].is_complete && steps[row].source != StepSource::Whole)
        })
        .text("iteration", "Of an inference server: prefill, decode, mixed, verify.", |row| {
            steps[row].iteration.kind.map(IterationKind::as_str)
        })
        .int("requests", "Requests that an inference server computes together.", |row| steps[row].iteration.requests)
        .int("tokens", "Tokens of them that it computes.", |row| steps[row].iteration.tokens)
}

/// A row is a sample of a counter.
pub(super) fn counter<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    // Where each counter's rows begin.
    let mut begins = vec![0];
    begins.extend(trace.counters.iter().scan(0, |end, counter| {
        *end += counter.time_ns.len();
        Some(*end)
    }));
    let rows = begins.last().copied().unwrap_or(0);
    let begins: std::sync::Arc<[usize]> = begins.into();
    let at = move |row: usize| {
        let counter = begins.partition_point(|begin| *begin <= row) - 1;
        (&trace.counters[counter], row - begins[counter])
    };
    let (names, ranks, pids, devices, times) = (at.clone(), at.clone(), at.clone(), at.clone(), at.clone());
    let process = |row: &Counter| &trace.processes[row.process.index()];
    Sheet::new("counter", "A sampled value.", rows)
        .named("name", "What is counted, with its unit.", source, move |row| Some(names(row).0.name))
        .rank(move |row| process(ranks(row).0).rank)
        .id("pid", PID, move |row| process(pids(row).0).pid)
        .int("device", "The device, for counters of one.", move |row| {
            devices(row).0.device.map(|id| trace.devices[id.index()].ordinal)
        })
        .ns("time_ns", TIME, move |row| Some(times(row).0.time_ns[times(row).1]))
        .float("value", Unit::Plain, "Its value.", move |row| Some(at(row).0.value[at(row).1]))
}
