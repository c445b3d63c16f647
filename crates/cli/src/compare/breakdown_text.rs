//! Where the difference of two runs comes from: the mean step as a sum, in a few lines.

use crate::color::DIM;
use crate::report::heading;
use serde::Serialize;
use stepscope_base::units::format_count;
use stepscope_engine::report::class_words;
use stepscope_engine::{Column, Table, Unit, Values, text_table};

/// Parts of a class at most, …
const PARTS: usize = 3;
/// … of which each is at least this share of the largest change of a class.
const WORTH_A_LINE: f64 = 0.1;

/// A line of the table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Line {
    /// What it is, in words.
    name: String,
    /// Whether it is a part of the class above it.
    is_part: bool,
    /// What the mean step before spends on it.
    before_ns: i64,
    /// What the mean step now spends on it.
    now_ns: i64,
    /// How much longer it takes now.
    change_ns: i64,
}

impl Line {
    fn new(name: &str, is_part: bool, [before_ns, now_ns]: [i64; 2]) -> Self {
        Self { name: name.into(), is_part, before_ns, now_ns, change_ns: now_ns - before_ns }
    }
}

/// The classes that are not 0 in both runs, each with the parts that explain it, and last the step. Changes of classes sum
/// to that of the step, those of parts to that of their class. Empty when one of the runs has no steps.
pub(crate) fn lines(table: &Table) -> Vec<Line> {
    let rows = rows(table);
    let largest = rows.iter().filter(|row| row.row == "class").map(|row| row.change_ns().unsigned_abs()).max();
    let is_worth = |row: &&Row<'_>| {
        row.change_ns() != 0 && row.change_ns().unsigned_abs() as f64 >= WORTH_A_LINE * largest.unwrap_or(0) as f64
    };
    let mut lines = Vec::new();
    for of_class in rows.chunk_by(|_, next| next.row == "part") {
        let (class, parts) = (&of_class[0], &of_class[1..]);
        if class.times_ns == [0; 2] && class.row != "total" {
            continue;
        }
        let name = if class.row == "total" { "a step" } else { class_words(class.class) };
        lines.push(Line::new(name, false, class.times_ns));
        let shown: Vec<&Row<'_>> = parts.iter().filter(is_worth).take(PARTS).collect();
        if shown.iter().all(|part| part.name.is_none()) {
            continue;
        }
        let mut rest_ns = class.times_ns;
        for part in &shown {
            lines.push(Line::new(part.name.unwrap_or("no name recorded"), true, part.times_ns));
            (0..2).for_each(|run| rest_ns[run] -= part.times_ns[run]);
        }
        let others = parts.len() - shown.len();
        if others > 0 {
            let name = format!("{} {}", format_count(others as i64), if others == 1 { "other" } else { "others" });
            lines.push(Line::new(&name, true, rest_ns));
        }
    }
    lines
}

/// A row of the result.
struct Row<'a> {
    row: &'a str,
    class: &'a str,
    name: Option<&'a str>,
    times_ns: [i64; 2],
}

impl Row<'_> {
    fn change_ns(&self) -> i64 {
        self.times_ns[1] - self.times_ns[0]
    }
}

fn rows(table: &Table) -> Vec<Row<'_>> {
    let texts = |name: &str| match table.column(name).map(|column| &column.values) {
        Some(Values::Text(values)) => values.iter().map(|text| text.as_deref()).collect(),
        _ => Vec::new(),
    };
    let numbers = |name: &str| match table.column(name).map(|column| &column.values) {
        Some(Values::Int(values)) => values.iter().copied().collect::<Option<Vec<i64>>>().unwrap_or_default(),
        _ => Vec::new(),
    };
    let (row, class, name) = (texts("row"), texts("class"), texts("name"));
    let times = numbers("a_ns").into_iter().zip(numbers("b_ns")).map(<[i64; 2]>::from);
    let rows = times.enumerate().map(|(at, times_ns)| Row {
        row: row[at].unwrap_or_default(),
        class: class[at].unwrap_or_default(),
        name: name[at],
        times_ns,
    });
    rows.collect()
}

