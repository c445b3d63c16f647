//! What a step spends in each place of the tree of calls of two runs, down to the kernels.

use super::side::{Side, runs_with};
use crate::Outcome;
use crate::call_tree::{CallTree, Own, places_by_path};
use crate::mean_parts::means_of_sums;
use crate::op_tree::NONE;
use std::cmp::Reverse;
use std::sync::Arc;

columns! {
    /// A name below the same callers.
    struct PlaceRow {
        /// The number of the row, from 0.
        id: i64 => Count,
        /// The `id` of the row of the caller. Absent for what nothing calls.
        parent: Option<i64> => Count,
        /// Number of callers.
        depth: i64 => Count,
        /// The name of the function, module, label, operator, call of the device's API, or device work.
        name: Arc<str> => Text,
        /// What it is: `python`, `module`, `label`, `op`, `input`, `api`, `kernel`, `copy` or `fill`.
        kind: &'static str => Text,
        /// The runs that have it: `a` for the first, `b` for the second, or `both`.
        runs: &'static str => Text,
        /// Mean number of calls per step in the first run.
        a_count_per_step: Option<f64> => Plain,
        /// Mean number of calls per step in the second run.
        b_count_per_step: Option<f64> => Plain,
        /// Means per step, in the first run and in the second.
        means: [Option<Means>; 2],
        /// Mean device time per step in the first run, with what is called from there.
        a_device_total_ns => Nanoseconds = |row| row.total(0, DEVICE),
        /// Mean device time per step in the second run, with what is called from there.
        b_device_total_ns => Nanoseconds = |row| row.total(1, DEVICE),
        /// The second run's device time less the first run's, with what is called from there.
        change_device_total_ns => Nanoseconds = |row| row.change_of_total(DEVICE),
        /// The change as a share of the first run's device time.
        change_device_total_ratio => Ratio = |row| row.ratio(DEVICE),
        /// Mean host time per step in the first run, with what is called from there.
        a_host_total_ns => Nanoseconds = |row| row.total(0, HOST),
        /// Mean host time per step in the second run, with what is called from there.
        b_host_total_ns => Nanoseconds = |row| row.total(1, HOST),
        /// The second run's host time less the first run's, with what is called from there.
        change_host_total_ns => Nanoseconds = |row| row.change_of_total(HOST),
        /// The change as a share of the first run's host time.
        change_host_total_ratio => Ratio = |row| row.ratio(HOST),
        /// Mean host time per step in the first run, without what is called from there.
        a_host_self_ns => Nanoseconds = |row| row.own(0, HOST),
        /// Mean host time per step in the second run, without what is called from there.
        b_host_self_ns => Nanoseconds = |row| row.own(1, HOST),
        /// The second run's host time less the first run's, without what is called from there. Over all rows these changes
        /// sum to that of the roots; by callers those of the roots alone do.
        change_host_self_ns => Nanoseconds = |row| row.change_of_own(HOST),
        /// The second run's device time less the first run's, where the row is device work. Over all rows these changes sum
        /// to that of the roots; by callers those of the roots alone do.
        change_device_self_ns => Nanoseconds = |row| row.change_of_own(DEVICE),
        /// Mean bytes allocated per step in the first run, with what is called from there.
        a_allocated_bytes => Bytes = |row| row.total(0, ALLOCATED),
        /// Mean bytes allocated per step in the second run, with what is called from there.
        b_allocated_bytes => Bytes = |row| row.total(1, ALLOCATED),
        /// The second run's bytes less the first run's, with what is called from there.
        change_allocated_bytes => Bytes = |row| row.change_of_total(ALLOCATED),
        /// The change as a share of the first run's bytes.
        change_allocated_ratio => Ratio = |row| row.ratio(ALLOCATED),
        /// Mean arithmetic operations per step in the first run, of what is called there, of that whose work is known.
        a_flops => Count = |row| row.total(0, FLOPS),
        /// Mean arithmetic operations per step in the second run.
        b_flops => Count = |row| row.total(1, FLOPS),
        /// The second run's operations less the first run's.
        change_flops => Count = |row| row.change_of_total(FLOPS),
        /// The change as a share of the first run's operations.
        change_flops_ratio => Ratio = |row| row.ratio(FLOPS),
    }
}

/// What is measured of a place, by numbers.
type Measures = [i64; 4];
const HOST: usize = 0;
const DEVICE: usize = 1;
const ALLOCATED: usize = 2;
const FLOPS: usize = 3;

