//! Processes and their threads.

use super::metadata_value;
use crate::labels::data_parallelism;
use crate::process_groups::{self, comm_backend};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_capture::Capture;
use stepscope_trace::{NumaNodes, Process, ProcessId, Settings, TraceBuilder, Track, TrackId, TrackKind};

/// What tells a pid from the same number on another host or in another container.
pub(super) type ProcessKey = ([u8; 16], u64, u64);

pub(super) fn process_key(capture: &Capture, pid: u64) -> ProcessKey {
    (capture.process.boot_id, capture.process.pid_namespace, pid)
}

pub(super) fn process_of(capture: &Capture, process_keys: &[ProcessKey]) -> Process {
    let parent = process_key(capture, capture.parent_pid);
    let groups = metadata_value(capture, "process_groups").unwrap_or_default();
    let process_groups = process_groups::read(groups.as_bytes(), process_groups::METADATA_KEYS);
    Process {
        rank: metadata_value(capture, "rank").and_then(|rank| rank.parse().ok()).unwrap_or(0),
        world_size: metadata_value(capture, "world_size").and_then(|size| size.parse().ok()),
        pid: Some(capture.process.pid as i64),
        parent_pid: process_keys.contains(&parent).then_some(capture.parent_pid as i64),
        host: metadata_value(capture, "host").map(str::to_string),
        name: metadata_value(capture, "process_name").unwrap_or("process").to_string(),
        data_parallelism: capture.names.iter().filter_map(|name| data_parallelism(name)).min(),
        comm_backend: process_groups.first().and_then(|group| comm_backend(group.backend.as_bytes())),
        process_groups,
        sockets: None,
        settings: settings(capture),
        debug_variables: words(metadata_value(capture, "debug_variables")),
        library_files: lines(metadata_value(capture, "library_files")),
    }
}

fn words(text: Option<&str>) -> Vec<String> {
    text.into_iter().flat_map(str::split_whitespace).map(str::to_string).collect()
}

/// In order, each once.
fn lines(text: Option<&str>) -> Vec<String> {
    text.into_iter().flat_map(str::lines).map(str::to_string).collect::<BTreeSet<String>>().into_iter().collect()
}

fn settings(capture: &Capture) -> Settings {
    let number = |key: &str| metadata_value(capture, key).and_then(|value| value.parse().ok());
    Settings {
        threads: number("torch_threads"),
        cores: number("cpu_cores"),
        cores_allowed: number("cpu_cores_allowed"),
        ranks: number("local_world_size").or_else(|| number("world_size")).or(Some(1)),
        is_anomaly_mode_on: metadata_value(capture, "anomaly_mode").map(|value| value == "1"),
        parameters: number("parameters"),
        parameters_float64: number("parameters_float64"),
        numa_nodes: numa_nodes(capture),
    }
}

fn numa_nodes(capture: &Capture) -> Option<NumaNodes> {
    let nodes = |key| numbered(metadata_value(capture, key)?);
    Some(NumaNodes {
        with_cores: metadata_value(capture, "numa_nodes")?.parse().ok()?,
        of_cpus: nodes("numa_nodes_of_cpus")?,
        of_memory: nodes("numa_nodes_of_memory")?,
    })
}

/// The bits of a list of numbers, as `0,1`; `None` of one that has others.
fn numbered(text: &str) -> Option<u64> {
    let mut bits = text.split(',').map(|number| number.parse().ok().and_then(|number| 1_u64.checked_shl(number)));
    bits.try_fold(0, |bits, bit| Some(bits | bit?))
}

/// The threads that recorded something, in order of appearance.
pub(super) fn used_threads(capture: &Capture) -> Vec<u32> {
    let threads_of_events = capture.events.iter().map(|event| event.thread);
    let threads_of_steps = capture.steps.iter().map(|step| step.thread);
    let threads_of_marks = capture.optimizer_steps.iter().map(|mark| mark.thread);
    let threads_of_memory = capture.memory.iter().map(|event| event.thread);
    let threads_of_devices = capture.device.about().iter().filter_map(|about| about.record.thread());
    let threads = threads_of_events.chain(threads_of_steps).chain(threads_of_marks).chain(threads_of_memory);
    let threads = threads.chain(threads_of_devices).chain(capture.io.iter().map(|call| call.thread));
    let threads = threads.chain(capture.stack_samples.iter().map(|sample| sample.thread));
    let mut used: Vec<u32> = threads.collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// One track for each thread that recorded something, in order of appearance.
pub(super) fn add_tracks(capture: &Capture, process: ProcessId, builder: &mut TraceBuilder) -> BTreeMap<u32, TrackId> {
    add_other_tracks(capture, process, &BTreeMap::new(), builder)
}

/// As [`add_tracks`], of a process of which some tracks are known, by the system's number of their thread.
pub(super) fn add_other_tracks(
    capture: &Capture,
    process: ProcessId,
    known: &BTreeMap<u64, TrackId>,
    builder: &mut TraceBuilder,
) -> BTreeMap<u32, TrackId> {
    let mut tracks = BTreeMap::new();
    for ordinal in used_threads(capture) {
        if let Some(track) = known.get(&capture.threads[ordinal as usize].tid) {
            tracks.insert(ordinal, *track);
            continue;
        }
        let thread = &capture.threads[ordinal as usize];
        let mut track = Track::new(TrackKind::Thread, process, thread.name.clone());
        // One that only a device's profiler knows of has no number.
        track.tid = Some(thread.tid as i64).filter(|tid| *tid != 0);
        track.framework_thread = Some(thread.framework_thread).filter(|id| *id != 0);
        tracks.insert(ordinal, builder.add_track(track));
    }
    tracks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_nodes_are_bits() {
        assert_eq!(numbered("0,2,63"), Some(1 << 63 | 0b101));
        for text in ["", "0,", "64", "-1", "0-2"] {
            assert_eq!(numbered(text), None, "{text}");
        }
    }
}
