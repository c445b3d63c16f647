//! The whole text: where the events are, what stands beside them, and how to go on after a broken place.

use super::chunk::{Chunk, Sink};
use super::cursor::{Cursor, Ended, SourceError};
use super::metadata::Metadata;
use super::parallel::read_on_all_processors;
use super::row::RowCache;
use super::{CHUNK_BYTES, chunk_limit};
use crate::input::SharedText;
use crate::json::scanner::Stop;
use crate::processors;
use crate::window::{Blocks, Window};
use stepscope_trace::FindingCode;

/// How often reading restarts, after a broken top level, at the next place that may begin the events.
const MAX_RESTARTS: u32 = 8;

/// Reads one text into a sink and metadata.
pub(super) struct Document<'a, S> {
    pub(super) cursor: Cursor<Box<dyn Blocks + 'a>>,
    pub(super) sink: S,
    pub(super) metadata: Metadata,
    /// True once a list of events began.
    pub(super) has_events_list: bool,
    /// Where the top level was broken last, and the byte there.
    pub(super) broken_at: Option<(u64, Option<u8>)>,
    /// What the system said when it would not give more of the text.
    source_error: Option<SourceError>,
    /// The same text for several readers: its events are then read on all processors.
    shared: Option<SharedText>,
}

impl<'a, S: Sink> Document<'a, S> {
    /// Nothing read yet.
    pub(super) fn new(source: Box<dyn Blocks + 'a>, shared: Option<SharedText>, sink: S) -> Self {
        let cursor = Cursor::new(Window::new(source, 0));
        Self {
            cursor,
            sink,
            metadata: Metadata::default(),
            has_events_list: false,
            broken_at: None,
            source_error: None,
            shared,
        }
    }

    /// What stopped the source before its end.
    pub(super) fn source_error(&self) -> Option<SourceError> {
        self.source_error.clone().or_else(|| self.cursor.source_error())
    }

    /// Reads an object with `traceEvents`. What is broken beside the events is a finding.
    pub(super) fn read_object(&mut self) -> Result<(), Stop> {
        self.cursor.read(|scanner| scanner.expect(b'{', "'{'"))?;
        for _ in 0..MAX_RESTARTS {
            let mut member_position = self.cursor.position();
            let Err(stop) = self.read_members(&mut member_position) else { return Ok(()) };
            if self.has_events_list {
                return self.stop_beside_events(stop);
            }
            self.broken_at = Some((self.cursor.position(), self.cursor.byte()));
            self.cursor.go_to(member_position + 1);
            if !self.cursor.go_to_next(|bytes, from| find(bytes, from, b"\"traceEvents\"")) {
                return Err(stop);
            }
            self.unreadable(member_position);
        }
        Err(Stop::Unexpected { expected: "traceEvents", at: self.cursor.position() as usize })
    }

    /// Reads a list of events, to its end or to the end of the text.
    pub(super) fn read_events(&mut self) -> Result<(), Stop> {
        self.cursor.read(|scanner| scanner.expect(b'[', "a list of events"))?;
        self.has_events_list = true;
        let from = self.cursor.position();
        // Unpacking and reading take turns on one processor, too; a file is read there by one thread.
        let is_for_many = |text: &&SharedText| match text.len() {
            Some(len) => {
                len.saturating_sub(from) > CHUNK_BYTES && (processors::count() > 1 || cfg!(any(test, fuzzing)))
            }
            None => true,
        };
        let Some(text) = self.shared.as_ref().filter(is_for_many) else { return self.read_events_here(from) };
        text.remember(from, self.cursor.at_hand());
        let (end, source_error) = read_on_all_processors(text, from, &mut self.sink);
        self.source_error = source_error;
        let position = match end {
            Ended::List(position) | Ended::Limit(position) => position,
            Ended::Text => text.end(),
        };
        // What stands behind the events.
        self.cursor = Cursor::new(Window::new(text.alone_from(position), position));
        if end == Ended::Text { Err(Stop::End) } else { Ok(()) }
    }

    fn read_events_here(&mut self, from: u64) -> Result<(), Stop> {
        let mut len = self.shared.as_ref().and_then(SharedText::len);
        let (mut chunk, mut row_cache) = (Chunk::default(), RowCache::default());
        loop {
            chunk.begin(self.cursor.position());
            let ended = self.cursor.read_events(&mut chunk, &mut row_cache, chunk_limit(from, self.cursor.position()));
            if let Some(len) = len.take() {
                self.sink.expect(&chunk, self.cursor.position() - from, len - from);
            }
            chunk = self.sink.add(chunk);
            match ended {
                Ended::Limit(_) => {}
                Ended::List(_) => return Ok(()),
                Ended::Text => return Err(Stop::End),
            }
        }
    }

    /// Says that something at `position` was left out.
    pub(super) fn unreadable(&mut self, position: u64) {
        self.sink.findings().add(FindingCode::UnreadableEvent, || format!("at byte {position}"));
    }

    fn read_members(&mut self, member_position: &mut u64) -> Result<(), Stop> {
        loop {
            let next = self.cursor.peek()?;
            *member_position = self.cursor.position();
            match next {
                b'}' => return self.cursor.read(|scanner| scanner.expect(b'}', "'}'")),
                b',' => self.cursor.read(|scanner| scanner.expect(b',', "','"))?,
                _ => {
                    let key = self.cursor.read(|scanner| {
                        let key = scanner.string()?.to_vec();
                        scanner.expect(b':', "':' after a key")?;
                        Ok(key)
                    })?;
                    if key == b"traceEvents" && self.cursor.peek()? == b'[' {
                        self.read_events()?;
                    } else {
                        self.cursor.bring_value()?;
                        let metadata = &mut self.metadata;
                        self.cursor.read(|scanner| metadata.read_member(scanner, &key))?;
                    }
                    self.cursor.read(|scanner| scanner.after_item(b'}'))?;
                }
            }
        }
    }

    fn stop_beside_events(&mut self, stop: Stop) -> Result<(), Stop> {
        match stop {
            Stop::End => Err(Stop::End),
            Stop::Unexpected { .. } => {
                self.unreadable(self.cursor.position());
                while self.cursor.go_to_next(|_, _| None) {}
                Ok(())
            }
        }
    }
}

fn find(bytes: &[u8], from: usize, word: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes.get(from..)?, word).map(|offset| from + offset)
}
