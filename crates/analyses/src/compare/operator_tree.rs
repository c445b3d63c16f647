//! What a step spends in operators of two runs, by who calls them.

use super::joined::by_step;
use super::side::{Side, runs_with};
use crate::context::Shared;
use crate::joined::Joinable;
use crate::op_tree::{NONE, OpTree};
use crate::{AnalysisContext, Outcome};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;
use stepscope_base::StringId;

/// An operator below the same callers.
struct Node<S> {
    name: Arc<str>,
    /// The caller's number, or [`NONE`].
    parent: u32,
    depth: i64,
    sums: S,
}

/// Operators by who calls them; callers stand before what they call.
struct Tree<S> {
    nodes: Vec<Node<S>>,
    by_name: FxHashMap<(u32, Arc<str>), u32>,
}

/// Calls and their time.
type Calls = (i64, i64);

impl<S: Default> Tree<S> {
    fn new() -> Self {
        Self { nodes: Vec::new(), by_name: FxHashMap::default() }
    }

    fn node(&mut self, parent: u32, name: &Arc<str>) -> u32 {
        let next = self.nodes.len() as u32;
        let depth = if parent == NONE { 0 } else { self.nodes[parent as usize].depth + 1 };
        *self.by_name.entry((parent, Arc::clone(name))).or_insert_with(|| {
            self.nodes.push(Node { name: Arc::clone(name), parent, depth, sums: S::default() });
            next
        })
    }

    /// Lays another tree on this one.
    fn lay(&mut self, other: &Tree<Calls>, calls: impl Fn(&mut S) -> &mut Calls) {
        let mut places: Vec<u32> = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            let parent = if node.parent == NONE { NONE } else { places[node.parent as usize] };
            let place = self.node(parent, &node.name);
            let (count, total_ns) = calls(&mut self.nodes[place as usize].sums);
            (*count, *total_ns) = (*count + node.sums.0, total_ns.saturating_add(node.sums.1));
            places.push(place);
        }
    }

    /// The names of a node's callers, the outermost first, and its own.
    fn path(&self, at: u32) -> Vec<&str> {
        let caller = |at: &u32| Some(self.nodes[*at as usize].parent).filter(|parent| *parent != NONE);
        let outwards = std::iter::successors(Some(at), caller);
        let mut path: Vec<&str> = outwards.map(|at| &*self.nodes[at as usize].name).collect();
        path.reverse();
        path
    }
}

/// The operators asked for.
pub(super) struct OperatorTree(Tree<Calls>);

impl Shared for OperatorTree {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let ops = context.get::<OpTree>();
        let mut tree = Tree::new();
        let mut nodes = vec![NONE; ops.len()];
        // Names by their number, so that each is looked up as a text once below each caller.
        let mut known: FxHashMap<(u32, StringId), u32> = FxHashMap::default();
        for id in selection.slices(trace) {
            let Some(row) = ops.row(Some(id)) else { continue };
            // What encloses an operator stands before it; where that was not asked for, it is called by nobody.
            let parent = match ops.parent[row as usize] {
                NONE => NONE,
                parent => nodes[parent as usize],
            };
            let name = trace.slices.name[id.index()];
            let node =
                *known.entry((parent, name)).or_insert_with(|| tree.node(parent, &trace.strings.get(name).into()));
            nodes[row as usize] = node;
            let (count, total_ns): &mut Calls = &mut tree.nodes[node as usize].sums;
            (*count, *total_ns) = (*count + 1, total_ns.saturating_add(trace.slices.dur_ns[id.index()]));
        }
        Self(tree)
    }
}

impl Joinable for OperatorTree {
    fn joined(of_ranks: Vec<Self>) -> Self {
        let mut tree = Tree::new();
        of_ranks.iter().for_each(|of| tree.lay(&of.0, |calls| calls));
        Self(tree)
    }
}

columns! {
    /// An operator below the same callers.
    struct TreeRow {
        /// The number of the row, from 0.
        id: i64 => Count,
        /// The `id` of the row of the caller. Absent for an operator that no operator calls.
        parent: Option<i64> => Count,
        /// Number of operators around it.
        depth: i64 => Count,
        /// The name of the operator.
        name: Arc<str> => Text,
        /// The runs that have it: `a` for the first, `b` for the second, or `both`.
        runs: &'static str => Text,
        /// Mean number of calls per step in the first run.
        a_count_per_step: Option<f64> => Plain,
        /// Mean number of calls per step in the second run.
        b_count_per_step: Option<f64> => Plain,
        /// Mean time of the calls per step in the first run.
        a_host_total_ns: Option<i64> => Nanoseconds,
        /// Mean time of the calls per step in the second run.
        b_host_total_ns: Option<i64> => Nanoseconds,
        /// The second run's time less the first run's.
        change_host_total_ns: i64 => Nanoseconds,
        /// The change as a share of the first run's time.
        change_host_total_ratio: Option<f64> => Ratio,
    }
}

