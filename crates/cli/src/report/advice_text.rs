//! Advice as text.

use super::section::heading;
use crate::color::{DIM, ERROR, HEADING, HINT, WARNING};
use crate::line_wrap::wrap;
use anstyle::Style;
use std::fmt::Write;
use stepscope_base::units::format_ns;
use stepscope_engine::report::{AdviceRow, ReportCoverage};
use stepscope_engine::{fit_name, fit_width, width_of};

/// Rows that a report shows.
const SHOWN: usize = 5;
/// Where the text of a row begins.
const INDENT: usize = 10;

/// A section with the first few rows and how to see the rest, and what was not judged.
pub(super) fn advice_text(advice: &[AdviceRow], coverage: &ReportCoverage, command: &str, width: usize) -> String {
    if advice.is_empty() {
        return String::new();
    }
    let shown = &advice[..advice.len().min(SHOWN)];
    let few = if shown.len() < advice.len() { format!("{} of {}, ", shown.len(), advice.len()) } else { String::new() };
    let mut text = heading("Advice", &format!("{few}most to gain first; gains overlap: do not add them"), width);
    shown.iter().for_each(|row| text.push_str(&paragraph(row, width)));
    let not_judged = coverage.sentence().map(|sentence| wrap(&sentence, width - INDENT)).unwrap_or_default();
    for (line, head) in not_judged.iter().zip(std::iter::once("note:").chain(std::iter::repeat(""))) {
        let _ = writeln!(text, "  {DIM}{head:6}  {line}{DIM:#}");
    }
    let pointer = fit_width(command, width.saturating_sub(INDENT));
    let _ = writeln!(text, "  {DIM}more:{DIM:#}   {HINT}{pointer}{HINT:#}");
    text
}

/// Every row, each with where to look.
pub(crate) fn advice_with_evidence(advice: &[AdviceRow], width: usize) -> String {
    let row = |row: &AdviceRow| {
        let mut text = paragraph(row, width);
        for line in wrap(&evidence(row), width - INDENT) {
            let _ = writeln!(text, "{:INDENT$}{DIM}{line}{DIM:#}", "");
        }
        text
    };
    advice.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Priority, gain and rule on one line, then what is so and what to do.
fn paragraph(row: &AdviceRow, width: usize) -> String {
    let style = style_of(row.priority);
    let gain = row.gain_sentence();
    let fault = fit_width(row.fault, width.saturating_sub(INDENT));
    let mut text = format!("  {style}{:6}{style:#}  {HEADING}{fault}{HEADING:#}\n", row.priority);
    let rule = fit_width(&rule_words(row), width.saturating_sub(INDENT + width_of(&gain) + 2));
    let _ = writeln!(text, "{:INDENT$}{HEADING}{gain}{HEADING:#}  {DIM}{rule}{DIM:#}", "");
    for line in wrap(&row.says, width - INDENT) {
        let _ = writeln!(text, "{:INDENT$}{line}", "");
    }
    for line in wrap(row.to_do, width - INDENT) {
        let _ = writeln!(text, "{:INDENT$}{DIM}{line}{DIM:#}", "");
    }
    text
}

fn rule_words(row: &AdviceRow) -> String {
    match row.others {
        0 => row.rule.into(),
        1 => format!("{}, here and once elsewhere", row.rule),
        others => format!("{}, here and {others} times elsewhere", row.rule),
    }
}

/// `rank 0 · gain by removal · numbers in idle_gaps · look at 12.3 ms: cudaFree · not so if: …`.
fn evidence(row: &AdviceRow) -> String {
    let mut words = Vec::new();
    words.extend(row.rank.map(|rank| format!("rank {rank}")));
    words.extend(row.gain_estimate.map(|estimate| match estimate {
        "bound" => "gain at most all of it".into(),
        "floor" => "gain at least all of it".into(),
        estimate => format!("gain by {estimate}"),
    }));
    words.push(format!("numbers in {}", row.evidence));
    let slice = row.slice.as_ref().map_or(String::new(), |slice| format!(": {}", fit_name(slice, 48)));
    words.extend(row.start_ns.map(|start_ns| format!("look at {}{slice}", format_ns(start_ns))));
    words.extend(row.line.as_ref().map(|line| format!("line {}", fit_name(line, 60))));
    words.push(format!("not so if: {}", row.disproof.trim_end_matches('.')));
    words.join(" · ")
}

fn style_of(priority: &str) -> Style {
    match priority {
        "high" => ERROR,
        "medium" => WARNING,
        _ => DIM,
    }
}
