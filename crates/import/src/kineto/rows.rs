//! From events to rows of the trace: what each one is, where it lies, what is doubtful about it.

use super::arrows::Arrows;
use super::categories::{Category, category};
use super::event::{Args, Event, Quantity};
use super::facts;
use super::metadata::Metadata;
use super::text;
use super::tracks::{Row, Tracks};
use crate::labels::{Label, label_kind};
use crate::name_tables::{is_communication_call, is_communication_kernel, is_host_sync_call, uses_tensor_cores};
use rustc_hash::FxHashMap;
use stepscope_base::StringId;
use stepscope_trace::{
    CopyDirection, DeviceEvent, DeviceEventClass, FindingCode, LaunchKey, SliceId, SliceKind, Trace, TraceBuilder,
    TrackKind,
};

/// Everything read so far.
pub(super) struct Rows {
    pub(super) builder: TraceBuilder,
    tracks: Tracks,
    arrows: Arrows,
    /// Begins whose end is still to come: slice, start, byte.
    open: FxHashMap<Row, Vec<(SliceId, i64, usize)>>,
    /// What a name says about communication, asked once a name.
    communicates: FxHashMap<(StringId, bool), bool>,
    /// Whether a call waits for the device, or a kernel uses tensor cores, asked once a name.
    waits: FxHashMap<StringId, bool>,
    tensor_cores: FxHashMap<StringId, bool>,
    has_device_events: bool,
    last_ns: i64,
    /// Number of events that carry a phase.
    phase_count: usize,
}

impl Rows {
    /// Nothing read yet.
    pub(super) fn new(mut builder: TraceBuilder) -> Self {
        let tracks = Tracks::new(&mut builder);
        Self {
            builder,
            tracks,
            arrows: Arrows::default(),
            open: FxHashMap::default(),
            communicates: FxHashMap::default(),
            waits: FxHashMap::default(),
            tensor_cores: FxHashMap::default(),
            has_device_events: false,
            last_ns: i64::MIN,
            phase_count: 0,
        }
    }

    /// Number of events so far that look like trace events.
    pub(super) fn phase_count(&self) -> usize {
        self.phase_count
    }

    /// Adds the event that stands at `at_byte`.
    pub(super) fn add(&mut self, event: &Event<'_>, at_byte: usize) {
        self.phase_count += usize::from(!event.phase.is_empty());
        let category = category(event.category);
        match event.phase {
            b"" => return self.leave_out(FindingCode::UnreadableEvent, event, at_byte),
            b"M" => return self.add_name(event),
            b"C" | b"P" | b"b" | b"n" | b"e" | b"S" | b"T" | b"F" | b"p" | b"N" | b"O" | b"D" | b"v" | b"V" | b"c" => {
                return self.leave_out(FindingCode::UnsupportedEvent, event, at_byte);
            }
            b"X" | b"B" | b"E" | b"i" | b"I" | b"R" | b"s" | b"t" | b"f" => {}
            _ => return self.leave_out(FindingCode::UnknownPhase, event, at_byte),
        }
        let Quantity::Ns(time_ns) = event.time else {
            return self.leave_out(FindingCode::UnreadableEvent, event, at_byte);
        };
        match event.phase {
            b"X" => self.add_complete(event, category, time_ns, at_byte),
            b"B" => self.add_begin(event, category, time_ns, at_byte),
            b"E" => self.add_end(event, time_ns, at_byte),
            b"i" | b"I" | b"R" => self.add_instant(event, time_ns),
            _ => {
                let row = Tracks::row(&mut self.builder, event);
                self.arrows.add(event.phase == b"s", category, event.id, (row, time_ns), &mut self.builder.findings);
            }
        }
    }

