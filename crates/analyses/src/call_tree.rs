//! # Definition
//! For each place in the tree of calls: how often and for how long it ran, what its device work took, what it allocated and
//! computed. A place is a name below the same callers: functions of Python, modules, labels, operators, calls of the
//! device's API, and below these the device work that they launched. Total has what is called from there in it, self has not; self times sum to the time of all threads in such
//! calls.
//!
//! By callers the tree is turned round: each name that has something of its own is a root, and below it stand those who
//! call it, with what it took for them. Totals there are of the root's own times.
//!
//! # Units
//! Nanoseconds; bytes; operations, of which a multiplication with an addition is two; counts of calls.
//!
//! # Source
//! Calls as they were recorded, by the thread that they ran on. Work by the formulas that `operators` has.
//!
//! # Edge cases
//! Every thread begins anew: what runs a backward pass is a root. Steps are one place, whatever their numbers. For one step,
//! calls that begin in it, and device work launched in it; what encloses them and began before is not there. Bytes are what
//! was allocated, whether or not it was freed. Device work without a known launch is left out.

use crate::context::Shared;
use crate::flops::Works;
use crate::joined::Joinable;
use crate::op_tree::{NONE, OpTree};
use crate::{Analysis, AnalysisContext, GroupBy, Joined, Needs, Options, Outcome, Selection};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;
use stepscope_base::StringId;
use stepscope_trace::{SliceId, SliceKind};

columns! {
    /// A name below the same callers; by callers, a name above the same ones that it calls.
    #[derive(Clone, PartialEq, Debug)]
    pub struct CallRow {
        /// The number of the row, from 0.
        id: i64 => Count,
        /// The `id` of the row above it. Absent for a root.
        parent: Option<i64> => Count,
        /// Number of rows above it.
        depth: i64 => Count,
        /// The name of the function, module, label, operator, call of the device's API, or device work.
        name: Arc<str> => Text,
        /// What it is: `python`, `module`, `label`, `op`, `input`, `api`, `kernel`, `copy` or `fill`.
        kind: &'static str => Text,
        /// Number of calls.
        count: i64 => Count,
        /// Time on the host with what is called from there.
        host_total_ns: i64 => Nanoseconds,
        /// Time on the host without what is called from there.
        host_self_ns: i64 => Nanoseconds,
        /// Sum of the durations of the device work launched there, or in what is called from there.
        device_total_ns: i64 => Nanoseconds,
        /// Sum of the durations of the device work, where the row is device work.
        device_self_ns: i64 => Nanoseconds,
        /// Bytes allocated there, or in what is called from there.
        allocated_bytes: i64 => Bytes,
        /// Arithmetic operations of what is called there, of that whose work is known.
        flops: i64 => Count,
    }
}

/// What a place has of its own.
#[derive(Clone, Copy, Default)]
struct Own {
    count: i64,
    host_ns: i64,
    device_ns: i64,
    allocated_bytes: i64,
    flops: i64,
}

impl Own {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        for (sum, part) in [
            (&mut self.host_ns, other.host_ns),
            (&mut self.device_ns, other.device_ns),
            (&mut self.allocated_bytes, other.allocated_bytes),
            (&mut self.flops, other.flops),
        ] {
            *sum = sum.saturating_add(part);
        }
    }

    fn is_nothing(&self) -> bool {
        [self.host_ns, self.device_ns, self.allocated_bytes, self.flops] == [0; 4]
    }
}

