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
        /// Mean times per step, in the first run and in the second.
        times: [Option<Times>; 2],
        /// Mean device time per step in the first run, with what is called from there.
        a_device_total_ns => Nanoseconds = |row| row.time(0, DEVICE_TOTAL),
        /// Mean device time per step in the second run, with what is called from there.
        b_device_total_ns => Nanoseconds = |row| row.time(1, DEVICE_TOTAL),
        /// The second run's device time less the first run's, with what is called from there.
        change_device_total_ns => Nanoseconds = |row| row.change(DEVICE_TOTAL),
        /// The change as a share of the first run's device time.
        change_device_total_ratio => Ratio = |row| row.change_ratio(DEVICE_TOTAL),
        /// Mean host time per step in the first run, with what is called from there.
        a_host_total_ns => Nanoseconds = |row| row.time(0, HOST_TOTAL),
        /// Mean host time per step in the second run, with what is called from there.
        b_host_total_ns => Nanoseconds = |row| row.time(1, HOST_TOTAL),
        /// The second run's host time less the first run's, with what is called from there.
        change_host_total_ns => Nanoseconds = |row| row.change(HOST_TOTAL),
        /// The change as a share of the first run's host time.
        change_host_total_ratio => Ratio = |row| row.change_ratio(HOST_TOTAL),
        /// Mean host time per step in the first run, without what is called from there.
        a_host_self_ns => Nanoseconds = |row| row.time(0, HOST_SELF),
        /// Mean host time per step in the second run, without what is called from there.
        b_host_self_ns => Nanoseconds = |row| row.time(1, HOST_SELF),
        /// The second run's host time less the first run's, without what is called from there. Over all rows these changes
        /// sum to that of the roots.
        change_host_self_ns => Nanoseconds = |row| row.change(HOST_SELF),
        /// The second run's device time less the first run's, where the row is device work. Over all rows these changes sum
        /// to that of the roots.
        change_device_self_ns => Nanoseconds = |row| row.change(DEVICE_SELF),
    }
}

/// The times of a place, each by its number.
type Times = [i64; 4];
const HOST_SELF: usize = 0;
const HOST_TOTAL: usize = 1;
const DEVICE_SELF: usize = 2;
const DEVICE_TOTAL: usize = 3;

impl PlaceRow {
    fn time(&self, run: usize, which: usize) -> Option<i64> {
        self.times[run].map(|times| times[which])
    }

    fn change(&self, which: usize) -> i64 {
        self.time(1, which).unwrap_or(0) - self.time(0, which).unwrap_or(0)
    }

    fn change_ratio(&self, which: usize) -> Option<f64> {
        let (a, _) = self.time(0, which).filter(|a| *a != 0).zip(self.time(1, which))?;
        Some(self.change(which) as f64 / a as f64)
    }
}

/// The places of both runs, and what each of them has of its own in each run.
struct Both {
    tree: CallTree,
    own: [Vec<Option<Own>>; 2],
    /// All places, each behind the one above it.
    by_path: Vec<u32>,
}

impl Both {
    fn of(runs: [&CallTree; 2]) -> Self {
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
        Self { tree, own, by_path }
    }

    /// The mean times of each place in a run. Neighbours in the order of paths are rounded together: so each time, with or
    /// without what is called, is within 1 ns of its mean, and they sum up.
    fn times(&self, run: usize, steps: i64) -> Vec<Times> {
        let mut times = vec![Times::default(); self.tree.nodes.len()];
        let own = |at: u32| self.own[run][at as usize].unwrap_or_default();
        for (which, of) in [(HOST_SELF, (|own| own.host_ns) as fn(Own) -> i64), (DEVICE_SELF, |own| own.device_ns)] {
            let sums = self.by_path.iter().map(|at| i128::from(of(own(*at))));
            let means = means_of_sums(sums, i128::from(steps)).into_iter().flatten();
            for (at, mean) in self.by_path.iter().zip(means) {
                times[*at as usize][which] = mean;
            }
        }
        for at in (0..times.len()).rev() {
            let [host_self, host_total, device_self, device_total] = &mut times[at];
            *host_total += *host_self;
            *device_total += *device_self;
            let (host_ns, device_ns) = (*host_total, *device_total);
            if let Some(above) = times.get_mut(self.tree.nodes[at].parent as usize) {
                above[HOST_TOTAL] += host_ns;
                above[DEVICE_TOTAL] += device_ns;
            }
        }
        times
    }
}

/// A row is a place in the tree of calls. The most time comes first, a caller before what it calls.
pub(super) fn outcome(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let both = Both::of([a, b].map(|side| side.in_steps.get::<CallTree>()));
    let steps = [a.steps(), b.steps()];
    let times = [0, 1].map(|run| both.times(run, steps[run]));
    let nodes = &both.tree.nodes;
    let mut depths: Vec<i64> = Vec::with_capacity(nodes.len());
    for node in nodes {
        depths.push(depths.get(node.parent as usize).map_or(0, |above| above + 1));
    }
    let most = |at: u32| times.iter().flat_map(|of_run| of_run[at as usize]).max().unwrap_or(0);
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
            times: [0, 1].map(|run| own[run].map(|_| times[run][at])),
        }
    };
    let rows: Vec<PlaceRow> = (0..).zip(&order).map(row).collect();
    for (own, total) in [(HOST_SELF, HOST_TOTAL), (DEVICE_SELF, DEVICE_TOTAL)] {
        let parts: i64 = rows.iter().map(|row| row.change(own)).sum();
        let roots: i64 = rows.iter().filter(|row| row.parent.is_none()).map(|row| row.change(total)).sum();
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
        with_sides((a, &all), (b, &all), outcome).table
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
