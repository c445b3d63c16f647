//! A long list of events, read on all processors.
//!
//! ```text
//! file     [ {…}, {…}, {…} │ , {…}, {…}, │ {…}, {…}, {…} ]
//! chunks   0               │ 1           │ 2
//! ```
//!
//! A chunk begins at a fixed place, whatever the number of processors: a worker looks for the first event behind that
//! place and reads all events that begin before the chunk's end. That the place was no illusion (inside a string, say)
//! is known once the chunk before has been read: it must end where this one began, or this one is read again from
//! there. So the result is the same as reading from begin to end.

use super::CHUNK_BYTES;
use super::chunk::{Chunk, Sink};
use super::cursor::{Cursor, Ended, SourceError};
use super::row::RowCache;
use crate::input::SharedText;
use crate::processors;
use crate::window::{Blocks, Window};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// White space between a comma and its event may be this long without the event being overlooked by a worker.
const BEFORE_BYTES: u64 = 256;

/// Readers of a stream.
const STREAM_WORKERS: u64 = 4;

/// A chunk as a worker read it.
struct Read {
    /// Where its first event begins; `None` when none does.
    start: Option<u64>,
    chunk: Chunk,
    ended: Ended,
    /// What the system said when it would not give more of the file.
    source_error: Option<SourceError>,
}

/// What a worker keeps from chunk to chunk.
#[derive(Default)]
struct Reader {
    /// Of its window.
    memory: Vec<u8>,
    row_cache: RowCache,
}

/// The list, for all workers. The worker that has read the chunk whose turn it is adds it: what is in its processor's
/// cache stays there, and so does the memory for the next one.
struct List<'a, S> {
    text: &'a SharedText,
    /// Where it begins, and how many chunks it has at most.
    from: u64,
    count: u64,
    /// Workers stay close to each other, so that memory is bounded: this many chunks are read and not added.
    ahead: u64,
    state: Mutex<State<'a, S>>,
    changed: Condvar,
}

struct State<'a, S> {
    /// Which chunk is next to read, and how many were added.
    next: u64,
    added: u64,
    is_over: bool,
    /// Chunks that were read before their turn.
    waiting: BTreeMap<u64, Read>,
    /// Chunks that were added, for their memory.
    spare: Vec<Chunk>,
    /// What chunks are added to; `None` while somebody adds one.
    adding: Option<Adding<'a, S>>,
}

struct Adding<'a, S> {
    sink: &'a mut S,
    /// Where the next event is, and why those before it ended.
    position: u64,
    ended: Ended,
    source_error: Option<SourceError>,
}

/// Reads the events of the list that begins behind `from`, in order, into `sink`; says why the events ended, and what
/// the system said when the file could not be read to its end.
pub(super) fn read_on_all_processors<S: Sink>(
    text: &SharedText,
    from: u64,
    sink: &mut S,
) -> (Ended, Option<SourceError>) {
    let processors = processors::count() as u64;
    let (workers, count) = match text.len() {
        Some(len) => (processors, (len - from).div_ceil(CHUNK_BYTES)),
        // Unpacking, by one thread, keeps no more readers busy.
        None => (processors.min(STREAM_WORKERS), u64::MAX),
    };
    let adding = Some(Adding { sink, position: from, ended: Ended::Text, source_error: None });
    let (waiting, spare) = (BTreeMap::new(), Vec::new());
    let state = Mutex::new(State { next: 0, added: 0, is_over: count == 0, waiting, spare, adding });
    let list = List { text, from, count, ahead: workers + 1, state, changed: Condvar::new() };
    std::thread::scope(|scope| {
        (1..workers.min(count)).for_each(|_| drop(scope.spawn(|| list.work())));
        list.work();
    });
    match list.state.into_inner().unwrap_or_else(PoisonError::into_inner).adding {
        Some(Adding { ended: ended @ Ended::List(_), .. }) => (ended, None),
        adding => (Ended::Text, adding.and_then(|adding| adding.source_error)),
    }
}

