//! One thread's buffer: where records are written.

mod calls;
mod collectives;
mod device;
mod inputs;
mod owner;
mod profiler_state;
mod records;
mod segments;
mod write;

pub use calls::{outermost_call, pop_call, pop_calls, pop_outer_call, push_call, set_outer_calls};
pub use collectives::describe_collective;
pub use device::{counter, device_activity, device_clock};
pub use inputs::{describe, innermost};
pub(crate) use owner::{OWNER, framework_thread, has_buffer, is_past_end, with_buffer};
pub use owner::{set_framework_thread, set_thread_words, thread_words};
pub use profiler_state::set_profiler_state;
pub(crate) use records::truncated;

use crate::clock::ticks;
use crate::inputs::InputsCache;
use crate::names::{Name, NameCache};
use crate::session::{EPOCH, count_dropped};
use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use stepscope_capture::ProfilerState;
use stepscope_capture::inputs::Signature;
use stepscope_capture::layout::scope::LABEL;
use stepscope_capture::short::{Begin, Reference};
use write::InlineEnd;

/// What names an open op between its begin and its end: an address or a token, unique while the op is open.
pub type OpenOp = usize;

/// Ops nested deeper than this are matched by order alone.
const MAX_OPEN: usize = 256;
/// The most ops remembered that have left the stack before they ended; with more, the oldest are forgotten.
const MAX_LEFT: usize = 64;
/// Words of the longest record of fixed length.
pub(crate) const LONGEST_FIXED: usize = 4;
/// Words that a reference to inputs takes.
const INPUTS_WORDS: usize = 1;
/// Bytes that may be lost before a record that is 8-byte aligned.
const PAD_BYTES: usize = 4;

/// The buffer of a thread that records.
pub(crate) struct ThreadBuffer {
    /// Where the next record goes; 4-byte aligned.
    cursor: *mut u32,
    end: *mut u32,
    /// What a short record counts from.
    reference: Reference,
    /// The last begins of an op and of a call that may say how long they took.
    inline_end: InlineEnd,
    inline_call_end: InlineEnd,
    epoch: u64,
    open_len: usize,
    open: [OpenOp; MAX_OPEN],
    /// Those that were inside of one that has ended, the last one last.
    left_len: usize,
    left: [OpenOp; MAX_LEFT],
    unlisted: usize,
    names: NameCache,
    /// Made when the first inputs are recorded.
    inputs: Option<Box<InputsCache>>,
    base: Option<NonNull<u8>>,
    /// True while this epoch has nothing to write to: no capture, or a full disk.
    is_dry: bool,
    ordinal: u32,
    part: u32,
    /// The number of the profiler state under which this thread runs what it does.
    profiler_state: u64,
    /// Calls of Python and of modules.
    calls: calls::Calls,
}

/// An op or label begins on the calling thread. `text` is its name as the hook finds it; only when that address is not
/// known yet is `name` asked what it is. `forward_thread` is 0 for all but backward nodes, `sequence_number` negative
/// where there is none.
///
/// # Safety
/// `text` is a zero-terminated string, and like the text that `name` gives it lives during the call.
#[inline(always)]
pub unsafe fn begin(
    text: *const c_char,
    name: impl FnOnce() -> Name,
    scope: u8,
    sequence_number: i64,
    forward_thread: u64,
    op: OpenOp,
) {
    // SAFETY: the caller's promise.
    unsafe { begin_with(text, name, scope, sequence_number, forward_thread, op, None::<fn(&mut Signature)>) }
}

/// As [`begin`], with what the op is called with, which `inputs` puts together.
///
/// # Safety
/// As of [`begin`]; `inputs` does not call the recorder.
#[inline(always)]
pub unsafe fn begin_with_inputs(
    text: *const c_char,
    name: impl FnOnce() -> Name,
    scope: u8,
    sequence_number: i64,
    forward_thread: u64,
    op: OpenOp,
    inputs: impl FnOnce(&mut Signature),
) {
    // SAFETY: the caller's promise.
    unsafe { begin_with(text, name, scope, sequence_number, forward_thread, op, Some(inputs)) }
}