/// A name, and what it is.
type Name = (Arc<str>, &'static str);

struct Node {
    name: Name,
    /// The number of the place above it, or [`NONE`].
    parent: u32,
    own: Own,
}

/// Places; those that call stand before what they call.
#[derive(Default)]
pub(crate) struct CallTree {
    nodes: Vec<Node>,
    by_name: FxHashMap<(u32, Name), u32>,
}

impl CallTree {
    fn node(&mut self, parent: u32, name: &Name) -> u32 {
        let next = self.nodes.len() as u32;
        *self.by_name.entry((parent, name.clone())).or_insert_with(|| {
            self.nodes.push(Node { name: name.clone(), parent, own: Own::default() });
            next
        })
    }

    /// Each name with something of its own, and below it those who call it.
    fn turned(&self) -> Self {
        let mut turned = Self::default();
        for node in self.nodes.iter().filter(|node| !node.own.is_nothing()) {
            let (mut at, mut above) = (turned.node(NONE, &node.name), node.parent);
            turned.nodes[at as usize].own.add(&node.own);
            while let Some(caller) = self.nodes.get(above as usize) {
                at = turned.node(at, &caller.name);
                turned.nodes[at as usize].own.add(&node.own);
                above = caller.parent;
            }
        }
        turned
    }

    /// What each place has with everything below it.
    fn totals(&self) -> Vec<Own> {
        let mut totals: Vec<Own> = self.nodes.iter().map(|node| node.own).collect();
        for at in (0..self.nodes.len()).rev() {
            let own = totals[at];
            if let Some(above) = totals.get_mut(self.nodes[at].parent as usize) {
                above.add(&Own { count: 0, ..own });
            }
        }
        totals
    }
}

/// What a place of that kind is called; `None` for what is in no tree of calls.
fn kind_of(kind: SliceKind) -> Option<&'static str> {
    use SliceKind::{Annotation, DataLoader, Driver, HostSync, Module, Op, Optimizer, PythonFunction, Runtime, Step};
    Some(match kind {
        Op => "op",
        Annotation | Step | Optimizer => "label",
        DataLoader => "input",
        PythonFunction => "python",
        Module => "module",
        Runtime | Driver | HostSync => "api",
        _ => return None,
    })
}

impl Shared for CallTree {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let slices = &trace.slices;
        let mut tree = Self::default();
        let mut nodes = vec![NONE; slices.len()];
        // Names by their number, so that each is looked up as a text once below each caller.
        let mut known: FxHashMap<(u32, StringId, &'static str), u32> = FxHashMap::default();
        let step: Arc<str> = "step".into();
        for id in selection.slices(trace) {
            let Some(kind) = kind_of(slices.kind(id)) else { continue };
            // What encloses a call stands before it; where that was not asked for, it is called by nobody.
            let around = slices.with_ancestors(id).skip(1).map(|around| nodes[around.index()]);
            let parent = around.into_iter().find(|node| *node != NONE).unwrap_or(NONE);
            let is_step = slices.kind(id) == SliceKind::Step;
            let name = if is_step { stepscope_base::StringTable::EMPTY } else { slices.name[id.index()] };
            let node = *known.entry((parent, name, kind)).or_insert_with(|| {
                let text = if is_step { Arc::clone(&step) } else { trace.strings.get(name).into() };
                tree.node(parent, &(text, kind))
            });
            nodes[id.index()] = node;
            let own = &mut tree.nodes[node as usize].own;
            own.count += 1;
            own.host_ns = own.host_ns.saturating_add(slices.dur_ns[id.index()]);
        }
        // What is called from a call is no time of its own, whether or not it was asked for.
        let whole = Selection { step: None, window: None, complete_steps: false, ..selection.clone() };
        for id in whole.slices(trace).filter(|id| kind_of(slices.kind(*id)).is_some()) {
            let caller = slices.with_ancestors(id).skip(1).find(|around| kind_of(slices.kind(*around)).is_some());
            if let Some(caller) = caller.and_then(|caller| tree.nodes.get_mut(nodes[caller.index()] as usize)) {
                caller.own.host_ns = caller.own.host_ns.saturating_sub(slices.dur_ns[id.index()]);
            }
        }
        let node_of = |slice: SliceId| {
            let around = slices.with_ancestors(slice).map(|around| nodes[around.index()]);
            around.into_iter().find(|node| *node != NONE)
        };
        for event in selection.device_events(trace) {
            let Some(launch) = event.launch.or(event.op).and_then(node_of) else { continue };
            let kind = match slices.kind(event.slice) {
                SliceKind::Memcpy => "copy",
                SliceKind::Memset => "fill",
                _ => "kernel",
            };
            let name = slices.name[event.slice.index()];
            let node = *known
                .entry((launch, name, kind))
                .or_insert_with(|| tree.node(launch, &(trace.strings.get(name).into(), kind)));
            let own = &mut tree.nodes[node as usize].own;
            own.count += 1;
            own.device_ns = own.device_ns.saturating_add(slices.dur_ns[event.slice.index()]);
        }
        for event in trace.memory.iter().filter(|event| event.bytes > 0) {
            let node = event.op.map(|op| nodes[op.index()]).filter(|node| *node != NONE);
            if let Some(node) = node {
                let own = &mut tree.nodes[node as usize].own;
                own.allocated_bytes = own.allocated_bytes.saturating_add(event.bytes);
            }
        }
        let ops = context.get::<OpTree>();
        for (op, work) in context.get::<Works>().iter() {
            let node = nodes[ops.slice[op as usize].index()];
            if let Some(node) = tree.nodes.get_mut(node as usize) {
                node.own.flops = node.own.flops.saturating_add(work.flops);
            }
        }
        tree
    }
}

