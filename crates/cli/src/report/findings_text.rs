//! Findings as text.

use crate::color::{DIM, ERROR, HEADING, WARNING};
use crate::line_wrap::wrap;
use anstyle::Style;
use std::fmt::Write;
use stepscope_base::units::format_count;
use stepscope_engine::{FindingRow, fit_width};

/// What says nothing without its cases, of which there are few.
const WITH_CASES: [&str; 3] = ["analysis.setting_differs", "analysis.run_without_steps", "analysis.outside_of_steps"];

/// A section with one paragraph a finding: severity, count, sentence.
pub(crate) fn findings_text(findings: &[FindingRow], width: usize) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let cases = |finding: &FindingRow| match WITH_CASES.contains(&finding.code) {
        true => finding.examples.clone(),
        false => Vec::new(),
    };
    format!("{HEADING}Findings{HEADING:#}\n{}", paragraphs(findings, width, cases))
}

/// One paragraph a finding, each with its examples.
pub(crate) fn examples_text(findings: &[FindingRow], width: usize) -> String {
    let examples = |finding: &FindingRow| {
        let more = finding.count.saturating_sub(finding.examples.len() as u64);
        let mut lines = finding.examples.clone();
        if more > 0 && !lines.is_empty() {
            lines.push(format!("… and {} more", format_count(more as i64)));
        }
        lines
    };
    paragraphs(findings, width, examples)
}

/// Each finding's severity, count and sentence, then the lines that `below` gives.
fn paragraphs(findings: &[FindingRow], width: usize, below: impl Fn(&FindingRow) -> Vec<String>) -> String {
    let count_width = findings.iter().map(|finding| format_count(finding.count as i64).len()).max().unwrap_or(0);
    let indent = 2 + "suspect".len() + 2 + count_width + 3;
    let mut text = String::new();
    for finding in findings {
        let style = style_of(finding.severity);
        let count = format_count(finding.count as i64);
        let mut lines = wrap(finding.says, width - indent).into_iter();
        let first = lines.next().unwrap_or_default();
        let _ = writeln!(text, "  {style}{:7}{style:#}  {count:>count_width$} × {first}", finding.severity);
        lines.for_each(|line| text.push_str(&format!("{:indent$}{line}\n", "")));
        for line in below(finding) {
            let _ = writeln!(text, "{:indent$}{DIM}{}{DIM:#}", "", fit_width(&line, width - indent));
        }
    }
    text
}

fn style_of(severity: &str) -> Style {
    match severity {
        "severe" => ERROR,
        "suspect" => WARNING,
        _ => DIM,
    }
}
