//! When a device runs kernels, and how well they fill it: one sweep over starts and ends.
//!
//! ```text
//! stream 7   AAAA····BB       blocks per multiprocessor: A 0.3, B 2
//! stream 8   ··CCC·····       C 0.8
//! visited    1122·3···44      1: 0.3   2: 1.1, so 1   …
//! ```

use crate::occupancy::blocks_per_sm;
use stepscope_base::Span;
use stepscope_trace::{DeviceEvent, DeviceEventClass, Trace};

/// A share of 1 as an integer, so that sums do not depend on their order: 2^-30 is one unit.
pub(crate) const ONE: i64 = 1 << 30;

/// A share in 0..=1, in units of [`ONE`].
pub(crate) fn units(ratio: f64) -> i64 {
    (ratio.clamp(0.0, 1.0) * ONE as f64).round() as i64
}

/// `units_ns` over `total_ns`, where `units_ns` sums units times nanoseconds; `None` over nothing.
pub(crate) fn ratio_of(units_ns: i128, total_ns: i64) -> Option<f64> {
    (total_ns > 0).then(|| units_ns as f64 / ONE as f64 / total_ns as f64)
}

/// True for events that run on multiprocessors.
pub(crate) fn is_kernel(event: &DeviceEvent) -> bool {
    matches!(event.class, DeviceEventClass::Compute | DeviceEventClass::Communication)
}

/// Calls `visit` for every stretch of `window` in which the same kernels of `events` run, at least one of them, in
/// order: with the share of multiprocessors that have a block, in units of [`ONE`]. `events` are one device's, by start.
pub(crate) fn sweep(trace: &Trace, events: &[&DeviceEvent], window: Span, mut visit: impl FnMut(Span, i64)) {
    // Each kernel is cut to 1: a sum in which one reaches 1 does so too.
    let mut starts: Vec<(i64, i64)> = Vec::new();
    let mut ends: Vec<(i64, i64)> = Vec::new();
    for event in events.iter().filter(|event| is_kernel(event)) {
        let span = trace.slices.span(event.slice).intersect(window);
        if !span.is_empty() {
            let blocks = blocks_per_sm(event, &trace.devices[event.device.index()]).map_or(0, units);
            starts.push((span.start_ns, blocks));
            ends.push((span.end_ns, blocks));
        }
    }
    ends.sort_unstable();
    let (mut starts, mut ends) = (starts.into_iter().peekable(), ends.into_iter().peekable());
    let (mut at_ns, mut running, mut filled) = (window.start_ns, 0_i64, 0_i64);
    while let Some((end_ns, _)) = ends.peek() {
        let next_ns = starts.peek().map_or(*end_ns, |(start_ns, _)| *start_ns.min(end_ns));
        if running > 0 && next_ns > at_ns {
            visit(Span::new(at_ns, next_ns), filled.min(ONE));
        }
        at_ns = next_ns;
        while let Some((_, blocks)) = ends.next_if(|(end_ns, _)| *end_ns == at_ns) {
            (running, filled) = (running - 1, filled - blocks);
        }
        while let Some((_, blocks)) = starts.next_if(|(start_ns, _)| *start_ns == at_ns) {
            (running, filled) = (running + 1, filled + blocks);
        }
    }
    debug_assert_eq!((running, filled), (0, 0), "every kernel that starts ends");
}
