//! A position in a text that is read through a window: events one after the other, continuing after broken ones.

use super::chunk::Chunk;
use super::event::Event;
use super::row::RowCache;
use crate::json::scanner::{Scanner, Stop};
use crate::window::{Blocks, MAX_ITEM_BYTES, Window};
use stepscope_trace::FindingCode;

/// Why the events of a chunk ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The next event begins here, at or behind the chunk's limit.
    Limit(u64),
    /// The list ends before this position.
    List(u64),
    /// The text ends.
    Text,
}

/// The error of the system or a decoder that ended a text early.
#[derive(Clone, Debug)]
pub(super) struct SourceError {
    pub(super) message: String,
    pub(super) after_bytes: u64,
}

/// Bytes that may be read a second time after broken places of one chunk, so that any text takes linear time.
const REREAD_BYTES: usize = 16 * super::CHUNK_BYTES as usize;
/// What is kept of a broken item that is too long, so that an event's begin is not cut in two.
const KEPT_BYTES: usize = 1024;

/// A position in a text.
pub(super) struct Cursor<B> {
    pub(super) window: Window<B>,
    at: usize,
}

impl<B: Blocks> Cursor<B> {
    /// At the window's begin.
    pub(super) fn new(window: Window<B>) -> Self {
        Self { window, at: 0 }
    }

    /// The position within the whole text.
    pub(super) fn position(&self) -> u64 {
        self.window.base() + self.at as u64
    }

    /// The byte here.
    pub(super) fn byte(&self) -> Option<u8> {
        self.window.bytes().get(self.at).copied()
    }

    /// What is at hand from here on.
    pub(super) fn at_hand(&self) -> &[u8] {
        &self.window.bytes()[self.at..]
    }

    /// The end of what is at hand.
    pub(super) fn end(&self) -> u64 {
        self.window.base() + self.window.bytes().len() as u64
    }

    /// What stopped the source before its end, and after how many bytes of the text.
    pub(super) fn source_error(&self) -> Option<SourceError> {
        let message = self.window.source_error()?.to_string();
        Some(SourceError { message, after_bytes: self.end() })
    }

    /// Goes behind the byte order mark that some editors write.
    pub(super) fn skip_mark(&mut self) {
        self.window.grow();
        if self.window.bytes().starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
    }

