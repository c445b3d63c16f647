//! Why a command could not do its work, told in up to three lines: what, where, what to do.

use crate::color::{DIM, ERROR, HINT};
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use stepscope_engine::{EngineError, printable, split_place};
use stepscope_export::ExportError;
use stepscope_run::RunError;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    location: Option<String>,
    hint: Option<String>,
    code: i32,
    is_reader_gone: bool,
}

impl Failure {
    /// A failure with exit code 1; `what` is one line in lower case.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), location: None, hint: None, code: 1, is_reader_gone: false }
    }

    /// A failure of `doing` something with the file at `path`.
    pub(crate) fn file(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        let failure = Self::new(format!("{doing}: {}", plain_words(error))).at(path.display());
        Self { is_reader_gone: error.kind() == ErrorKind::BrokenPipe, ..failure }
    }

    /// Says where.
    pub(crate) fn at(self, location: impl ToString) -> Self {
        Self { location: Some(location.to_string()), ..self }
    }

    /// Says what to do.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Changes the exit code.
    pub(crate) fn code(self, code: i32) -> Self {
        Self { code, ..self }
    }

    /// Prints it to standard error and returns the exit code.
    pub(crate) fn report(self) -> i32 {
        if self.is_reader_gone {
            return 0;
        }
        let mut text = format!("{ERROR}error:{ERROR:#} {}\n", printable(&self.what));
        if let Some(location) = &self.location {
            let _ = writeln!(text, "   {DIM}at:{DIM:#} {}", printable(location));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, " {HINT}hint:{HINT:#} {}", printable(hint));
        }
        // There is nobody left to tell when standard error is closed.
        let _ = anstream::stderr().write_all(text.as_bytes());
        self.code
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let code = if error == EngineError::NoInput { 2 } else { 1 };
        Self { what: error.to_string(), location: error.place(), hint: error.hint(), code, is_reader_gone: false }
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        let failure = match &error {
            ExportError::Read(error) => return Self::from(error.clone()),
            ExportError::Write { path, source } => Self::file("cannot write the result", path, source),
            ExportError::Exists { path } => Self::new(split_place(&error.to_string(), path).0).at(path.display()),
            ExportError::UnknownFormat { path } | ExportError::NotByRank { path } => {
                Self::new(split_place(&error.to_string(), path).0).at(path.display()).code(2)
            }
        };
        Self { hint: error.hint(), ..failure }
    }
}

impl Failure {
    /// What went wrong with the run folder at `path`.
    pub(crate) fn run(error: &RunError, path: &Path) -> Self {
        let (what, location) = split_place(&error.to_string(), path);
        Self { hint: error.hint(), ..Self::new(what).at(location.display()) }
    }
}

/// The operating system's reason in lower case and without its number.
fn plain_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}
