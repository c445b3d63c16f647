//! The extension for VS Code: types, style, tests, whether it can be packaged; and the extension in a real VS Code.

use super::counts::vitest_counts;
use super::web::{npm, steps};
use super::{Counts, Outcome, TestCommand, cargo_test};
use crate::checkout::built;
use crate::{child, chromium};

const FOLDER: &str = "editors/vscode";
/// Without scripts, since one of a package would download browsers.
const INSTALL: &[&str] = &["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
/// What is run after that, each counted as a test.
const STEPS: [&[&str]; 2] = [&["run", "check"], &["run", "package"]];

/// Runs them; an error where there is no Node.
pub(super) fn run() -> Result<Outcome, String> {
    let steps = steps(FOLDER, &[&[INSTALL][..], &STEPS[..]].concat())?;
    let mut command = npm(FOLDER);
    command.arg("test");
    Ok(Outcome::Done(steps + TestCommand { command, counts: vitest_counts }.run("")?))
}

/// The extension with the command, in VS Code, in a browser.
pub(super) fn run_vscode() -> Result<Outcome, String> {
    let chromium = chromium::find()?;
    // As for the pages: built as the rust tests build it.
    child::run(cargo_test()?.args(["--no-run", "--test", "results"]))?;
    if steps(FOLDER, &[INSTALL])?.failed > 0 {
        return Ok(Outcome::Done(Counts { failed: 1, ..Counts::default() }));
    }
    let mut command = npm(FOLDER);
    command.args(["run", "test:vscode"]).env("CHROMIUM", chromium).env("STEPSCOPE", built("stepscope"));
    Ok(Outcome::Built(TestCommand { command, counts: vitest_counts }))
}
