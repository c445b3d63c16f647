//! `cargo xtask demo`: what Stepscope does, from a clone, in one command.

use crate::checkout::{cargo, root};
use crate::child;
use crate::python_env::PythonEnv;

const RUN: &str = "stepscope-runs/demo";
const RECORDED: &str = "tests/fixtures/gpt-cpu";

/// Records `examples/gpt` and shows the report; with `--no-torch`, needs Rust alone and shows a run recorded earlier.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    match arguments {
        [] => record_and_report()?,
        [flag] if flag == "--no-torch" => report_on_recorded()?,
        _ => return Err("`cargo xtask demo` takes --no-torch and nothing else".into()),
    }
    Ok(true)
}

fn record_and_report() -> Result<(), String> {
    let environment =
        PythonEnv::ready().map_err(|error| format!("{error}\nhint: `cargo xtask demo --no-torch` needs no Python"))?;
    environment.install_stepscope()?;
    remove_last_run()?;
    let mut record = environment.command("stepscope");
    child::run(record.args(["record", "-o", RUN, "--", "python", "examples/gpt/train.py"]))?;
    child::run(environment.command("stepscope").args(["report", RUN]))
}

fn report_on_recorded() -> Result<(), String> {
    child::run(cargo().args(["run", "--release", "--quiet", "--package=stepscope-cli", "--", "report", RECORDED]))
}

fn remove_last_run() -> Result<(), String> {
    match std::fs::remove_dir_all(root().join(RUN)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("cannot remove {RUN}: {error}")),
        _ => Ok(()),
    }
}
