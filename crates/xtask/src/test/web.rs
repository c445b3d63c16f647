//! The web pages: types, style, tests, and whether they can be built.

use super::{Counts, single};
use crate::checkout::root;
use crate::child;
use std::ops::Add;
use std::process::Command;

/// What is run in `web/`, each counted as a test. Not `npm ci`: it fails where a registry lacks packages of other systems,
/// which are optional.
const STEPS: [&[&str]; 4] =
    [&["install", "--no-save", "--no-audit", "--no-fund"], &["run", "check"], &["test"], &["run", "build"]];

/// Runs them; an error where there is no Node.
pub(super) fn run() -> Result<Counts, String> {
    let mut version = Command::new("npm");
    if child::read(version.arg("--version")).is_none() {
        return Err("npm is missing\nhint: install Node 20.19 or later".into());
    }
    let step = |arguments: &&[&str]| {
        let mut npm = Command::new("npm");
        single(child::run(npm.args(*arguments).current_dir(root().join("web"))))
    };
    Ok(STEPS.iter().map(step).fold(Counts::default(), Add::add))
}
