//! `cargo xtask test`: every test there is, suite by suite, and what came of it.
//!
//! A suite that cannot run (no Python, no network) is a failure where `CI` is set; elsewhere it is named in a box at the
//! end.

mod counts;
mod editor;
mod sql;
mod summary;
mod web;

use crate::checkout::{built, cargo, root};
use crate::python_env::{PythonEnv, SERVERS_PYTHON};
use crate::{child, tidy};
pub(crate) use counts::Counts;
use counts::{cargo_counts, pytest_counts};
use std::num::NonZero;
use std::process::Command;
use std::time::Instant;
use summary::{Row, State};

/// A set of tests that is run at once.
struct Suite {
    name: &'static str,
    /// Builds what it tests, and runs it; `Err` when it cannot run here.
    run: fn() -> Result<Outcome, String>,
}

/// How far a suite has come.
enum Outcome {
    Done(Counts),
    /// Everything is built: what is left runs beside what is left of other suites.
    Built(TestCommand),
}

/// A program that runs tests.
struct TestCommand {
    command: Command,
    /// Reads the numbers of tests in its output.
    counts: fn(&str) -> Counts,
}

impl TestCommand {
    /// Runs it; each line of its output begins with `mark`.
    fn run(mut self, mark: &str) -> Result<Counts, String> {
        let (written, succeeded) = child::run_and_read(&mut self.command, mark)?;
        Ok((self.counts)(&written).at_least_one_failure_unless(succeeded))
    }
}

const SUITES: &[Suite] = &[
    Suite { name: "tidy", run: tidy },
    Suite { name: "format", run: format },
    Suite { name: "clippy", run: clippy },
    Suite { name: "rust", run: rust },
    // `browser` and `python` run what is built here.
    Suite { name: "sql", run: sql::run },
    // The command with the pages that are built here is what `browser`, `vscode` and `python` test, beside each other: all
    // wait a lot.
    Suite { name: "web", run: web::run },
    Suite { name: "browser", run: web::run_browser },
    Suite { name: "editor", run: editor::run },
    Suite { name: "vscode", run: editor::run_vscode },
    Suite { name: "python", run: python },
    Suite { name: "frameworks", run: frameworks },
];

/// What `quick` runs in place of [`SUITES`]: what starts no browser, and no program with PyTorch.
const QUICK: &[Suite] = &[
    Suite { name: "tidy", run: tidy },
    Suite { name: "format", run: format },
    Suite { name: "clippy", run: clippy },
    Suite { name: "rust", run: units },
    Suite { name: "web", run: web::run },
    Suite { name: "editor", run: editor::run },
    Suite { name: "python", run: python_in_process },
];

/// Runs the suites named in `arguments`, all of them when there is none; `quick` stands for the quick part of each.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let (suites, names) = match arguments.split_first() {
        Some((first, names)) if first == "quick" => (QUICK, names),
        _ => (SUITES, arguments),
    };
    if let Some(unknown) = names.iter().find(|name| suites.iter().all(|suite| suite.name != **name)) {
        let names: Vec<&str> = suites.iter().map(|suite| suite.name).collect();
        return Err(format!("no suite is called {unknown:?}; there are: {}", names.join(", ")));
    }
    let is_ci = std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    let is_wanted = |suite: &&Suite| names.is_empty() || names.iter().any(|name| name == suite.name);
    let rows = run_suites(suites.iter().filter(is_wanted), is_ci);
    print!("{}", summary::text(&rows));
    Ok(rows.iter().all(|row| row.counts.failed == 0))
}

fn run_suites<'a>(suites: impl Iterator<Item = &'a Suite>, is_ci: bool) -> Vec<Row> {
    let (mut rows, mut built) = (Vec::new(), Vec::new());
    for suite in suites {
        println!("\n== {} ==", suite.name);
        let start = Instant::now();
        let result = match (suite.run)() {
            Ok(Outcome::Built(command)) => {
                built.push((rows.len(), command));
                Ok(Counts::default())
            }
            Ok(Outcome::Done(counts)) => Ok(counts),
            Err(reason) => Err(reason),
        };
        rows.push(row(suite.name, start, result, is_ci));
    }
    let is_alone = built.len() == 1;
    std::thread::scope(|scope| {
        let run = |(at, command): (usize, TestCommand)| {
            let name = rows[at].name;
            let mark = if is_alone { String::new() } else { format!("{name:<8}| ") };
            let run = move || {
                let start = Instant::now();
                row(name, start, command.run(&mark), is_ci)
            };
            (at, scope.spawn(run))
        };
        let running: Vec<_> = built.into_iter().map(run).collect();
        for (at, thread) in running {
            let row = thread.join().expect("it only runs a program");
            rows[at] = Row { seconds: rows[at].seconds + row.seconds, ..row };
        }
    });
    rows
}

fn row(name: &'static str, start: Instant, result: Result<Counts, String>, is_ci: bool) -> Row {
    let (state, counts) = match result {
        Ok(counts) if counts.failed > 0 => (State::Failed, counts),
        Ok(counts) => (State::Passed, counts),
        Err(reason) => {
            println!("{name}: not run: {reason}");
            (State::NotRun(reason), Counts { failed: usize::from(is_ci), ..Counts::default() })
        }
    };
    Row { name, state, counts, seconds: start.elapsed().as_secs_f64() }
}

fn tidy() -> Result<Outcome, String> {
    tidy::check_checkout().map(Outcome::Done)
}

/// Where Python code is.
const PYTHON_FOLDERS: [&str; 4] = ["python", "tests", "benches", "examples"];

