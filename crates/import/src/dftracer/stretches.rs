//! The text, a stretch at a time: rows are read where they begin, whatever stands between them, and reading goes on
//! after broken places.
//!
//! Rows are no list that one could trust: the closing bracket is missing, or stands before the last rows; a process
//! that was killed or that shared its file with another leaves rows cut in two.
//!
//! A stretch ends with a line, so that [other threads](super::readers) can read the numbers of several at once. Where one
//! has a broken place, or its last row goes on in the next, it is read once more from there, by the thread that adds rows.
//! So the result is the same as reading from begin to end.

use super::quick;
use super::readers::{self, Stretch};
use super::row::Row;
use super::rows::{Met, Rows};
use super::scanner::{Scanner, Stop};
use super::typed::Item;
use crate::window::Blocks;
use stepscope_trace::FindingCode;

/// What is read at once.
#[cfg(not(any(test, fuzzing)))]
const STRETCH_BYTES: usize = 1 << 18;
/// Small enough that the texts of tests and of the fuzzer have several.
#[cfg(any(test, fuzzing))]
const STRETCH_BYTES: usize = 1 << 10;
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
    /// What is not done with.
    rest: Vec<u8>,
    met: Met,
}

impl<'r> Stretches<'r> {
    /// Nothing read yet.
    pub(super) fn new(rows: &'r mut Rows) -> Self {
        Self {
            rows,
            before: 0,
            reread_budget: 1 << 20,
            is_open_list: false,
            is_cut: false,
            rest: Vec::new(),
            met: Met::default(),
        }
    }

    /// Reads everything there is; gives what stopped it before the end.
    pub(super) fn read(&mut self, blocks: &mut dyn Blocks) -> Option<String> {
        let mut lines = Lines { blocks, rest: Vec::new(), is_over: false, source_error: None };
        readers::read_in_order(|memory| lines.next(memory), |stretch| self.add_stretch(stretch));
        self.add_rest(true);
        lines.source_error
    }

    /// Adds what follows, as it was read by another thread.
    fn add_stretch(&mut self, stretch: &Stretch) {
        let Stretch { text, typed } = stretch;
        if !self.rest.is_empty() {
            self.rest.extend_from_slice(text);
            return self.add_rest(false);
        }
        self.begin_list(text);
        self.reread_budget = self.reread_budget.saturating_add(typed.end);
        self.met.begin(typed);
        for item in &typed.items {
            let at = match item {
                Item::Typed(row) if self.rows.add_typed(row, typed, text, &mut self.met) => continue,
                Item::Typed(row) => row.at,
                Item::Other(at) => *at,
            };
            self.met.forget_owner();
            self.add_row(text, at as usize);
        }
        self.is_open_list &= !typed.has_closed_list;
        self.before += typed.end;
        if typed.end < text.len() {
            self.rest.extend_from_slice(&text[typed.end..]);
            self.add_rest(false);
        }
    }

    /// Adds a row that another thread has read.
    fn add_row(&mut self, text: &[u8], at: usize) {
        if let Some((row, _)) = quick::read_row(text, at) {
            return self.rows.add(&row, self.before + at);
        }
        let mut scanner = Scanner::new_at(text, at);
        if let Ok(row) = Row::read(&mut scanner) {
            self.rows.add(&row, self.before + at);
        }
        self.rows.builder.findings.add_count(FindingCode::RepairedNumber, scanner.missing_numbers());
    }

    fn add_rest(&mut self, is_last: bool) {
        let mut rest = std::mem::take(&mut self.rest);
        let used = self.add(&rest, is_last);
        rest.drain(..used);
        self.before += used;
        self.rest = rest;
    }

