//! # Definition
//! For each kernel name: how often it ran and how long. Total is the sum of the runs' durations, so kernels that run at
//! the same time both count. Percentiles are durations that occurred: the smallest that at least that share of runs do
//! not exceed. Blocks per multiprocessor is the number of blocks of a launch over the multiprocessors of the device,
//! occupancy the estimated share of its thread slots in use: both are means weighted by duration.
//!
//! Grouped by properties, a row is a name with one operator, grid, block, number of registers and amount of shared
//! memory. Grouped by module, a name with the innermost module that it was launched in, in the backward pass the module of
//! the forward operator.
//!
//! # Units
//! Nanoseconds; counts of runs; blocks per multiprocessor is a plain fraction; occupancy is a share from 0 to 1; registers
//! are those of a thread, shared memory is bytes of a block; grid and block are blocks and threads in x, y, z.
//!
//! # Source
//! Kernels as the device's profiler recorded them. Occupancy as it estimated it, or else, and in place of a recorded 0,
//! from the launch and the limits of the device. Blocks per multiprocessor as recorded, or else from the launch's grid
//! and the device's number of multiprocessors. Whether a kernel uses tensor cores is known
//! from its name. The operator is the innermost one that was open on the launching thread when the launch started. The
//! kind says whether a kernel computes or communicates; a name that does both has two rows.
//!
//! # Edge cases
//! Runs for which blocks or occupancy are not known are left out of that mean; when they are known for none, or only
//! for runs of no duration, there is no value. Copies and fills are no kernels. The mean duration is rounded to whole
//! nanoseconds. For one step, the kernels launched on the host inside it, or that start in
//! it where the launch is not known.

use crate::context::Shared;
use crate::module_contexts::ModuleContexts;
use crate::occupancy::occupancy_ratio;
use crate::{Analysis, AnalysisContext, GroupBy, Needs, Options, Outcome, Selection};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hash;
use stepscope_base::StringId;
use stepscope_trace::{DeviceEvent, DeviceEventClass, Trace};

columns! {
    /// All runs of one kernel, or of those of one launch configuration.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Kernel {
        /// The name of the kernel.
        name: String => Text,
        /// The module that it was launched in, when that was asked for; `None` outside of modules.
        module: Option<String>,
        /// The module that the kernel was launched in. In the backward pass, the module of the forward operator. A column
        /// only when grouped by module.
        module => Text if (is_by_module) = |row| row.module.as_ref(),
        /// Number of runs.
        count: i64 => Count,
        /// Sum of the durations of the runs.
        total_ns: i64 => Nanoseconds,
        /// Mean duration of a run.
        mean_ns: i64 => Nanoseconds,
        /// Duration of the shortest run.
        min_ns: i64 => Nanoseconds,
        /// Duration of the longest run.
        max_ns: i64 => Nanoseconds,
        /// Median duration of a run.
        p50_ns: i64 => Nanoseconds,
        /// The duration that 99 of 100 runs do not exceed.
        p99_ns: i64 => Nanoseconds,
        /// Blocks of a launch per multiprocessor, as a mean over kernel time. Absent when not known.
        blocks_per_sm: Option<f64> => Plain,
        /// Estimated occupancy, as a mean over kernel time. Absent when not known.
        occupancy_ratio: Option<f64> => Ratio,
        /// Whether it uses tensor cores.
        uses_tensor_cores: bool,
        /// Whether the kernel uses tensor cores.
        tensor_cores => Flag = |row| row.uses_tensor_cores,
        /// Whether the kernel computes or communicates.
        kind: DeviceEventClass => Text,
        /// What its launches have in common, when that was asked for.
        properties: Option<Properties>,
        /// The operator that launched the kernel. A column only when grouped by properties.
        op => Text if (has_properties) = |row| row.properties.as_ref()?.op.as_ref(),
        /// Number of blocks in x, y and z. A column only when grouped by properties.
        grid => Text if (has_properties) = |row| row.properties.as_ref()?.grid.map(written),
        /// Number of threads of a block in x, y and z. A column only when grouped by properties.
        block => Text if (has_properties) = |row| row.properties.as_ref()?.block.map(written),
        /// Registers per thread. A column only when grouped by properties.
        registers => Count if (has_properties) = |row| row.properties.as_ref()?.registers,
        /// Shared memory per block. A column only when grouped by properties.
        shared_bytes => Bytes if (has_properties) = |row| row.properties.as_ref()?.shared_bytes,
    }
}

