//! # Definition
//! For each operator: how near its device work comes to what the device could do, and what time that would save.
//! The roofline time of a call is what its operations take at the device's peak rate, or what its bytes take at the
//! peak bandwidth of its memory, whichever is longer; that says whether it is bound by computing or by memory. Wasted
//! time is the time beyond it. Achieved rates are operations and bytes over device time; their quotient, operations per
//! byte, is the arithmetic intensity.
//!
//! Device time is the sum of computing kernels, fills and copies within a device. Each is counted in one row: at the
//! operator around its launch at which the work is counted, or without such one at the innermost operator; what no
//! operator launched is a row without a name. So device time sums to that of the whole. The unmodeled ratio is the share
//! of a row's device time without a roofline time.
//!
//! A row is a name; or a name with one set of input shapes, one call stack or one module; or a category of operators, or
//! a kernel, as asked for. The work of a call belongs to a kernel where all of the call's device work is runs of that one:
//! of different ones it is not known which does what, so their time is not modeled. Calls are then runs.
//!
//! # Units
//! Nanoseconds; operations, of which a multiplication with an addition is two; bytes; operations and bytes per second;
//! shares from 0 to 1.
//!
//! # Source
//! Work by the formulas that `operators` has, from the shapes and types of inputs. Peaks from the makers' data sheets,
//! without sparsity, by the product name of the device: `crates/analyses/data/devices.tsv` names them. Products of
//! 64-bit and 32-bit floats are compared with the rate of tensor cores when their kernels use these: of TF32 with NVIDIA
//! and Intel, of plain 32-bit floats in matrix cores with AMD.
//!
//! # Edge cases
//! Without shapes, a formula, types, or a device that the table knows, there is no roofline time; a finding names such
//! devices. Flops, bytes, rates and roofline time are of the calls for which they are known. Bytes are the least that
//! memory moves: a call whose data is in a cache already can be faster than its roofline, and then wastes nothing.
//! Attention counts all pairs of positions, so a kernel that skips masked ones can also be faster. Copies between host
//! and device and communication are left out. For one step, the calls that begin in it, with all their device
//! work, and what no operator launched inside it.

mod account;
pub(crate) mod devices;
mod kernels;

use crate::context::Shared;
use crate::coverage::Launched;
use crate::groups::{GroupLabel, operator_group_by};
use crate::joined::Joinable;
use crate::{Analysis, AnalysisContext, GroupBy, Joined, Needs, Options, Outcome, Selection};
use account::{Account, DeviceWork};
use devices::peaks;
use std::collections::BTreeMap;
use stepscope_trace::{CopyDirection, Device, DeviceEvent, DeviceEventClass, DeviceId, FindingCode, Findings, Trace};

/// What limits work at the roofline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// The rate of operations.
    Compute,
    /// The bandwidth of memory.
    Memory,
}

impl Bound {
    /// Its name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
        }
    }
}

