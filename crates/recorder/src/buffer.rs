//! One thread's buffer: where records are written.

use crate::clock::{self, ticks};
use crate::helper::fresh;
use crate::names::{Interned, MAX_NAME_BYTES, Name, NameCache};
use crate::session::{EPOCH, STATE, Segment, Session, count_dropped};
use std::cell::{Cell, RefCell};
use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use stepscope_capture::layout::{BeginWord, SEGMENT_BYTES, Tag, first_word, padded};

/// What names an open op between its begin and its end: an address or a token, unique while the op is open.
pub type OpenOp = usize;

/// Ops nested deeper than this are matched by order alone.
const MAX_OPEN: usize = 256;
/// A segment handed to another thread must have room for its introduction and some records.
const MIN_PARTIAL_BYTES: usize = 16 << 10;
/// Longest value of a fact that is kept whole.
const MAX_FACT_BYTES: usize = 8 << 10;
/// How far ahead of the cursor memory is fetched for writing: the helper thread zeroed it on another processor, whose
/// cache still holds it.
const PREFETCH_WORDS: usize = 40;
/// Words of the longest record of fixed length.
const LONGEST_FIXED: usize = 4;

/// The buffer of a thread that records.
struct ThreadBuffer {
    cursor: *mut u64,
    end: *mut u64,
    epoch: u64,
    open_len: usize,
    open: [OpenOp; MAX_OPEN],
    unlisted: usize,
    names: NameCache,
    base: Option<NonNull<u8>>,
    /// True while this epoch has nothing to write to: no capture, or a full disk.
    is_dry: bool,
    ordinal: u32,
    part: u32,
}

thread_local! {
    static BUFFER: Cell<*mut ThreadBuffer> = const { Cell::new(std::ptr::null_mut()) };
    static OWNER: RefCell<Owner> = const { RefCell::new(Owner { name: None, is_owning: false }) };
}

/// Frees the buffer when its thread ends. Apart from [`BUFFER`], so that the hot path needs no destructor check.
struct Owner {
    name: Option<Box<[u8]>>,
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

fn framework_thread() -> u64 {
    match FRAMEWORK_THREAD.load(Ordering::Acquire) {
        0 => 0,
        address => {
            // SAFETY: only ever set from a function of this type.
            let id_of_thread = unsafe { std::mem::transmute::<usize, extern "C" fn() -> u64>(address) };
            id_of_thread()
        }
    }
}

/// Runs `f` with the calling thread's buffer; `None` when the thread is past its end.
#[inline(always)]
fn with_buffer<R>(f: impl FnOnce(&mut ThreadBuffer) -> R) -> Option<R> {
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
    with_buffer(|buffer| {
        // SAFETY: the caller's promise.
        let known = unsafe { buffer.known_name_id(Name::stable(text)) };
        let id = match known {
            Some(id) => id,
            None => {
                let name = name();
                // SAFETY: as above.
                match unsafe { buffer.name_id(name) } {
                    Some(id) => id,
                    // SAFETY: as above.
                    None => return unsafe { buffer.begin_with_text(name, scope, op) },
                }
            }
        };
        let epoch = buffer.epoch;
        let Some(at) = buffer.reserve(LONGEST_FIXED) else { return };
        if buffer.epoch != epoch {
            // The id belongs to the capture before.
            return count_dropped();
        }
        let number_and_one = sequence_number.wrapping_add(1).max(0) as u64;
        let has_room = number_and_one <= BeginWord::SEQUENCE_NUMBERS;
        let (tag, words) = match (forward_thread != 0, has_room) {
            (false, true) => (Tag::Begin, 2),
            (true, true) => (Tag::BeginBackward, 3),
            (_, false) => (Tag::BeginSequence, 4),
        };
        let packed_number = if has_room { number_and_one } else { 0 };
        // SAFETY: `reserve` gave room for the longest of these records.
        unsafe {
            at.add(1).write(BeginWord::pack(id, scope & (BeginWord::SCOPES - 1), packed_number));
            match words {
                2 => {}
                3 => at.add(2).write(forward_thread),
                _ => {
                    at.add(2).write(sequence_number as u64);
                    at.add(3).write(forward_thread);
                }
            }
            buffer.open(op);
            buffer.publish(at, tag, words);
            prefetch_for_write(at.wrapping_add(PREFETCH_WORDS));
        }
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
            let Some(at) = buffer.reserve(1) else { return };
            // SAFETY: `reserve` gave room for one word.
            unsafe { buffer.publish_at(at, first_word(at_ticks, Tag::End), 1) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { buffer.end_out_of_order(op, name(), origin()) };
        }
    });
}

/// A label begins on the calling thread; gives the token that ends it.
pub fn begin_label(name: &str) -> OpenOp {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    const USER_SCOPE: u8 = 7;
    // Odd, so that it never equals the address of an op.
    let token = NEXT.fetch_add(2, Ordering::Relaxed);
    // SAFETY: `name` lives; no name is known by the address of the empty one.
    unsafe { begin(c"".as_ptr(), || Name::text(name), USER_SCOPE, -1, 0, token) };
    token
}

/// The label with this token ends.
pub fn end_label(token: OpenOp, name: &str) {
    // SAFETY: `name` lives.
    unsafe { end(token, || Name::text(name), framework_thread) }
}

/// Step `number` begins on the calling thread.
pub fn step_begin(number: i64) {
    append(Tag::StepBegin, &[number as u64], &[]);
}

/// Step `number` ends on the calling thread.
pub fn step_end(number: i64) {
    append(Tag::StepEnd, &[number as u64], &[]);
}

/// An optimizer has just stepped on the calling thread.
pub fn mark_optimizer_step() {
    append(Tag::OptimizerStep, &[], &[]);
}

/// Writes again who the calling thread is: a hook that came later may know its framework id.
pub fn reintroduce_thread() {
    with_buffer(|buffer| {
        if buffer.reserve(LONGEST_FIXED).is_some() {
            buffer.introduce(false, &[]);
        }
    });
}

/// Names the calling thread, now and in captures opened later.
pub fn name_thread(name: &str) {
    let name = truncated(name.as_bytes());
    let _ = OWNER.try_with(|owner| owner.try_borrow_mut().map(|mut owner| owner.name = Some(name.into())));
    if !BUFFER.get().is_null() {
        append(Tag::ThreadName, &[name.len() as u64], name);
    }
}

pub(crate) fn append_fact(key: &str, value: &str) {
    with_buffer(|buffer| buffer.append_fact(key, value));
}

pub(crate) fn append_clock() {
    with_buffer(|buffer| buffer.append_clock(clock::now()));
}

/// Writes any record but those of the hot path.
pub(crate) fn append(tag: Tag, words: &[u64], text: &[u8]) {
    with_buffer(|buffer| buffer.append(ticks(), tag, words, text));
}

impl ThreadBuffer {
    fn new() -> Self {
        Self {
            cursor: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
            epoch: 0,
            open_len: 0,
            open: [0; MAX_OPEN],
            unlisted: 0,
            names: NameCache::new(),
            base: None,
            is_dry: false,
            ordinal: 0,
            part: 0,
        }
    }

