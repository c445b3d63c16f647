//! Kineto's and other Chrome JSON traces: an object with `traceEvents` and metadata in any order, or a bare list of
//! events.
//!
//! The text goes through these stages: [`scanner`] (tokens), [`document`] (where events are, going on after broken
//! places), [`event`] and [`metadata`] (typed members), [`rows`] (what each event is), [`tracks`] and [`arrows`].

mod arrows;
mod categories;
mod document;
mod event;
mod facts;
mod metadata;
mod numbers;
mod rows;
mod scanner;
#[cfg(test)]
mod tests;
mod text;
mod tracks;

use crate::ImportError;
use document::Document;
use rows::Rows;
use scanner::Stop;
use std::path::Path;
use stepscope_trace::{FindingCode, Trace, TraceBuilder};

/// What a text is read into, and where it comes from.
pub(crate) struct Source<'a> {
    /// The file, for messages.
    pub(crate) path: &'a Path,
    /// What a person calls the trace.
    pub(crate) name: String,
    /// What stopped unpacking it, when it was packed and damaged.
    pub(crate) trouble: Option<String>,
}

/// Reads a text.
///
/// # Errors
/// When it is not JSON, or JSON without trace events. Whatever is broken within is a finding of the trace.
pub(crate) fn read(source: Source<'_>, bytes: &[u8]) -> Result<Trace, ImportError> {
    let mut builder = TraceBuilder::new(source.name);
    builder.sources = vec![source.path.display().to_string()];
    let mut document = Document::new(bytes, Rows::new(builder));
    document.scanner.go_to(if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 });
    let is_list = match document.scanner.peek() {
        Ok(b'{') => false,
        Ok(b'[') => true,
        Ok(_) => return Err(not_json(source.path, bytes, document.scanner.at(), "'{' or '['")),
        Err(_) => return Err(ImportError::Empty { path: source.path.into() }),
    };
    let result = if is_list { document.read_events() } else { document.read_object() };
    let at_byte = document.scanner.at();
    let not_a_trace = |found: &str| ImportError::NotATrace { path: source.path.into(), found: found.into(), at_byte };
    match result {
        Err(Stop::Unexpected { expected, at }) => return Err(not_json(source.path, bytes, at, expected)),
        Err(Stop::End) if !document.has_events_list => return Err(not_a_trace("the end of the text before any event")),
        Ok(()) if !document.has_events_list => return Err(not_a_trace("an object without a list traceEvents")),
        _ if is_list && document.rows.phase_count() == 0 => return Err(not_a_trace("a list without an event")),
        _ => {}
    }
    if result.is_ok() && document.scanner.peek().is_ok() {
        document.unreadable(document.scanner.at());
    }
    let findings = &mut document.rows.builder.findings;
    match source.trouble {
        Some(trouble) => findings.add(FindingCode::TruncatedInput, || format!("{trouble} after {} bytes", bytes.len())),
        None if result.is_err() => findings.add(FindingCode::TruncatedInput, || format!("at byte {}", bytes.len())),
        None => {}
    }
    findings.add_count(FindingCode::RepairedNumber, document.scanner.missing_numbers());
    Ok(document.rows.finish(document.metadata))
}

fn not_json(path: &Path, bytes: &[u8], at_byte: usize, expected: &'static str) -> ImportError {
    let found = match bytes.get(at_byte) {
        Some(byte) if byte.is_ascii_graphic() => format!("{:?}", *byte as char),
        Some(byte) => format!("byte 0x{byte:02x}"),
        None => "the end of the text".into(),
    };
    ImportError::NotJson { path: path.into(), expected, found, at_byte }
}
