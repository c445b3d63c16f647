//! Rows of a result in another order, or only the first of them.

use crate::{EngineError, Table, Values};
use std::cmp::Ordering;

/// `table` ordered by the column called `name`: largest numbers first, texts from A to Z, "no answer" last; rows that
/// are equal there keep their order. `analysis` is only for the error.
///
/// # Errors
/// [`EngineError::UnknownColumn`].
pub fn sorted(table: &Table, name: &str, analysis: &str) -> Result<Table, EngineError> {
    let wanted = name.replace('-', "_");
    let Some(column) = table.column(&wanted) else {
        let columns = table.columns.iter().map(|column| column.name).collect();
        return Err(EngineError::UnknownColumn { name: name.into(), analysis: analysis.into(), columns });
    };
    let mut rows: Vec<usize> = (0..table.len()).collect();
    rows.sort_by(|a, b| compare(&column.values, *a, *b));
    Ok(picked(table, &rows))
}

/// The first `count` rows of `table`.
pub fn limited(table: &Table, count: usize) -> Table {
    picked(table, &(0..table.len().min(count)).collect::<Vec<_>>())
}

fn compare(values: &Values, a: usize, b: usize) -> Ordering {
    match values {
        Values::Int(values) => missing_last(values[a], values[b], |a, b| b.cmp(a)),
        Values::Float(values) => missing_last(values[a], values[b], |a, b| b.total_cmp(a)),
        Values::Text(values) => missing_last(values[a].as_deref(), values[b].as_deref(), Ord::cmp),
        Values::Bool(values) => missing_last(values[a], values[b], |a, b| b.cmp(a)),
    }
}

fn missing_last<T>(a: Option<T>, b: Option<T>, compare: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(&a, &b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

fn picked(table: &Table, rows: &[usize]) -> Table {
    let mut table = table.clone();
    for column in &mut table.columns {
        match &mut column.values {
            Values::Int(values) => *values = rows.iter().map(|row| values[*row]).collect(),
            Values::Float(values) => *values = rows.iter().map(|row| values[*row]).collect(),
            Values::Text(values) => *values = rows.iter().map(|row| values[*row].clone()).collect(),
            Values::Bool(values) => *values = rows.iter().map(|row| values[*row]).collect(),
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::default().text("name", [Some("b"), None, Some("a")]).ns("total_ns", [Some(1), Some(9), None])
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
