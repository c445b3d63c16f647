//! From device events to kernels. The work of a call belongs to a kernel where the call launched only that one: of several
//! it is not known which does what.

use super::account::Call;
use super::devices::{Peaks, peaks};
use super::{RooflineRow, events};
use crate::Selection;
use crate::context::AnalysisContext;
use crate::flops::Works;
use crate::groups::GroupLabel;
use crate::op_tree::OpTree;
use crate::windows::Windows;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_trace::Device;

/// The device work counted at one operator, and the kernel that does it.
#[derive(Clone, Copy, Default)]
struct CallOfKernel {
    call: Call,
    /// `None` before the first kernel, and `Some(None)` from the second name on.
    name: Option<Option<StringId>>,
}

/// A row of each kernel, each with its rank.
pub(super) fn rows(context: &AnalysisContext<'_>) -> Vec<(u32, RooflineRow)> {
    let AnalysisContext { trace, selection, .. } = *context;
    let (tree, works) = (context.get::<OpTree>(), context.get::<Works>());
    let is_asked = Windows::of(trace, selection).ops(trace, tree);
    let mut rows: BTreeMap<(u32, StringId), RooflineRow> = BTreeMap::new();
    let mut calls: FxHashMap<u32, CallOfKernel> = FxHashMap::default();
    let mut add = |event: &stepscope_trace::DeviceEvent| {
        let (name, dur_ns) = (trace.slices.name[event.slice.index()], trace.slices.dur_ns[event.slice.index()]);
        let row = rows.entry((trace.devices[event.device.index()].rank, name)).or_default();
        row.count += 1;
        row.device_ns = row.device_ns.saturating_add(dur_ns);
    };
    events(trace, selection).filter(|event| tree.row(event.op).is_none()).for_each(|event| add(&event));
    // As in the rows of operators, a call has all of its device work where it begins.
    let whole = Selection { step: None, window: None, complete_steps: false, ..selection.clone() };
    for event in events(trace, &whole) {
        let Some(op) = tree.row(event.op) else { continue };
        let op = works.owner(op).unwrap_or(op);
        if !is_asked[op as usize] {
            continue;
        }
        add(&event);
        let of = calls.entry(op).or_default();
        of.call.add(&event, trace.slices.dur_ns[event.slice.index()]);
        let name = trace.slices.name[event.slice.index()];
        of.name = Some(Some(name).filter(|_| of.name.is_none_or(|before| before == Some(name))));
    }
    let peaks: Vec<Option<&Peaks>> = trace.devices.iter().map(|device: &Device| peaks(device)).collect();
    for (op, CallOfKernel { call, name }) in calls {
        let (Some(Some(name)), Some(device), Some(work)) = (name, call.device, works.get(op)) else { continue };
        let row = rows.entry((trace.devices[device.index()].rank, name)).or_default();
        row.add(&call, &work, peaks[device.index()]);
    }
    let labelled = |((rank, name), row): ((u32, StringId), RooflineRow)| {
        let label = GroupLabel { name: trace.strings.get(name).to_string(), ..GroupLabel::default() };
        (rank, RooflineRow { label: Some(label), ..row })
    };
    rows.into_iter().map(labelled).collect()
}
