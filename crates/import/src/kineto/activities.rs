//! What a text says of devices alone, as activity records: calls, work, waits, and the profiler's own time. Operators and
//! all else are passed over.

use super::categories::Category;
use super::chunk::{Chunk, Sink};
use super::entries::{ChunkDeviceRow, ChunkRowId, ChunkSlice};
use super::metadata::Metadata;
use super::tracks::{known_stream, match_only_devices, stream_of_name};
use crate::json::text;
use crate::json::texts::TextId;
use crate::kernel_fields::kernel_of;
use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, EventRecorded, Memcpy, MemoryKind, Memset, Overhead,
    Synchronization, SynchronizationKind, WorkKind,
};
use stepscope_trace::{Device, Findings, SyncKind};

/// What a text says of devices. Names and threads of the records are indices into its own lists.
#[derive(Default)]
pub(crate) struct Activities {
    /// Times count from `zero_unix_ns`.
    pub(crate) records: Vec<ActivityRecord>,
    pub(crate) names: Vec<String>,
    /// The ids of threads, as the text has them.
    pub(crate) threads: Vec<i64>,
    /// Those that are described, and those that did something, by their numbers.
    pub(crate) devices: Vec<Device>,
    /// Unix time of the time 0; `None` where the text does not say it.
    pub(crate) zero_unix_ns: Option<i64>,
    /// What was doubtful.
    pub(crate) findings: Findings,
    phase_count: u64,
    name_ids: FxHashMap<String, u32>,
    thread_ids: FxHashMap<i64, u32>,
    /// The numbers of correlation ids, which may be beyond 32 bits, from 1 on.
    correlations: FxHashMap<i64, u32>,
    /// Devices on which something was done.
    used: FxHashSet<i64>,
    /// Recordings of events that were added, by their correlation.
    recordings: FxHashSet<u32>,
}

impl Sink for Activities {
    fn add(&mut self, chunk: Chunk) -> Chunk {
        self.phase_count += chunk.phase_count;
        self.findings.extend(&chunk.findings);
        let mut correlations = chunk.calls.iter().peekable();
        let mut rows = chunk.device_rows.iter();
        for (at, slice) in chunk.slices.iter().enumerate() {
            let correlation = correlations.next_if(|(of, _)| *of as usize == at).map(|(_, correlation)| *correlation);
            match slice.category {
                Category::Runtime => self.add_call(&chunk, slice, Api::Runtime, correlation),
                Category::Driver => self.add_call(&chunk, slice, Api::Driver, correlation),
                Category::Overhead => self.add_overhead(&chunk, slice),
                category if category.is_on_device() => {
                    let Some(row) = rows.next() else { break };
                    match category {
                        Category::Synchronization => self.add_synchronization(&chunk, slice, row),
                        Category::DeviceAnnotation => {}
                        _ => self.add_work(&chunk, slice, row),
                    }
                }
                _ => {}
            }
        }
        chunk
    }

    fn phase_count(&self) -> u64 {
        self.phase_count
    }

    fn findings(&mut self) -> &mut Findings {
        &mut self.findings
    }
}

impl Activities {
    /// Takes what stands beside the events.
    pub(super) fn finish(&mut self, mut metadata: Metadata) {
        match_only_devices(&mut metadata.devices, self.used.iter().copied());
        let is_described = |ordinal: &i64| metadata.devices.iter().any(|device| device.ordinal == *ordinal);
        let others = self.used.iter().copied().filter(|ordinal| !is_described(ordinal));
        self.devices = others.map(|ordinal| Device { ordinal, ..Device::default() }).collect();
        self.devices.append(&mut metadata.devices);
        self.devices.sort_by_key(|device| device.ordinal);
        self.zero_unix_ns = metadata.clock_zero_unix_ns;
    }

    fn add_call(&mut self, chunk: &Chunk, slice: &ChunkSlice, api: Api, correlation: Option<i64>) {
        let Some(thread) = self.thread(chunk, slice) else { return };
        let (start_ns, end_ns) = span(slice);
        let (name, correlation) = (self.name(chunk, slice), self.correlation(correlation));
        self.records.push(ActivityRecord::Call(Call { api, name, start_ns, end_ns, thread, correlation, status: 0 }));
    }

    fn add_overhead(&mut self, chunk: &Chunk, slice: &ChunkSlice) {
        let Some(thread) = self.thread(chunk, slice) else { return };
        let ((start_ns, end_ns), name) = (span(slice), self.name(chunk, slice));
        self.records.push(ActivityRecord::Overhead(Overhead { name, start_ns, end_ns, thread }));
    }

