//! A stream that is decompressed by a thread of its own, and that several threads read at different places, as they
//! would read a file. What nobody asks for any more is forgotten, so that memory is bounded.

use crate::window::{BLOCK_BYTES, Blocks, MAX_ITEM_BYTES};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that are decompressed before anybody asks for them.
const AHEAD_BYTES: u64 = 8 << 20;

/// Bytes that are kept behind the place of a reader. What is further behind belongs to something broken, or to white
/// space, which nobody reads again.
const KEPT_BYTES: u64 = MAX_ITEM_BYTES as u64 + (8 << 20);

/// The stream, for those who read it. When the last of them is gone, decompression ends.
#[derive(Clone)]
pub(crate) struct SharedStream(Arc<Readers>);

/// Both sides of it.
#[derive(Default)]
struct Both {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What was decompressed and is not forgotten, in order, with its places.
    blocks: VecDeque<(u64, Arc<Vec<u8>>)>,
    /// Blocks that were forgotten, for their memory.
    spare: Vec<Vec<u8>>,
    /// Where the next block begins.
    end: u64,
    /// What is before is forgotten.
    kept_from: u64,
    /// Somebody asked for bytes up to here.
    wanted: u64,
    /// Nothing comes behind the end.
    is_over: bool,
    /// What stopped the stream there.
    source_error: Option<(io::ErrorKind, String)>,
    has_readers: bool,
}

impl Both {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a block behind the others; waits while there are many. False when nobody reads any more.
    fn push(&self, block: Vec<u8>) -> bool {
        let mut state = self.lock();
        while state.has_readers && state.end >= state.wanted.max(state.kept_from + AHEAD_BYTES) {
            state = self.wait(state);
        }
        let position = state.end;
        state.end += block.len() as u64;
        state.blocks.push_back((position, Arc::new(block)));
        self.changed.notify_all();
        state.has_readers
    }

    fn close(&self, source_error: Option<io::Error>) {
        let mut state = self.lock();
        state.is_over = true;
        state.source_error = source_error.map(|error| (error.kind(), error.to_string()));
        self.changed.notify_all();
    }
}

/// Tells the other side when it is dropped.
struct Readers(Arc<Both>);

impl Drop for Readers {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_readers = false;
        state.blocks.clear();
        self.0.changed.notify_all();
    }
}

impl SharedStream {
    /// A stream of what `unpack` writes, in a thread of its own.
    pub(crate) fn of(unpack: impl FnOnce(&mut Writer) -> io::Result<()> + Send + 'static) -> Self {
        let both = Arc::new(Both::default());
        both.lock().has_readers = true;
        let stream = Self(Arc::new(Readers(Arc::clone(&both))));
        std::thread::spawn(move || {
            let result = unpack(&mut Writer(Arc::clone(&both)));
            both.close(result.err());
        });
        stream
    }

    /// Its bytes from `at` on, which are kept for others.
    pub(crate) fn from(&self, at: u64) -> StreamPart {
        StreamPart { stream: self.clone(), from: at, at, kept_bytes: KEPT_BYTES }
    }

    /// Its bytes from `at` on, for the only reader: what was read is forgotten.
    pub(crate) fn alone_from(&self, at: u64) -> StreamPart {
        StreamPart { stream: self.clone(), from: at, at, kept_bytes: 0 }
    }

    /// What is before `position` will not be asked for any more.
    pub(crate) fn forget_before(&self, position: u64) {
        let mut state = self.0.0.lock();
        state.kept_from = state.kept_from.max(position);
        while state.blocks.front().is_some_and(|(at, block)| at + block.len() as u64 <= position) {
            let block = state.blocks.pop_front().and_then(|(_, block)| Arc::try_unwrap(block).ok());
            state.spare.extend(block.filter(|block| block.capacity() == BLOCK_BYTES));
        }
        self.0.0.changed.notify_all();
    }

    /// Remembers bytes that were read alone, up to where reading stopped, and that begin at `position`.
    pub(crate) fn remember(&self, position: u64, bytes: Vec<u8>) {
        let mut state = self.0.0.lock();
        state.kept_from = position;
        state.blocks.push_front((position, Arc::new(bytes)));
    }

    /// Where the text ends that is decompressed so far.
    pub(crate) fn end(&self) -> u64 {
        self.0.0.lock().end
    }

    /// The block that holds the byte at `position`, once it is there; `None` at the end.
    fn block(&self, position: u64) -> io::Result<Option<(u64, Arc<Vec<u8>>)>> {
        let both = &self.0.0;
        let mut state = both.lock();
        loop {
            if position < state.end {
                let at = state.blocks.partition_point(|(at, _)| *at <= position).checked_sub(1);
                let block = at.map(|at| state.blocks[at].clone());
                return block.map(Some).ok_or_else(|| io::Error::other("this part of the stream was forgotten"));
            }
            if state.is_over {
                return match &state.source_error {
                    Some((kind, message)) => Err(io::Error::new(*kind, message.clone())),
                    None => Ok(None),
                };
            }
            if state.wanted <= position {
                state.wanted = position + 1;
                both.changed.notify_all();
            }
            state = both.wait(state);
        }
    }
}

/// Where a stream is decompressed to.
pub(crate) struct Writer(Arc<Both>);