columns! {
    /// The device work of an operator, or of those that a row stands for.
    #[derive(Clone, PartialEq, Debug, Default)]
    pub struct RooflineRow {
        /// What they have in common; `None` for what no operator launched.
        label: Option<GroupLabel>,
        ..GroupLabel = |row| row.label.as_ref().unwrap_or(GroupLabel::NONE),
        /// Calls with device work.
        count: i64,
        /// Number of calls with device work. Absent for device work that no operator launched.
        count => Count = |row| row.label.is_some().then_some(row.count),
        /// Sum of the durations of the device work.
        device_ns: i64 => Nanoseconds,
        /// Of this, in calls whose work is known.
        known_ns: i64,
        /// Of this, on devices whose peaks are known.
        modeled_ns: i64,
        /// Operations of the calls whose work is known.
        flops: i64,
        /// Their bytes.
        bytes: i64,
        /// Least time of the calls that are modeled.
        roofline_ns: i64,
        /// The part of their time beyond it.
        wasted_ns: i64,
        /// Time that their operations take at the peak rate.
        compute_ns: i64,
        /// Time that their bytes take at the peak bandwidth.
        memory_ns: i64,
        /// `device_ns` as a share of that of all rows.
        device_ratio: Option<f64> => Ratio,
        /// Number of arithmetic operations of the calls whose work is known.
        flops => Count = |row| row.known(row.flops),
        /// Bytes read and written by the calls whose work is known.
        bytes => Bytes = |row| row.known(row.bytes),
        /// Arithmetic operations per second of the calls whose work is known.
        flops_per_s => Count = |row| row.known(row.flops).map(|flops| per_s(flops, row.known_ns)),
        /// Bytes read and written per second by the calls whose work is known.
        bytes_per_s => Bytes = |row| row.known(row.bytes).map(|bytes| per_s(bytes, row.known_ns)),
        /// Arithmetic operations per byte of the calls whose work is known.
        flops_per_byte => Plain = |row| share(row.flops, row.bytes),
        /// The least time that the device could take for the modeled calls.
        roofline_ns => Nanoseconds = |row| row.modeled(row.roofline_ns),
        /// `roofline_ns` as a share of the time that the modeled calls take.
        roofline_ratio => Ratio = |row| share(row.roofline_ns, row.modeled_ns),
        /// The time that the modeled calls take beyond `roofline_ns`.
        wasted_ns => Nanoseconds = |row| row.modeled(row.wasted_ns),
        /// What limits the modeled calls at the roofline: `compute` or `memory`.
        bound => Text = |row| row.bound().map(Bound::as_str),
        /// Share of `device_ns` whose roofline time is not known.
        unmodeled_ratio => Ratio = |row| share(row.device_ns.saturating_sub(row.modeled_ns), row.device_ns),
    }
}

impl RooflineRow {
    /// What limits it; `None` when nothing is modeled.
    pub fn bound(&self) -> Option<Bound> {
        let bound = if self.compute_ns > self.memory_ns { Bound::Compute } else { Bound::Memory };
        (self.modeled_ns > 0).then_some(bound)
    }

    fn known(&self, value: i64) -> Option<i64> {
        (self.known_ns > 0).then_some(value)
    }

    fn modeled(&self, value: i64) -> Option<i64> {
        (self.modeled_ns > 0).then_some(value)
    }
}

/// Every operator with device work, the most wasted time first, then the longest device time, then by name.
pub fn roofline(trace: &Trace, selection: &Selection) -> Vec<RooflineRow> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<RooflineRow> {
    in_order(context.get::<Roofline>().rows.clone())
}

/// The rows in no particular order, and what they rest on.
pub(crate) struct Roofline {
    rows: Vec<RooflineRow>,
    launched: Launched,
    findings: Findings,
}

impl Shared for Roofline {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let is_by_kernel = selection.group_by == Some(GroupBy::Kernel);
        let by = if is_by_kernel { GroupBy::Kernel } else { operator_group_by(selection) };
        let rows = rows_of_ranks(context, by);
        Self {
            rows: summed(rows.into_iter().map(|(_, row)| row)),
            launched: events(trace, selection).map(|event| Launched::of_event(trace, &event)).sum(),
            findings: unknown_devices(trace, selection),
        }
    }
}

impl Joinable for Roofline {
    fn joined(of_ranks: Vec<Self>) -> Self {
        let mut findings = Findings::default();
        of_ranks.iter().for_each(|of| findings.extend(&of.findings));
        let launched = of_ranks.iter().map(|of| of.launched).sum();
        Self { rows: summed(of_ranks.into_iter().flat_map(|of| of.rows)), launched, findings }
    }
}

/// One row of each label.
fn summed(rows: impl Iterator<Item = RooflineRow>) -> Vec<RooflineRow> {
    let mut sums: BTreeMap<Option<GroupLabel>, RooflineRow> = BTreeMap::new();
    for row in rows {
        match sums.get_mut(&row.label) {
            Some(sum) => sum.extend(&row),
            None => drop(sums.insert(row.label.clone(), row)),
        }
    }
    sums.into_values().collect()
}

/// The operators of each rank, each with its rank, in no particular order.
pub(crate) fn rows_of_ranks(context: &AnalysisContext<'_>, by: GroupBy) -> Vec<(u32, RooflineRow)> {
    let rows = match by {
        GroupBy::Kernel => kernels::rows(context),
        by => Account::of(context, by).into_rows(),
    };
    for (_, row) in &rows {
        assert!(row.modeled_ns <= row.known_ns && row.known_ns <= row.device_ns, "parts of the device time");
        assert!(row.wasted_ns <= row.modeled_ns, "only what is modeled can be wasted");
    }
    rows
}

