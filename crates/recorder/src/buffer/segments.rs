//! Where a buffer's memory comes from and goes to: another segment of the same capture, or another capture.

use super::records::fact_record;
use super::write::InlineEnd;
use super::{OWNER, ThreadBuffer, framework_thread};
use crate::clock::{self, ticks};
use crate::helper::fresh;
use crate::session::{EPOCH, STATE, Segment, Session, count_dropped};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use stepscope_capture::layout::{SEGMENT_BYTES, Tag};
use stepscope_capture::short::Reference;

/// A segment handed to another thread must have room for its introduction and some records.
const MIN_PARTIAL_BYTES: usize = 16 << 10;

impl ThreadBuffer {
    /// The slow path of `reserve`: another capture, or another segment of this one.
    #[cold]
    #[inline(never)]
    pub(crate) fn renew(&mut self, words: usize) -> bool {
        if self.is_dry && self.epoch == EPOCH.load(Ordering::Acquire) {
            count_dropped();
            return false;
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
        let metadata = if self.ordinal == 0 && self.part == 0 { session.metadata() } else { Vec::new() };
        let is_named = is_new_epoch || session.is_ring();
        let stocked = stocked_segment(session, is_new_epoch);
        let free = if stocked.is_none() { session.free.take() } else { None };
        let file = Arc::clone(&session.file);
        drop(state);
        // Mapping is slow, and nobody should wait for it.
        let mapped = || match free {
            Some((index, generation)) => file.reuse_segment(index, generation),
            None => file.map_segment(),
        };
        let Some(segment) = stocked.or_else(|| mapped().ok().map(fresh)) else { return self.run_dry() };
        self.use_segment(segment);
        self.introduce(is_named, &metadata);
        if !self.has_room(words) {
            count_dropped();
        }
        self.has_room(words)
    }

    /// This epoch has nothing to write to.
    pub(crate) fn run_dry(&mut self) -> bool {
        self.is_dry = true;
        count_dropped();
        false
    }

    pub(crate) fn enter(&mut self, epoch: u64) {
        (self.epoch, self.is_dry, self.part) = (epoch, false, 0);
        (self.open_len, self.left_len, self.unlisted) = (0, 0, 0);
        self.calls.forget_written();
        self.names.clear();
        self.inputs.iter_mut().for_each(|inputs| inputs.clear());
    }

    /// Writes who this thread is: its name too at its beginning, and always in a ring, which forgets beginnings; at the
    /// beginning of the capture also what is known of the process.
    pub(crate) fn introduce(&mut self, is_named: bool, metadata: &[(String, String)]) {
        // SAFETY: a plain system call.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u64;
        // SAFETY: as above.
        let handle = unsafe { libc::pthread_self() } as u32;
        let who = u64::from(self.ordinal) | u64::from(self.part) << 32;
        self.part += 1;
        // Written into the segment at hand: asking for room could move to another capture, where the ordinal is
        // another.
        let at_ticks = ticks();
        self.write(
            at_ticks,
            Tag::Thread,
            &[who, tid & u64::from(u32::MAX) | u64::from(handle) << 32, framework_thread()],
            &[],
        );
        self.reference = Reference::at_thread(at_ticks);
        self.repeat_profiler_state();
        if is_named {
            let name = thread_name();
            self.write(ticks(), Tag::ThreadName, &[name.len() as u64], &name);
        }
        for (key, value) in metadata {
            let (words, text) = fact_record(key, value);
            self.write(ticks(), Tag::Fact, &words, &text);
        }
    }

    pub(crate) fn use_segment(&mut self, segment: Segment) {
        self.cursor = segment.cursor.as_ptr();
        (self.inline_end, self.inline_call_end) = (InlineEnd::NONE, InlineEnd::NONE);
        // SAFETY: one past the end of the mapping.
        self.end = unsafe { segment.base.add(SEGMENT_BYTES) }.as_ptr().cast();
        self.base = Some(segment.base);
    }

    pub(crate) fn take_segment(&mut self) -> Option<Segment> {
        let base = self.base.take()?;
        let cursor = NonNull::new(self.cursor)?;
        (self.cursor, self.end) = (std::ptr::null_mut(), std::ptr::null_mut());
        Some(Segment { base, cursor, left_ns: 0 })
    }

    /// The thread ends: what is left of its segment serves another thread.
    pub(crate) fn retire(mut self) {
        let epoch = self.epoch;
        let Some(mut segment) = self.take_segment() else { return };
        segment.left_ns = clock::monotonic_ns();
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

/// The name given by `name_thread`, else the system's; empty when that is not the thread's own: a thread begins with
/// the name of the one that started it, in most programs the process'.
fn thread_name() -> Vec<u8> {
    let given = OWNER.try_with(|owner| owner.try_borrow().ok().and_then(|owner| owner.name.clone())).ok().flatten();
    if let Some(name) = given {
        return name.into();
    }
    let mut name = [0u8; 16];
    // SAFETY: the call writes at most 16 bytes, zero-terminated.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    // SAFETY: plain system calls.
    let is_first = unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
    let of_process = std::fs::read("/proc/self/comm").unwrap_or_default();
    if !is_first && of_process.strip_suffix(b"\n") == Some(&name[..len]) {
        return Vec::new();
    }
    name[..len].to_vec()
}
