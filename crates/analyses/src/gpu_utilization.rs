//! # Definition
//! For each device, how much of the time it runs kernels, and how well they fill it.
//! Utilization is the share of the window in which at least one kernel runs, computing or communicating.
//!
//! Estimated SM efficiency: at each moment the sum, over the kernels that run, of their blocks for each multiprocessor,
//! but no more than 1; the value is the mean over the window, in which idle time counts as 0. It says which share of
//! multiprocessors have anything to do. Occupancy says how full those are: the share of a multiprocessor's thread slots
//! that a kernel's launch can use, as the mean over kernels weighted by their duration. The tensor core ratio is the
//! share of computing kernels' time that is spent in kernels that use tensor cores.
//!
//! The window is that of `temporal_breakdown`: from the first start to the last end of a device event, of all of them
//! or, for one step, of those launched on the host inside the step. Everything counts as far as it lies in the window,
//! whichever step launched it.
//!
//! # Units
//! Nanoseconds; the rest are shares from 0 to 1.
//!
//! # Source
//! Kernels as the device's profiler recorded them. Blocks for each multiprocessor as recorded, or else the blocks of the
//! grid over the device's number of multiprocessors. Occupancy as recorded, or else computed from block size, registers
//! and shared memory of the launch and the limits of the device, as NVIDIA's occupancy calculator does. Whether a kernel
//! uses tensor cores is looked up in a table of kernel names.
//!
//! # Edge cases
//! A device without device events has no row. Copies and fills take part in the window, but are no kernels. A kernel
//! whose blocks are not known counts as 0 in SM efficiency, which is then too low; one whose occupancy is not known is
//! left out of the mean. `blocks_known_ratio` and `occupancy_known_ratio` are the shares of kernel time for which they
//! are known; where that is none there is no value. Without computing kernels there is no tensor core ratio. A recorded
//! occupancy of 0 is replaced by the computed one where that is possible: profilers write 0 for less than half a percent,
//! and for every block with more than 48 KiB of shared memory.

use crate::device_windows::{DeviceWindow, slots_of_devices};
use crate::gpu_activity::{KernelTime, KernelUse, Kernels, ONE, is_kernel, ratio_of};
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use stepscope_trace::Trace;

columns! {
    /// How well one device is used.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct GpuUtilization {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// Length of the window.
        span_ns: i64 => Nanoseconds,
        /// Time in which at least one kernel runs.
        busy_ns: i64 => Nanoseconds,
        /// `busy_ns` as a share of the window.
        utilization_ratio: Option<f64> => Ratio,
        /// Estimated share of the multiprocessors that are in use, as a mean over the window.
        sm_efficiency_ratio: Option<f64> => Ratio,
        /// Estimated occupancy of the kernels, as a mean over kernel time.
        occupancy_ratio: Option<f64> => Ratio,
        /// Share of the time of computing kernels in kernels that use tensor cores.
        tensor_core_ratio: Option<f64> => Ratio,
        /// Share of kernel time in kernels whose number of blocks is known.
        blocks_known_ratio: Option<f64> => Ratio,
        /// Share of kernel time in kernels whose occupancy is known.
        occupancy_known_ratio: Option<f64> => Ratio,
    }
}

/// The use of every device that has device events asked for, ordered by rank and device.
pub fn gpu_utilization(trace: &Trace, selection: &Selection) -> Vec<GpuUtilization> {
    rows(&AnalysisContext::new(trace, selection))
}

pub(crate) fn rows(context: &AnalysisContext<'_>) -> Vec<GpuUtilization> {
    let (trace, windows) = (context.trace, context.get::<Vec<DeviceWindow>>());
    let slot_of = slots_of_devices(trace, windows);
    let mut sums: Vec<(KernelTime, Kernels)> = windows.iter().map(|_| Default::default()).collect();
    for event in trace.device_events.iter().filter(is_kernel) {
        let Some(slot) = slot_of[event.device.index()] else { continue };
        let device = &trace.devices[event.device.index()];
        let span = trace.slices.span(event.slice).intersect(windows[slot].span);
        let (time, kernels) = &mut sums[slot];
        let kernel = KernelUse::of(&event, device);
        time.add(&kernel, span.duration_ns());
        kernels.add(span, kernel.blocks_per_sm);
    }
    windows.iter().zip(sums).map(|(window, (time, kernels))| of_device(trace, window, &time, kernels)).collect()
}

