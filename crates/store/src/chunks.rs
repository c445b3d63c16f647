//! Parts of an object that were read, and that will be: a reader that goes on does not wait for each.

use crate::StoreError;
use crate::location::Location;
use crate::runtime::{spawn, wait};
use bytes::Bytes;
use object_store::{GetOptions, GetRange, ObjectMeta};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// The length of a part in bytes.
pub(crate) const CHUNK_BYTES: u64 = 4 << 20;
/// Parts that are asked for before somebody needs them.
const AHEAD: u64 = 6;
/// Parts that are kept.
const KEPT: usize = 16;
/// What is read of the end alone, in bytes: a Parquet file says there what else to read, and often nothing else is.
const TAIL_BYTES: u64 = 64 << 10;

/// A part that is there, or on its way.
#[derive(Default)]
struct Chunk {
    /// `None` while it is on its way.
    bytes: Mutex<Option<Result<Bytes, StoreError>>>,
    arrived: Condvar,
}

impl Chunk {
    fn wait(&self) -> io::Result<Bytes> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match bytes.as_ref() {
                Some(result) => return result.clone().map_err(io::Error::from),
                None => bytes = self.arrived.wait(bytes).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Hands over what came, also when the request was dropped.
struct Arrival {
    chunk: Arc<Chunk>,
    result: Result<Bytes, StoreError>,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        *self.chunk.bytes.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.result.clone());
        self.chunk.arrived.notify_all();
    }
}

/// The parts of one object.
pub(crate) struct Chunks {
    location: Location,
    pub(crate) meta: ObjectMeta,
    /// By number, the one used last at the end.
    kept: Mutex<VecDeque<(u64, Arc<Chunk>)>>,
    tail: OnceLock<Bytes>,
    /// What was refused first.
    failure: OnceLock<StoreError>,
}

impl Chunks {
    pub(crate) fn new(location: Location, meta: ObjectMeta) -> Self {
        Self { location, meta, kept: Mutex::default(), tail: OnceLock::new(), failure: OnceLock::new() }
    }

    /// What was refused first, if anything was.
    pub(crate) fn failure(&self) -> Option<&StoreError> {
        self.failure.get()
    }

    /// The bytes from `at` to the end of their part; none behind the end.
    pub(crate) fn from(&self, at: u64) -> io::Result<Bytes> {
        self.requested(at).inspect_err(|error| {
            let said = StoreError::in_error(error).cloned();
            said.map(|said| self.failure.get_or_init(|| said));
        })
    }

    fn requested(&self, at: u64) -> io::Result<Bytes> {
        if at >= self.meta.size {
            return Ok(Bytes::new());
        }
        let number = at / CHUNK_BYTES;
        let tail_start = self.meta.size.saturating_sub(TAIL_BYTES);
        let chunk = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let is_kept = |wanted: u64| kept.iter().any(|(known, _)| *known == wanted);
            if at >= tail_start && number > 0 && !is_kept(number) && !is_kept(number - 1) {
                drop(kept);
                return Ok(self.tail(tail_start)?.slice(usize::try_from(at - tail_start).unwrap_or(0)..));
            }
            let follows = number > 0 && is_kept(number - 1);
            let last = if follows { number + AHEAD } else { number };
            let last = last.min((self.meta.size - 1) / CHUNK_BYTES);
            for ahead in (number..=last).rev() {
                self.use_or_request(&mut kept, ahead)?;
            }
            while kept.len() > KEPT {
                kept.pop_front();
            }
            // It was put there last.
            kept.back().map(|(_, chunk)| chunk.clone()).ok_or(io::ErrorKind::Other)?
        };
        Ok(chunk.wait()?.slice(usize::try_from(at % CHUNK_BYTES).unwrap_or(0)..))
    }

    fn tail(&self, start: u64) -> io::Result<Bytes> {
        if let Some(tail) = self.tail.get() {
            return Ok(tail.clone());
        }
        let (location, meta) = (self.location.clone(), self.meta.clone());
        let range = start..meta.size;
        let tail = wait(async move {
            read_range(&location, meta.size, meta.e_tag.as_deref(), range).await.map_err(io::Error::from)
        })?;
        Ok(self.tail.get_or_init(|| tail).clone())
    }

    fn use_or_request(&self, kept: &mut VecDeque<(u64, Arc<Chunk>)>, number: u64) -> io::Result<()> {
        if let Some(place) = kept.iter().position(|(known, _)| *known == number) {
            let known = kept.remove(place);
            kept.extend(known);
            return Ok(());
        }
        let chunk = Arc::new(Chunk::default());
        self.request(number, chunk.clone())?;
        kept.push_back((number, chunk));
        Ok(())
    }

    fn request(&self, number: u64, chunk: Arc<Chunk>) -> io::Result<()> {
        let (location, meta) = (self.location.clone(), self.meta.clone());
        let start = number * CHUNK_BYTES;
        let range = start..(start + CHUNK_BYTES).min(meta.size);
        let given_up = StoreError::new(crate::Fault::Cut, &location.store.base, "the request was given up");
        let mut arrival = Arrival { chunk, result: Err(given_up) };
        spawn(async move {
            let result = read_range(&location, meta.size, meta.e_tag.as_deref(), range).await;
            // Whole, so that it is dropped here and not before.
            let arrival = &mut arrival;
            arrival.result = result;
        })
    }
}

/// A range of an object that is still what it was.
pub(crate) async fn read_range(
    location: &Location,
    size: u64,
    e_tag: Option<&str>,
    range: Range<u64>,
) -> Result<Bytes, StoreError> {
    let Location { store, object } = location;
    let len = range.end - range.start;
    let range = Some(GetRange::Bounded(range));
    // A weak tag, as of what a web server packs, matches nothing.
    let if_match = e_tag.filter(|tag| !tag.starts_with("W/")).map(String::from);
    let options = GetOptions { range, if_match, ..GetOptions::default() };
    let told = |error: object_store::Error| StoreError::of(&error, &store.base);
    let result = store.objects.get_opts(object, options).await.map_err(told)?;
    if result.meta.size != size || e_tag.is_some() && result.meta.e_tag.as_deref() != e_tag {
        return Err(StoreError::new(crate::Fault::Changed, &store.base, ""));
    }
    let bytes = result.bytes().await.map_err(told)?;
    if bytes.len() as u64 == len {
        return Ok(bytes);
    }
    Err(StoreError::new(crate::Fault::Cut, &store.base, format!("{} of {len} bytes came", bytes.len())))
}