/// How a kernel was launched.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Properties {
    /// The operator that launched it; `None` for none.
    pub op: Option<String>,
    /// Blocks in x, y, z.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Bytes of shared memory a block.
    pub shared_bytes: Option<u64>,
}

impl Properties {
    fn of(trace: &Trace, event: &DeviceEvent) -> Self {
        Self {
            op: event.op.map(|op| trace.slice_name(op).to_string()),
            grid: event.grid,
            block: event.block,
            registers: event.registers,
            shared_bytes: event.shared_bytes,
        }
    }
}

/// Every kernel asked for, the longest total first, then by name, kind, module and properties.
pub fn kernels(trace: &Trace, selection: &Selection) -> Vec<Kernel> {
    rows(&AnalysisContext::new(trace, selection)).to_vec()
}

/// As [`kernels`], in a context, which other analyses may share.
pub fn rows<'a>(context: &'a AnalysisContext<'_>) -> &'a [Kernel] {
    &context.get::<Kernels>().0
}

/// Every kernel asked for.
pub(crate) struct Kernels(Vec<Kernel>);

impl Shared for Kernels {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self::of(context.get::<KernelRuns>().0.clone())
    }
}

/// The runs of each kernel asked for, in no particular order.
pub(crate) struct KernelRuns(pub(crate) Vec<Runs>);

impl Shared for KernelRuns {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self(runs(context))
    }
}

impl KernelRuns {
    /// Those of several ranks together.
    pub(crate) fn joined<'a>(of_ranks: impl Iterator<Item = &'a Runs>) -> Self {
        let mut joined: BTreeMap<_, Runs> = BTreeMap::new();
        for runs in of_ranks {
            let known = joined.entry((&runs.name, runs.communicates, &runs.module, &runs.properties));
            known.or_insert_with(|| runs.without_runs()).extend(runs);
        }
        Self(joined.into_values().collect())
    }
}

impl Kernels {
    fn of(runs: Vec<Runs>) -> Self {
        let mut rows: Vec<Kernel> = runs.into_iter().map(Runs::kernel).collect();
        rows.sort_by(|a, b| {
            let key = |row: &'_ Kernel| (row.name.clone(), row.kind, row.module.clone(), row.properties.clone());
            b.total_ns.cmp(&a.total_ns).then_with(|| key(a).cmp(&key(b)))
        });
        Self(rows)
    }
}

fn runs(context: &AnalysisContext<'_>) -> Vec<Runs> {
    let AnalysisContext { trace, selection, .. } = *context;
    let name = |event: &DeviceEvent| trace.slices.name[event.slice.index()];
    match selection.group_by {
        Some(GroupBy::Properties) => {
            let key = |event: &DeviceEvent| {
                let op: Option<StringId> = event.op.map(|op| trace.slices.name[op.index()]);
                let launch = (event.grid, event.block, event.registers, event.shared_bytes);
                (name(event), event.class, op, launch)
            };
            grouped(trace, selection, key, |event, runs| runs.properties = Some(Properties::of(trace, event)))
        }
        Some(GroupBy::Module) => {
            let modules = ModuleContexts::of(trace);
            let module = |event: &DeviceEvent| Some(modules.get(event.launch.or(event.op)?)?.module);
            let path = |event: &DeviceEvent| Some(modules.path(trace, module(event)?));
            let key = |event: &DeviceEvent| (name(event), event.class, module(event));
            grouped(trace, selection, key, |event, runs| runs.module = path(event))
        }
        _ => grouped(trace, selection, |event| (name(event), event.class), |_, _| ()),
    }
}

/// Runs with the same key together, each group with what `label` gives it; the keys only have to tell apart, in what order
/// does not matter.
fn grouped<K: Eq + Hash>(
    trace: &Trace,
    selection: &Selection,
    key: impl Fn(&DeviceEvent) -> K,
    label: impl Fn(&DeviceEvent, &mut Runs),
) -> Vec<Runs> {
    let mut ids: FxHashMap<K, u32> = FxHashMap::default();
    let mut all: Vec<Runs> = Vec::new();
    for event in selection.device_events(trace) {
        if !matches!(event.class, DeviceEventClass::Compute | DeviceEventClass::Communication) {
            continue;
        }
        let id = *ids.entry(key(&event)).or_insert_with(|| {
            let mut runs = Runs::new(trace, &event);
            label(&event, &mut runs);
            all.push(runs);
            all.len() as u32 - 1
        });
        all[id as usize].add(trace, &event);
    }
    all
}