fn measures_of(own: Own) -> Measures {
    [own.host_ns, own.device_ns, own.allocated_bytes, own.flops]
}

/// What a mean step has in a place.
#[derive(Clone, Copy, Default)]
struct Means {
    /// Without what is called from there.
    own: Measures,
    /// With it.
    total: Measures,
}

impl PlaceRow {
    fn own(&self, run: usize, which: usize) -> Option<i64> {
        self.means[run].map(|means| means.own[which])
    }

    fn total(&self, run: usize, which: usize) -> Option<i64> {
        self.means[run].map(|means| means.total[which])
    }

    fn change_of_own(&self, which: usize) -> i64 {
        self.own(1, which).unwrap_or(0) - self.own(0, which).unwrap_or(0)
    }

    fn change_of_total(&self, which: usize) -> i64 {
        self.total(1, which).unwrap_or(0) - self.total(0, which).unwrap_or(0)
    }

    /// The change of the total as a share of the first run's.
    fn ratio(&self, which: usize) -> Option<f64> {
        let (a, _) = self.total(0, which).filter(|a| *a != 0).zip(self.total(1, which))?;
        Some(self.change_of_total(which) as f64 / a as f64)
    }
}

/// What stands below a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    /// What it calls, which is a part of it.
    Callees,
    /// Who calls it, with what it took for them: a part of it already.
    Callers,
}

/// The places of both runs, and what each of them has of its own in each run.
struct Both {
    below: Below,
    tree: CallTree,
    own: [Vec<Option<Own>>; 2],
    /// All places, each behind the one above it.
    by_path: Vec<u32>,
}

impl Both {
    fn of(runs: [&CallTree; 2], below: Below) -> Self {
        let mut tree = CallTree::default();
        let places = runs.map(|run| tree.lay(run, false));
        let mut own = [vec![None; tree.nodes.len()], vec![None; tree.nodes.len()]];
        for ((run, places), own) in runs.into_iter().zip(places).zip(&mut own) {
            for (node, place) in run.nodes.iter().zip(places) {
                own[place as usize].get_or_insert_with(Own::default).add(&node.own);
            }
        }
        let mut by_path: Vec<u32> = (0..tree.nodes.len() as u32).collect();
        let places = places_by_path(&tree.nodes);
        by_path.sort_by_key(|at| places[*at as usize]);
        Self { below, tree, own, by_path }
    }

    /// What a mean step has in each place in a run. Neighbours in the order of paths are rounded together: so each value,
    /// with or without what is called, is within 1 of its mean, and they sum up. By callers roots sum up, and what is
    /// below them is rounded by itself.
    fn means(&self, run: usize, steps: i64) -> Vec<Means> {
        let nodes = &self.tree.nodes;
        let mut means = vec![Means::default(); nodes.len()];
        let is_summand = |at: &u32| self.below == Below::Callees || nodes[*at as usize].parent == NONE;
        let (summands, parts): (Vec<u32>, Vec<u32>) = self.by_path.iter().partition(|at| is_summand(at));
        let sum =
            |at: u32, which: usize| i128::from(measures_of(self.own[run][at as usize].unwrap_or_default())[which]);
        for which in [HOST, DEVICE, ALLOCATED, FLOPS] {
            let sums = summands.iter().map(|at| sum(*at, which));
            for (at, mean) in summands.iter().zip(means_of_sums(sums, i128::from(steps)).into_iter().flatten()) {
                means[*at as usize].own[which] = mean;
            }
            for at in &parts {
                means[*at as usize].own[which] = (sum(*at, which) / i128::from(steps)) as i64;
            }
        }
        for at in (0..means.len()).rev() {
            let Means { own, total } = &mut means[at];
            for (total, own) in total.iter_mut().zip(own) {
                *total += *own;
            }
            let below = *total;
            let above = means.get_mut(nodes[at].parent as usize).filter(|_| self.below == Below::Callees);
            for (above, below) in above.into_iter().flat_map(|above| above.total.iter_mut().zip(below)) {
                *above += below;
            }
        }
        means
    }
}

