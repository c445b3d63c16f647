//! # Definition
//! For each place in the tree of calls: how often and for how long it ran, what its device work took, what it allocated and
//! computed. A place is a name below the same callers: functions of Python, modules, labels, operators, calls of the
//! device's API, and below these the device work that they launched. Total has what is called from there in it, self has not; self times sum to the time of all threads in such
//! calls.
//!
//! By callers the tree is turned round: each name that has something of its own is a root, and below it stand those who
//! call it, with what it took for them. Totals there are of the root's own times.
//!
//! By thread both trees are of each thread apart, and rows say which thread it is. What a thread launches on a device counts
//! for that thread. The trees of all threads sum to the one without threads.
//!
//! # Units
//! Nanoseconds; bytes; operations, of which a multiplication with an addition is two; counts of calls.
//!
//! # Source
//! Calls as they were recorded, by the thread that they ran on. Work by the formulas that `operators` has.
//!
//! # Edge cases
//! Every thread begins anew: what runs a backward pass is a root. Threads of one name are one thread. Steps are one place,
//! whatever their numbers. For one step, calls that begin in it, and device work launched in it; what encloses them and began
//! before is not there. Bytes are what was allocated, whether or not it was freed. Device work without a known launch is left
//! out.

use crate::context::Shared;
use crate::flops::Works;
use crate::host_threads::first_lane;
use crate::joined::Joinable;
use crate::op_tree::{NONE, OpTree};
use crate::{Analysis, AnalysisContext, GroupBy, Joined, Needs, Options, Outcome, Selection};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;
use stepscope_base::StringId;
use stepscope_trace::{SliceId, SliceKind, TrackId};

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
        /// The thread, when rows are of threads.
        thread: Option<Arc<str>>,
        /// The name of the thread.
        thread => Text if (|selection| is_by_thread(selection.group_by)) = |row| &row.thread,
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
pub(crate) struct Own {
    pub(crate) count: i64,
    pub(crate) host_ns: i64,
    pub(crate) device_ns: i64,
    pub(crate) allocated_bytes: i64,
    pub(crate) flops: i64,
}