/// A row is an operator below the same callers. The most time comes first, a caller before what it calls.
pub(super) fn outcome(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let mut tree: Tree<[Option<Calls>; 2]> = Tree::new();
    let steps = [a.steps(), b.steps()];
    for (run, side) in [a, b].into_iter().enumerate() {
        tree.lay(&side.in_steps.get::<OperatorTree>().0, |sums| sums[run].get_or_insert_default());
    }
    type Both = Node<[Option<Calls>; 2]>;
    let nodes = &tree.nodes;
    let total = |node: &Both, run: usize| node.sums[run].map(|(_, total_ns)| by_step(total_ns, steps[run]));
    let count = |node: &Both, run: usize| node.sums[run].map(|(count, _)| count as f64 / steps[run] as f64);
    let most = |node: &Both| total(node, 0).max(total(node, 1)).unwrap_or(0);
    let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
    let key = |at: &u32| (Reverse(most(&nodes[*at as usize])), nodes[*at as usize].depth);
    order.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| tree.path(*a).cmp(&tree.path(*b))));
    let mut place = vec![0_i64; nodes.len()];
    (0_i64..).zip(&order).for_each(|(row, at)| place[*at as usize] = row);
    let row = |(id, at): (i64, &u32)| {
        let node = &nodes[*at as usize];
        let (a, b) = (total(node, 0), total(node, 1));
        TreeRow {
            id,
            parent: (node.parent != NONE).then(|| place[node.parent as usize]),
            depth: node.depth,
            name: Arc::clone(&node.name),
            runs: runs_with(node.sums.map(|sums| sums.is_some())),
            a_count_per_step: count(node, 0),
            b_count_per_step: count(node, 1),
            a_host_total_ns: a,
            b_host_total_ns: b,
            change_host_total_ns: b.unwrap_or(0) - a.unwrap_or(0),
            change_host_total_ratio: a.zip(b).filter(|(a, _)| *a != 0).map(|(a, b)| (b - a) as f64 / a as f64),
        }
    };
    Outcome::of_runs(&(0..).zip(&order).map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use crate::compare::side::with_sides;
    use crate::{Selection, Values};
    use stepscope_trace::drawn::drawn;

    fn ints(table: &Table, name: &str) -> Vec<Option<i64>> {
        match &table.column(name).unwrap().values {
            Values::Int(values) => values.clone(),
            _ => panic!("{name} is no integer"),
        }
    }

    #[test]
    fn an_operator_has_a_row_below_each_of_its_callers() {
        let a = drawn("rank 0 cpu 1 mmmmmm.xx\nrank 0 cpu 1 .aab......\nrank 0 cpu 1 .......a.");
        let b = drawn("rank 0 cpu 1 mmmmmm.yy\nrank 0 cpu 1 .aaaa.....");
        let all = Selection::default();
        let table = with_sides((&a, &all), (&b, &all), outcome).table;
        let Some(Values::Text(names)) = table.column("name").map(|column| &column.values) else { panic!() };
        let names: Vec<&str> = names.iter().flatten().map(|name| &**name).collect();
        let parent = ints(&table, "parent");
        let caller = |at: usize| parent[at].map_or("–", |parent| names[parent as usize]);
        let (before, now) = (ints(&table, "a_host_total_ns"), ints(&table, "b_host_total_ns"));
        let us = |ns: Option<i64>| ns.map_or("–".into(), |ns| (ns / 1_000).to_string());
        let lines: Vec<String> = (0..names.len())
            .map(|at| format!("{} < {} {} {}", names[at], caller(at), us(before[at]), us(now[at])))
            .collect();
        assert_eq!(lines, ["m < – 6 6", "a < m 2 4", "x < – 2 –", "y < – – 2", "b < m 1 –", "a < x 1 –"]);
        assert_eq!(ints(&table, "id"), (0..6).map(Some).collect::<Vec<_>>());
        assert_eq!(ints(&table, "depth"), [0, 1, 0, 0, 1, 1].map(Some));
        assert_eq!(ints(&table, "change_host_total_ns"), [0, 2_000, -2_000, 2_000, -1_000, -1_000].map(Some));
    }

    #[test]
    fn only_the_rank_that_was_asked_for_counts() {
        let trace = drawn("rank 0 cpu 1 mm\nrank 1 cpu 1 nn");
        let of = |rank: u32| Selection { ranks: rank.into(), ..Selection::default() };
        let table = with_sides((&trace, &of(0)), (&trace, &of(1)), outcome).table;
        assert_eq!(ints(&table, "a_host_total_ns"), [Some(2_000), None]);
        assert_eq!(ints(&table, "b_host_total_ns"), [None, Some(2_000)]);
    }
}