fn in_order(mut rows: Vec<RooflineRow>) -> Vec<RooflineRow> {
    let all_ns = rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.device_ns));
    rows.iter_mut().for_each(|row| row.device_ratio = share(row.device_ns, all_ns));
    rows.sort_by(|a, b| {
        (b.wasted_ns, b.device_ns).cmp(&(a.wasted_ns, a.device_ns)).then_with(|| a.label.cmp(&b.label))
    });
    rows
}

/// True for device work that a roofline is about.
fn is_modeled(class: DeviceEventClass) -> bool {
    use DeviceEventClass::{Compute, Memcpy, Memset};
    matches!(class, Compute | Memset | Memcpy(CopyDirection::DeviceToDevice))
}

fn events<'a>(trace: &'a Trace, selection: &'a Selection) -> impl Iterator<Item = DeviceEvent> + 'a {
    selection.device_events(trace).filter(|event| is_modeled(event.class))
}

const GROUPS: &[GroupBy] =
    &[GroupBy::Name, GroupBy::Shapes, GroupBy::Stack, GroupBy::Module, GroupBy::Category, GroupBy::Kernel];

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { group_by: GROUPS, ..Options::NONE }, ..Analysis::of(outcome) }
        .needing(Needs::Joined(Joined::by::<Roofline>()));

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    let Roofline { launched, findings, .. } = context.get();
    let (coverage, findings) = (launched.coverage(), findings.clone());
    Outcome { coverage, findings, ..Outcome::without_coverage(context, &rows(context)) }
}

/// The arithmetic that each device was asked to do.
pub(crate) fn work_of_devices(context: &AnalysisContext<'_>) -> BTreeMap<DeviceId, DeviceWork> {
    Account::of(context, GroupBy::Name).into_devices()
}

/// The devices asked for that the table does not know, by rank.
pub(crate) fn unknown_devices(trace: &Trace, selection: &Selection) -> Findings {
    let mut is_used = vec![false; trace.devices.len()];
    events(trace, selection).for_each(|event| is_used[event.device.index()] = true);
    let used = trace.devices.iter().zip(is_used).filter(|(_, is_used)| *is_used).map(|(device, _)| device);
    let mut unknown: Vec<&Device> = used.filter(|device| peaks(device).is_none()).collect();
    unknown.sort_by_key(|device| (device.rank, device.ordinal));
    let mut findings = Findings::default();
    for device in unknown {
        findings.add(FindingCode::UnknownDevice, || {
            let name = device.name.as_deref().unwrap_or("without a name");
            format!("device {} of rank {}: {name}", device.ordinal, device.rank)
        });
    }
    findings
}

