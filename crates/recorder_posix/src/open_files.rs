//! Open files: what descriptors that were duplicated have in common.

use crate::files::File;
use crate::mapped::Mapped;
use crate::refused::{Lack, count};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// As many at once; descriptors of more are not watched.
const MAX_OPEN: usize = 1 << 20;

static OPEN: Mapped<{ MAX_OPEN * size_of::<OpenFile>() }> = Mapped::new();
/// How many were ever open at once.
static USED: AtomicU32 = AtomicU32::new(0);
/// The first one that is free, and one, in the lower half; the upper half counts changes.
static FREE: AtomicU64 = AtomicU64::new(0);
/// How often this process was forked, or forked: open files are shared with the other one since.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The position is not known.
pub(crate) const UNKNOWN: i64 = -1;
/// What is written is written behind the end, wherever that is.
pub(crate) const APPENDS: i64 = -2;

/// An open file. Values of one that was closed meanwhile are of no use, and do no harm.
pub(crate) struct OpenFile {
    file: AtomicPtr<File>,
    /// Where the next byte is read or written.
    position: AtomicI64,
    /// [`FORKS`] when the position was learned.
    known_at: AtomicU32,
    /// Descriptors of it.
    links: AtomicU32,
    /// The next one that is free, and one.
    next_free: AtomicU32,
}

impl OpenFile {
    /// Its file.
    #[inline(always)]
    pub(crate) fn file(&self) -> Option<&'static File> {
        // SAFETY: null, or a file, which is never freed.
        unsafe { self.file.load(Ordering::Acquire).as_ref() }
    }

    /// Where the next byte is read or written, which `ask` finds out where it is not known.
    #[inline(always)]
    pub(crate) fn position(&self, ask: impl FnOnce() -> i64) -> Option<i64> {
        let position = self.position.load(Ordering::Relaxed);
        if position == APPENDS {
            return None;
        }
        if position >= 0 && self.known_at.load(Ordering::Relaxed) == FORKS.load(Ordering::Relaxed) {
            return Some(position);
        }
        self.set_position(ask());
        Some(self.position.load(Ordering::Relaxed)).filter(|position| *position >= 0)
    }

    /// Bytes were read or written there.
    #[inline(always)]
    pub(crate) fn advance(&self, bytes: i64) {
        if self.position.load(Ordering::Relaxed) >= 0 {
            self.position.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// It stands there now; negative: nobody knows.
    pub(crate) fn set_position(&self, position: i64) {
        if self.position.load(Ordering::Relaxed) == APPENDS {
            return;
        }
        self.position.store(position.max(UNKNOWN), Ordering::Relaxed);
        self.known_at.store(FORKS.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Another descriptor of it.
    pub(crate) fn link(&self) {
        self.links.fetch_add(1, Ordering::Relaxed);
    }
}

/// The process was forked, or forked another one.
pub(crate) fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The open file with a number below that of the first that was never used.
#[inline(always)]
pub(crate) fn get(number: u32) -> Option<&'static OpenFile> {
    let base = OPEN.base().cast::<OpenFile>();
    // SAFETY: within the mapping; all zero is an open file of no file.
    (!base.is_null() && (number as usize) < MAX_OPEN).then(|| unsafe { &*base.add(number as usize) })
}

/// A file is opened, with one descriptor; the number of what is open now. `None` where too many are,
/// which is counted.
pub(crate) fn open(file: &'static File, position: i64) -> Option<u32> {
    let number = pop().or_else(|| {
        let next = USED
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| ((used as usize) < MAX_OPEN).then_some(used + 1));
        next.ok()
    });
    let Some((number, open)) = number.and_then(|number| Some((number, get(number)?))) else {
        count(Lack::OpenFiles);
        return None;
    };
    open.file.store(std::ptr::from_ref(file).cast_mut(), Ordering::Release);
    open.links.store(1, Ordering::Relaxed);
    open.position.store(position, Ordering::Relaxed);
    open.known_at.store(FORKS.load(Ordering::Relaxed), Ordering::Relaxed);
    Some(number)
}

/// One of its descriptors is closed.
pub(crate) fn unlink(number: u32) {
    let Some(open) = get(number) else { return };
    let before = open.links.fetch_update(Ordering::AcqRel, Ordering::Acquire, |links| links.checked_sub(1));
    if before == Ok(1) {
        open.file.store(null_mut(), Ordering::Release);
        push(number);
    }
}

fn changed(first: u64, next: u32) -> u64 {
    (first >> 32).wrapping_add(1) << 32 | u64::from(next)
}

fn pop() -> Option<u32> {
    let mut first = FREE.load(Ordering::Acquire);
    loop {
        let number = (first as u32).checked_sub(1)?;
        let next = get(number)?.next_free.load(Ordering::Relaxed);
        match FREE.compare_exchange_weak(first, changed(first, next), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(number),
            Err(found) => first = found,
        }
    }
}

fn push(number: u32) {
    let Some(open) = get(number) else { return };
    let mut first = FREE.load(Ordering::Acquire);
    loop {
        open.next_free.store(first as u32, Ordering::Relaxed);
        match FREE.compare_exchange_weak(first, changed(first, number + 1), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(found) => first = found,
        }
    }
}
