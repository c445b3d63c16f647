//! A result as values with commas (RFC 4180) or tabs between: raw numbers in the unit that the column's name says, nothing for
//! "no answer".

use crate::{Column, Table, Values};

/// `table` with a line of column names and one line a row, each ending in a line feed.
pub fn to_csv(table: &Table) -> String {
    let names: Vec<String> = table.columns.iter().map(|column| quoted(column.name)).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..table.len() {
        let cells: Vec<String> = table.columns.iter().map(|column| cell(column, row, quoted)).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

/// The same with tabs, as spreadsheets take it from the clipboard: a tab or the end of a line inside a text becomes a
/// space.
pub fn to_tsv(table: &Table) -> String {
    let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let mut text = table.columns.iter().map(|column| column.name).collect::<Vec<_>>().join("\t") + "\n";
    for row in 0..table.len() {
        let cells: Vec<String> = table.columns.iter().map(|column| cell(column, row, plain)).collect();
        text.push_str(&cells.join("\t"));
        text.push('\n');
    }
    text
}

fn cell(column: &Column, row: usize, quoted: impl Fn(&str) -> String) -> String {
    let text = match &column.values {
        Values::Int(values) => values[row].map(|value| value.to_string()),
        Values::Float(values) => values[row].filter(|value| value.is_finite()).map(|value| value.to_string()),
        Values::Text(values) => values[row].as_deref().map(quoted),
        Values::Bool(values) => values[row].map(|value| value.to_string()),
    };
    text.unwrap_or_default()
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    #[test]
    fn names_with_commas_and_quotes_stay_one_cell() {
        let table = Table::default()
            .text("name", [Some("f<1, 2>"), Some("a \"b\""), None])
            .ns("total_ns", [Some(5), None, Some(7)])
            .float("idle_ratio", Unit::Ratio, [0.25, f64::NAN, 1.0])
            .flag("tensor_cores", [Some(true), None, Some(false)]);
        let lines =
            ["name,total_ns,idle_ratio,tensor_cores", "\"f<1, 2>\",5,0.25,true", "\"a \"\"b\"\"\",,,", ",7,1,false"];
        assert_eq!(to_csv(&table).lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn tabs_and_lines_stay_outside_of_cells() {
        let table = Table::default().text("name", [Some("a\tb\nc"), None]).ns("total_ns", [Some(5), None]);
        assert_eq!(to_tsv(&table), "name\ttotal_ns\na b c\t5\n\t\n");
    }
}
