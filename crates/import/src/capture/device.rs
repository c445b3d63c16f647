//! What devices' profilers reported: work on streams, calls on threads, waits.

use super::devices::Devices;
use super::{AlignedCapture, DEVICE_SESSION, devices, memory, metadata_value};
use crate::kernel_fields::with_kernel;
use crate::name_tables::{is_communication_kernel, is_host_sync_call, uses_tensor_cores};
use std::collections::{BTreeMap, HashMap};
use stepscope_base::StringId;
use stepscope_base::units::format_ns;
use stepscope_capture::device::{
    ActivityList, ActivityRecord, Api, Call, DeviceWork, Direction, EventRecorded, Memcpy, MemoryKind, Memset,
    Synchronization, SynchronizationKind, WorkKind,
};
use stepscope_capture::{Capture, DeviceActivity, State};
use stepscope_trace::{
    CopyDirection, DeviceEvent, DeviceEventClass, DeviceId, FindingCode, Findings, LaunchKey, ProcessId, SliceId,
    SliceKind, SyncKind, TraceBuilder, Track, TrackId, TrackKind,
};

/// Where the activity records of a process go.
struct Reader<'a, 'b> {
    aligned: &'a AlignedCapture<'a>,
    process: ProcessId,
    rank: u32,
    threads: &'a BTreeMap<u32, TrackId>,
    devices: &'a mut Devices,
    builder: &'b mut TraceBuilder,
    /// Tracks by kind, device and stream.
    tracks: HashMap<(TrackKind, DeviceId, Option<i64>), TrackId>,
    overhead: Option<TrackId>,
    /// The device of each context.
    contexts: HashMap<u32, i64>,
    /// The device of all work, where it is one.
    only_device: Option<i64>,
    /// Recordings of each event in order: correlation id, which recording, stream.
    recordings: HashMap<u32, Vec<EventRecorded>>,
    kernels: HashMap<u32, Kernel>,
}

/// What a kernel's name says.
#[derive(Clone, Copy)]
struct Kernel {
    name: StringId,
    communicates: bool,
    uses_tensor_cores: bool,
}

impl AlignedCapture<'_> {
    /// Adds what a process's devices did; `threads` are the tracks of its threads.
    pub(super) fn add_device_activities(
        &self,
        (process, rank): (ProcessId, u32),
        threads: &BTreeMap<u32, TrackId>,
        devices: &mut Devices,
        builder: &mut TraceBuilder,
    ) {
        let activities = &self.capture.device;
        if activities.is_empty() {
            return;
        }
        let contexts = contexts_of(activities);
        let mut devices_at_work = contexts.values().copied();
        let only_device = devices_at_work.next().filter(|first| devices_at_work.all(|device| device == *first));
        let mut reader = Reader {
            aligned: self,
            process,
            rank,
            threads,
            devices,
            builder,
            tracks: HashMap::new(),
            overhead: None,
            contexts,
            only_device,
            recordings: recordings_of(activities),
            kernels: HashMap::new(),
        };
        activities.iter().for_each(|activity| reader.add(&activity.record));
    }
}

/// Which device each context is of, as the work on it tells.
fn contexts_of(activities: &ActivityList) -> HashMap<u32, i64> {
    let of_work = |activity: &DeviceActivity| match &activity.record {
        ActivityRecord::Work(work) => Some((work.context?, i64::from(work.device))),
        _ => None,
    };
    activities.iter().filter_map(|activity| of_work(&activity)).collect()
}

fn recordings_of(activities: &ActivityList) -> HashMap<u32, Vec<EventRecorded>> {
    let mut all: HashMap<u32, Vec<EventRecorded>> = HashMap::new();
    for activity in activities.iter() {
        if let ActivityRecord::EventRecorded(event) = activity.record {
            all.entry(event.event).or_default().push(event);
        }
    }
    // Calls are numbered in their order.
    all.values_mut().for_each(|recordings| recordings.sort_by_key(|event| event.correlation));
    all
}

