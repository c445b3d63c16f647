//! # Definition
//! For each device, the rates that it could reach at best, and the share of them that the job's arithmetic takes.
//! The utilization of operations, which for a model's own operations is called MFU, is the time that the operations of all
//! operators with device work would take at the peak rates of what they compute with, as a share of the window. The window
//! is that of `temporal_breakdown`: from the first start to the last end of a device event, of all of them or, for one
//! step, of those launched on the host inside the step.
//!
//! # Units
//! Operations per second, of which a multiplication with an addition is two; bytes per second; nanoseconds; a share from 0
//! to 1.
//!
//! # Source
//! Work by the formulas that `operators` has, from the shapes and types of inputs. Peaks as of `roofline`, without sparsity.
//!
//! # Edge cases
//! A device without device events has no row. One that the table does not know has no peaks; a finding names it. Operations
//! are of operators whose shapes were recorded and that have a formula: what has none counts as no operation, so that the
//! share is too low rather than too high. Recomputed operations count, which is why it can be above the share of those that
//! the model asks for.

use crate::device_windows::DeviceWindow;
use crate::roofline::devices::peaks;
use crate::roofline::{unknown_devices, work_of_devices};
use crate::{Analysis, AnalysisContext, Needs, Outcome};

columns! {
    /// What a device could do, and what it was asked to do.
    #[derive(Clone, PartialEq, Debug)]
    pub struct DevicePeaks {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// The name of the product.
        name: Option<String> => Text,
        /// Length of the window.
        span_ns: i64 => Nanoseconds,
        /// Arithmetic operations of the operators whose work is known. Absent without any.
        flops: Option<i64> => Count,
        /// These operations over the window.
        flops_per_s: Option<i64> => Count,
        /// The least time in which the device could do these operations.
        compute_ns: Option<i64> => Nanoseconds,
        /// `compute_ns` as a share of the window.
        flops_utilization_ratio: Option<f64> => Ratio,
        /// Peak rate of 16-bit floats, in tensor cores where there are any.
        fp16_flops_per_s: Option<i64> => Count,
        /// Peak rate of 32-bit floats in tensor cores: TF32 with NVIDIA.
        fp32_tensor_flops_per_s: Option<i64> => Count,
        /// Peak rate of 32-bit floats outside of tensor cores.
        fp32_flops_per_s: Option<i64> => Count,
        /// Peak rate of 64-bit floats in tensor cores.
        fp64_tensor_flops_per_s: Option<i64> => Count,
        /// Peak rate of 64-bit floats outside of tensor cores.
        fp64_flops_per_s: Option<i64> => Count,
        /// Peak rate of 8-bit floats.
        fp8_flops_per_s: Option<i64> => Count,
        /// Peak rate of 8-bit integers.
        int8_flops_per_s: Option<i64> => Count,
        /// Peak bandwidth of the device's memory.
        memory_bytes_per_s: Option<i64> => BytesPerSecond,
        /// Peak bandwidth of its links to other devices of the host, in one direction.
        link_bytes_per_s: Option<i64> => BytesPerSecond,
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    let findings = unknown_devices(context.trace, context.selection);
    Outcome { findings, ..Outcome::of(context, &rows(context)) }
}

/// Every device that has device events asked for, ordered by rank and device.
fn rows(context: &AnalysisContext<'_>) -> Vec<DevicePeaks> {
    let (trace, work) = (context.trace, work_of_devices(context));
    let row = |window: &DeviceWindow| {
        let device = &trace.devices[window.device.index()];
        let (peaks, span_ns) = (peaks(device), window.span.duration_ns());
        let of_device = work.get(&window.device).copied().unwrap_or_default();
        let flops = Some(of_device.flops).filter(|flops| *flops > 0);
        let compute_ns = flops.and(peaks).map(|_| of_device.compute_ns);
        let rate = |flops: i64| i64::try_from(i128::from(flops) * 1_000_000_000 / i128::from(span_ns)).ok();
        DevicePeaks {
            rank: device.rank,
            device: device.ordinal,
            name: device.name.clone(),
            span_ns,
            flops,
            flops_per_s: flops.filter(|_| span_ns > 0).and_then(rate),
            compute_ns,
            flops_utilization_ratio: compute_ns.filter(|_| span_ns > 0).map(|ns| ns as f64 / span_ns as f64),
            fp16_flops_per_s: peaks.and_then(|peaks| peaks.fp16),
            fp32_tensor_flops_per_s: peaks.and_then(|peaks| peaks.fp32_tensor),
            fp32_flops_per_s: peaks.and_then(|peaks| peaks.fp32),
            fp64_tensor_flops_per_s: peaks.and_then(|peaks| peaks.fp64_tensor),
            fp64_flops_per_s: peaks.and_then(|peaks| peaks.fp64),
            fp8_flops_per_s: peaks.and_then(|peaks| peaks.fp8),
            int8_flops_per_s: peaks.and_then(|peaks| peaks.int8),
            memory_bytes_per_s: peaks.map(|peaks| peaks.bytes_per_s),
            link_bytes_per_s: peaks.and_then(|peaks| peaks.link_bytes_per_s),
        }
    };
    context.get::<Vec<DeviceWindow>>().iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use stepscope_trace::{
        Device, DeviceEvent, DeviceEventClass, DeviceId, OpInfo, OpInputs, Process, SliceKind, Trace, TraceBuilder,
        Track, TrackKind,
    };

    /// A product of 312 GFLOP in 16-bit floats, whose kernel takes 4 ms.
    fn product(device: &str) -> Trace {
        let mut builder = TraceBuilder::new("peaks");
        let process = builder.add_process(Process::default());
        builder.add_device(Device { name: Some(device.into()), ..Device::default() });
        let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream"));
        let [mm, dims, types] = ["aten::mm", "[[3900,4000],[4000,10000]]", r#"["c10::Half","c10::Half"]"#]
            .map(|text| builder.strings.intern(text));
        let op = builder.add_slice(thread, SliceKind::Op, mm, 0, 100);
        let inputs = builder.intern_inputs(OpInputs { dims, types, ..OpInputs::UNKNOWN });
        builder.add_op(op, OpInfo { inputs, ..OpInfo::default() });
        let launch = builder.add_slice(thread, SliceKind::Runtime, mm, 10, 1);
        let kernel = builder.add_slice(stream, SliceKind::Kernel, mm, 1_000, 4_000_000);
        builder.add_device_event(DeviceEvent::new(kernel, DeviceId(0), DeviceEventClass::Compute));
        builder.add_launch_link(launch, kernel);
        builder.finish()
    }

    fn row(device: &str) -> DevicePeaks {
        rows(&AnalysisContext::new(&product(device), &Selection::default())).remove(0)
    }

    #[test]
    fn the_share_is_what_the_operations_take_at_the_peak_rate() {
        let found = row("NVIDIA A100-SXM4-40GB");
        assert_eq!((found.flops, found.compute_ns, found.span_ns), (Some(312_000_000_000), Some(1_000_000), 4_000_000));
        assert_eq!((found.flops_utilization_ratio, found.flops_per_s), (Some(0.25), Some(78_000_000_000_000)));
        assert_eq!(
            (found.fp16_flops_per_s, found.memory_bytes_per_s),
            (Some(312_000_000_000_000), Some(1_555_000_000_000))
        );
    }

    #[test]
    fn a_device_that_is_not_known_has_no_peaks_and_no_share() {
        let found = row("Nobody's");
        assert_eq!((found.flops, found.compute_ns, found.flops_utilization_ratio), (Some(312_000_000_000), None, None));
        assert_eq!((found.fp16_flops_per_s, found.memory_bytes_per_s), (None, None));
    }
}
