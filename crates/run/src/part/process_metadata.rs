//! What holds for the whole process of a part: an object in the file's metadata.

use serde::{Deserialize, Serialize};
use stepscope_capture::{Capture, State, Thread};

/// Version of the part's format that this code writes, and the newest it reads.
pub(super) const PART_VERSION: u32 = 2;
/// A part's metadata: what holds for the whole process.
#[derive(Serialize, Deserialize)]
pub(super) struct ProcessMetadata {
    pub(super) version: u32,
    pub(super) pid: u64,
    pub(super) parent_pid: u64,
    pub(super) process_start_ticks: u64,
    pub(super) pid_namespace: u64,
    pub(super) boot_id: String,
    pub(super) is_killed: bool,
    pub(super) opened_ns: i64,
    pub(super) unix_offset_ns: i64,
    /// Monotonic clock and Unix time of each snapshot.
    #[serde(default)]
    pub(super) clocks: Vec<(i64, i64)>,
    pub(super) last_ns: i64,
    #[serde(rename = "facts")]
    pub(super) metadata: Vec<(String, String)>,
    pub(super) threads: Vec<ThreadMetadata>,
    pub(super) windows: Vec<(i64, bool, u64)>,
    /// Thread, since when, and number of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) profiler_states: Vec<(u32, i64, u64)>,
    pub(super) dropped: u64,
    pub(super) is_disk_full: bool,
    pub(super) damaged: Vec<String>,
    #[serde(default)]
    pub(super) ring: Option<RingMetadata>,
}

/// What a ring kept of the process.
#[derive(Serialize, Deserialize)]
pub(super) struct RingMetadata {
    pub(super) asked_ns: i64,
    pub(super) since_ns: Option<i64>,
    pub(super) lost_begins: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ThreadMetadata {
    pub(super) tid: u64,
    pub(super) framework_thread: u64,
    #[serde(default)]
    pub(super) handle: u32,
    pub(super) name: String,
}

/// The metadata of what a process recorded.
pub(super) fn metadata_of(capture: &Capture) -> ProcessMetadata {
    let thread = |thread: &Thread| ThreadMetadata {
        tid: thread.tid,
        framework_thread: thread.framework_thread,
        handle: thread.handle,
        name: thread.name.clone(),
    };
    ProcessMetadata {
        version: PART_VERSION,
        pid: capture.process.pid,
        parent_pid: capture.parent_pid,
        process_start_ticks: capture.process.start_ticks,
        pid_namespace: capture.process.pid_namespace,
        boot_id: format!("{:032x}", u128::from_be_bytes(capture.process.boot_id)),
        is_killed: capture.state != State::Closed,
        opened_ns: capture.opened_ns,
        unix_offset_ns: capture.unix_offset_ns,
        clocks: capture.clocks.iter().map(|clock| (clock.monotonic_ns, clock.unix_ns)).collect(),
        last_ns: capture.last_ns,
        metadata: capture.metadata.clone(),
        threads: capture.threads.iter().map(thread).collect(),
        windows: capture.windows.iter().map(|window| (window.time_ns, window.is_on, window.cycle)).collect(),
        profiler_states: capture.profiler_states.iter().map(|of| (of.thread, of.since_ns, of.number)).collect(),
        dropped: capture.dropped,
        is_disk_full: capture.is_disk_full,
        damaged: capture.damaged.clone(),
        ring: capture.ring.map(|ring| RingMetadata {
            asked_ns: ring.asked_ns,
            since_ns: ring.since_ns,
            lost_begins: ring.lost_begins,
        }),
    }
}
