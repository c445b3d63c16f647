//! What went wrong while a process was recorded.

use super::io::is_of_files;
use super::{device, memory, metadata_value, window};
use stepscope_capture::{Capture, State};
use stepscope_trace::{FindingCode, TraceBuilder};

/// Turns what went wrong while recording into findings.
pub(super) fn report(capture: &Capture, builder: &mut TraceBuilder) {
    let findings = &mut builder.findings;
    let who =
        || format!("{} (pid {})", metadata_value(capture, "process_name").unwrap_or("process"), capture.process.pid);
    match capture.state {
        State::Closed => {}
        State::Running => findings.add(FindingCode::ProcessRunning, who),
        // Nothing closes it.
        State::Killed if is_of_files(capture) => {}
        State::Killed => findings.add(FindingCode::ProcessKilled, who),
    }
    window::report(capture, &who, findings);
    if capture.dropped > 0 {
        findings.add(FindingCode::DroppedRecords, || format!("{}: {}", who(), capture.dropped));
        findings.add_count(FindingCode::DroppedRecords, capture.dropped - 1);
    }
    if capture.is_disk_full {
        findings.add(FindingCode::DiskFull, who);
    }
    for damage in &capture.damaged {
        findings.add(FindingCode::DamagedSegment, || format!("{}: {damage}", who()));
    }
    if let Some(reason) = metadata_value(capture, "hook_refused") {
        findings.add(FindingCode::HookRefused, || format!("{}: {reason}", who()));
    }
    if let Some(reason) = metadata_value(capture, "stacks_refused") {
        findings.add(FindingCode::OptionNotRecorded, || format!("stacks: {reason}"));
    }
    if let Some(reason) = metadata_value(capture, "stack_samples_refused") {
        findings.add(FindingCode::OptionNotRecorded, || format!("samples of stacks: {reason}"));
    }
    if let Some(reason) = metadata_value(capture, "inputs_refused") {
        findings.add(FindingCode::OptionNotRecorded, || format!("shapes: {}: {reason}", who()));
    }
    if let Some(reason) = metadata_value(capture, "framework_refused") {
        findings.add(FindingCode::FrameworkRefused, || format!("{}: {reason}", who()));
    }
    for (key, code) in [("disturbed_by", FindingCode::Disturbed), ("steps_failed", FindingCode::StepFailed)] {
        let each = metadata_value(capture, key).unwrap_or_default().split("; ");
        for text in each.filter(|text| !text.is_empty()) {
            findings.add(code, || format!("{}: {text}", who()));
        }
    }
    memory::report(capture, &who, findings);
    device::report(capture, &who, findings);
    if let Some(reason) = metadata_value(capture, "collectives_refused") {
        findings.add(FindingCode::CollectivesRefused, || format!("{}: {reason}", who()));
    }
    for option in metadata_value(capture, "options_not_recorded")
        .unwrap_or_default()
        .split(' ')
        .filter(|option| !option.is_empty())
    {
        findings.add(FindingCode::OptionNotRecorded, || option.to_string());
    }
    let is_unfinished = capture.events.iter().filter(|event| event.is_unfinished);
    for event in is_unfinished {
        findings.add(FindingCode::UnfinishedSlices, || format!("{} in {}", capture.names[event.name as usize], who()));
    }
}
