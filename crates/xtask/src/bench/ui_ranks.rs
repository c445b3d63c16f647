//! `cargo xtask bench ui-ranks`: how long pages of a job of many ranks take.

use super::ui::{bench_node, prepare, take};
use crate::checkout::{built, target};
use crate::child;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ranks of the job, unless said.
const RANKS: &str = "4096";

/// Makes the traces where they are missing, and measures. `--ranks N` is their number; everything else is for
/// `web/bench/ranks.mjs`.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let (ranks, arguments) = take(arguments, "--ranks");
    prepare()?;
    let job = job(&target().join("bench"), ranks.as_deref().unwrap_or(RANKS))?;
    child::run(bench_node("ranks.mjs")?.arg(job).args(arguments))
}

/// The folder of a generated job, made when it is not there.
fn job(folder: &Path, ranks: &str) -> Result<PathBuf, String> {
    let path = folder.join(format!("ui-{ranks}-ranks"));
    if !path.exists() {
        // Half a job would be taken for a whole one next time.
        let unfinished = folder.join("ui-unfinished-ranks");
        let mut command = Command::new(built("stepscope-bench"));
        command.args(["ranks", "--only", "linear", "--keep", "--linear", ranks, "--folder"]).arg(&unfinished);
        child::run(&mut command)?;
        let failed = |error| format!("cannot write {}: {error}", path.display());
        std::fs::rename(unfinished.join("linear"), &path).map_err(failed)?;
    }
    Ok(path)
}
