//! `cargo xtask demo`: what Stepscope does, from a clone, in one command.

use crate::checkout::{build, built, root};
use crate::child;
use crate::python_env::PythonEnv;
use std::io::IsTerminal;
use std::process::Command;

const RUN: &str = "stepscope-runs/demo";
const RECORDED: &str = "tests/fixtures/gpt-cpu";

/// Records `examples/gpt`, shows the report, and serves the pages until Ctrl-C; with `--no-torch`, needs Rust alone and
/// shows a run recorded earlier; with `--no-view`, or where nobody watches, says how to open the pages.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if arguments.iter().any(|argument| !["--no-torch", "--no-view"].contains(&argument.as_str())) {
        return Err("`cargo xtask demo` takes --no-torch, --no-view and nothing else".into());
    }
    let is_watched = std::io::stdout().is_terminal() && std::env::var_os("CI").is_none();
    let serves = is_watched && !has("--no-view");
    match has("--no-torch") {
        false => record_and_report(serves)?,
        true => report_on_recorded(serves)?,
    }
    Ok(true)
}

fn record_and_report(serves: bool) -> Result<(), String> {
    let environment =
        PythonEnv::ready().map_err(|error| format!("{error}\nhint: `cargo xtask demo --no-torch` needs no Python"))?;
    environment.install_stepscope(&[])?;
    remove_last_run()?;
    let mut record = environment.command("stepscope");
    child::run(record.args(["record", "-o", RUN, "--", "python", "examples/gpt/train.py"]))?;
    child::run(environment.command("stepscope").args(["report", RUN]))?;
    view(environment.command("stepscope").args(["view", RUN]), RUN, serves)
}

fn report_on_recorded(serves: bool) -> Result<(), String> {
    build(&["stepscope"])?;
    let stepscope = || {
        let mut command = Command::new(built("stepscope"));
        command.current_dir(root());
        command
    };
    child::run(stepscope().args(["report", RECORDED]))?;
    view(stepscope().args(["view", RECORDED]), RECORDED, serves)
}

/// Serves the pages of a run until Ctrl-C, or says how.
fn view(command: &mut Command, run: &str, serves: bool) -> Result<(), String> {
    if serves {
        return child::run(command);
    }
    println!("\nto look at it in the browser: stepscope view {run}");
    Ok(())
}

fn remove_last_run() -> Result<(), String> {
    match std::fs::remove_dir_all(root().join(RUN)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("cannot remove {RUN}: {error}")),
        _ => Ok(()),
    }
}
