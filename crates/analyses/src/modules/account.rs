//! What each module did itself, then summed towards the root.

use super::{ModuleRow, PassTime};
use crate::flops::Works;
use crate::module_contexts::{Context, ModuleContexts};
use crate::op_tree::OpTree;
use crate::windows::Windows;
use crate::{AnalysisContext, Selection};
use stepscope_trace::{SliceId, Trace};

/// What a module did without the modules that it calls.
#[derive(Clone, Copy, Default)]
struct Own {
    count: i64,
    /// Host and device time, forward and backward.
    host_ns: [i64; 2],
    device_ns: [i64; 2],
    allocated_bytes: i64,
    flops: Option<i64>,
    /// True when anything of it was asked for.
    is_there: bool,
}

fn add(sum: &mut i64, part: i64) {
    *sum = sum.saturating_add(part);
}

fn add_known(sum: &mut Option<i64>, part: Option<i64>) {
    if let Some(part) = part {
        *sum = Some(sum.unwrap_or(0).saturating_add(part));
    }
}

/// What each node of the tree did itself.
pub(super) struct Account {
    contexts: ModuleContexts,
    own: Vec<Own>,
    has_memory: bool,
}

impl Account {
    /// Everything asked for.
    pub(super) fn of(context: &AnalysisContext<'_>) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let contexts = ModuleContexts::of(trace);
        let own = vec![Own::default(); contexts.nodes.len()];
        let has_memory = !trace.memory.is_empty();
        let mut account = Self { contexts, own, has_memory };
        if !account.own.is_empty() {
            account.add_calls(trace, selection);
            account.add_device_time(trace, selection);
            account.add_memory_and_work(context);
        }
        account
    }

    fn own(&mut self, slice: SliceId) -> Option<(&mut Own, Context)> {
        let context = self.contexts.get(slice)?;
        let own = &mut self.own[context.module as usize];
        own.is_there = true;
        Some((own, context))
    }

    fn add_calls(&mut self, trace: &Trace, selection: &Selection) {
        let windows = Windows::of(trace, selection);
        for frame in &self.contexts.frames {
            let track = &trace.tracks[trace.slices.track[frame.slice.index()].index()];
            let start_ns = trace.slices.start_ns[frame.slice.index()];
            if windows.track(trace, track).is_some_and(|windows| windows.contains(start_ns)) {
                let own = &mut self.own[frame.context.module as usize];
                own.is_there = true;
                own.count += i64::from(frame.is_call);
                add(&mut own.host_ns[usize::from(frame.context.is_backward)], frame.self_ns);
            }
        }
    }

    fn add_device_time(&mut self, trace: &Trace, selection: &Selection) {
        for event in selection.device_events(trace) {
            if let Some((own, context)) = event.launch.and_then(|launch| self.own(launch)) {
                let dur_ns = trace.slices.dur_ns[event.slice.index()];
                add(&mut own.device_ns[usize::from(context.is_backward)], dur_ns);
            }
        }
    }

    fn add_memory_and_work(&mut self, context: &AnalysisContext<'_>) {
        let (trace, tree) = (context.trace, context.get::<OpTree>());
        let is_asked = Windows::of(trace, context.selection).ops(trace, tree);
        for event in trace.memory.iter().filter(|event| event.bytes > 0) {
            let Some(op) = tree.row(event.op).filter(|op| is_asked[*op as usize]) else { continue };
            if let Some((own, _)) = self.own(tree.slice[op as usize]) {
                add(&mut own.allocated_bytes, event.bytes);
            }
        }
        for (op, work) in context.get::<Works>().iter().filter(|(op, _)| is_asked[*op as usize]) {
            if let Some((own, _)) = self.own(tree.slice[op as usize]) {
                add_known(&mut own.flops, Some(work.flops));
            }
        }
    }

    /// Rows in order of the tree.
    pub(super) fn into_rows(self, trace: &Trace) -> Vec<ModuleRow> {
        let nodes = &self.contexts.nodes;
        let mut total = self.own.clone();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        // A node stands behind its parent.
        for (at, node) in nodes.iter().enumerate().rev() {
            let Some(parent) = node.parent else { continue };
            children[parent as usize].push(at as u32);
            let (part, sum) = (total[at], &mut total[parent as usize]);
            for pass in 0..2 {
                add(&mut sum.host_ns[pass], part.host_ns[pass]);
                add(&mut sum.device_ns[pass], part.device_ns[pass]);
            }
            add(&mut sum.allocated_bytes, part.allocated_bytes);
            add_known(&mut sum.flops, part.flops);
            sum.is_there |= part.is_there;
        }
        let mut rows: Vec<ModuleRow> = Vec::new();
        let roots = (0..nodes.len() as u32).filter(|at| nodes[*at as usize].parent.is_none());
        let mut pending: Vec<(u32, Option<usize>)> = roots.map(|root| (root, None)).collect();
        pending.reverse();
        while let Some((node, parent)) = pending.pop() {
            let at = node as usize;
            if !total[at].is_there {
                continue;
            }
            pending.extend(children[at].iter().map(|child| (*child, Some(rows.len()))));
            let name = trace.strings.get(nodes[at].name).to_string();
            let around = parent.map(|parent| &rows[parent]);
            let path = around.map_or_else(|| name.clone(), |around| format!("{}.{name}", around.path));
            let depth = around.map_or(0, |around| around.depth + 1);
            let (own, total) = (&self.own[at], &total[at]);
            let pass = |pass: usize| PassTime {
                host_total_ns: total.host_ns[pass],
                host_self_ns: own.host_ns[pass],
                device_total_ns: total.device_ns[pass],
                device_self_ns: own.device_ns[pass],
            };
            let parent = around.map(|around| around.path.clone());
            rows.push(ModuleRow {
                path,
                name,
                depth,
                parent,
                count: own.count,
                forward: pass(0),
                backward: pass(1),
                allocated_bytes: self.has_memory.then_some(total.allocated_bytes),
                allocated_self_bytes: self.has_memory.then_some(own.allocated_bytes),
                flops: total.flops,
            });
        }
        rows
    }
}
