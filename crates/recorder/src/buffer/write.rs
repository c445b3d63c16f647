//! Records of the hot path: short where they fit, else of fixed length.

use super::ThreadBuffer;
use crate::clock::ticks;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use stepscope_capture::layout::{BeginWord, Tag, first_word};
use stepscope_capture::short::{self, Begin, is_timed};

/// How far ahead of the cursor memory is fetched for writing: the helper thread zeroed it on another processor, whose
/// cache still holds it.
const PREFETCH_BYTES: usize = 320;

/// A begin that takes its end in place, as long as nothing is written behind it.
#[derive(Clone, Copy)]
pub(super) struct InlineEnd {
    /// Its second half.
    second: *mut u32,
    /// Where the cursor stands while nothing is.
    cursor: *mut u32,
}

impl InlineEnd {
    /// No cursor stands there.
    pub(super) const NONE: Self = Self { second: std::ptr::null_mut(), cursor: std::ptr::without_provenance_mut(1) };

    /// The end of what begins at `at`, where the begin is a timed one.
    #[inline(always)]
    fn at(at: *mut u32, tag: Tag) -> Self {
        let second = at.wrapping_add(1);
        if is_timed(tag) { Self { second, cursor: at.wrapping_add(2) } } else { Self::NONE }
    }

    /// Writes that it took `duration_ticks`; false where something is written behind it, or it took too long.
    #[inline(always)]
    fn end(&mut self, cursor: *mut u32, duration_ticks: u64) -> bool {
        if self.cursor != cursor {
            return false;
        }
        // SAFETY: the cursor has not moved since the begin: its second half, in the segment at hand, is as it was
        // written.
        let Some(second) = short::ended(unsafe { self.second.read() }, duration_ticks) else { return false };
        // SAFETY: as above.
        unsafe { publish_half(self.second, second) };
        *self = Self::NONE;
        true
    }

    /// What the op was called with stands behind the begin now, and may.
    #[inline(always)]
    pub(super) fn pass(&mut self, before: *mut u32, after: *mut u32) {
        if self.cursor == before {
            self.cursor = after;
        }
    }
}

impl ThreadBuffer {
    /// Writes a begin, as a short record when it fits one; the caller reserved [`LONGEST_FIXED`].
    #[inline(always)]
    pub(super) fn write_begin(&mut self, begin: &Begin) {
        let short = self.reference.short_begin(begin);
        // As late as can be: what is done before is not the op's.
        self.inline_end = self.write_begin_at(ticks(), short, begin);
    }

    /// Writes the begin of a call, as a short record when it fits one; the caller reserved [`LONGEST_FIXED`].
    #[inline(always)]
    pub(super) fn write_begin_of_call(&mut self, at_ticks: u64, begin: &Begin) {
        let short = self.reference.short_begin(begin);
        self.inline_call_end = self.write_begin_at(at_ticks, short, begin);
    }

    #[inline(always)]
    fn write_begin_at(&mut self, at_ticks: u64, short: Option<(Tag, u32)>, begin: &Begin) -> InlineEnd {
        let mut inline_end = InlineEnd::NONE;
        let word = short.and_then(|(tag, second)| Some((tag, self.reference.short_word(at_ticks, tag)?, second)));
        match word {
            Some((tag, first, second)) => {
                let at = self.cursor;
                inline_end = InlineEnd::at(at, tag);
                // SAFETY: `reserve` gave room for a longer record.
                unsafe {
                    at.add(1).write(second);
                    publish_half(at, first);
                    self.cursor = at.add(2);
                }
                self.reference.ticks = at_ticks;
                prefetch_for_write(self.cursor.wrapping_byte_add(PREFETCH_BYTES));
            }
            None => self.write_long_begin(at_ticks, begin),
        }
        self.reference.note(begin);
        inline_end
    }

    /// Ends the op that began last within its begin; false where there is no room for that.
    #[inline(always)]
    pub(super) fn end_inline(&mut self, at_ticks: u64) -> bool {
        self.inline_end.end(self.cursor, at_ticks.wrapping_sub(self.reference.ticks))
    }

    /// Ends the call that began last within its begin; false where there is no room for that.
    #[inline(always)]
    pub(super) fn end_inline_call(&mut self, at_ticks: u64) -> bool {
        self.inline_call_end.end(self.cursor, at_ticks.wrapping_sub(self.reference.ticks))
    }

    #[cold]
    fn write_long_begin(&mut self, at_ticks: u64, begin: &Begin) {
        let number_and_one = begin.sequence_number.wrapping_add(1).max(0) as u64;
        let has_room = number_and_one <= BeginWord::SEQUENCE_NUMBERS;
        let scope = begin.scope & (BeginWord::SCOPES - 1);
        let packed = BeginWord::pack(begin.name, scope, if has_room { number_and_one } else { 0 });
        match (has_room, begin.forward_thread) {
            (true, 0) => self.write(at_ticks, Tag::Begin, &[packed], &[]),
            (true, thread) => self.write(at_ticks, Tag::BeginBackward, &[packed, thread], &[]),
            (false, thread) => {
                self.write(at_ticks, Tag::BeginSequence, &[packed, begin.sequence_number as u64, thread], &[]);
            }
        }
    }

    /// Writes an end; the caller reserved a word.
    #[inline(always)]
    pub(super) fn write_end(&mut self, at_ticks: u64) {
        self.write_end_as(at_ticks, Tag::ShortEnd, Tag::End);
    }

    #[inline(always)]
    pub(super) fn write_end_as(&mut self, at_ticks: u64, short: Tag, long: Tag) {
        match self.reference.short_word(at_ticks, short) {
            Some(first) => {
                // SAFETY: `reserve` gave room for a longer record.
                unsafe {
                    publish_half(self.cursor, first);
                    self.cursor = self.cursor.add(1);
                }
                self.reference.ticks = at_ticks;
            }
            None => self.write(at_ticks, long, &[], &[]),
        }
    }

    /// Writes a long record of fixed length; the caller reserved it.
    #[inline(always)]
    pub(crate) fn write_words<const WORDS: usize>(&mut self, at_ticks: u64, tag: Tag, words: [u64; WORDS]) {
        // SAFETY: `reserve` gave room for the words, the first one, and the pad.
        unsafe {
            if !(self.cursor as usize).is_multiple_of(8) {
                publish_half(self.cursor, Tag::Pad as u32);
                self.cursor = self.cursor.add(1);
            }
            let at = self.cursor.cast::<u64>();
            at.add(1).cast::<[u64; WORDS]>().write(words);
            publish_word(at, first_word(at_ticks, tag));
            self.cursor = at.add(1 + WORDS).cast();
        }
        self.reference.ticks = at_ticks;
        prefetch_for_write(self.cursor.wrapping_byte_add(PREFETCH_BYTES));
    }
}

/// Writes the first half of a short record. The release keeps its other half ahead: a reader that sees the first sees
/// both.
#[inline(always)]
pub(super) unsafe fn publish_half(at: *mut u32, first: u32) {
    // SAFETY: the caller's memory, aligned to 4 bytes.
    unsafe { (*at.cast::<AtomicU32>()).store(first, Ordering::Release) };
}

/// Writes the first word of a record in the same way.
#[inline(always)]
pub(super) unsafe fn publish_word(at: *mut u64, first: u64) {
    // SAFETY: the caller's memory, aligned to 8 bytes.
    unsafe { (*at.cast::<AtomicU64>()).store(first, Ordering::Release) };
}

/// Asks for the cache line at `address`, which need not be mapped.
#[inline(always)]
fn prefetch_for_write(address: *const u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; it never faults.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_ET0 }>(address.cast());
    }
}