impl Reader<'_, '_> {
    fn add(&mut self, record: &ActivityRecord) {
        match record {
            ActivityRecord::Work(work) => self.add_work(work),
            ActivityRecord::Call(call) => self.add_call(call),
            ActivityRecord::Synchronization(wait) => self.add_synchronization(wait),
            ActivityRecord::Overhead(overhead) => {
                let track = *self.overhead.get_or_insert_with(|| {
                    self.builder.add_track(Track::new(TrackKind::Other, self.process, "profiler overhead"))
                });
                let name = self.name(overhead.name);
                self.add_slice(track, SliceKind::Overhead, name, (overhead.start_ns, overhead.end_ns));
            }
            ActivityRecord::Range(range) => {
                let name = self.name(range.name);
                let track = self.threads[&range.thread];
                let slice = self.add_slice(track, SliceKind::Annotation, name, (range.start_ns, range.end_ns));
                if range.is_unfinished {
                    self.builder.set_unfinished(slice);
                }
            }
            ActivityRecord::Dropped(dropped) => {
                self.builder.findings.add_count(FindingCode::DeviceReportsLost, dropped.count);
            }
            ActivityRecord::EventRecorded(_) => {}
        }
    }

    fn add_work(&mut self, work: &DeviceWork) {
        let device = self.devices.of(self.rank, i64::from(work.device), self.builder);
        let stream = work.stream.map(i64::from);
        let (kind, class, name, is_pageable, tensor_cores) = self.seen(work);
        let track = self.track(TrackKind::Stream, device, stream);
        let slice = self.add_slice(track, kind, name, (work.start_ns, work.end_ns));
        self.correlate(slice, work.correlation);
        let event = DeviceEvent {
            stream,
            context: work.context.map(i64::from),
            is_pageable,
            uses_tensor_cores: tensor_cores,
            graph: Some(i64::from(work.graph)).filter(|graph| *graph != 0),
            graph_node: Some(work.graph_node as i64).filter(|node| *node != 0),
            ..DeviceEvent::new(slice, device, class)
        };
        let event = match work.kind {
            WorkKind::Kernel(kernel) => with_kernel(event, &kernel, self.builder.device_mut(device).sm_count),
            WorkKind::Memcpy(Memcpy { bytes, .. }) | WorkKind::Memset(Memset { bytes, .. }) => {
                DeviceEvent { bytes: bytes.and_then(|bytes| i64::try_from(bytes).ok()), ..event }
            }
            WorkKind::Graph => event,
        };
        self.builder.add_device_event(event);
    }

    /// What a piece of work is in the model: kind, class, name, whether it copies pageable memory, whether it uses
    /// tensor cores.
    fn seen(&mut self, work: &DeviceWork) -> (SliceKind, DeviceEventClass, StringId, Option<bool>, bool) {
        match work.kind {
            WorkKind::Kernel(kernel) => {
                let kernel = self.kernel(kernel.name);
                let class =
                    if kernel.communicates { DeviceEventClass::Communication } else { DeviceEventClass::Compute };
                let tensor_cores = kernel.uses_tensor_cores && !kernel.communicates;
                (SliceKind::Kernel, class, kernel.name, None, tensor_cores)
            }
            WorkKind::Memcpy(Memcpy { direction, source, destination, .. }) => {
                let text = format!("Memcpy {} ({} -> {})", direction.as_str(), source.as_str(), destination.as_str());
                let name = self.builder.strings.intern(&text);
                let is_one = |kind| source == kind || destination == kind;
                let is_pageable = match () {
                    () if is_one(MemoryKind::Pageable) => Some(true),
                    () if is_one(MemoryKind::Pinned) => Some(false),
                    () => None,
                };
                (SliceKind::Memcpy, DeviceEventClass::Memcpy(copy_direction(direction)), name, is_pageable, false)
            }
            WorkKind::Memset(Memset { memory, .. }) => {
                let name = self.builder.strings.intern(&format!("Memset ({})", memory.as_str()));
                (SliceKind::Memset, DeviceEventClass::Memset, name, None, false)
            }
            WorkKind::Graph => {
                let name = self.builder.strings.intern("CUDA graph");
                (SliceKind::Kernel, DeviceEventClass::Compute, name, None, false)
            }
        }
    }