    fn begin_list(&mut self, text: &[u8]) {
        if self.before == 0 && text.trim_ascii_start().starts_with(b"[") {
            self.is_open_list = true;
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
        self.begin_list(text);
        self.reread_budget = self.reread_budget.saturating_add(text.len());
        let mut scanner = Scanner::new(text);
        // Of rows that are done with: one that goes on in the next stretch is read again.
        let mut repaired = 0;
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
                Err(stop) => match self.go_on_after(text, at, scanner.at(), (is_last, stop)) {
                    Some(next) => at = next,
                    None => break,
                },
            }
            repaired = scanner.missing_numbers();
        }
        self.rows.builder.findings.add_count(FindingCode::RepairedNumber, repaired);
        at.min(text.len())
    }

    /// After a broken row that begins at `start` and was read up to `reached`: the next place where a row begins, even
    /// inside what was already passed, since a cut string may have swallowed whole rows. `None` when that may be in the
    /// next stretch.
    fn go_on_after(
        &mut self,
        text: &[u8],
        start: usize,
        reached: usize,
        (is_last, stop): (bool, Stop),
    ) -> Option<usize> {
        let left = self.reread_budget.checked_sub(reached - start);
        let next = next_row(text, if left.is_some() { start + 1 } else { reached.max(start + 1) });
        if next.is_none() && !is_last && text.len() - start < MAX_ROW_BYTES {
            return None;
        }
        self.reread_budget = left.unwrap_or(self.reread_budget);
        if next.is_none() && is_last && stop == Stop::End {
            self.is_cut = true;
            let location = self.rows.location(self.before + start);
            self.rows.builder.findings.add(FindingCode::TruncatedInput, || location);
            return Some(text.len());
        }
        self.unreadable(start);
        Some(next.unwrap_or(text.len()))
    }

    fn unreadable(&mut self, at: usize) {
        let location = self.rows.location(self.before + at);
        self.rows.builder.findings.add(FindingCode::UnreadableEvent, || location);
    }
}

/// A text, cut behind lines.
struct Lines<'b> {
    blocks: &'b mut dyn Blocks,
    /// The begin of a line.
    rest: Vec<u8>,
    is_over: bool,
    /// What stopped it before the end.
    source_error: Option<String>,
}

impl Lines<'_> {
    /// The next stretch, in `memory` that is not used any more.
    fn next(&mut self, memory: Vec<u8>) -> Option<Vec<u8>> {
        let mut text = memory;
        text.clear();
        text.append(&mut self.rest);
        while !self.is_over {
            match self.blocks.append(&mut text, STRETCH_BYTES) {
                Ok(1..) => {}
                Ok(0) => self.is_over = true,
                Err(error) => (self.is_over, self.source_error) = (true, Some(error.to_string())),
            }
            let line_end = memchr::memrchr(b'\n', &text).map(|at| at + 1);
            if let Some(line_end) = line_end.filter(|_| !self.is_over) {
                self.rest.extend_from_slice(&text[line_end..]);
                text.truncate(line_end);
                return Some(text);
            }
            if text.len() >= MAX_ROW_BYTES {
                return Some(text);
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

/// The length of what may stand between rows: white space, commas, brackets, and the zeros of a file that was made
/// longer than it was written.
pub(super) fn between_rows(text: &[u8], is_open_list: &mut bool) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::{Trace, TraceBuilder};

    /// What is read of a text: on several threads, or from begin to end.
    fn trace_of(text: &[u8], is_parallel: bool) -> Trace {
        let mut rows = Rows::new(TraceBuilder::new("t"));
        rows.begin_file("t.pfw".into());
        let mut stretches = Stretches::new(&mut rows);
        if is_parallel {
            assert_eq!(stretches.read(&mut &*text), None);
        } else {
            stretches.rest = text.to_vec();
            stretches.add_rest(true);
        }
        assert_eq!(stretches.end(), text.len());
        rows.finish()
    }

    proptest! {
        #[test]
        fn several_threads_read_what_one_does(
            name in prop::sample::select(vec!["1.0.4.pfw", "1.0.5.pfw", "1.0.8.pfw", "2.2.0/main.pfw"]),
            damage in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"\"{}[],\n\\0x".to_vec())), 0..6),
        ) {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/dftracer/wheel-");
            let mut text = std::fs::read(format!("{folder}{name}")).expect("a file");
            for (at, byte) in damage {
                let at = at.index(text.len());
                text[at] = byte;
            }
            prop_assert_eq!(format!("{:?}", trace_of(&text, true)), format!("{:?}", trace_of(&text, false)));
        }
    }

    #[test]
    fn a_row_that_breaks_at_the_end_of_a_stretch_is_one_broken_place() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/dftracer/wheel-");
        let original = std::fs::read(format!("{folder}1.0.5.pfw")).expect("a file");
        // A line ends within each byte of a row, which lies at an end of a stretch for some of them.
        for at in 16_900..17_300 {
            let mut text = original.clone();
            text[at] = b'\n';
            assert_eq!(format!("{:?}", trace_of(&text, true)), format!("{:?}", trace_of(&text, false)), "{at}");
        }
    }
}