    fn add_work(&mut self, chunk: &Chunk, slice: &ChunkSlice, row: &ChunkDeviceRow) {
        let name = text::decode(chunk.texts.get(slice.name)).text;
        let bytes = row.event.bytes.and_then(|bytes| u64::try_from(bytes).ok());
        let kind = match slice.category {
            Category::Memcpy => WorkKind::Memcpy(copy(&name, bytes)),
            Category::Memset => WorkKind::Memset(Memset { bytes, memory: MemoryKind::from_name(in_brackets(&name)) }),
            _ => WorkKind::Kernel(kernel_of(&row.event, self.name(chunk, slice))),
        };
        let (start_ns, end_ns) = span(slice);
        let work = DeviceWork {
            kind,
            start_ns,
            end_ns,
            device: self.device(chunk, slice, row),
            context: known(row.event.context),
            stream: known(stream(chunk, slice, row)),
            correlation: self.correlation(row.correlation),
            graph: known(row.event.graph).unwrap_or(0),
            graph_node: row.event.graph_node.map_or(0, |node| node as u64),
        };
        self.records.push(ActivityRecord::Work(work));
    }

    fn add_synchronization(&mut self, chunk: &Chunk, slice: &ChunkSlice, row: &ChunkDeviceRow) {
        let context = known(row.event.context);
        self.device(chunk, slice, row);
        // Each recording is an event of its own, numbered by its call.
        let event = match (row.event_correlation, known(row.event_stream)) {
            (Some(recording), Some(stream)) => {
                let event = self.correlation(Some(recording));
                let (event_sync, correlation) = (event.into(), event);
                if self.recordings.insert(event) {
                    let recorded = EventRecorded { event, event_sync, context, stream, correlation };
                    self.records.push(ActivityRecord::EventRecorded(recorded));
                }
                event
            }
            _ => 0,
        };
        let kind = match chunk.synchronization_kind(slice, row) {
            SyncKind::Unknown => SynchronizationKind::Unknown,
            SyncKind::Event => SynchronizationKind::Event,
            SyncKind::StreamWaitEvent => SynchronizationKind::StreamWaitEvent,
            SyncKind::Stream => SynchronizationKind::Stream,
            SyncKind::Device => SynchronizationKind::Context,
        };
        let ((start_ns, end_ns), correlation) = (span(slice), self.correlation(row.correlation));
        self.records.push(ActivityRecord::Synchronization(Synchronization {
            kind,
            start_ns,
            end_ns,
            context,
            stream: known(stream(chunk, slice, row)),
            correlation,
            event,
            event_sync: event.into(),
        }));
    }

    fn name(&mut self, chunk: &Chunk, slice: &ChunkSlice) -> Option<u32> {
        let name = text::decode(chunk.texts.get(slice.name)).text;
        if let Some(known) = self.name_ids.get(name.as_ref()) {
            return Some(*known);
        }
        let id = self.names.len() as u32;
        self.names.push(name.to_string());
        self.name_ids.insert(name.into_owned(), id);
        Some(id)
    }

    /// The thread of a row; `None` for one that has no number.
    fn thread(&mut self, chunk: &Chunk, slice: &ChunkSlice) -> Option<u32> {
        let ChunkRowId::Number(tid) = chunk.rows[slice.row as usize].1 else { return None };
        let threads = &mut self.threads;
        Some(*self.thread_ids.entry(tid).or_insert_with(|| {
            threads.push(tid);
            threads.len() as u32 - 1
        }))
    }

    fn correlation(&mut self, id: Option<i64>) -> u32 {
        let next = self.correlations.len() as u32 + 1;
        id.map_or(0, |id| *self.correlations.entry(id).or_insert(next))
    }

    fn device(&mut self, chunk: &Chunk, slice: &ChunkSlice, row: &ChunkDeviceRow) -> u32 {
        let of_process = match chunk.rows[slice.row as usize].0 {
            ChunkRowId::Number(pid) => Some(pid),
            _ => None,
        };
        let ordinal = row.device.or(of_process).unwrap_or(0);
        self.used.insert(ordinal);
        known(Some(ordinal)).unwrap_or(0)
    }
}

fn span(slice: &ChunkSlice) -> (i64, i64) {
    (slice.time_ns, slice.time_ns.saturating_add(slice.dur_ns))
}

fn stream(chunk: &Chunk, slice: &ChunkSlice, row: &ChunkDeviceRow) -> Option<i64> {
    known_stream(row.event.stream.or_else(|| match chunk.rows[slice.row as usize].1 {
        ChunkRowId::Number(number) => Some(number),
        ChunkRowId::Name(name) => stream_of_name(chunk.texts.get(TextId(name))),
        ChunkRowId::Missing => None,
    }))
}

/// Streams, contexts, graphs and devices have small numbers.
fn known(value: Option<i64>) -> Option<u32> {
    value.and_then(|number| u32::try_from(number).ok())
}

/// What `Memcpy HtoD (Pinned -> Device)` says.
fn copy(name: &str, bytes: Option<u64>) -> Memcpy {
    let direction = name.split_whitespace().nth(1).map(Direction::from_name).unwrap_or_default();
    let (source, destination) = in_brackets(name).split_once(" -> ").unwrap_or_default();
    let kind = |name: &str| MemoryKind::from_name(name.trim());
    Memcpy { bytes, direction, source: kind(source), destination: kind(destination), devices: None }
}

fn in_brackets(name: &str) -> &str {
    name.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside)
}