    fn kernel(&mut self, name: Option<u32>) -> Kernel {
        if let Some(known) = name.and_then(|name| self.kernels.get(&name)) {
            return *known;
        }
        let text = name.and_then(|name| self.aligned.capture.names.get(name as usize));
        let text = text.map_or("(name lost)", String::as_str);
        let kernel = Kernel {
            name: self.builder.strings.intern(text),
            communicates: is_communication_kernel(text),
            uses_tensor_cores: uses_tensor_cores(text),
        };
        self.kernels.extend(name.map(|name| (name, kernel)));
        kernel
    }

    fn add_call(&mut self, call: &Call) {
        let name = self.name(call.name);
        let kind = match call.api {
            _ if is_host_sync_call(self.builder.strings.get(name)) => SliceKind::HostSync,
            Api::Runtime => SliceKind::Runtime,
            Api::Driver => SliceKind::Driver,
        };
        let track = self.threads[&call.thread];
        let slice = self.add_slice(track, kind, name, (call.start_ns, call.end_ns));
        self.correlate(slice, call.correlation);
    }

    fn add_synchronization(&mut self, wait: &Synchronization) {
        let of_context = || self.contexts.get(&wait.context?).copied();
        let ordinal = of_context().or(self.only_device).unwrap_or(0);
        let device = self.devices.of(self.rank, ordinal, self.builder);
        let stream = wait.stream.map(i64::from);
        let track = self.track(TrackKind::StreamSync, device, stream);
        let name = self.builder.strings.intern(wait.kind.as_str());
        let slice = self.add_slice(track, SliceKind::Synchronization, name, (wait.start_ns, wait.end_ns));
        self.correlate(slice, wait.correlation);
        let recording = self.recording(wait);
        let kind = match wait.kind {
            SynchronizationKind::Unknown => SyncKind::Unknown,
            SynchronizationKind::Event => SyncKind::Event,
            SynchronizationKind::StreamWaitEvent => SyncKind::StreamWaitEvent,
            SynchronizationKind::Stream => SyncKind::Stream,
            SynchronizationKind::Context => SyncKind::Device,
        };
        let event_stream = recording.map(|event| i64::from(event.stream));
        let found = stepscope_trace::Synchronization {
            slice,
            kind,
            device,
            stream,
            event_stream,
            call: None,
            event_record: None,
        };
        self.builder.add_synchronization(found, recording.map(|event| i64::from(event.correlation)));
    }

    /// The recording that a wait is for: the one it names, else the event's last one before it.
    fn recording(&self, wait: &Synchronization) -> Option<EventRecorded> {
        if !matches!(wait.kind, SynchronizationKind::Event | SynchronizationKind::StreamWaitEvent) {
            return None;
        }
        let recordings = self.recordings.get(&wait.event)?;
        let named = recordings.iter().find(|event| wait.event_sync != 0 && event.event_sync == wait.event_sync);
        let before = recordings.partition_point(|event| event.correlation < wait.correlation);
        named.or_else(|| recordings.get(before.checked_sub(1)?)).copied()
    }

    fn name(&mut self, id: Option<u32>) -> StringId {
        let text = id.and_then(|id| self.aligned.capture.names.get(id as usize));
        self.builder.strings.intern(text.map_or("(name lost)", String::as_str))
    }

    fn add_slice(&mut self, track: TrackId, kind: SliceKind, name: StringId, (start, end): (i64, i64)) -> SliceId {
        let (start_ns, dur_ns) = self.aligned.align(start, end);
        self.builder.add_slice(track, kind, name, start_ns, dur_ns)
    }

