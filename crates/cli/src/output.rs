//! Where a command's result goes: standard output or a file.

use crate::failure::Failure;
use std::io::Write;
use std::path::Path;
use stepscope_engine::printable;
use stepscope_export::Destination;

/// No line of output is wider, on any terminal.
pub(crate) const MAX_WIDTH: usize = 100;
/// Narrower terminals wrap: tables need some room.
const MIN_WIDTH: usize = 60;

/// The columns that lines may take: the terminal's, within limits; the maximum when there is no terminal.
pub(crate) fn line_width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    terminal.unwrap_or(MAX_WIDTH).clamp(MIN_WIDTH, MAX_WIDTH)
}

/// `path` for a line of text, whatever characters it has.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Writes `text` to standard output, with colours only where a person will see them.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut output = anstream::stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| Failure::file("cannot write the result", Path::new("standard output"), &error))
}

/// Writes `text` to `file`, or prints it when there is none.
pub(crate) fn deliver(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    match file {
        None => print(text),
        Some(path) => {
            let plain = anstream::adapter::strip_str(text).to_string();
            Destination::write(path, |out| out.write_all(plain.as_bytes())).map_err(Failure::from)
        }
    }
}