    /// Closes what is open, links, and builds the trace.
    pub(super) fn finish(mut self, mut metadata: Metadata) -> Trace {
        self.close_begins();
        self.arrows.finish(&mut self.builder, &self.tracks);
        self.tracks.finish(&mut self.builder, &mut metadata);
        self.builder.clock_zero_unix_ns = metadata.clock_zero_unix_ns;
        self.builder.facts = metadata.facts;
        if !self.has_device_events {
            self.builder.findings.add(FindingCode::NoDeviceEvents, || self.builder.name.clone());
        }
        self.builder.finish()
    }

    fn leave_out(&mut self, code: FindingCode, event: &Event<'_>, at_byte: usize) {
        let phase = text::decode(event.phase).text;
        self.builder.findings.add(code, || format!("{:?} (phase {phase:?}) at byte {at_byte}", shown_name(event)));
    }

    fn name(&mut self, event: &Event<'_>) -> StringId {
        let decoded = text::decode(event.name);
        if decoded.is_repaired {
            self.builder.findings.add(FindingCode::RepairedText, || shown_name(event));
        }
        self.builder.strings.intern(&decoded.text)
    }

    fn add_name(&mut self, event: &Event<'_>) {
        let Some(name) = event.args.name else { return };
        let name = text::decode(name).text.trim().to_string();
        let row = Tracks::row(&mut self.builder, event);
        match event.name {
            b"thread_name" => self.tracks.name_row(row, name),
            b"process_name" => self.tracks.name_process(row, name),
            _ => {}
        }
    }

    fn add_complete(&mut self, event: &Event<'_>, category: Category, time_ns: i64, at_byte: usize) {
        let dur_ns = match event.duration {
            Quantity::Ns(dur_ns) if dur_ns >= 0 => dur_ns,
            Quantity::Unreadable => return self.leave_out(FindingCode::UnreadableEvent, event, at_byte),
            doubtful => {
                let is_missing = doubtful == Quantity::Missing;
                let code = if is_missing { FindingCode::MissingDuration } else { FindingCode::NegativeDuration };
                self.builder.findings.add(code, || format!("{:?} at byte {at_byte}", shown_name(event)));
                0
            }
        };
        self.add_slice(event, category, time_ns, dur_ns);
    }

    fn add_begin(&mut self, event: &Event<'_>, category: Category, time_ns: i64, at_byte: usize) {
        let slice = self.add_slice(event, category, time_ns, 0);
        let row = Tracks::row(&mut self.builder, event);
        self.open.entry(row).or_default().push((slice, time_ns, at_byte));
    }

    fn add_end(&mut self, event: &Event<'_>, time_ns: i64, at_byte: usize) {
        let row = Tracks::row(&mut self.builder, event);
        let Some((slice, start_ns, _)) = self.open.get_mut(&row).and_then(Vec::pop) else {
            return self.leave_out(FindingCode::UnmatchedBegin, event, at_byte);
        };
        if time_ns < start_ns {
            self.builder.findings.add(FindingCode::NegativeDuration, || format!("end at byte {at_byte}"));
        }
        self.builder.set_duration(slice, (time_ns - start_ns).max(0));
        self.last_ns = self.last_ns.max(time_ns);
    }

    fn close_begins(&mut self) {
        let mut open: Vec<(SliceId, i64, usize)> = self.open.values().flatten().copied().collect();
        open.sort_unstable();
        for (slice, start_ns, at_byte) in open {
            self.builder
                .findings
                .add(FindingCode::UnmatchedBegin, || format!("begin without an end at byte {at_byte}"));
            self.builder.set_duration(slice, (self.last_ns - start_ns).max(0));
            self.builder.set_unfinished(slice);
        }
    }

    fn add_instant(&mut self, event: &Event<'_>, time_ns: i64) {
        if event.category == b"cpu_instant_event" && event.args.memory.address.is_some() {
            return self.add_memory_event(event, time_ns);
        }
        let name = self.name(event);
        let row = Tracks::row(&mut self.builder, event);
        let track = match self.tracks.known_thread(row) {
            Some(thread) => thread,
            None if event.category == b"cpu_instant_event" => self.tracks.thread(&mut self.builder, row),
            None => self.tracks.other(&mut self.builder, row, None),
        };
        self.builder.add_instant(track, name, time_ns);
        self.last_ns = self.last_ns.max(time_ns);
    }

