//! From operators and device events to the sums of every row: one pass over each.

use super::Operator;
use crate::flops::Works;
use crate::groups::{Groups, operator_group_by};
use crate::op_classes::OpClasses;
use crate::op_tree::OpTree;
use crate::{AnalysisContext, windows::Windows};
use rustc_hash::FxHashMap;
use stepscope_base::{Span, StringId};
use stepscope_trace::{DeviceId, Trace};

/// Sums by group.
pub(super) struct Account<'a> {
    tree: &'a OpTree,
    groups: Groups,
    /// Whether each operator was asked for.
    is_asked: Vec<bool>,
    /// Whether each operator is the only thing inside one of the same name: both are one call.
    is_same_call: Vec<bool>,
    rows: Vec<Operator>,
    /// What each group saw last, so that it sees nothing twice.
    seen: Vec<u32>,
}

impl<'a> Account<'a> {
    /// The sums of everything asked for.
    pub(super) fn of(context: &'a AnalysisContext<'_>) -> Self {
        let (trace, tree) = (context.trace, context.get::<OpTree>());
        let mut groups = Groups::by(context, operator_group_by(context.selection)).clone();
        let mut is_asked = Windows::of(trace, context.selection).ops(trace, tree);
        let is_same_call: Vec<bool> = (0..tree.len()).map(|op| is_same_call(trace, tree, op)).collect();
        for op in (0..tree.len()).filter(|op| is_same_call[*op]) {
            let outer = tree.parent[op] as usize;
            groups.of_op[op] = groups.of_op[outer];
            is_asked[op] = is_asked[outer];
        }
        let mut account = Self {
            is_asked,
            is_same_call,
            rows: vec![Operator::default(); groups.labels.len()],
            seen: vec![0; groups.labels.len()],
            tree,
            groups,
        };
        account.add_host_time(trace);
        account.add_eligibility(trace);
        account.add_device_time(trace);
        account.add_work(context.get::<Works>());
        account
    }

    /// Rows with calls, in no particular order.
    pub(super) fn into_rows(self) -> Vec<Operator> {
        let rows = self.rows.into_iter().zip(self.groups.labels).map(|(row, label)| Operator { label, ..row });
        rows.filter(|row| row.count > 0).collect()
    }

    fn add_host_time(&mut self, trace: &Trace) {
        let durations = self.tree.slice.iter().map(|slice| trace.slices.dur_ns[slice.index()]);
        let mut self_ns: Vec<i64> = durations.collect();
        // Children stand behind their parents, so what is subtracted is still a whole duration.
        for op in (0..self.tree.len()).rev() {
            let dur_ns = trace.slices.dur_ns[self.tree.slice[op].index()];
            if let Some(around_ns) = self_ns.get_mut(self.tree.parent[op] as usize) {
                *around_ns -= dur_ns;
            }
            if self.is_asked[op] {
                let row = &mut self.rows[self.groups.of_op[op] as usize];
                row.host_self_ns = row.host_self_ns.saturating_add(self_ns[op]);
                if !self.is_same_call[op] {
                    row.count += 1;
                    row.host_total_ns = row.host_total_ns.saturating_add(dur_ns);
                }
            }
        }
    }

    fn add_eligibility(&mut self, trace: &Trace) {
        let mut classes = OpClasses::new(&trace.strings);
        let mut is_eligible = vec![false; self.tree.len()];
        for op in (0..self.tree.len()).rev() {
            let name: StringId = trace.slices.name[self.tree.slice[op].index()];
            is_eligible[op] |= classes.get(name).is_tensor_core_eligible;
            if !is_eligible[op] {
                continue;
            }
            if let Some(around) = is_eligible.get_mut(self.tree.parent[op] as usize) {
                *around = true;
            }
            if self.is_asked[op] {
                self.rows[self.groups.of_op[op] as usize].is_tensor_core_eligible = true;
            }
        }
    }

    fn add_device_time(&mut self, trace: &Trace) {
        let mut reach = Reach::new(trace.devices.len(), self.rows.len());
        for (number, event) in (1..).zip(trace.device_events.iter()) {
            let Some(launcher) = self.tree.row(event.op) else { continue };
            let span = trace.slices.span(event.slice);
            let dur_ns = span.duration_ns();
            for op in self.tree.with_enclosing(launcher).filter(|op| self.is_asked[*op as usize]) {
                let group = self.groups.of_op[op as usize];
                let at = group as usize;
                let row = &mut self.rows[at];
                if op == launcher {
                    row.device_self_ns = row.device_self_ns.saturating_add(dur_ns);
                }
                if self.is_same_call[op as usize] {
                    continue;
                }
                row.device_total_ns = row.device_total_ns.saturating_add(dur_ns);
                if event.uses_tensor_cores {
                    row.tensor_core_ns = row.tensor_core_ns.saturating_add(dur_ns);
                }
                if std::mem::replace(&mut self.seen[at], number) != number {
                    row.device_union_ns = row.device_union_ns.saturating_add(reach.extend(event.device, group, span));
                }
            }
        }
    }

