//! What a session of PyTorch's own profiler recorded of devices, beside a capture (`--gpu=torch`): read as any trace,
//! and added to the capture as if its recorder had recorded it.
//!
//! ```text
//! capture, session's file ──▶ capture with the device's rows ──▶ part, which says that it has them
//! ```
//!
//! Only what is of devices: calls, work, waits. The operators of the file, if any, the capture has itself.

use super::metadata_value;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, EventRecorded, MemoryKind, Overhead, Synchronization,
    SynchronizationKind, WorkKind,
};
use stepscope_capture::{Capture, DeviceActivity, Thread};
use stepscope_trace::{DeviceEvent, FindingCode, SliceId, SliceKind, SyncKind, Trace, TrackId};

/// The metadata of a process that says what a session of PyTorch's own profiler told of its devices begins so; the
/// number of the session follows.
pub const DEVICE_SESSION: &str = "device_trace.";
/// A capture has no more threads than this that it learns of only here.
const MOST_THREADS: usize = 4096;

/// Adds what the sessions beside `capture` told, each once: their metadata say so from then on. With `times` only those
/// that listened then. Gives what could not be read, in words, each time.
pub(super) fn merge_torch_sessions(run: &Path, capture: &mut Capture, times: Option<Range<i64>>) -> Vec<String> {
    let sessions = capture.metadata.iter().filter(|(key, _)| key.starts_with(DEVICE_SESSION));
    let sessions: Vec<(String, SessionMetadata)> =
        sessions.map(|(key, text)| (key.clone(), SessionMetadata::of(text))).collect();
    let mut begins: Vec<i64> = sessions.iter().filter_map(|(_, session)| session.begin_ns()).collect();
    begins.sort_unstable();
    // Until the next one begins.
    let listens_in = |session: &SessionMetadata, times: &Range<i64>| {
        session.begin_ns().is_none_or(|begin_ns| {
            let next_ns = begins[begins.partition_point(|at_ns| *at_ns <= begin_ns)..].first();
            begin_ns < times.end && next_ns.is_none_or(|next_ns| *next_ns > times.start)
        })
    };
    let added = sessions.iter().filter(|(_, session)| session.is_added());
    let mut known: HashSet<PathBuf> = added.filter_map(|(_, session)| Some(session.file().ok()?.into())).collect();
    let mut warnings = Vec::new();
    for (key, mut session) in sessions {
        if times.as_ref().is_some_and(|times| !listens_in(&session, times)) {
            continue;
        }
        if !session.is_added() {
            match merge_torch_session(run, &session, &mut known, capture) {
                Ok(warning) => session.set_added(warning),
                Err(warning) => {
                    warnings.push(warning);
                    continue;
                }
            }
            let metadata = capture.metadata.iter_mut().find(|(known, _)| *known == key);
            metadata.into_iter().for_each(|(_, text)| *text = session.0.to_string());
        }
        warnings.extend(session.warning());
    }
    warnings
}

/// The metadata of a session.
struct SessionMetadata(Value);

