//! Captures of which only some was recorded: a flight recorder's last moments, or some steps now and then.

use super::{AlignedCapture, metadata_value};
use stepscope_base::Span;
use stepscope_base::units::format_ns;
use stepscope_capture::{Capture, Window};
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
    if let Some(because) = metadata_value(capture, "kept_because") {
        findings.add(FindingCode::KeptBecause, || format!("{}: {because}", who()));
    }
    if let Some((count, because)) =
        metadata_value(capture, "windows_not_kept").and_then(|refused| refused.split_once(' '))
    {
        findings.add(FindingCode::WindowsNotKept, || format!("{}: the last of {count}: {because}", who()));
        findings.add_count(FindingCode::WindowsNotKept, count.parse().unwrap_or(1).max(1) - 1);
    }
    if let Some(schedule) = metadata_value(capture, "schedule") {
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

impl AlignedCapture<'_> {
    /// Tells the builder when it was recorded, where that was not all the time.
    pub(super) fn add_windows(&self, process: ProcessId, builder: &mut TraceBuilder) {
        if metadata_value(self.capture, "schedule").is_none() {
            return;
        }
        for (start_ns, end_ns) in windows(self.capture) {
            let (start_ns, dur_ns) = self.align(start_ns, end_ns);
            builder.add_recorded(process, Span::new(start_ns, start_ns + dur_ns));
        }
    }
}

/// From when to when it was recorded.
fn windows(capture: &Capture) -> Vec<(i64, i64)> {
    let begin_ns = capture.ring.and_then(|ring| ring.since_ns).unwrap_or(capture.opened_ns);
    spans(&capture.windows, begin_ns, capture.last_ns)
}

/// When anybody's window was open. What closes more than were opened was open from `begin_ns` on.
fn spans(windows: &[Window], begin_ns: i64, last_ns: i64) -> Vec<(i64, i64)> {
    let change = |window: &Window| if window.is_on { 1_i64 } else { -1 };
    let sums = windows.iter().scan(0, |sum, window| {
        *sum += change(window);
        Some(*sum)
    });
    let mut open = -sums.min().unwrap_or(0).min(0);
    let mut on_ns = (open > 0).then_some(begin_ns);
    let mut found = Vec::new();
    for window in windows {
        open += change(window);
        match on_ns {
            None => on_ns = Some(window.time_ns),
            Some(since_ns) if open == 0 => {
                found.push((since_ns, window.time_ns.max(since_ns)));
                on_ns = None;
            }
            Some(_) => {}
        }
    }
    found.extend(on_ns.map(|since_ns| (since_ns, last_ns.max(since_ns))));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans_of(drawn: &str) -> Vec<(i64, i64)> {
        let windows = drawn.chars().zip(1..).filter(|(drawn, _)| *drawn != ' ');
        let window = |(drawn, time_ns)| Window { time_ns, is_on: drawn == '(', cycle: 0 };
        spans(&windows.map(window).collect::<Vec<_>>(), 0, 9)
    }

    #[test]
    fn it_is_recorded_while_any_window_is_open() {
        assert_eq!(spans_of(" ( ) "), [(2, 4)]);
        assert_eq!(spans_of("(())"), [(1, 4)], "one in another");
        assert_eq!(spans_of("()(()())"), [(1, 2), (3, 8)]);
        assert_eq!(spans_of("(()"), [(1, 9)], "it ended with the process");
        assert_eq!(spans_of(")"), [(0, 1)], "its beginning is not in the ring any more");
        assert_eq!(spans_of("()) ("), [(0, 3), (5, 9)], "the outer one's beginning is not");
        assert_eq!(spans_of(""), []);
    }
}
