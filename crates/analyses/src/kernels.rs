//! # Definition
//! For each kernel name: how often it ran and how long. Total is the sum of the runs' durations, so kernels that run at
//! the same time both count. Percentiles are durations that occurred: the smallest that at least that share of runs do
//! not exceed. Blocks per multiprocessor is the number of blocks of a launch over the multiprocessors of the device,
//! occupancy the estimated share of its thread slots in use: both are means weighted by duration.
//!
//! # Units
//! Nanoseconds; counts of runs; blocks per multiprocessor is a plain fraction; occupancy is a share in 0..=1.
//!
//! # Source
//! Kernels as the device's profiler recorded them; occupancy as it estimated it. Blocks per multiprocessor as recorded,
//! or else from the launch's grid and the device's number of multiprocessors. The kind says whether a kernel computes
//! or communicates; a name that does both has two rows.
//!
//! # Edge cases
//! Runs for which blocks or occupancy are not known are left out of that mean; when they are known for none, or only
//! for runs of no duration, there is no value. Copies and fills are no kernels. The mean duration is rounded to whole
//! nanoseconds. For one step, the kernels launched on the host inside it; kernels without a known launch are then left
//! out.

use crate::{Coverage, Outcome, Selection, Table, Unit};
use std::collections::BTreeMap;
use stepscope_base::{StringId, percentiles::nearest_rank};
use stepscope_trace::{DeviceEvent, DeviceEventClass, Findings, Trace};

/// All runs of one kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Runs.
    pub count: i64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Mean duration.
    pub mean_ns: i64,
    /// Shortest run.
    pub min_ns: i64,
    /// Longest run.
    pub max_ns: i64,
    /// Median duration.
    pub p50_ns: i64,
    /// The duration that 99 of 100 runs do not exceed.
    pub p99_ns: i64,
    /// Mean blocks per multiprocessor; `None` when not known.
    pub blocks_per_sm: Option<f64>,
    /// Mean estimated occupancy; `None` when not known.
    pub occupancy_ratio: Option<f64>,
    /// Whether it computes or communicates.
    pub kind: DeviceEventClass,
}

/// Every kernel asked for, the longest total first, then by name.
pub fn kernels(trace: &Trace, selection: &Selection) -> Vec<Kernel> {
    let mut runs: BTreeMap<(StringId, DeviceEventClass), Vec<&DeviceEvent>> = BTreeMap::new();
    for event in selection.device_events(trace) {
        if matches!(event.class, DeviceEventClass::Compute | DeviceEventClass::Communication) {
            runs.entry((trace.slices.name[event.slice.index()], event.class)).or_default().push(event);
        }
    }
    let name = |id: StringId| trace.strings.get(id).to_string();
    let mut rows: Vec<Kernel> = runs.iter().map(|((id, kind), runs)| kernel(trace, name(*id), *kind, runs)).collect();
    rows.sort_by(|a, b| (b.total_ns, &a.name, a.kind).cmp(&(a.total_ns, &b.name, b.kind)));
    rows
}

fn kernel(trace: &Trace, name: String, kind: DeviceEventClass, runs: &[&DeviceEvent]) -> Kernel {
    let dur_ns = |event: &DeviceEvent| trace.slices.dur_ns[event.slice.index()];
    let mut sorted: Vec<i64> = runs.iter().map(|event| dur_ns(event)).collect();
    sorted.sort_unstable();
    let total_ns = sorted.iter().fold(0_i64, |sum, ns| sum.saturating_add(*ns));
    let count = sorted.len() as i64;
    let weighted = |value: &dyn Fn(&DeviceEvent) -> Option<f64>| {
        let known = runs.iter().filter_map(|event| Some((value(event)?, dur_ns(event) as f64)));
        let (sum, weight) = known.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
        (weight > 0.0).then(|| sum / weight)
    };
    Kernel {
        name,
        count,
        total_ns,
        mean_ns: (total_ns / count) + i64::from(total_ns % count * 2 >= count),
        min_ns: sorted[0],
        max_ns: sorted[sorted.len() - 1],
        p50_ns: nearest_rank(&sorted, 50).unwrap_or(0),
        p99_ns: nearest_rank(&sorted, 99).unwrap_or(0),
        blocks_per_sm: weighted(&|event| blocks_per_sm(trace, event)),
        occupancy_ratio: weighted(&|event| event.occupancy_ratio.map(f64::from)),
        kind,
    }
}

fn blocks_per_sm(trace: &Trace, event: &DeviceEvent) -> Option<f64> {
    let from_grid = || {
        let blocks: f64 = event.grid?.into_iter().map(f64::from).product();
        Some(blocks / f64::from(trace.devices[event.device.index()].sm_count?))
    };
    event.blocks_per_sm.map(f64::from).or_else(from_grid)
}