impl SessionMetadata {
    fn of(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// Where its file lies below the run.
    fn file(&self) -> Result<&Path, String> {
        let file = self.0.get("file").and_then(Value::as_str).ok_or("a session's fact names no file")?;
        let is_below = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
        if is_below { Ok(Path::new(file)) } else { Err(format!("a session's file is not of the run: {file}")) }
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.0.get(key).and_then(Value::as_i64)
    }

    /// Monotonic clock when it began.
    fn begin_ns(&self) -> Option<i64> {
        self.number("monotonic_ns")
    }

    /// Unix time less monotonic clock, noted when it began.
    fn offset_ns(&self) -> Option<i64> {
        Some(self.number("unix_ns")?.saturating_sub(self.begin_ns()?))
    }

    /// Whether the capture has what it told.
    fn is_added(&self) -> bool {
        self.0.get("is_added").and_then(Value::as_bool) == Some(true)
    }

    /// What was found when it was added.
    fn warning(&self) -> Option<String> {
        self.0.get("trouble").and_then(Value::as_str).map(String::from)
    }

    fn set_added(&mut self, warning: Option<String>) {
        let Value::Object(members) = &mut self.0 else { return };
        members.insert("is_added".into(), json!(true));
        members.extend(warning.map(|warning| ("trouble".into(), json!(warning))));
    }
}

/// Adds a session whose file is none of the `known`; gives what of it is missing. Nothing was added where it fails.
fn merge_torch_session(
    run: &Path,
    session: &SessionMetadata,
    known: &mut HashSet<PathBuf>,
    capture: &mut Capture,
) -> Result<Option<String>, String> {
    let below = session.file()?;
    let (path, file) = (run.join(below), below.display());
    if !path.is_file() {
        return Err(format!("what PyTorch's profiler told is not there: {file}"));
    }
    if !known.insert(below.into()) {
        return Err(format!("two sessions of PyTorch's profiler name one file: {file}"));
    }
    let trace = crate::open(&path).map_err(|error| error.to_string())?;
    let start_ns = trace.start_unix_ns.ok_or_else(|| format!("its clock is not known: {file}"))?;
    // Without, that of the capture's beginning.
    let shift_ns = start_ns.saturating_sub(session.offset_ns().unwrap_or(capture.unix_offset_ns));
    let device_type = session.number("device_type").and_then(|number| u8::try_from(number).ok()).unwrap_or(1);
    if metadata_value(capture, "devices").is_none() && !trace.devices.is_empty() {
        capture.metadata.push(("devices".into(), devices_metadata(&trace)));
        capture.metadata.sort();
    }
    Session::new(&trace, capture, shift_ns, device_type).add();
    // What has no time of its own comes first.
    capture.device.sort();
    let count = |code| trace.findings.iter().filter(|finding| finding.code == code).map(|finding| finding.count).sum();
    let (cuts, unreadable): (u64, u64) = (count(FindingCode::TruncatedInput), count(FindingCode::UnreadableEvent));
    Ok(match (cuts, unreadable) {
        (0, 0) => None,
        (0, count) => Some(format!("{count} of the events that PyTorch's profiler told cannot be read: {file}")),
        _ => Some(format!("the end of what PyTorch's profiler told cannot be read: {file}")),
    })
}

/// A session's trace on its way into a capture.
struct Session<'a> {
    trace: &'a Trace,
    capture: &'a mut Capture,
    /// From times of the trace to the capture's.
    shift_ns: i64,
    device_type: u8,
    /// Ids of the capture's names, those that were added here.
    names: HashMap<&'a str, u32>,
    /// The capture's thread of each track.
    threads: HashMap<TrackId, Option<u32>>,
    /// What joins each call with its work. The numbers of several sessions may not be alike.
    correlations: HashMap<SliceId, u32>,
    next_correlation: u32,
    /// Recordings of events that were added, by the call that recorded.
    recordings: BTreeSet<SliceId>,
}

impl<'a> Session<'a> {
    fn new(trace: &'a Trace, capture: &'a mut Capture, shift_ns: i64, device_type: u8) -> Self {
        let used = capture.device.iter().filter_map(|activity| match activity.record {
            ActivityRecord::Call(call) => Some(call.correlation),
            _ => None,
        });
        let next_correlation = used.max().unwrap_or(0).saturating_add(1);
        let (names, threads) = (HashMap::new(), HashMap::new());
        let (correlations, recordings) = (HashMap::new(), BTreeSet::new());
        Self { trace, capture, shift_ns, device_type, names, threads, correlations, next_correlation, recordings }
    }

    fn add(&mut self) {
        let kinds = self.trace.slices.kind.iter().enumerate();
        for (row, kind) in kinds {
            let slice = SliceId::from_index(row);
            match kind {
                kind if kind.is_api_call() => self.add_call(slice, *kind),
                SliceKind::Overhead => self.add_overhead(slice),
                _ => {}
            }
        }
        self.trace.device_events.iter().for_each(|event| self.add_work(&event));
        for row in 0..self.trace.synchronizations.len() {
            self.add_synchronization(row);
        }
    }

