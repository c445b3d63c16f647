//! Advice as text.

use super::section::heading;
use crate::color::{DIM, ERROR, GOOD, HEADING, HINT, WARNING};
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
    for (at, row) in shown.iter().enumerate() {
        text.push_str(&paragraph(row, width));
        // What a person does next is the first.
        text.push_str(&if at == 0 { how_to_try(row, width) } else { String::new() });
    }
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
        let mut text = paragraph(row, width) + &diff_text(row, width);
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
    let gain = &row.gain_says;
    let fault = fit_width(row.fault, width.saturating_sub(INDENT));
    let mut text = format!("  {style}{:6}{style:#}  {HEADING}{fault}{HEADING:#}\n", row.priority);
    let rule = fit_width(&rule_words(row), width.saturating_sub(INDENT + width_of(gain) + 2));
    let _ = writeln!(text, "{:INDENT$}{HEADING}{gain}{HEADING:#}  {DIM}{rule}{DIM:#}", "");
    for line in wrap(&row.says, width - INDENT) {
        let _ = writeln!(text, "{:INDENT$}{line}", "");
    }
    for line in wrap(row.to_do, width - INDENT) {
        let _ = writeln!(text, "{:INDENT$}{DIM}{line}{DIM:#}", "");
    }
    text
}

/// The change where it is mechanical, what its gain rests on, and what would disprove it.
fn how_to_try(row: &AdviceRow, width: usize) -> String {
    let mut text = diff_text(row, width);
    let gain = row.gain_method.map(|method| format!("Gain by {method}."));
    for sentence in gain.into_iter().chain([format!("Not so if: {}", row.disproof)]) {
        for line in wrap(&sentence, width - INDENT) {
            let _ = writeln!(text, "{:INDENT$}{DIM}{line}{DIM:#}", "");
        }
    }
    text
}

fn diff_text(row: &AdviceRow, width: usize) -> String {
    let mut text = String::new();
    for line in row.diff.into_iter().flat_map(str::lines) {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => ERROR,
            _ => DIM,
        };
        let line = fit_width(line, width - INDENT);
        let _ = writeln!(text, "{:INDENT$}{style}{line}{style:#}", "");
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

/// `rank 0 · gain by upper bound: all that was measured · numbers in idle_gaps · look at 12.3 ms: cudaFree · not so if: …`.
fn evidence(row: &AdviceRow) -> String {
    let mut words = Vec::new();
    words.extend(row.rank.map(|rank| format!("rank {rank}")));
    words.extend(row.gain_method.map(|method| format!("gain by {method}")));
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

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_engine::{OpenedRun, Selection, report};
    use stepscope_trace::drawn::drawn;

    #[test]
    fn of_the_first_advice_a_report_says_how_to_try_it_and_a_list_of_each() {
        let row = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(125)).collect::<String>().repeat(8);
        let run = OpenedRun::of(drawn(&format!("rank 0 stream 7 {}", row("CCCC..NN"))));
        let report = report::report(&run, &Selection::default(), "RUN").unwrap();
        let mut first = report.advice[0].clone();
        first.diff = Some("-a\n+b");
        let all = [first.clone(), first];
        let plain = |text: &str| anstream::adapter::strip_str(text).to_string();
        let count = |text: &str, wanted: &str| text.lines().filter(|line| line.trim() == wanted).count();
        for width in [60, 100] {
            let text = plain(&advice_text(&all, &report.coverage, "more", width));
            assert!(text.lines().all(|line| width_of(line) <= width), "{text}");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let gain = format!("Gain by {}. Not so if: {}", all[0].gain_method.unwrap(), all[0].disproof);
            assert_eq!(words.matches(&gain).count(), 1, "{text}");
            assert_eq!((count(&text, "-a"), count(&text, "+b")), (1, 1), "{text}");
            let list = plain(&advice_with_evidence(&all, width));
            assert_eq!((count(&list, "-a"), count(&list, "+b")), (2, 2), "{list}");
            let words = list.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words.matches("gain by upper bound: communication hides").count(), 2, "{list}");
        }
    }
}
