//! Checks as text, for a person who reads the log of a job.

use super::judged::{Check, Outcome, Status};
use crate::color::{DIM, ERROR, GOOD, HEADING, WARNING};
use crate::compare::breakdown_text;
use crate::line_wrap::wrap;
use crate::output::MAX_WIDTH;
use crate::report::findings_text;
use std::fmt::Write;
use stepscope_engine::{fit_width, printable};

/// A line on each check with what was measured, then what explains it.
pub(super) fn summary(outcome: &Outcome, width: usize) -> String {
    let name = fit_width(&outcome.run.name, width - "stepscope check  ".len());
    let mut text = format!("{DIM}stepscope check{DIM:#}  {HEADING}{name}{HEADING:#}\n\n");
    for check in &outcome.checks {
        let style = match check.status {
            Status::Holds => GOOD,
            Status::Fails => ERROR,
            Status::NotJudged => WARNING,
        };
        let mark = check.status.words();
        let _ = writeln!(text, "  {style}{mark:10}{style:#}  {}", fit_width(&printable(&check.name), width - 14));
        for line in wrap(&printable(&check.says), width - 14) {
            let _ = writeln!(text, "{:14}{line}", "");
        }
        if check.status != Status::Holds {
            text.push_str(&breakdown_text(&check.parts, width));
        }
    }
    let _ = writeln!(text, "\n{HEADING}{}{HEADING:#}", outcome.sentence());
    let findings = findings_text(&outcome.findings, width);
    if findings.is_empty() { text } else { text + "\n" + &findings }
}

/// What was measured, and where the difference comes from, without colours.
pub(super) fn explained(check: &Check) -> String {
    let text = format!("{}\n{}", check.says, breakdown_text(&check.parts, MAX_WIDTH));
    anstream::adapter::strip_str(text.trim_end()).to_string()
}
