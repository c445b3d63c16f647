//! The table at the end of `cargo xtask test`.

use super::counts::Counts;
use std::fmt::Write;
use std::ops::Add;

/// What became of a suite.
#[derive(Debug)]
pub(crate) enum State {
    /// Every test passed.
    Passed,
    /// A test failed.
    Failed,
    /// It cannot run here, and why.
    NotRun(String),
}

impl State {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::NotRun(_) => "NOT RUN",
        }
    }
}

/// One suite's line.
#[derive(Debug)]
pub(crate) struct Row {
    /// The suite.
    pub(crate) name: &'static str,
    /// What became of it.
    pub(crate) state: State,
    /// Its tests.
    pub(crate) counts: Counts,
    /// How long it took, building included.
    pub(crate) seconds: f64,
}

/// The table, a box for what was not run, and the closing line, `N passed, N failed`.
pub(crate) fn text(rows: &[Row]) -> String {
    let mut text =
        format!("\n{:<8} {:<8} {:>7} {:>7} {:>8} {:>8}\n", "suite", "", "passed", "failed", "skipped", "seconds");
    for Row { name, state, counts: Counts { passed, failed, skipped }, seconds } in rows {
        let _ = writeln!(text, "{name:<8} {:<8} {passed:>7} {failed:>7} {skipped:>8} {seconds:>8.1}", state.word());
    }
    text.push('\n');
    text.push_str(&not_run_box(rows));
    let total = rows.iter().map(|row| row.counts).fold(Counts::default(), Add::add);
    let _ = writeln!(text, "{} passed, {} failed", total.passed, total.failed);
    text
}

/// A box that names what was not run; empty when everything was.
fn not_run_box(rows: &[Row]) -> String {
    let not_run = rows.iter().filter_map(|row| match &row.state {
        State::NotRun(reason) => Some((row.name, reason)),
        _ => None,
    });
    let lines: Vec<String> = not_run
        .flat_map(|(name, reason)| {
            let reason = reason.lines().map(|line| format!("  {line}"));
            std::iter::once(format!("NOT RUN: {name}")).chain(reason).collect::<Vec<_>>()
        })
        .collect();
    let Some(width) = lines.iter().map(|line| line.chars().count()).max() else { return String::new() };
    let border = format!("+-{}-+\n", "-".repeat(width));
    let inside: String = lines.iter().map(|line| format!("| {line:<width$} |\n")).collect();
    format!("{border}{inside}{border}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, state: State, passed: usize, failed: usize) -> Row {
        Row { name, state, counts: Counts { passed, failed, skipped: 0 }, seconds: 1.25 }
    }

    #[test]
    fn the_last_line_counts_all_tests() {
        let text = text(&[row("rust", State::Passed, 12, 0), row("python", State::Failed, 3, 2)]);
        assert_eq!(text.lines().last(), Some("15 passed, 2 failed"));
        assert!(!text.contains("NOT RUN"), "{text}");
    }

    #[test]
    fn what_was_not_run_stands_in_a_box_with_its_reason() {
        let text = text(&[row("python", State::NotRun("no Python\nhint: install one".into()), 0, 0)]);
        let boxed = "\
+---------------------+
| NOT RUN: python     |
|   no Python         |
|   hint: install one |
+---------------------+
";
        assert!(text.contains(boxed), "{text}");
    }
}