fn of_device(trace: &Trace, window: &DeviceWindow, time: &KernelTime, kernels: Kernels) -> GpuUtilization {
    let device = &trace.devices[window.device.index()];
    let (mut busy_ns, mut filled) = (0_i64, 0_i128);
    kernels.sweep(|span, share| {
        busy_ns += span.duration_ns();
        filled += i128::from(share) * i128::from(span.duration_ns());
    });
    let span_ns = window.span.duration_ns();
    let share = |part_ns: i64, all_ns: i64| ratio_of(i128::from(part_ns) * i128::from(ONE), all_ns);
    assert!(busy_ns <= span_ns && filled <= i128::from(busy_ns) * i128::from(ONE), "parts are within the window");
    GpuUtilization {
        rank: device.rank,
        device: device.ordinal,
        span_ns,
        busy_ns,
        utilization_ratio: share(busy_ns, span_ns),
        sm_efficiency_ratio: ratio_of(filled, span_ns).filter(|_| time.blocks_known_ns > 0),
        occupancy_ratio: time.occupancy_ratio(),
        tensor_core_ratio: time.tensor_core_ratio(),
        blocks_known_ratio: share(time.blocks_known_ns, time.all_ns),
        occupancy_known_ratio: share(time.occupancy_known_ns, time.all_ns),
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu_utilization_curve::gpu_utilization_curve;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{Device, DeviceEvent, DeviceEventClass, Process, SliceKind, TraceBuilder, Track, TrackKind};

    #[derive(Clone, Copy, Debug, Default)]
    struct Kernel {
        start_ns: i64,
        dur_ns: i64,
        blocks_per_sm: Option<f32>,
        occupancy_ratio: Option<f32>,
        class: Option<DeviceEventClass>,
        uses_tensor_cores: bool,
    }

    fn trace_of(kernels: &[Kernel]) -> Trace {
        let mut builder = TraceBuilder::new("kernels");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device { sm_count: Some(10), ..Device::default() });
        let name = builder.strings.intern("k");
        for (at, kernel) in kernels.iter().enumerate() {
            let track = builder.add_track(Track::new(TrackKind::Stream, process, format!("stream {at}")));
            let slice = builder.add_slice(track, SliceKind::Kernel, name, kernel.start_ns, kernel.dur_ns);
            let event = DeviceEvent::new(slice, device, kernel.class.unwrap_or(DeviceEventClass::Compute));
            builder.add_device_event(DeviceEvent {
                blocks_per_sm: kernel.blocks_per_sm,
                occupancy_ratio: kernel.occupancy_ratio,
                uses_tensor_cores: kernel.uses_tensor_cores,
                ..event
            });
        }
        builder.finish()
    }

    fn row(kernels: &[Kernel]) -> GpuUtilization {
        gpu_utilization(&trace_of(kernels), &Selection::default())[0]
    }

    #[test]
    fn kernels_that_run_together_fill_the_device_no_more_than_once() {
        let kernel = Kernel { dur_ns: 40, blocks_per_sm: Some(0.25), ..Kernel::default() };
        let beside = Kernel { start_ns: 20, dur_ns: 40, blocks_per_sm: Some(7.0), ..Kernel::default() };
        let late = Kernel { start_ns: 80, dur_ns: 20, blocks_per_sm: Some(0.5), ..Kernel::default() };
        let row = row(&[kernel, beside, late]);
        assert_eq!((row.span_ns, row.busy_ns, row.utilization_ratio), (100, 80, Some(0.8)));
        assert_eq!(row.sm_efficiency_ratio, Some((20.0 * 0.25 + 40.0 + 20.0 * 0.5) / 100.0));
        assert_eq!((row.blocks_known_ratio, row.occupancy_ratio), (Some(1.0), None));
    }

    #[test]
    fn what_is_not_known_is_left_out_and_said() {
        let known = Kernel { dur_ns: 30, occupancy_ratio: Some(0.5), ..Kernel::default() };
        let unknown = Kernel { start_ns: 30, dur_ns: 10, ..Kernel::default() };
        let row = row(&[known, unknown]);
        assert_eq!((row.occupancy_ratio, row.occupancy_known_ratio), (Some(0.5), Some(0.75)));
        assert_eq!((row.sm_efficiency_ratio, row.blocks_known_ratio), (None, Some(0.0)));
    }

    #[test]
    fn tensor_cores_count_among_computing_kernels() {
        let class = Some(DeviceEventClass::Communication);
        let comm = Kernel { dur_ns: 100, class, ..Kernel::default() };
        let plain = Kernel { dur_ns: 30, ..Kernel::default() };
        let tensor = Kernel { dur_ns: 10, uses_tensor_cores: true, ..Kernel::default() };
        assert_eq!(row(&[comm, plain, tensor]).tensor_core_ratio, Some(0.25));
        assert_eq!(row(&[comm]).tensor_core_ratio, None);
    }

    #[test]
    fn a_step_has_the_window_of_its_launches() {
        let trace = drawn(
            "rank 0 step     00001111
             rank 0 launch 1 A...B.C.
             rank 0 stream 7 .AAH.B.C",
        );
        let rows = gpu_utilization(&trace, &Selection { step: Some(1), ..Selection::default() });
        assert_eq!((rows[0].span_ns, rows[0].busy_ns), (3_000, 2_000));
    }

    #[test]
    fn absurd_durations_stay_within_bounds() {
        let kernel =
            Kernel { dur_ns: 1 << 50, blocks_per_sm: Some(1.0), occupancy_ratio: Some(1.0), ..Kernel::default() };
        let row = row(&vec![kernel; 10_000]);
        assert_eq!((row.utilization_ratio, row.sm_efficiency_ratio), (Some(1.0), Some(1.0)));
    }

    fn kernels() -> impl Strategy<Value = Vec<Kernel>> {
        let kernel = (0_i64..60, 0_i64..30, prop::option::of(0_u8..6), prop::option::of(1_u8..5), any::<[bool; 2]>());
        let kernel = kernel.prop_map(|(start_ns, dur_ns, blocks, occupancy, [is_comm, uses_tensor_cores])| Kernel {
            start_ns,
            dur_ns,
            blocks_per_sm: blocks.map(|blocks| f32::from(blocks) / 4.0),
            occupancy_ratio: occupancy.map(|quarters| f32::from(quarters) / 4.0),
            class: is_comm.then_some(DeviceEventClass::Communication),
            uses_tensor_cores: uses_tensor_cores && !is_comm,
        });
        prop::collection::vec(kernel, 1..12)
    }

    fn is_near(found: Option<f64>, expected: Option<f64>) -> bool {
        found.is_some() == expected.is_some() && found.zip(expected).is_none_or(|(a, b)| (a - b).abs() < 1e-6)
    }

    proptest! {
        #[test]
        fn sweeps_equal_one_look_per_nanosecond(kernels in kernels(), bucket_ns in 1_i64..40) {
            let found = row(&kernels);
            let (first, mut kernels) = (0, kernels);
            let zero_ns = kernels.iter().map(|kernel| kernel.start_ns).min().unwrap();
            kernels.iter_mut().for_each(|kernel| kernel.start_ns -= zero_ns);
            let last = kernels.iter().map(|kernel| kernel.start_ns + kernel.dur_ns).max().unwrap();
            let runs = |kernel: &&Kernel, at: i64| kernel.start_ns <= at && at < kernel.start_ns + kernel.dur_ns;
            let (mut busy, mut filled) = (0, 0.0);
            for at in first..last {
                let running: Vec<&Kernel> = kernels.iter().filter(|kernel| runs(kernel, at)).collect();
                busy += i64::from(!running.is_empty());
                filled += running.iter().filter_map(|kernel| kernel.blocks_per_sm).sum::<f32>().min(1.0) as f64;
            }
            let span = (last - first) as f64;
            let sum = |weight: &dyn Fn(&Kernel) -> Option<f64>| kernels.iter().filter_map(|kernel| Some(weight(kernel)? * kernel.dur_ns as f64)).sum::<f64>();
            let over = |part: f64, all: f64| (all > 0.0).then(|| part / all);
            let all = sum(&|_| Some(1.0));
            let occupancy_known = sum(&|kernel| kernel.occupancy_ratio.map(|_| 1.0));
            let blocks_known = sum(&|kernel| kernel.blocks_per_sm.map(|_| 1.0));
            let compute = sum(&|kernel| kernel.class.is_none().then_some(1.0));
            prop_assert_eq!((found.span_ns, found.busy_ns), (last - first, busy));
            prop_assert!(is_near(found.utilization_ratio, over(busy as f64, span)));
            prop_assert!(is_near(found.sm_efficiency_ratio, over(filled, span).filter(|_| blocks_known > 0.0)));
            prop_assert!(is_near(found.occupancy_ratio, over(sum(&|kernel| kernel.occupancy_ratio.map(f64::from)), occupancy_known)));
            prop_assert!(is_near(found.tensor_core_ratio, over(sum(&|kernel| kernel.uses_tensor_cores.then_some(1.0)), compute)));
            prop_assert!(is_near(found.occupancy_known_ratio, over(occupancy_known, all)));
            prop_assert!(is_near(found.blocks_known_ratio, over(blocks_known, all)));

            // The curve: each bucket by itself, and all of them together.
            let selection = Selection { bucket_ns: Some(bucket_ns), ..Selection::default() };
            let curve = gpu_utilization_curve(&trace_of(&kernels), &selection);
            prop_assert_eq!(curve.iter().map(|row| row.span_ns).sum::<i64>(), last - first);
            prop_assert_eq!(curve.iter().map(|row| row.busy_ns).sum::<i64>(), busy);
            for bucket in &curve {
                let end_ns = bucket.start_ns + bucket.span_ns;
                prop_assert_eq!(bucket.start_ns / bucket_ns, (end_ns - 1) / bucket_ns);
                let busy = (bucket.start_ns..end_ns).filter(|at| kernels.iter().any(|kernel| runs(&kernel, *at))).count();
                prop_assert_eq!(bucket.busy_ns, busy as i64);
                let inside = |kernel: &Kernel| (bucket.start_ns..end_ns).filter(|at| runs(&kernel, *at)).count() as f64;
                let sum = |weight: &dyn Fn(&Kernel) -> Option<f64>| kernels.iter().filter_map(|kernel| Some(weight(kernel)? * inside(kernel))).sum::<f64>();
                let occupied = sum(&|kernel| kernel.occupancy_ratio.map(f64::from));
                prop_assert!(is_near(bucket.occupancy_ratio, over(occupied, sum(&|kernel| kernel.occupancy_ratio.map(|_| 1.0)))));
                let in_tensor_cores = sum(&|kernel| kernel.uses_tensor_cores.then_some(1.0));
                prop_assert!(is_near(bucket.tensor_core_ratio, over(in_tensor_cores, sum(&|kernel| kernel.class.is_none().then_some(1.0)))));
            }
            let filled: f64 = curve.iter().filter_map(|row| Some(row.sm_efficiency_ratio? * row.span_ns as f64)).sum();
            prop_assert!(is_near(found.sm_efficiency_ratio, found.sm_efficiency_ratio.map(|_| filled / span)));
        }
    }
}
