//! The Python that runs the job: PyTorch, the recorder's package, the hook.

use super::Check;
use crate::package::injected_folder;
use crate::python::{Answer, ask, last_line};
use serde::Deserialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The checks of `python` with the recorder's `package`.
pub(super) fn checks(python: &Path, package: Option<&Path>) -> Vec<Check> {
    let answer = match ask(python) {
        Ok(answer) => answer,
        Err(reason) => {
            let says = format!("cannot run {}: {reason}", python.display());
            return vec![Check::missing("Python", says).hint("name the Python of your job with --python")];
        }
    };
    vec![
        about_python(&answer),
        about_torch(&answer),
        about_package(&answer, package),
        about_hook(python, &answer, package),
    ]
}

fn about_python(answer: &Answer) -> Check {
    let says = format!("{} {} ({})", answer.implementation, answer.python, answer.executable);
    let mut numbers = answer.python.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match answer.implementation.as_str() {
        "CPython" if version >= (3, 9) => Check::good("Python", says),
        _ => Check::missing("Python", says).hint("recording needs CPython 3.9 or later"),
    }
}

fn about_torch(answer: &Answer) -> Check {
    match (answer.has_torch, &answer.torch) {
        (true, Some(version)) => Check::good("PyTorch", version),
        (true, None) => Check::good("PyTorch", "found, of unknown version"),
        (false, _) => {
            Check::missing("PyTorch", "not found by this Python").hint("name the Python of your job with --python")
        }
    }
}

fn about_package(answer: &Answer, package: Option<&Path>) -> Check {
    match package {
        Some(folder) => {
            let version = answer.package.as_ref().map_or(String::new(), |version| format!("{version}, "));
            Check::good("recorder", format!("{version}{}", folder.display()))
        }
        None => Check::missing("recorder", "its Python package is not installed beside this program")
            .hint("pip install stepscope, or name its folder in STEPSCOPE_PACKAGE"),
    }
}

/// What the hook's own check says: one line of JSON.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
struct HookAnswer {
    is_usable: bool,
    #[serde(default)]
    reason: Option<String>,
}

fn about_hook(python: &Path, answer: &Answer, package: Option<&Path>) -> Check {
    const NAME: &str = "PyTorch hook";
    let Some(package) = package.filter(|_| answer.has_torch) else {
        return Check::missing(NAME, "not available: it needs PyTorch and the recorder");
    };
    let mut command = Command::new(python);
    command.args(["-m", "stepscope._hook"]);
    if !answer.has_package {
        command.env("PYTHONPATH", search_path(package));
    }
    match last_line(&mut command) {
        Ok(line) => about_answer(NAME, &line),
        Err(reason) => Check::missing(NAME, format!("not available: {reason}")),
    }
}

fn about_answer(name: &'static str, line: &str) -> Check {
    let Ok(answer) = serde_json::from_str::<HookAnswer>(line) else {
        return Check::missing(name, format!("not available: its answer is not understood: {line}"));
    };
    match (answer.is_usable, answer.reason) {
        (true, _) => Check::good(name, "proven on this PyTorch: operators can be recorded"),
        (false, Some(reason)) => Check::missing(name, format!("not available: {reason}")),
        (false, None) => Check::missing(name, "not available, no reason given"),
    }
}

/// Where a Python that does not have the package finds it.
pub(super) fn search_path(package: &Path) -> OsString {
    let mut path = package.parent().unwrap_or(&injected_folder(package)).as_os_str().to_os_string();
    if let Some(before) = std::env::var_os("PYTHONPATH").filter(|before| !before.is_empty()) {
        path.push(if cfg!(windows) { ";" } else { ":" });
        path.push(before);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Health;

    fn answer(python: &str) -> Answer {
        let json = r#"{"python": "3.12.1", "implementation": "CPython", "executable": "python3", "has_torch": false,
            "torch": null, "has_package": false, "package": null}"#;
        Answer { python: python.into(), ..serde_json::from_str(json).unwrap() }
    }

    #[test]
    fn old_pythons_are_refused() {
        assert_eq!(about_python(&answer("3.9.0")).health, Health::Good);
        assert_eq!(about_python(&answer("3.8.18")).health, Health::Missing);
        assert_eq!(about_python(&answer("2.7")).health, Health::Missing);
    }

    #[test]
    fn a_python_that_is_not_there_is_said_so() {
        let checks = checks(Path::new("no-such-python"), None);
        assert_eq!(checks[0].says, "cannot run no-such-python: not found");
    }

    #[test]
    fn the_hook_speaks_for_itself() {
        assert_eq!(about_answer("hook", r#"{"is_usable": true, "offsets": {"name": 8}}"#).health, Health::Good);
        let refused = about_answer("hook", r#"{"is_usable": false, "reason": "offsets not found"}"#);
        assert_eq!((refused.health, refused.says.as_str()), (Health::Missing, "not available: offsets not found"));
        assert_eq!(about_answer("hook", "Segmentation fault").health, Health::Missing);
    }
}
