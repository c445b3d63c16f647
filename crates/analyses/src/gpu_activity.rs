//! When a device runs kernels, and how well they fill it: one sweep over starts and ends.
//!
//! ```text
//! stream 7   AAAA····BB       blocks per multiprocessor: A 0.3, B 2
//! stream 8   ··CCC·····       C 0.8
//! visited    1122·3···44      1: 0.3   2: 1.1, so 1   …
//! ```

use crate::occupancy::{blocks_per_sm, occupancy_ratio};
use stepscope_base::Span;
use stepscope_trace::{Device, DeviceEvent, DeviceEventClass};

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

/// How a kernel uses its device.
pub(crate) struct KernelUse {
    pub(crate) blocks_per_sm: Option<f64>,
    occupancy: Option<f64>,
    is_compute: bool,
    uses_tensor_cores: bool,
}

impl KernelUse {
    pub(crate) fn of(event: &DeviceEvent, device: &Device) -> Self {
        let is_compute = event.class == DeviceEventClass::Compute;
        Self {
            blocks_per_sm: blocks_per_sm(event, device),
            occupancy: occupancy_ratio(event, device),
            is_compute,
            uses_tensor_cores: is_compute && event.uses_tensor_cores,
        }
    }
}

/// Sums of kernel time, each kernel counted by itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct KernelTime {
    pub(crate) all_ns: i64,
    pub(crate) blocks_known_ns: i64,
    pub(crate) occupancy_known_ns: i64,
    occupied: i128,
    compute_ns: i64,
    tensor_core_ns: i64,
}

impl KernelTime {
    /// Adds so much of the time of a kernel.
    pub(crate) fn add(&mut self, kernel: &KernelUse, ns: i64) {
        let add = |sum: &mut i64, is_part: bool| *sum = sum.saturating_add(if is_part { ns } else { 0 });
        add(&mut self.all_ns, true);
        add(&mut self.blocks_known_ns, kernel.blocks_per_sm.is_some());
        add(&mut self.occupancy_known_ns, kernel.occupancy.is_some());
        add(&mut self.compute_ns, kernel.is_compute);
        add(&mut self.tensor_core_ns, kernel.uses_tensor_cores);
        self.occupied += i128::from(kernel.occupancy.map_or(0, units)) * i128::from(ns);
    }

    /// The occupancy of kernels as a mean over the time of those for which it is known.
    pub(crate) fn occupancy_ratio(&self) -> Option<f64> {
        ratio_of(self.occupied, self.occupancy_known_ns)
    }

    /// The share of the time of computing kernels in those that use tensor cores.
    pub(crate) fn tensor_core_ratio(&self) -> Option<f64> {
        ratio_of(i128::from(self.tensor_core_ns) * i128::from(ONE), self.compute_ns)
    }
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
