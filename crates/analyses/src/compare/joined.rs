//! Rows of one analysis of two runs: what has the same name is one row.

use super::side::{Side, runs_with};
use crate::groups::known;
use crate::kernels::{self, Kernel};
use crate::modules::{self, ModuleRow};
use crate::operators::{self, Operator};
use crate::{AnalysisContext, Column, Outcome, Table, Unit};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A number of a row that is compared, and the columns that it becomes: in the first run, in the second, their
/// difference, and that over the first.
struct Measure<R> {
    of_row: fn(&R) -> Option<i64>,
    unit: Unit,
    becomes: [(&'static str, &'static str); 4],
}

macro_rules! measures {
    ($($name:literal $unit:ident $ratio:literal $what:literal $of_row:expr),* $(,)?) => {
        &[$(Measure {
            of_row: $of_row,
            unit: Unit::$unit,
            becomes: [
                (concat!("a_", $name), concat!("Per step of the first run: ", $what, ".")),
                (concat!("b_", $name), concat!("Per step of the second run: ", $what, ".")),
                (concat!("change_", $name), concat!("The second run less the first, per step: ", $what, ".")),
                ($ratio, concat!("The change as a share of the first run: ", $what, ".")),
            ],
        },)*]
    };
}

/// Operators by what a step spends in them and on their device work.
pub(super) fn operators(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let measures: &[Measure<Operator>] = measures![
        "device_self_ns" Nanoseconds "change_device_self_ratio" "device time without the operators inside"
            |row| Some(row.device_self_ns),
        "host_self_ns" Nanoseconds "change_host_self_ratio" "host time without the operators inside"
            |row| Some(row.host_self_ns),
        "device_total_ns" Nanoseconds "change_device_total_ratio" "device time" |row| Some(row.device_total_ns),
        "host_total_ns" Nanoseconds "change_host_total_ratio" "host time" |row| Some(row.host_total_ns),
    ];
    let pair = Pair::of(a, b, |context| operators::rows(context).to_vec());
    pair.outcome(pair.joined(("name", NAME), |row| known(&row.label.name), |row| row.count, measures).1)
}

/// Kernels by their time in a step.
pub(super) fn kernels(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let measures: &[Measure<Kernel>] = measures![
        "total_ns" Nanoseconds "change_total_ratio" "time of the runs of the kernel" |row| Some(row.total_ns),
    ];
    let pair = Pair::of(a, b, |context| kernels::rows(context).to_vec());
    pair.outcome(pair.joined(("name", NAME), |row| Some(&row.name), |row| row.count, measures).1)
}

/// Modules by what a step spends in them and on their device work.
pub(super) fn modules(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let measures: &[Measure<ModuleRow>] = measures![
        "device_total_ns" Nanoseconds "change_device_total_ratio" "device time" |row| Some(row.device_total_ns()),
        "forward_host_total_ns" Nanoseconds "change_forward_host_total_ratio" "host time of the forward pass"
            |row| Some(row.forward.host_total_ns),
        "backward_host_total_ns" Nanoseconds "change_backward_host_total_ratio" "host time of the backward pass"
            |row| Some(row.backward.host_total_ns),
        "allocated_bytes" Bytes "change_allocated_ratio" "bytes allocated" |row| row.allocated_bytes,
    ];
    let pair = Pair::of(a, b, modules::rows);
    let (paths, mut columns) = pair.joined(("path", PATH), |row| Some(&row.path), |row| row.count, measures);
    // Where each is in the tree of calls: a path cannot be cut, since names may hold what parts it.
    let [of_a, of_b] = &pair.rows;
    let rows: FxHashMap<&str, &ModuleRow> = of_b.iter().chain(of_a).map(|row| (row.path.as_str(), row)).collect();
    let names = paths.iter().map(|path| Some(rows[path].name.as_str())).collect();
    let parents = paths.iter().map(|path| rows[path].parent.as_deref()).collect();
    columns.push(Column::new("name", Unit::Text, "The name of the module itself.", names));
    columns.push(Column::new("parent", Unit::Text, "The path of the module that calls it.", parents));
    pair.outcome(columns)
}

const NAME: &str = "The name that both runs know it by.";
const PATH: &str = "The place of the module in the tree of calls.";
const RUNS: &str = "The runs that have it: `a` for the first, `b` for the second, or `both`.";
const COUNT_OF_A: &str = "Mean number of calls or runs per step in the first run.";
const COUNT_OF_B: &str = "Mean number of calls or runs per step in the second run.";

/// The rows of both runs, and of how many steps they are.
struct Pair<'a, R> {
    contexts: [&'a AnalysisContext<'a>; 2],
    rows: [Vec<R>; 2],
    steps: [i64; 2],
}