pub(crate) fn outcome(trace: &Trace, selection: &Selection) -> Outcome {
    let rows = kernels(trace, selection);
    let table = Table::default()
        .text("name", rows.iter().map(|row| Some(row.name.as_str())))
        .count("count", rows.iter().map(|row| row.count))
        .ns("total_ns", rows.iter().map(|row| row.total_ns))
        .ns("mean_ns", rows.iter().map(|row| row.mean_ns))
        .ns("min_ns", rows.iter().map(|row| row.min_ns))
        .ns("max_ns", rows.iter().map(|row| row.max_ns))
        .ns("p50_ns", rows.iter().map(|row| row.p50_ns))
        .ns("p99_ns", rows.iter().map(|row| row.p99_ns))
        .float("blocks_per_sm", Unit::Plain, rows.iter().map(|row| row.blocks_per_sm))
        .float("occupancy_ratio", Unit::Ratio, rows.iter().map(|row| row.occupancy_ratio))
        .text("kind", rows.iter().map(|row| Some(row.kind.as_str())));
    let coverage = Coverage::of(trace, selection.device_events(trace));
    Outcome { table, coverage, findings: Findings::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{Device, Process, SliceKind, TraceBuilder, Track, TrackKind};

    fn line(row: &Kernel) -> String {
        let numbers = [row.total_ns, row.mean_ns, row.min_ns, row.max_ns, row.p50_ns, row.p99_ns];
        let numbers: Vec<String> = numbers.map(|ns| ns.to_string()).into();
        format!("{} {} x{}: {}", row.name, row.kind.as_str(), row.count, numbers.join(" "))
    }

    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let rows = kernels(&drawn(drawing), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn copies_are_no_kernels_and_concurrent_runs_both_count() {
        check(
            "rank 0 stream 7 AAA.A.HH
             rank 0 stream 8 .AA.NN.Z",
            Selection::default(),
            &["A compute x3: 6000 2000 1000 3000 2000 3000", "N communication x1: 2000 2000 2000 2000 2000 2000"],
        );
    }

    #[test]
    fn a_step_has_the_kernels_launched_in_it() {
        check(
            "rank 0 step     0011
             rank 0 launch 1 A.B.
             rank 0 stream 7 ...ABC",
            Selection { step: Some(1), ..Selection::default() },
            &["B compute x1: 1000 1000 1000 1000 1000 1000"],
        );
    }

    /// Duration, blocks per SM, occupancy, grid.
    type Run = (i64, Option<f32>, Option<f32>, Option<[u32; 3]>);

    /// One kernel name, its runs on a device of 10 multiprocessors.
    fn one_kernel(runs: &[Run]) -> Kernel {
        let mut builder = TraceBuilder::new("kernel");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device { sm_count: Some(10), ..Device::default() });
        let track = builder.add_track(Track::new(TrackKind::Stream, process, "stream"));
        let name = builder.strings.intern("k");
        for (at, (dur_ns, blocks_per_sm, occupancy_ratio, grid)) in runs.iter().copied().enumerate() {
            let slice = builder.add_slice(track, SliceKind::Kernel, name, at as i64 * 1_000, dur_ns);
            let event = DeviceEvent::new(slice, device, DeviceEventClass::Compute);
            builder.add_device_event(DeviceEvent { blocks_per_sm, occupancy_ratio, grid, ..event });
        }
        kernels(&builder.finish(), &Selection::default()).remove(0)
    }

    #[test]
    fn means_are_weighted_by_duration_and_missing_is_missing() {
        let row = one_kernel(&[(30, Some(2.0), Some(0.5), None), (10, Some(6.0), None, None), (60, None, None, None)]);
        assert_eq!((row.blocks_per_sm, row.occupancy_ratio), (Some(3.0), Some(0.5)));
        let row = one_kernel(&[(30, None, None, None), (0, Some(1.0), None, None)]);
        assert_eq!((row.blocks_per_sm, row.occupancy_ratio), (None, None));
    }

    #[test]
    fn blocks_come_from_the_grid_where_they_are_not_recorded() {
        assert_eq!(one_kernel(&[(30, None, None, Some([4, 5, 2]))]).blocks_per_sm, Some(4.0));
    }

    #[test]
    fn the_mean_is_rounded_to_the_nearest() {
        let run = |dur_ns| (dur_ns, None, None, None);
        assert_eq!(one_kernel(&[run(1), run(2)]).mean_ns, 2);
        assert_eq!(one_kernel(&[run(1), run(1), run(2)]).mean_ns, 1);
    }

    proptest! {
        #[test]
        fn statistics_equal_counting_cells(rows in prop::collection::vec("[.AB|]{1,30}", 1..4)) {
            let text: String = rows.iter().enumerate().map(|(at, row)| format!("rank 0 stream {at} {row}\n")).collect();
            let found = kernels(&drawn(&text), &Selection::default());
            for letter in ['A', 'B'] {
                let is_other = |cell: char| cell != letter;
                let runs = rows.iter().flat_map(|row| row.split(is_other)).filter(|run| !run.is_empty());
                let mut lengths: Vec<i64> = runs.map(|run| run.len() as i64 * 1_000).collect();
                lengths.sort_unstable();
                let row = found.iter().find(|row| row.name == letter.to_string());
                prop_assert_eq!(row.is_some(), !lengths.is_empty());
                let Some(row) = row else { continue };
                let share = |value: i64| lengths.iter().filter(|length| **length <= value).count() as f64 / lengths.len() as f64;
                prop_assert_eq!((row.count, row.total_ns), (lengths.len() as i64, lengths.iter().sum::<i64>()));
                prop_assert_eq!((row.min_ns, row.max_ns), (lengths[0], lengths[lengths.len() - 1]));
                prop_assert_eq!(row.p50_ns, *lengths.iter().find(|length| share(**length) >= 0.5).unwrap());
                prop_assert_eq!(row.p99_ns, *lengths.iter().find(|length| share(**length) >= 0.99).unwrap());
            }
        }
    }
}
