//! Where the difference of two runs comes from: the mean step as a sum, in a few lines.

use crate::color::DIM;
use crate::report::heading;
use stepscope_engine::{Column, DifferenceLine as Line, Table, Unit, text_table};

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
    use stepscope_engine::difference_lines as lines;

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
