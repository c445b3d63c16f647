//! Child processes: shown before they run, checked after.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Shows `command` and runs it on this terminal; an error unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    let status = command.status().map_err(|error| cannot_start(&shown, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}

/// Shows `command` and runs it on this terminal, each line of its output behind `mark`; returns what it wrote to standard
/// output, and whether it succeeded.
pub(crate) fn run_and_read(command: &mut Command, mark: &str) -> Result<(String, bool), String> {
    let shown = show(command);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_start(&shown, &error))?;
    let mut written = String::new();
    for line in BufReader::new(child.stdout.take().expect("standard output is piped")).split(b'\n') {
        let line = line.map_err(|error| format!("{shown}: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        println!("{mark}{line}");
        written.push_str(&line);
        written.push('\n');
    }
    let status = child.wait().map_err(|error| format!("{shown}: {error}"))?;
    Ok((written, status.success()))
}

/// Runs `command` unseen; what it wrote to standard output, or `None` when it failed.
pub(crate) fn read(command: &mut Command) -> Option<Vec<u8>> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// Prints `command` as a person would type it, and returns it.
fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(|word| word.to_string_lossy());
    let shown = words.collect::<Vec<_>>().join(" ");
    println!("\n$ {shown}");
    // The child writes to the same place; what is shown here comes first. A closed terminal is the child's to report.
    let _ = std::io::stdout().flush();
    shown
}

fn cannot_start(shown: &str, error: &std::io::Error) -> String {
    format!("cannot start `{shown}`: {error}")
}
