//! From device events to calls, from calls to rows.

use super::devices::{Peaks, peaks};
use super::{RooflineRow, events};
use crate::flops::{Work, Works};
use crate::groups::Groups;
use crate::op_tree::OpTree;
use crate::windows::Windows;
use crate::{AnalysisContext, GroupBy, Selection};
use std::collections::BTreeMap;
use stepscope_trace::{Device, DeviceEvent, DeviceId};

/// The device work counted at one operator.
#[derive(Clone, Copy, Default)]
pub(super) struct Call {
    device_ns: i64,
    /// Of any of its work: a call runs on one device.
    pub(super) device: Option<DeviceId>,
    uses_tensor_cores: bool,
}

impl Call {
    pub(super) fn add(&mut self, event: &DeviceEvent, dur_ns: i64) {
        self.device_ns = self.device_ns.saturating_add(dur_ns);
        self.device = Some(event.device);
        self.uses_tensor_cores |= event.uses_tensor_cores;
    }
}

/// Sums by rank and group.
pub(super) struct Account<'a> {
    groups: &'a Groups,
    of_ranks: BTreeMap<u32, Sums>,
    of_devices: BTreeMap<DeviceId, DeviceWork>,
}

/// The arithmetic that a device was asked to do.
#[derive(Clone, Copy, Default)]
pub(crate) struct DeviceWork {
    /// Operations of the calls whose work is known.
    pub(crate) flops: i64,
    /// The least time that those take at its peak rates, as far as these are known.
    pub(crate) compute_ns: i64,
}

/// Those of one rank.
struct Sums {
    /// By group.
    rows: Vec<RooflineRow>,
    outside: RooflineRow,
}

impl<'a> Account<'a> {
    /// The sums of everything asked for.
    pub(super) fn of(context: &'a AnalysisContext<'_>, by: GroupBy) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let (tree, works, groups) = (context.get::<OpTree>(), context.get::<Works>(), Groups::by(context, by));
        let is_asked = Windows::of(trace, selection).ops(trace, tree);
        let of_group = || vec![RooflineRow::default(); groups.labels.len()];
        let new = || Sums { rows: of_group(), outside: RooflineRow::default() };
        let rank = |device: DeviceId| trace.devices[device.index()].rank;
        let mut of_ranks: BTreeMap<u32, Sums> = BTreeMap::new();
        for event in events(trace, selection).filter(|event| tree.row(event.op).is_none()) {
            let outside = &mut of_ranks.entry(rank(event.device)).or_insert_with(new).outside;
            outside.device_ns = outside.device_ns.saturating_add(trace.slices.dur_ns[event.slice.index()]);
        }
        // A call has its work and all of its device time where it begins: a window through it cuts neither.
        let whole = Selection { step: None, window: None, complete_steps: false, ..selection.clone() };
        let mut calls: Vec<Call> = vec![Call::default(); tree.len()];
        for event in events(trace, &whole) {
            let dur_ns = trace.slices.dur_ns[event.slice.index()];
            let Some(op) = tree.row(event.op) else { continue };
            let op = works.owner(op).unwrap_or(op) as usize;
            if !is_asked[op] {
                continue;
            }
            calls[op].add(&event, dur_ns);
        }
        let peaks: Vec<Option<&Peaks>> = trace.devices.iter().map(|device: &Device| peaks(device)).collect();
        let mut of_devices: BTreeMap<DeviceId, DeviceWork> = BTreeMap::new();
        for (op, call) in calls.iter().enumerate() {
            let Some(device) = call.device else { continue };
            let of_rank = of_ranks.entry(rank(device)).or_insert_with(new);
            let row = &mut of_rank.rows[groups.of_op[op] as usize];
            row.count += 1;
            row.device_ns = row.device_ns.saturating_add(call.device_ns);
            if let Some(work) = works.get(op as u32) {
                let peaks = peaks[device.index()];
                row.add(call, &work, peaks);
                let rate = peaks.and_then(|peaks| peaks.flops_per_s(&work, call.uses_tensor_cores));
                let of_device = of_devices.entry(device).or_default();
                of_device.flops = of_device.flops.saturating_add(work.flops);
                let compute_ns = rate.map_or(0, |rate| least_ns(work.flops, rate));
                of_device.compute_ns = of_device.compute_ns.saturating_add(compute_ns);
            }
        }
        Self { groups, of_ranks, of_devices }
    }

    /// What each device was asked to do.
    pub(super) fn into_devices(self) -> BTreeMap<DeviceId, DeviceWork> {
        self.of_devices
    }

    /// Rows with device work, each with its rank.
    pub(super) fn into_rows(self) -> Vec<(u32, RooflineRow)> {
        let labels = &self.groups.labels;
        let of_rank = |(rank, Sums { rows, outside }): (u32, Sums)| {
            let labelled = rows.into_iter().zip(labels).map(|(row, label)| (row, Some(label)));
            let rows = labelled.filter(|(row, _)| row.count > 0).chain([(outside, None)]);
            let is_there = |(row, label): &(RooflineRow, Option<_>)| label.is_some() || row.device_ns > 0;
            rows.filter(is_there).map(move |(row, label)| (rank, RooflineRow { label: label.cloned(), ..row }))
        };
        self.of_ranks.into_iter().flat_map(of_rank).collect()
    }
}

impl RooflineRow {
    /// Adds what another row of the same operators has.
    pub(crate) fn extend(&mut self, other: &Self) {
        for (sum, value) in [
            (&mut self.count, other.count),
            (&mut self.device_ns, other.device_ns),
            (&mut self.known_ns, other.known_ns),
            (&mut self.modeled_ns, other.modeled_ns),
            (&mut self.flops, other.flops),
            (&mut self.bytes, other.bytes),
            (&mut self.roofline_ns, other.roofline_ns),
            (&mut self.wasted_ns, other.wasted_ns),
            (&mut self.compute_ns, other.compute_ns),
            (&mut self.memory_ns, other.memory_ns),
        ] {
            *sum = sum.saturating_add(value);
        }
    }

    pub(super) fn add(&mut self, call: &Call, work: &Work, peaks: Option<&Peaks>) {
        let Some(bytes) = work.bytes else { return };
        self.known_ns = self.known_ns.saturating_add(call.device_ns);
        self.flops = self.flops.saturating_add(work.flops);
        self.bytes = self.bytes.saturating_add(bytes);
        let Some(peaks) = peaks else { return };
        let compute_ns = match peaks.flops_per_s(work, call.uses_tensor_cores) {
            Some(rate) => least_ns(work.flops, rate),
            None if work.flops == 0 => 0,
            None => return,
        };
        let memory_ns = least_ns(bytes, peaks.bytes_per_s);
        let roofline_ns = compute_ns.max(memory_ns);
        self.modeled_ns = self.modeled_ns.saturating_add(call.device_ns);
        self.compute_ns = self.compute_ns.saturating_add(compute_ns);
        self.memory_ns = self.memory_ns.saturating_add(memory_ns);
        self.roofline_ns = self.roofline_ns.saturating_add(roofline_ns);
        self.wasted_ns = self.wasted_ns.saturating_add((call.device_ns - roofline_ns).max(0));
    }
}

/// Whole nanoseconds, upwards, in which `count` passes at `per_s`.
pub(super) fn least_ns(count: i64, per_s: i64) -> i64 {
    let ns = (i128::from(count) * 1_000_000_000 + i128::from(per_s) - 1) / i128::from(per_s);
    i64::try_from(ns).unwrap_or(i64::MAX)
}
