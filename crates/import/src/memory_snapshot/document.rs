//! Where in the pickle everything stands, and how its parts become one trace.

use super::annotations;
use super::entries::{Block, Entry, Reader};
use super::replay::{History, Replay};
use crate::pickle::{Plain, Value};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{Device, FindingCode, TraceBuilder, TrackId};

/// Numbers of devices from here on are taken for damage.
const MAX_DEVICES: usize = 1_024;
/// Facts about the allocator that are kept.
const MAX_FACTS: usize = 64;

macro_rules! keys {
    ($($name:ident)*) => {
        /// The texts that a snapshot is made of.
        pub(super) struct Keys { $(pub(super) $name: StringId,)* }

        impl Keys {
            /// Interns all of them.
            pub(super) fn of(texts: &mut StringTable) -> Self {
                Self { $($name: texts.intern(stringify!($name)),)* }
            }
        }
    };
}

keys! {
    segments device_traces external_annotations allocator_settings
    device address total_size stream blocks
    size requested_size state active_allocated frames
    action addr time_us device_free
    alloc free_requested free_completed segment_alloc segment_free segment_map segment_unmap oom snapshot
    filename line name
    stage
}

/// A snapshot: per device what is allocated and what happened.
pub(super) struct Document<'a> {
    reader: Reader<'a>,
    annotations: Option<Value>,
    devices: Vec<OfDevice>,
}

/// What a snapshot says of one device.
#[derive(Default)]
pub(super) struct OfDevice {
    /// Whether the snapshot names it at all.
    is_named: bool,
    pub(super) entries: Vec<Entry>,
    /// The blocks that are allocated.
    pub(super) blocks: Vec<Block>,
    /// What the allocator holds.
    pub(super) reserved_bytes: i64,
}

impl<'a> Document<'a> {
    /// Finds everything.
    ///
    /// # Errors
    /// What the pickle holds, when it is no snapshot.
    pub(super) fn of(plain: &'a Plain, keys: &'a Keys, builder: &mut TraceBuilder) -> Result<Self, String> {
        let mut document = Self { reader: Reader::new(plain, keys), annotations: None, devices: Vec::new() };
        let (segments, traces) = match plain.root {
            // `torch.cuda.memory_snapshot()` gives the segments alone.
            Some(list @ Value::List(_)) if document.reader.is_list_of_segments(list) => (Some(list), None),
            Some(Value::Dict(root)) => {
                document.annotations = plain.get(root, keys.external_annotations);
                if let Some(Value::Dict(settings)) = plain.get(root, keys.allocator_settings) {
                    add_facts(plain, plain.dict(settings), builder);
                }
                (plain.get(root, keys.segments), plain.get(root, keys.device_traces))
            }
            Some(other) => return Err(format!("a pickle of {}", Plain::kind(other))),
            None => return Err("an empty pickle".into()),
        };
        if segments.is_none() && traces.is_none() {
            return Err("a pickle of a dict without segments".into());
        }
        for segment in document.reader.list_of(segments, "segments", builder) {
            document.add_segment(*segment, builder);
        }
        for (ordinal, trace) in document.reader.list_of(traces, "device_traces", builder).iter().enumerate() {
            document.add_trace(ordinal, *trace, builder);
        }
        Ok(document)
    }

    fn add_segment(&mut self, segment: Value, builder: &mut TraceBuilder) {
        let Some(found) = self.reader.segment(segment) else {
            return builder.findings.add(FindingCode::UnreadableEvent, || "a segment".into());
        };
        let Some(device) = of_device(&mut self.devices, found.ordinal) else {
            return builder.findings.add(FindingCode::UnreadableEvent, || format!("device {}", found.ordinal));
        };
        device.reserved_bytes = device.reserved_bytes.saturating_add(found.bytes);
        let mut address = found.address;
        for block in self.reader.list_of(found.blocks, "blocks", builder) {
            let Some((block, end)) = self.reader.block(*block, address, found.stream) else {
                builder.findings.add(FindingCode::UnreadableEvent, || format!("a block of segment {}", found.address));
                continue;
            };
            address = end;
            device.blocks.extend(block);
        }
    }

