//! When a device runs kernels, and how well they fill it: one sweep over starts and ends.
//!
//! ```text
//! stream 7   AAAA····BB       blocks per multiprocessor: A 0.3, B 2
//! stream 8   ··CCC·····       C 0.8
//! visited    1122·3···44      1: 0.3   2: 1.1, so 1   …
//! ```

use stepscope_base::Span;
use stepscope_trace::{DeviceEvent, DeviceEventClass};

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

/// Kernels of one device, in order of their start, cut to a window.
#[derive(Clone, Default)]
pub(crate) struct Kernels {
    /// Start, and the share of multiprocessors that have a block, in units of [`ONE`].
    starts: Vec<(i64, i64)>,
    ends: Vec<(i64, i64)>,
}

impl Kernels {
    /// Adds one; the share is 0 where it is not known. A kernel with more blocks than multiprocessors is cut to 1: a sum
    /// in which one reaches 1 does so too.
    pub(crate) fn add(&mut self, span: Span, blocks_per_sm: Option<f64>) {
        if !span.is_empty() {
            let share = blocks_per_sm.map_or(0, units);
            self.starts.push((span.start_ns, share));
            self.ends.push((span.end_ns, share));
        }
    }

    /// Calls `visit` for every stretch in which the same kernels run, at least one, in order: with the share of
    /// multiprocessors that have a block, in units of [`ONE`].
    pub(crate) fn sweep(mut self, mut visit: impl FnMut(Span, i64)) {
        self.ends.sort_unstable();
        let (mut starts, mut ends) = (self.starts.into_iter().peekable(), self.ends.into_iter().peekable());
        let (mut at_ns, mut running, mut filled) = (i64::MIN, 0_i64, 0_i64);
        while let Some((end_ns, _)) = ends.peek() {
            let next_ns = starts.peek().map_or(*end_ns, |(start_ns, _)| *start_ns.min(end_ns));
            if running > 0 && next_ns > at_ns {
                visit(Span::new(at_ns, next_ns), filled.min(ONE));
            }
            at_ns = next_ns;
            while let Some((_, share)) = ends.next_if(|(end_ns, _)| *end_ns == at_ns) {
                (running, filled) = (running - 1, filled - share);
            }
            while let Some((_, share)) = starts.next_if(|(start_ns, _)| *start_ns == at_ns) {
                (running, filled) = (running + 1, filled + share);
            }
        }
        assert_eq!((running, filled), (0, 0), "every kernel that starts ends");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_cut_where_anything_starts_or_ends() {
        let mut kernels = Kernels::default();
        kernels.add(Span::new(0, 4), Some(0.25));
        kernels.add(Span::new(2, 5), Some(0.875));
        kernels.add(Span::new(3, 3), Some(1.0));
        kernels.add(Span::new(9, 11), Some(2.0));
        let mut visited = Vec::new();
        kernels.sweep(|span, share| visited.push((span.start_ns, span.end_ns, share as f64 / ONE as f64)));
        assert_eq!(visited, [(0, 2, 0.25), (2, 4, 1.0), (4, 5, 0.875), (9, 11, 1.0)]);
    }
}