/// Sums of one name: the number of calls, then those of each measure.
type Sums<'a> = FxHashMap<&'a str, Vec<Option<i64>>>;

impl<'a, R> Pair<'a, R> {
    fn of(a: &Side<'a>, b: &Side<'a>, rows: fn(&AnalysisContext<'_>) -> Vec<R>) -> Self {
        let contexts = [a, b].map(|side| side.in_steps);
        Self { rows: contexts.map(rows), contexts, steps: [a.steps(), b.steps()] }
    }

    fn outcome(&self, columns: Vec<Column>) -> Outcome {
        Outcome { table: Table { columns }, coverage: self.contexts[0].coverage(), ..Outcome::default() }
    }

    /// The names of the rows, and their columns; what changed most comes first.
    fn joined<'r>(
        &'r self,
        (key, key_doc): (&'static str, &'static str),
        name: impl Fn(&'r R) -> Option<&'r str>,
        count: impl Fn(&R) -> i64,
        measures: &[Measure<R>],
    ) -> (Vec<&'r str>, Vec<Column>) {
        let sums = |rows: &'r Vec<R>| {
            let mut sums = Sums::default();
            for row in rows {
                let Some(name) = name(row) else { continue };
                let sum = sums.entry(name).or_insert_with(|| vec![None; 1 + measures.len()]);
                let values = measures.iter().map(|measure| (measure.of_row)(row));
                for (sum, value) in sum.iter_mut().zip(std::iter::once(Some(count(row))).chain(values)) {
                    *sum = value.map_or(*sum, |value| Some(sum.unwrap_or(0).saturating_add(value)));
                }
            }
            sums
        };
        let [a, b] = self.rows.each_ref().map(sums);
        let [a_steps, b_steps] = self.steps;
        let of = |sums: &Sums<'_>, name: &str, at: usize| sums.get(name).and_then(|row| row[at]);
        let a_of = |name: &str, at: usize| of(&a, name, at).map(|value| by_step(value, a_steps));
        let b_of = |name: &str, at: usize| of(&b, name, at).map(|value| by_step(value, b_steps));
        let change = |name: &str, at: usize| match (a_of(name, at), b_of(name, at)) {
            (None, None) => None,
            (a, b) => Some(b.unwrap_or(0) - a.unwrap_or(0)),
        };
        let mut names: Vec<&str> = a.keys().chain(b.keys()).copied().collect::<BTreeSet<_>>().into_iter().collect();
        // By the first measure that changed anywhere: without a device that is the host's time.
        let has_changed = |at: &usize| names.iter().any(|name| change(name, *at).is_some_and(|by| by != 0));
        let main = (1..=measures.len()).find(has_changed);
        names.sort_by_key(|name| std::cmp::Reverse(main.and_then(|at| change(name, at)).map_or(0, i64::unsigned_abs)));
        let runs = |name: &&str| Some(runs_with([&a, &b].map(|sums| sums.contains_key(name))));
        let each = |sums: &Sums<'_>, steps: i64| -> Vec<Option<f64>> {
            names.iter().map(|name| of(sums, name, 0).map(|count| count as f64 / steps as f64)).collect()
        };
        let mut columns = vec![
            Column::new(key, Unit::Text, key_doc, names.iter().copied().map(Some).collect()),
            Column::new("runs", Unit::Text, RUNS, names.iter().map(runs).collect()),
            Column::new("a_count_per_step", Unit::Plain, COUNT_OF_A, each(&a, a_steps)),
            Column::new("b_count_per_step", Unit::Plain, COUNT_OF_B, each(&b, b_steps)),
        ];
        for (at, Measure { unit, becomes: [of_a, of_b, by, share], .. }) in (1..).zip(measures) {
            let ratio = |name: &&str| match (a_of(name, at), b_of(name, at)) {
                (Some(a), Some(b)) if a != 0 => Some((b - a) as f64 / a as f64),
                _ => None,
            };
            columns.extend([
                Column::new(of_a.0, *unit, of_a.1, names.iter().map(|name| a_of(name, at)).collect()),
                Column::new(of_b.0, *unit, of_b.1, names.iter().map(|name| b_of(name, at)).collect()),
                Column::new(by.0, *unit, by.1, names.iter().map(|name| change(name, at)).collect()),
                Column::new(share.0, Unit::Ratio, share.1, names.iter().map(ratio).collect()),
            ]);
        }
        (names, columns)
    }
}

/// A step's share of a sum, rounded to whole units.
pub(super) fn by_step(sum: i64, steps: i64) -> i64 {
    (sum as f64 / steps as f64).round() as i64
}
