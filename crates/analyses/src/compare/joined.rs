//! Two results of one analysis, row by row: what has the same name stands in one row.

use crate::{Column, Table, Unit, Values};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A column that is compared, and what it becomes: in the first run, in the second, their difference, and that over the
/// first.
struct Measure {
    name: &'static str,
    unit: Unit,
    becomes: [(&'static str, &'static str); 4],
}

macro_rules! measures {
    ($($name:literal $unit:ident $ratio:literal $what:literal),* $(,)?) => {
        &[$(Measure {
            name: $name,
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
pub(super) fn operators(a: &Table, b: &Table, a_steps: i64, b_steps: i64) -> Table {
    let measures: &[Measure] = measures![
        "device_self_ns" Nanoseconds "change_device_self_ratio" "device time without the operators inside",
        "host_self_ns" Nanoseconds "change_host_self_ratio" "host time without the operators inside",
        "device_total_ns" Nanoseconds "change_device_total_ratio" "device time",
        "host_total_ns" Nanoseconds "change_host_total_ratio" "host time",
    ];
    joined(a, b, ("name", NAME), measures, a_steps, b_steps)
}

/// Kernels by their time in a step.
pub(super) fn kernels(a: &Table, b: &Table, a_steps: i64, b_steps: i64) -> Table {
    let measures: &[Measure] = measures!["total_ns" Nanoseconds "change_total_ratio" "time of the runs of the kernel"];
    joined(a, b, ("name", NAME), measures, a_steps, b_steps)
}

/// Modules by what a step spends in them and on their device work.
pub(super) fn modules(a: &Table, b: &Table, a_steps: i64, b_steps: i64) -> Table {
    let measures: &[Measure] = measures![
        "device_total_ns" Nanoseconds "change_device_total_ratio" "device time",
        "forward_host_total_ns" Nanoseconds "change_forward_host_total_ratio" "host time of the forward pass",
        "backward_host_total_ns" Nanoseconds "change_backward_host_total_ratio" "host time of the backward pass",
        "allocated_bytes" Bytes "change_allocated_ratio" "bytes allocated",
    ];
    let mut table = joined(a, b, ("path", PATH), measures, a_steps, b_steps);
    // Where each stands in the tree of calls: a path cannot be cut, since names may hold what parts it.
    let places = [a, b].map(places);
    let Some(Values::Text(paths)) = table.column("path").map(|column| column.values.clone()) else { return table };
    let place = |path: &Option<Arc<str>>| {
        let path = path.as_ref()?;
        places.iter().find_map(|places| places.get(path).cloned())
    };
    let (names, parents): (Vec<_>, Vec<_>) = paths.iter().map(|path| place(path).unwrap_or_default()).unzip();
    table.push(Column::new("name", Unit::Text, "The name of the module itself.", names));
    table.push(Column::new("parent", Unit::Text, "The path of the module that calls it.", parents));
    table
}

/// A module's name and its parent's path.
type Place = (Option<Arc<str>>, Option<Arc<str>>);

/// Where each module stands, by its path.
fn places(table: &Table) -> FxHashMap<Arc<str>, Place> {
    let texts = |name: &str| match table.column(name).map(|column| &column.values) {
        Some(Values::Text(values)) => values.as_slice(),
        _ => &[],
    };
    let rest = texts("name").iter().cloned().zip(texts("parent").iter().cloned());
    texts("path").iter().zip(rest).filter_map(|(path, rest)| Some((path.clone()?, rest))).collect()
}

/// Sums of one name, by measure.
type Sums = FxHashMap<Arc<str>, Vec<Option<i64>>>;

const NAME: &str = "The name that both runs know it by.";
const PATH: &str = "The place of the module in the tree of calls.";
const RUNS: &str = "The runs that have it: `a` for the first, `b` for the second, or `both`.";
const COUNT_OF_A: &str = "Mean number of calls or runs per step in the first run.";
const COUNT_OF_B: &str = "Mean number of calls or runs per step in the second run.";

fn joined(
    a: &Table,
    b: &Table,
    (key, key_doc): (&'static str, &'static str),
    measures: &[Measure],
    a_steps: i64,
    b_steps: i64,
) -> Table {
    let columns: Vec<&str> = std::iter::once("count").chain(measures.iter().map(|measure| measure.name)).collect();
    let (a, b) = (sums(a, key, &columns), sums(b, key, &columns));
    let names: BTreeSet<&Arc<str>> = a.keys().chain(b.keys()).collect();
    let of = |sums: &Sums, name: &Arc<str>, at: usize| sums.get(name).and_then(|row| row[at]);
    let a_of = |name: &Arc<str>, at: usize| of(&a, name, at).map(|value| by_step(value, a_steps));
    let b_of = |name: &Arc<str>, at: usize| of(&b, name, at).map(|value| by_step(value, b_steps));
    let change = |name: &Arc<str>, at: usize| match (a_of(name, at), b_of(name, at)) {
        (None, None) => None,
        (a, b) => Some(b.unwrap_or(0) - a.unwrap_or(0)),
    };
    let mut names: Vec<&Arc<str>> = names.into_iter().collect();
    // By the first measure that changed anywhere: without a device that is the host's time.
    let main = (1..columns.len()).find(|at| names.iter().any(|name| change(name, *at).is_some_and(|by| by != 0)));
    names.sort_by_key(|name| std::cmp::Reverse(main.and_then(|at| change(name, at)).map_or(0, i64::unsigned_abs)));
    let runs = |name: &&Arc<str>| match (a.contains_key(*name), b.contains_key(*name)) {
        (true, true) => Some("both".into()),
        (true, false) => Some("a".into()),
        _ => Some("b".into()),
    };
    let each = |sums: &Sums, steps: i64| -> Vec<Option<f64>> {
        names.iter().map(|name| of(sums, name, 0).map(|count| count as f64 / steps as f64)).collect()
    };
    let keys = names.iter().map(|name| Some(Arc::clone(name))).collect();
    let mut columns = vec![
        Column::new(key, Unit::Text, key_doc, keys),
        Column::new("runs", Unit::Text, RUNS, names.iter().map(runs).collect::<Vec<Option<Arc<str>>>>()),
        Column::new("a_count_per_step", Unit::Plain, COUNT_OF_A, each(&a, a_steps)),
        Column::new("b_count_per_step", Unit::Plain, COUNT_OF_B, each(&b, b_steps)),
    ];
    for (at, Measure { unit, becomes: [of_a, of_b, by, share], .. }) in (1..).zip(measures) {
        let ratio = |name: &&Arc<str>| match (a_of(name, at), b_of(name, at)) {
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
    Table { columns }
}

/// A step's share of a sum, rounded to whole units.
pub(super) fn by_step(sum: i64, steps: i64) -> i64 {
    (sum as f64 / steps as f64).round() as i64
}

/// The sums of `columns` over the rows of each name.
fn sums(table: &Table, key: &str, columns: &[&str]) -> Sums {
    let mut sums = Sums::default();
    let Some(Values::Text(names)) = table.column(key).map(|column| &column.values) else { return sums };
    for (row, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        let sum = sums.entry(Arc::clone(name)).or_insert_with(|| vec![None; columns.len()]);
        for (sum, column) in sum.iter_mut().zip(columns) {
            let Some(Values::Int(values)) = table.column(column).map(|column| &column.values) else { continue };
            if let Some(value) = values[row] {
                *sum = Some(sum.unwrap_or(0).saturating_add(value));
            }
        }
    }
    sums
}
