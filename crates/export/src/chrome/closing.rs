//! What Kineto writes last of a recording: its span, and where its window begins and ends. Readers look for them.

use super::Document;
use std::io;
use stepscope_base::Span;

/// The place of the row, behind all processes and devices.
const PLACE: i64 = 1 << 29;

/// Writes them for what was recorded within `window`.
pub(super) fn write(document: &mut Document<'_>, window: Span) -> io::Result<()> {
    begin(document, "X", ["PyTorch Profiler (0)", "Spans", "PyTorch Profiler"]);
    document.json.text("cat", "Trace");
    document.json.time(window.start_ns);
    document.json.us("dur", window.duration_ns());
    document.json.open(Some("args"));
    document.json.int("Op count", 0);
    document.json.close();
    document.end_event()?;

    document.json.raw(",\n");
    document.json.open(None);
    document.json.text("ph", "M");
    document.json.text("name", "process_sort_index");
    document.json.text("pid", "Spans");
    document.json.int("tid", 0);
    document.json.time(window.start_ns);
    document.json.open(Some("args"));
    document.json.int("sort_index", PLACE);
    document.json.close();
    document.end_event()?;

    write_instant(
        document,
        ["Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler"],
        window.start_ns,
    )?;
    write_instant(document, ["Record Window End", "", ""], window.end_ns)
}

fn write_instant(document: &mut Document<'_>, texts: [&str; 3], at_ns: i64) -> io::Result<()> {
    begin(document, "i", texts);
    document.json.text("s", "g");
    document.json.time(at_ns);
    document.end_event()
}

/// Rows of their own have names where others have numbers.
fn begin(document: &mut Document<'_>, phase: &str, [name, pid, tid]: [&str; 3]) {
    document.json.raw(",\n");
    document.json.open(None);
    document.json.text("ph", phase);
    document.json.text("name", name);
    document.json.text("pid", pid);
    document.json.text("tid", tid);
}