fn share(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn per_s(count: i64, ns: i64) -> i64 {
    let rate = i128::from(count) * 1_000_000_000 / i128::from(ns);
    i64::try_from(rate).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GroupBy;
    use proptest::prelude::*;
    use stepscope_trace::{
        Device, DeviceId, OpInfo, OpInputs, Process, ProcessId, SliceId, SliceKind, TraceBuilder, Track, TrackId,
        TrackKind,
    };

    struct Fixture {
        builder: TraceBuilder,
        thread: TrackId,
        stream: TrackId,
        kernels: i64,
    }

    impl Fixture {
        fn new(device: &str) -> Self {
            let mut builder = TraceBuilder::new("roofline");
            let process: ProcessId = builder.add_process(Process::default());
            builder.add_device(Device { name: Some(device.into()), ..Device::default() });
            let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
            let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream"));
            Self { builder, thread, stream, kernels: 0 }
        }

        fn op(&mut self, name: &str, start: i64, end: i64, dims: &str, types: &str) -> SliceId {
            let name = self.builder.strings.intern(name);
            let slice = self.builder.add_slice(self.thread, SliceKind::Op, name, start, end - start);
            let (dims, types) = (self.builder.strings.intern(dims), self.builder.strings.intern(types));
            let inputs = self.builder.intern_inputs(OpInputs { dims, types, ..OpInputs::UNKNOWN });
            self.builder.add_op(slice, OpInfo { inputs, ..OpInfo::default() });
            slice
        }

        fn kernel(&mut self, launched_at: i64, dur_ns: i64, class: DeviceEventClass) {
            self.kernel_of("k", launched_at, dur_ns, class);
        }

        fn kernel_of(&mut self, name: &str, launched_at: i64, dur_ns: i64, class: DeviceEventClass) {
            let name = self.builder.strings.intern(name);
            let launch = self.builder.add_slice(self.thread, SliceKind::Runtime, name, launched_at, 1);
            self.kernels += 1;
            let slice = self.builder.add_slice(self.stream, SliceKind::Kernel, name, self.kernels << 40, dur_ns);
            self.builder.add_device_event(DeviceEvent::new(slice, DeviceId(0), class));
            self.builder.add_launch_link(launch, slice);
        }
    }

    const HALF: &str = r#"["c10::Half","c10::Half"]"#;

    /// A product of 312 GFLOP on a device with 312 TFLOP/s takes 1 ms; its bytes take less.
    fn product(fixture: &mut Fixture) {
        fixture.op("aten::mm", 0, 100, "[[3900,4000],[4000,10000]]", HALF);
        fixture.op("aten::copy_", 10, 20, "[[10],[10]]", HALF);
        fixture.kernel(5, 3_000_000, DeviceEventClass::Compute);
        fixture.kernel(15, 1_000_000, DeviceEventClass::Memset);
    }

    #[test]
    fn time_beyond_the_roofline_is_wasted() {
        let mut fixture = Fixture::new("NVIDIA A100-SXM4-40GB");
        product(&mut fixture);
        // 15.55 MB at 1555 GB/s.
        fixture.op("aten::fill_", 200, 300, "[[7775000]]", HALF);
        fixture.kernel(210, 40_000, DeviceEventClass::Compute);
        fixture.op("aten::weird", 400, 500, "[[10]]", HALF);
        fixture.kernel(410, 500, DeviceEventClass::Compute);
        fixture.kernel(450, 99, DeviceEventClass::Communication);
        fixture.kernel(600, 70, DeviceEventClass::Compute);
        let rows = roofline(&fixture.builder.finish(), &Selection::default());
        let line = |row: &RooflineRow| {
            let name = row.label.as_ref().map_or("-", |label| label.name.as_str());
            let bound = row.bound().map_or("-", Bound::as_str);
            format!("{name} {} {} {} {bound}", row.device_ns, row.roofline_ns, row.wasted_ns)
        };
        assert_eq!(
            rows.iter().map(line).collect::<Vec<_>>(),
            [
                "aten::mm 4000000 1000000 3000000 compute",
                "aten::fill_ 40000 10000 30000 memory",
                "aten::weird 500 0 0 -",
                "- 70 0 0 -"
            ]
        );
    }

    #[test]
    fn a_device_that_is_not_in_the_table_is_a_finding_and_has_no_roofline() {
        let mut fixture = Fixture::new("Nobody's");
        product(&mut fixture);
        let outcome = outcome(&AnalysisContext::new(&fixture.builder.finish(), &Selection::default()));
        assert_eq!(outcome.findings.count(FindingCode::UnknownDevice), 1);
        let value = |name: &str| format!("{:?}", outcome.table.column(name).unwrap().values);
        assert_eq!(value("flops"), "Int([Some(312000000000)])");
        assert_eq!(value("flops_per_s"), "Int([Some(78000000000000)])");
        assert_eq!([value("roofline_ns"), value("wasted_ns")], ["Int([None])", "Int([None])"]);
        assert_eq!(value("unmodeled_ratio"), "Float([Some(1.0)])");
    }

    #[test]
    fn rows_stand_for_what_is_asked_for() {
        let mut fixture = Fixture::new("NVIDIA A100-SXM4-40GB");
        product(&mut fixture);
        let trace = fixture.builder.finish();
        let names = |group_by| {
            let selection = Selection { group_by: Some(group_by), ..Selection::default() };
            let rows = roofline(&trace, &selection);
            rows.into_iter().map(|row| row.label.unwrap()).map(|label| (label.name, label.shapes)).collect::<Vec<_>>()
        };
        assert_eq!(names(GroupBy::Category), [("matrix_product".into(), None)]);
        assert_eq!(names(GroupBy::Shapes), [("aten::mm".into(), Some("[[3900,4000],[4000,10000]]".into()))]);
    }

    #[test]
    fn a_kernel_has_the_work_of_calls_that_launch_no_other() {
        let mut fixture = Fixture::new("NVIDIA A100-SXM4-40GB");
        let dims = "[[3900,4000],[4000,10000]]";
        for (at, kernels) in [(0, &["gemm"][..]), (100, &["gemm", "gemm"]), (200, &["split", "sum"]), (300, &["gemm"])]
        {
            fixture.op("aten::mm", at, at + 90, dims, HALF);
            for kernel in kernels {
                fixture.kernel_of(kernel, at + 5, 3_000_000, DeviceEventClass::Compute);
            }
        }
        fixture.kernel_of("gemm", 450, 500, DeviceEventClass::Compute);
        let trace = fixture.builder.finish();
        let rows = roofline(&trace, &Selection { group_by: Some(GroupBy::Kernel), ..Selection::default() });
        let line = |row: &RooflineRow| {
            let name = row.label.as_ref().map_or("-", |label| label.name.as_str());
            format!("{name} {} {} {} {}", row.count, row.device_ns, row.modeled_ns, row.roofline_ns)
        };
        // Each product takes 1 ms at the peak.
        assert_eq!(
            rows.iter().map(line).collect::<Vec<_>>(),
            ["gemm 5 12000500 12000000 3000000", "split 1 3000000 0 0", "sum 1 3000000 0 0"]
        );
        let by_name = roofline(&trace, &Selection::default());
        let sum = |rows: &[RooflineRow]| rows.iter().map(|row| row.device_ns).sum::<i64>();
        assert_eq!(sum(&rows), sum(&by_name));
    }

    proptest! {
        /// Against one walk outwards for each event.
        #[test]
        fn device_time_sums_to_the_whole_and_each_row_to_its_calls(
            ops in prop::collection::vec((0_usize..4, 0_i64..40, 1_i64..20), 0..12),
            kernels in prop::collection::vec((0_i64..60, 0_i64..(1 << 50)), 0..12),
        ) {
            let kinds = ["aten::mm", "aten::add", "aten::linear", "aten::weird"];
            let mut fixture = Fixture::new("NVIDIA H200");
            for (kind, start, dur) in ops {
                fixture.op(kinds[kind], start, start + dur, "[[64,64],[64,64]]", HALF);
            }
            for (at, dur_ns) in &kernels {
                fixture.kernel(*at, *dur_ns, DeviceEventClass::Compute);
            }
            let trace = fixture.builder.finish();
            let rows = roofline(&trace, &Selection::default());
            let total: i64 = trace.device_events.iter().map(|event| trace.slices.dur_ns[event.slice.index()]).sum();
            prop_assert_eq!(rows.iter().map(|row| row.device_ns).sum::<i64>(), total);
            // Which operator an event counts at, told by the rule in words.
            let is_op = |id: &SliceId| trace.slices.kind(*id) == SliceKind::Op;
            let is_product = |id: SliceId| ["aten::mm", "aten::linear"].contains(&trace.slice_name(id));
            let around = |id: SliceId| trace.slices.with_ancestors(id).filter(is_op).collect::<Vec<_>>();
            let holds = |id: SliceId| trace.slices.ids().filter(is_op).any(|inner| {
                inner != id && is_product(inner) && around(inner).contains(&id)
            });
            let has_formula = |id: SliceId| trace.slice_name(id) != "aten::weird" && !holds(id);
            for row in rows.iter().filter(|row| row.label.is_some()) {
                let name = &row.label.as_ref().unwrap().name;
                let mut expected = 0;
                for event in trace.device_events.iter() {
                    let Some(op) = event.op else { continue };
                    let at = around(op).into_iter().rfind(|id| has_formula(*id)).unwrap_or(op);
                    if trace.slice_name(at) == name {
                        expected += trace.slices.dur_ns[event.slice.index()];
                    }
                }
                prop_assert_eq!(row.device_ns, expected, "{}", name);
            }
        }
    }
}
