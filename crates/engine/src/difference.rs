//! Where the difference of two runs comes from: the mean step as a sum, in a few lines.

use crate::report::class_words;
use crate::{Table, Values};
use serde::Serialize;
use stepscope_base::units::format_count;

/// Parts of a class at most, …
const PARTS: usize = 3;
/// … of which each is at least this share of the largest change of a class.
const WORTH_A_LINE: f64 = 0.1;

/// A line of the table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DifferenceLine {
    /// What it is, in words.
    pub name: String,
    /// Whether it is a part of the class above it.
    pub is_part: bool,
    /// What the mean step before spends on it.
    pub before_ns: i64,
    /// What the mean step now spends on it.
    pub now_ns: i64,
    /// How much longer it takes now.
    pub change_ns: i64,
}

impl DifferenceLine {
    fn new(name: &str, is_part: bool, [before_ns, now_ns]: [i64; 2]) -> Self {
        Self { name: name.into(), is_part, before_ns, now_ns, change_ns: now_ns - before_ns }
    }
}

/// The classes that are not 0 in both runs, each with the parts that explain it, and last the step. Changes of classes sum
/// to that of the step, those of parts to that of their class: what is too little for a line of its own is put together.
/// `table` is that of `Compared::StepBreakdown`. Empty when one of the runs has no steps.
pub fn difference_lines(table: &Table) -> Vec<DifferenceLine> {
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
        lines.push(DifferenceLine::new(name, false, class.times_ns));
        let shown: Vec<&Row<'_>> = parts.iter().filter(is_worth).take(PARTS).collect();
        if shown.iter().all(|part| part.name.is_none()) {
            continue;
        }
        let mut rest_ns = class.times_ns;
        for part in &shown {
            lines.push(DifferenceLine::new(part.name.unwrap_or("no name recorded"), true, part.times_ns));
            (0..2).for_each(|run| rest_ns[run] -= part.times_ns[run]);
        }
        let others = parts.len() - shown.len();
        if others > 0 {
            let name = format!("{} {}", format_count(others as i64), if others == 1 { "other" } else { "others" });
            lines.push(DifferenceLine::new(&name, true, rest_ns));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compared, OpenedRun, Selection, compare};
    use stepscope_trace::drawn::drawn;

    #[test]
    fn classes_sum_to_the_step_and_parts_to_their_class() {
        let [a, b] = [
            "rank 0 step 00000000001111111111\nrank 0 cpu 1 abcdefgh..abcdefgh..",
            "rank 0 step 000000000000000011111111111111\nrank 0 cpu 1 aaabbcdefghxxx..aaabbcdefghxx.",
        ]
        .map(|drawing| OpenedRun::of(drawn(drawing)));
        let all = Selection::default();
        let table = compare((&a, &all), (&b, &all), Compared::StepBreakdown).unwrap().results;
        let lines = difference_lines(&table);
        let (step, classes) = lines.split_last().unwrap();
        assert_eq!(
            (step.name.as_str(), step.before_ns, step.now_ns, step.change_ns),
            ("a step", 10_000, 15_000, 5_000)
        );
        let sum = |lines: &[&DifferenceLine]| {
            lines.iter().fold([0; 3], |[a, b, by], line| [a + line.before_ns, b + line.now_ns, by + line.change_ns])
        };
        let all_classes: Vec<_> = classes.iter().filter(|line| !line.is_part).collect();
        assert_eq!(sum(&all_classes), [10_000, 15_000, 5_000]);
        for of_class in classes.chunk_by(|_, next| next.is_part) {
            let parts: Vec<_> = of_class[1..].iter().collect();
            assert!(parts.is_empty() || sum(&parts) == sum(&[&of_class[0]]), "{of_class:?}");
        }
        assert!(classes.iter().any(|line| line.is_part && line.name.ends_with(" others")), "{classes:?}");
    }
}
