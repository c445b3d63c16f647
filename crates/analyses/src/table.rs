//! The plain form of a result that every face can print: typed columns with units.

use crate::CellValue;
use std::sync::Arc;

/// What a column's numbers count; also how a person reads them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Names and other text.
    Text,
    /// Plain numbers: ranks, step numbers, counts.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Bytes in a second.
    BytesPerSecond,
    /// A share in `0..=1`.
    Ratio,
    /// Blocks of a launch over multiprocessors, and other plain fractions.
    Plain,
    /// Yes or no.
    Flag,
}

impl Unit {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Count => "count",
            Self::Nanoseconds => "ns",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes_per_s",
            Self::Ratio => "ratio",
            Self::Plain => "plain",
            Self::Flag => "flag",
        }
    }
}

/// A column's values; `None` is "no answer", never 0.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Integers.
    Int(Vec<Option<i64>>),
    /// Fractions.
    Float(Vec<Option<f64>>),
    /// Text; rows with the same may share it.
    Text(Vec<Option<Arc<str>>>),
    /// Yes or no.
    Bool(Vec<Option<bool>>),
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Bool(values) => values.len(),
        }
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::Int(values), Self::Int(more)) => values.extend(more),
            (Self::Float(values), Self::Float(more)) => values.extend(more),
            (Self::Text(values), Self::Text(more)) => values.extend(more),
            (Self::Bool(values), Self::Bool(more)) => values.extend(more),
            _ => panic!("a column of one name has values of one type"),
        }
    }
}

/// One column.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Its name in JSON, with the unit in it: `total_ns`.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What it means, in sentences.
    pub doc: &'static str,
    /// One value a row.
    pub values: Values,
}

impl Column {
    /// A column of these cells.
    pub fn new<V: CellValue>(name: &'static str, unit: Unit, doc: &'static str, cells: Vec<Option<V>>) -> Self {
        Self { name, unit, doc: doc.trim_ascii(), values: V::values(cells) }
    }

    /// Whether its values are moments, counted from the start of the trace, of which results of one rank are moved with
    /// its clock.
    pub fn is_moment(&self) -> bool {
        self.name == "peak_ns" || self.name.ends_with("start_ns")
    }
}

/// A result as columns of equal length.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// The columns, in order.
    pub columns: Vec<Column>,
}

impl Table {
    /// Takes every moment as `of` has it.
    pub fn set_moments(&mut self, of: impl Fn(i64) -> i64) {
        for column in self.columns.iter_mut().filter(|column| column.is_moment()) {
            if let Values::Int(moments) = &mut column.values {
                moments.iter_mut().flatten().for_each(|at_ns| *at_ns = of(*at_ns));
            }
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The column called `name`.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Adds the rows of `other`, which has the same columns.
    ///
    /// # Panics
    /// When it has others.
    pub fn append(&mut self, other: Table) {
        assert_eq!(self.columns.len(), other.columns.len(), "tables of one kind have the same columns");
        for (column, more) in self.columns.iter_mut().zip(other.columns) {
            assert_eq!(column.name, more.name, "tables of one kind have the same columns");
            column.values.append(more.values);
        }
    }

    /// Adds a column, which is as long as the others.
    pub(crate) fn push(&mut self, column: Column) {
        assert!(self.columns.is_empty() || column.values.len() == self.len(), "columns of a table are equally long");
        self.columns.push(column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keep_their_order_and_length() {
        let table = Table {
            columns: vec![
                Column::new("name", Unit::Text, "", vec![Some("a"), None]),
                Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(1), Some(2)]),
                Column::new("step", Unit::Count, "", vec![None, Some(4)]),
            ],
        };
        assert_eq!(table.len(), 2);
        assert_eq!(table.column("step").unwrap().values, Values::Int(vec![None, Some(4)]));
    }

    #[test]
    #[should_panic(expected = "equally long")]
    fn a_short_column_is_a_bug() {
        let mut table = Table::default();
        table.push(Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(1), Some(2)]));
        table.push(Column::new("step", Unit::Count, "", vec![Some(1)]));
    }
}
