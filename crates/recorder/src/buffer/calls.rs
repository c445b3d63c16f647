//! The calls that a thread is inside of. A call is written when something is recorded inside it, with the time at which
//! it began; most calls never are, and cost no more than a few stores.
//!
//! ```text
//! main ─ step ─ forward      written:  main step              nothing is pending
//!                ▲           pending:             forward     an op begins: `forward` is written before it
//! ```

use super::owner::own_buffer;
use super::{LONGEST_FIXED, ThreadBuffer, with_buffer};
use crate::call_names::CallName;
use crate::calls::{CALLS_EPOCH, OpenCall, are_all_written, take_seeds};
use crate::clock::ticks;
use crate::names::Name;
use crate::session::{EPOCH, count_dropped};
use std::sync::atomic::Ordering;
use stepscope_capture::layout::scope::PYTHON_CALL;
use stepscope_capture::layout::{Tag, padded};
use stepscope_capture::short::Begin;

/// The number of what is not a collection.
const NO_NUMBER: i8 = -1;
/// Calls deeper than this are counted and not kept.
const MAX_CALLS: usize = 1 << 17;

#[derive(Clone, Copy)]
struct Call {
    key: usize,
    name: &'static CallName,
    /// When it began.
    ticks: u64,
    scope: u8,
    /// The generation of a collection; negative: none.
    number: i8,
}

/// A thread's stack of calls. The first `written` of it are in the capture.
#[derive(Default)]
pub(crate) struct Calls {
    stack: Vec<Call>,
    written: usize,
    /// Calls too deep to keep.
    deeper: usize,
    /// False while the thread may be inside of calls that the stack does not have.
    is_complete: bool,
    /// The calls' epoch that the stack belongs to.
    epoch: u64,
    /// The epoch while everything is written, else 0.
    all_written_epoch: u64,
    /// The epoch while all calls are wanted and nothing is in the way of writing one as it begins, else 0.
    ready: u64,
}

impl Calls {
    /// True when nothing is pending, nor has anybody started or stopped to record calls.
    #[inline(always)]
    pub(crate) fn has_no_pending_calls(&self) -> bool {
        self.all_written_epoch == CALLS_EPOCH.load(Ordering::Relaxed)
    }

    /// Nothing is written in a capture that was just entered.
    pub(crate) fn forget_written(&mut self) {
        self.written = 0;
        self.note_written();
    }

    #[inline(always)]
    fn note_written(&mut self) {
        self.all_written_epoch = if self.written == self.stack.len() { self.epoch } else { 0 };
        self.ready = if self.is_complete && self.deeper == 0 && are_all_written() { self.all_written_epoch } else { 0 };
    }

    /// True when the next call can be written as it begins.
    #[inline(always)]
    fn is_ready(&self) -> bool {
        self.ready == CALLS_EPOCH.load(Ordering::Relaxed)
    }

    /// A call begins that is not written for now.
    fn push_pending(&mut self, call: Call) {
        self.stack.push(call);
        (self.all_written_epoch, self.ready) = (0, 0);
    }

    /// Forgets calls of another epoch; takes those that the thread was inside of when recording began.
    #[cold]
    fn renew(&mut self) {
        self.epoch = CALLS_EPOCH.load(Ordering::Acquire);
        let (ticks, open) = take_seeds();
        self.stack.clear();
        (self.written, self.deeper) = (0, 0);
        self.is_complete = !open.is_empty();
        let calls = open.iter().take(MAX_CALLS);
        self.stack.extend(calls.map(|call| Call {
            key: call.key,
            name: call.name,
            ticks,
            scope: call.scope,
            number: NO_NUMBER,
        }));
        self.note_written();
    }

    #[inline(always)]
    fn is_current(&self) -> bool {
        self.epoch == CALLS_EPOCH.load(Ordering::Relaxed)
    }
}

/// A call begins on the calling thread. It is written at once when `is_written` or when all are. False when the thread
/// may be inside of calls that are not known: see [`set_outer_calls`].
#[inline(always)]
pub fn push_call(key: usize, name: &'static CallName, scope: u8, number: i8, is_written: bool) -> bool {
    // SAFETY: nothing below comes back here. Not by `with_buffer`, whose closure would get all of these in memory.
    match unsafe { own_buffer() } {
        Some(buffer) => buffer.push_call(key, name, scope, number, is_written),
        None => true,
    }
}