/// The lines with a title; nothing without any.
pub(crate) fn breakdown_text(lines: &[Line], width: usize) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut text = heading("Where the difference comes from", "of the mean step, the largest changes first", width);
    let laid_out = text_table(&as_table(lines), width - 2);
    laid_out.heading.iter().for_each(|line| text.push_str(&format!("  {DIM}{line}{DIM:#}\n")));
    laid_out.rows.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    text
}

/// The lines as a table: what it is, before, now, and the change.
pub(crate) fn as_table(lines: &[Line]) -> Table {
    let names: Vec<String> =
        lines.iter().map(|line| format!("{}{}", if line.is_part { "· " } else { "" }, line.name)).collect();
    let ns = |of: fn(&Line) -> i64| lines.iter().map(|line| Some(of(line))).collect::<Vec<_>>();
    let ratio = |line: &Line| (line.before_ns != 0).then(|| line.change_ns as f64 / line.before_ns as f64);
    Table {
        columns: vec![
            Column::new("name", Unit::Text, "", names.iter().map(|name| Some(name.as_str())).collect()),
            Column::new("before_ns", Unit::Nanoseconds, "", ns(|line| line.before_ns)),
            Column::new("now_ns", Unit::Nanoseconds, "", ns(|line| line.now_ns)),
            Column::new("change_ns", Unit::Nanoseconds, "", ns(|line| line.change_ns)),
            Column::new("change_ratio", Unit::Ratio, "", lines.iter().map(ratio).collect()),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (&'static str, &'static str, Option<&'static str>, i64, i64);

    fn table(rows: &[Told]) -> Table {
        let texts = |of: fn(&Told) -> Option<&'static str>| rows.iter().map(of).collect::<Vec<_>>();
        let ns = |of: fn(&Told) -> i64| rows.iter().map(|row| Some(of(row))).collect::<Vec<_>>();
        Table {
            columns: vec![
                Column::new("row", Unit::Text, "", texts(|row| Some(row.0))),
                Column::new("class", Unit::Text, "", texts(|row| Some(row.1))),
                Column::new("name", Unit::Text, "", texts(|row| row.2)),
                Column::new("a_ns", Unit::Nanoseconds, "", ns(|row| row.3)),
                Column::new("b_ns", Unit::Nanoseconds, "", ns(|row| row.4)),
            ],
        }
    }

    #[test]
    fn lines_sum_and_what_hardly_changed_is_put_together() {
        let table = table(&[
            ("class", "cpu", None, 1_000, 1_600),
            ("part", "cpu", Some("mm"), 500, 1_000),
            ("part", "cpu", Some("add"), 400, 450),
            ("part", "cpu", Some("mul"), 100, 150),
            ("class", "other", None, 300, 200),
            ("part", "other", None, 300, 200),
            ("class", "io", None, 0, 0),
            ("total", "total", None, 1_300, 1_800),
        ]);
        let lines = lines(&table);
        let told: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.is_part, line.change_ns)).collect();
        assert_eq!(
            told,
            [
                ("operators on the CPU", false, 600),
                ("mm", true, 500),
                ("2 others", true, 100),
                ("outside of operators", false, -100),
                ("a step", false, 500),
            ]
        );
        let text = anstream::adapter::strip_str(&breakdown_text(&lines, 100)).to_string();
        let words: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(words[1], "name before now change change");
        assert_eq!(words[2], "operators on the CPU 1.00 µs 1.60 µs 600 ns 60.0 %");
        assert_eq!(words[3], "· mm 500 ns 1.00 µs 500 ns 100.0 %");
    }

    #[test]
    fn without_steps_there_are_no_lines() {
        let mut table = table(&[("total", "total", None, 0, 0)]);
        assert_eq!(lines(&table).len(), 1);
        table.columns[4] = Column::new("b_ns", Unit::Nanoseconds, "", vec![None::<i64>]);
        assert_eq!(breakdown_text(&lines(&table), 100), "");
    }
}