    fn correlate(&mut self, slice: SliceId, correlation: u32) {
        // 0 is none.
        if correlation != 0 {
            let key = LaunchKey { process: self.process, correlation: i64::from(correlation) };
            self.builder.set_correlation(slice, key);
        }
    }

    fn track(&mut self, kind: TrackKind, device: DeviceId, stream: Option<i64>) -> TrackId {
        let Self { tracks, builder, process, .. } = self;
        *tracks.entry((kind, device, stream)).or_insert_with(|| {
            let name = stream.map_or_else(|| "all streams".to_string(), |stream| format!("stream {stream}"));
            let mut track = Track::new(kind, *process, name);
            (track.device, track.stream) = (Some(device), stream);
            builder.add_track(track)
        })
    }
}

fn copy_direction(direction: Direction) -> CopyDirection {
    match direction {
        Direction::HostToDevice | Direction::HostToArray => CopyDirection::HostToDevice,
        Direction::DeviceToHost | Direction::ArrayToHost => CopyDirection::DeviceToHost,
        Direction::DeviceToDevice | Direction::ArrayToArray | Direction::ArrayToDevice | Direction::DeviceToArray => {
            CopyDirection::DeviceToDevice
        }
        Direction::PeerToPeer => CopyDirection::PeerToPeer,
        Direction::HostToHost | Direction::Unknown => CopyDirection::Unknown,
    }
}

/// Turns what is missing into findings; `who` names the process.
pub(super) fn report(capture: &Capture, who: &dyn Fn() -> String, findings: &mut Findings) {
    if let Some(reason) = metadata_value(capture, "device_refused") {
        findings.add(FindingCode::DeviceNotRecorded, || format!("{}: {reason}", who()));
    } else if capture.device.is_empty() && uses_a_device(capture) && !has_other_trace(capture) {
        findings
            .add(FindingCode::DeviceNotRecorded, || format!("{}: nothing was reported of the device it uses", who()));
    }
    for remark in metadata_value(capture, "device_remarks").unwrap_or_default().lines() {
        findings.add(FindingCode::DeviceRemarks, || format!("{}: {remark}", who()));
    }
    let ranges = capture.device.iter().filter_map(|activity| match activity.record {
        ActivityRecord::Range(range) => Some(range).filter(|range| range.is_unfinished),
        _ => None,
    });
    for range in ranges {
        let name = range.name.and_then(|name| capture.names.get(name as usize)).map_or("(name lost)", String::as_str);
        findings.add(FindingCode::UnfinishedSlices, || format!("{name} in {}", who()));
    }
    // Activity records come in bundles. What a killed process had not fetched yet is lost, and a copy of a ring lacks
    // it.
    let is_cut = capture.state != State::Running && capture.is_cut();
    let known = capture.device.iter().filter(|activity| !is_unfinished(&activity.record));
    let ends = known.filter_map(|activity| activity.record.span()).map(|(_, end_ns)| end_ns);
    if let Some(known_ns) = ends.max().filter(|known_ns| is_cut && *known_ns < capture.last_ns) {
        findings.add(FindingCode::DeviceUnknownAfter, || {
            let since_begin = format_ns(known_ns.saturating_sub(capture.opened_ns));
            let before_end = format_ns(capture.last_ns.saturating_sub(known_ns));
            format!("{}: {since_begin} after recording began, {before_end} before it ended", who())
        });
    }
}

fn is_unfinished(record: &ActivityRecord) -> bool {
    matches!(record, ActivityRecord::Range(range) if range.is_unfinished)
}

/// True where a trace of PyTorch's own profiler tells what the device did.
fn has_other_trace(capture: &Capture) -> bool {
    capture.metadata.iter().any(|(key, _)| key.starts_with(DEVICE_SESSION))
}

/// Its allocator or its metadata say so; that one is installed is no sign.
fn uses_a_device(capture: &Capture) -> bool {
    capture.memory.iter().any(|event| event.device_type != memory::HOST) || !devices::listed(capture).is_empty()
}
