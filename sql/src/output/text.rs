//! Rows as a table for people: columns as wide as their cells, numbers to the right.

use super::{Cells, Rows, failed};
use crate::error::QueryError;
use std::io::Write;

/// Characters of a cell that are shown.
const CELL: usize = 60;

/// Plans have cells of many lines, which are to be read whole.
pub(super) async fn write(mut rows: Rows, is_plan: bool, mut out: impl Write) -> Result<(), QueryError> {
    let names: Vec<String> = rows.schema.fields().iter().map(|field| shown(field.name())).collect();
    let is_number: Vec<bool> = rows.schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
    let mut lines: Vec<Vec<String>> = Vec::new();
    while let Some(batch) = rows.next().await? {
        let columns = Cells::of(&batch)?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|cells| cells.text(row));
            if is_plan {
                let text = cells.map(Option::unwrap_or_default).collect::<Vec<_>>();
                writeln!(out, "{}\n{}", text[0], text[1]).map_err(failed)?;
                continue;
            }
            lines.push(cells.map(|text| text.map_or_else(|| "–".to_string(), |text| shown(&text))).collect());
        }
    }
    if is_plan {
        return out.flush().map_err(failed);
    }
    let width = |column: usize| {
        let cells = lines.iter().map(|line| &line[column]).chain([&names[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    for line in std::iter::once(&names).chain(&lines) {
        let cells = line.iter().enumerate().map(|(column, cell)| {
            let room = " ".repeat(widths[column] - cell.chars().count());
            if is_number[column] { room + cell } else { cell.clone() + &room }
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end()).map_err(failed)?;
    }
    let said = match (lines.len(), rows.is_complete) {
        (0, _) => "no rows".to_string(),
        (1, true) => "1 row".to_string(),
        (count, true) => format!("{count} rows"),
        (count, false) => format!("the first {count} rows: --limit N for more, --csv or --parquet FILE for all"),
    };
    writeln!(out, "\n{said}").map_err(failed)?;
    out.flush().map_err(failed)
}

/// A cell on one line, without what changes a terminal.
fn shown(text: &str) -> String {
    let plain = text.replace('\n', " ⏎ ");
    let plain: String = plain.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
    if plain.chars().count() <= CELL {
        return plain;
    }
    plain.chars().take(CELL - 1).chain(['…']).collect()
}
