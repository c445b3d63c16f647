//! One value of a result as a person reads it.

use crate::{Column, Unit, Values};
use stepscope_base::units::{format_bytes, format_bytes_per_s, format_count, format_ns, format_ratio};

/// What stands for "no answer".
const MISSING: &str = "–";

/// The value of `column` in `row` with the unit that suits; "no answer" is a dash.
pub fn format_cell(column: &Column, row: usize) -> String {
    let text = match &column.values {
        Values::Int(values) if is_id(column) => values[row].map(|value| value.to_string()),
        Values::Int(values) => values[row].map(|value| format_int(column.unit, value)),
        Values::Float(values) => values[row].map(|value| format_float(column.unit, value)),
        Values::Text(values) => values[row].as_deref().map(str::to_string),
        Values::Bool(values) => values[row].map(|value| if value { "yes" } else { "no" }.to_string()),
    };
    text.unwrap_or_else(|| MISSING.to_string())
}

/// A column's name in words, without the unit that its formatted cells show. Of two runs side by side, `a_` is what was
/// before, and `b_` what is now.
pub fn column_words(name: &str) -> String {
    let (side, name) = match (name.strip_prefix("a_"), name.strip_prefix("b_")) {
        (Some(of_a), _) => ("before ", of_a),
        (_, Some(of_b)) => ("now ", of_b),
        _ => ("", name),
    };
    let bare = UNIT_ENDINGS.iter().find_map(|(ending, kept)| Some(format!("{}{kept}", name.strip_suffix(ending)?)));
    let bare = bare.unwrap_or_else(|| name.to_string());
    let written = |word| ABBREVIATIONS.iter().find(|(of, _)| *of == word).map_or(word, |(_, written)| *written);
    let words: Vec<&str> = bare.split('_').map(written).collect();
    format!("{side}{}", words.join(" "))
}

/// Words of names that are written otherwise.
const ABBREVIATIONS: [(&str, &str); 6] =
    [("cpu", "CPU"), ("flops", "FLOPs"), ("io", "I/O"), ("macs", "MACs"), ("pid", "PID"), ("sm", "SM")];

/// How names end that have a unit in them, and what is kept of that.
const UNIT_ENDINGS: [(&str, &str); 13] = [
    ("_ns_ratio", "_time"),
    ("_bytes_per_step", "_per_step"),
    ("_ns", ""),
    ("_bytes", ""),
    ("_ratio", ""),
    ("bandwidth_bytes_per_s", "bandwidth"),
    ("_bytes_per_s", "_per_s"),
    ("_ns_min", "_min"),
    ("_ns_median", "_median"),
    ("_ns_max", "_max"),
    ("_bytes_min", "_min"),
    ("_bytes_median", "_median"),
    ("_bytes_max", "_max"),
];

/// What stands above each of the columns: their names in words, and where two would be called the same, a sign at the one
/// with shares, and a word at the one with times. Beside the time in operators of the host, its window says that it is one.
pub fn column_headings(columns: &[&Column]) -> Vec<String> {
    let words: Vec<String> = columns.iter().map(|column| column_words(column.name)).collect();
    let heading = |(at, column): (usize, &&Column)| {
        let same = || (0..columns.len()).filter(|other| *other != at && words[*other] == words[at]);
        let is_shared = same().next().is_some();
        match column.unit {
            Unit::Ratio if is_shared => format!("{} %", words[at]),
            Unit::Nanoseconds if words[at] == "host" && words.iter().any(|other| other == "host op") => {
                "host window".into()
            }
            // A time and a text of one name: the time of it, and what it was.
            Unit::Nanoseconds if same().any(|other| columns[other].unit == Unit::Text) => format!("{} time", words[at]),
            _ => words[at].clone(),
        }
    };
    columns.iter().enumerate().map(heading).collect()
}

/// True when the numbers of a column name something, such as a line of a file: their digits are not grouped.
pub(crate) fn is_id(column: &Column) -> bool {
    matches!(column.name, "pid" | "line" | "step")
}

