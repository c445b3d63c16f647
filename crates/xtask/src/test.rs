//! `cargo xtask test`: every test there is, suite by suite, and what came of it.
//!
//! A suite that cannot run (no Python, no network) is a failure where `CI` is set; elsewhere it is named in a box at the
//! end.

mod counts;
mod summary;
mod web;

use crate::checkout::{built, cargo, root};
use crate::python_env::PythonEnv;
use crate::{child, tidy};
pub(crate) use counts::Counts;
use counts::{cargo_counts, pytest_counts};
use std::process::Command;
use std::time::Instant;
use summary::{Row, State};

/// A set of tests that is run at once.
struct Suite {
    name: &'static str,
    /// Runs it; `Err` when it cannot run here.
    run: fn() -> Result<Counts, String>,
}

const SUITES: &[Suite] = &[
    Suite { name: "tidy", run: tidy::check_checkout },
    Suite { name: "format", run: format },
    Suite { name: "clippy", run: clippy },
    Suite { name: "rust", run: rust },
    // The command with the pages that are built here is what the next two test.
    Suite { name: "web", run: web::run },
    Suite { name: "browser", run: web::run_browser },
    Suite { name: "python", run: python },
];

/// What `quick` runs in place of [`SUITES`]: what starts no browser, and no program with PyTorch.
const QUICK: &[Suite] = &[
    Suite { name: "tidy", run: tidy::check_checkout },
    Suite { name: "format", run: format },
    Suite { name: "clippy", run: clippy },
    Suite { name: "rust", run: units },
    Suite { name: "web", run: web::run },
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
    let rows: Vec<Row> = suites.iter().filter(is_wanted).map(|suite| run_suite(suite, is_ci)).collect();
    print!("{}", summary::text(&rows));
    Ok(rows.iter().all(|row| row.counts.failed == 0))
}

fn run_suite(suite: &Suite, is_ci: bool) -> Row {
    println!("\n== {} ==", suite.name);
    let start = Instant::now();
    let (state, counts) = match (suite.run)() {
        Ok(counts) if counts.failed > 0 => (State::Failed, counts),
        Ok(counts) => (State::Passed, counts),
        Err(reason) => {
            println!("{}: not run: {reason}", suite.name);
            (State::NotRun(reason), Counts { failed: usize::from(is_ci), ..Counts::default() })
        }
    };
    Row { name: suite.name, state, counts, seconds: start.elapsed().as_secs_f64() }
}

/// Where Python code is.
const PYTHON_FOLDERS: [&str; 4] = ["python", "tests", "benches", "examples"];

/// The format of Rust and Python, and what a linter says of Python; clippy and biome have suites of their own.
fn format() -> Result<Counts, String> {
    let rust = single(child::run(cargo().args(["fmt", "--all", "--check"])));
    let environment = PythonEnv::ready()?;
    let ruff =
        |arguments: &[&str]| single(child::run(environment.command("ruff").args(arguments).args(PYTHON_FOLDERS)));
    Ok(rust + ruff(&["format", "--check"]) + ruff(&["check"]))
}

fn clippy() -> Result<Counts, String> {
    let arguments = ["clippy", "--release", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    Ok(single(child::run(cargo().args(arguments))))
}

/// One test that passed or failed; a message goes to the terminal.
fn single(outcome: Result<(), String>) -> Counts {
    if let Err(message) = &outcome {
        println!("{message}");
    }
    Counts { passed: usize::from(outcome.is_ok()), failed: usize::from(outcome.is_err()), skipped: 0 }
}

fn rust() -> Result<Counts, String> {
    let (written, succeeded) = child::run_and_read(cargo_test()?.arg("--no-fail-fast"))?;
    Ok(cargo_counts(&written).at_least_one_failure_unless(succeeded))
}

/// The tests inside of the crates.
fn units() -> Result<Counts, String> {
    let (written, succeeded) = child::run_and_read(cargo_test()?.args(["--no-fail-fast", "--lib", "--bins"]))?;
    Ok(cargo_counts(&written).at_least_one_failure_unless(succeeded))
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
const IN_A_JOB: [&str; 6] = [
    "stepscope",
    "stepscope-capture",
    "stepscope-recorder",
    "stepscope-recorder-device",
    "stepscope-recorder-python",
    "stepscope-recorder-torch",
];

/// What has cargo build our own crates with the checks that a release leaves out: assertions and overflow. The others than
/// [`IN_A_JOB`] are optimised less, since compiling takes most of the time. Dependencies are compiled as for the demo, and
/// most of our crates once for all suites.
fn checks() -> Result<Vec<String>, String> {
    let setting = |name: &str, setting| format!("--config=profile.release.package.{name}.{setting}");
    let settings = |name: &String| {
        let less: &[&str] = if IN_A_JOB.contains(&name.as_str()) { &[] } else { &["opt-level=1", "debug=0"] };
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

fn python() -> Result<Counts, String> {
    pytest("")
}

/// The tests that start no program, and take no ten seconds.
fn python_in_process() -> Result<Counts, String> {
    pytest("not slow and not starts_programs")
}

/// Runs the tests with these marks, all without any.
fn pytest(marks: &str) -> Result<Counts, String> {
    let environment = PythonEnv::ready()?;
    if let Err(message) = environment.install_stepscope(&checks()?) {
        return Ok(single(Err(message)));
    }
    // As the Rust tests build it.
    child::run(cargo_checked("build")?.args(["--example", "threads"]))?;
    // On all processors, each file on one of them: what a file records is recorded once for its tests.
    let arguments = [
        "-m",
        "pytest",
        "--color=no",
        "--numprocesses=auto",
        "--dist=loadfile",
        "--no-loadscope-reorder",
        "--durations=25",
        "-m",
        marks,
        "tests/python",
    ];
    let mut command = environment.command("python");
    command.args(arguments).env("STEPSCOPE_EXAMPLES", built("examples"));
    let (written, succeeded) = child::run_and_read(&mut command)?;
    Ok(pytest_counts(&written).at_least_one_failure_unless(succeeded))
}
