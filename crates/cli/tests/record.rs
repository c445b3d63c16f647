//! `record` as a person meets it: exit codes, signals, folders. What is recorded is tested with the recorder.
#![cfg(unix)]

mod command;

use command::{Ended, run, stepscope};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A folder to work in, and a package whose injected code does nothing.
struct Workplace {
    folder: TempDir,
}

impl Workplace {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let injected = folder.path().join("package/_inject");
        std::fs::create_dir_all(&injected).unwrap();
        std::fs::write(injected.join("sitecustomize.py"), "").unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = stepscope(arguments);
        command.current_dir(self.path()).env("STEPSCOPE_PACKAGE", self.path().join("package"));
        command
    }

    fn record(&self, arguments: &[&str]) -> Ended {
        run(&mut self.command(&[&["record"], arguments].concat()))
    }
}

#[test]
fn the_exit_code_is_passed_on() {
    let place = Workplace::new();
    let ended = place.record(&["-o", "run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (7, "out\n"));
    assert!(ended.stderr.starts_with("err\n"), "{}", ended.stderr);
    assert!(place.path().join("run").is_dir());
}

#[test]
fn a_program_killed_by_a_signal_gives_the_code_that_shells_give() {
    let place = Workplace::new();
    assert_eq!(place.record(&["-o", "run", "--", "sh", "-c", "kill -9 $$"]).code, 128 + 9);
}

#[test]
fn a_program_that_does_not_exist_leaves_no_folder() {
    let place = Workplace::new();
    let ended = place.record(&["--", "no-such-program-here"]);
    assert_eq!(ended.code, 127);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines[..2], ["error: the program was not found", "   at: no-such-program-here"]);
    assert!(lines[2].starts_with(" hint: "));
    assert!(!place.path().join("stepscope-runs").exists());
}

#[test]
fn a_file_that_is_not_executable_leaves_no_folder() {
    let place = Workplace::new();
    std::fs::write(place.path().join("train.py"), "print()").unwrap();
    let ended = place.record(&["-o", "run", "--", "./train.py"]);
    assert_eq!(ended.code, 126);
    assert!(
        ended.stderr.contains("hint: run it with Python: stepscope record -- python ./train.py"),
        "{}",
        ended.stderr
    );
    assert!(!place.path().join("run").exists());
}

#[test]
fn a_script_without_its_interpreter_leaves_no_folder() {
    use std::os::unix::fs::PermissionsExt;
    let place = Workplace::new();
    let script = place.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ended = place.record(&["-o", "a/run", "--", "./script"]);
    assert_eq!(ended.code, 127);
    assert!(ended.stderr.starts_with("error: the program cannot be run: its interpreter was not found"));
    assert!(!place.path().join("a").exists());
}

#[test]
fn the_program_is_told_where_its_run_is() {
    let place = Workplace::new();
    let script = "echo \"$STEPSCOPE_RUN\"; echo \"$PYTHONPATH\"";
    let ended = run(place.command(&["record", "--", "sh", "-c", script]).env("PYTHONPATH", "/before"));
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let runs = place.path().canonicalize().unwrap().join("stepscope-runs");
    assert!(Path::new(lines[0]).is_absolute() && lines[0].ends_with("-sh"), "{lines:?}");
    assert_eq!(Path::new(lines[0]).parent().unwrap().canonicalize().unwrap(), runs);
    assert_eq!(lines[1], format!("{}:/before", place.path().join("package/_inject").display()));
}

#[test]
fn a_run_in_which_nothing_was_recorded_says_why() {
    let place = Workplace::new();
    let ended = place.record(&["-o", "run", "--", "true"]);
    assert_eq!(ended.code, 0);
    assert_eq!(
        ended.stderr.lines().collect::<Vec<_>>(),
        [
            "stepscope: nothing was recorded in run",
            "stepscope: no Python process with PyTorch reached the recorder; `stepscope doctor` tells what works here",
        ]
    );
}

#[test]
fn a_folder_in_use_is_refused() {
    let place = Workplace::new();
    std::fs::create_dir(place.path().join("mine")).unwrap();
    std::fs::write(place.path().join("mine/thesis.tex"), "").unwrap();
    let ended = place.record(&["-o", "mine", "--", "true"]);
    assert_eq!(ended.code, 1);
    assert_eq!(
        ended.stderr.lines().collect::<Vec<_>>(),
        [
            "error: the run's folder is not empty",
            "   at: mine",
            " hint: name another folder with -o, or remove this one first",
        ]
    );
    assert_eq!(place.record(&["-o", "run", "--", "true"]).code, 0);
    let again = place.record(&["-o", "run", "--", "true"]);
    assert!(again.code == 1 && again.stderr.starts_with("error: this folder already holds a run"));
    std::fs::create_dir(place.path().join("empty")).unwrap();
    assert_eq!(place.record(&["-o", "empty", "--", "true"]).code, 0);
}

#[test]
fn a_missing_package_is_said_before_anything_runs() {
    let place = Workplace::new();
    let mut command = place.command(&["record", "-o", "run", "--", "touch", "witness"]);
    let ended = run(command.env("STEPSCOPE_PACKAGE", place.path().join("nothing")));
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.starts_with("error: the recorder's Python package is not installed here"), "{}", ended.stderr);
    assert!(!place.path().join("witness").exists() && !place.path().join("run").exists());
}

/// Starts `script`, waits for its first line, sends `signal` to `record` alone; gives the exit code.
fn code_after(signal: &str, script: &str) -> i32 {
    let place = Workplace::new();
    let mut command = place.command(&["record", "-o", "run", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    child.wait().unwrap().code().expect("record closes the run and ends by itself")
}

#[test]
fn a_termination_is_passed_on_and_the_run_is_closed() {
    assert_eq!(code_after("-TERM", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"), 5);
}

#[test]
fn an_interruption_is_left_to_the_program() {
    assert_eq!(code_after("-INT", "echo ready; sleep 0.3; exit 3"), 3);
}

#[test]
fn options_of_the_program_are_not_ours() {
    let place = Workplace::new();
    assert_eq!(place.record(&["-o", "run", "sh", "-c", "exit 4", "-o", "--help"]).code, 4);
    assert_eq!(place.record(&["-o", "run2"]).code, 2);
}
