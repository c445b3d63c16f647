//! Whether a process records now, for those that it forks: a number in memory that parent and children share.
//!
//! The parent changes it where it switches; a child reads it where it likes. Neither needs a system call.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A bit that is set once something was published, and one that says whether to record; the cycle lies above.
const IS_PUBLISHED: u64 = 1;
const IS_ON: u64 = 2;
const CYCLE_SHIFT: u32 = 2;

const PAGE_BYTES: usize = 4096;

/// What this process says to those that it forks: of each capture a number of its own.
static OURS: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());
/// What the process says that this one was forked from.
static PARENTS: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// A capture is opened, under the session's lock: what children of the one before follow is as it was left.
pub(crate) fn begin() {
    let before = OURS.load(Ordering::Acquire);
    let next = before.wrapping_add(1);
    let has_next = !before.is_null() && !next.addr().is_multiple_of(PAGE_BYTES);
    OURS.store(if has_next { next } else { new_page() }, Ordering::Release);
}

/// A page of numbers that nobody has set; null where the system has none.
fn new_page() -> *mut AtomicU64 {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, which is zero.
    let page = unsafe { libc::mmap(null_mut(), PAGE_BYTES, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED { null_mut() } else { page.cast() }
}

/// Publishes to processes that are forked, and to those that were since the capture was opened, whether to record now,
/// and in which cycle.
pub fn publish_to_children(is_on: bool, cycle: u64) {
    let number = IS_PUBLISHED | if is_on { IS_ON } else { 0 } | cycle << CYCLE_SHIFT;
    // SAFETY: null, or a number in memory that is never unmapped.
    if let Some(ours) = unsafe { OURS.load(Ordering::Acquire).as_ref() } {
        ours.store(number, Ordering::Release);
    }
}

/// Whether the process that this one was forked from records now, and in which cycle; `None` where it has not published
/// it.
pub fn parent_window() -> Option<(bool, u64)> {
    // SAFETY: as above.
    let number = unsafe { PARENTS.load(Ordering::Acquire).as_ref() }?.load(Ordering::Acquire);
    (number & IS_PUBLISHED != 0).then_some((number & IS_ON != 0, number >> CYCLE_SHIFT))
}

/// In a forked child: what was ours is the parent's. One that says nothing itself leaves its own children its parent's.
pub(crate) fn become_child() {
    let parents = OURS.swap(null_mut(), Ordering::AcqRel);
    if !parents.is_null() {
        PARENTS.store(parents, Ordering::Release);
    }
}