    fn add_work(&mut self, works: &Works) {
        let mut has_unknown_bytes = vec![false; self.rows.len()];
        // Of several calls of one row around the work the outermost has it: a window that begins between them does not
        // give it to both sides.
        let outermost = &mut self.seen;
        for (counted, work) in works.iter() {
            self.tree.with_enclosing(counted).for_each(|op| outermost[self.groups.of_op[op as usize] as usize] = op);
            for op in self.tree.with_enclosing(counted).filter(|op| self.is_asked[*op as usize]) {
                let group = self.groups.of_op[op as usize] as usize;
                if outermost[group] != op {
                    continue;
                }
                let row = &mut self.rows[group];
                row.flops = Some(row.flops.unwrap_or(0).saturating_add(work.flops));
                has_unknown_bytes[group] |= work.bytes.is_none();
                row.bytes = Some(row.bytes.unwrap_or(0).saturating_add(work.bytes.unwrap_or(0)));
            }
        }
        let unknown = self.rows.iter_mut().zip(has_unknown_bytes).filter(|(_, is_unknown)| *is_unknown);
        unknown.for_each(|(row, _)| row.bytes = None);
    }
}

/// True when an operator is all that lies inside one of the same name.
fn is_same_call(trace: &Trace, tree: &OpTree, op: usize) -> bool {
    let slices = &trace.slices;
    let inner = tree.slice[op];
    let Some(outer) = tree.slice.get(tree.parent[op] as usize).copied() else { return false };
    let is_same = slices.name[inner.index()] == slices.name[outer.index()];
    if !is_same || slices.parent(inner) != Some(outer) || inner.index() != outer.index() + 1 {
        return false;
    }
    // What starts before the inner one ends lies inside it; the next would be its sibling.
    let end = trace.tracks[slices.track[inner.index()].index()].slices.end as usize;
    let after = &slices.start_ns[inner.index() + 1..end];
    let end_ns = slices.span(inner).end_ns;
    let next = inner.index() + 1 + after.partition_point(|start_ns| *start_ns < end_ns);
    next >= end || slices.parent[next] != Some(outer)
}

/// How far each row's device work reaches on each device. Events come by start, so that is all a union has to remember.
struct Reach {
    groups: usize,
    /// By device and group; empty when there are too many of them.
    dense: Vec<i64>,
    sparse: FxHashMap<(DeviceId, u32), i64>,
}

impl Reach {
    const DENSE_MAX: usize = 1 << 22;

    fn new(devices: usize, groups: usize) -> Self {
        let size = devices.saturating_mul(groups);
        let dense = vec![i64::MIN; if size <= Self::DENSE_MAX { size } else { 0 }];
        Self { groups, dense, sparse: FxHashMap::default() }
    }

    /// Adds a span; returns how much of it is new.
    fn extend(&mut self, device: DeviceId, group: u32, span: Span) -> i64 {
        let reach_ns = match self.dense.is_empty() {
            false => &mut self.dense[device.index() * self.groups + group as usize],
            true => self.sparse.entry((device, group)).or_insert(i64::MIN),
        };
        let new_ns = span.end_ns - (*reach_ns).clamp(span.start_ns, span.end_ns);
        *reach_ns = (*reach_ns).max(span.end_ns);
        new_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_does_not_depend_on_how_its_reach_is_kept() {
        let spans = [(0, 5), (2, 4), (3, 9), (20, 20), (20, 22)].map(|(start, end)| Span::new(start, end));
        let mut dense = Reach::new(2, 3);
        let mut sparse = Reach { dense: Vec::new(), ..Reach::new(2, 3) };
        for reach in [&mut dense, &mut sparse] {
            assert_eq!(spans.map(|span| reach.extend(DeviceId(1), 2, span)), [5, 0, 4, 0, 2]);
            assert_eq!(reach.extend(DeviceId(0), 2, spans[0]), 5);
        }
    }
}
