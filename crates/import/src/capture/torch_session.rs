//! What a session of PyTorch's own profiler recorded of devices, beside a capture (`--gpu=torch`): added to the capture as
//! if its recorder had recorded it.
//!
//! ```text
//! capture, session's file ──▶ capture with the device's rows ──▶ part, which says that it has them
//! ```
//!
//! Only what is of devices: calls, work, waits. The operators of the file, if any, the capture has itself.

use super::metadata_value;
use crate::kineto::{self, Activities};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use stepscope_capture::device::{ActivityRecord, FieldValue};
use stepscope_capture::{Capture, DeviceActivity, Thread};
use stepscope_trace::{Device, FindingCode};

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

/// Adds a session whose file is none of the `known`; says what is missing of it. Nothing was added where it fails.
fn merge_torch_session(
    run: &Path,
    session: &SessionMetadata,
    known: &mut HashSet<PathBuf>,
    capture: &mut Capture,
) -> Result<Option<String>, String> {
    let below = session.file()?;
    let (path, file) = (run.join(below), below.display());
    if !stepscope_store::is_file(&path) {
        return Err(format!("what PyTorch's profiler told is not there: {file}"));
    }
    if !known.insert(below.into()) {
        return Err(format!("two sessions of PyTorch's profiler name one file: {file}"));
    }
    let mut found = kineto::read_activities(&path).map_err(|error| error.to_string())?;
    let zero_ns = found.zero_unix_ns.ok_or_else(|| format!("its clock is not known: {file}"))?;
    // Without, that of the capture's beginning.
    let shift_ns = zero_ns.saturating_sub(session.offset_ns().unwrap_or(capture.unix_offset_ns));
    let device_type = session.number("device_type").and_then(|number| u8::try_from(number).ok()).unwrap_or(1);
    if metadata_value(capture, "devices").is_none() && !found.devices.is_empty() {
        capture.metadata.push(("devices".into(), devices_metadata(&found.devices)));
        capture.metadata.sort();
    }
    add_activities(&mut found, shift_ns, device_type, capture);
    // What has no time of its own comes first.
    capture.device.sort();
    let count = |code| found.findings.iter().filter(|finding| finding.code == code).map(|finding| finding.count).sum();
    let (cuts, unreadable): (u64, u64) = (count(FindingCode::TruncatedInput), count(FindingCode::UnreadableEvent));
    Ok(match (cuts, unreadable) {
        (0, 0) => None,
        (0, count) => Some(format!("{count} of the events that PyTorch's profiler told cannot be read: {file}")),
        _ => Some(format!("the end of what PyTorch's profiler told cannot be read: {file}")),
    })
}

/// Adds the activity records of a session, whose names, threads and correlation ids become the capture's.
fn add_activities(found: &mut Activities, shift_ns: i64, device_type: u8, capture: &mut Capture) {
    let first_name = capture.names.len() as u32;
    capture.names.append(&mut found.names);
    let threads: Vec<Option<u32>> = found.threads.iter().map(|tid| thread_of(*tid, &mut capture.threads)).collect();
    // The ids of several sessions may not be alike. Events are numbered by the call that records them.
    let used = capture.device.iter().filter_map(|activity| match activity.record {
        ActivityRecord::Call(call) => Some(call.correlation),
        _ => None,
    });
    let last_used = u64::from(used.max().unwrap_or(0));
    for mut record in found.records.drain(..) {
        if let Some(thread) = record.thread_mut() {
            let Some(known) = threads[*thread as usize] else { continue };
            *thread = known;
        }
        if let Some((start_ns, end_ns)) = record.span_mut() {
            (*start_ns, *end_ns) = (start_ns.saturating_add(shift_ns), end_ns.saturating_add(shift_ns));
        }
        if let Some(Some(name)) = record.name_mut() {
            *name += first_name;
        }
        for field in ["correlation", "event", "event_sync"] {
            if let Some(FieldValue::Number(id @ 1..)) = record.field(field) {
                record.set_field(field, FieldValue::Number(id + last_used));
            }
        }
        capture.device.push(DeviceActivity { device_type, record });
    }
}

/// The capture's thread with this id. Without operators in the session PyTorch does not know the system's id of a thread,
/// and writes what the device's profiler calls it: a signed number of 32 bits, or only how large that is.
fn thread_of(tid: i64, threads: &mut Vec<Thread>) -> Option<u32> {
    let handle = tid as u32;
    let by_tid = threads.iter().rposition(|thread| i64::try_from(thread.tid) == Ok(tid));
    let is_it = |thread: &Thread| thread.handle != 0 && thread.handle == handle;
    let is_as_large = |thread: &Thread| thread.handle != 0 && (thread.handle as i32).unsigned_abs() == handle;
    let by_handle = || threads.iter().rposition(is_it);
    if let Some(known) = by_tid.or_else(by_handle).or_else(|| threads.iter().rposition(is_as_large)) {
        return Some(known as u32);
    }
    if threads.len() >= MOST_THREADS {
        return None;
    }
    let ordinal = u32::try_from(threads.len()).ok()?;
    let tid = u64::try_from(tid).unwrap_or(0);
    threads.push(Thread { ordinal, tid, handle, ..Thread::default() });
    Some(ordinal)
}

fn devices_metadata(devices: &[Device]) -> String {
    let devices = devices.iter().map(|device| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_known_by_each_of_its_numbers() {
        let thread = |tid, handle| Thread { tid, handle, ..Thread::default() };
        // Of an H200: 3,097,491,136 is −1,197,476,160 as a signed number.
        let mut threads = vec![thread(2205, 3_097_491_136), thread(1908, 1_328_632_128)];
        for tid in [2205, 3_097_491_136, -1_197_476_160, 1_197_476_160] {
            assert_eq!(thread_of(tid, &mut threads), Some(0), "{tid}");
        }
        assert_eq!(thread_of(1_328_632_128, &mut threads), Some(1));
        assert_eq!(thread_of(77, &mut threads), Some(2), "one that nobody knew");
    }
}
