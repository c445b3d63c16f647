//! The tables of what devices do: `kernel`, `copy`, `launch`, `sync`.

use super::sheet::Sheet;
use super::slices::{DUR, PID, SLICE, START, TID, TRACK};
use super::source::Source;
use std::sync::Arc;
use stepscope_engine::Unit;
use stepscope_trace::{CopyDirection, DeviceEvent, DeviceEventClass, DeviceFact, FactValue, SliceId, Synchronization};

const STREAM: &str = "The stream; null where it is not told.";
const DEVICE: &str = "The device, as its rank numbers them.";

/// A row is a kernel.
pub(super) fn kernel<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let is_kernel = |class| matches!(class, DeviceEventClass::Compute | DeviceEventClass::Communication);
    let (sheet, rows) = events(source, "kernel", "A kernel that a device ran.", is_kernel);
    with_facts(source, sheet, &rows, |fact| !matches!(fact, "bytes" | "is_pageable"))
}

/// A row is a copy or a fill.
pub(super) fn copy<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let is_copy = |class| matches!(class, DeviceEventClass::Memcpy(_) | DeviceEventClass::Memset);
    let (sheet, rows) = events(source, "copy", "A copy or a fill that a device carried out.", is_copy);
    let of = Arc::clone(&rows);
    let sheet = sheet.text(
        "direction",
        "Of a copy: host_to_device, device_to_host, device_to_device, peer_to_peer.",
        move |row| direction(source.event(of[row] as usize).class),
    );
    with_facts(source, sheet, &rows, |fact| {
        matches!(fact, "bytes" | "is_pageable" | "graph" | "graph_node" | "context")
    })
}

/// The device events of some classes with what all of them have, and their rows in the trace.
fn events<'a>(
    source: &'a Source<'a>,
    name: &'static str,
    doc: &'static str,
    is_row: impl Fn(DeviceEventClass) -> bool,
) -> (Sheet<'a>, Arc<[u32]>) {
    let trace = source.trace;
    let rows: Arc<[u32]> =
        (0..trace.device_events.len() as u32).filter(|row| is_row(source.event(*row as usize).class)).collect();
    macro_rules! of {
        (|$event:ident| $cell:expr) => {{
            let rows = Arc::clone(&rows);
            move |row: usize| {
                let $event: DeviceEvent = source.event(rows[row] as usize);
                $cell
            }
        }};
    }
    let device = move |event: &DeviceEvent| &trace.devices[event.device.index()];
    let sheet = Sheet::new(name, doc, rows.len())
        .id("slice", SLICE, of!(|event| Some(source.id(event.slice))))
        .named("name", "What it is called.", source, of!(|event| Some(trace.slices.name[event.slice.index()])))
        .text("class", "compute, communication, memcpy, memset.", of!(|event| Some(event.class.as_str())))
        .ns("start_ns", START, of!(|event| Some(source.start_ns(event.slice))))
        .ns("dur_ns", DUR, of!(|event| Some(source.dur_ns(event.slice))))
        .int(
            "step",
            "The step in which it was launched; where that is not known, in which it starts. Null outside of steps.",
            of!(|event| source.step(event.slice)),
        )
        .rank(of!(|event| device(&event).rank))
        .int("device", DEVICE, of!(|event| Some(device(&event).ordinal)))
        .id("stream", STREAM, of!(|event| event.stream))
        .id(
            "launch",
            "The call on the host that launched it; null where that is not known.",
            of!(|event| source.maybe_id(event.launch)),
        )
        .id("op", "The innermost operator around the launch.", of!(|event| source.maybe_id(event.op)))
        .named(
            "op_name",
            "What that operator is called.",
            source,
            of!(|event| event.op.map(|op| trace.slices.name[op.index()])),
        );
    (sheet, rows)
}

/// `sheet` with those facts about its events that `has` names.
fn with_facts<'a>(
    source: &'a Source<'a>,
    sheet: Sheet<'a>,
    rows: &Arc<[u32]>,
    has: impl Fn(&str) -> bool,
) -> Sheet<'a> {
    let facts = DeviceFact::ALL.iter().filter(|fact| has(fact.column));
    facts.fold(sheet, |sheet, fact| {
        let rows = Arc::clone(rows);
        let event = move |row: usize| source.event(rows[row] as usize);
        match fact.value {
            FactValue::Sizes(of) => ["x", "y", "z"].into_iter().enumerate().fold(sheet, |sheet, (axis, letter)| {
                let event = event.clone();
                let column = format!("{}_{letter}", fact.column);
                sheet.int(column, fact.doc, move |row| of(&event(row)).map(|sizes| sizes[axis].into()))
            }),
            FactValue::Int(of) if fact.column == "bytes" => sheet.bytes("bytes", fact.doc, move |row| of(&event(row))),
            FactValue::Int(of) => sheet.int(fact.column, fact.doc, move |row| of(&event(row))),
            FactValue::Unsigned(of) => sheet.unsigned(fact.column, fact.doc, move |row| of(&event(row))),
            FactValue::Float(of) => {
                sheet.float(fact.column, Unit::Plain, fact.doc, move |row| of(&event(row)).map(f64::from))
            }
            FactValue::Ratio(of) => {
                sheet.float(fact.column, Unit::Ratio, fact.doc, move |row| of(&event(row)).map(f64::from))
            }
            FactValue::Flag(of) => sheet.flag(fact.column, fact.doc, move |row| of(&event(row))),
        }
    })
}

