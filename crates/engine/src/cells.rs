//! One value of a result as a person reads it.

use crate::{Column, Unit, Values};
use stepscope_base::units::{format_bytes, format_bytes_per_s, format_count, format_ns, format_ratio};

/// What stands for "no answer".
const MISSING: &str = "–";

/// The value of `column` in `row` with the unit that suits; "no answer" is a dash.
pub fn format_cell(column: &Column, row: usize) -> String {
    let text = match &column.values {
        Values::Int(values) => values[row].map(|value| format_int(column.unit, value)),
        Values::Float(values) => values[row].map(|value| format_float(column.unit, value)),
        Values::Text(values) => values[row].as_deref().map(str::to_string),
        Values::Bool(values) => values[row].map(|value| if value { "yes" } else { "no" }.to_string()),
    };
    text.unwrap_or_else(|| MISSING.to_string())
}

/// A column's name in words, without the unit that its formatted cells show.
pub fn column_words(name: &str) -> String {
    let bare = ["_ns", "_bytes", "_ratio"].iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    bare.replace('_', " ")
}

/// True when a column has any value; one without says nothing and need not be shown.
pub fn has_answers(column: &Column) -> bool {
    match &column.values {
        Values::Int(values) => values.iter().any(Option::is_some),
        Values::Float(values) => values.iter().any(Option::is_some),
        Values::Text(values) => values.iter().any(Option::is_some),
        Values::Bool(values) => values.iter().any(Option::is_some),
    }
}

/// True when a column's values stand at the right of their cells: all but text.
pub fn is_right_aligned(column: &Column) -> bool {
    !matches!(column.values, Values::Text(_))
}

fn format_int(unit: Unit, value: i64) -> String {
    match unit {
        Unit::Nanoseconds => format_ns(value),
        Unit::Bytes => format_bytes(value),
        Unit::BytesPerSecond => format_bytes_per_s(value),
        _ => format_count(value),
    }
}

fn format_float(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ratio => format_ratio(value),
        Unit::Nanoseconds => format_ns(value.round() as i64),
        Unit::Bytes => format_bytes(value.round() as i64),
        Unit::BytesPerSecond => format_bytes_per_s(value.round() as i64),
        _ => format!("{value:.2}"),
    }
}

/// Reads single cells of a result by column name; a column that is not there has no answers.
pub(crate) trait Cells {
    /// An integer.
    fn int_at(&self, column: &str, row: usize) -> Option<i64>;
    /// A fraction, or an integer as one.
    fn float_at(&self, column: &str, row: usize) -> Option<f64>;
    /// A text.
    fn text_at(&self, column: &str, row: usize) -> Option<&str>;
}

impl Cells for crate::Table {
    fn int_at(&self, column: &str, row: usize) -> Option<i64> {
        match &self.column(column)?.values {
            Values::Int(values) => *values.get(row)?,
            Values::Float(values) => values.get(row)?.map(|value| value.round() as i64),
            _ => None,
        }
    }

    fn float_at(&self, column: &str, row: usize) -> Option<f64> {
        match &self.column(column)?.values {
            Values::Float(values) => *values.get(row)?,
            Values::Int(values) => values.get(row)?.map(|value| value as f64),
            _ => None,
        }
    }

    fn text_at(&self, column: &str, row: usize) -> Option<&str> {
        match &self.column(column)?.values {
            Values::Text(values) => values.get(row)?.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    #[test]
    fn every_unit_has_its_form_and_no_answer_is_a_dash() {
        let table = Table::default()
            .ns("total_ns", [1_234_567])
            .int("read_bytes", Unit::Bytes, [1536])
            .float("idle_ratio", Unit::Ratio, [0.5])
            .float("blocks_per_sm", Unit::Plain, [2.5])
            .count("count", [12_345])
            .flag("tensor_cores", [true])
            .text("op", [None::<String>]);
        let cells: Vec<String> = table.columns.iter().map(|column| format_cell(column, 0)).collect();
        assert_eq!(cells, ["1.23 ms", "1.50 KiB", "50.0 %", "2.50", "12,345", "yes", "–"]);
        assert_eq!(table.int_at("total_ns", 0), Some(1_234_567));
        assert_eq!(table.float_at("count", 0), Some(12_345.0));
        assert_eq!(table.text_at("op", 0), None);
        assert_eq!(table.int_at("absent", 0), None);
    }
}
