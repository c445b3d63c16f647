//! The flight recorder: segments that nobody writes any more are evicted once they are old, and used again.
//!
//! All of it happens on the helper thread. A definition that stands in a segment to be evicted, such as a name, is
//! carried over first: so the paths on which records are written know nothing of the ring.

use crate::clock;
use crate::session::{STATE, Segment};
use std::collections::{HashMap, VecDeque};
use std::io::Result;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stepscope_capture::layout::{NO_THREAD, SEGMENT_BYTES, SEGMENT_HEADER_BYTES, Tag, first_word};
use stepscope_capture::{CaptureFile, definitions};

/// A ring with more full segments than this (1 GiB) evicts younger ones than was asked for.
const MAX_RETIRED: usize = 4096;
/// Segments that were evicted and keep their place on the disk, so that taking them into use again is quick.
const MAX_FREE: usize = 4;
/// Definitions carried over, at most; those beyond are lost, and counted.
const MAX_DEFINITION_BYTES: usize = 64 << 20;

/// The segments of a ring that nobody writes.
pub(crate) struct Ring {
    window_ns: i64,
    /// Oldest first.
    retired: VecDeque<Retired>,
    /// What was evicted is read here.
    bytes: Vec<u8>,
    definitions: Definitions,
    /// Up to when it is known that nobody asked this process for a copy; `None` while one is wanted, and nothing is
    /// evicted.
    no_snapshot_until_ns: Option<i64>,
}

struct Retired {
    index: u64,
    at_ticks: u64,
    at_ns: i64,
}

impl Ring {
    pub(crate) fn new(window: Duration) -> Self {
        Self {
            window_ns: i64::try_from(window.as_nanos()).unwrap_or(i64::MAX),
            retired: VecDeque::new(),
            bytes: vec![0; SEGMENT_BYTES],
            definitions: Definitions::default(),
            no_snapshot_until_ns: None,
        }
    }

    /// Evicts nothing from now on: a snapshot is written.
    pub(crate) fn hold(&mut self) {
        self.no_snapshot_until_ns = None;
    }

    /// Evicts again what is old, unless a snapshot is wanted. The time is read before this is asked: whatever lies
    /// within the window when somebody wants a copy is in it, however late this thread is on a busy machine.
    pub(crate) fn release_unless(&mut self, is_wanted: impl FnOnce() -> bool) {
        let now_ns = clock::monotonic_ns();
        self.no_snapshot_until_ns = (!is_wanted()).then_some(now_ns);
    }

    /// Takes out what ended threads left long ago: nobody will continue it.
    pub(crate) fn take_old(&self, partial: &mut Vec<Segment>) -> Vec<Segment> {
        let oldest_ns = clock::monotonic_ns().saturating_sub(self.window_ns);
        partial.extract_if(.., |segment| segment.left_ns < oldest_ns).collect()
    }

    /// Takes a segment that nobody writes any more.
    pub(crate) fn retire(&mut self, segment: Segment) {
        // SAFETY: a mapped segment of the capture.
        let index = unsafe { CaptureFile::index_of(segment.base) };
        segment.unmap();
        // Not when its last record was written, but after: what is said to be there is there.
        let now = clock::now();
        self.retired.push_back(Retired { index, at_ticks: now.ticks, at_ns: now.monotonic_ns });
    }

    /// Evicts what is older than the window, or too much; what is free then is in `Session::free`.
    pub(crate) fn give_up_old(&mut self, file: &Arc<CaptureFile>) {
        let Some(until_ns) = self.no_snapshot_until_ns else { return };
        let oldest_ns = until_ns.saturating_sub(self.window_ns);
        while let Some(oldest) = self.retired.front() {
            let is_too_much = self.retired.len() > MAX_RETIRED;
            if oldest.at_ns >= oldest_ns && !is_too_much {
                return;
            }
            let (index, at_ticks) = (oldest.index, oldest.at_ticks);
            if file.read_segment(index, &mut self.bytes).is_err() {
                return;
            }
            let is_kept = definitions(&self.bytes).into_iter().all(|record| self.definitions.carry(file, record));
            if !is_kept || file.give_up_segment(index, at_ticks).is_err() {
                return;
            }
            self.retired.pop_front();
            let too_many = with_free(file, |free| {
                free.evicted += 1;
                free.segments.push(index);
                (free.segments.len() > MAX_FREE).then(|| free.segments.remove(0))
            });
            if let Some(index) = too_many.flatten() {
                file.release_segment(index);
                with_free(file, |free| free.released.push(index));
            }
        }
    }