/// The format of Rust and Python, and what a linter says of Python; clippy and biome have suites of their own.
fn format() -> Result<Outcome, String> {
    let rust = single(child::run(cargo().args(["fmt", "--all", "--check"])));
    let environment = PythonEnv::ready()?;
    let ruff =
        |arguments: &[&str]| single(child::run(environment.command("ruff").args(arguments).args(PYTHON_FOLDERS)));
    Ok(Outcome::Done(rust + ruff(&["format", "--check"]) + ruff(&["check"])))
}

fn clippy() -> Result<Outcome, String> {
    let arguments = ["clippy", "--release", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    Ok(Outcome::Done(single(child::run(cargo().args(arguments)))))
}

/// One test that passed or failed; a message goes to the terminal.
fn single(outcome: Result<(), String>) -> Counts {
    if let Err(message) = &outcome {
        println!("{message}");
    }
    Counts { passed: usize::from(outcome.is_ok()), failed: usize::from(outcome.is_err()), skipped: 0 }
}

fn rust() -> Result<Outcome, String> {
    rust_tests(&[])
}

/// The tests inside of the crates.
fn units() -> Result<Outcome, String> {
    rust_tests(&["--lib", "--bins"])
}

fn rust_tests(arguments: &[&str]) -> Result<Outcome, String> {
    let mut command = cargo_test()?;
    command.arg("--no-fail-fast").args(arguments);
    TestCommand { command, counts: cargo_counts }.run("").map(Outcome::Done)
}

/// `cargo test`, as everything that tests run is built.
fn cargo_test() -> Result<Command, String> {
    cargo_checked("test")
}

/// A command of cargo on all crates, built with [`checks`].
fn cargo_checked(command: &str) -> Result<Command, String> {
    let mut cargo = cargo();
    cargo.args([command, "--release", "--workspace"]).args(checks()?);
    Ok(cargo)
}

/// Crates that run in a recorded process; tests run their code as it is released.
const IN_A_JOB: [&str; 7] = [
    "stepscope",
    "stepscope-capture",
    "stepscope-recorder",
    "stepscope-recorder-device",
    "stepscope-recorder-posix",
    "stepscope-recorder-python",
    "stepscope-recorder-torch",
];

/// What has cargo build our own crates with the checks that a release leaves out: assertions and overflow. The others than
/// [`IN_A_JOB`] are optimised less, since compiling takes most of the time, and the summary not at all: its tables are made
/// of types, which takes a minute more to optimise than tests then save. Dependencies are compiled as for the demo, and most
/// of our crates once for all suites.
fn checks() -> Result<Vec<String>, String> {
    let setting = |name: &str, setting| format!("--config=profile.release.package.{name}.{setting}");
    let settings = |name: &String| {
        let less: &[&str] = match name.as_str() {
            name if IN_A_JOB.contains(&name) => &[],
            "stepscope-summary" => &["opt-level=0", "debug=0"],
            _ => &["opt-level=1", "debug=0"],
        };
        let all = ["debug-assertions=true", "overflow-checks=true"].iter().chain(less);
        all.map(|each| setting(name, each)).collect::<Vec<_>>()
    };
    Ok(crate_names()?.iter().flat_map(settings).collect())
}

/// The names of the crates of the workspace, sorted.
fn crate_names() -> Result<Vec<String>, String> {
    let folders = std::fs::read_dir(root().join("crates")).map_err(|error| format!("cannot list crates: {error}"))?;
    let manifests =
        folders.flatten().filter_map(|folder| std::fs::read_to_string(folder.path().join("Cargo.toml")).ok());
    let name_of = |manifest: String| {
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some(name.trim_matches('"').to_string())
    };
    let mut names: Vec<String> = manifests.filter_map(name_of).collect();
    names.sort();
    Ok(names)
}

fn python() -> Result<Outcome, String> {
    let mut outcome = pytest(&PythonEnv::ready()?, "tests/python", "", processors())?;
    if let Outcome::Built(tests) = &mut outcome {
        tests.command.env("STEPSCOPE_SQL", sql::built()?);
    }
    Ok(outcome)
}

/// The tests that start no program, and take no ten seconds.
fn python_in_process() -> Result<Outcome, String> {
    pytest(&PythonEnv::ready()?, "tests/python", "not slow and not starts_programs", processors())
}

/// Jobs of frameworks that use PyTorch, and inference servers.
fn frameworks() -> Result<Outcome, String> {
    let servers = PythonEnv::with_servers()?;
    // Servers and clusters are waited for: one file more than there are processors runs at a time.
    let mut outcome = pytest(&PythonEnv::with_frameworks()?, "tests/frameworks", "", processors() + 1)?;
    if let Outcome::Built(tests) = &mut outcome {
        tests.command.env(SERVERS_PYTHON, servers.program("python"));
    }
    Ok(outcome)
}

/// The processors that this process may use.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs the tests in a folder with these marks, all without any. As many files run at a time as there are `processes`.
fn pytest(environment: &PythonEnv, folder: &str, marks: &str, processes: usize) -> Result<Outcome, String> {
    if let Err(message) = environment.install_stepscope(&checks()?) {
        return Ok(Outcome::Done(single(Err(message))));
    }
    // As the Rust tests build it.
    child::run(cargo_checked("build")?.args(["--example", "threads"]))?;
    let processes = format!("--numprocesses={processes}");
    // Each file in one of them: what a file records is recorded once for its tests.
    let arguments = [
        "-m",
        "pytest",
        "--color=no",
        &processes,
        "--dist=loadfile",
        "--no-loadscope-reorder",
        "--durations=25",
        "-m",
        marks,
        folder,
    ];
    let mut command = environment.command("python");
    command.args(arguments).env("STEPSCOPE_EXAMPLES", built("examples"));
    Ok(Outcome::Built(TestCommand { command, counts: pytest_counts }))
}
