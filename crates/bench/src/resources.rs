//! What a stretch of this process's life took: time on the clock, time on processors, memory at its peak.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Time that something took.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// Seconds on the clock.
    pub(crate) wall_s: f64,
    /// Seconds that the threads of this process ran, in the program and in the kernel for it.
    pub(crate) cpu_s: f64,
}

/// Runs `work`; its result and the time it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let (start, cpu_s) = (Instant::now(), process_cpu_s());
    let result = work();
    (result, Spent { wall_s: start.elapsed().as_secs_f64(), cpu_s: process_cpu_s() - cpu_s })
}

/// The one in the middle by CPU time.
///
/// # Panics
/// When there is none.
pub(crate) fn median(mut runs: Vec<Spent>) -> Spent {
    runs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    runs[runs.len() / 2]
}

fn process_cpu_s() -> f64 {
    // The same as user and system time of getrusage, in nanoseconds instead of ticks.
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The most memory that this process ever had resident, in bytes; `None` where the system does not say.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    status_bytes("VmHWM:")
}

/// The memory that this process has resident now, in bytes; `None` where the system does not say.
pub(crate) fn resident_bytes() -> Option<u64> {
    status_bytes("VmRSS:")
}

/// From now on [`peak_resident_bytes`] is the most since now; `None` where the system does not do that.
pub(crate) fn forget_peak() -> Option<()> {
    std::fs::write("/proc/self/clear_refs", "5").ok()
}

fn status_bytes(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kb| kb * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_on_a_processor() {
        let (sum, spent) = timed(|| (0..10_000_000_u64).fold(0, |sum, n| sum ^ n.wrapping_mul(n)));
        assert!(sum > 0 && spent.cpu_s > 0.0 && spent.wall_s > 0.0);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let runs = [3.0, 1.0, 2.0].map(|cpu_s| Spent { wall_s: 0.0, cpu_s });
        assert_eq!(median(runs.into()).cpu_s, 2.0);
    }
}
