//! The tables beside that of slices.

use super::sheet::Sheet;
use super::slices::process;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{
    CopyDirection, DeviceEvent, DeviceEventClass, DeviceEventId, DeviceFact, FactValue, MemoryEvent, SliceId,
    StackSample, Trace,
};

pub(super) fn id(slice: Option<SliceId>) -> Option<i64> {
    slice.map(|slice| slice.0.into())
}

/// A text that may not be known.
pub(super) fn known(trace: &Trace, text: StringId) -> Option<&str> {
    Some(trace.strings.get(text)).filter(|_| text != StringTable::EMPTY)
}

/// A row is a kernel, a copy or a fill.
pub(super) fn device_events(trace: &Trace) -> Sheet<'_> {
    let event = |row: usize| -> DeviceEvent { trace.device_events.get(DeviceEventId::from_index(row)) };
    let device = move |row: usize| &trace.devices[event(row).device.index()];
    let sheet = Sheet::new("device_events", trace.device_events.len())
        .int("slice", move |row| id(Some(event(row).slice)))
        .text("name", move |row| Some(trace.slice_name(event(row).slice)))
        .text("class", move |row| Some(event(row).class.as_str()))
        .text("direction", move |row| direction(event(row).class))
        .int("start_ns", move |row| Some(trace.slices.start_ns[event(row).slice.index()]))
        .int("dur_ns", move |row| Some(trace.slices.dur_ns[event(row).slice.index()]))
        .int("rank", move |row| Some(device(row).rank.into()))
        .int("device", move |row| Some(device(row).ordinal))
        .int("stream", move |row| event(row).stream)
        .int("launch", move |row| id(event(row).launch))
        .int("op", move |row| id(event(row).op))
        .text("op_name", move |row| event(row).op.map(|op| trace.slice_name(op)));
    DeviceFact::ALL.iter().fold(sheet, |sheet, fact| match fact.value {
        FactValue::Sizes(of) => ["x", "y", "z"].into_iter().enumerate().fold(sheet, |sheet, (axis, letter)| {
            let column = format!("{}_{letter}", fact.column);
            sheet.int(column, move |row| of(&event(row)).map(|sizes| sizes[axis].into()))
        }),
        FactValue::Int(of) => sheet.int(fact.column, move |row| of(&event(row))),
        FactValue::Unsigned(of) => sheet.unsigned(fact.column, move |row| of(&event(row))),
        FactValue::Float(of) | FactValue::Ratio(of) => {
            sheet.float(fact.column, move |row| of(&event(row)).map(f64::from))
        }
        FactValue::Flag(of) => sheet.flag(fact.column, move |row| of(&event(row))),
    })
}

fn direction(class: DeviceEventClass) -> Option<&'static str> {
    let DeviceEventClass::Memcpy(direction) = class else { return None };
    match direction {
        CopyDirection::HostToDevice => Some("host_to_device"),
        CopyDirection::DeviceToHost => Some("device_to_host"),
        CopyDirection::DeviceToDevice => Some("device_to_device"),
        CopyDirection::PeerToPeer => Some("peer_to_peer"),
        CopyDirection::Unknown => None,
    }
}

/// A row is an operator of which more is known than its slice.
pub(super) fn ops(trace: &Trace) -> Sheet<'_> {
    let ops = &trace.ops;
    let inputs = |row: usize| ops.inputs(ops.info[row].inputs);
    Sheet::new("ops", ops.slice.len())
        .int("slice", |row| id(Some(ops.slice[row])))
        .text("name", |row| Some(trace.slice_name(ops.slice[row])))
        .int("sequence_number", |row| ops.info[row].sequence_number)
        .unsigned("forward_thread", |row| ops.info[row].forward_thread)
        .int("scope", |row| Some(ops.info[row].scope.into()))
        .text("input_dims", move |row| known(trace, inputs(row).dims))
        .text("input_types", move |row| known(trace, inputs(row).types))
        .text("input_strides", move |row| known(trace, inputs(row).strides))
        .text("concrete_inputs", move |row| known(trace, inputs(row).concrete))
        .text("keyword_inputs", move |row| known(trace, inputs(row).keywords))
        .text("overload", |row| known(trace, ops.info[row].overload))
        .text("stack", |row| known(trace, ops.info[row].stack))
}

