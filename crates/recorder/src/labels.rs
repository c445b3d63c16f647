//! What the program itself says: labels, steps, names, metadata.

use crate::buffer::{
    self, LONGEST_FIXED, OWNER, OpenOp, begin, begin_with_inputs, end, framework_thread, has_buffer, truncated,
    with_buffer,
};
use crate::clock::{self, ticks};
use crate::names::Name;
use crate::session::STATE;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use stepscope_capture::inputs::Signature;
use stepscope_capture::layout::{Tag, scope};

/// The framework's scope of labels.
const USER_SCOPE: u8 = 7;

/// A label begins on the calling thread; gives the token that ends it.
pub fn begin_label(name: &str) -> OpenOp {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    // Odd, so that it never equals the address of an op.
    let token = NEXT.fetch_add(2, Ordering::Relaxed);
    begin_label_as(token, name);
    token
}

/// A label begins on the calling thread, and is ended by `token`, which no other open op or label of it has.
pub fn begin_label_as(token: OpenOp, name: &str) {
    // SAFETY: `name` lives; no name is known by the address of the empty one.
    unsafe { begin(c"".as_ptr(), || Name::text(name), scope::LABEL, -1, 0, token) };
}

/// As [`begin_label_as`], with what the label is called with, which `inputs` puts together without calling the
/// recorder.
pub fn begin_label_with_inputs(token: OpenOp, name: &str, inputs: impl FnOnce(&mut Signature)) {
    // SAFETY: as in `begin_label_as`.
    unsafe { begin_with_inputs(c"".as_ptr(), || Name::text(name), scope::LABEL, -1, 0, token, inputs) };
}

/// The label with this token ends.
pub fn end_label(token: OpenOp, name: &str) {
    // SAFETY: `name` lives.
    unsafe { end(token, || Name::text(name), framework_thread) }
}

/// A label begins whose name never moves: it is known by its address.
#[inline]
pub fn begin_constant_label(name: &'static CStr) -> OpenOp {
    thread_local! {
        /// Addresses are multiples of eight and other tokens odd: these are neither. Unlike those they need only be
        /// unique on their thread, where such a label also ends.
        static NEXT: Cell<OpenOp> = const { Cell::new(2) };
    }
    let token = NEXT.replace(NEXT.get().wrapping_add(4));
    // SAFETY: the text is terminated and lives for ever.
    unsafe { begin(name.as_ptr(), || Name::stable(name.as_ptr()), USER_SCOPE, -1, 0, token) };
    token
}

/// The label with this token, begun on this thread, ends.
#[inline]
pub fn end_constant_label(token: OpenOp, name: &'static CStr) {
    // SAFETY: the text is terminated and lives for ever.
    unsafe { end(token, || Name::stable(name.as_ptr()), framework_thread) }
}

/// Step `number` begins on the calling thread.
pub fn step_begin(number: i64) {
    append(Tag::StepBegin, &[number as u64], &[]);
}

/// Step `number` ends on the calling thread.
pub fn step_end(number: i64) {
    append(Tag::StepEnd, &[number as u64], &[]);
}

/// The step that is open on the calling thread is none: what ran since it began is outside of steps.
pub fn step_drop() {
    append(Tag::StepDropped, &[], &[]);
}

/// An optimizer has just stepped on the calling thread, which ends step `number`.
pub fn mark_step(number: i64) {
    append(Tag::NumberedOptimizerStep, &[number as u64], &[]);
}

/// Writes again who the calling thread is: a hook that came later may know its framework id.
pub fn reintroduce_thread() {
    with_buffer(|buffer| {
        if buffer.reserve(LONGEST_FIXED) {
            buffer.introduce(false, &[]);
        }
    });
}

/// Names the calling thread, now and in captures opened later.
pub fn name_thread(name: &str) {
    let name = truncated(name.as_bytes());
    let _ = OWNER.try_with(|owner| owner.try_borrow_mut().map(|mut owner| owner.name = Some(name.into())));
    if has_buffer() {
        append(Tag::ThreadName, &[name.len() as u64], name);
    }
}

pub(crate) fn append_metadata(key: &str, value: &str) {
    with_buffer(|buffer| buffer.append_metadata(key, value));
}

/// Clocks that were read closer together say nothing about the rate of ticks, ns.
const CLOCK_NS: i64 = 1_000_000;
/// When the clocks were read last.
static LAST_CLOCK_NS: AtomicI64 = AtomicI64::new(0);

/// Reads the clocks, whatever was read before: what comes last.
pub(crate) fn append_clock() {
    if buffer::is_past_end() {
        // The main thread in `atexit`: another one says it.
        let _ = std::thread::Builder::new().spawn(append_clock).map(std::thread::JoinHandle::join);
        return;
    }
    let now = clock::now();
    with_buffer(|buffer| buffer.append_clock(now));
    // Only now: who finds this relies on the record, which a new thread may have to wait for room for.
    LAST_CLOCK_NS.store(now.monotonic_ns, Ordering::Release);
}

/// Reads the clocks, unless they were read a moment ago. What follows is placed by the last two readings.
pub(crate) fn append_clock_unless_recent() {
    // The helper of a capture that is being opened is not heard yet.
    if STATE.lock().session.is_none() {
        return;
    }
    let since = clock::now().monotonic_ns - LAST_CLOCK_NS.load(Ordering::Acquire);
    if !(0..CLOCK_NS).contains(&since) {
        append_clock();
    }
}

/// A capture begins: its clocks are not those of the one before.
pub(crate) fn forget_clock() {
    LAST_CLOCK_NS.store(0, Ordering::Relaxed);
}

/// Writes any record but those of the hot path.
pub(crate) fn append(tag: Tag, words: &[u64], text: &[u8]) {
    with_buffer(|buffer| buffer.append(ticks(), tag, words, text));
}
