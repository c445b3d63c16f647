//! A result as lines of text: aligned columns, at most a given number of columns wide.

use crate::{
    Column, Table, Unit, Values, column_words, fit_name, format_cell, has_answers, is_right_aligned, printable,
    width_of,
};

/// Blanks between two columns.
const GAP: usize = 2;
/// What a text may be shortened to: the first text of a table, and any other.
const FIRST_TEXT_MIN: usize = 28;
const OTHER_TEXT_MIN: usize = 14;

/// A laid out table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TextTable {
    /// The lines above the rows: names of the columns, without their units.
    pub heading: Vec<String>,
    /// One line a row.
    pub rows: Vec<String>,
    /// Columns that found no room.
    pub left_out: Vec<&'static str>,
    /// Columns of times and bytes that are 0 in every row: not shown.
    pub zero: Vec<&'static str>,
}

/// Lays `table` out in `width` columns of a terminal. Columns without any answer are not shown, nor times and bytes that
/// are 0 throughout; names that are too long lose their middle; columns that find no room are left out from the right.
pub fn text_table(table: &Table, width: usize) -> TextTable {
    let answered = table.columns.iter().filter(|column| has_answers(column));
    let (zero, shown): (Vec<&Column>, Vec<&Column>) = answered.partition(|column| is_zero(column));
    let mut lanes: Vec<Lane> = shown.into_iter().map(Lane::of).collect();
    if let Some(first) = lanes.iter_mut().find(|lane| !lane.is_right_aligned) {
        first.min_width = first.width.min(FIRST_TEXT_MIN);
    }
    let mut left_out = Vec::new();
    while lanes.len() > 1 && total(&lanes, |lane| lane.min_width) > width {
        left_out.extend(lanes.pop().map(|lane| lane.name));
    }
    left_out.reverse();
    shrink(&mut lanes, width);
    let heading_height = lanes.iter().map(|lane| lane.heading.len()).max().unwrap_or(0);
    let heading = (0..heading_height).map(|line| join(&lanes, |lane| lane.heading_line(line, heading_height)));
    let rows = (0..table.len()).map(|row| join(&lanes, |lane| lane.cells[row].clone()));
    TextTable {
        heading: heading.collect(),
        rows: rows.collect(),
        left_out,
        zero: zero.iter().map(|column| column.name).collect(),
    }
}

/// One column on its way to text.
struct Lane {
    name: &'static str,
    heading: Vec<String>,
    cells: Vec<String>,
    is_right_aligned: bool,
    width: usize,
    min_width: usize,
}

impl Lane {
    fn of(column: &Column) -> Self {
        let length = column.values.len();
        let cells: Vec<String> = (0..length).map(|row| printable(&format_cell(column, row))).collect();
        let cells = if has_units(column.unit) { units_aligned(cells) } else { cells };
        let cell_width = cells.iter().map(|cell| width_of(cell)).max().unwrap_or(0);
        let heading = wrapped_heading(column.name, cell_width);
        let heading_width = heading.iter().map(|line| width_of(line)).max().unwrap_or(0);
        let width = cell_width.max(heading_width);
        let is_right_aligned = is_right_aligned(column);
        let min_width = if is_right_aligned { width } else { width.min(OTHER_TEXT_MIN.max(heading_width)) };
        Self { name: column.name, heading, cells, is_right_aligned, width, min_width }
    }

    /// Line `line` of a heading that is `height` lines high; short headings stand at the bottom.
    fn heading_line(&self, line: usize, height: usize) -> String {
        let above = height - self.heading.len();
        line.checked_sub(above).map(|line| self.heading[line].clone()).unwrap_or_default()
    }
}

fn is_zero(column: &Column) -> bool {
    matches!(&column.values, Values::Int(values) if has_units(column.unit) && values.iter().all(|value| *value == Some(0)))
}

fn has_units(unit: Unit) -> bool {
    matches!(unit, Unit::Nanoseconds | Unit::Bytes | Unit::BytesPerSecond)
}