/// A row is an allocation or a free.
pub(super) fn memory(trace: &Trace) -> Sheet<'_> {
    let event = |row: usize| -> &MemoryEvent { &trace.memory[row] };
    let track = move |row: usize| &trace.tracks[event(row).track.index()];
    Sheet::new("memory", trace.memory.len())
        .int("time_ns", move |row| Some(event(row).time_ns))
        .int("rank", move |row| Some(process(trace, track(row)).rank.into()))
        .int("pid", move |row| process(trace, track(row)).pid)
        .int("tid", move |row| track(row).tid)
        .int("track", move |row| Some(event(row).track.0.into()))
        .int("device", move |row| event(row).device.map(|id| trace.devices[id.index()].ordinal))
        .unsigned("address", move |row| Some(event(row).address).filter(|address| *address != 0))
        .int("bytes", move |row| Some(event(row).bytes))
        .int("allocated_bytes", move |row| event(row).allocated_bytes)
        .int("reserved_bytes", move |row| event(row).reserved_bytes)
        .int("op", move |row| id(event(row).op))
        .int("stream", move |row| event(row).stream)
        .made_text("stack", move |row| event(row).stack.map(|stack| trace.stacks.text(stack, &trace.strings)))
}

/// A row is a sample of a thread's stack.
pub(super) fn stack_samples(trace: &Trace) -> Sheet<'_> {
    let sample = |row: usize| -> &StackSample { &trace.stack_samples[row] };
    let track = move |row: usize| &trace.tracks[sample(row).track.index()];
    let line = move |row: usize| trace.stacks.frames(sample(row).stack?).next();
    Sheet::new("stack_samples", trace.stack_samples.len())
        .int("time_ns", move |row| Some(sample(row).time_ns))
        .int("rank", move |row| Some(process(trace, track(row)).rank.into()))
        .int("pid", move |row| process(trace, track(row)).pid)
        .int("tid", move |row| track(row).tid)
        .int("track", move |row| Some(sample(row).track.0.into()))
        .text("line", move |row| line(row).map(|frame| trace.strings.get(frame)))
        .text("doing", move |row| Some(sample(row).doing.as_str()))
        .int("ran_ns", move |row| sample(row).ran_ns)
        .int("runnable_ns", move |row| sample(row).runnable_ns)
        .made_text("stack", move |row| sample(row).stack.map(|stack| trace.stacks.text(stack, &trace.strings)))
}

/// A row is an edge between two slices.
pub(super) fn flows(trace: &Trace) -> Sheet<'_> {
    Sheet::new("flows", trace.flows.len())
        .int("from", |row| id(Some(trace.flows[row].from)))
        .int("to", |row| id(Some(trace.flows[row].to)))
        .text("kind", |row| Some(trace.flows[row].kind.as_str()))
}

/// A row is a step of a rank.
pub(super) fn steps(trace: &Trace) -> Sheet<'_> {
    let steps = &trace.steps;
    Sheet::new("steps", steps.len())
        .int("rank", |row| Some(steps[row].rank.into()))
        .int("pid", |row| trace.processes[steps[row].process.index()].pid)
        .int("step", |row| Some(steps[row].number))
        .int("start_ns", |row| Some(steps[row].span.start_ns))
        .int("dur_ns", |row| Some(steps[row].span.duration_ns()))
        .text("source", |row| Some(steps[row].source.as_str()))
        .flag("is_complete", |row| Some(steps[row].is_complete))
        .text("iteration", |row| steps[row].iteration.kind.map(stepscope_trace::IterationKind::as_str))
        .int("requests", |row| steps[row].iteration.requests)
        .int("tokens", |row| steps[row].iteration.tokens)
}

/// A row is a sample of a counter.
pub(super) fn counters(trace: &Trace) -> Sheet<'_> {
    // Where each counter's rows begin.
    let mut begins = vec![0];
    begins.extend(trace.counters.iter().scan(0, |end, counter| {
        *end += counter.time_ns.len();
        Some(*end)
    }));
    let rows = begins.last().copied().unwrap_or(0);
    let begins: std::rc::Rc<[usize]> = begins.into();
    let at = move |row: usize| {
        let counter = begins.partition_point(|begin| *begin <= row) - 1;
        (&trace.counters[counter], row - begins[counter])
    };
    let (names, ranks, pids, devices, times) = (at.clone(), at.clone(), at.clone(), at.clone(), at.clone());
    let process = |row: &stepscope_trace::Counter| &trace.processes[row.process.index()];
    Sheet::new("counters", rows)
        .text("name", move |row| Some(trace.strings.get(names(row).0.name)))
        .int("rank", move |row| Some(process(ranks(row).0).rank.into()))
        .int("pid", move |row| process(pids(row).0).pid)
        .int("device", move |row| devices(row).0.device.map(|id| trace.devices[id.index()].ordinal))
        .int("time_ns", move |row| Some(times(row).0.time_ns[times(row).1]))
        .float("value", move |row| Some(at(row).0.value[at(row).1]))
}
