//! The clocks of hosts: processes of one host share its monotonic clock, which nothing sets, and are placed by it. What
//! its time of day was is taken from the first process alone.
//!
//! ```text
//! monotonic    0 ────────────── 60 ────────────── 120
//! time of day  12:00:00         12:01:00  set     13:02:00     the trace ends 120 s after 12:00:00
//! ```

use super::metadata_value;
use stepscope_base::units::format_ns;
use stepscope_capture::Capture;
use stepscope_trace::{FindingCode, Findings};

/// By how much the time of day may move without a finding: clocks are read one after the other.
const MOST_MOVED_NS: u64 = 1_000_000;

/// Says of each host whose time of day moved from the `offset_ns` that it is placed by: by how much at most, and when that
/// was first seen.
pub(super) fn report(captures: &[&Capture], offset_ns: &dyn Fn(&Capture) -> i64, findings: &mut Findings) {
    let mut boots: Vec<[u8; 16]> = Vec::new();
    for capture in captures {
        if !boots.contains(&capture.process.boot_id) {
            boots.push(capture.process.boot_id);
        }
    }
    for boot in boots {
        let of_host = || captures.iter().filter(|capture| capture.process.boot_id == boot);
        let snapshots = of_host().flat_map(|capture| {
            let moved_ns = |of_day_ns: i64| of_day_ns.saturating_sub(offset_ns(capture));
            capture.clocks.iter().map(move |clock| (clock.monotonic_ns, moved_ns(clock.unix_offset_ns())))
        });
        let moved: Vec<(i64, i64)> = snapshots.filter(|(_, moved)| moved.unsigned_abs() > MOST_MOVED_NS).collect();
        let opened_ns = of_host().map(|capture| capture.opened_ns).min();
        let first_ns = moved.iter().map(|(at_ns, _)| *at_ns).min();
        let most_ns = moved.iter().map(|(_, moved_ns)| *moved_ns).max_by_key(|moved_ns| moved_ns.unsigned_abs());
        if let (Some(opened_ns), Some(first_ns), Some(most_ns)) = (opened_ns, first_ns, most_ns) {
            findings.add(FindingCode::ClockMoved, || {
                let host = of_host().find_map(|capture| metadata_value(capture, "host")).unwrap_or("one host");
                let since_begin = format_ns(first_ns.saturating_sub(opened_ns));
                format!("{host}: by {}, first seen {since_begin} after recording began", format_ns(most_ns))
            });
        }
    }
}