/// A column's unit in JSON: that of [`Unit::as_str`], or `id` for numbers that name something.
pub fn unit_word(column: &Column) -> &'static str {
    if is_id(column) { "id" } else { column.unit.as_str() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    #[test]
    fn words_have_no_unit_that_cells_show() {
        let words =
            ["total_ns", "slack_ns_max", "reserved_bytes_max", "read_bytes_per_s", "algorithm_bandwidth_bytes_per_s"];
        let expected = ["total", "slack max", "reserved max", "read per s", "algorithm bandwidth"];
        assert_eq!(words.map(column_words), expected);
        let names = ["achieved_flops_per_s", "io_ns", "metadata_ns_ratio", "macs"];
        assert_eq!(names.map(column_words), ["achieved FLOPs per s", "I/O", "metadata time", "MACs"]);
        assert_eq!(["a_mean_ns", "b_count", "bytes"].map(column_words), ["before mean", "now count", "bytes"]);
    }

    #[test]
    fn headings_tell_columns_apart() {
        let table = Table {
            columns: vec![
                Column::new("peak_bytes", Unit::Bytes, "", vec![Some(1)]),
                Column::new("peak_ratio", Unit::Ratio, "", vec![Some(0.5)]),
                Column::new("idle_ratio", Unit::Ratio, "", vec![Some(0.5)]),
                Column::new("a_host_self_ns", Unit::Nanoseconds, "", vec![Some(1)]),
                Column::new("b_host_self_ns", Unit::Nanoseconds, "", vec![Some(1)]),
                Column::new("change_ns", Unit::Nanoseconds, "", vec![Some(1)]),
                Column::new("change_ratio", Unit::Ratio, "", vec![Some(0.5)]),
            ],
        };
        let expected = ["peak", "peak %", "idle", "before host self", "now host self", "change", "change %"];
        let columns: Vec<&Column> = table.columns.iter().collect();
        assert_eq!(column_headings(&columns), expected);
    }

    #[test]
    fn a_time_beside_a_text_of_its_name_and_a_count_of_each_step_say_so() {
        let table = Table {
            columns: vec![
                Column::new("host", Unit::Text, "", vec![Some("launch")]),
                Column::new("host_ns", Unit::Nanoseconds, "", vec![Some(1)]),
                Column::new("a_count_per_step", Unit::Plain, "", vec![Some(26.0)]),
                Column::new("count", Unit::Count, "", vec![Some(26)]),
            ],
        };
        let columns: Vec<&Column> = table.columns.iter().collect();
        assert_eq!(column_headings(&columns), ["host", "host time", "before count per step", "count"]);
        let path = Table {
            columns: vec![
                Column::new("host_ns", Unit::Nanoseconds, "", vec![Some(1)]),
                Column::new("host_sync_ns", Unit::Nanoseconds, "", vec![Some(1)]),
                Column::new("host_op_ns", Unit::Nanoseconds, "", vec![Some(1)]),
            ],
        };
        let columns: Vec<&Column> = path.columns.iter().collect();
        assert_eq!(column_headings(&columns), ["host window", "host sync", "host op"]);
        assert_eq!(column_words("growth_bytes_per_step"), "growth per step");
        let table = Table { columns: vec![Column::new("step", Unit::Count, "", vec![Some(1_009)])] };
        assert_eq!(format_cell(&table.columns[0], 0), "1009");
    }

    #[test]
    fn what_names_something_has_its_digits_in_one_piece() {
        let table = Table {
            columns: vec![
                Column::new("pid", Unit::Count, "", vec![Some(3_537_780), None]),
                Column::new("line", Unit::Count, "", vec![Some(1_743), Some(2)]),
            ],
        };
        assert_eq!(format_cell(&table.columns[0], 0), "3537780");
        assert_eq!(format_cell(&table.columns[0], 1), "–");
        assert_eq!(format_cell(&table.columns[1], 0), "1743");
    }

    #[test]
    fn every_unit_has_its_form_and_no_answer_is_a_dash() {
        let table = Table {
            columns: vec![
                Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(1_234_567)]),
                Column::new("read_bytes", Unit::Bytes, "", vec![Some(1536)]),
                Column::new("idle_ratio", Unit::Ratio, "", vec![Some(0.5)]),
                Column::new("blocks_per_sm", Unit::Plain, "", vec![Some(2.5)]),
                Column::new("count", Unit::Count, "", vec![Some(12_345)]),
                Column::new("tensor_cores", Unit::Flag, "", vec![Some(true)]),
                Column::new("op", Unit::Text, "", vec![None::<&str>]),
            ],
        };
        let cells: Vec<String> = table.columns.iter().map(|column| format_cell(column, 0)).collect();
        assert_eq!(cells, ["1.23 ms", "1.50 KiB", "50.0 %", "2.50", "12,345", "yes", "–"]);
    }
}
