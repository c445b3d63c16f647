//! `cargo xtask bench NAME`: measure. `import` and `analyze` run our own crate for it and its peers, `real` our own
//! crate on traces of real jobs, `ui` what drives the pages; any other name is a script that measures the package as a user installs it.

mod peers;
mod ui;

use crate::checkout::{build, built, root, target};
use crate::child;
use crate::python_env::PythonEnv;
use std::process::Command;

/// Runs what is called so, with the other arguments.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    match arguments {
        [] => Err("which bench? `cargo xtask bench record`, `import`, `real`, `analyze` or `ui`".into()),
        [what, rest @ ..] if ["import", "analyze"].contains(&what.as_str()) => compare(what, rest),
        [what, rest @ ..] if what == "real" => real(rest),
        [what, rest @ ..] if what == "ui" => ui::run(rest),
        [name, rest @ ..] => script(name, rest),
    }?;
    Ok(true)
}

/// Runs `benches/NAME.py` in the development environment.
fn script(name: &str, arguments: &[String]) -> Result<(), String> {
    let environment = PythonEnv::ready()?;
    environment.install_stepscope(&[])?;
    child::run(environment.command("python").arg(format!("benches/{name}.py")).args(arguments))
}

/// Opens traces of real jobs: those named in `arguments`.
fn real(arguments: &[String]) -> Result<(), String> {
    build(&["stepscope-bench"])?;
    let mut command = Command::new(built("stepscope-bench"));
    command.current_dir(root()).args(["real", "--folder"]).arg(target().join("bench"));
    child::run(command.args(arguments))
}

/// Runs ours and its peers on generated traces. `--no-peers` leaves the peers out; everything else is for
/// `stepscope-bench compare`.
fn compare(what: &str, arguments: &[String]) -> Result<(), String> {
    build(&["stepscope-bench"])?;
    let folder = target().join("bench");
    let mut command = Command::new(built("stepscope-bench"));
    command.current_dir(root()).args(["compare", what, "--folder"]).arg(&folder);
    if arguments.iter().all(|argument| argument != "--no-peers") {
        command.arg("--python").arg(peers::python(&folder.join("venv"), |_| true)?);
    }
    child::run(command.args(arguments.iter().filter(|argument| *argument != "--no-peers")))
}
