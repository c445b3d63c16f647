//! A long list of events, read on all processors.
//!
//! ```text
//! file     [ {…}, {…}, {…} │ , {…}, {…}, │ {…}, {…}, {…} ]
//! chunks   0               │ 1           │ 2
//! ```
//!
//! A chunk begins at a fixed place, whatever the number of processors: a worker looks for the first event behind that
//! place and reads all events that begin before the chunk's end. That the place was no illusion (inside a string, say) is
//! known once the chunk before has been read: it must end where this one began, or this one is read again from there. So
//! the result is the same as reading from begin to end.

use super::chunk::Chunk;
use super::cursor::{Cursor, Ended, Trouble};
use super::rows::Rows;
use super::{CHUNK_BYTES, chunk_limit};
use crate::input::SharedText;
use crate::window::{Blocks, Window};
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::sync::{Condvar, Mutex};

/// White space between a comma and its event may be this long without the event being overlooked by a worker.
const BEFORE_BYTES: u64 = 256;

/// Readers of a stream.
const STREAM_WORKERS: u64 = 4;

/// A chunk as a worker read it.
struct Read {
    index: u64,
    /// Where its first event begins; `None` when none does.
    start: Option<u64>,
    chunk: Chunk,
    ended: Ended,
    /// What the system said when it would not give more of the file.
    trouble: Option<Trouble>,
}

/// Which chunk is next to read, and how many were added: workers stay close to each other, so that memory is bounded.
struct Progress {
    next: u64,
    added: u64,
    is_over: bool,
}

/// How many this process may use.
pub(super) fn processors() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

/// Reads the events of the list that begins behind `from`, in order, into `rows`; says why the events ended, and what the
/// system said when the file could not be read to its end.
pub(super) fn read_on_all_processors(text: &SharedText, from: u64, rows: &mut Rows) -> (Ended, Option<Trouble>) {
    let processors = processors();
    let (workers, count) = match text.len() {
        Some(len) => (processors, (len - from).div_ceil(CHUNK_BYTES)),
        // Unpacking, by one thread, keeps no more readers busy.
        None => (processors.min(STREAM_WORKERS), u64::MAX),
    };
    let progress = Mutex::new(Progress { next: 0, added: 0, is_over: false });
    let changed = Condvar::new();
    let (sender, receiver) = mpsc::channel();
    // Chunks that were added, for their memory.
    let (used_sender, used) = mpsc::channel();
    let used = Mutex::new(used);
    std::thread::scope(|scope| {
        for _ in 0..workers.min(count) {
            let (sender, progress, changed, used) = (sender.clone(), &progress, &changed, &used);
            scope.spawn(move || {
                let mut memory = Vec::new();
                while let Some(index) = take(progress, changed, count, 2 * workers + 2) {
                    let chunk = lock(used).try_recv().unwrap_or_default();
                    if sender.send(read_chunk(text, from, index, chunk, &mut memory)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting: BTreeMap<u64, Read> = BTreeMap::new();
        let mut place = from;
        let (mut ended, mut trouble) = (Ended::Text, None);
        for index in 0..count {
            let read = loop {
                match waiting.remove(&index) {
                    Some(read) => break read,
                    None => match receiver.recv() {
                        Ok(read) => drop(waiting.insert(read.index, read)),
                        Err(_) => {
                            break read_from(
                                text,
                                from,
                                index,
                                from + index * CHUNK_BYTES,
                                Chunk::default(),
                                &mut Vec::new(),
                            );
                        }
                    },
                }
            };
            let limit = from + (index + 1) * CHUNK_BYTES;
            if place < limit {
                let read = match read.start == Some(place) {
                    true => read,
                    false => read_from(text, from, index, place, read.chunk, &mut Vec::new()),
                };
                (ended, trouble) = (read.ended, read.trouble);
                let _ = used_sender.send(rows.add(read.chunk));
                if let (0, Some(len)) = (index, text.len()) {
                    rows.expect_more(limit - from, len.saturating_sub(limit));
                }
                match ended {
                    Ended::Limit(next) => place = next,
                    Ended::List(_) | Ended::Text => break,
                }
            }
            text.forget_before(limit.min(place).saturating_sub(BEFORE_BYTES));
            lock(&progress).added = index + 1;
            changed.notify_all();
        }
        lock(&progress).is_over = true;
        changed.notify_all();
        match ended {
            Ended::List(_) => (ended, None),
            Ended::Limit(_) | Ended::Text => (Ended::Text, trouble),
        }
    })
}

/// The next chunk to read; waits while too many are read and not added yet.
fn take(progress: &Mutex<Progress>, changed: &Condvar, count: u64, ahead: u64) -> Option<u64> {
    let mut state = lock(progress);
    while !state.is_over && state.next < count && state.next >= state.added + ahead {
        state = changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    if state.is_over || state.next >= count {
        return None;
    }
    state.next += 1;
    Some(state.next - 1)
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn read_chunk(text: &SharedText, from: u64, index: u64, chunk: Chunk, memory: &mut Vec<u8>) -> Read {
    let begin = from + index * CHUNK_BYTES;
    if index == 0 {
        return read_from(text, from, 0, from, chunk, memory);
    }
    // Before it may stand the comma that makes the first event an item of the list.
    let before = BEFORE_BYTES.min(begin);
    let window = Window::in_memory_of(text.from(begin - before), begin - before, std::mem::take(memory));
    let mut cursor = Cursor::new(window);
    let limit = chunk_limit(from, begin);
    if cursor.peek_at(begin).is_none() || !cursor.go_to_event(limit) {
        return Read { index, start: None, chunk, ended: Ended::Text, trouble: None };
    }
    let start = cursor.place();
    read_with(cursor, index, start, limit, chunk, memory)
}

fn read_from(text: &SharedText, from: u64, index: u64, start: u64, chunk: Chunk, memory: &mut Vec<u8>) -> Read {
    let window = Window::in_memory_of(text.from(start), start, std::mem::take(memory));
    read_with(Cursor::new(window), index, start, from + (index + 1) * CHUNK_BYTES, chunk, memory)
}

fn read_with<B: Blocks>(
    mut cursor: Cursor<B>,
    index: u64,
    start: u64,
    limit: u64,
    mut chunk: Chunk,
    memory: &mut Vec<u8>,
) -> Read {
    chunk.begin(start);
    let ended = cursor.read_events(&mut chunk, limit);
    let trouble = cursor.trouble();
    *memory = cursor.window.into_memory();
    Read { index, start: Some(start), chunk, ended, trouble }
}