#[inline(always)]
unsafe fn begin_with(
    text: *const c_char,
    name: impl FnOnce() -> Name,
    scope: u8,
    sequence_number: i64,
    forward_thread: u64,
    op: OpenOp,
    inputs: Option<impl FnOnce(&mut Signature)>,
) {
    with_buffer(|buffer| {
        // A label begins inside the call that enters it, which ends before the label: written, the two would overlap.
        if !buffer.calls.has_no_pending_calls() && scope != LABEL {
            buffer.write_pending_calls();
        }
        // SAFETY: the caller's promise.
        let known = unsafe { buffer.known_name_id(Name::stable(text)) };
        let id = match known {
            Some(id) => Some(id),
            None => {
                let name = name();
                // SAFETY: as above.
                let id = unsafe { buffer.name_id(name) };
                // SAFETY: as above.
                if id.is_none() && !unsafe { buffer.begin_with_text(name, scope, op) } {
                    return;
                }
                id
            }
        };
        let epoch = buffer.epoch;
        let inputs = inputs.map_or(inputs::Reference::Nothing, |put| buffer.refer_to_inputs(put));
        if !buffer.reserve(LONGEST_FIXED + INPUTS_WORDS) {
            return;
        }
        if buffer.epoch != epoch {
            // The ids belong to the capture before.
            return count_dropped();
        }
        if let Some(name) = id {
            buffer.open(op);
            buffer.write_begin(&Begin { name, scope, sequence_number, forward_thread });
        }
        buffer.write_inputs(inputs);
    });
}

/// The op or label `op`, begun on this thread or another, ends. `name` and `origin` (the framework's id of the thread
/// where it began) are only asked for when it is not on this thread's stack.
///
/// # Safety
/// The text that `name` gives lives during the call.
#[inline(always)]
pub unsafe fn end(op: OpenOp, name: impl FnOnce() -> Name, origin: impl FnOnce() -> u64) {
    with_buffer(|buffer| {
        let at_ticks = ticks();
        if buffer.epoch == EPOCH.load(Ordering::Relaxed)
            && buffer.unlisted == 0
            && buffer.open_len > 0
            && buffer.open[(buffer.open_len - 1) % MAX_OPEN] == op
        {
            // First: another capture, which `reserve` may move to, has an empty stack of its own.
            buffer.open_len -= 1;
            if !buffer.end_inline(at_ticks) && buffer.reserve(1) {
                buffer.write_end(at_ticks);
            }
        } else {
            // SAFETY: the caller's promise.
            unsafe { buffer.end_out_of_order(op, name(), origin()) };
        }
    });
}

impl ThreadBuffer {
    fn new() -> Self {
        Self {
            cursor: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
            reference: Reference::default(),
            inline_end: InlineEnd::NONE,
            inline_call_end: InlineEnd::NONE,
            epoch: 0,
            open_len: 0,
            open: [0; MAX_OPEN],
            left_len: 0,
            left: [0; MAX_LEFT],
            unlisted: 0,
            names: NameCache::new(),
            inputs: None,
            base: None,
            is_dry: false,
            ordinal: 0,
            part: 0,
            profiler_state: ProfilerState::NOT_KNOWN,
            calls: calls::Calls::default(),
        }
    }

    /// The capture that it writes to.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Makes room for `words` words, in the capture that is open now; false when there is nothing to write to.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, words: usize) -> bool {
        (self.epoch == EPOCH.load(Ordering::Relaxed) && self.has_room(words)) || self.renew(words)
    }

    #[inline(always)]
    fn open(&mut self, op: OpenOp) {
        if self.open_len < MAX_OPEN && self.unlisted == 0 {
            self.open[self.open_len] = op;
            self.open_len += 1;
        } else {
            self.unlisted += 1;
        }
    }

    #[inline(always)]
    fn has_room(&self, words: usize) -> bool {
        (self.end as usize) - (self.cursor as usize) >= words * 8 + PAD_BYTES
    }

    /// The id of `name`, written to the capture before it is used; `None` when the table is full.
    #[inline(always)]
    pub(crate) unsafe fn name_id(&mut self, name: Name) -> Option<u32> {
        // SAFETY: the caller's promise.
        unsafe { self.known_name_id(name).or_else(|| self.intern(name)) }
    }

    /// The id of `name`, when this thread has met it in this capture.
    #[inline(always)]
    unsafe fn known_name_id(&self, name: Name) -> Option<u32> {
        let is_current = self.epoch == EPOCH.load(Ordering::Relaxed);
        // SAFETY: the caller's promise.
        if is_current { unsafe { self.names.find(name) } } else { None }
    }
}