    /// A segment that was evicted, else a new one.
    pub(crate) fn map_segment(&self, file: &Arc<CaptureFile>) -> Result<NonNull<u8>> {
        match with_free(file, FreeSegments::take).flatten() {
            Some((index, generation)) => file.reuse_segment(index, generation),
            None => file.map_segment(),
        }
    }
}

/// Segments of a ring that were evicted, for the next thread that needs one.
#[derive(Default)]
pub(crate) struct FreeSegments {
    segments: Vec<u64>,
    /// Those that have no place on the disk any more.
    released: Vec<u64>,
    /// How many were evicted so far.
    evicted: u64,
}

impl FreeSegments {
    /// One of them with its generation, when there is one.
    pub(crate) fn take(&mut self) -> Option<(u64, u64)> {
        Some((self.segments.pop().or_else(|| self.released.pop())?, self.evicted))
    }
}

/// Under the lock: what is free in the capture `file`, while it is open.
fn with_free<R>(file: &Arc<CaptureFile>, f: impl FnOnce(&mut FreeSegments) -> R) -> Option<R> {
    let mut state = STATE.lock();
    state.session.as_mut().filter(|session| Arc::ptr_eq(&session.file, file)).map(|session| f(&mut session.free))
}

/// Segments that are never evicted, for what all others need.
#[derive(Default)]
struct Definitions {
    at: Option<(NonNull<u8>, usize)>,
    bytes: usize,
    parts: u64,
    /// The last value of each metadata key, by its key, both as they stand in the record.
    metadata: HashMap<Vec<u8>, Vec<u8>>,
}

// SAFETY: the segment belongs to this value; nobody else writes it.
unsafe impl Send for Definitions {}

impl Definitions {
    /// Writes `record` again; false when there is no room on the disk, and it must stay where it is.
    fn carry(&mut self, file: &CaptureFile, record: &[u8]) -> bool {
        let entry = metadata_entry(record);
        // Carried over with this very value.
        if entry.is_some_and(|(key, value)| self.metadata.get(key).is_some_and(|known| known == value)) {
            return true;
        }
        if self.bytes + record.len() > MAX_DEFINITION_BYTES {
            file.header().dropped.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        let room = self.at.map_or(0, |(_, at)| SEGMENT_BYTES - at);
        if room < record.len() && !self.begin_segment(file) {
            return false;
        }
        self.bytes += record.len();
        self.write(record);
        if let Some((key, value)) = entry {
            self.metadata.insert(key.into(), value.into());
        }
        true
    }

    fn begin_segment(&mut self, file: &CaptureFile) -> bool {
        let Ok(base) = file.map_segment() else { return false };
        if let Some((full, _)) = self.at.replace((base, SEGMENT_HEADER_BYTES)) {
            // SAFETY: nobody else knows the segment.
            unsafe { CaptureFile::unmap_segment(full) };
        }
        let who = u64::from(NO_THREAD) | self.parts << 32;
        self.parts += 1;
        let words = [first_word(clock::ticks(), Tag::Thread), who, 0, 0];
        self.write(&words.map(u64::to_le_bytes).concat());
        true
    }

    /// Writes a record for which there is room; its first word is written last.
    fn write(&mut self, record: &[u8]) {
        let Some((base, at)) = &mut self.at else { return };
        let (first, rest) = record.split_at(8);
        // SAFETY: there is room for the record behind the ones before, 8-byte aligned as they all are.
        unsafe {
            let place = base.add(*at);
            std::ptr::copy_nonoverlapping(rest.as_ptr(), place.add(8).as_ptr(), rest.len());
            let first = u64::from_le_bytes(first.try_into().unwrap_or_default());
            (*place.as_ptr().cast::<AtomicU64>()).store(first, Ordering::Release);
        }
        *at += record.len();
    }
}

/// The key and the value of a metadata entry, both as they stand in its record.
fn metadata_entry(record: &[u8]) -> Option<(&[u8], &[u8])> {
    if record[0] != Tag::Fact as u8 {
        return None;
    }
    let key_len = u32::from_le_bytes(record[8..12].try_into().unwrap_or_default()) as usize;
    Some(record[16..].split_at(key_len.min(record.len() - 16)))
}

impl Drop for Definitions {
    fn drop(&mut self) {
        if let Some((base, _)) = self.at {
            // SAFETY: nobody else knows the segment.
            unsafe { CaptureFile::unmap_segment(base) };
        }
    }
}
