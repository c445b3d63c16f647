//! Which track a row lies on: threads by (pid, tid), device rows by (device, stream), the rest by (pid, tid) apart from
//! the threads.

use super::metadata::Metadata;
use crate::json::numbers;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::StringId;
use stepscope_trace::{Device, DeviceId, FindingCode, Process, ProcessId, TraceBuilder, Track, TrackId, TrackKind};

/// A `pid` or `tid` that owns what it names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum RowKey {
    Missing,
    Number(i64),
    Name(StringId),
}

/// A (pid, tid) of the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Row {
    pub(super) pid: RowKey,
    pub(super) tid: RowKey,
}

/// The tracks, processes and devices met so far.
#[derive(Debug)]
pub(super) struct Tracks {
    main: ProcessId,
    has_main_pid: bool,
    processes: BTreeMap<i64, ProcessId>,
    process_names: FxHashMap<i64, String>,
    devices: BTreeMap<i64, DeviceId>,
    threads: FxHashMap<Row, TrackId>,
    others: FxHashMap<Row, TrackId>,
    row_names: FxHashMap<Row, String>,
    device_tracks: FxHashMap<(TrackKind, i64, Option<i64>), TrackId>,
    streams: FxHashMap<Row, TrackId>,
}

impl Tracks {
    /// No track yet, but the main process: it owns every row that names no process of its own.
    pub(super) fn new(builder: &mut TraceBuilder) -> Self {
        Self {
            main: builder.add_process(Process::default()),
            has_main_pid: false,
            processes: BTreeMap::new(),
            process_names: FxHashMap::default(),
            devices: BTreeMap::new(),
            threads: FxHashMap::default(),
            others: FxHashMap::default(),
            row_names: FxHashMap::default(),
            device_tracks: FxHashMap::default(),
            streams: FxHashMap::default(),
        }
    }

    /// The process that owns launches and device tracks.
    pub(super) fn main(&self) -> ProcessId {
        self.main
    }

    /// The CPU thread of a row. A pid that no process can have (0 and below) means the main process.
    pub(super) fn thread(&mut self, builder: &mut TraceBuilder, row: Row) -> TrackId {
        if let Some(track) = self.threads.get(&row) {
            return *track;
        }
        let process = self.process_of_row(builder, row);
        let mut track = Track::new(TrackKind::Thread, process, format!("thread {}", shown(builder, row.tid)));
        track.tid = number(row.tid);
        let track = builder.add_track(track);
        self.threads.insert(row, track);
        track
    }

    /// The process of a row.
    pub(super) fn process_of_row(&mut self, builder: &mut TraceBuilder, row: Row) -> ProcessId {
        match row.pid {
            RowKey::Number(pid) if pid > 0 => self.process(builder, pid),
            _ => self.main,
        }
    }

    /// The track of rows that are neither on a thread nor on a device.
    pub(super) fn other(&mut self, builder: &mut TraceBuilder, row: Row, name: Option<&str>) -> TrackId {
        if let Some(track) = self.others.get(&row) {
            return *track;
        }
        let process = number(row.pid).and_then(|pid| self.processes.get(&pid)).copied().unwrap_or(self.main);
        let own_name = format!("{} {}", shown(builder, row.pid), shown(builder, row.tid));
        let name = name.unwrap_or(Some(own_name.trim()).filter(|name| !name.is_empty()).unwrap_or("other"));
        let mut track = Track::new(TrackKind::Other, process, name);
        track.tid = number(row.tid);
        let track = builder.add_track(track);
        self.others.insert(row, track);
        track
    }

    /// The track of a device row, with its device and stream.
    pub(super) fn device_track(
        &mut self,
        builder: &mut TraceBuilder,
        kind: TrackKind,
        row: Row,
        device: Option<i64>,
        stream: Option<i64>,
    ) -> (TrackId, DeviceId, Option<i64>) {
        let ordinal = device.or(number(row.pid)).unwrap_or(0);
        let stream = known_stream(stream.or_else(|| match row.tid {
            RowKey::Number(number) => Some(number),
            RowKey::Name(name) => stream_of_name(builder.strings.get(name).as_bytes()),
            RowKey::Missing => None,
        }));
        let device = self.device(builder, ordinal);
        let process = self.main;
        let track = *self.device_tracks.entry((kind, ordinal, stream)).or_insert_with(|| {
            let name = stream.map_or_else(|| format!("device {ordinal}"), |stream| format!("stream {stream}"));
            let mut track = Track::new(kind, process, name);
            (track.device, track.stream) = (Some(device), stream);
            builder.add_track(track)
        });
        if kind == TrackKind::Stream {
            self.streams.entry(row).or_insert(track);
        }
        (track, device, stream)
    }

    /// Keeps the name that the source gives to a thread.
    pub(super) fn name_row(&mut self, row: Row, name: String) {
        self.row_names.insert(row, name);
    }