impl Own {
    pub(crate) fn add(&mut self, other: &Self) {
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

pub(crate) struct Node {
    pub(crate) name: Name,
    /// The number of the place above it, or [`NONE`].
    pub(crate) parent: u32,
    /// The name of the thread, where threads are apart.
    thread: Option<Arc<str>>,
    pub(crate) own: Own,
}

/// Places of each thread; those that call stand before what they call.
#[derive(Default)]
pub(crate) struct CallTree {
    pub(crate) nodes: Vec<Node>,
    /// By the place above, the thread of what has none above, and the name.
    by_name: FxHashMap<(u32, Option<Arc<str>>, Name), u32>,
}

impl CallTree {
    fn node(&mut self, parent: u32, thread: Option<&Arc<str>>, name: &Name) -> u32 {
        let next = self.nodes.len() as u32;
        let of_root = thread.filter(|_| parent == NONE).cloned();
        *self.by_name.entry((parent, of_root, name.clone())).or_insert_with(|| {
            self.nodes.push(Node { name: name.clone(), parent, thread: thread.cloned(), own: Own::default() });
            next
        })
    }

    /// Adds the places of `other`, and says which each is here; `keeps_threads` says whether threads stay apart.
    pub(crate) fn lay(&mut self, other: &Self, keeps_threads: bool) -> Vec<u32> {
        let mut places: Vec<u32> = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            let parent = if node.parent == NONE { NONE } else { places[node.parent as usize] };
            let place = self.node(parent, node.thread.as_ref().filter(|_| keeps_threads), &node.name);
            self.nodes[place as usize].own.add(&node.own);
            places.push(place);
        }
        places
    }

    /// The same of all threads together.
    fn of_all_threads(&self) -> Self {
        let mut tree = Self::default();
        tree.lay(self, false);
        tree
    }

    /// Each name with something of its own, and below it those who call it.
    pub(crate) fn turned(&self) -> Self {
        let mut turned = Self::default();
        for node in self.nodes.iter().filter(|node| !node.own.is_nothing()) {
            let thread = node.thread.as_ref();
            let (mut at, mut above) = (turned.node(NONE, thread, &node.name), node.parent);
            turned.nodes[at as usize].own.add(&node.own);
            while let Some(caller) = self.nodes.get(above as usize) {
                at = turned.node(at, thread, &caller.name);
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
        // Names by their number, so that each is looked up as a text once below each caller, or on each thread.
        let mut known: FxHashMap<(u32, Option<TrackId>, StringId, &'static str), u32> = FxHashMap::default();
        let mut threads: FxHashMap<TrackId, Arc<str>> = FxHashMap::default();
        let step: Arc<str> = "step".into();
        for id in selection.slices(trace) {
            let Some(kind) = kind_of(slices.kind(id)) else { continue };
            // What encloses a call stands before it; where that was not asked for, it is called by nobody.
            let around = slices.with_ancestors(id).skip(1).map(|around| nodes[around.index()]);
            let parent = around.into_iter().find(|node| *node != NONE).unwrap_or(NONE);
            let is_step = slices.kind(id) == SliceKind::Step;
            let name = if is_step { stepscope_base::StringTable::EMPTY } else { slices.name[id.index()] };
            let track = first_lane(trace, slices.track[id.index()]);
            let of_root = (parent == NONE).then_some(track);
            let node = *known.entry((parent, of_root, name, kind)).or_insert_with(|| {
                let text = if is_step { Arc::clone(&step) } else { trace.strings.get(name).into() };
                let thread = threads.entry(track).or_insert_with(|| trace.tracks[track.index()].name.as_str().into());
                tree.node(parent, Some(thread), &(text, kind))
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
            let node = *known.entry((launch, None, name, kind)).or_insert_with(|| {
                let thread = tree.nodes[launch as usize].thread.clone();
                tree.node(launch, thread.as_ref(), &(trace.strings.get(name).into(), kind))
            });
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
        for of in &of_ranks {
            tree.lay(of, true);
        }
        tree
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options {
        group_by: &[GroupBy::Callees, GroupBy::Callers, GroupBy::CalleesByThread, GroupBy::CallersByThread],
        ..Options::NONE
    },
    ..Analysis::of(outcome)
}
.needing(Needs::Joined(Joined::by::<CallTree>()));

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows_of(context))
}

fn is_by_thread(group_by: Option<GroupBy>) -> bool {
    matches!(group_by, Some(GroupBy::CalleesByThread | GroupBy::CallersByThread))
}

fn rows_of(context: &AnalysisContext<'_>) -> Vec<CallRow> {
    let (group_by, by_thread) = (context.selection.group_by, context.get::<CallTree>());
    let together = (!is_by_thread(group_by)).then(|| by_thread.of_all_threads());
    let tree = together.as_ref().unwrap_or(by_thread);
    if !matches!(group_by, Some(GroupBy::Callers | GroupBy::CallersByThread)) {
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
            thread: node.thread.clone(),
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

/// Where each node stands when all are in the order of their paths: behind the one above it, before its siblings' own.
pub(crate) fn places_by_path(nodes: &[Node]) -> Vec<u32> {
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    let mut waiting: Vec<u32> = Vec::new();
    for (at, node) in (0_u32..).zip(nodes) {
        below.get_mut(node.parent as usize).unwrap_or(&mut waiting).push(at);
    }
    let first_last = |siblings: &mut Vec<u32>| {
        let key = |at: &u32| (&nodes[*at as usize].name, &nodes[*at as usize].thread);
        siblings.sort_by(|one, other| key(other).cmp(&key(one)));
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
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{Trace, TrackKind};

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

    #[test]
    fn threads_have_trees_of_their_own_when_asked_for() {
        let trace = drawn(
            "rank 0 cpu 1 mmmm.m\nrank 0 cpu 1 .ab...\nrank 0 launch 1 .....K\n\
             rank 0 cpu 2 .mm...\nrank 0 stream 7 .....KK",
        );
        let by_thread = |group_by| {
            let rows = found(&trace, Some(group_by));
            let threads: Vec<Arc<str>> = rows.iter().map(|row| row.thread.clone().unwrap()).collect();
            // A row is of the thread of its caller.
            for (at, row) in rows.iter().enumerate() {
                assert!(row.parent.is_none_or(|parent| threads[parent as usize] == threads[at]));
            }
            let names: std::collections::BTreeSet<Arc<str>> = threads.iter().cloned().collect();
            let of = |name: &Arc<str>| {
                let own = rows.iter().filter(|row| row.thread.as_ref() == Some(name));
                let line = |row: &CallRow| {
                    let us = [row.host_total_ns, row.host_self_ns, row.device_total_ns].map(|ns| ns / 1_000);
                    format!("{} {} x{} {us:?}", row.depth, row.name, row.count)
                };
                own.map(line).collect::<Vec<_>>()
            };
            names.iter().map(of).collect::<Vec<_>>()
        };
        let down = by_thread(GroupBy::CalleesByThread);
        let first =
            ["0 m x2 [5, 2, 2]", "1 K x1 [1, 1, 2]", "2 K x1 [0, 0, 2]", "1 a x1 [1, 1, 0]", "1 b x1 [1, 1, 0]"];
        assert_eq!(down, [first.to_vec(), vec!["0 m x1 [2, 2, 0]"]]);
        assert_eq!(by_thread(GroupBy::CallersByThread)[1], ["0 m x1 [2, 2, 0]"]);
        assert!(found(&trace, None).iter().all(|row| row.thread.is_none()));
    }

    proptest! {
        /// Each thread as if there were no other.
        #[test]
        fn trees_of_threads_are_those_of_a_trace_of_the_thread_alone(
            hosts in prop::collection::vec("[abm.]{12}", 2..4), inner in "[cd.]{12}", launch in "[.KH]{12}", stream in "[.KH]{14}",
        ) {
            let rows_of_thread = |at: usize| {
                let mut rows = format!("rank 0 cpu {at} {}\n", hosts[at]);
                if at == 0 {
                    rows += &format!("rank 0 cpu 0 {inner}\nrank 0 launch 0 {launch}\nrank 0 stream 7 {stream}\n");
                }
                rows
            };
            let all: String = (0..hosts.len()).map(rows_of_thread).collect();
            let trace = drawn(&all);
            for (by_thread, alone) in [
                (GroupBy::CalleesByThread, GroupBy::Callees), (GroupBy::CallersByThread, GroupBy::Callers),
            ] {
                let rows = found(&trace, Some(by_thread));
                let of_thread = |name: &str| {
                    let own: Vec<&CallRow> = rows.iter().filter(|row| row.thread.as_deref() == Some(name)).collect();
                    let place = |id: i64| own.iter().position(|row| row.id == id).map(|at| at as i64);
                    let renumbered = own.iter().map(|row| CallRow {
                        id: place(row.id).unwrap(), parent: row.parent.and_then(place), thread: None, ..(*row).clone()
                    });
                    renumbered.collect::<Vec<_>>()
                };
                for at in 0..hosts.len() {
                    let single = drawn(&rows_of_thread(at));
                    let Some(track) = single.tracks.iter().find(|track| track.kind == TrackKind::Thread) else { continue };
                    prop_assert_eq!(of_thread(&track.name), found(&single, Some(alone)));
                }
            }
        }

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