impl Writer {
    /// Reads `source` to its end, or until nobody reads the stream any more.
    ///
    /// # Errors
    /// What stopped `source`; what was decompressed before is in the stream.
    pub(crate) fn read_all(&mut self, source: &mut dyn Read) -> io::Result<()> {
        loop {
            let mut block = self.0.lock().spare.pop().unwrap_or_default();
            block.resize(BLOCK_BYTES, 0);
            let mut len = 0;
            let source_error = loop {
                match source.read(&mut block[len..]) {
                    Ok(0) => break None,
                    Ok(read) => len += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => break Some(error),
                }
            };
            let is_last = len < block.len();
            block.truncate(len);
            let goes_on = len == 0 || self.0.push(block);
            if let Some(error) = source_error {
                return Err(error);
            }
            if is_last || !goes_on {
                return Ok(());
            }
        }
    }
}

/// The bytes of a stream from a place on.
pub(crate) struct StreamPart {
    stream: SharedStream,
    from: u64,
    at: u64,
    /// Of what it has read, so much is kept for others.
    kept_bytes: u64,
}

impl Blocks for StreamPart {
    fn append(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
        let before = bytes.len();
        while bytes.len() - before < wanted {
            match self.stream.block(self.at) {
                Ok(Some((position, block))) => {
                    let new = &block[(self.at - position) as usize..];
                    bytes.extend_from_slice(new);
                    self.at += new.len() as u64;
                }
                Ok(None) => break,
                // What came before it counts first.
                Err(_) if bytes.len() > before => break,
                Err(error) => return Err(error),
            }
            if self.at > self.from + self.kept_bytes {
                self.stream.forget_before(self.at - self.kept_bytes);
            }
        }
        Ok(bytes.len() - before)
    }
}

impl StreamPart {
    /// This part as a source of bytes.
    pub(crate) fn into_read(self) -> impl Read + Send {
        PartReader { part: self, block: io::Cursor::default() }
    }
}

struct PartReader {
    part: StreamPart,
    block: io::Cursor<Vec<u8>>,
}

impl Read for PartReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.block.read(buffer)?;
        if len > 0 || buffer.is_empty() {
            return Ok(len);
        }
        let mut block = std::mem::take(&mut self.block).into_inner();
        block.clear();
        let result = self.part.append(&mut block, 1);
        self.block = io::Cursor::new(block);
        result?;
        self.block.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream_of(bytes: Vec<u8>) -> SharedStream {
        SharedStream::of(move |writer| writer.read_all(&mut bytes.as_slice()))
    }

    fn sample(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at / 7) as u8).collect()
    }

    #[test]
    fn every_part_is_read_from_its_place_in_any_order() {
        let text = sample(3 * BLOCK_BYTES + 5);
        let stream = stream_of(text.clone());
        for at in [2 * BLOCK_BYTES + 9, 0, BLOCK_BYTES - 1, text.len()] {
            let (mut part, mut bytes) = (stream.from(at as u64), Vec::new());
            while part.append(&mut bytes, 1_000).unwrap() > 0 {}
            assert!(bytes == text[at..], "from {at}");
        }
        assert_eq!(stream.end(), text.len() as u64);
    }

    #[test]
    fn what_was_read_alone_can_be_remembered() {
        let text = sample(5 * BLOCK_BYTES);
        let stream = stream_of(text.clone());
        let (mut alone, mut bytes) = (stream.alone_from(0), Vec::new());
        while bytes.len() <= BLOCK_BYTES {
            alone.append(&mut bytes, 1).unwrap();
        }
        assert_eq!(stream.from(10).append(&mut Vec::new(), 1).map_err(|error| error.kind()), Err(io::ErrorKind::Other));
        stream.remember(10, bytes.split_off(10));
        let mut again = Vec::new();
        let mut part = stream.from(10);
        while part.append(&mut again, BLOCK_BYTES).unwrap() > 0 {}
        assert!(again == text[10..]);
    }

    #[test]
    fn unpacking_waits_for_readers_and_ends_with_them() {
        struct Endless(mpsc::Sender<usize>);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let _ = self.0.send(buffer.len());
                Ok(buffer.len())
            }
        }
        use std::sync::mpsc;
        let (sender, receiver) = mpsc::channel();
        let (done_sender, done) = mpsc::channel();
        let stream = SharedStream::of(move |writer| {
            let result = writer.read_all(&mut Endless(sender));
            done_sender.send(()).map_err(io::Error::other).and(result)
        });
        let far = 3 * AHEAD_BYTES;
        assert!(stream.from(far).append(&mut Vec::new(), 1).unwrap() > 0, "somebody who waits is served");
        assert!(done.try_recv().is_err());
        drop(stream);
        done.recv().expect("it ends");
        let unpacked: usize = receiver.iter().sum();
        assert!(unpacked as u64 <= far + AHEAD_BYTES, "{unpacked}");
    }

    #[test]
    fn trouble_comes_behind_what_was_unpacked() {
        let stream = SharedStream::of(|writer| {
            writer.read_all(&mut b"abc".as_slice())?;
            Err(io::Error::new(io::ErrorKind::InvalidData, "broken"))
        });
        let (mut part, mut bytes) = (stream.from(1), Vec::new());
        assert_eq!((part.append(&mut bytes, 10).unwrap(), bytes.as_slice()), (2, b"bc".as_slice()));
        assert_eq!(part.append(&mut bytes, 10).unwrap_err().to_string(), "broken");
    }
}