    fn add_call(&mut self, slice: SliceId, kind: SliceKind) {
        let Some(thread) = self.thread(self.trace.slices.track[slice.index()]) else { return };
        let name = self.trace.slice_name(slice);
        let is_runtime = kind == SliceKind::Runtime || name.starts_with("cuda") || name.starts_with("hip");
        let (start_ns, end_ns) = self.span(slice);
        let correlation = self.correlation(slice);
        let api = if is_runtime { Api::Runtime } else { Api::Driver };
        let name = Some(self.name(name));
        self.push(ActivityRecord::Call(Call { api, name, start_ns, end_ns, thread, correlation, status: 0 }));
    }

    fn add_overhead(&mut self, slice: SliceId) {
        let Some(thread) = self.thread(self.trace.slices.track[slice.index()]) else { return };
        let (start_ns, end_ns) = self.span(slice);
        let name = Some(self.name(self.trace.slice_name(slice)));
        self.push(ActivityRecord::Overhead(Overhead { name, start_ns, end_ns, thread }));
    }

    fn add_work(&mut self, event: &DeviceEvent) {
        let (start_ns, end_ns) = self.span(event.slice);
        let text = self.trace.slice_name(event.slice);
        let bytes = u64::try_from(event.bytes.unwrap_or(0)).unwrap_or(0);
        let kind = match self.trace.slices.kind[event.slice.index()] {
            SliceKind::Memcpy => copy(text, bytes),
            SliceKind::Memset => WorkKind::Memset { bytes, memory: MemoryKind::from_name(in_brackets(text)) },
            _ => WorkKind::Kernel {
                name: Some(self.name(text)),
                grid: event.grid.unwrap_or_default(),
                block: event.block.unwrap_or_default(),
                registers: event.registers.unwrap_or(0),
                static_shared_bytes: 0,
                dynamic_shared_bytes: event.shared_bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0),
            },
        };
        let device = self.device(event.device);
        let work = DeviceWork {
            kind,
            start_ns,
            end_ns,
            device,
            context: device,
            stream: number(event.stream),
            correlation: event.launch.map_or(0, |launch| self.correlation(launch)),
            graph: number(event.graph),
            graph_node: event.graph_node.map_or(0, |node| node as u64),
        };
        self.push(ActivityRecord::Work(work));
    }

    fn add_synchronization(&mut self, row: usize) {
        let recorded = self.trace.synchronizations[row];
        let (start_ns, end_ns) = self.span(recorded.slice);
        let context = self.device(recorded.device);
        let kind = match recorded.kind {
            SyncKind::Unknown => SynchronizationKind::Unknown,
            SyncKind::Event => SynchronizationKind::Event,
            SyncKind::StreamWaitEvent => SynchronizationKind::StreamWaitEvent,
            SyncKind::Stream => SynchronizationKind::Stream,
            SyncKind::Device => SynchronizationKind::Context,
        };
        // Each recording is an event of its own, numbered by its call.
        let event = match (recorded.event_record, recorded.event_stream) {
            (Some(record), Some(stream)) => {
                let correlation = self.correlation(record);
                let (event, event_sync) = (correlation, u64::from(correlation));
                if self.recordings.insert(record) {
                    let stream = number(Some(stream));
                    let recorded = EventRecorded { event, event_sync, context, stream, correlation };
                    self.push(ActivityRecord::EventRecorded(recorded));
                }
                event
            }
            _ => 0,
        };
        let stream = recorded.stream.and_then(|stream| u32::try_from(stream).ok());
        let correlation = recorded.call.map_or(0, |call| self.correlation(call));
        let event_sync = u64::from(event);
        self.push(ActivityRecord::Synchronization(Synchronization {
            kind,
            start_ns,
            end_ns,
            context,
            stream,
            correlation,
            event,
            event_sync,
        }));
    }

    fn push(&mut self, record: ActivityRecord) {
        self.capture.device.push(DeviceActivity { device_type: self.device_type, record });
    }

    fn span(&self, slice: SliceId) -> (i64, i64) {
        let span = self.trace.slices.span(slice);
        (span.start_ns.saturating_add(self.shift_ns), span.end_ns.saturating_add(self.shift_ns))
    }

    fn name(&mut self, text: &'a str) -> u32 {
        let names = &mut self.capture.names;
        *self.names.entry(text).or_insert_with(|| {
            names.push(text.to_string());
            (names.len() - 1) as u32
        })
    }

    fn correlation(&mut self, call: SliceId) -> u32 {
        let next = &mut self.next_correlation;
        *self.correlations.entry(call).or_insert_with(|| {
            let correlation = *next;
            *next = next.saturating_add(1);
            correlation
        })
    }

    fn device(&self, device: stepscope_trace::DeviceId) -> u32 {
        number(Some(self.trace.devices[device.index()].ordinal))
    }

    /// The capture's thread of a track. Without operators in the session PyTorch does not know the system's id of a
    /// thread, and writes what the device's profiler calls it.
    fn thread(&mut self, track: TrackId) -> Option<u32> {
        let (trace, capture) = (self.trace, &mut *self.capture);
        *self.threads.entry(track).or_insert_with(|| {
            let tid = trace.tracks[track.index()].tid?;
            let handle = tid as u32;
            let by_tid = capture.threads.iter().rposition(|thread| i64::try_from(thread.tid) == Ok(tid));
            let is_it = |thread: &Thread| thread.handle != 0 && thread.handle == handle;
            if let Some(known) = by_tid.or_else(|| capture.threads.iter().rposition(is_it)) {
                return Some(known as u32);
            }
            if capture.threads.len() >= MOST_THREADS {
                return None;
            }
            let ordinal = u32::try_from(capture.threads.len()).ok()?;
            let tid = u64::try_from(tid).unwrap_or(0);
            capture.threads.push(Thread { ordinal, tid, handle, ..Thread::default() });
            Some(ordinal)
        })
    }
}

