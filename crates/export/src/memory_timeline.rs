//! Memory in use over time, by category, in the three forms that `torch.profiler` writes: points, changes, a page.

mod chart;

use crate::gzip::write_packed;
use crate::{Destination, ExportError};
use std::io::{self, Write};
use std::path::Path;
use stepscope_engine::{MemoryAction, MemoryChange, Selection, Trace, memory_timeline};

/// Categories in the order that `torch.profiler` numbers them; what is none of the others is the last.
const CATEGORIES: [&str; 8] =
    ["parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail", "unknown"];

/// Writes the memory of the host, or of a device by its number, to `path`: a page when its name ends in `.html`,
/// changes when it ends in `raw.json.gz`, else points, packed when it ends in `.gz`. Points are a list of times in
/// microseconds and one of bytes by category, behind a 0; a change is a time in nanoseconds, −1 before recording, what
/// happened (1 was there before, 2 allocated, 4 freed), bytes and a category. Times are Unix times where they are
/// known.
///
/// # Errors
/// [`ExportError::Write`]; `path` is then as it was.
pub fn save_memory_timeline(trace: &Trace, path: &Path, device: Option<i64>) -> Result<(), ExportError> {
    let changes: Vec<MemoryChange> =
        memory_timeline(trace, &Selection::default()).into_iter().filter(|change| change.device == device).collect();
    let zero_ns = trace.start_unix_ns.unwrap_or(0);
    let name = path.to_string_lossy();
    Destination::write(path, |out| match () {
        () if name.ends_with(".html") => out.write_all(chart::page(&changes).as_bytes()),
        () if name.ends_with("raw.json.gz") => write_packed(out, |out| write_changes(&changes, zero_ns, out)),
        () if name.ends_with(".gz") => write_packed(out, |out| write_points(&changes, zero_ns, out)),
        () => write_points(&changes, zero_ns, out),
    })
}

/// The place of a change's category.
fn category(change: &MemoryChange) -> usize {
    CATEGORIES.iter().position(|name| *name == change.category).unwrap_or(CATEGORIES.len() - 1)
}

/// Bytes by category at each time at which any of them changes. What was there before is there from the first on.
fn points(changes: &[MemoryChange], unit_ns: i64, zero_ns: i64) -> Vec<(i64, [i64; CATEGORIES.len()])> {
    let first_ns = changes.iter().find_map(|change| change.time_ns).unwrap_or(0);
    let mut points: Vec<(i64, [i64; CATEGORIES.len()])> = Vec::new();
    for change in changes {
        let time = (zero_ns + change.time_ns.unwrap_or(first_ns)).div_euclid(unit_ns);
        match points.last() {
            Some((last, _)) if *last == time => {}
            last => points.push((time, last.map_or([0; CATEGORIES.len()], |(_, bytes)| *bytes))),
        }
        if let Some((_, bytes)) = points.last_mut() {
            bytes[category(change)] += change.delta();
        }
    }
    points
}

fn write_points(changes: &[MemoryChange], zero_ns: i64, out: &mut dyn Write) -> io::Result<()> {
    let points = points(changes, 1_000, zero_ns);
    let comma = |at: usize| if at == 0 { "" } else { ", " };
    write!(out, "[[")?;
    for (at, (time, _)) in points.iter().enumerate() {
        write!(out, "{}{time}", comma(at))?;
    }
    write!(out, "], [")?;
    for (at, (_, bytes)) in points.iter().enumerate() {
        write!(out, "{}[0", comma(at))?;
        bytes.iter().try_for_each(|bytes| write!(out, ", {bytes}"))?;
        write!(out, "]")?;
    }
    write!(out, "]]")
}

fn write_changes(changes: &[MemoryChange], zero_ns: i64, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "[")?;
    for (at, change) in changes.iter().enumerate() {
        let time_ns = change.time_ns.map_or(-1, |time_ns| zero_ns + time_ns);
        let action = match change.action {
            MemoryAction::Preexisting => 1,
            MemoryAction::Create => 2,
            MemoryAction::Destroy => 4,
        };
        let comma = if at == 0 { "" } else { ", " };
        write!(out, "{comma}[{time_ns}, {action}, {}, {}]", change.delta(), category(change))?;
    }
    write!(out, "]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    fn changes() -> Vec<MemoryChange> {
        let mut trace = drawn("rank 0 cpu 1 xx..yy..\nrank 0 memory 1 aA.b.CB.\nrank 0 hostmemory 1 d.......");
        trace.start_unix_ns = Some(5_000_000);
        memory_timeline(&trace, &Selection::default()).into_iter().filter(|change| change.device == Some(0)).collect()
    }

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn points_have_a_column_a_category_behind_a_zero() {
        let found = text(|out| write_points(&changes(), 5_000_000, out));
        let row = |temporary: i64, unknown: i64| format!("[0, 0, 0, 0, {temporary}, 0, 0, 0, {unknown}]");
        let rows = [row(100, 300), row(0, 300), row(0, 500), row(0, 200), row(0, 0)].join(", ");
        assert_eq!(found, format!("[[5000, 5001, 5003, 5005, 5006], [{rows}]]"));
        assert_eq!(text(|out| write_points(&[], 5_000_000, out)), "[[], []]");
    }

    #[test]
    fn changes_say_what_happened() {
        let found = text(|out| write_changes(&changes(), 5_000_000, out));
        let expected = "[[-1, 1, 300, 7], [5000000, 2, 100, 3], [5001000, 4, -100, 3], [5003000, 2, 200, 7], \
                        [5005000, 4, -300, 7], [5006000, 4, -200, 7]]";
        assert_eq!(found, expected);
    }

    #[test]
    fn the_ending_says_the_form_and_the_device_whose_memory() {
        let folder = tempfile::tempdir().unwrap();
        let trace = drawn("rank 0 cpu 1 xx\nrank 0 memory 1 aA\nrank 0 hostmemory 1 d.");
        let saved = |name: &str, device| {
            let path = folder.path().join(name);
            save_memory_timeline(&trace, &path, device).unwrap();
            let bytes = std::fs::read(path).unwrap();
            let mut text = String::new();
            match name.ends_with(".gz") {
                true => io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap(),
                false => io::Read::read_to_string(&mut &bytes[..], &mut text).unwrap(),
            };
            text
        };
        assert_eq!(saved("a.json", None), saved("a.json.gz", None));
        assert!(saved("a.json", Some(0)).starts_with("[[0, 1], ["));
        assert_eq!(saved("a.raw.json.gz", None).matches('[').count(), 2);
        assert_eq!(saved("a.json", Some(3)), "[[], []]");
        assert!(saved("a.html", None).contains("</svg>"));
        assert!(save_memory_timeline(&trace, &folder.path().join("no/a.json"), None).is_err());
    }
}
