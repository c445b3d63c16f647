//! Kineto's and other Chrome JSON traces: an object with `traceEvents` and metadata in any order, or a bare list of
//! events.
//!
//! The text goes through these stages: [`document`] (where events are), [`cursor`] and [`parallel`] (events one after
//! the other, going on after broken places; long lists on all processors), [`row`], [`event`] and [`metadata`] (typed
//! members; [`layouts`] and [`known_inputs`] know what repeats), [`chunk`] (one part of the text, as lists of [`entries`]), [`rows`] (what each row is),
//! [`tracks`] and [`arrows`]; or [`activities`], for what is said of devices alone.

mod activities;
mod arrows;
mod categories;
mod chunk;
mod conversion;
mod cursor;
mod document;
mod entries;
mod event;
mod keys;
mod known_inputs;
mod layouts;
mod metadata;
mod names;
mod parallel;
mod row;
mod rows;
#[cfg(test)]
mod tests;
mod tracks;

use crate::ImportError;
use crate::input::{self, Input, SharedText};
use crate::json::scanner::Stop;
use crate::progress::Progress;
use crate::window::Blocks;
pub(crate) use activities::Activities;
use chunk::Sink;
use document::Document;
use metadata::Metadata;
use rows::Rows;
use std::path::Path;
use stepscope_trace::{FindingCode, Trace, TraceBuilder};

/// A list of events is read in parts of this size, each by one thread.
#[cfg(not(any(test, fuzzing)))]
const CHUNK_BYTES: u64 = 2 << 20;
/// Small enough that the texts of tests and of the fuzzer have several.
#[cfg(any(test, fuzzing))]
const CHUNK_BYTES: u64 = 1 << 10;

/// Where the part that holds `position` ends, of a list of events that begins at `from`.
fn chunk_limit(from: u64, position: u64) -> u64 {
    from + ((position - from) / CHUNK_BYTES + 1) * CHUNK_BYTES
}

/// What a text is read into, and where it comes from.
pub(crate) struct Source<'a> {
    /// The file, for messages.
    pub(crate) path: &'a Path,
    /// What a person calls the trace.
    pub(crate) name: String,
    /// How it was packed: `gzip`.
    pub(crate) packing: Option<&'static str>,
    /// The text for several readers, unless it is in memory.
    pub(crate) shared: Option<SharedText>,
}

/// Reads a text into a trace.
///
/// # Errors
/// When it is not JSON, or JSON without trace events. Whatever is broken within is a finding of the trace.
pub(crate) fn read(source: Source<'_>, blocks: Box<dyn Blocks + '_>) -> Result<Trace, ImportError> {
    let mut builder = TraceBuilder::new(source.name.clone());
    builder.sources = vec![source.path.display().to_string()];
    let (rows, metadata) = read_into(Rows::new(builder), source, blocks)?;
    Ok(rows.finish(metadata))
}

/// Reads what the text in a file says of devices.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_activities(path: &Path) -> Result<Activities, ImportError> {
    let Input { blocks, shared, packing } = input::open(path, &Progress::default())?;
    let source = Source { path, name: String::new(), packing, shared };
    let (mut activities, metadata) = read_into(Activities::default(), source, blocks)?;
    activities.finish(metadata);
    Ok(activities)
}

fn read_into<S: Sink>(sink: S, source: Source<'_>, blocks: Box<dyn Blocks + '_>) -> Result<(S, Metadata), ImportError> {
    let mut document = Document::new(blocks, source.shared, sink);
    document.cursor.skip_mark();
    let is_list = match document.cursor.peek() {
        Ok(b'{') => false,
        Ok(b'[') => true,
        Ok(_) => return Err(not_json(source.path, &mut document, "'{' or '['")),
        Err(_) => {
            return Err(match (document.source_error(), source.packing) {
                (Some(source_error), Some(_)) => {
                    ImportError::Damaged { path: source.path.into(), message: source_error.message }
                }
                (Some(source_error), None) => {
                    ImportError::Read { path: source.path.into(), source: std::io::Error::other(source_error.message) }
                }
                (None, _) => ImportError::Empty { path: source.path.into() },
            });
        }
    };
    let result = if is_list { document.read_events() } else { document.read_object() };
    let at_byte = document.cursor.position();
    let not_a_trace = |found: &str| ImportError::NotATrace { path: source.path.into(), found: found.into(), at_byte };
    match result {
        Err(Stop::Unexpected { expected, .. }) => return Err(not_json(source.path, &mut document, expected)),
        Err(Stop::End) if !document.has_events_list => return Err(not_a_trace("the end of the text before any event")),
        Ok(()) if !document.has_events_list => return Err(not_a_trace("an object without a list traceEvents")),
        _ if is_list && document.sink.phase_count() == 0 => return Err(not_a_trace("a list without an event")),
        _ => {}
    }
    if result.is_ok() && document.cursor.peek().is_ok() {
        document.unreadable(document.cursor.position());
    }
    let end = document.cursor.end();
    let source_error = document.source_error();
    let findings = document.sink.findings();
    match source_error {
        Some(source_error) => findings.add(FindingCode::TruncatedInput, || {
            format!("{} after {} bytes", source_error.message, source_error.after_bytes)
        }),
        None if result.is_err() => findings.add(FindingCode::TruncatedInput, || format!("at byte {end}")),
        None => {}
    }
    Ok((document.sink, document.metadata))
}

fn not_json<S: Sink>(path: &Path, document: &mut Document<'_, S>, expected: &'static str) -> ImportError {
    let (at_byte, byte) = document.broken_at.unwrap_or((document.cursor.position(), document.cursor.byte()));
    let found = match byte {
        Some(byte) if byte.is_ascii_graphic() => format!("{:?}", byte as char),
        Some(byte) => format!("byte 0x{byte:02x}"),
        None => "the end of the text".into(),
    };
    ImportError::NotJson { path: path.into(), expected, found, at_byte }
}
