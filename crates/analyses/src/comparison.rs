//! Two runs, or two ranks, side by side: what differs, and whether it may be chance. `a` is what was before, `b` what is
//! now; a change is `b` less `a`.

mod rank_sum;

use crate::table::{Column, Table, Unit, Values};
use rank_sum::p_value;
use std::collections::BTreeMap;
use std::sync::Arc;
use stepscope_base::percentiles::nearest_rank;
use stepscope_trace::{StepSource, Trace};

/// Differences with a smaller probability of being chance count as real.
const SIGNIFICANT: f64 = 0.05;

/// A column of both results, and what it is called in their comparison.
struct Compared {
    of: &'static str,
    a: &'static str,
    b: &'static str,
    change: &'static str,
}

macro_rules! compared {
    ($($of:literal),*) => {
        &[$(Compared { of: $of, a: concat!("a_", $of), b: concat!("b_", $of), change: concat!("change_", $of) },)*]
    };
}

/// What two runs are compared by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareBy {
    /// The operators of each name.
    Operators,
    /// The kernels of each name.
    Kernels,
    /// The modules at each place in the model.
    Modules,
}

impl CompareBy {
    /// The choice that is written so; it is the name of the analysis whose results are compared.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Operators, Self::Kernels, Self::Modules].into_iter().find(|by| by.as_str() == name)
    }

    /// How it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operators => "operators",
            Self::Kernels => "kernels",
            Self::Modules => "modules",
        }
    }

    /// What rows are joined by.
    fn key(self) -> &'static str {
        if self == Self::Modules { "path" } else { "name" }
    }

    /// The columns that are compared, the one that orders rows first.
    fn columns(self) -> &'static [Compared] {
        match self {
            Self::Operators => compared!["host_self_ns", "device_self_ns", "host_total_ns", "device_total_ns", "count"],
            Self::Kernels => compared!["total_ns", "mean_ns", "count"],
            Self::Modules => compared![
                "device_total_ns",
                "forward_host_total_ns",
                "backward_host_total_ns",
                "forward_device_total_ns",
                "backward_device_total_ns",
                "count"
            ],
        }
    }
}

/// The rows of two results of one analysis side by side; those that differ most in time first. A row that one of them
/// lacks has no values on that side, and its change is all that the other has.
pub fn compare_results(a: &Table, b: &Table, by: CompareBy) -> Table {
    let mut pairs: BTreeMap<(Arc<str>, usize), (Option<usize>, Option<usize>)> = BTreeMap::new();
    keys(a, by.key()).into_iter().enumerate().for_each(|(row, key)| pairs.entry(key).or_default().0 = Some(row));
    keys(b, by.key()).into_iter().enumerate().for_each(|(row, key)| pairs.entry(key).or_default().1 = Some(row));
    let mut rows: Vec<_> = pairs.into_iter().collect();
    let change = |column: &Compared, (a_row, b_row): (Option<usize>, Option<usize>)| {
        let (of_a, of_b) = (value(a, column.of, a_row), value(b, column.of, b_row));
        match (a_row, b_row) {
            (Some(_), Some(_)) => change_of(of_a, of_b),
            _ => of_b.or(of_a.map(|value| value.saturating_neg())),
        }
    };
    let size = |pair| by.columns().iter().find_map(|column| change(column, pair).filter(|change| *change != 0));
    rows.sort_by_cached_key(|(_, pair)| std::cmp::Reverse(size(*pair).map_or(0, i64::unsigned_abs)));
    let mut table = Table::default().text(by.key(), rows.iter().map(|((key, _), _)| Some(key.clone())));
    for column in by.columns() {
        let values = |of: &Table, side: fn(&(Option<usize>, Option<usize>)) -> Option<usize>| -> Vec<Option<i64>> {
            rows.iter().map(|(_, pair)| value(of, column.of, side(pair))).collect()
        };
        let (of_a, of_b) = (values(a, |pair| pair.0), values(b, |pair| pair.1));
        let changes: Vec<Option<i64>> = rows.iter().map(|(_, pair)| change(column, *pair)).collect();
        let unit = a.column(column.of).or(b.column(column.of)).map_or(Unit::Count, |found| found.unit);
        table = table.int(column.a, unit, of_a).int(column.b, unit, of_b).int(column.change, unit, changes);
    }
    table
}

