//! What devices did while their profiler only warmed up: not part of what was to be recorded.

use std::collections::HashSet;
use std::ops::Range;
use stepscope_capture::device::ActivityRecord;
use stepscope_capture::{Capture, Window};

/// The metadata of a process that records only some steps.
const KEY: &str = "schedule";

/// Removes from `capture` what its devices did outside of the steps that were to be recorded. What was enqueued in them
/// stays, whenever it ran.
pub(crate) fn leave_out(capture: &mut Capture) {
    if capture.device.is_empty() || !capture.metadata.iter().any(|(key, _)| key == KEY) {
        return;
    }
    let spans = spans_of(&capture.windows, capture.opened_ns);
    let is_in = |time_ns: i64| spans.iter().any(|span| span.contains(&time_ns));
    let calls = capture.device.iter().filter_map(|activity| match activity.record {
        ActivityRecord::Call(call) if is_in(call.start_ns) => Some(call.correlation),
        _ => None,
    });
    let calls: HashSet<u32> = calls.filter(|correlation| *correlation != 0).collect();
    capture.device.retain(|activity| {
        let is_enqueued = match activity.record {
            ActivityRecord::Work(work) => calls.contains(&work.correlation),
            ActivityRecord::Synchronization(wait) => calls.contains(&wait.correlation),
            _ => false,
        };
        is_enqueued || activity.record.span().is_none_or(|(start_ns, _)| is_in(start_ns))
    });
}

/// From when to when it was recorded. What was switched off first was on before: a ring has evicted its beginning.
fn spans_of(windows: &[Window], opened_ns: i64) -> Vec<Range<i64>> {
    let mut spans = Vec::new();
    let mut on_ns = windows.first().is_some_and(|first| !first.is_on).then_some(opened_ns);
    for window in windows {
        match (window.is_on, on_ns) {
            (true, None) => on_ns = Some(window.time_ns),
            (false, Some(since_ns)) => {
                spans.push(since_ns..window.time_ns);
                on_ns = None;
            }
            _ => {}
        }
    }
    spans.extend(on_ns.map(|since_ns| since_ns..i64::MAX));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_capture::DeviceActivity;
    use stepscope_capture::device::{Call, DeviceWork, Dropped, WorkKind};

    fn call(start_ns: i64, correlation: u32) -> ActivityRecord {
        ActivityRecord::Call(Call { start_ns, end_ns: start_ns + 1, correlation, ..Call::default() })
    }

    fn work(start_ns: i64, correlation: u32) -> ActivityRecord {
        let kind = WorkKind::Graph;
        ActivityRecord::Work(DeviceWork { kind, start_ns, end_ns: start_ns + 1, correlation, ..DeviceWork::default() })
    }

    fn left(metadata: &[(&str, &str)], windows: &[(i64, bool)], records: &[ActivityRecord]) -> Vec<ActivityRecord> {
        let mut capture = crate::record_filter::tests::capture();
        capture.metadata = metadata.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        capture.windows =
            windows.iter().map(|(time_ns, is_on)| Window { time_ns: *time_ns, is_on: *is_on, cycle: 0 }).collect();
        capture.device = records.iter().map(|record| DeviceActivity { device_type: 1, record: *record }).collect();
        leave_out(&mut capture);
        capture.device.iter().map(|activity| activity.record).collect()
    }

    #[test]
    fn what_was_enqueued_in_a_window_stays_whenever_it_ran() {
        let warmup = [call(50, 1), work(60, 1), call(98, 2)];
        let recorded = [
            work(101, 2),
            call(150, 3),
            work(160, 3),
            call(199, 4),
            work(205, 4),
            ActivityRecord::Dropped(Dropped { count: 3 }),
        ];
        let next = [call(210, 5), work(220, 5), work(230, 0)];
        let all: Vec<ActivityRecord> = [&warmup[..], &recorded, &next].concat();
        let windows = [(100, true), (200, false)];
        assert_eq!(left(&[("schedule", "active=1")], &windows, &all), recorded);
        assert_eq!(left(&[("schedule", "active=1")], &[], &all), [ActivityRecord::Dropped(Dropped { count: 3 })]);
        assert_eq!(left(&[("rank", "0")], &windows, &all), all, "without a schedule all was to be recorded");
    }

    #[test]
    fn a_window_whose_begin_was_given_up_is_one_from_the_beginning() {
        let schedule = [("schedule", "active=1")];
        assert_eq!(
            left(&schedule, &[(100, false), (300, true)], &[work(50, 0), work(150, 0), work(400, 0)]),
            [work(50, 0), work(400, 0)]
        );
    }
}
