//! What each module did itself, then summed towards the root.

use super::profile::{ModuleProfile, forward_ns};
use super::{ModuleRow, PassTime};
use crate::context::Shared;
use crate::flops::Works;
use crate::joined::Joinable;
use crate::module_contexts::{Context, ModuleContexts};
use crate::op_tree::OpTree;
use crate::windows::Windows;
use crate::{AnalysisContext, Selection};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use stepscope_base::StringId;
use stepscope_trace::{ModuleCall, ModuleSize, SliceId, Trace};

/// What a module did without the modules that it calls.
#[derive(Clone, Copy, Default)]
struct Own {
    count: i64,
    /// Host and device time, forward and backward.
    host_ns: [i64; 2],
    device_ns: [i64; 2],
    allocated_bytes: i64,
    /// Operations, forward and backward.
    flops: [Option<i64>; 2],
    /// Multiplications with an addition of the forward pass.
    forward_macs: Option<i64>,
    /// When the first of it begins; `None` when nothing of it was asked for.
    first_ns: Option<i64>,
}

impl Own {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        for pass in 0..2 {
            add(&mut self.host_ns[pass], other.host_ns[pass]);
            add(&mut self.device_ns[pass], other.device_ns[pass]);
            add_known(&mut self.flops[pass], other.flops[pass]);
        }
        add(&mut self.allocated_bytes, other.allocated_bytes);
        add_known(&mut self.forward_macs, other.forward_macs);
        self.first_ns = [self.first_ns, other.first_ns].into_iter().flatten().min();
    }
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
struct Account {
    contexts: ModuleContexts,
    own: Vec<Own>,
}

impl Account {
    fn own(&mut self, trace: &Trace, slice: SliceId) -> Option<(&mut Own, Context)> {
        let context = self.contexts.get(slice)?;
        Some((self.own_of(trace, slice, context), context))
    }

    fn own_of(&mut self, trace: &Trace, slice: SliceId, context: Context) -> &mut Own {
        let (own, start_ns) = (&mut self.own[context.module as usize], trace.slices.start_ns[slice.index()]);
        own.first_ns = Some(own.first_ns.map_or(start_ns, |first_ns| first_ns.min(start_ns)));
        own
    }

    fn add_calls(&mut self, trace: &Trace, selection: &Selection) {
        let windows = Windows::of(trace, selection);
        for frame in std::mem::take(&mut self.contexts.frames) {
            if windows.has_slice(trace, frame.slice) {
                let own = self.own_of(trace, frame.slice, frame.context);
                own.count += i64::from(frame.is_call);
                add(&mut own.host_ns[usize::from(frame.context.is_backward)], frame.self_ns);
            }
        }
    }

    fn add_device_time(&mut self, trace: &Trace, selection: &Selection) {
        for event in selection.device_events(trace) {
            if let Some((own, context)) = event.launch.and_then(|launch| self.own(trace, launch)) {
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
            if let Some((own, _)) = self.own(trace, tree.slice[op as usize]) {
                add(&mut own.allocated_bytes, event.bytes);
            }
        }
        for (op, work) in context.get::<Works>().iter().filter(|(op, _)| is_asked[*op as usize]) {
            if let Some((own, context)) = self.own(trace, tree.slice[op as usize]) {
                add_known(&mut own.flops[usize::from(context.is_backward)], Some(work.flops));
                if !context.is_backward {
                    let macs = if work.is_product { work.flops / 2 } else { 0 };
                    add_known(&mut own.forward_macs, Some(macs));
                }
            }
        }
    }
}

/// Every place in the tree of calls, with what the module there did itself.
#[derive(Default)]
pub(crate) struct ModuleTree {
    /// A node stands behind its parent.
    nodes: Vec<Node>,
    has_memory: bool,
}

struct Node {
    name: Arc<str>,
    parent: Option<u32>,
    kind: Kind,
    own: Own,
}

/// What is known of a module beside its calls.
#[derive(Clone, Default)]
struct Kind {
    class: Option<Arc<str>>,
    size: Option<ModuleSize>,
}

impl Kind {
    /// Takes over what another call or rank knows: the largest size.
    fn learn(&mut self, class: Option<&Arc<str>>, size: Option<ModuleSize>) {
        if self.class.is_none() {
            self.class = class.cloned();
        }
        self.size = self.size.max(size);
    }