/// How long the complete steps of two runs take, on all of their ranks or on one of each: how many there are, mean,
/// median, shortest, longest; how likely such a difference is when nothing has changed (`p_value`: the rank-sum test of
/// Mann and Whitney, two-sided; not known for fewer than five steps); and whether that is below 5 % (`is_significant`).
pub fn compare_steps(a: (&Trace, Option<u32>), b: (&Trace, Option<u32>)) -> Table {
    let (a, b) = (step_times(a.0, a.1), step_times(b.0, b.1));
    let mean = |sorted: &[i64]| {
        let sum: i128 = sorted.iter().map(|ns| i128::from(*ns)).sum();
        let mean = sum.checked_div(sorted.len() as i128)?;
        i64::try_from(mean).ok()
    };
    let ratio = mean(&a).zip(mean(&b)).filter(|(a, _)| *a > 0).map(|(a, b)| (b - a) as f64 / a as f64);
    let p_value = p_value(&a, &b);
    let three = |of: fn(&[i64]) -> Option<i64>| [of(&a), of(&b), change_of(of(&a), of(&b))];
    let [a_mean, b_mean, change_mean] = [mean(&a), mean(&b), change_of(mean(&a), mean(&b))];
    let [a_p50, b_p50, change_p50] = three(|sorted| nearest_rank(sorted, 50));
    let [a_min, b_min, change_min] = three(|sorted| sorted.first().copied());
    let [a_max, b_max, change_max] = three(|sorted| sorted.last().copied());
    Table::default()
        .count("a_steps", [a.len() as i64])
        .count("b_steps", [b.len() as i64])
        .ns("a_mean_ns", [a_mean])
        .ns("b_mean_ns", [b_mean])
        .ns("change_mean_ns", [change_mean])
        .float("change_mean_ratio", Unit::Ratio, [ratio])
        .ns("a_p50_ns", [a_p50])
        .ns("b_p50_ns", [b_p50])
        .ns("change_p50_ns", [change_p50])
        .ns("a_min_ns", [a_min])
        .ns("b_min_ns", [b_min])
        .ns("change_min_ns", [change_min])
        .ns("a_max_ns", [a_max])
        .ns("b_max_ns", [b_max])
        .ns("change_max_ns", [change_max])
        .float("p_value", Unit::Plain, [p_value])
        .flag("is_significant", [p_value.map(|p_value| p_value < SIGNIFICANT)])
}

/// What a row is joined by, and which of several of one name it is.
fn keys(table: &Table, key: &str) -> Vec<(Arc<str>, usize)> {
    let Some(Column { values: Values::Text(texts), .. }) = table.column(key) else { return Vec::new() };
    let mut seen: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    let mut key = |text: &Option<Arc<str>>| {
        let text = text.clone().unwrap_or_default();
        let count = seen.entry(text.clone()).or_default();
        *count += 1;
        (text, *count)
    };
    texts.iter().map(&mut key).collect()
}

fn value(table: &Table, column: &str, row: Option<usize>) -> Option<i64> {
    match &table.column(column)?.values {
        Values::Int(values) => *values.get(row?)?,
        _ => None,
    }
}

/// What there is more of now, where both are known.
fn change_of(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a.zip(b).map(|(a, b)| b.saturating_sub(a))
}

/// The durations of complete steps, ascending.
fn step_times(trace: &Trace, rank: Option<u32>) -> Vec<i64> {
    let steps = trace.steps.iter().filter(|step| step.is_complete && step.source != StepSource::Whole);
    let steps = steps.filter(|step| rank.is_none_or(|rank| rank == step.rank));
    let mut times: Vec<i64> = steps.map(|step| step.span.duration_ns()).collect();
    times.sort_unstable();
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Asked, Selection};
    use stepscope_trace::drawn::drawn;

    fn ints(table: &Table, column: &str) -> Vec<Option<i64>> {
        let Some(Values::Int(values)) = table.column(column).map(|column| &column.values) else { panic!("{column}") };
        values.clone()
    }

    #[test]
    fn rows_are_joined_by_name_and_those_of_one_side_stay() {
        let operators = |drawing: &str| {
            let (trace, selection) = (drawn(drawing), Selection::default());
            crate::operators::outcome(&Asked::new(&trace, &selection)).table
        };
        let (a, b) = (operators("rank 0 cpu 1 aaabb.cccccc"), operators("rank 0 cpu 1 aaaa.dd.cccccc"));
        let table = compare_results(&a, &b, CompareBy::Operators);
        let names = Values::Text(["b", "d", "a", "c"].map(|name| Some(name.into())).into());
        assert_eq!(table.column("name").unwrap().values, names);
        assert_eq!(ints(&table, "a_host_self_ns"), [Some(2_000), None, Some(3_000), Some(6_000)]);
        assert_eq!(ints(&table, "b_host_self_ns"), [None, Some(2_000), Some(4_000), Some(6_000)]);
        assert_eq!(ints(&table, "change_host_self_ns"), [Some(-2_000), Some(2_000), Some(1_000), Some(0)]);
        assert_eq!(ints(&table, "change_count"), [Some(-1), Some(1), Some(0), Some(0)]);
    }

    #[test]
    fn a_result_beside_itself_has_no_change() {
        let (trace, selection) = (drawn("rank 0 launch 1 CK.\nrank 0 stream 7 .CK"), Selection::default());
        for (by, table) in [
            (CompareBy::Kernels, crate::kernels::outcome(&Asked::new(&trace, &selection)).table),
            (CompareBy::Modules, crate::modules::outcome(&Asked::new(&trace, &selection)).table),
        ] {
            let compared = compare_results(&table, &table, by);
            assert_eq!(compared.len(), table.len());
            for column in by.columns() {
                assert!(table.column(column.of).is_some(), "{} of {by:?}", column.of);
                assert!(ints(&compared, column.change).iter().all(|change| change.is_none_or(|change| change == 0)));
            }
        }
    }

    #[test]
    fn steps_are_compared_when_they_are_complete() {
        let (a, b) = (drawn("rank 0 step 0001112223"), drawn("rank 0 step 000011112222333344445"));
        let table = compare_steps((&a, None), (&b, Some(0)));
        assert!(ints(&table, "a_mean_ns")[0].is_some_and(|mean| mean <= 3_000));
        assert_eq!(ints(&table, "b_p50_ns"), [Some(4_000)]);
        assert_eq!(table.column("p_value").unwrap().values, Values::Float(vec![None]));
        let none = compare_steps((&Trace::default(), None), (&b, None));
        assert_eq!((ints(&none, "a_mean_ns"), ints(&none, "change_mean_ns")), (vec![None], vec![None]));
    }
}