/// Pads the units so that the numbers before them end in the same column.
fn units_aligned(cells: Vec<String>) -> Vec<String> {
    let unit_width = |cell: &String| cell.rsplit_once(' ').map_or(0, |(_, unit)| width_of(unit));
    let widest = cells.iter().map(unit_width).max().unwrap_or(0);
    let pad = |cell: String| match widest - unit_width(&cell) {
        missing if cell.contains(' ') => cell + &" ".repeat(missing),
        _ => cell,
    };
    cells.into_iter().map(pad).collect()
}

/// The column's name without its unit, on two lines where that makes it narrower than one.
fn wrapped_heading(name: &str, cell_width: usize) -> Vec<String> {
    let text = column_words(name);
    if text.len() <= cell_width || !text.contains(' ') {
        return vec![text];
    }
    let splits = text.match_indices(' ').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let narrowest = splits.min_by_key(|(first, second)| first.len().max(second.len()));
    narrowest.map_or_else(Vec::new, |(first, second)| vec![first.to_string(), second.to_string()])
}

fn total(lanes: &[Lane], width: impl Fn(&Lane) -> usize) -> usize {
    lanes.iter().map(width).sum::<usize>() + GAP * lanes.len().saturating_sub(1)
}

/// Takes width from texts, the widest first, until the lanes fit; a lane that is alone gives all that is needed.
fn shrink(lanes: &mut [Lane], width: usize) {
    let mut excess = total(lanes, |lane| lane.width).saturating_sub(width);
    while excess > 0 {
        let widest = lanes.iter_mut().filter(|lane| lane.width > lane.min_width).max_by_key(|lane| lane.width);
        let Some(lane) = widest else { break };
        lane.width -= 1;
        excess -= 1;
    }
    if let [lane] = lanes {
        lane.width = lane.width.min(width);
    }
}

fn join(lanes: &[Lane], cell: impl Fn(&Lane) -> String) -> String {
    let padded = lanes.iter().map(|lane| {
        let text = fit_name(&cell(lane), lane.width);
        let blanks = " ".repeat(lane.width - width_of(&text));
        if lane.is_right_aligned { blanks + &text } else { text + &blanks }
    });
    padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels() -> Table {
        Table {
            columns: vec![
                Column::new(
                    "name",
                    Unit::Text,
                    "",
                    vec![Some("void gemm<float, 128, 64, 8, true, false>(Params)"), Some("memset")],
                ),
                Column::new("count", Unit::Count, "", vec![Some(12_345), Some(1)]),
                Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(1_234_567), Some(1_500_000_000)]),
                Column::new("occupancy_ratio", Unit::Ratio, "", vec![None, Some(0.5)]),
                Column::new("op", Unit::Text, "", vec![None::<&str>, None]),
                Column::new("device_total_ns", Unit::Nanoseconds, "", vec![Some(0), Some(0)]),
                Column::new("blocks_per_sm", Unit::Plain, "", vec![Some(2.0), None]),
            ],
        }
    }

    #[test]
    fn numbers_stand_right_units_align_and_columns_without_answers_are_not_shown() {
        let text = text_table(&kernels(), 100);
        let lines: Vec<&str> = text.heading.iter().chain(&text.rows).map(String::as_str).collect();
        assert!(
            lines[0].ends_with("  blocks") && lines[1].ends_with("count    total  occupancy  per SM"),
            "{lines:#?}"
        );
        assert!(lines[2].ends_with("12,345  1.23 ms          –    2.00"), "{lines:#?}");
        assert!(lines[3].ends_with("     1  1.50 s      50.0 %       –"), "{lines:#?}");
    }

    #[test]
    fn what_does_not_fit_is_shortened_then_left_out_and_named() {
        let text = text_table(&kernels(), 50);
        assert!(text.rows.iter().chain(&text.heading).all(|line| width_of(line) <= 50), "{text:#?}");
        assert_eq!(text.zero, ["device_total_ns"]);
        assert_eq!(text.left_out, ["occupancy_ratio", "blocks_per_sm"]);
        assert!(text.rows[0].contains('…'));
    }

    #[test]
    fn any_table_fits_any_width() {
        for width in 1..120 {
            let text = text_table(&kernels(), width);
            let widest = text.heading.iter().chain(&text.rows).map(|line| width_of(line)).max().unwrap();
            assert!(widest <= width, "{widest} > {width}");
        }
    }
}