/// A mean weighted by duration.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
struct WeightedMean {
    sum: f64,
    weight: f64,
}

impl WeightedMean {
    fn add(&mut self, value: Option<f64>, dur_ns: i64) {
        if let Some(value) = value {
            self.extend(&Self { sum: value * dur_ns as f64, weight: dur_ns as f64 });
        }
    }

    fn extend(&mut self, other: &Self) {
        self.sum += other.sum;
        self.weight += other.weight;
    }

    fn get(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// The runs of one kernel: what a [`Kernel`] is made of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Runs {
    pub(crate) name: String,
    communicates: bool,
    uses_tensor_cores: bool,
    /// Not kept, as `properties`: what is kept is grouped by neither.
    #[serde(skip)]
    module: Option<String>,
    #[serde(skip)]
    properties: Option<Properties>,
    /// The duration of each run.
    pub(crate) dur_ns: Vec<i64>,
    blocks_per_sm: WeightedMean,
    occupancy_ratio: WeightedMean,
}

impl Runs {
    /// Whether the kernel computes or communicates.
    pub(crate) fn kind(&self) -> DeviceEventClass {
        if self.communicates { DeviceEventClass::Communication } else { DeviceEventClass::Compute }
    }

    /// None yet, of the kernel that `event` is a run of.
    fn new(trace: &Trace, event: &DeviceEvent) -> Self {
        Self {
            name: trace.slice_name(event.slice).to_string(),
            communicates: event.class == DeviceEventClass::Communication,
            uses_tensor_cores: event.uses_tensor_cores,
            module: None,
            properties: None,
            dur_ns: Vec::new(),
            blocks_per_sm: WeightedMean::default(),
            occupancy_ratio: WeightedMean::default(),
        }
    }

    /// None yet, of the same kernel.
    fn without_runs(&self) -> Self {
        let [blocks_per_sm, occupancy_ratio] = [WeightedMean::default(); 2];
        Self { dur_ns: Vec::new(), blocks_per_sm, occupancy_ratio, ..self.clone() }
    }

    fn add(&mut self, trace: &Trace, event: &DeviceEvent) {
        let dur_ns = trace.slices.dur_ns[event.slice.index()];
        self.dur_ns.push(dur_ns);
        self.blocks_per_sm.add(blocks_per_sm(trace, event), dur_ns);
        self.occupancy_ratio.add(occupancy_ratio(event, &trace.devices[event.device.index()]), dur_ns);
    }

    fn extend(&mut self, other: &Self) {
        self.dur_ns.extend(&other.dur_ns);
        self.blocks_per_sm.extend(&other.blocks_per_sm);
        self.occupancy_ratio.extend(&other.occupancy_ratio);
    }

    fn kernel(mut self) -> Kernel {
        let count = self.dur_ns.len() as i64;
        let total_ns = self.dur_ns.iter().fold(0_i64, |sum, dur_ns| sum.saturating_add(*dur_ns));
        let (mean_ns, rest_ns) = (total_ns / count, total_ns % count);
        Kernel {
            count,
            total_ns,
            mean_ns: mean_ns + i64::from(rest_ns >= count - rest_ns),
            min_ns: self.dur_ns.iter().copied().min().unwrap_or(0),
            max_ns: self.dur_ns.iter().copied().max().unwrap_or(0),
            p50_ns: nearest_rank(&mut self.dur_ns, 50),
            p99_ns: nearest_rank(&mut self.dur_ns, 99),
            blocks_per_sm: self.blocks_per_sm.get(),
            occupancy_ratio: self.occupancy_ratio.get(),
            kind: self.kind(),
            name: self.name,
            uses_tensor_cores: self.uses_tensor_cores,
            module: self.module,
            properties: self.properties,
        }
    }
}

/// The percentile by nearest rank of values that are not sorted, and need not be: linear in their number.
fn nearest_rank(values: &mut [i64], percent: usize) -> i64 {
    let rank = (values.len() * percent).div_ceil(100);
    *values.select_nth_unstable(rank.saturating_sub(1)).1
}

fn blocks_per_sm(trace: &Trace, event: &DeviceEvent) -> Option<f64> {
    let from_grid = || {
        let blocks: f64 = event.grid?.into_iter().map(f64::from).product();
        let sm_count = trace.devices[event.device.index()].sm_count.filter(|count| *count > 0)?;
        Some(blocks / f64::from(sm_count))
    };
    event.blocks_per_sm.map(f64::from).or_else(from_grid)
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { group_by: &[GroupBy::Name, GroupBy::Module, GroupBy::Properties], ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::Rows);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, rows(context))
}

