//! `cargo xtask bench NAME`: measure. `import`, `analyze` and `ranks` run our own crate for it and its peers, `real` our own
//! crate on traces of real jobs, `ui` and `ui-ranks` what drives the pages; any other name is a script that measures the package as a user installs it.

mod peers;
mod ui;
mod ui_ranks;

use crate::checkout::{build, built, cargo, root, target};
use crate::python_env::{PythonEnv, SERVERS_PYTHON};
use crate::{child, chromium};
use std::path::PathBuf;
use std::process::Command;

/// Runs what is called so, with the other arguments.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    match arguments {
        [] => {
            Err("which bench? `cargo xtask bench record`, `import`, `real`, `analyze`, `ranks`, `io`, `frameworks`, `insight`, `sql`, `stores`, `ui` or `ui-ranks`"
                .into())
        }
        [what, rest @ ..] if ["import", "analyze"].contains(&what.as_str()) => compare(what, rest),
        [what, rest @ ..] if what == "real" => real(rest),
        [what, rest @ ..] if what == "ranks" => ranks(rest),
        [what, rest @ ..] if what == "sql" => sql(rest),
        [what, rest @ ..] if what == "stores" => stores(rest),
        [what, rest @ ..] if what == "ui" => ui::run(rest),
        [what, rest @ ..] if what == "ui-ranks" => ui_ranks::run(rest),
        [name, rest @ ..] => script(name, rest),
    }?;
    Ok(true)
}

/// Runs `benches/NAME.py` in the development environment.
fn script(name: &str, arguments: &[String]) -> Result<(), String> {
    let environment = if name == "frameworks" { PythonEnv::with_frameworks() } else { PythonEnv::ready() }?;
    environment.install_stepscope(&[])?;
    let mut command = environment.command("python");
    command.arg(format!("benches/{name}.py")).args(arguments);
    if name == "frameworks" {
        command.env(SERVERS_PYTHON, PythonEnv::with_servers()?.program("python"));
    }
    child::run(&mut command)
}

/// Questions in SQL, in our program and in DuckDB; with `perfetto` as the first argument in Perfetto's engine.
fn sql(arguments: &[String]) -> Result<(), String> {
    let (is_perfetto, arguments) = match arguments {
        [what, rest @ ..] if what == "perfetto" => (true, rest),
        rest => (false, rest),
    };
    build(&["stepscope-bench"])?;
    let folder = target().join("sql");
    let mut program = cargo();
    program.args(["build", "--quiet", "--release", "--manifest-path=sql/Cargo.toml", "--target-dir"]).arg(&folder);
    child::run(&mut program)?;
    let environment = PythonEnv::ready()?;
    environment.install_stepscope(&[])?;
    let mut command = environment.command("python");
    command.arg("benches/sql.py").args(arguments).env("STEPSCOPE_SQL", folder.join("release/stepscope-sql"));
    if is_perfetto {
        ui::prepare()?;
        command.args(ui::perfetto(&target().join("bench"))?).env("CHROMIUM", chromium::find()?);
    }
    command.env("STEPSCOPE_BENCH", target().join("bench")).env("STEPSCOPE_BENCH_PROGRAM", built("stepscope-bench"));
    child::run(&mut command)
}

/// A job of many ranks in an object store.
fn stores(arguments: &[String]) -> Result<(), String> {
    build(&["stepscope-bench"])?;
    let environment = PythonEnv::ready()?;
    environment.install_stepscope(&[])?;
    let mut command = environment.command("python");
    command.arg("benches/stores.py").args(arguments).env("STEPSCOPE_BENCH", target().join("bench"));
    child::run(command.env("STEPSCOPE_BENCH_PROGRAM", built("stepscope-bench")))
}

/// Opens traces of real jobs: those named in `arguments`.
fn real(arguments: &[String]) -> Result<(), String> {
    build(&["stepscope-bench"])?;
    let mut command = Command::new(built("stepscope-bench"));
    command.current_dir(root()).args(["real", "--folder"]).arg(target().join("bench"));
    child::run(command.args(arguments))
}

/// Opens jobs of many ranks. Without `--no-peers` also in the peer; everything else is for `stepscope-bench ranks`.
fn ranks(arguments: &[String]) -> Result<(), String> {
    build(&["stepscope-bench", "stepscope"])?;
    let folder = target().join("bench");
    let is_no_peers = |argument: &String| argument == "--no-peers";
    let python = match arguments.iter().any(is_no_peers) {
        true => std::env::var_os("PYTHON").map_or("python3".into(), PathBuf::from),
        false => peers::python(&folder.join("venv"), |requirement| requirement.starts_with("Holistic"))?,
    };
    let mut command = Command::new(built("stepscope-bench"));
    command.current_dir(root()).args(["ranks", "--folder"]).arg(folder.join("ranks"));
    command.arg("--stepscope").arg(built("stepscope")).arg("--python").arg(python);
    child::run(command.args(arguments.iter().filter(|argument| !is_no_peers(argument))))
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