impl Joinable for CallTree {
    fn joined(of_ranks: Vec<Self>) -> Self {
        let mut tree = Self::default();
        for of in of_ranks {
            let mut places: Vec<u32> = Vec::with_capacity(of.nodes.len());
            for node in &of.nodes {
                let parent = if node.parent == NONE { NONE } else { places[node.parent as usize] };
                let place = tree.node(parent, &node.name);
                tree.nodes[place as usize].own.add(&node.own);
                places.push(place);
            }
        }
        tree
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { group_by: &[GroupBy::Callees, GroupBy::Callers], ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::Joined(Joined::by::<CallTree>()));

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows_of(context))
}

fn rows_of(context: &AnalysisContext<'_>) -> Vec<CallRow> {
    let tree = context.get::<CallTree>();
    if context.selection.group_by != Some(GroupBy::Callers) {
        return rows(tree, &tree.totals());
    }
    // What is below a root there is a part of it already.
    let turned = tree.turned();
    rows(&turned, &turned.nodes.iter().map(|node| node.own).collect::<Vec<_>>())
}

/// The most time comes first, a row before those below it.
fn rows(tree: &CallTree, totals: &[Own]) -> Vec<CallRow> {
    let nodes = &tree.nodes;
    let mut depths: Vec<i64> = Vec::with_capacity(nodes.len());
    for node in nodes {
        depths.push(depths.get(node.parent as usize).map_or(0, |above| above + 1));
    }
    // Of equal times, whatever the order in which calls were recorded: by the names above, then by the own one.
    let by_path = places_by_path(nodes);
    let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
    order.sort_by_key(|at| {
        let (at, total) = (*at as usize, &totals[*at as usize]);
        (Reverse(total.host_ns.max(total.device_ns)), depths[at], by_path[at])
    });
    let mut place = vec![0_i64; nodes.len()];
    (0_i64..).zip(&order).for_each(|(row, at)| place[*at as usize] = row);
    let row = |(id, at): (i64, &u32)| {
        let (node, total) = (&nodes[*at as usize], &totals[*at as usize]);
        CallRow {
            id,
            parent: (node.parent != NONE).then(|| place[node.parent as usize]),
            depth: depths[*at as usize],
            name: Arc::clone(&node.name.0),
            kind: node.name.1,
            count: node.own.count,
            host_total_ns: total.host_ns,
            host_self_ns: node.own.host_ns,
            device_total_ns: total.device_ns,
            device_self_ns: node.own.device_ns,
            allocated_bytes: total.allocated_bytes,
            flops: total.flops,
        }
    };
    (0..).zip(&order).map(row).collect()
}

