//! A result as values with commas (RFC 4180) or tabs between: raw numbers in the unit that the column's name says, nothing for
//! "no answer".
//!
//! Programs read CSV: texts are as in the trace, also one that begins as a formula does. A spreadsheet computes such a cell
//! when it opens the file; what is meant for it is the form with tabs.

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
/// space, and a text that a spreadsheet would take for a formula begins with `'`.
pub fn to_tsv(table: &Table) -> String {
    let plain = |text: &str| {
        let quote = if text.trim_start().starts_with(['=', '+', '-', '@']) { "'" } else { "" };
        quote.to_string() + &text.replace(['\t', '\n', '\r'], " ")
    };
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
    use crate::{Column, Unit};

    #[test]
    fn names_with_commas_and_quotes_stay_one_cell() {
        let table = Table {
            columns: vec![
                Column::new("name", Unit::Text, "", vec![Some("f<1, 2>"), Some("a \"b\""), None]),
                Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(5), None, Some(7)]),
                Column::new("idle_ratio", Unit::Ratio, "", vec![Some(0.25), Some(f64::NAN), Some(1.0)]),
                Column::new("tensor_cores", Unit::Flag, "", vec![Some(true), None, Some(false)]),
            ],
        };
        let lines =
            ["name,total_ns,idle_ratio,tensor_cores", "\"f<1, 2>\",5,0.25,true", "\"a \"\"b\"\"\",,,", ",7,1,false"];
        assert_eq!(to_csv(&table).lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn tabs_and_lines_stay_outside_of_cells() {
        let table = Table {
            columns: vec![
                Column::new("name", Unit::Text, "", vec![Some("a\tb\nc"), None]),
                Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(5), None]),
            ],
        };
        assert_eq!(to_tsv(&table), "name\ttotal_ns\na b c\t5\n\t\n");
    }

    #[test]
    fn a_text_for_spreadsheets_is_no_formula_and_one_for_programs_is_as_it_was() {
        let names = ["=1+1", "+a", "-a", "@a", "\t=1", "a=1"].map(Some);
        let table = Table {
            columns: vec![
                Column::new("name", Unit::Text, "", names.to_vec()),
                Column::new("change_ns", Unit::Nanoseconds, "", vec![Some(-5); 6]),
            ],
        };
        assert_eq!(to_tsv(&table), "name\tchange_ns\n'=1+1\t-5\n'+a\t-5\n'-a\t-5\n'@a\t-5\n' =1\t-5\na=1\t-5\n");
        assert_eq!(to_csv(&table), "name,change_ns\n=1+1,-5\n+a,-5\n-a,-5\n@a,-5\n\t=1,-5\na=1,-5\n");
    }
}