    fn add_memory_event(&mut self, event: &Event<'_>, time_ns: i64) {
        let row = Tracks::row(&mut self.builder, event);
        let track = self.tracks.thread(&mut self.builder, row);
        let memory = event.args.memory;
        // PyTorch's device type 0 is the CPU; every other is an accelerator, of which a process uses one type.
        let is_device = memory.device_type.is_some_and(|kind| kind != 0);
        let ordinal = memory.device_id.unwrap_or(0).max(0);
        let device = is_device.then(|| self.tracks.device(&mut self.builder, ordinal));
        self.builder.add_memory_event(facts::memory_event(&event.args, time_ns, track, device));
        self.last_ns = self.last_ns.max(time_ns);
    }

    fn add_slice(&mut self, event: &Event<'_>, category: Category, time_ns: i64, dur_ns: i64) -> SliceId {
        self.last_ns = self.last_ns.max(time_ns + dur_ns);
        let (category, name) = match event.name.strip_prefix(b"nn.Module: ") {
            Some(module) if category == Category::PythonFunction => {
                (Category::Module, self.name(&Event { name: module, ..*event }))
            }
            _ => (category, self.name(event)),
        };
        if category.is_on_device() {
            return self.add_device_row(event, category, name, time_ns, dur_ns);
        }
        let row = Tracks::row(&mut self.builder, event);
        let builder = &mut self.builder;
        let track = match category {
            _ if category.is_on_thread() => self.tracks.thread(builder, row),
            Category::Overhead => self.tracks.other(builder, row, Some("profiler overhead")),
            _ => self.tracks.other(builder, row, None),
        };
        let label = match category {
            Category::Op | Category::Annotation => label_kind(builder.strings.get(name)),
            _ => Label::Annotation,
        };
        let mut kind = host_kind(category, label);
        if matches!(category, Category::Runtime | Category::Driver) {
            let ask = || is_host_sync_call(builder.strings.get(name));
            kind = if *self.waits.entry(name).or_insert_with(ask) { SliceKind::HostSync } else { kind };
        }
        let slice = builder.add_slice(track, kind, name, time_ns, dur_ns);
        if let Label::Step(number) = label {
            builder.add_step_label(slice, number);
        }
        self.add_host_facts(event, category, name, slice);
        slice
    }

    fn add_host_facts(&mut self, event: &Event<'_>, category: Category, name: StringId, slice: SliceId) {
        match category {
            Category::Runtime | Category::Driver => self.correlate(event, slice),
            Category::Op | Category::Annotation => {
                if self.communicates(name, false) {
                    self.builder.add_communication_call(slice);
                }
                self.add_collective(event, slice);
                if category == Category::Op
                    && let Some(info) = facts::op_info(&event.args, &mut self.builder)
                {
                    self.builder.add_op(slice, info);
                }
            }
            _ => {}
        }
    }