/// Where each node stands when all are in the order of their paths.
fn places_by_path(nodes: &[Node]) -> Vec<u32> {
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    let mut waiting: Vec<u32> = Vec::new();
    for (at, node) in (0_u32..).zip(nodes) {
        below.get_mut(node.parent as usize).unwrap_or(&mut waiting).push(at);
    }
    let first_last = |siblings: &mut Vec<u32>| {
        siblings.sort_by(|one, other| nodes[*other as usize].name.cmp(&nodes[*one as usize].name));
    };
    first_last(&mut waiting);
    let mut places = vec![0; nodes.len()];
    for place in 0_u32.. {
        let Some(at) = waiting.pop() else { break };
        places[at as usize] = place;
        let mut next = std::mem::take(&mut below[at as usize]);
        first_last(&mut next);
        waiting.append(&mut next);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators;
    use proptest::prelude::*;
    use stepscope_trace::Trace;
    use stepscope_trace::drawn::drawn;

    fn found(trace: &Trace, group_by: Option<GroupBy>) -> Vec<CallRow> {
        let selection = Selection { group_by, ..Selection::default() };
        rows_of(&AnalysisContext::new(trace, &selection))
    }

    fn lines(rows: &[CallRow]) -> Vec<String> {
        let line = |row: &CallRow| {
            let above = row.parent.map_or("–", |above| &*rows[above as usize].name);
            let us = [row.host_total_ns, row.host_self_ns, row.device_total_ns].map(|ns| ns / 1_000);
            format!("{} < {above} x{} {us:?}", row.name, row.count)
        };
        rows.iter().map(line).collect()
    }

    #[test]
    fn a_name_has_a_row_below_each_of_its_callers() {
        let trace = drawn("rank 0 cpu 1 mmmmmm.xx\nrank 0 cpu 1 .aab......\nrank 0 cpu 1 .......a.");
        let rows = found(&trace, None);
        assert_eq!(
            lines(&rows),
            [
                "m < – x1 [6, 3, 0]",
                "x < – x1 [2, 1, 0]",
                "a < m x1 [2, 2, 0]",
                "b < m x1 [1, 1, 0]",
                "a < x x1 [1, 1, 0]"
            ]
        );
        assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn turned_round_a_name_has_its_callers_below_it() {
        let trace = drawn("rank 0 cpu 1 mmmmmm.xx\nrank 0 cpu 1 .aab......\nrank 0 cpu 1 .......a.");
        assert_eq!(
            lines(&found(&trace, Some(GroupBy::Callers))),
            [
                "a < – x2 [3, 3, 0]",
                "m < – x1 [3, 3, 0]",
                "m < a x1 [2, 2, 0]",
                "b < – x1 [1, 1, 0]",
                "x < – x1 [1, 1, 0]",
                "x < a x1 [1, 1, 0]",
                "m < b x1 [1, 1, 0]"
            ]
        );
    }

    #[test]
    fn device_work_counts_where_it_was_launched() {
        let trace = drawn("rank 0 cpu 1 aaaa\nrank 0 launch 1 .K..\nrank 0 stream 7 ..KK");
        let rows = found(&trace, None);
        let of = |kind: &str| {
            let row = rows.iter().find(|row| row.kind == kind).unwrap();
            (row.depth, row.device_total_ns, row.device_self_ns)
        };
        assert_eq!([of("op"), of("api"), of("kernel")], [(0, 2_000, 0), (1, 2_000, 0), (2, 2_000, 2_000)]);
        let up = found(&trace, Some(GroupBy::Callers));
        assert_eq!(up[0].kind, "op");
        let of_kernel: Vec<_> = up.iter().filter(|row| row.device_total_ns > 0).map(|row| row.kind).collect();
        assert_eq!(of_kernel, ["kernel", "api", "op"], "who launched the kernel");
    }

    proptest! {
        /// Against the operators' own times, which are told in another way.
        #[test]
        fn own_times_sum_to_those_of_the_operators(drawing in "[ab.]{1,12}\nrank 0 cpu 1 [cd.]{1,12}") {
            let trace = drawn(&format!("rank 0 cpu 1 {drawing}"));
            let expected: i64 = operators::operators(&trace, &Selection::default()).iter().map(|row| row.host_self_ns).sum();
            let down = found(&trace, None);
            prop_assert_eq!(down.iter().map(|row| row.host_self_ns).sum::<i64>(), expected);
            prop_assert_eq!(down.iter().filter(|row| row.depth == 0).map(|row| row.host_total_ns).sum::<i64>(), expected);
            let up = found(&trace, Some(GroupBy::Callers));
            prop_assert_eq!(up.iter().filter(|row| row.depth == 0).map(|row| row.host_total_ns).sum::<i64>(), expected);
            // What a name takes for all who call it is no more than it takes.
            for (at, row) in up.iter().enumerate() {
                let below: i64 = up.iter().filter(|other| other.parent == Some(at as i64)).map(|other| other.host_total_ns).sum();
                prop_assert!(below <= row.host_total_ns);
            }
        }
    }
}
