//! `cargo xtask gpu-check`: what is recorded of a GPU, compared with `torch.profiler`. `benches/gpu/check.py` does it.

use crate::child;
use crate::python_env::PythonEnv;
use std::ffi::OsString;
use std::process::Command;

const CHECK: &str = "benches/gpu/check.py";
/// What needs neither PyTorch nor the package.
const NEED_NOTHING: &[&str] = &["--list", "--self-test", "--help", "-h"];

/// Runs it with the other arguments. `STEPSCOPE_PYTHON` names a Python that has PyTorch and the package already, as where
/// there is no network; otherwise the development environment gets the package.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let mut command = python(std::env::var_os("STEPSCOPE_PYTHON"), arguments)?;
    child::run(command.arg(CHECK).args(arguments))?;
    Ok(true)
}

fn python(chosen: Option<OsString>, arguments: &[String]) -> Result<Command, String> {
    if let Some(chosen) = chosen {
        let mut command = Command::new(chosen);
        command.current_dir(crate::checkout::root());
        return Ok(command);
    }
    let environment = PythonEnv::ready()?;
    if !arguments.iter().any(|argument| NEED_NOTHING.contains(&argument.as_str())) {
        environment.install_stepscope(&[])?;
    }
    Ok(environment.command("python"))
}