impl<'a, S: Sink> List<'a, S> {
    /// Reads chunks, and adds those whose turn it is, until all are added.
    fn work(&self) {
        let mut reader = Reader::default();
        let _end = EndForAll(self);
        let mut state = self.lock();
        while !state.is_over {
            let turn = state.added;
            let is_here = state.waiting.contains_key(&turn);
            if let Some(mut adding) = state.adding.take_if(|_| is_here) {
                let read = state.waiting.remove(&turn);
                drop(state);
                let chunk = read.map(|read| self.add(turn, read, &mut adding, &mut reader));
                state = self.lock();
                state.spare.extend(chunk);
                state.added += 1;
                state.is_over |= state.added == self.count || !matches!(adding.ended, Ended::Limit(_));
                state.adding = Some(adding);
                self.changed.notify_all();
            } else if state.next < self.count.min(state.added + self.ahead) {
                let index = state.next;
                state.next += 1;
                let chunk = state.spare.pop().unwrap_or_default();
                drop(state);
                let read = self.read_chunk(index, chunk, &mut reader);
                state = self.lock();
                state.waiting.insert(index, read);
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a, S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a chunk ends.
    fn limit(&self, index: u64) -> u64 {
        self.from + (index + 1) * CHUNK_BYTES
    }

    /// Adds the chunk whose turn it is, unless an event before it reaches over all of it; gives it back for its memory.
    fn add(&self, index: u64, mut read: Read, adding: &mut Adding<'_, S>, reader: &mut Reader) -> Chunk {
        let limit = self.limit(index);
        if adding.position < limit {
            if read.start != Some(adding.position) {
                read = self.read_from(index, adding.position, read.chunk, reader);
            }
            if let (0, Some(len)) = (index, self.text.len()) {
                adding.sink.expect(&read.chunk, limit - self.from, len - self.from);
            }
            read.chunk = adding.sink.add(read.chunk);
            (adding.ended, adding.source_error) = (read.ended, read.source_error);
            if let Ended::Limit(next) = read.ended {
                adding.position = next;
            }
        }
        self.text.forget_before(limit.min(adding.position).saturating_sub(BEFORE_BYTES));
        read.chunk
    }

    fn read_chunk(&self, index: u64, chunk: Chunk, reader: &mut Reader) -> Read {
        let begin = self.from + index * CHUNK_BYTES;
        if index == 0 {
            return self.read_from(0, begin, chunk, reader);
        }
        // Before it may stand the comma that makes the first event an item of the list.
        let position = begin - BEFORE_BYTES.min(begin);
        let window = Window::in_memory_of(self.text.from(position), position, std::mem::take(&mut reader.memory));
        let mut cursor = Cursor::new(window);
        if cursor.peek_at(begin).is_none() || !cursor.go_to_event(self.limit(index)) {
            return Read { start: None, chunk, ended: Ended::Text, source_error: None };
        }
        self.read_with(cursor, index, chunk, reader)
    }

    fn read_from(&self, index: u64, start: u64, chunk: Chunk, reader: &mut Reader) -> Read {
        let window = Window::in_memory_of(self.text.from(start), start, std::mem::take(&mut reader.memory));
        self.read_with(Cursor::new(window), index, chunk, reader)
    }

    /// Reads the events from where `cursor` is.
    fn read_with<B: Blocks>(&self, mut cursor: Cursor<B>, index: u64, mut chunk: Chunk, reader: &mut Reader) -> Read {
        let start = cursor.position();
        chunk.begin(start);
        let ended = cursor.read_events(&mut chunk, &mut reader.row_cache, self.limit(index));
        let source_error = cursor.source_error();
        reader.memory = cursor.window.into_memory();
        Read { start: Some(start), chunk, ended, source_error }
    }
}

/// When a worker ends, also by a panic, all do.
struct EndForAll<'l, 'a, S: Sink>(&'l List<'a, S>);

impl<S: Sink> Drop for EndForAll<'_, '_, S> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}
