//! The program to run: is it there, and may it be run? Asked before a run folder is made.

use crate::failure::Failure;
use crate::python::{has_torch, own_python};
use std::ffi::OsStr;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// The codes that shells give.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

/// Looks `program` up as the operating system will.
pub(super) fn check(program: &OsStr) -> Result<(), Failure> {
    if !cfg!(unix) {
        return Ok(());
    }
    let places = places(program);
    if python_instead(program).is_some() || places.iter().any(|place| place.is_file() && is_executable(place)) {
        return Ok(());
    }
    let kind =
        if places.iter().any(|place| place.exists()) { ErrorKind::PermissionDenied } else { ErrorKind::NotFound };
    Err(failure(program, &Error::from(kind)))
}

/// Where the system looks for `program`.
fn places(program: &OsStr) -> Vec<PathBuf> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    match program.to_string_lossy().contains('/') {
        true => vec![program.into()],
        false => std::env::split_paths(&search_path).map(|folder| folder.join(program)).collect(),
    }
}

/// The Python that this program is installed in, where the `python` that the system finds by that name alone is not
/// there or has no PyTorch, and that one has.
pub(super) fn python_instead(program: &OsStr) -> Option<PathBuf> {
    if program != "python" && program != "python3" {
        return None;
    }
    let own = own_python()?;
    let found = places(program).into_iter().find(|place| place.is_file() && is_executable(place));
    let folder = |path: &Path| path.parent().and_then(|folder| folder.canonicalize().ok());
    if found.as_deref().and_then(folder) == folder(&own) || !has_torch(&own) {
        return None;
    }
    (!found.is_some_and(|found| has_torch(&found))).then_some(own)
}

/// What it means that the system did not start `program`.
pub(super) fn failure(program: &OsStr, error: &Error) -> Failure {
    let place = program.to_string_lossy();
    match error.kind() {
        ErrorKind::NotFound if place.contains('/') && Path::new(program).exists() => {
            Failure::new("the program cannot be run: its interpreter was not found")
                .at(place)
                .code(NOT_FOUND)
                .hint("look at its first line, after #!")
        }
        ErrorKind::NotFound => Failure::new("the program was not found")
            .at(place)
            .code(NOT_FOUND)
            .hint("give its path, or a name that your shell finds; options of stepscope stand before --"),
        ErrorKind::PermissionDenied => Failure::new("the program may not be run").at(&place).code(NOT_EXECUTABLE).hint(
            match place.ends_with(".py") {
                true => format!("run it with Python: stepscope record -- python {place}"),
                false => format!("make it executable: chmod +x {place}"),
            },
        ),
        _ => Failure::file("the program cannot be run", Path::new(program), error).code(NOT_EXECUTABLE),
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|facts| facts.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_path: &Path) -> bool {
    true
}
