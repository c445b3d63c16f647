//! Captures of which only some was recorded: a flight recorder's last moments, or some steps now and then.

use super::{Placed, fact};
use stepscope_base::Span;
use stepscope_base::units::format_ns;
use stepscope_capture::Capture;
use stepscope_trace::{FindingCode, Findings, ProcessId, TraceBuilder};

/// Says what was kept, and why.
pub(super) fn report(capture: &Capture, who: &impl Fn() -> String, findings: &mut Findings) {
    if let Some(ring) = capture.ring
        && let Some(since_ns) = ring.since_ns
    {
        let kept = format_ns(capture.last_ns.saturating_sub(since_ns));
        let lost = match ring.lost_begins {
            0 => String::new(),
            count => format!("; {count} ranges left out that began before"),
        };
        findings.add(FindingCode::RingWindow, || {
            format!("{}: the last {kept}, {} asked for{lost}", who(), format_ns(ring.asked_ns))
        });
    }
    if let Some(because) = fact(capture, "kept_because") {
        findings.add(FindingCode::KeptBecause, || format!("{}: {because}", who()));
    }
    if let Some((count, because)) = fact(capture, "windows_not_kept").and_then(|refused| refused.split_once(' ')) {
        findings.add(FindingCode::WindowsNotKept, || format!("{}: the last of {count}: {because}", who()));
        findings.add_count(FindingCode::WindowsNotKept, count.parse().unwrap_or(1).max(1) - 1);
    }
    if let Some(schedule) = fact(capture, "schedule") {
        let windows = windows(capture);
        let recorded_ns =
            windows.iter().fold(0_i64, |sum, (start, end)| sum.saturating_add(end.saturating_sub(*start)));
        let of_ns = capture.last_ns.saturating_sub(capture.opened_ns);
        let times = if windows.len() == 1 { "once".into() } else { format!("{} times", windows.len()) };
        findings.add(FindingCode::SampledSteps, || {
            format!("{}: {schedule}, {times}, {} of {}", who(), format_ns(recorded_ns), format_ns(of_ns))
        });
    }
}

impl Placed<'_> {
    /// Tells the builder when it was recorded, where that was not all the time.
    pub(super) fn add_windows(&self, process: ProcessId, builder: &mut TraceBuilder) {
        if fact(self.capture, "schedule").is_none() {
            return;
        }
        for (start_ns, end_ns) in windows(self.capture) {
            let (start_ns, dur_ns) = self.place(start_ns, end_ns);
            builder.add_recorded(process, Span::new(start_ns, start_ns + dur_ns));
        }
    }
}

/// From when to when it was recorded. What was switched on before anything that was kept was on from the beginning.
fn windows(capture: &Capture) -> Vec<(i64, i64)> {
    let begin_ns = capture.ring.and_then(|ring| ring.since_ns).unwrap_or(capture.opened_ns);
    let mut found = Vec::new();
    let mut on_ns = capture.windows.first().is_some_and(|first| !first.is_on).then_some(begin_ns);
    for window in &capture.windows {
        match (window.is_on, on_ns) {
            (true, None) => on_ns = Some(window.time_ns),
            (false, Some(since_ns)) => {
                found.push((since_ns, window.time_ns.max(since_ns)));
                on_ns = None;
            }
            _ => {}
        }
    }
    found.extend(on_ns.map(|since_ns| (since_ns, capture.last_ns.max(since_ns))));
    found
}
