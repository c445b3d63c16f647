//! The Python environment of the programs that ours is compared with, apart from the one of tests.

use crate::checkout::root;
use crate::{child, python_env};
use std::path::{Path, PathBuf};
use std::process::Command;

const REQUIREMENTS: &str = "benches/peers/requirements.txt";

/// The interpreter of the environment in `folder`, made when it is missing, with those requirements that `is_wanted`. A peer that cannot be installed is said here,
/// and again in its row of the table.
pub(super) fn python(folder: &Path, is_wanted: fn(&str) -> bool) -> Result<PathBuf, String> {
    let python = folder.join("bin/python");
    if !python.exists() {
        python_env::make(folder)?;
    }
    let path = root().join(REQUIREMENTS);
    let wanted = std::fs::read_to_string(path).map_err(|error| format!("cannot read {REQUIREMENTS}: {error}"))?;
    let stamp = folder.join("stepscope-installed.txt");
    let mut installed = std::fs::read_to_string(&stamp).unwrap_or_default();
    for requirement in wanted.lines().filter(|line| !line.is_empty() && !line.starts_with('#') && is_wanted(line)) {
        if installed.lines().any(|line| line == requirement) {
            continue;
        }
        let pip = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", requirement];
        match child::run(Command::new(&python).args(pip)) {
            Ok(()) => installed += &format!("{requirement}\n"),
            Err(message) => println!("not installed: {message}"),
        }
    }
    std::fs::write(stamp, installed).map_err(|error| format!("cannot write the stamp: {error}"))?;
    Ok(python)
}
