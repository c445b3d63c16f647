//! What changed between two runs, on one screen.

use super::CompareArguments;
use super::breakdown_text::breakdown_text;
use crate::color::{DIM, HEADING, HINT};
use crate::line_wrap::wrap;
use crate::report::{findings_text, heading, to_type};
use std::fmt::Write;
use stepscope_base::units::format_count;
use stepscope_engine::{
    self as engine, Compared, Envelope, Table, Values, column_words, difference_lines, finding_rows, fit_width,
    text_table,
};

/// What has a section each, below the sentence on steps.
pub(super) const SECTIONS: [Compared; 3] = [Compared::Operators, Compared::Kernels, Compared::Modules];

/// Rows of a section unless another number is asked for.
const ROWS: usize = 10;

/// The sentence on steps and where the difference comes from, then of each section the rows that changed most.
pub(super) fn summary_text(
    steps: &Envelope,
    breakdown: &Envelope,
    sections: &[(Compared, Envelope)],
    arguments: &CompareArguments,
    width: usize,
) -> String {
    let name = fit_width(&steps.run.name, width - "stepscope compare  ".len());
    let mut text = format!("{DIM}stepscope compare{DIM:#}  {HEADING}{name}{HEADING:#}\n\n");
    sentence(steps, width - 2).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    let lines = difference_lines(&breakdown.results);
    if !lines.is_empty() {
        let _ = write!(text, "\n{}", breakdown_text(&lines, width));
    }
    let limit = arguments.limit.unwrap_or(ROWS);
    for (what, envelope) in sections {
        text.push_str(&section(*what, &envelope.results, limit, width));
    }
    let findings = findings_text(&finding_rows(&steps.findings), width);
    if !findings.is_empty() {
        let _ = write!(text, "\n{findings}");
    }
    let _ = write!(text, "\n{}", heading("Next", "", width));
    // What is too long to stand in a line is called as `--help` calls it.
    let typed = |path, called: &str| Some(to_type(path)).filter(|path| path != "RUN").unwrap_or_else(|| called.into());
    let (a, b) = (typed(&arguments.a, "A"), typed(&arguments.b, "B"));
    let ranks = [("--rank-a", arguments.rank_a), ("--rank-b", arguments.rank_b)];
    let ranks: String = ranks.iter().filter_map(|(name, rank)| rank.map(|rank| format!(" {name} {rank}"))).collect();
    let view = if a == b { format!("view {a}") } else { format!("view {a} {b}") };
    for command in [format!("compare {a} {b}{ranks} --what operators"), view] {
        let _ = writeln!(text, "  {HINT}{}{HINT:#}", fit_width(&format!("stepscope {command}"), width - 2));
    }
    text
}

/// What the rows say, in lines.
pub(super) fn sentence(steps: &Envelope, width: usize) -> Vec<String> {
    says(steps).map_or_else(Vec::new, |says| wrap(says, width))
}

/// The comparison of steps in words.
pub(crate) fn says(steps: &Envelope) -> Option<&str> {
    match steps.results.column("says").map(|column| &column.values) {
        Some(Values::Text(says)) => says.first()?.as_deref(),
        _ => None,
    }
}

/// A heading and the rows that changed most, by what tells most of them; nothing when neither run has any.
fn section(what: Compared, table: &Table, limit: usize, width: usize) -> String {
    let (title, noun) = match what {
        Compared::Kernels => ("Kernels", "kernels"),
        Compared::Modules => ("Modules", "modules"),
        _ => ("Operators", "operators"),
    };
    let Some((measure, changes)) = engine::largest_changes(table) else {
        let is_there = !table.is_empty();
        return if is_there { format!("\n{}", heading(title, "nothing changed", width)) } else { String::new() };
    };
    let shown = engine::limited(&changes, limit);
    let rows = match shown.len() < table.len() {
        true => format!("{} of {} {noun}, ", format_count(shown.len() as i64), format_count(table.len() as i64)),
        false => String::new(),
    };
    let of_step = format!("{rows}{} of a step, the largest changes first", column_words(measure));
    let mut text = format!("\n{}", heading(title, &of_step, width));
    let laid_out = text_table(&shown, width - 2);
    laid_out.heading.iter().for_each(|line| text.push_str(&format!("  {DIM}{line}{DIM:#}\n")));
    laid_out.rows.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_engine::{Column, Unit};

    fn operators(changes: [i64; 2]) -> Table {
        Table {
            columns: vec![
                Column::new("name", Unit::Text, "", vec![Some("mm"), Some("add")]),
                Column::new("a_device_self_ns", Unit::Nanoseconds, "", vec![Some(0), Some(0)]),
                Column::new("change_device_self_ns", Unit::Nanoseconds, "", vec![Some(0), Some(0)]),
                Column::new("a_host_self_ns", Unit::Nanoseconds, "", vec![Some(2_000_000), Some(1_000)]),
                Column::new(
                    "b_host_self_ns",
                    Unit::Nanoseconds,
                    "",
                    vec![Some(2_000_000 + changes[0]), Some(1_000 + changes[1])],
                ),
                Column::new("change_host_self_ns", Unit::Nanoseconds, "", changes.map(Some).to_vec()),
                Column::new("change_host_self_ratio", Unit::Ratio, "", vec![Some(0.5), Some(0.0)]),
            ],
        }
    }

    #[test]
    fn a_section_has_the_measure_that_changed() {
        let text =
            anstream::adapter::strip_str(&section(Compared::Operators, &operators([1_000_000, 0]), 1, 100)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "Operators  1 of 2 operators, host self of a step, the largest changes first");
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["name", "before", "now", "change", "change"]);
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>().join(" "), "mm 2.00 ms 3.00 ms 1.00 ms 50.0 %");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn where_nothing_changed_it_says_so_and_where_nothing_is_it_is_silent() {
        let text = section(Compared::Operators, &operators([0, 0]), 10, 100);
        assert!(text.contains("nothing changed"), "{text}");
        assert_eq!(section(Compared::Kernels, &Table::default(), 10, 100), "");
    }
}