/// The calls around those that the calling thread is known to be inside of, outermost first. They count from now on.
pub fn set_outer_calls(outer: &[OpenCall]) {
    with_buffer(|buffer| {
        let calls = &mut buffer.calls;
        if !calls.is_current() {
            calls.renew();
        }
        calls.is_complete = true;
        // What is written keeps its place: it cannot be moved into a call any more.
        if calls.written == 0 {
            let ticks = calls.stack.first().map_or_else(ticks, |call| call.ticks);
            let room = MAX_CALLS.saturating_sub(calls.stack.len());
            let outer = outer[outer.len().saturating_sub(room)..].iter();
            let outer =
                outer.map(|call| Call { key: call.key, name: call.name, ticks, scope: call.scope, number: NO_NUMBER });
            calls.stack.splice(0..0, outer);
            calls.note_written();
        }
        if are_all_written() {
            buffer.write_pending_calls();
        }
    });
}

/// The outermost call with this scope that the calling thread is inside of: its key.
pub fn outermost_call(scope: u8) -> Option<usize> {
    let find = |buffer: &mut ThreadBuffer| {
        let calls = &buffer.calls;
        let found = calls.stack.iter().filter(|_| calls.is_current()).find(|call| call.scope == scope);
        found.map(|call| call.key)
    };
    with_buffer(find).flatten()
}

/// The call with this key, the innermost, ends on the calling thread. False, and nothing happens, when it is not that.
#[inline(always)]
pub fn pop_call(key: usize) -> bool {
    // SAFETY: as in `push_call`.
    match unsafe { own_buffer() } {
        Some(buffer) => buffer.pop_call(key),
        None => true,
    }
}

/// The call with this key ends on the calling thread, and with it those inside it whose end nobody saw. Nothing happens
/// when it is not known, or lies around a call of the scope `within`.
#[cold]
pub fn pop_outer_call(key: usize, within: Option<u8>) {
    with_buffer(|buffer| {
        let stack = &buffer.calls.stack;
        let mut inner = stack.iter().rev().take_while(|call| Some(call.scope) != within);
        if let Some(above) = inner.position(|call| call.key == key) {
            let at = stack.len() - 1 - above;
            buffer.end_calls_from(at);
        }
    });
}

/// All calls that the calling thread is inside of end: somebody else is told of its calls from here on.
#[cold]
pub fn pop_calls() {
    with_buffer(|buffer| {
        buffer.calls.is_complete = false;
        buffer.end_calls_from(0);
    });
}

impl ThreadBuffer {
    fn push_call(&mut self, key: usize, name: &'static CallName, scope: u8, number: i8, is_written: bool) -> bool {
        if number < 0 && self.calls.is_ready() && self.write_at_once(key, name, scope) {
            return true;
        }
        let calls = &mut self.calls;
        if !calls.is_current() {
            calls.renew();
        }
        if calls.stack.len() >= MAX_CALLS {
            self.drop_deep_call();
            return true;
        }
        calls.push_pending(Call { key, name, ticks: ticks(), scope, number });
        let is_complete = calls.is_complete;
        // What is written cannot be moved into those around it, which the caller now puts there.
        if (is_written || are_all_written()) && (is_complete || scope != PYTHON_CALL) {
            self.write_pending_calls();
        }
        is_complete
    }

    /// Writes a call that begins now; false, and nothing is done, where its name is new or there is no room.
    #[inline(always)]
    fn write_at_once(&mut self, key: usize, name: &'static CallName, scope: u8) -> bool {
        let depth = self.calls.stack.len();
        let has_room = self.has_room(LONGEST_FIXED) && depth < self.calls.stack.capacity().min(MAX_CALLS);
        let is_here = self.epoch == EPOCH.load(Ordering::Relaxed);
        let Some(id) = name.id(self.epoch).filter(|_| is_here && has_room) else { return false };
        let at_ticks = ticks();
        self.calls.stack.push(Call { key, name, ticks: at_ticks, scope, number: NO_NUMBER });
        self.calls.written = depth + 1;
        let sequence_number = i64::from(NO_NUMBER);
        self.write_begin_of_call(at_ticks, &Begin { name: id, scope, sequence_number, forward_thread: 0 });
        true
    }