    /// Room for `words` words, in the capture that is open now; `None` when there is nothing to write to.
    #[inline(always)]
    fn reserve(&mut self, words: usize) -> Option<*mut u64> {
        if self.epoch == EPOCH.load(Ordering::Relaxed) && self.has_room(words) {
            return Some(self.cursor);
        }
        self.renew(words)
    }

    /// Writes the first word, which makes the record visible to a reader, and moves on.
    #[inline(always)]
    unsafe fn publish(&mut self, at: *mut u64, tag: Tag, words: usize) {
        // SAFETY: the caller reserved `words` at `at`.
        unsafe { self.publish_at(at, first_word(ticks(), tag), words) };
    }

    #[inline(always)]
    unsafe fn publish_at(&mut self, at: *mut u64, first: u64, words: usize) {
        // SAFETY: the caller reserved `words` at `at`, aligned to 8 bytes. The release keeps the record's other words
        // ahead of the first: whoever sees the first sees all.
        unsafe {
            (*at.cast::<AtomicU64>()).store(first, Ordering::Release);
            self.cursor = at.add(words);
        }
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

    /// An end whose op is not the innermost of this thread.
    #[cold]
    unsafe fn end_out_of_order(&mut self, op: OpenOp, name: Name, origin: u64) {
        if self.reserve(LONGEST_FIXED).is_none() {
            return;
        }
        if self.unlisted > 0 {
            self.unlisted -= 1;
            return self.append(ticks(), Tag::End, &[], &[]);
        }
        match self.open[..self.open_len].iter().rposition(|open| *open == op) {
            Some(at) => {
                let inside = self.open_len - 1 - at;
                self.open_len = at;
                match inside {
                    0 => self.append(ticks(), Tag::End, &[], &[]),
                    _ => self.append(ticks(), Tag::EndOuter, &[inside as u64], &[]),
                }
            }
            // SAFETY: the caller's promise about `name`.
            None => unsafe { self.end_elsewhere(name, origin) },
        }
    }

    /// An end whose op is not on this thread's stack.
    unsafe fn end_elsewhere(&mut self, name: Name, origin: u64) {
        // SAFETY: the caller's promise.
        let Some(id) = (unsafe { self.name_id(name) }) else { return count_dropped() };
        let epoch = self.epoch;
        if self.reserve(LONGEST_FIXED).is_none() {
            return;
        }
        if self.epoch != epoch {
            return count_dropped();
        }
        self.write(ticks(), Tag::EndElsewhere, &[u64::from(id), origin], &[]);
    }

    /// Writes any record but those of the hot path, into the capture that is open now.
    fn append(&mut self, at_ticks: u64, tag: Tag, words: &[u64], text: &[u8]) {
        if self.reserve(1 + words.len() + padded(text.len()) / 8).is_some() {
            self.write(at_ticks, tag, words, text);
        }
    }

    /// Writes a record into the segment at hand; counts it as dropped when there is no room.
    fn write(&mut self, at_ticks: u64, tag: Tag, words: &[u64], text: &[u8]) {
        let len = 1 + words.len() + padded(text.len()) / 8;
        if !self.has_room(len) {
            return count_dropped();
        }
        let at = self.cursor;
        // SAFETY: there is room for all words; the padding behind the text is zero, as all unwritten bytes are.
        unsafe {
            std::ptr::copy_nonoverlapping(words.as_ptr(), at.add(1), words.len());
            std::ptr::copy_nonoverlapping(text.as_ptr(), at.add(1 + words.len()).cast(), text.len());
            self.publish_at(at, first_word(at_ticks, tag), len);
        }
    }

    #[inline(always)]
    fn has_room(&self, words: usize) -> bool {
        (self.end as usize) - (self.cursor as usize) >= words * 8
    }

    fn append_fact(&mut self, key: &str, value: &str) {
        let (words, text) = fact_record(key, value);
        self.append(ticks(), Tag::Fact, &words, &text);
    }

    fn append_clock(&mut self, now: stepscope_capture::ClockPoint) {
        self.append(now.ticks, Tag::Clock, &[now.monotonic_ns as u64, now.unix_ns as u64], &[]);
    }

    /// The id of `name`, written to the capture before it is used; `None` when the table is full.
    #[inline(always)]
    unsafe fn name_id(&mut self, name: Name) -> Option<u32> {
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

    #[cold]
    unsafe fn intern(&mut self, name: Name) -> Option<u32> {
        // SAFETY: the caller's promise.
        let text = truncated(unsafe { name.bytes() });
        // Room first: it cannot be asked for under the lock. It also brings the buffer into the current epoch.
        self.reserve(2 + padded(text.len()) / 8)?;
        let mut state = STATE.lock();
        if self.epoch != EPOCH.load(Ordering::Acquire) {
            return None;
        }
        let interned = state.session.as_mut()?.names.intern(text);
        let (text, id) = match interned {
            Interned::Known(text, id) => (text, id),
            Interned::New(text, id) => {
                // Still under the lock: another thread that gets this id must find the name before its own records.
                self.write(ticks(), Tag::Name, &[u64::from(id) | (text.len() as u64) << 32], text);
                (text, id)
            }
            Interned::Full => return None,
        };
        drop(state);
        self.names.insert(name, text, id);
        Some(id)
    }

    /// A begin whose name has no room in the table.
    #[cold]
    unsafe fn begin_with_text(&mut self, name: Name, scope: u8, op: OpenOp) {
        // SAFETY: the caller's promise.
        let text = truncated(unsafe { name.bytes() });
        if self.reserve(2 + padded(text.len()) / 8).is_some() {
            self.append(ticks(), Tag::BeginText, &[text.len() as u64 | u64::from(scope) << 32], text);
            self.open(op);
        }
    }

    /// The slow path of `reserve`: another capture, or another segment of this one.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, words: usize) -> Option<*mut u64> {
        if self.is_dry && self.epoch == EPOCH.load(Ordering::Acquire) {
            count_dropped();
            return None;
        }
        let old = self.take_segment();
        let mut state = STATE.lock();
        state.open_inherited();
        // Read under the lock, after a forked child has opened its own capture.
        let epoch = EPOCH.load(Ordering::Acquire);
        let is_new_epoch = self.epoch != epoch;
        if is_new_epoch {
            self.enter(epoch);
        }
        let Some(session) = &mut state.session else {
            drop(state);
            old.into_iter().for_each(Segment::unmap);
            return self.run_dry();
        };
        match old {
            Some(segment) if !is_new_epoch => session.retired.push(segment),
            Some(segment) => segment.unmap(),
            None => {}
        }
        if is_new_epoch {
            (self.ordinal, session.next_ordinal) = (session.next_ordinal, session.next_ordinal + 1);
        }
        let facts = if self.ordinal == 0 && self.part == 0 { session.facts() } else { Vec::new() };
        let stocked = stocked_segment(session, is_new_epoch);
        let file = Arc::clone(&session.file);
        drop(state);
        // Mapping is slow, and nobody should wait for it.
        let Some(segment) = stocked.or_else(|| file.map_segment().ok().map(fresh)) else { return self.run_dry() };
        self.use_segment(segment);
        self.introduce(is_new_epoch, &facts);
        if !self.has_room(words) {
            count_dropped();
            return None;
        }
        Some(self.cursor)
    }

    /// This epoch has nothing to write to.
    fn run_dry(&mut self) -> Option<*mut u64> {
        self.is_dry = true;
        count_dropped();
        None
    }

    fn enter(&mut self, epoch: u64) {
        (self.epoch, self.is_dry, self.part) = (epoch, false, 0);
        (self.open_len, self.unlisted) = (0, 0);
        self.names.clear();
    }

    /// Writes who this thread is; at the beginning of the capture also what is known of the process.
    fn introduce(&mut self, is_new_epoch: bool, facts: &[(String, String)]) {
        // SAFETY: a plain system call.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u64;
        let who = u64::from(self.ordinal) | u64::from(self.part) << 32;
        self.part += 1;
        // Written into the segment at hand: asking for room could move to another capture, where the ordinal is another.
        self.write(ticks(), Tag::Thread, &[who, tid, framework_thread()], &[]);
        if is_new_epoch {
            let name = thread_name();
            self.write(ticks(), Tag::ThreadName, &[name.len() as u64], &name);
        }
        for (key, value) in facts {
            let (words, text) = fact_record(key, value);
            self.write(ticks(), Tag::Fact, &words, &text);
        }
    }

    fn use_segment(&mut self, segment: Segment) {
        self.cursor = segment.cursor.as_ptr();
        // SAFETY: one past the end of the mapping.
        self.end = unsafe { segment.base.add(SEGMENT_BYTES) }.as_ptr().cast();
        self.base = Some(segment.base);
    }

    fn take_segment(&mut self) -> Option<Segment> {
        let base = self.base.take()?;
        let cursor = NonNull::new(self.cursor)?;
        (self.cursor, self.end) = (std::ptr::null_mut(), std::ptr::null_mut());
        Some(Segment { base, cursor })
    }

    /// The thread ends: what is left of its segment serves another thread.
    fn retire(mut self) {
        let epoch = self.epoch;
        let Some(segment) = self.take_segment() else { return };
        let left = SEGMENT_BYTES - (segment.cursor.as_ptr() as usize - segment.base.as_ptr() as usize);
        let mut state = STATE.lock();
        match &mut state.session {
            Some(session) if epoch == EPOCH.load(Ordering::Acquire) => {
                let list = if left >= MIN_PARTIAL_BYTES { &mut session.partial } else { &mut session.retired };
                list.push(segment);
            }
            _ => segment.unmap(),
        }
    }
}

/// A segment for a thread: what an ended thread left for a new one, else one that is ready.
fn stocked_segment(session: &mut Session, is_new_thread: bool) -> Option<Segment> {
    if let Some(segment) = is_new_thread.then(|| session.partial.pop()).flatten() {
        return Some(segment);
    }
    session.helper.iter().for_each(|helper| helper.thread().unpark());
    session.ready.pop()
}

/// The words and the text of a fact's record.
fn fact_record(key: &str, value: &str) -> ([u64; 1], Vec<u8>) {
    let key = &key.as_bytes()[..key.len().min(MAX_FACT_BYTES)];
    let value = &value.as_bytes()[..value.len().min(MAX_FACT_BYTES)];
    ([key.len() as u64 | (value.len() as u64) << 32], [key, value].concat())
}

/// Asks for the cache line at `address`, which need not be mapped.
#[inline(always)]
fn prefetch_for_write(address: *const u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; it never faults.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_ET0 }>(address.cast());
    }
}

fn truncated(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_NAME_BYTES)]
}

/// The name given by `name_thread`, else the system's.
fn thread_name() -> Vec<u8> {
    let given = OWNER.try_with(|owner| owner.try_borrow().ok().and_then(|owner| owner.name.clone())).ok().flatten();
    if let Some(name) = given {
        return name.into();
    }
    let mut name = [0u8; 16];
    // SAFETY: the call writes at most 16 bytes, zero-terminated.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    name[..len].to_vec()
}
