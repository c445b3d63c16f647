//! One thread's buffer: where records are written.

mod calls;
mod collectives;
mod inputs;
mod records;
mod segments;

pub use calls::{outermost_call, pop_call, pop_calls, pop_outer_call, push_call, put_calls_around};
pub use collectives::describe_collective;
pub(crate) use records::truncated;

use crate::clock::ticks;
use crate::inputs::InputsCache;
use crate::names::{Name, NameCache};
use crate::session::{EPOCH, count_dropped};
use std::cell::{Cell, RefCell};
use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use stepscope_capture::inputs::Signature;
use stepscope_capture::layout::scope::LABEL;
use stepscope_capture::layout::{BeginWord, Tag, first_word};
use stepscope_capture::short::{Begin, Reference};

/// What names an open op between its begin and its end: an address or a token, unique while the op is open.
pub type OpenOp = usize;

/// Ops nested deeper than this are matched by order alone.
const MAX_OPEN: usize = 256;
/// How far ahead of the cursor memory is fetched for writing: the helper thread zeroed it on another processor, whose
/// cache still holds it.
const PREFETCH_BYTES: usize = 320;
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
    epoch: u64,
    open_len: usize,
    open: [OpenOp; MAX_OPEN],
    unlisted: usize,
    names: NameCache,
    /// Made when the first inputs are recorded.
    inputs: Option<Box<InputsCache>>,
    base: Option<NonNull<u8>>,
    /// True while this epoch has nothing to write to: no capture, or a full disk.
    is_dry: bool,
    ordinal: u32,
    part: u32,
    /// Calls of Python and of modules.
    calls: calls::Calls,
}

thread_local! {
    static BUFFER: Cell<*mut ThreadBuffer> = const { Cell::new(std::ptr::null_mut()) };
    pub(crate) static OWNER: RefCell<Owner> = const { RefCell::new(Owner { name: None, is_owning: false }) };
}

/// Frees the buffer when its thread ends. Apart from [`BUFFER`], so that the hot path needs no destructor check.
pub(crate) struct Owner {
    /// The name that the program gave the thread.
    pub(crate) name: Option<Box<[u8]>>,
    is_owning: bool,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let buffer = BUFFER.replace(DEAD);
        if self.is_owning && !buffer.is_null() && buffer != DEAD {
            // SAFETY: made by `Box::into_raw` for this thread, which ends.
            unsafe { Box::from_raw(buffer) }.retire();
        }
    }
}

/// Stands for the buffer of a thread that is past its end.
const DEAD: *mut ThreadBuffer = std::ptr::without_provenance_mut(8);

/// How a hook learns the framework's id of the calling thread; 0 while there is none.
static FRAMEWORK_THREAD: AtomicUsize = AtomicUsize::new(0);

/// Says how the framework's own id of the calling thread is found; asked once a thread and segment.
pub fn set_framework_thread(id_of_thread: extern "C" fn() -> u64) {
    FRAMEWORK_THREAD.store(id_of_thread as usize, Ordering::Release);
}

pub(crate) fn framework_thread() -> u64 {
    match FRAMEWORK_THREAD.load(Ordering::Acquire) {
        0 => 0,
        address => {
            // SAFETY: only ever set from a function of this type.
            let id_of_thread = unsafe { std::mem::transmute::<usize, extern "C" fn() -> u64>(address) };
            id_of_thread()
        }
    }
}

/// True once the calling thread has recorded something.
pub(crate) fn has_buffer() -> bool {
    !BUFFER.get().is_null()
}

/// True when the calling thread is past its end and cannot record any more.
pub(crate) fn is_past_end() -> bool {
    BUFFER.get() == DEAD
}

/// Runs `f` with the calling thread's buffer; `None` when the thread is past its end.
#[inline(always)]
pub(crate) fn with_buffer<R>(f: impl FnOnce(&mut ThreadBuffer) -> R) -> Option<R> {
    let buffer = BUFFER.get();
    let buffer = if buffer as usize <= DEAD as usize { first_use(buffer)? } else { buffer };
    // SAFETY: the buffer lives until its thread ends, and is only used by that thread; `f` does not re-enter.
    Some(f(unsafe { &mut *buffer }))
}

#[cold]
fn first_use(found: *mut ThreadBuffer) -> Option<*mut ThreadBuffer> {
    if found == DEAD {
        count_dropped();
        return None;
    }
    let marked = OWNER.try_with(|owner| owner.try_borrow_mut().map(|mut owner| owner.is_owning = true).is_ok());
    if !matches!(marked, Ok(true)) {
        return None;
    }
    let buffer = Box::into_raw(Box::new(ThreadBuffer::new()));
    BUFFER.set(buffer);
    Some(buffer)
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

/// The same with what the op is called with, which `inputs` puts together.
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
        if !buffer.calls.is_settled() && scope != LABEL {
            buffer.settle_calls();
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
            if buffer.reserve(1) {
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
            epoch: 0,
            open_len: 0,
            open: [0; MAX_OPEN],
            unlisted: 0,
            names: NameCache::new(),
            inputs: None,
            base: None,
            is_dry: false,
            ordinal: 0,
            part: 0,
            calls: calls::Calls::default(),
        }
    }

    /// Makes room for `words` words, in the capture that is open now; false when there is nothing to write to.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, words: usize) -> bool {
        (self.epoch == EPOCH.load(Ordering::Relaxed) && self.has_room(words)) || self.renew(words)
    }

    /// Writes a begin, as a short record when it fits one; the caller reserved [`LONGEST_FIXED`].
    #[inline(always)]
    fn write_begin(&mut self, begin: &Begin) {
        let short = self.reference.short_begin(begin);
        // As late as can be: what is done before is not the op's.
        self.write_begin_at(ticks(), short, begin);
    }

    #[inline(always)]
    fn write_begin_at(&mut self, at_ticks: u64, short: Option<(Tag, u32)>, begin: &Begin) {
        let word = short.and_then(|(tag, second)| Some((self.reference.short_word(at_ticks, tag)?, second)));
        match word {
            Some((first, second)) => {
                let at = self.cursor;
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
    fn write_end(&mut self, at_ticks: u64) {
        self.write_end_as(at_ticks, Tag::ShortEnd, Tag::End);
    }

    #[inline(always)]
    fn write_end_as(&mut self, at_ticks: u64, short: Tag, long: Tag) {
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

/// Writes the first half of a short record. The release keeps its other half ahead: whoever sees the first sees both.
#[inline(always)]
unsafe fn publish_half(at: *mut u32, first: u32) {
    // SAFETY: the caller's memory, aligned to 4 bytes.
    unsafe { (*at.cast::<AtomicU32>()).store(first, Ordering::Release) };
}

/// Writes the first word of a record in the same way.
#[inline(always)]
unsafe fn publish_word(at: *mut u64, first: u64) {
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