fn has_properties(selection: &Selection) -> bool {
    selection.group_by == Some(GroupBy::Properties)
}

fn is_by_module(selection: &Selection) -> bool {
    selection.group_by == Some(GroupBy::Module)
}

/// `128x1x1`.
fn written(sizes: [u32; 3]) -> String {
    sizes.map(|size| size.to_string()).join("x")
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

    #[test]
    fn grouped_by_module_a_row_is_a_kernel_of_one_module() {
        let trace = drawn(
            "rank 0 module 1 mmmmmnn......
             rank 0 module 1 .ooo.........
             rank 0 cpu 1    aaaabc.......
             rank 0 launch 1 ..C.KC...K...
             rank 0 stream 7 ...CK.CC..KK|K",
        );
        let selection = Selection { group_by: Some(GroupBy::Module), ..Selection::default() };
        let rows = kernels(&trace, &selection);
        let line = |row: &Kernel| format!("{} {} {}", row.module.as_deref().unwrap_or("–"), row.name, row.count);
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        lines.sort();
        let by_name = kernels(&trace, &Selection::default());
        let time = |rows: &[Kernel]| rows.iter().map(|row| row.total_ns).sum::<i64>();
        assert_eq!(time(&rows), time(&by_name));
        assert_eq!(lines, ["m K 1", "m.o C 1", "n C 1", "– K 2"]);
    }

    #[test]
    fn grouped_by_properties_a_row_is_one_way_to_launch() {
        let mut builder = TraceBuilder::new("kernel");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device { sm_count: Some(10), ..Device::default() });
        let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream"));
        let [k, op] = ["k", "aten::mm"].map(|name| builder.strings.intern(name));
        builder.add_slice(thread, SliceKind::Op, op, 0, 10);
        let launch = builder.add_slice(thread, SliceKind::Runtime, op, 5, 1);
        for (at, (grid, registers)) in [(20, None), (40, Some(32)), (20, None)].into_iter().enumerate() {
            let slice = builder.add_slice(stream, SliceKind::Kernel, k, 20 + at as i64, 1);
            let event = DeviceEvent::new(slice, device, DeviceEventClass::Compute);
            let (grid, block) = (Some([grid, 1, 1]), Some([128, 1, 1]));
            builder.add_device_event(DeviceEvent { grid, block, registers, uses_tensor_cores: true, ..event });
            builder.add_launch_link(launch, slice);
        }
        let trace = builder.finish();
        let selection = Selection { group_by: Some(GroupBy::Properties), ..Selection::default() };
        let rows = kernels(&trace, &selection);
        let line = |row: &Kernel| {
            let of = row.properties.clone().unwrap();
            format!(
                "{} x{} {:?} {:?} {:?}",
                of.op.unwrap(),
                row.count,
                of.grid.unwrap()[0],
                of.registers,
                row.blocks_per_sm
            )
        };
        let lines: Vec<String> = rows.iter().map(line).collect();
        assert_eq!(lines, ["aten::mm x2 20 None Some(2.0)", "aten::mm x1 40 Some(32) Some(4.0)"]);
        let column = |name: &str| {
            format!("{:?}", outcome(&AnalysisContext::new(&trace, &selection)).table.column(name).unwrap().values)
        };
        assert_eq!(column("block"), r#"Text([Some("128x1x1"), Some("128x1x1")])"#);
        assert_eq!(column("tensor_cores"), "Bool([Some(true), Some(true)])");
        assert_eq!(kernels(&trace, &Selection::default()).len(), 1);
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
