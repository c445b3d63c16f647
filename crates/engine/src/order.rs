//! Rows of a result in another order, or only the first of them.

use crate::{Column, EngineError, Table, Values};
use std::cmp::Ordering;

/// `table` ordered by the column called `name`: largest numbers first, texts from A to Z, "no answer" last; rows that
/// are equal there keep their order. `analysis` is only for the error.
///
/// # Errors
/// [`EngineError::UnknownColumn`].
pub fn sorted(table: &Table, name: &str, analysis: &str) -> Result<Table, EngineError> {
    let mut rows: Vec<usize> = (0..table.len()).collect();
    sort_rows(table, &mut rows, find_column(table, name, analysis)?, false);
    Ok(with_rows(table, &rows))
}

/// The column of `table` called `name`; `-` and `_` are the same. `analysis` is only for the error.
///
/// # Errors
/// [`EngineError::UnknownColumn`].
pub fn find_column<'a>(table: &'a Table, name: &str, analysis: &str) -> Result<&'a Column, EngineError> {
    let columns = || table.columns.iter().map(|column| column.name).collect();
    let unknown = || EngineError::UnknownColumn { name: name.into(), analysis: analysis.into(), columns: columns() };
    table.column(&name.replace('-', "_")).ok_or_else(unknown)
}

/// Orders `rows` of `table` as [`sorted`] does, or, when `is_reversed`, the other way round; "no answer" comes last
/// either way.
pub fn sort_rows(table: &Table, rows: &mut [usize], column: &Column, is_reversed: bool) {
    assert!(rows.iter().all(|row| *row < table.len()), "rows are of this table");
    rows.sort_by(|a, b| compare(&column.values, *a, *b, is_reversed));
}

/// The first `count` rows of `table`.
pub fn limited(table: &Table, count: usize) -> Table {
    with_rows(table, &(0..table.len().min(count)).collect::<Vec<_>>())
}

fn compare(values: &Values, a: usize, b: usize, is_reversed: bool) -> Ordering {
    let turned = |order: Ordering| if is_reversed { order.reverse() } else { order };
    match values {
        Values::Int(values) => missing_last(values[a], values[b], |a, b| turned(b.cmp(a))),
        Values::Float(values) => missing_last(values[a], values[b], |a, b| turned(b.total_cmp(a))),
        Values::Text(values) => missing_last(values[a].as_deref(), values[b].as_deref(), |a, b| turned(a.cmp(b))),
        Values::Bool(values) => missing_last(values[a], values[b], |a, b| turned(b.cmp(a))),
    }
}

fn missing_last<T>(a: Option<T>, b: Option<T>, compare: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(&a, &b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// `rows` of `table`, in their order.
pub fn with_rows(table: &Table, rows: &[usize]) -> Table {
    let values = |values: &Values| match values {
        Values::Int(values) => Values::Int(rows.iter().map(|row| values[*row]).collect()),
        Values::Float(values) => Values::Float(rows.iter().map(|row| values[*row]).collect()),
        Values::Text(values) => Values::Text(rows.iter().map(|row| values[*row].clone()).collect()),
        Values::Bool(values) => Values::Bool(rows.iter().map(|row| values[*row]).collect()),
    };
    let column = |column: &Column| Column { values: values(&column.values), ..*column };
    Table { columns: table.columns.iter().map(column).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    fn table() -> Table {
        Table {
            columns: vec![
                Column::new("name", Unit::Text, "", vec![Some("b"), None, Some("a")]),
                Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(1), Some(9), None]),
            ],
        }
    }

    #[test]
    fn numbers_fall_texts_rise_and_no_answer_comes_last() {
        let order =
            |name: &str| sorted(&table(), name, "operators").unwrap().column("total_ns").unwrap().values.clone();
        assert_eq!(order("total_ns"), Values::Int(vec![Some(9), Some(1), None]));
        assert_eq!(order("total-ns"), order("total_ns"));
        assert_eq!(order("name"), Values::Int(vec![None, Some(1), Some(9)]));
    }

    #[test]
    fn the_other_way_round_no_answer_comes_last_too() {
        let order = |name: &str| {
            let (table, mut rows) = (table(), vec![0, 1, 2]);
            sort_rows(&table, &mut rows, find_column(&table, name, "operators").unwrap(), true);
            rows
        };
        assert_eq!(order("total_ns"), [0, 1, 2]);
        assert_eq!(order("name"), [0, 2, 1]);
    }

    #[test]
    fn a_column_that_is_not_there_names_those_that_are() {
        let error = sorted(&table(), "time", "operators").unwrap_err();
        assert_eq!(error.hint().as_deref(), Some("its columns are name, total_ns"));
    }

    #[test]
    fn a_limit_beyond_the_end_is_all() {
        assert_eq!(limited(&table(), 99).len(), 3);
        assert_eq!(limited(&table(), 1).column("name").unwrap().values, Values::Text(vec![Some("b".into())]));
    }
}