    fn add_device_row(
        &mut self,
        event: &Event<'_>,
        category: Category,
        name: StringId,
        time_ns: i64,
        dur_ns: i64,
    ) -> SliceId {
        let (track_kind, kind) = match category {
            Category::Synchronization => (TrackKind::StreamSync, SliceKind::Synchronization),
            Category::Memcpy => (TrackKind::Stream, SliceKind::Memcpy),
            Category::Memset => (TrackKind::Stream, SliceKind::Memset),
            Category::Kernel => (TrackKind::Stream, SliceKind::Kernel),
            _ => (TrackKind::Projection, SliceKind::DeviceAnnotation),
        };
        let row = Tracks::row(&mut self.builder, event);
        let (track, device, stream) = self.tracks.device_track(&mut self.builder, track_kind, row, event);
        let slice = self.builder.add_slice(track, kind, name, time_ns, dur_ns);
        if track_kind == TrackKind::Stream {
            self.has_device_events = true;
            self.correlate(event, slice);
            let class = self.device_class(kind, name, &event.args);
            let sized = facts::with_launch_size(DeviceEvent::new(slice, device, class), &event.args);
            let uses_tensor_cores = class == DeviceEventClass::Compute && self.uses_tensor_cores(name);
            let is_pageable = facts::is_pageable(class, event.name);
            self.builder.add_device_event(DeviceEvent { stream, uses_tensor_cores, is_pageable, ..sized });
            self.add_collective(event, slice);
        } else if track_kind == TrackKind::StreamSync {
            self.correlate(event, slice);
            let wait = facts::synchronization(event, slice, device, stream);
            self.builder.add_synchronization(wait, event.args.sync.event_correlation);
        }
        slice
    }

    fn add_collective(&mut self, event: &Event<'_>, slice: SliceId) {
        if event.args.collective.is_given() {
            let collective = facts::collective(&event.args.collective, slice, &mut self.builder);
            self.builder.add_collective(collective);
        }
    }

    fn uses_tensor_cores(&mut self, name: StringId) -> bool {
        let text = self.builder.strings.get(name);
        *self.tensor_cores.entry(name).or_insert_with(|| uses_tensor_cores(text))
    }

    fn correlate(&mut self, event: &Event<'_>, slice: SliceId) {
        if let Some(correlation) = event.args.correlation {
            self.builder.set_correlation(slice, LaunchKey { process: self.tracks.main(), correlation });
        }
    }

    /// What the source says first, then the table of names; the builder adds what was launched within a collective.
    fn device_class(&mut self, kind: SliceKind, name: StringId, args: &Args<'_>) -> DeviceEventClass {
        match kind {
            SliceKind::Memcpy => {
                let by_kind = args.copy_kind.map_or(CopyDirection::Unknown, facts::copy_direction);
                let by_name = || facts::copy_direction(self.builder.strings.get(name).as_bytes());
                DeviceEventClass::Memcpy(if by_kind == CopyDirection::Unknown { by_name() } else { by_kind })
            }
            SliceKind::Memset => DeviceEventClass::Memset,
            _ if args.collective.is_given() || self.communicates(name, true) => DeviceEventClass::Communication,
            _ => DeviceEventClass::Compute,
        }
    }

    fn communicates(&mut self, name: StringId, is_kernel: bool) -> bool {
        let text = self.builder.strings.get(name);
        let ask = || if is_kernel { is_communication_kernel(text) } else { is_communication_call(text) };
        *self.communicates.entry((name, is_kernel)).or_insert_with(ask)
    }
}

/// What a row on the host is. Old files have no category for labels: of their operators, those with a label's name are.
fn host_kind(category: Category, label: Label) -> SliceKind {
    match (category, label) {
        (Category::Op | Category::Annotation, Label::Step(_)) => SliceKind::Step,
        (Category::Op | Category::Annotation, Label::DataLoader) => SliceKind::DataLoader,
        (Category::Op | Category::Annotation, Label::Optimizer) => SliceKind::Optimizer,
        (Category::Op, _) => SliceKind::Op,
        (Category::Annotation, _) => SliceKind::Annotation,
        (Category::PythonFunction, _) => SliceKind::PythonFunction,
        (Category::Module, _) => SliceKind::Module,
        (Category::Runtime, _) => SliceKind::Runtime,
        (Category::Driver, _) => SliceKind::Driver,
        (Category::Overhead, _) => SliceKind::Overhead,
        _ => SliceKind::Other,
    }
}

/// The begin of an event's name, for a finding's example.
fn shown_name(event: &Event<'_>) -> String {
    text::decode(event.name).text.chars().take(80).collect()
}