fn direction(class: DeviceEventClass) -> Option<&'static str> {
    match class {
        DeviceEventClass::Memcpy(CopyDirection::Unknown) => None,
        DeviceEventClass::Memcpy(direction) => Some(direction.as_str()),
        _ => None,
    }
}

/// What a call on the host launched.
struct Launched {
    call: SliceId,
    event: DeviceEvent,
}

/// A row is what one call on the host launched.
pub(super) fn launch<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let is_known = |row: &u32| source.event(*row as usize).launch.is_some();
    let rows: Arc<[u32]> = (0..trace.device_events.len() as u32).filter(is_known).collect();
    macro_rules! of {
        (|$launched:ident| $cell:expr) => {{
            let rows = Arc::clone(&rows);
            move |row: usize| {
                let event = source.event(rows[row] as usize);
                let $launched = Launched { call: event.launch?, event };
                $cell
            }
        }};
    }
    let rank = {
        let rows = Arc::clone(&rows);
        move |row: usize| trace.devices[source.event(rows[row] as usize).device.index()].rank
    };
    Sheet::new("launch", "A kernel, copy or fill with the call on the host that launched it.", rows.len())
        .id("slice", "The call.", of!(|launched| Some(source.id(launched.call))))
        .named(
            "name",
            "What the call is called.",
            source,
            of!(|launched| Some(trace.slices.name[launched.call.index()])),
        )
        .ns(
            "start_ns",
            "When the call starts, from the start of the trace.",
            of!(|launched| Some(source.start_ns(launched.call))),
        )
        .ns("dur_ns", "How long the call takes.", of!(|launched| Some(source.dur_ns(launched.call))))
        .int(
            "step",
            "The step in which the call starts; null outside of steps.",
            of!(|launched| source.step(launched.call)),
        )
        .rank(rank)
        .id("pid", PID, of!(|launched| source.process_of(source.track_of(launched.call)).pid))
        .id("tid", TID, of!(|launched| source.track_of(launched.call).tid))
        .id("track", TRACK, of!(|launched| Some(source.track_id(trace.slices.track[launched.call.index()]))))
        .id("op", "The innermost operator around the call.", of!(|launched| source.maybe_id(launched.event.op)))
        .named(
            "op_name",
            "What that operator is called.",
            source,
            of!(|launched| launched.event.op.map(|op| trace.slices.name[op.index()])),
        )
        .id("launched", "What it launched.", of!(|launched| Some(source.id(launched.event.slice))))
        .named(
            "launched_name",
            "What that is called.",
            source,
            of!(|launched| Some(trace.slices.name[launched.event.slice.index()])),
        )
        .int("device", DEVICE, of!(|launched| Some(trace.devices[launched.event.device.index()].ordinal)))
        .id("stream", STREAM, of!(|launched| launched.event.stream))
        .ns(
            "delay_ns",
            "From the start of the call to the start of what it launched.",
            of!(|launched| Some(source.start_ns(launched.event.slice) - source.start_ns(launched.call))),
        )
}

/// A row is a wait between host, streams and events.
pub(super) fn sync<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let wait = |row: usize| -> &Synchronization { &trace.synchronizations[row] };
    let device = move |row: usize| &trace.devices[wait(row).device.index()];
    Sheet::new(
        "sync",
        "A wait between host, streams and events, as the device's profiler reports it.",
        trace.synchronizations.len(),
    )
    .id("slice", SLICE, move |row| Some(source.id(wait(row).slice)))
    .named("name", "What it is called.", source, move |row| Some(trace.slices.name[wait(row).slice.index()]))
    .text("kind", "Who waits for what.", move |row| Some(wait(row).kind.as_str()))
    .ns("start_ns", START, move |row| Some(source.start_ns(wait(row).slice)))
    .ns("dur_ns", DUR, move |row| Some(source.dur_ns(wait(row).slice)))
    .rank(move |row| device(row).rank)
    .int("device", DEVICE, move |row| Some(device(row).ordinal))
    .id("stream", "The stream that is waited for, or that waits.", move |row| wait(row).stream)
    .int("event_stream", "Of a wait for an event, the stream that recorded it.", move |row| wait(row).event_stream)
    .id("call", "The call on the host that waits.", move |row| source.maybe_id(wait(row).call))
    .id("event_record", "Of a wait for an event, the call that recorded it.", move |row| {
        source.maybe_id(wait(row).event_record)
    })
}
