//! Records that are rare or of any length: written off the hot path, into the same segment.

use super::write::{publish_half, publish_word};
use super::{LONGEST_FIXED, ThreadBuffer};
use crate::buffer::OpenOp;
use crate::clock::ticks;
use crate::names::{Interned, MAX_NAME_BYTES, Name};
use crate::session::{EPOCH, STATE, count_dropped};
use std::sync::atomic::Ordering;
use stepscope_capture::layout::{Tag, first_word, padded};

/// Longest value of a metadata entry that is kept whole.
const MAX_FACT_BYTES: usize = 8 << 10;

impl ThreadBuffer {
    /// An end whose op is not the innermost of this thread.
    #[cold]
    pub(crate) unsafe fn end_out_of_order(&mut self, op: OpenOp, name: Name, origin: u64) {
        if !self.reserve(LONGEST_FIXED) {
            return;
        }
        if self.unlisted > 0 {
            self.unlisted -= 1;
            return self.append(ticks(), Tag::End, &[], &[]);
        }
        match self.open[..self.open_len].iter().rposition(|open| *open == op) {
            Some(at) => {
                let inside = self.open_len - 1 - at;
                (at + 1..self.open_len).for_each(|inside| self.leave(self.open[inside]));
                self.open_len = at;
                match inside {
                    0 => self.append(ticks(), Tag::End, &[], &[]),
                    _ => self.append(ticks(), Tag::EndOuter, &[inside as u64], &[]),
                }
            }
            None => match self.left[..self.left_len].iter().rposition(|left| *left == op) {
                Some(at) => {
                    self.left.copy_within(at + 1..self.left_len, at);
                    self.left_len -= 1;
                    self.append(ticks(), Tag::EndLeft, &[(self.left_len - at) as u64], &[]);
                }
                // SAFETY: the caller's promise about `name`.
                None => unsafe { self.end_elsewhere(name, origin) },
            },
        }
    }

    /// An open one leaves the stack.
    fn leave(&mut self, op: OpenOp) {
        if self.left_len == self.left.len() {
            self.left.copy_within(1.., 0);
            self.left_len -= 1;
        }
        self.left[self.left_len] = op;
        self.left_len += 1;
    }

    /// An end whose op is not on this thread's stack.
    pub(crate) unsafe fn end_elsewhere(&mut self, name: Name, origin: u64) {
        // SAFETY: the caller's promise.
        let Some(id) = (unsafe { self.name_id(name) }) else { return count_dropped() };
        let epoch = self.epoch;
        if !self.reserve(LONGEST_FIXED) {
            return;
        }
        if self.epoch != epoch {
            return count_dropped();
        }
        self.write(ticks(), Tag::EndElsewhere, &[u64::from(id), origin], &[]);
    }

    /// Writes any record but those of the hot path, into the capture that is open now.
    pub(crate) fn append(&mut self, at_ticks: u64, tag: Tag, words: &[u64], text: &[u8]) {
        if self.reserve(1 + words.len() + padded(text.len()) / 8) {
            self.write(at_ticks, tag, words, text);
        }
    }

    /// Writes a record into the segment at hand; counts it as dropped when there is no room.
    pub(crate) fn write(&mut self, at_ticks: u64, tag: Tag, words: &[u64], text: &[u8]) {
        let len = 1 + words.len() + padded(text.len()) / 8;
        if !self.has_room(len) {
            return count_dropped();
        }
        // SAFETY: there is room for all words and the pad; the padding behind the text is zero, as all unwritten bytes
        // are.
        unsafe {
            if !(self.cursor as usize).is_multiple_of(8) {
                publish_half(self.cursor, Tag::Pad as u32);
                self.cursor = self.cursor.add(1);
            }
            let at = self.cursor.cast::<u64>();
            std::ptr::copy_nonoverlapping(words.as_ptr(), at.add(1), words.len());
            std::ptr::copy_nonoverlapping(text.as_ptr(), at.add(1 + words.len()).cast(), text.len());
            publish_word(at, first_word(at_ticks, tag));
            self.cursor = at.add(len).cast();
        }
        self.reference.ticks = at_ticks;
    }

    pub(crate) fn append_metadata(&mut self, key: &str, value: &str) {
        let (words, text) = fact_record(key, value);
        self.append(ticks(), Tag::Fact, &words, &text);
    }

    pub(crate) fn append_clock(&mut self, now: stepscope_capture::ClockPoint) {
        self.append(now.ticks, Tag::Clock, &[now.monotonic_ns as u64, now.unix_ns as u64], &[]);
    }

    #[cold]
    pub(crate) unsafe fn intern(&mut self, name: Name) -> Option<u32> {
        // SAFETY: the caller's promise.
        let (text, overload) = unsafe { (truncated(name.bytes()), truncated(name.overload_bytes())) };
        // Room first: it cannot be asked for under the lock. It also brings the buffer into the current epoch.
        if !self.reserve(4 + padded(text.len()) / 8 + padded(overload.len()) / 8) {
            return None;
        }
        let mut state = STATE.lock();
        if self.epoch != EPOCH.load(Ordering::Acquire) {
            return None;
        }
        let interned = state.session.as_mut()?.names.intern(text, overload);
        let (text, id) = match interned {
            Interned::Known(text, id) => (text, id),
            Interned::New(text, id) => {
                // Still under the lock: another thread that gets this id must find the name before its own records.
                self.write(ticks(), Tag::Name, &[u64::from(id) | (text.len() as u64) << 32], text);
                if !overload.is_empty() {
                    self.write(ticks(), Tag::Overload, &[u64::from(id) | (overload.len() as u64) << 32], overload);
                }
                (text, id)
            }
            Interned::Full => return None,
        };
        drop(state);
        if name.is_cached() {
            self.names.insert(name, text, id);
        }
        Some(id)
    }

    /// A begin whose name has no room in the table; false when it could not be written.
    #[cold]
    pub(crate) unsafe fn begin_with_text(&mut self, name: Name, scope: u8, op: OpenOp) -> bool {
        // SAFETY: the caller's promise.
        let text = truncated(unsafe { name.bytes() });
        let has_room = self.reserve(2 + padded(text.len()) / 8);
        if has_room {
            self.write_begin_text(ticks(), text, scope);
            self.open(op);
        }
        has_room
    }

    /// Writes a begin with its name; the caller reserved room.
    pub(crate) fn write_begin_text(&mut self, at_ticks: u64, text: &[u8], scope: u8) {
        self.write(at_ticks, Tag::BeginText, &[text.len() as u64 | u64::from(scope) << 32], text);
    }
}

/// The words and the text of a metadata entry's record.
pub(crate) fn fact_record(key: &str, value: &str) -> ([u64; 1], Vec<u8>) {
    let key = &key.as_bytes()[..key.len().min(MAX_FACT_BYTES)];
    let value = &value.as_bytes()[..value.len().min(MAX_FACT_BYTES)];
    ([key.len() as u64 | (value.len() as u64) << 32], [key, value].concat())
}

pub(crate) fn truncated(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_NAME_BYTES)]
}
