//! From an event's arguments to what the trace keeps of them.

use super::event::{Args, CollectiveArgs, Event};
use super::text;
use std::borrow::Cow;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{
    Collective, CopyDirection, DeviceEvent, DeviceEventClass, DeviceId, MemoryEvent, OpInfo, OpInputs, SliceId,
    SyncKind, Synchronization, TraceBuilder, TrackId,
};

/// What is known of an op; `None` when nothing is.
pub(super) fn op_info(args: &Args<'_>, builder: &mut TraceBuilder) -> Option<OpInfo> {
    let sequence_number = args.sequence_number.filter(|number| *number >= 0);
    let has_facts = sequence_number.is_some() || args.call_stack.is_some() || args.inputs != Default::default();
    if !has_facts {
        return None;
    }
    let forward_thread = args.forward_thread.filter(|thread| *thread != 0).map(|thread| thread as u64);
    let inputs = OpInputs {
        dims: compact(args.inputs.dims, &mut builder.strings),
        types: compact(args.inputs.types, &mut builder.strings),
        strides: compact(args.inputs.strides, &mut builder.strings),
        concrete: compact(args.inputs.concrete, &mut builder.strings),
    };
    Some(OpInfo {
        sequence_number,
        forward_thread: forward_thread.filter(|_| sequence_number.is_some()),
        // Only backward nodes name the thread of their forward op.
        scope: u8::from(forward_thread.is_some() && sequence_number.is_some()),
        inputs: builder.intern_inputs(inputs),
        stack: args.call_stack.map_or(StringTable::EMPTY, |stack| builder.strings.intern(&text::decode(stack).text)),
    })
}

/// A JSON text without the white space between its values.
fn compact(written: &[u8], strings: &mut StringTable) -> StringId {
    let (mut in_string, mut is_escaped) = (false, false);
    let has_space = written.iter().any(u8::is_ascii_whitespace);
    let kept: Cow<'_, [u8]> = if has_space {
        let keep = |byte: &&u8| {
            let is_kept = in_string || !byte.is_ascii_whitespace();
            in_string ^= **byte == b'"' && !is_escaped;
            is_escaped = in_string && **byte == b'\\' && !is_escaped;
            is_kept
        };
        Cow::Owned(written.iter().filter(keep).copied().collect())
    } else {
        Cow::Borrowed(written)
    };
    strings.intern(&String::from_utf8_lossy(&kept))
}

/// A kernel's launch, a copy's size.
pub(super) fn with_launch_size(event: DeviceEvent, args: &Args<'_>) -> DeviceEvent {
    DeviceEvent {
        grid: args.grid,
        block: args.block,
        registers: args.registers.and_then(|count| u32::try_from(count).ok()),
        shared_bytes: args.shared_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        blocks_per_sm: args.blocks_per_sm.filter(|blocks| *blocks >= 0.0).map(|blocks| blocks as f32),
        occupancy_ratio: args.occupancy_percent.filter(|p| (0.0..=100.0).contains(p)).map(|p| (p / 100.0) as f32),
        bytes: args.bytes.filter(|bytes| *bytes >= 0),
        graph: args.graph,
        graph_node: args.graph_node,
        ..event
    }
}

/// Where a copy goes, from its kind or its name.
pub(super) fn copy_direction(text: &[u8]) -> CopyDirection {
    match () {
        () if has(text, "HtoD") || has(text, "HostToDevice") => CopyDirection::HostToDevice,
        () if has(text, "DtoH") || has(text, "DeviceToHost") => CopyDirection::DeviceToHost,
        () if has(text, "DtoD") || has(text, "DeviceToDevice") => CopyDirection::DeviceToDevice,
        () if has(text, "PtoP") || has(text, "PeerToPeer") => CopyDirection::PeerToPeer,
        () => CopyDirection::Unknown,
    }
}

/// Whether the host's side of a copy is pageable: `Memcpy HtoD (Pageable -> Device)`.
pub(super) fn is_pageable(class: DeviceEventClass, name: &[u8]) -> Option<bool> {
    let DeviceEventClass::Memcpy(_) = class else { return None };
    match () {
        () if has(name, "pageable") => Some(true),
        () if has(name, "pinned") => Some(false),
        () => None,
    }
}

fn has(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// An allocation or a free.
pub(super) fn memory_event(args: &Args<'_>, time_ns: i64, track: TrackId, device: Option<DeviceId>) -> MemoryEvent {
    MemoryEvent {
        time_ns,
        track,
        device,
        address: args.memory.address.unwrap_or(0) as u64,
        bytes: args.bytes.unwrap_or(0),
        allocated_bytes: args.memory.total_allocated,
        reserved_bytes: args.memory.total_reserved,
        op: None,
    }
}

/// A wait on a device's track.
pub(super) fn synchronization(
    event: &Event<'_>,
    slice: SliceId,
    device: DeviceId,
    stream: Option<i64>,
) -> Synchronization {
    let said = event.args.sync.kind.unwrap_or(event.name);
    let kind = match () {
        () if has(said, "wait event") => SyncKind::StreamWaitEvent,
        () if has(said, "context sync") || has(said, "device sync") => SyncKind::Device,
        () if has(said, "stream sync") => SyncKind::Stream,
        () if has(said, "event sync") => SyncKind::Event,
        () => SyncKind::Unknown,
    };
    let event_stream = event.args.sync.event_stream.filter(|stream| !matches!(stream, -1 | 0xffff_ffff));
    Synchronization { slice, kind, device, stream, event_stream, call: None, event_record: None }
}

/// What a row says of a collective.
pub(super) fn collective(args: &CollectiveArgs<'_>, slice: SliceId, builder: &mut TraceBuilder) -> Collective {
    let mut text = |written: &[u8]| builder.strings.intern(&text::decode(written).text);
    Collective {
        slice,
        name: text(args.name),
        dtype: text(args.dtype),
        input_elements: args.input_elements,
        output_elements: args.output_elements,
        group: text(args.group),
        group_description: text(args.group_description),
        group_size: args.group_size,
        group_ranks: text(args.group_ranks),
        sequence_number: args.sequence_number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_lose_their_white_space_but_not_in_strings() {
        let mut strings = StringTable::default();
        let mut check = |written: &str, expected: &str| {
            let id = compact(written.as_bytes(), &mut strings);
            assert_eq!(strings.get(id), expected);
        };
        check("[[64, 3],\n [], [[1, 2]]]", "[[64,3],[],[[1,2]]]");
        check(r#"["long int", "a \" b", ""]"#, r#"["long int","a \" b",""]"#);
        check("[]", "[]");
    }

    #[test]
    fn copies_say_where_they_go_and_from_what() {
        let copy = DeviceEventClass::Memcpy(CopyDirection::Unknown);
        assert_eq!(copy_direction(b"Memcpy HtoD (Pageable -> Device)"), CopyDirection::HostToDevice);
        assert_eq!(is_pageable(copy, b"Memcpy HtoD (Pageable -> Device)"), Some(true));
        assert_eq!(is_pageable(copy, b"Memcpy DtoH (Device -> Pinned)"), Some(false));
        assert_eq!(is_pageable(copy, b"Memcpy DtoD (Device -> Device)"), None);
    }
}