    /// Runs `read` here, with more of the text each time it meets the end of what is at hand; goes where it stopped.
    pub(super) fn read<T>(&mut self, mut read: impl FnMut(&mut Scanner<'_>) -> Result<T, Stop>) -> Result<T, Stop> {
        loop {
            let mut scanner = Scanner::new_at(self.window.bytes(), self.at);
            let result = read(&mut scanner);
            let at = scanner.at();
            if matches!(result, Err(Stop::End)) && self.bring_more(self.at) {
                continue;
            }
            self.at = at;
            return result;
        }
    }

    /// The next byte that is not white space, left unread.
    pub(super) fn peek(&mut self) -> Result<u8, Stop> {
        loop {
            let mut scanner = Scanner::new_at(self.window.bytes(), self.at);
            let result = scanner.peek();
            self.at = scanner.at();
            if result.is_ok() || !self.bring_more(self.at) {
                return result;
            }
        }
    }

    /// Brings all of the value here into the window.
    pub(super) fn bring_value(&mut self) -> Result<(), Stop> {
        let at_position = self.position();
        let result = self.read(|scanner| scanner.skip_value().map(drop));
        self.at = (at_position - self.window.base()) as usize;
        result
    }

    /// Goes to the next place where `find` finds something in the bytes from there on; false at the end of the text.
    pub(super) fn go_to_next(&mut self, find: impl Fn(&[u8], usize) -> Option<usize>) -> bool {
        loop {
            if let Some(at) = find(self.window.bytes(), self.at) {
                self.at = at;
                return true;
            }
            let keep_from = self.at.max(self.window.bytes().len().saturating_sub(KEPT_BYTES));
            self.at = 0;
            if !self.window.slide(keep_from) {
                self.at = self.window.bytes().len();
                return false;
            }
        }
    }

    /// Goes to `position`, which lies within the first block; `None` when the text ends before.
    pub(super) fn peek_at(&mut self, position: u64) -> Option<()> {
        self.window.grow();
        self.go_to(position);
        (self.position() == position).then_some(())
    }

    /// Goes back or forth by whole bytes within what is at hand.
    pub(super) fn go_to(&mut self, position: u64) {
        self.at = (position.saturating_sub(self.window.base()) as usize).min(self.window.bytes().len());
    }

    /// Goes to the first event from here on that begins before `limit`; false when there is none.
    pub(super) fn go_to_event(&mut self, limit: u64) -> bool {
        while self.position() < limit {
            if let Some(at) = next_event(self.window.bytes(), self.at, None) {
                self.at = at;
                return self.position() < limit;
            }
            let keep_from = self.at.max(self.window.bytes().len().saturating_sub(KEPT_BYTES));
            self.at = 0;
            if !self.window.slide(keep_from) {
                return false;
            }
        }
        false
    }

    /// Reads the events that begin here and before `limit`.
    pub(super) fn read_events(&mut self, chunk: &mut Chunk, row_cache: &mut RowCache, limit: u64) -> Ended {
        row_cache.make_room();
        let (mut reread_budget, mut is_begun) = (REREAD_BYTES, false);
        loop {
            let base = self.window.base();
            let mut scanner = Scanner::new_at(self.window.bytes(), self.at);
            let (mut missing_numbers, mut broken) = (0, None);
            let mut event = Event::default();
            let stop = loop {
                match scanner.peek() {
                    Err(stop) => break stop,
                    Ok(b']') => {
                        self.at = scanner.at() + 1;
                        chunk.findings.add_count(FindingCode::RepairedNumber, missing_numbers);
                        return Ended::List(self.position());
                    }
                    Ok(b',') => scanner.go_to(scanner.at() + 1),
                    Ok(byte) => {
                        let start = scanner.at();
                        let position = base + start as u64;
                        if position >= limit {
                            self.at = start;
                            chunk.findings.add_count(FindingCode::RepairedNumber, missing_numbers);
                            return Ended::Limit(position);
                        }
                        let result = match byte {
                            b'{' => event.read(&mut scanner, row_cache).map(|()| chunk.add(&event, position)),
                            _ => scanner.skip_value().map(|_| unreadable(chunk, position)),
                        };
                        if let Err(stop) = result {
                            broken = Some((start, scanner.at()));
                            break stop;
                        }
                        missing_numbers = scanner.missing_numbers();
                    }
                }
            };
            chunk.findings.add_count(FindingCode::RepairedNumber, missing_numbers);
            let (start, reached) = broken.unwrap_or((scanner.at(), scanner.at()));
            self.at = start;
            let read = self.position() - chunk.base;
            if stop == Stop::End && self.bring_more(start) {
                if !std::mem::replace(&mut is_begun, true) && read > 0 {
                    chunk.expect_more(limit.saturating_sub(chunk.base) / read);
                }
                continue;
            }
            if broken.is_none() {
                return Ended::Text;
            }
            if !self.go_on_after(reached - start, stop, &mut reread_budget, chunk) {
                return Ended::Text;
            }
        }
    }

    /// After a broken event here, of which `passed` bytes were read: goes to the next place that looks like an event,
    /// even inside what was already passed, since a stray quote may have swallowed whole events; or else to the end of
    /// the list. False at the end of the text.
    fn go_on_after(&mut self, passed: usize, stop: Stop, reread_budget: &mut usize, chunk: &mut Chunk) -> bool {
        let start_position = self.position();
        let mut skip = match reread_budget.checked_sub(passed) {
            Some(left) => {
                *reread_budget = left;
                1
            }
            None => passed.max(1),
        };
        let (mut is_reported, mut item_at) = (false, Some(self.at));
        loop {
            if let Some(at) = next_event(self.window.bytes(), self.at + skip, item_at) {
                if !is_reported {
                    unreadable(chunk, start_position);
                }
                self.at = at;
                return true;
            }
            if self.bring_more(self.at) {
                item_at = item_at.map(|_| self.at);
                continue;
            }
            if !self.window.is_at_end() {
                // Too long to be kept: no way back to it.
                if !is_reported {
                    unreadable(chunk, start_position);
                }
                (is_reported, skip, item_at) = (true, 0, None);
                let keep_from = self.window.bytes().len() - KEPT_BYTES;
                self.at = 0;
                self.window.slide(keep_from);
                continue;
            }
            if stop == Stop::End || is_reported {
                self.at = self.window.bytes().len();
                return false;
            }
            unreadable(chunk, start_position);
            self.at = list_end(self.window.bytes(), self.at + skip).unwrap_or(self.window.bytes().len());
            return true;
        }
    }

    /// Brings more of the text and forgets what stands before `keep_from`, which is at or before the place; false when
    /// there is no more, or an item is too long.
    fn bring_more(&mut self, keep_from: usize) -> bool {
        if self.window.is_at_end() || self.window.bytes().len() - keep_from >= MAX_ITEM_BYTES {
            return false;
        }
        self.at -= keep_from;
        self.window.slide(keep_from)
    }
}

fn unreadable(chunk: &mut Chunk, position: u64) {
    chunk.findings.add(FindingCode::UnreadableEvent, || format!("at byte {position}"));
}

/// The first `{` from `from` on that stands in a list and begins with a key of an event. Where an item of a list
/// begins, at `item_at`, what stands before it does not count: how much of that is at hand is chance.
pub(super) fn next_event(bytes: &[u8], from: usize, item_at: Option<usize>) -> Option<usize> {
    const KEYS: [&[u8]; 8] = [b"ph", b"cat", b"name", b"pid", b"tid", b"ts", b"dur", b"args"];
    let mut at = from;
    loop {
        at += memchr::memchr(b'{', bytes.get(at..)?)?;
        let before = bytes[item_at.unwrap_or(0)..at].trim_ascii_end();
        let is_item = before.last().map_or(item_at.is_some(), |byte| matches!(byte, b',' | b'['));
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
        at += memchr::memchr(b']', bytes.get(at..)?)?;
        let rest = bytes[at + 1..].trim_ascii_start();
        let next_key = rest.strip_prefix(b",").map(<[u8]>::trim_ascii_start);
        if rest.first().is_none_or(|byte| *byte == b'}') || next_key.is_some_and(|key| key.first() == Some(&b'"')) {
            return Some(at);
        }
        at += 1;
    }
}