    /// Of each node.
    fn of_nodes(trace: &Trace, contexts: &ModuleContexts) -> Vec<Self> {
        let mut kinds = vec![Self::default(); contexts.nodes.len()];
        let mut classes: FxHashMap<StringId, Arc<str>> = FxHashMap::default();
        for ModuleCall { slice, class, size } in &trace.module_calls {
            let Some(context) = contexts.get(*slice) else { continue };
            let class = classes.entry(*class).or_insert_with(|| trace.strings.get(*class).into());
            kinds[context.module as usize].learn(Some(class), *size);
        }
        kinds
    }
}

impl Shared for ModuleTree {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let contexts = ModuleContexts::of(trace);
        let kinds = Kind::of_nodes(trace, &contexts);
        let own = vec![Own::default(); contexts.nodes.len()];
        let mut account = Account { contexts, own };
        if account.own.is_empty() {
            return Self::default();
        }
        account.add_calls(trace, selection);
        account.add_device_time(trace, selection);
        account.add_memory_and_work(context);
        let name = |id| trace.strings.get(id).into();
        let nodes = account.contexts.nodes.iter().zip(account.own).zip(kinds);
        let nodes =
            nodes.map(|((node, own), kind)| Node { name: name(node.name), parent: node.parent, kind, own }).collect();
        let has_memory = trace.memory.iter().any(|event| selection.has_rank(trace.rank_of_track(event.track)));
        Self { nodes, has_memory }
    }
}

impl Joinable for ModuleTree {
    fn joined(of_ranks: Vec<Self>) -> Self {
        let has_memory = of_ranks.iter().any(|tree| tree.has_memory);
        let mut nodes: Vec<Node> = Vec::new();
        let mut known: FxHashMap<(Option<u32>, Arc<str>), u32> = FxHashMap::default();
        for tree in of_ranks {
            let mut places: Vec<u32> = Vec::with_capacity(tree.nodes.len());
            for Node { name, parent, kind, own } in tree.nodes {
                let parent = parent.map(|parent| places[parent as usize]);
                let place = *known.entry((parent, Arc::clone(&name))).or_insert_with(|| {
                    nodes.push(Node { name, parent, kind: Kind::default(), own: Own::default() });
                    nodes.len() as u32 - 1
                });
                nodes[place as usize].own.add(&own);
                nodes[place as usize].kind.learn(kind.class.as_ref(), kind.size);
                places.push(place);
            }
        }
        Self { nodes, has_memory }
    }
}

impl ModuleTree {
    /// Rows in order of the tree, of what was asked for.
    pub(super) fn rows(&self) -> Vec<ModuleRow> {
        let nodes = &self.nodes;
        let mut total: Vec<Own> = nodes.iter().map(|node| node.own).collect();
        for (at, node) in nodes.iter().enumerate().rev() {
            let Some(parent) = node.parent else { continue };
            let part = total[at];
            total[parent as usize].add(&part);
        }
        let mut order: Vec<u32> = (0..nodes.len() as u32).filter(|at| total[*at as usize].first_ns.is_some()).collect();
        order.sort_by(|a, b| {
            let key = |at: &u32| (total[*at as usize].first_ns, &nodes[*at as usize].name);
            key(b).cmp(&key(a))
        });
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        let mut pending: Vec<(u32, Option<usize>)> = Vec::new();
        for at in order {
            match nodes[at as usize].parent {
                Some(parent) => children[parent as usize].push(at),
                None => pending.push((at, None)),
            }
        }
        let is_on_device = total.iter().any(|own| own.device_ns[0] > 0);
        let mut rows: Vec<ModuleRow> = Vec::new();
        while let Some((node, parent)) = pending.pop() {
            let at = node as usize;
            pending.extend(children[at].iter().map(|child| (*child, Some(rows.len()))));
            let name = nodes[at].name.to_string();
            let around = parent.map(|parent| &rows[parent]);
            let path = around.map_or_else(|| name.clone(), |around| format!("{}.{name}", around.path));
            let depth = around.map_or(0, |around| around.depth + 1);
            let (own, total) = (&nodes[at].own, &total[at]);
            let pass = |pass: usize| PassTime {
                host_total_ns: total.host_ns[pass],
                host_self_ns: own.host_ns[pass],
                device_total_ns: total.device_ns[pass],
                device_self_ns: own.device_ns[pass],
            };
            let parent = around.map(|around| around.path.clone());
            let kind = &nodes[at].kind;
            let mut profile = ModuleProfile {
                size: kind.size,
                forward_macs: total.forward_macs,
                forward_flops: total.flops[0],
                backward_flops: total.flops[1],
                forward_ns: forward_ns(&pass(0), is_on_device),
                ..ModuleProfile::default()
            };
            profile.whole = around.map_or_else(|| profile.as_whole(), |around| around.profile.whole);
            rows.push(ModuleRow {
                path,
                module_class: kind.class.as_deref().map(str::to_string),
                depth,
                count: own.count,
                profile,
                forward: pass(0),
                backward: pass(1),
                allocated_bytes: self.has_memory.then_some(total.allocated_bytes),
                allocated_self_bytes: self.has_memory.then_some(own.allocated_bytes),
                name,
                parent,
            });
        }
        rows
    }
}
