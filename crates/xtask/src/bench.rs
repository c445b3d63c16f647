//! `cargo xtask bench NAME`: measure, with the package as a user installs it.

use crate::child;
use crate::python_env::PythonEnv;

/// Runs `benches/NAME.py` with the other arguments.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let [name, rest @ ..] = arguments else { return Err("which bench? `cargo xtask bench record`".into()) };
    let environment = PythonEnv::ready()?;
    environment.install_stepscope()?;
    child::run(environment.command("python").arg(format!("benches/{name}.py")).args(rest))?;
    Ok(true)
}
