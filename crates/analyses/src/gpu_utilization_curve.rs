//! # Definition
//! For each device, utilization, estimated SM efficiency, occupancy and use of tensor cores over time, one row a bucket.
//! They are defined as in `gpu_utilization`, over the part of the bucket that lies in the window: from the first start
//! to the last end of a device event asked for. Buckets begin at whole multiples of their width since the start of the
//! trace, so that those of all ranks and devices line up; the first and the last one of a device are cut by its window.
//! Together the buckets cover the window, and their busy time sums to that of `gpu_utilization`.
//!
//! # Units
//! Nanoseconds, `start_ns` since the start of the trace; shares from 0 to 1.
//!
//! # Source
//! As for `gpu_utilization`.
//!
//! # Edge cases
//! A bucket is 10 ms wide, or as asked for. Where that makes more than 100,000 buckets for a device, all buckets of that
//! device are wider by the least power of ten that does not. A device without device events, or with only such of no
//! duration, has no row. Where no kernel of the device has known blocks there is no SM efficiency. In a bucket without
//! kernels whose occupancy is known there is no occupancy, and without computing kernels no tensor core ratio.

use crate::buckets::{Buckets, DEFAULT_BUCKET_NS};
use crate::device_windows::{DeviceWindow, slots_of_devices};
use crate::gpu_activity::{KernelTime, KernelUse, Kernels, ONE, is_kernel, ratio_of};
use crate::{Analysis, AnalysisContext, Needs, Options, Outcome, Selection};
use stepscope_base::Span;
use stepscope_trace::Trace;

columns! {
    /// One device during one bucket.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct GpuUtilizationBucket {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// When the bucket starts, counted from the start of the trace.
        start_ns: i64 => Nanoseconds,
        /// Length of the bucket.
        span_ns: i64 => Nanoseconds,
        /// Time in which at least one kernel runs.
        busy_ns: i64 => Nanoseconds,
        /// `busy_ns` as a share of the bucket.
        utilization_ratio: Option<f64> => Ratio,
        /// Estimated share of the multiprocessors that are in use, as a mean over the bucket.
        sm_efficiency_ratio: Option<f64> => Ratio,
        /// Estimated occupancy of the kernels, as a mean over kernel time in the bucket.
        occupancy_ratio: Option<f64> => Ratio,
        /// Share of the time of computing kernels, in the bucket, in kernels that use tensor cores.
        tensor_core_ratio: Option<f64> => Ratio,
    }
}

/// The curve of every device that has device events asked for, ordered by rank, device and time.
pub fn gpu_utilization_curve(trace: &Trace, selection: &Selection) -> Vec<GpuUtilizationBucket> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<GpuUtilizationBucket> {
    let (trace, windows) = (context.trace, context.get::<Vec<DeviceWindow>>());
    let slot_of = slots_of_devices(trace, windows);
    let bucket_ns = context.selection.bucket_ns.unwrap_or(DEFAULT_BUCKET_NS).max(1);
    let mut curves: Vec<Curve> = windows.iter().map(|window| Curve::new(window, bucket_ns)).collect();
    for event in trace.device_events.iter().filter(is_kernel) {
        let Some(slot) = slot_of[event.device.index()] else { continue };
        let kernel = KernelUse::of(&event, &trace.devices[event.device.index()]);
        curves[slot].add(trace.slices.span(event.slice).intersect(windows[slot].span), &kernel);
    }
    windows.iter().zip(curves).flat_map(|(window, curve)| curve.into_rows(trace, window)).collect()
}

/// What is known of the kernels of one device.
struct Curve {
    /// `None` of a window without length.
    buckets: Option<Buckets>,
    kernels: Kernels,
    /// The time of kernels in each bucket.
    times: Vec<KernelTime>,
}

impl Curve {
    fn new(window: &DeviceWindow, bucket_ns: i64) -> Self {
        let buckets = (!window.span.is_empty()).then(|| Buckets::of(window.span, bucket_ns));
        let len = buckets.as_ref().map_or(0, |buckets| buckets.len() as usize);
        Self { buckets, kernels: Kernels::default(), times: vec![KernelTime::default(); len] }
    }

    fn add(&mut self, span: Span, kernel: &KernelUse) {
        let Some(buckets) = &self.buckets else { return };
        buckets.cut(span, |at, ns| self.times[at].add(kernel, ns));
        self.kernels.add(span, kernel.blocks_per_sm);
    }

    fn into_rows(self, trace: &Trace, window: &DeviceWindow) -> Vec<GpuUtilizationBucket> {
        let Some(buckets) = self.buckets else { return Vec::new() };
        let is_known = self.times.iter().any(|time| time.blocks_known_ns > 0);
        let mut sums = vec![(0_i64, 0_i128); self.times.len()];
        self.kernels.sweep(|span, share| {
            buckets.cut(span, |at, ns| {
                let (busy_ns, filled) = &mut sums[at];
                *busy_ns += ns;
                *filled += i128::from(share) * i128::from(ns);
            });
        });
        let device = &trace.devices[window.device.index()];
        let row = |(at, ((busy_ns, filled), time)): (usize, ((i64, i128), KernelTime))| {
            let span = buckets.span(at);
            assert!(busy_ns <= span.duration_ns(), "a bucket is no busier than long");
            GpuUtilizationBucket {
                rank: device.rank,
                device: device.ordinal,
                start_ns: span.start_ns,
                span_ns: span.duration_ns(),
                busy_ns,
                utilization_ratio: ratio_of(i128::from(busy_ns) * i128::from(ONE), span.duration_ns()),
                sm_efficiency_ratio: ratio_of(filled, span.duration_ns()).filter(|_| is_known),
                occupancy_ratio: time.occupancy_ratio(),
                tensor_core_ratio: time.tensor_core_ratio(),
            }
        };
        sums.into_iter().zip(self.times).enumerate().map(row).collect()
    }
}

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { bucket: true, ..Options::NONE }, ..Analysis::of(outcome) }.needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

// That buckets equal one look per nanosecond and sum to the whole is tested beside `gpu_utilization`.
#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    fn check(drawing: &str, bucket_ns: Option<i64>, expected: &[&str]) {
        let rows = gpu_utilization_curve(&drawn(drawing), &Selection { bucket_ns, ..Selection::default() });
        let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let line = |row: &GpuUtilizationBucket| {
            let [start, span] = [row.start_ns, row.span_ns].map(|ns| ns / 1_000);
            let (used, filled) = (ratio(row.utilization_ratio), ratio(row.sm_efficiency_ratio));
            format!("rank {} at {start} for {span}: {used} {filled}", row.rank)
        };
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn buckets_line_up_and_are_cut_by_the_window() {
        check(
            "rank 0 cpu 1    a
             rank 0 stream 7 .CC..C.CC.
             rank 1 stream 7 ......NHH.",
            Some(4_000),
            &[
                "rank 0 at 1 for 3: 0.67 -",
                "rank 0 at 4 for 4: 0.50 -",
                "rank 0 at 8 for 1: 1.00 -",
                "rank 1 at 6 for 2: 0.50 -",
                "rank 1 at 8 for 1: 0.00 -",
            ],
        );
    }

    #[test]
    fn unasked_a_bucket_is_10_ms() {
        check("rank 0 stream 7 CC..C.CC.", None, &["rank 0 at 0 for 8: 0.62 -"]);
        check("rank 0 cpu 1 aa", None, &[]);
    }
}
