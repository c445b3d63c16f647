//! The text, a stretch at a time: rows are read where they begin, whatever stands between them, and reading goes on
//! after broken places.
//!
//! Rows are no list that one could trust: the closing bracket is missing, or stands before the last rows; a process
//! that was killed or that shared its file with another leaves rows cut in two.

use super::quick;
use super::row::Row;
use super::rows::Rows;
use super::scanner::{Scanner, Stop};
use crate::window::Blocks;
use stepscope_trace::FindingCode;

/// What is read at once.
const STRETCH_BYTES: usize = 1 << 19;
/// A row that is longer is no row.
const MAX_ROW_BYTES: usize = 1 << 20;

/// One file's text on its way into rows.
pub(super) struct Stretches<'r> {
    rows: &'r mut Rows,
    /// Bytes of the file before those at hand.
    before: usize,
    /// Bytes that may be read a second time after broken places, so that any text takes linear time.
    reread_budget: usize,
    /// The file is a list that was not closed so far.
    is_open_list: bool,
    is_cut: bool,
}

impl<'r> Stretches<'r> {
    /// Nothing read yet.
    pub(super) fn new(rows: &'r mut Rows) -> Self {
        Self { rows, before: 0, reread_budget: 1 << 20, is_open_list: false, is_cut: false }
    }

    /// Reads everything there is; gives what stopped it before the end.
    pub(super) fn read(&mut self, blocks: &mut dyn Blocks) -> Option<String> {
        let mut text = Vec::new();
        loop {
            let read = blocks.append(&mut text, STRETCH_BYTES);
            let is_last = !matches!(read, Ok(1..));
            let used = self.add(&text, is_last);
            text.drain(..used);
            self.before += used;
            if is_last {
                return read.err().map(|error| error.to_string());
            }
        }
    }

    /// Says that the file ends; gives its length.
    pub(super) fn end(self) -> usize {
        if self.is_open_list && !self.is_cut {
            let location = self.rows.location(self.before);
            self.rows.builder.findings.add(FindingCode::UnclosedList, || location);
        }
        self.before
    }

    /// Reads the rows of a stretch; gives how many of its bytes are done with.
    fn add(&mut self, text: &[u8], is_last: bool) -> usize {
        if self.before == 0 && text.trim_ascii_start().starts_with(b"[") {
            self.is_open_list = true;
        }
        self.reread_budget = self.reread_budget.saturating_add(text.len());
        let mut scanner = Scanner::new(text);
        let mut at = 0;
        loop {
            at += between_rows(&text[at..], &mut self.is_open_list);
            let Some(byte) = text.get(at) else { break };
            if *byte != b'{' {
                let next = next_row(text, at);
                match next {
                    None if !is_last && text.len() - at < MAX_ROW_BYTES => break,
                    _ => {
                        self.unreadable(at);
                        at = next.unwrap_or(text.len());
                    }
                }
                continue;
            }
            if let Some((row, end)) = quick::read_row(text, at) {
                self.rows.add(&row, self.before + at);
                at = end;
                continue;
            }
            scanner.go_to(at);
            match Row::read(&mut scanner) {
                Ok(row) => {
                    self.rows.add(&row, self.before + at);
                    at = scanner.at();
                }
                Err(Stop::End) if !is_last && text.len() - at < MAX_ROW_BYTES => break,
                Err(stop) => at = self.go_on_after(text, at, scanner.at(), is_last && stop == Stop::End),
            }
        }
        self.rows.builder.findings.add_count(FindingCode::RepairedNumber, scanner.missing_numbers());
        at.min(text.len())
    }

    /// After a broken row that begins at `start` and was read up to `reached`: the next place where a row begins, even
    /// inside what was already passed, since a cut string may have swallowed whole rows.
    fn go_on_after(&mut self, text: &[u8], start: usize, reached: usize, is_at_end: bool) -> usize {
        let from = match self.reread_budget.checked_sub(reached - start) {
            Some(left) => {
                self.reread_budget = left;
                start + 1
            }
            None => reached.max(start + 1),
        };
        let next = next_row(text, from);
        if next.is_none() && is_at_end {
            self.is_cut = true;
            let location = self.rows.location(self.before + start);
            self.rows.builder.findings.add(FindingCode::TruncatedInput, || location);
            return text.len();
        }
        self.unreadable(start);
        next.unwrap_or(text.len())
    }

    fn unreadable(&mut self, at: usize) {
        let location = self.rows.location(self.before + at);
        self.rows.builder.findings.add(FindingCode::UnreadableEvent, || location);
    }
}

/// The length of what may stand between rows: white space, commas, brackets, and the zeros of a file that was made
/// longer than it was written.
fn between_rows(text: &[u8], is_open_list: &mut bool) -> usize {
    let is_row = |byte: &u8| !matches!(byte, b'\n' | b' ' | b'\t' | b'\r' | b',' | b'[' | b']' | 0);
    let len = text.iter().position(is_row).unwrap_or(text.len());
    *is_open_list &= !text[..len].contains(&b']');
    len
}

/// Where the next row begins, from `from` on.
fn next_row(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte == b'{')?;
        let rest = &text[at + 1..];
        if rest.starts_with(b"\"id\":") || rest.starts_with(b"\"name\":\"") && is_line_begin(text, at) {
            return Some(at);
        }
        at += 1;
    }
}

/// `{"name":` begins a row of 2.x only at the begin of a line: arguments have names too.
fn is_line_begin(text: &[u8], at: usize) -> bool {
    let before = text[..at].trim_ascii_end();
    text[before.len()..at].contains(&b'\n') || matches!(before.last(), None | Some(b']' | b'['))
}