    fn pop_call(&mut self, key: usize) -> bool {
        let calls = &mut self.calls;
        if !calls.is_ready() {
            if !calls.is_current() {
                calls.renew();
            }
            if calls.deeper > 0 {
                calls.deeper -= 1;
                calls.note_written();
                return true;
            }
        }
        if calls.stack.last().is_none_or(|call| call.key != key) {
            return false;
        }
        calls.stack.pop();
        if calls.written > calls.stack.len() {
            self.end_written_call();
        } else {
            calls.note_written();
        }
        true
    }

    /// Writes the calls that are pending, when any are.
    #[inline(always)]
    pub(crate) fn flush_pending_calls(&mut self) {
        if !self.calls.has_no_pending_calls() {
            self.write_pending_calls();
        }
    }

    /// Writes the calls that are pending.
    #[cold]
    #[inline(never)]
    pub(crate) fn write_pending_calls(&mut self) {
        if !self.calls.is_current() {
            self.calls.renew();
        }
        while self.calls.written < self.calls.stack.len() {
            // Room first: it may lead into another capture, in which nothing is written so far.
            if !self.reserve(LONGEST_FIXED) {
                return;
            }
            let (epoch, written) = (self.epoch, self.calls.written);
            let call = self.calls.stack[written];
            if self.write_call(&call) && self.epoch == epoch {
                self.calls.written = written + 1;
            } else if self.epoch == epoch || self.is_dry {
                return;
            }
        }
        self.calls.note_written();
    }

    /// Writes one call; false when it could not be, or in another capture.
    fn write_call(&mut self, call: &Call) -> bool {
        let epoch = self.epoch;
        let id = match call.name.id(epoch) {
            Some(id) => id,
            None => {
                // SAFETY: names of calls live for ever.
                let name = unsafe { Name::text(call.name.text()).with_overload(call.name.detail().as_ptr()) };
                // SAFETY: as above.
                let Some(id) = (unsafe { self.intern(name) }) else {
                    return self.write_call_with_text(call);
                };
                if self.epoch == epoch {
                    call.name.set_id(epoch, id);
                }
                id
            }
        };
        if !self.reserve(LONGEST_FIXED) || self.epoch != epoch {
            return false;
        }
        let begin = Begin { name: id, scope: call.scope, sequence_number: i64::from(call.number), forward_thread: 0 };
        self.write_begin_of_call(call.ticks, &begin);
        true
    }

    /// Writes a call whose name has no room in the table.
    fn write_call_with_text(&mut self, call: &Call) -> bool {
        let (epoch, text) = (self.epoch, call.name.text().as_bytes());
        if !self.reserve(2 + padded(text.len()) / 8) || self.epoch != epoch {
            return false;
        }
        self.write_begin_text(call.ticks, text, call.scope);
        true
    }

    /// The end of the call that was the innermost and is written. Where nothing was pending, nothing is.
    #[inline(always)]
    fn end_written_call(&mut self) {
        let at_ticks = ticks();
        self.calls.written = self.calls.stack.len();
        // Another capture does not know the call.
        if self.epoch == EPOCH.load(Ordering::Relaxed) && !self.end_inline_call(at_ticks) && self.reserve(1) {
            self.write_end_as(at_ticks, Tag::ShortCallEnd, Tag::CallEnd);
        }
    }

    #[cold]
    fn end_calls_from(&mut self, at: usize) {
        while self.calls.stack.len() > at {
            self.calls.stack.pop();
            if self.calls.written > self.calls.stack.len() {
                self.end_written_call();
            }
        }
        self.calls.note_written();
    }

    #[cold]
    fn drop_deep_call(&mut self) {
        self.calls.deeper += 1;
        self.calls.ready = 0;
        count_dropped();
    }
}
