//! The web pages: types, style, tests, whether they can be built; and the built command in a browser.

use super::counts::vitest_counts;
use super::{Counts, Outcome, TestCommand, cargo_checked, cargo_test, single, sql};
use crate::checkout::{built, root};
use crate::{child, chromium};
use std::ops::Add;
use std::process::Command;

/// Where the pages are.
const FOLDER: &str = "web";

/// What is run there, each counted as a test. Not `npm ci`: it fails where a registry lacks packages of other systems,
/// which are optional.
const STEPS: [&[&str]; 3] =
    [&["install", "--no-save", "--no-audit", "--no-fund"], &["run", "check"], &["run", "build"]];

/// Runs them; an error where there is no Node.
pub(super) fn run() -> Result<Outcome, String> {
    let steps = steps(FOLDER, &STEPS)?;
    let mut command = npm(FOLDER);
    command.arg("test");
    Ok(Outcome::Done(steps + TestCommand { command, counts: vitest_counts }.run("")?))
}

/// Runs npm with each of these arguments, each counted as a test; an error where there is no Node.
pub(super) fn steps(folder: &str, steps: &[&[&str]]) -> Result<Counts, String> {
    if child::read(npm(folder).arg("--version")).is_none() {
        return Err("npm is missing\nhint: install Node 20.19 or later".into());
    }
    let step = |arguments: &&[&str]| single(child::run(npm(folder).args(*arguments)));
    Ok(steps.iter().map(step).fold(Counts::default(), Add::add))
}

/// The command with its pages, in a browser.
pub(super) fn run_browser() -> Result<Outcome, String> {
    let chromium = chromium::find()?;
    // One test file of the command makes cargo build the command as the rust tests do, so that nothing is built twice.
    child::run(cargo_test()?.args(["--no-run", "--test", "results"]))?;
    // What writes the run that grows while it is looked at, and the jobs of many ranks.
    child::run(cargo_checked("build")?.args(["--example", "lines", "--example", "simulated"]))?;
    let mut command = npm(FOLDER);
    command.args(["run", "test:browser"]).env("CHROMIUM", chromium).env("STEPSCOPE", built("stepscope"));
    command.env("STEPSCOPE_SQL_PROGRAM", sql::built()?);
    command.env("STEPSCOPE_WRITER", built("examples/lines")).env("STEPSCOPE_SIMULATED", built("examples/simulated"));
    Ok(Outcome::Built(TestCommand { command, counts: vitest_counts }))
}

/// npm in a folder of the checkout.
pub(super) fn npm(folder: &str) -> Command {
    let mut npm = Command::new("npm");
    // Where `CI` is set, colours would be written into what is read here.
    npm.current_dir(root().join(folder)).env("NO_COLOR", "1");
    npm
}
