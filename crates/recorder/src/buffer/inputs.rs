//! What an op was called with: a reference of four bytes behind its begin, or said later and in full.

use super::write::publish_half;
use super::{OpenOp, ThreadBuffer, with_buffer};
use crate::clock::ticks;
use crate::inputs::{InputsCache, Interned};
use crate::session::{EPOCH, STATE, count_dropped};
use std::sync::atomic::Ordering;
use stepscope_capture::inputs::{Signature, pack};
use stepscope_capture::layout::{OpenPlace, SEGMENT_BYTES, Tag, padded};

/// Longest inputs that are written: a record must fit a segment.
const MAX_BYTES: usize = SEGMENT_BYTES / 2;

/// How a record refers to inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    /// There are none.
    Nothing,
    Id(u32),
    /// They have no id, and stand in the cache's signature.
    InPlace,
}

/// The innermost op or label that the calling thread has open; `None` without one, and below a nesting that is not
/// followed.
pub fn innermost() -> Option<OpenOp> {
    with_buffer(|buffer| {
        let is_followed = buffer.epoch == EPOCH.load(Ordering::Relaxed) && buffer.unlisted == 0;
        buffer.open[..buffer.open_len].last().copied().filter(|_| is_followed)
    })?
}

/// Says what an op or label that the calling thread began, and that is open, is called with: in place of all that was
/// said before. It is written in full, for what is hardly ever called alike. What this thread has not open is counted as
/// dropped.
pub fn describe(op: OpenOp, inputs: &Signature) {
    with_buffer(|buffer| {
        if buffer.epoch != EPOCH.load(Ordering::Relaxed) {
            // It is of a capture that is closed.
            return;
        }
        let place = buffer.place_of(op);
        let bytes = if inputs.is_too_long() { Vec::new() } else { pack(inputs.words()) };
        let (Some(place), 1..=MAX_BYTES) = (place, bytes.len()) else { return count_dropped() };
        let epoch = buffer.epoch;
        if buffer.reserve(2 + padded(bytes.len()) / 8) && buffer.epoch == epoch {
            let word = bytes.len() as u64 | u64::from(place.pack()) << 32;
            buffer.write(ticks(), Tag::InputsInPlace, &[word], &bytes);
        }
    });
}

impl ThreadBuffer {
    fn place_of(&self, op: OpenOp) -> Option<OpenPlace> {
        let behind = |ops: &[OpenOp]| ops.iter().rev().position(|open| *open == op).map(|behind| behind as u32);
        let open = behind(&self.open[..self.open_len]).filter(|_| self.unlisted == 0).map(OpenPlace::Open);
        open.or_else(|| behind(&self.left[..self.left_len]).map(OpenPlace::Left))
    }

    /// Asks `put` for the inputs and finds how to refer to them; what is new is written first.
    #[inline(always)]
    pub(super) fn refer_to_inputs(&mut self, put: impl FnOnce(&mut Signature)) -> Reference {
        let is_current = self.epoch == EPOCH.load(Ordering::Relaxed);
        let Some(cache) = &mut self.inputs else { return self.refer_first(put) };
        cache.signature.clear();
        put(&mut cache.signature);
        if cache.signature.words().is_empty() {
            return Reference::Nothing;
        }
        let (hash, id) = cache.find();
        match id {
            Some(id) if is_current => Reference::Id(id),
            _ => self.intern_inputs(hash),
        }
    }

    /// The first inputs of a thread.
    #[cold]
    #[inline(never)]
    fn refer_first(&mut self, put: impl FnOnce(&mut Signature)) -> Reference {
        let mut cache = Box::new(InputsCache::new());
        put(&mut cache.signature);
        let is_empty = cache.signature.words().is_empty();
        let hash = cache.find().0;
        self.inputs = Some(cache);
        if is_empty { Reference::Nothing } else { self.intern_inputs(hash) }
    }

    /// Finds the signature in the process's table, or adds and writes it.
    #[cold]
    #[inline(never)]
    fn intern_inputs(&mut self, hash: u64) -> Reference {
        let Some(mut cache) = self.inputs.take() else { return Reference::Nothing };
        let reference = self.intern_signature(&mut cache, hash);
        self.inputs = Some(cache);
        reference
    }

    fn intern_signature(&mut self, cache: &mut InputsCache, hash: u64) -> Reference {
        let bytes = if cache.signature.is_too_long() { Vec::new() } else { pack(cache.signature.words()) };
        if bytes.is_empty() || bytes.len() > MAX_BYTES {
            count_dropped();
            return Reference::Nothing;
        }
        let epoch = self.epoch;
        // Room first: it cannot be asked for under the lock. It also brings the buffer into the current epoch.
        if !self.reserve(2 + padded(bytes.len()) / 8) {
            return Reference::Nothing;
        }
        if self.epoch != epoch {
            // `enter` had no cache to clear.
            cache.clear();
        }
        let mut state = STATE.lock();
        if self.epoch != EPOCH.load(Ordering::Acquire) {
            return Reference::Nothing;
        }
        let Some(session) = state.session.as_mut() else { return Reference::Nothing };
        let id = match session.inputs.intern(cache.signature.words()) {
            Interned::Known(id) => id,
            Interned::New(id) => {
                // Still under the lock: another thread that gets this id must find them before its own records.
                self.write(ticks(), Tag::Inputs, &[u64::from(id) | (bytes.len() as u64) << 32], &bytes);
                id
            }
            Interned::Full => return Reference::InPlace,
        };
        drop(state);
        cache.insert(hash, id);
        Reference::Id(id)
    }

    /// Writes the reference behind the begin; the caller reserved a word for it.
    #[inline(always)]
    pub(super) fn write_inputs(&mut self, reference: Reference) {
        match reference {
            Reference::Nothing => {}
            Reference::Id(id) => {
                // SAFETY: `reserve` gave room.
                let after = unsafe {
                    publish_half(self.cursor, id << 8 | Tag::InputsReference as u32);
                    self.cursor.add(1)
                };
                self.inline_end.pass(self.cursor, after);
                self.cursor = after;
            }
            Reference::InPlace => self.write_in_place(),
        }
    }

    #[cold]
    #[inline(never)]
    fn write_in_place(&mut self) {
        let Some(cache) = &self.inputs else { return };
        let bytes = pack(cache.signature.words());
        self.append(ticks(), Tag::InputsInPlace, &[bytes.len() as u64], &bytes);
    }
}