/// A row is a place in the tree of calls. The most time comes first, what is above a row before it.
pub(super) fn outcome(a: &Side<'_>, b: &Side<'_>, below: Below) -> Outcome {
    let callees = [a, b].map(|side| side.in_steps.get::<CallTree>());
    let both = match below {
        Below::Callees => Both::of(callees, below),
        Below::Callers => Both::of(callees.map(CallTree::turned).each_ref(), below),
    };
    let steps = [a.steps(), b.steps()];
    let means = [0, 1].map(|run| both.means(run, steps[run]));
    let nodes = &both.tree.nodes;
    let mut depths: Vec<i64> = Vec::with_capacity(nodes.len());
    for node in nodes {
        depths.push(depths.get(node.parent as usize).map_or(0, |above| above + 1));
    }
    let times = |means: &Means| means.total[HOST].max(means.total[DEVICE]);
    let most = |at: u32| means.iter().map(|of_run| times(&of_run[at as usize])).max();
    let mut order = both.by_path.clone();
    order.sort_by_key(|at| (Reverse(most(*at)), depths[*at as usize]));
    let mut place = vec![0_i64; nodes.len()];
    (0_i64..).zip(&order).for_each(|(row, at)| place[*at as usize] = row);
    let row = |(id, at): (i64, &u32)| {
        let (at, node) = (*at as usize, &nodes[*at as usize]);
        let own = [0, 1].map(|run| both.own[run][at]);
        let count = |run: usize| own[run].map(|own| own.count as f64 / steps[run] as f64);
        PlaceRow {
            id,
            parent: (node.parent != NONE).then(|| place[node.parent as usize]),
            depth: depths[at],
            name: Arc::clone(&node.name.0),
            kind: node.name.1,
            runs: runs_with(own.map(|own| own.is_some())),
            a_count_per_step: count(0),
            b_count_per_step: count(1),
            means: [0, 1].map(|run| own[run].map(|_| means[run][at])),
        }
    };
    let rows: Vec<PlaceRow> = (0..).zip(&order).map(row).collect();
    for which in [HOST, DEVICE, ALLOCATED, FLOPS] {
        let is_part = |row: &&PlaceRow| below == Below::Callees || row.parent.is_none();
        let parts: i64 = rows.iter().filter(is_part).map(|row| row.change_of_own(which)).sum();
        let roots: i64 = rows.iter().filter(|row| row.parent.is_none()).map(|row| row.change_of_total(which)).sum();
        assert_eq!(parts, roots, "changes of places sum to the change of the whole");
    }
    Outcome::of_runs(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::side::with_sides;
    use crate::{AnalysisContext, Selection, Table, Values, find};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use stepscope_trace::Trace;
    use stepscope_trace::drawn::drawn;

    fn ints(table: &Table, name: &str) -> Vec<Option<i64>> {
        match &table.column(name).unwrap().values {
            Values::Int(values) => values.clone(),
            _ => panic!("{name} is no integer"),
        }
    }

    /// The path of each row, and the row's value of some columns.
    fn by_path(table: &Table, columns: &[&str]) -> BTreeMap<String, Vec<Option<i64>>> {
        let texts = |name: &str| match table.column(name).map(|column| &column.values) {
            Some(Values::Text(values)) => values.iter().flatten().map(|text| text.to_string()).collect::<Vec<_>>(),
            _ => panic!("{name} is no text"),
        };
        let (names, kinds, parents) = (texts("name"), texts("kind"), ints(table, "parent"));
        let path = |at: usize| {
            let outwards = std::iter::successors(Some(at), |at| parents[*at].map(|parent| parent as usize));
            let mut path: Vec<String> = outwards.map(|at| format!("{} {}", kinds[at], names[at])).collect();
            path.reverse();
            path.join(" > ")
        };
        let columns: Vec<_> = columns.iter().map(|name| ints(table, name)).collect();
        (0..names.len()).map(|at| (path(at), columns.iter().map(|column| column[at]).collect())).collect()
    }

    fn compared(a: &Trace, b: &Trace) -> Table {
        let all = Selection::default();
        with_sides((a, &all), (b, &all), |a, b| outcome(a, b, Below::Callees)).table
    }

    #[test]
    fn turned_round_a_name_has_what_it_takes_for_its_callers() {
        let a = drawn("rank 0 cpu 1 mmmmmm.xx\nrank 0 cpu 1 .aab......\nrank 0 cpu 1 .......a.");
        let b = drawn("rank 0 cpu 1 mmmmmm.xxx\nrank 0 cpu 1 .aaa......\nrank 0 cpu 1 .......aa.");
        let all = Selection::default();
        let table = with_sides((&a, &all), (&b, &all), |a, b| outcome(a, b, Below::Callers)).table;
        let columns = ["a_host_total_ns", "b_host_total_ns", "change_host_total_ns"];
        let us = |ns: Option<i64>| ns.map_or("–".into(), |ns| (ns / 1_000).to_string());
        let line = |(path, values): (String, Vec<Option<i64>>)| {
            format!("{path}: {}", values.into_iter().map(us).collect::<Vec<_>>().join(" "))
        };
        let lines: Vec<String> = by_path(&table, &columns).into_iter().map(line).collect();
        let expected = [
            "op a: 3 5 2",
            "op a > op m: 2 3 1",
            "op a > op x: 1 2 1",
            "op b: 1 – -1",
            "op b > op m: 1 – -1",
            "op m: 3 3 0",
            "op x: 1 1 0",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_place_has_what_a_step_spends_there_in_both_runs() {
        let a = drawn(
            "rank 0 module 1 mmmmmm..\nrank 0 cpu 1 .aab....\nrank 0 launch 1 .K......\nrank 0 stream 7 ..KK....",
        );
        let b = drawn(
            "rank 0 module 1 mmmmmmmm\nrank 0 cpu 1 .aaaa...\nrank 0 launch 1 .K......\nrank 0 stream 7 ..KKK...",
        );
        let columns = ["a_host_total_ns", "b_host_total_ns", "change_host_self_ns", "change_device_total_ns"];
        let rows = by_path(&compared(&a, &b), &columns);
        let line = |(path, values): (&String, &Vec<Option<i64>>)| {
            let us: Vec<String> =
                values.iter().map(|ns| ns.map_or("–".into(), |ns| (ns / 1_000).to_string())).collect();
            format!("{path}: {}", us.join(" "))
        };
        let expected = [
            "module m: 6 8 1 1",
            "module m > op a: 2 4 2 1",
            "module m > op a > api K: 1 1 0 1",
            "module m > op a > api K > kernel K: 0 0 0 1",
            "module m > op b: 1 – -1 0",
        ];
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    proptest! {
        /// Against the tree of each run, divided place by place.
        #[test]
        fn times_are_means_of_the_trees_of_both_runs_and_sum_up(
            runs in prop::array::uniform2(("0{2,9}1{2,9}2{1,9}", "[mn.]{20}", "[ab.]{20}", "[.KH]{20}", "[.KH]{24}")),
        ) {
            let traces = runs.each_ref().map(|(steps, modules, host, launch, stream)| drawn(&format!(
                "rank 0 step {steps}\nrank 0 module 1 {modules}\nrank 0 cpu 1 {host}\nrank 0 launch 1 {launch}\nrank 0 stream 7 {stream}\n"
            )));
            let [a, b] = &traces;
            let table = compared(a, b);
            let all = Selection::default();
            for (run, [host, device]) in traces.iter().zip([
                ["a_host_total_ns", "a_device_total_ns"], ["b_host_total_ns", "b_device_total_ns"],
            ]) {
                let steps = (all.complete_steps(run).count() as i64).max(1);
                let complete_steps = all.complete_steps(run).next().is_some();
                let selection = Selection { complete_steps, ..Selection::default() };
                let own = (find("call_tree").unwrap().run)(&AnalysisContext::new(run, &selection)).table;
                let exact = by_path(&own, &["host_total_ns", "device_total_ns"]);
                let rounded = by_path(&table, &[host, device]);
                prop_assert!(exact.keys().all(|path| rounded.contains_key(path)));
                for (path, values) in rounded {
                    let sums = exact.get(&path);
                    for (at, value) in values.into_iter().enumerate() {
                        prop_assert_eq!(value.is_some(), sums.is_some(), "{}", path);
                        let (Some(value), Some(sums)) = (value, sums) else { continue };
                        prop_assert!((value * steps - sums[at].unwrap()).abs() < steps, "{}", path);
                    }
                }
            }
            let parents = ints(&table, "parent");
            for measure in ["host", "device"] {
                let [own, total] = ["self", "total"].map(|what| ints(&table, &format!("change_{measure}_{what}_ns")));
                for at in 0..parents.len() {
                    let below = (0..parents.len()).filter(|row| parents[*row] == Some(at as i64));
                    prop_assert_eq!(total[at], Some(own[at].unwrap() + below.map(|row| total[row].unwrap()).sum::<i64>()));
                }
            }
        }
    }
}
