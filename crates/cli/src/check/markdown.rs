//! Checks as Markdown, as the summary of a job shows it.

use super::judged::Outcome;
use crate::compare::as_table;
use std::fmt::Write;
use stepscope_engine::{Column, Table, Unit};
use stepscope_export::{findings_markdown, markdown_escaped, table_markdown};

/// What holds and what does not, where a difference comes from, and what is doubtful.
pub(super) fn markdown(outcome: &Outcome) -> String {
    let mut text = format!("# stepscope check {}\n\n", markdown_escaped(&outcome.run.name));
    let _ = writeln!(text, "**{}**\n", outcome.sentence());
    let texts = |of: fn(&super::Check) -> &str| outcome.checks.iter().map(|check| Some(of(check))).collect::<Vec<_>>();
    let table = Table {
        columns: vec![
            Column::new("check", Unit::Text, "", texts(|check| &check.name)),
            Column::new("result", Unit::Text, "", texts(|check| check.status.words())),
            Column::new("measured", Unit::Text, "", texts(|check| &check.says)),
        ],
    };
    text.push_str(&table_markdown(&table));
    for check in outcome.checks.iter().filter(|check| !check.parts.is_empty()) {
        let _ = writeln!(
            text,
            "## Where the difference comes from\n\n{}",
            table_markdown(&as_table(&check.parts)).trim_end()
        );
        text.push('\n');
    }
    text + &findings_markdown(&outcome.findings)
}
