//! Processes of their own that record, and what they leave. A test file that has a `mod scenario` has a test called
//! `scenarios`, in which such a process does what it is asked to.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use stepscope_capture::{Capture, read};

/// The scenario that this process is to play, and the run folder to record below; `None` in the process of the tests.
pub(crate) fn asked() -> Option<(String, PathBuf)> {
    let scenario = std::env::var("STEPSCOPE_TEST_SCENARIO").ok()?;
    Some((scenario, std::env::var_os("STEPSCOPE_TEST_RUN").expect("a run folder").into()))
}

/// Starts `scenario` of the calling test file in a process of its own.
pub(crate) fn start(scenario: &str, run: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "scenarios", "--nocapture", "--test-threads=1"])
        .env("STEPSCOPE_TEST_SCENARIO", scenario)
        .env("STEPSCOPE_TEST_RUN", run)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs `scenario` to its end below a fresh run folder.
pub(crate) fn run(scenario: &str) -> (tempfile::TempDir, ExitStatus) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.json"), "{}").unwrap();
    let status = start(scenario, folder.path()).wait().unwrap();
    (folder, status)
}

/// The files of the captures below a run folder.
pub(crate) fn files(run: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(run.join("raw")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The captures below a run folder, in the order in which they were opened.
pub(crate) fn captures(run: &Path) -> Vec<Capture> {
    let mut captures: Vec<Capture> = files(run).iter().map(|path| read(path).unwrap()).collect();
    captures.sort_by_key(|capture| capture.opened_ns);
    captures
}
