//! The file that a recorded process writes.

use crate::sound;
use std::path::Path;
use stepscope_capture::{Capture, DeviceActivity, Event, Thread};

/// A capture is refused, or what is read of it is in range, becomes a Parquet part that holds the same, and a run
/// folder with it opens.
///
/// # Panics
/// When that is not so.
pub fn capture(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path();
    std::fs::create_dir(run.join("raw")).expect("a folder");
    let raw = run.join("raw/1-2.capture");
    std::fs::write(&raw, bytes).expect("written");
    if let Ok(capture) = stepscope_capture::read(&raw) {
        check(&capture);
        check_as_part(&capture, &run.join("part"));
    }
    if let Ok(trace) = stepscope_import::open(run) {
        sound::check(&trace);
    }
}

/// Everything that is named is there, and nothing ends before it begins.
pub(crate) fn check(capture: &Capture) {
    for event in capture.events.iter() {
        assert!((event.thread as usize) < capture.threads.len(), "a thread that is there");
        assert!((event.name as usize) < capture.names.len(), "a name that is there");
        assert!(event.end_ns >= event.start_ns, "no negative duration");
    }
    for step in &capture.steps {
        assert!((step.thread as usize) < capture.threads.len() && step.end_ns >= step.start_ns, "a sound step");
    }
    for activity in capture.device.iter() {
        let thread = activity.record.thread();
        assert!(thread.is_none_or(|thread| (thread as usize) < capture.threads.len()), "a thread that is there");
        assert!(activity.record.span().is_none_or(|(start_ns, end_ns)| end_ns >= start_ns), "no negative duration");
        assert!(name_of(capture, &activity).is_none_or(|name| (name as usize) < capture.names.len()), "a name");
    }
    assert!(capture.optimizer_steps.iter().all(|mark| (mark.thread as usize) < capture.threads.len()));
}

fn name_of(capture: &Capture, activity: &DeviceActivity) -> Option<u32> {
    let mut record = activity.record;
    let id = *record.name_mut()?;
    // A part says a name that is nothing, and none, in one way.
    id.filter(|id| capture.names.get(*id as usize).is_none_or(|name| !name.is_empty()))
}

/// Compaction loses nothing.
fn check_as_part(capture: &Capture, path: &Path) {
    stepscope_run::write_part(path, capture).expect("a part is written");
    let part = stepscope_run::read_part(path).expect("a part that was just written is read");
    assert_eq!(told(capture), told(&part), "the part holds the same");
    assert_eq!(capture.ring, part.ring);
    let threads = |of: &Capture| {
        // How device profilers name a thread matters no more once their activity records are read.
        of.threads.iter().map(|thread| Thread { handle: 0, ..thread.clone() }).collect::<Vec<_>>()
    };
    assert_eq!((&capture.metadata, threads(capture), capture.dropped), (&part.metadata, threads(&part), part.dropped));
}

/// Names and times of all events in an order of their own, steps and marks; times are those that a part has room for.
fn told(capture: &Capture) -> Vec<String> {
    let offset_ns = capture.unix_offset_ns;
    let placed = |time_ns: i64| time_ns.saturating_add(offset_ns).saturating_sub(offset_ns);
    let event = |event: &Event| {
        let dur_ns = event.end_ns.saturating_sub(event.start_ns);
        let name = &capture.names[event.name as usize];
        format!(
            "{} {:?} {}+{dur_ns} {} {:?} {:?} {} {}",
            event.thread,
            name,
            placed(event.start_ns),
            event.scope,
            event.sequence_number,
            event.forward_thread,
            event.is_unfinished,
            event.is_async
        )
    };
    let mut lines: Vec<String> = capture.events.iter().map(|of| event(&of)).collect();
    lines.extend(capture.steps.iter().map(|step| format!("step {} {}", step.number, placed(step.start_ns))));
    lines.extend(capture.optimizer_steps.iter().map(|mark| format!("mark {} {:?}", placed(mark.time_ns), mark.number)));
    lines.extend(capture.device.iter().map(|activity| {
        let mut record = activity.record;
        let name = name_of(capture, &activity).map(|id| &capture.names[id as usize]);
        record.name_mut().into_iter().for_each(|id| *id = None);
        if let Some((start_ns, end_ns)) = record.span_mut() {
            let dur_ns = end_ns.saturating_sub(*start_ns);
            *start_ns = placed(*start_ns);
            *end_ns = start_ns.saturating_add(dur_ns);
        }
        format!("{} {name:?} {record:?}", activity.device_type)
    }));
    lines.sort_unstable();
    lines
}