    fn add_trace(&mut self, ordinal: usize, trace: Value, builder: &mut TraceBuilder) {
        let entries = self.reader.list_of(Some(trace), "device_traces", builder);
        if entries.is_empty() {
            return;
        }
        let Some(device) = of_device(&mut self.devices, ordinal) else {
            return builder.findings.add(FindingCode::UnreadableEvent, || format!("device {ordinal}"));
        };
        for (at, entry) in entries.iter().enumerate() {
            match self.reader.entry(*entry) {
                Ok(entry) => device.entries.push(entry),
                Err(code) => builder.findings.add(code, || format!("entry {at} of device {ordinal}")),
            }
        }
    }

    /// Adds everything to a trace; all events lie on `track`.
    pub(super) fn add_to(mut self, track: TrackId, builder: &mut TraceBuilder) {
        let mut histories: Vec<(usize, OfDevice)> =
            std::mem::take(&mut self.devices).into_iter().enumerate().filter(|(_, device)| device.is_named).collect();
        let has_times = histories.iter().flat_map(|(_, device)| &device.entries).any(|entry| entry.time_ns.is_some());
        let mut start_ns = None;
        if has_times {
            builder.clock_zero_unix_ns = Some(0);
            start_ns = annotations::add(&mut self.reader, self.annotations, track, builder);
        } else if histories.iter().any(|(_, device)| !device.entries.is_empty()) {
            builder.findings.add(FindingCode::MemoryWithoutTimes, || builder.name.clone());
        }
        for (ordinal, device) in &mut histories {
            put_in_order(&mut device.entries, has_times, *ordinal, builder);
        }
        let first_ns = |device: &OfDevice| device.entries.first().and_then(|entry| entry.time_ns);
        start_ns = histories.iter().filter_map(|(_, device)| first_ns(device)).chain(start_ns).min();
        let start_ns = start_ns.unwrap_or(0);
        for (ordinal, device) in &histories {
            let id = builder.add_device(Device { ordinal: *ordinal as i64, ..Device::default() });
            let history = History { track, device: id, ordinal: *ordinal, start_ns };
            Replay::of(device).add_to(&history, &mut self.reader, builder);
        }
    }
}

/// Gives every entry a time, not before that of the entry before it. Without times entries are 1 us apart.
fn put_in_order(entries: &mut [Entry], has_times: bool, ordinal: usize, builder: &mut TraceBuilder) {
    let mut last_ns = entries.iter().find_map(|entry| entry.time_ns).unwrap_or(0);
    for (at, entry) in entries.iter_mut().enumerate() {
        let time_ns = if has_times { entry.time_ns } else { Some(at as i64 * 1_000) };
        match time_ns.filter(|time_ns| *time_ns >= last_ns) {
            Some(time_ns) => last_ns = time_ns,
            None => {
                builder.findings.add(FindingCode::MemoryTimesUnordered, || format!("entry {at} of device {ordinal}"));
            }
        }
        entry.time_ns = Some(last_ns);
    }
}

fn of_device(devices: &mut Vec<OfDevice>, ordinal: usize) -> Option<&mut OfDevice> {
    if ordinal >= MAX_DEVICES {
        return None;
    }
    if devices.len() <= ordinal {
        devices.resize_with(ordinal + 1, OfDevice::default);
    }
    devices[ordinal].is_named = true;
    Some(&mut devices[ordinal])
}

/// How the allocator was set, as facts about the run.
fn add_facts(plain: &Plain, settings: &[(Value, Value)], builder: &mut TraceBuilder) {
    for (key, value) in settings.iter().take(MAX_FACTS) {
        if let (Value::Text(key), Some(value)) = (key, plain.shown(*value))
            && !value.is_empty()
        {
            builder.facts.push((plain.texts.get(*key).to_string(), value));
        }
    }
}
