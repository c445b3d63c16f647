//! The whole text: where the events are, what stands beside them, and how to go on after a broken place.

use super::event::Event;
use super::metadata::Metadata;
use super::rows::Rows;
use super::scanner::{Scanner, Stop};
use stepscope_trace::FindingCode;

/// How often a broken top level is given up for the next place that may begin the events.
const MAX_RESTARTS: u32 = 8;

/// Reads one text into rows and metadata.
pub(super) struct Document<'a> {
    pub(super) scanner: Scanner<'a>,
    pub(super) rows: Rows,
    pub(super) metadata: Metadata,
    /// True once a list of events began.
    pub(super) has_events_list: bool,
    /// Bytes that may be read a second time after broken places, so that any text takes linear time.
    reread_budget: usize,
}

impl<'a> Document<'a> {
    /// Nothing read yet.
    pub(super) fn new(bytes: &'a [u8], rows: Rows) -> Self {
        let scanner = Scanner::new(bytes);
        let reread_budget = bytes.len().saturating_mul(8);
        Self { scanner, rows, metadata: Metadata::default(), has_events_list: false, reread_budget }
    }

    /// Reads an object with `traceEvents`. What is broken beside the events is a finding.
    pub(super) fn read_object(&mut self) -> Result<(), Stop> {
        self.scanner.expect(b'{', "'{'")?;
        for _ in 0..MAX_RESTARTS {
            let mut member_at = self.scanner.at();
            let Err(stop) = self.read_members(&mut member_at) else { return Ok(()) };
            if self.has_events_list {
                return self.stop_beside_events(stop);
            }
            match find(self.scanner.bytes(), member_at + 1, b"\"traceEvents\"") {
                Some(at) => {
                    self.unreadable(member_at);
                    self.scanner.go_to(at);
                }
                None => return Err(stop),
            }
        }
        Err(self.scanner.unexpected("traceEvents"))
    }

    /// Reads a list of events, to its end or to the end of the text.
    pub(super) fn read_events(&mut self) -> Result<(), Stop> {
        self.scanner.expect(b'[', "a list of events")?;
        self.has_events_list = true;
        loop {
            match self.scanner.peek()? {
                b']' => return self.scanner.expect(b']', "']'"),
                b',' => self.scanner.expect(b',', "','")?,
                _ => {
                    let start = self.scanner.at();
                    if let Err(stop) = self.read_event(start) {
                        self.go_on_after(start, stop)?;
                    }
                }
            }
        }
    }

    /// Says that something at `at` was left out.
    pub(super) fn unreadable(&mut self, at: usize) {
        self.rows.builder.findings.add(FindingCode::UnreadableEvent, || format!("at byte {at}"));
    }

    fn read_members(&mut self, member_at: &mut usize) -> Result<(), Stop> {
        loop {
            let next = self.scanner.peek()?;
            *member_at = self.scanner.at();
            match next {
                b'}' => return self.scanner.expect(b'}', "'}'"),
                b',' => self.scanner.expect(b',', "','")?,
                _ => {
                    let key = self.scanner.string()?;
                    self.scanner.expect(b':', "':' after a key")?;
                    if key == b"traceEvents" && self.scanner.peek()? == b'[' {
                        self.read_events()?;
                    } else {
                        self.metadata.read_member(&mut self.scanner, key)?;
                    }
                    self.scanner.after_item(b'}')?;
                }
            }
        }
    }

    fn stop_beside_events(&mut self, stop: Stop) -> Result<(), Stop> {
        match stop {
            Stop::End => Err(Stop::End),
            Stop::Unexpected { at, .. } => {
                self.unreadable(at);
                self.scanner.go_to(self.scanner.bytes().len());
                Ok(())
            }
        }
    }

    fn read_event(&mut self, start: usize) -> Result<(), Stop> {
        if self.scanner.peek()? != b'{' {
            self.scanner.skip_value()?;
            self.unreadable(start);
            return Ok(());
        }
        let event = Event::read(&mut self.scanner)?;
        self.rows.add(&event, start);
        Ok(())
    }

    /// After a broken event that begins at `start`: goes to the next place that looks like an event, even inside what was
    /// already passed, since a stray quote may have swallowed whole events; or else to the end of the list.
    fn go_on_after(&mut self, start: usize, stop: Stop) -> Result<(), Stop> {
        let passed = self.scanner.at().saturating_sub(start);
        let from = match self.reread_budget.checked_sub(passed) {
            Some(left) => {
                self.reread_budget = left;
                start + 1
            }
            None => self.scanner.at().max(start + 1),
        };
        let bytes = self.scanner.bytes();
        let next = next_event(bytes, from);
        if next.is_none() && stop == Stop::End {
            self.scanner.go_to(bytes.len());
            return Err(Stop::End);
        }
        self.unreadable(start);
        let next = next.or_else(|| list_end(bytes, from));
        self.scanner.go_to(next.unwrap_or(bytes.len()));
        Ok(())
    }
}

/// The first `{` from `from` on that stands in a list and begins with a key of an event.
fn next_event(bytes: &[u8], from: usize) -> Option<usize> {
    const KEYS: [&[u8]; 8] = [b"ph", b"cat", b"name", b"pid", b"tid", b"ts", b"dur", b"args"];
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == b'{')?;
        let is_item = matches!(bytes[..at].trim_ascii_end().last(), Some(b',' | b'['));
        let key = bytes[at + 1..].trim_ascii_start().strip_prefix(b"\"");
        let begins_event =
            |rest: &[u8]| KEYS.iter().any(|key| rest.strip_prefix(*key).is_some_and(|r| r.first() == Some(&b'"')));
        if is_item && key.is_some_and(begins_event) {
            return Some(at);
        }
        at += 1;
    }
}

/// The first `]` from `from` on after which a top-level object may go on.
fn list_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == b']')?;
        let rest = bytes[at + 1..].trim_ascii_start();
        let next_key = rest.strip_prefix(b",").map(<[u8]>::trim_ascii_start);
        if rest.first().is_none_or(|byte| *byte == b'}') || next_key.is_some_and(|key| key.first() == Some(&b'"')) {
            return Some(at);
        }
        at += 1;
    }
}

fn find(bytes: &[u8], from: usize, word: &[u8]) -> Option<usize> {
    Some(from + bytes.get(from..)?.windows(word.len()).position(|part| part == word)?)
}