/// Streams, graphs and devices have small numbers; what has none, or another, is 0.
fn number(value: Option<i64>) -> u32 {
    value.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

/// What `Memcpy HtoD (Pinned -> Device)` says.
fn copy(text: &str, bytes: u64) -> WorkKind {
    let direction = text.split_whitespace().nth(1).map(Direction::from_name).unwrap_or_default();
    let (source, destination) = in_brackets(text).split_once(" -> ").unwrap_or_default();
    let kind = |name: &str| MemoryKind::from_name(name.trim());
    WorkKind::Memcpy { bytes, direction, source: kind(source), destination: kind(destination), devices: None }
}

fn in_brackets(text: &str) -> &str {
    text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside)
}

fn devices_metadata(trace: &Trace) -> String {
    let devices = trace.devices.iter().map(|device| {
        let members = [
            ("name", device.name.as_ref().map(|name| json!(name))),
            ("memory_bytes", device.memory_bytes.map(|bytes| json!(bytes))),
            ("sm_count", device.sm_count.map(|count| json!(count))),
            ("compute_capability_major", device.compute_capability.map(|(major, _)| json!(major))),
            ("compute_capability_minor", device.compute_capability.map(|(_, minor)| json!(minor))),
            ("max_threads_per_sm", device.max_threads_per_sm.map(|count| json!(count))),
            ("warp_size", device.warp_size.map(|size| json!(size))),
            ("registers_per_sm", device.registers_per_sm.map(|count| json!(count))),
            ("shared_bytes_per_sm", device.shared_bytes_per_sm.map(|bytes| json!(bytes))),
        ];
        let known = members.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?)));
        let index = ("index".to_string(), json!(device.ordinal));
        Value::Object([index].into_iter().chain(known).collect())
    });
    Value::Array(devices.collect()).to_string()
}
