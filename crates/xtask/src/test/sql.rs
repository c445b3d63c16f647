//! The program that runs SQL: a workspace of its own in `sql`, built with little optimisation.

use super::counts::cargo_counts;
use super::{Outcome, TestCommand, single};
use crate::checkout::{cargo, target};
use crate::child;
use std::path::PathBuf;
use std::process::Command;

const MANIFEST: &str = "--manifest-path=sql/Cargo.toml";

/// Its format and its own tests; the tests in Python and in the browser run it.
pub(super) fn run() -> Result<Outcome, String> {
    let formatted = single(child::run(cargo().args(["fmt", MANIFEST, "--check"])));
    let mut command = cargo_on_sql("test");
    command.arg("--no-fail-fast");
    Ok(Outcome::Done(formatted + TestCommand { command, counts: cargo_counts }.run("")?))
}

/// Builds it; where it then is.
pub(super) fn built() -> Result<PathBuf, String> {
    child::run(cargo_on_sql("build").arg("--quiet"))?;
    Ok(folder().join("debug").join("stepscope-sql"))
}

/// A command of cargo on it. What it depends on differs from what everything else does: it is built apart.
fn cargo_on_sql(command: &str) -> Command {
    let mut cargo = cargo();
    cargo.args([command, MANIFEST]).arg("--target-dir").arg(folder());
    cargo
}

fn folder() -> PathBuf {
    target().join("sql")
}
