//! Asking a Python what it has, in a process of its own, and which Python this program is installed in.

use crate::package::is_package;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The environment variable in which the installed command says which Python runs it.
const PYTHON_VARIABLE: &str = "STEPSCOPE_PYTHON";

/// Asks without importing torch, which takes seconds.
const QUESTION: &str = "\
import importlib.metadata, importlib.util, json, platform, sys
def version(name):
    try: return importlib.metadata.version(name)
    except Exception: return None
def has(name):
    try: return importlib.util.find_spec(name) is not None
    except Exception: return False
print(json.dumps({'python': platform.python_version(), 'implementation': platform.python_implementation(),
    'executable': sys.executable, 'has_torch': has('torch'), 'torch': version('torch'),
    'has_package': has('stepscope'), 'package': version('stepscope')}))";

/// What a Python says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) python: String,
    pub(crate) implementation: String,
    pub(crate) executable: String,
    pub(crate) has_torch: bool,
    pub(crate) torch: Option<String>,
    pub(crate) has_package: bool,
    pub(crate) package: Option<String>,
}

pub(crate) fn ask(python: &Path) -> Result<Answer, String> {
    let line = last_line(Command::new(python).args(["-c", QUESTION]))?;
    serde_json::from_str(&line).map_err(|_| format!("its answer is not understood: {line}"))
}

/// The last line that `command` prints; else why there is none, in one line.
pub(crate) fn last_line(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "not found".to_string(),
        kind => kind.to_string(),
    })?;
    let last = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_string)
    };
    match last(&output.stdout) {
        Some(line) if output.status.success() || line.starts_with('{') => Ok(line),
        _ => Err(last(&output.stderr).unwrap_or_else(|| format!("it ended with {}", output.status))),
    }
}

/// True when `python` says that it has PyTorch.
pub(crate) fn has_torch(python: &Path) -> bool {
    ask(python).is_ok_and(|answer| answer.has_torch)
}

/// The Python that this program is installed in; `None` when it is in none.
pub(crate) fn own_python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os(PYTHON_VARIABLE).filter(|python| !python.is_empty()) {
        return Some(python.into());
    }
    let program = std::env::current_exe().ok()?;
    let python = program.parent()?.join("python3");
    let is_installed =
        crate::package::site_packages(program.ancestors().nth(2)?).any(|folder| is_package(&folder.join("stepscope")));
    (is_installed && python.is_file()).then_some(python)
}

/// The Python of a job that names none: the one that this program is installed in when it has PyTorch, else the one on
/// the path when that has, else the first of these that there is.
pub(crate) fn usual_python() -> PathBuf {
    let (own, found) = (own_python(), PathBuf::from("python3"));
    match own {
        Some(own) if has_torch(&own) || !has_torch(&found) => own,
        _ => found,
    }
}
