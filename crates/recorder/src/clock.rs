//! Ticks: the time-stamp counter where it can be trusted, else the monotonic clock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use stepscope_capture::ClockPoint;
use stepscope_capture::layout::{ClockKind, TICK_BITS};

static USES_COUNTER: AtomicBool = AtomicBool::new(false);

/// What ticks count here; decided once, before the first tick is read.
pub(crate) fn kind() -> ClockKind {
    static KIND: OnceLock<ClockKind> = OnceLock::new();
    *KIND.get_or_init(|| {
        let uses_counter = has_invariant_counter();
        USES_COUNTER.store(uses_counter, Ordering::Relaxed);
        if uses_counter { ClockKind::TimeStampCounter } else { ClockKind::Monotonic }
    })
}

/// Now, in ticks modulo 2^56.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if USES_COUNTER.load(Ordering::Relaxed) {
        // SAFETY: every x86-64 processor has the counter.
        return unsafe { core::arch::x86_64::_rdtsc() } & ((1 << TICK_BITS) - 1);
    }
    read_ns(libc::CLOCK_MONOTONIC) as u64 & ((1 << TICK_BITS) - 1)
}

/// Now, on all clocks. Of a few tries the one in which the clocks were read closest together.
pub(crate) fn now() -> ClockPoint {
    let read = || {
        let before = ticks();
        let monotonic_ns = read_ns(libc::CLOCK_MONOTONIC);
        let between = ticks();
        let unix_ns = read_ns(libc::CLOCK_REALTIME);
        let width = ticks().wrapping_sub(before);
        (width, ClockPoint { ticks: before + between.wrapping_sub(before) / 2, monotonic_ns, unix_ns })
    };
    let best = (0..5).map(|_| read()).min_by_key(|(width, _)| *width).map(|(_, point)| point);
    let point = best.unwrap_or(ClockPoint { ticks: 0, monotonic_ns: 0, unix_ns: 0 });
    match kind() {
        ClockKind::Monotonic => ClockPoint { ticks: point.monotonic_ns as u64 & ((1 << TICK_BITS) - 1), ..point },
        ClockKind::TimeStampCounter => point,
    }
}

/// Now, on the monotonic clock.
pub(crate) fn monotonic_ns() -> i64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Gives the ticks at moments of the monotonic clock that lie between its making and now.
pub struct MonotonicTicks {
    first: ClockPoint,
}

impl MonotonicTicks {
    /// Moments from now on.
    pub fn since_now() -> Self {
        Self { first: now() }
    }

    /// The ticks at a moment, ns: on the line from the first reading of both clocks to one that is made now.
    pub fn until_now(&self) -> impl Fn(i64) -> u64 + use<> {
        let (first, last) = (self.first, now());
        move |monotonic_ns| ticks_between(first, last, monotonic_ns)
    }
}

fn ticks_between(first: ClockPoint, last: ClockPoint, monotonic_ns: i64) -> u64 {
    let mask = (1 << TICK_BITS) - 1;
    let ticks = i128::from(last.ticks.wrapping_sub(first.ticks) & mask);
    let ns = i128::from(last.monotonic_ns - first.monotonic_ns).max(1);
    let since = i128::from(monotonic_ns.saturating_sub(first.monotonic_ns));
    (i128::from(first.ticks) + since * ticks / ns) as u64 & mask
}

fn read_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// True when the processor promises a constant rate in every power state and the kernel did not find otherwise.
#[cfg(target_arch = "x86_64")]
fn has_invariant_counter() -> bool {
    use core::arch::x86_64::__cpuid;
    // SAFETY: on toolchains where it is unsafe: every x86-64 processor has the instruction.
    #[allow(unused_unsafe)]
    let is_invariant = unsafe { __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0 };
    let path = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    is_invariant && std::fs::read_to_string(path).is_ok_and(|sources| sources.split_whitespace().any(|s| s == "tsc"))
}

#[cfg(not(target_arch = "x86_64"))]
fn has_invariant_counter() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_lie_on_the_line_between_two_readings() {
        let point = |ticks, monotonic_ns| ClockPoint { ticks, monotonic_ns, unix_ns: 0 };
        let (first, last) = (point((1 << TICK_BITS) - 10, 1_000), point(20, 1_010));
        let expected = [(1_000, (1 << TICK_BITS) - 10), (1_005, 5), (1_010, 20), (999, (1 << TICK_BITS) - 13)];
        for (monotonic_ns, ticks) in expected {
            assert_eq!(ticks_between(first, last, monotonic_ns), ticks, "{monotonic_ns}");
        }
    }
}