    /// Keeps the name that the source gives to a process.
    pub(super) fn name_process(&mut self, row: Row, name: String) {
        if let Some(pid) = number(row.pid) {
            self.process_names.insert(pid, name);
        }
    }

    /// True for a row of a process that is named as a device, as XLA and Ascend's profiler do.
    pub(super) fn is_named_as_device(&self, row: Row) -> bool {
        let name = number(row.pid).and_then(|pid| self.process_names.get(&pid));
        name.is_some_and(|name| name.starts_with("/device:") || name == "Ascend Hardware")
    }

    /// The thread of a row, when there is one.
    pub(super) fn known_thread(&self, row: Row) -> Option<TrackId> {
        self.threads.get(&row).copied()
    }

    /// The stream of a row, when there is one.
    pub(super) fn known_stream(&self, row: Row) -> Option<TrackId> {
        self.streams.get(&row).copied()
    }

    /// Fills in what is only known at the end: names, ranks, facts about devices.
    pub(super) fn finish(self, builder: &mut TraceBuilder, metadata: &mut Metadata) {
        let rank = metadata.rank.unwrap_or(0);
        for process in self.processes.values().chain([&self.main]) {
            let process = builder.process_mut(*process);
            (process.rank, process.world_size, process.host) = (rank, metadata.world_size, metadata.host.clone());
            process.comm_backend = metadata.comm_backend;
            process.process_groups.clone_from(&metadata.process_groups);
            if let Some(name) = process.pid.and_then(|pid| self.process_names.get(&pid)) {
                process.name.clone_from(name);
            }
        }
        for (row, track) in self.threads.iter().chain(&self.others) {
            if let Some(name) = self.row_names.get(row).filter(|name| !name.is_empty()) {
                builder.track_mut(*track).name.clone_from(name);
            }
        }
        let worked = self.device_tracks.keys().map(|(_, ordinal, _)| *ordinal);
        if let Some(from) = match_only_devices(&mut metadata.devices, worked) {
            let ordinal = metadata.devices[0].ordinal;
            builder.findings.add(FindingCode::RenumberedDevice, || format!("{from} is {ordinal}"));
            // Its allocations are told under the number of its description.
            if let Some((alias, device)) = self.devices.get(&from).zip(self.devices.get(&ordinal)) {
                builder.set_same_device(*alias, *device);
            }
        }
        for device in metadata.devices.drain(..) {
            match self.devices.get(&device.ordinal) {
                Some(id) => *builder.device_mut(*id) = device,
                None => drop(builder.add_device(Device { rank, ..device })),
            }
        }
        self.devices.values().for_each(|id| builder.device_mut(*id).rank = rank);
    }

    fn process(&mut self, builder: &mut TraceBuilder, pid: i64) -> ProcessId {
        if let Some(process) = self.processes.get(&pid) {
            return *process;
        }
        let process = if self.has_main_pid { builder.add_process(Process::default()) } else { self.main };
        self.has_main_pid = true;
        builder.process_mut(process).pid = Some(pid);
        self.processes.insert(pid, process);
        process
    }

    /// The device with this number.
    pub(super) fn device(&mut self, builder: &mut TraceBuilder, ordinal: i64) -> DeviceId {
        *self.devices.entry(ordinal).or_insert_with(|| builder.add_device(Device { ordinal, ..Device::default() }))
    }
}

fn number(key: RowKey) -> Option<i64> {
    match key {
        RowKey::Number(number) => Some(number),
        RowKey::Name(_) | RowKey::Missing => None,
    }
}

fn shown(builder: &TraceBuilder, key: RowKey) -> String {
    match key {
        RowKey::Missing => String::new(),
        RowKey::Number(number) => number.to_string(),
        RowKey::Name(name) => builder.strings.get(name).to_string(),
    }
}

/// Old files name a device row's thread `stream 7`.
pub(super) fn stream_of_name(tid: &[u8]) -> Option<i64> {
    numbers::integer(tid.strip_prefix(b"stream ")?.trim_ascii())
}

/// 2^32 − 1 and −1 are no stream.
pub(super) fn known_stream(stream: Option<i64>) -> Option<i64> {
    stream.filter(|stream| !matches!(stream, -1 | 0xffff_ffff))
}

/// Where one device is described and another, the only one, did all the work, they are the same: ROCm describes the
/// devices that the process sees, from 0 on, and numbers rows by the devices that the machine has. Gives the described
/// one the other's number; returns the one that it had.
pub(super) fn match_only_devices(described: &mut [Device], worked: impl Iterator<Item = i64>) -> Option<i64> {
    let [described] = described else { return None };
    let worked: BTreeSet<i64> = worked.collect();
    let only = worked.first().copied().filter(|only| worked.len() == 1 && *only != described.ordinal)?;
    Some(std::mem::replace(&mut described.ordinal, only))
}
