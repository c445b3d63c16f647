//! Two results of one analysis, row by row: what has the same name stands in one row.

use crate::{Table, Unit, Values};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A column that is compared, and what it becomes.
struct Measure {
    name: &'static str,
    /// In the first run, in the second, their difference, and that over the first.
    becomes: [&'static str; 4],
    unit: Unit,
}

macro_rules! measures {
    ($($name:literal $unit:ident $ratio:literal),* $(,)?) => {
        &[$(Measure {
            name: $name,
            becomes: [concat!("a_", $name), concat!("b_", $name), concat!("change_", $name), $ratio],
            unit: Unit::$unit,
        },)*]
    };
}

/// Operators by what a step spends in them and on their device work.
pub(super) fn operators(a: &Table, b: &Table, a_steps: i64, b_steps: i64) -> Table {
    let measures: &[Measure] = measures![
        "device_self_ns" Nanoseconds "change_device_self_ratio",
        "host_self_ns" Nanoseconds "change_host_self_ratio",
        "device_total_ns" Nanoseconds "change_device_total_ratio",
        "host_total_ns" Nanoseconds "change_host_total_ratio",
    ];
    joined(a, b, "name", "count", measures, a_steps, b_steps)
}

/// Kernels by their time in a step.
pub(super) fn kernels(a: &Table, b: &Table, a_steps: i64, b_steps: i64) -> Table {
    let measures: &[Measure] = measures!["total_ns" Nanoseconds "change_total_ratio"];
    joined(a, b, "name", "count", measures, a_steps, b_steps)
}

/// Modules by what a step spends in them and on their device work.
pub(super) fn modules(a: &Table, b: &Table, a_steps: i64, b_steps: i64) -> Table {
    let measures: &[Measure] = measures![
        "device_total_ns" Nanoseconds "change_device_total_ratio",
        "forward_host_total_ns" Nanoseconds "change_forward_host_total_ratio",
        "backward_host_total_ns" Nanoseconds "change_backward_host_total_ratio",
        "allocated_bytes" Bytes "change_allocated_ratio",
    ];
    let mut table = joined(a, b, "path", "count", measures, a_steps, b_steps);
    // Where each stands in the tree of calls: a path cannot be cut, since names may hold what parts it.
    let places = [a, b].map(places);
    let Some(Values::Text(paths)) = table.column("path").map(|column| column.values.clone()) else { return table };
    let place = |path: &Option<Arc<str>>| {
        let path = path.as_ref()?;
        places.iter().find_map(|places| places.get(path).cloned())
    };
    let (names, parents): (Vec<_>, Vec<_>) = paths.iter().map(|path| place(path).unwrap_or_default()).unzip();
    table = table.text("name", names).text("parent", parents);
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

fn joined(
    a: &Table,
    b: &Table,
    key: &'static str,
    count: &str,
    measures: &[Measure],
    a_steps: i64,
    b_steps: i64,
) -> Table {
    let columns: Vec<&str> = std::iter::once(count).chain(measures.iter().map(|measure| measure.name)).collect();
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
    let runs = names.iter().map(|name| match (a.contains_key(*name), b.contains_key(*name)) {
        (true, true) => Some("both"),
        (true, false) => Some("a"),
        _ => Some("b"),
    });
    let each = |sums: &Sums, steps: i64| -> Vec<Option<f64>> {
        names.iter().map(|name| of(sums, name, 0).map(|count| count as f64 / steps as f64)).collect()
    };
    let mut table = Table::default()
        .text(key, names.iter().map(|name| Some(Arc::clone(name))))
        .text("runs", runs)
        .float("a_count_per_step", Unit::Plain, each(&a, a_steps))
        .float("b_count_per_step", Unit::Plain, each(&b, b_steps));
    for (at, measure) in (1..).zip(measures) {
        let ratio = |name: &&Arc<str>| match (a_of(name, at), b_of(name, at)) {
            (Some(a), Some(b)) if a != 0 => Some((b - a) as f64 / a as f64),
            _ => None,
        };
        table = table
            .int(measure.becomes[0], measure.unit, names.iter().map(|name| a_of(name, at)))
            .int(measure.becomes[1], measure.unit, names.iter().map(|name| b_of(name, at)))
            .int(measure.becomes[2], measure.unit, names.iter().map(|name| change(name, at)))
            .float(measure.becomes[3], Unit::Ratio, names.iter().map(ratio));
    }
    table
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
