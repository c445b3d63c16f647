//! Runs the built command.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a run of the command left.
pub(crate) struct Ended {
    /// Its exit code.
    pub(crate) code: i32,
    /// What it wrote to standard output.
    pub(crate) stdout: String,
    /// What it wrote to standard error.
    pub(crate) stderr: String,
}

/// The command with `arguments`, in an environment that says nothing to it.
pub(crate) fn stepscope(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepscope"));
    command
        .args(arguments)
        .env_remove("STEPSCOPE_RUN")
        .env_remove("STEPSCOPE_PACKAGE")
        .env_remove("STEPSCOPE_PYTHON")
        .env_remove("PYTHONPATH");
    command
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the command writes UTF-8");
    Ended { code: status.code().expect("the command ends by itself"), stdout: text(stdout), stderr: text(stderr) }
}

/// A file of this folder's `fixtures`.
#[allow(dead_code, reason = "not every test file reads one")]
pub(crate) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    path.to_str().expect("a UTF-8 path").to_string()
}

/// Real traces, when this machine has them: the files in `kineto` below `STEPSCOPE_TRACES` or beside the project.
#[allow(dead_code, reason = "not every test file reads them")]
pub(crate) fn real_traces() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("STEPSCOPE_TRACES").map_or(beside, PathBuf::from).join("kineto");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}
