//! What calls on files that are watched should have moved, as the system counts it: where that is more than what is
//! recorded, something went past the C library.
//!
//! The system counts the bytes of every `read` and `write` of a thread, whatever it is of. What this library sees to be of
//! something else is subtracted. Only threads that live when the process ends are looked at: what the others moved, the
//! system adds to what finished children moved.

use crate::mapped::Mapped;
use std::cell::Cell;
use std::fmt::Write;
use std::ptr::null;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use stepscope_recorder::{IoAction, IoFunction};

/// Metadata: of each thread its number, and the bytes that were read and written.
pub(crate) const KEY: &str = "io_bytes_of_system";

/// Threads of which is known what they moved elsewhere; of more nothing is said.
const MOST: usize = 1 << 16;

static TABLE: Mapped<{ MOST * size_of::<Elsewhere>() }> = Mapped::new();
static USED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<*const Elsewhere> = const { Cell::new(null()) };
}

/// The bytes that a thread moved where nothing is recorded, by calls that this library has seen; those from before it was
/// there, too.
struct Elsewhere {
    tid: AtomicU32,
    read: AtomicU64,
    written: AtomicU64,
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Written,
}

impl Way {
    /// That of a function that moves bytes.
    pub(crate) fn of(function: IoFunction) -> Self {
        if function.action() == IoAction::Write { Self::Written } else { Self::Read }
    }
}

/// The calling thread moved bytes of something that is not watched.
#[inline]
pub(crate) fn elsewhere(way: Way, moved: usize) {
    let mine = MINE.get();
    // SAFETY: null, or in the table, which is never unmapped.
    let Some(mine) = unsafe { mine.as_ref() }.or_else(first) else { return };
    let bytes = if way == Way::Read { &mine.read } else { &mine.written };
    // Nobody else adds to it.
    bytes.store(bytes.load(Ordering::Relaxed).wrapping_add(moved as u64), Ordering::Relaxed);
}

/// Recording begins: what threads have moved so far is of no interest.
pub(crate) fn begin() {
    for tid in threads() {
        if let (Some(known), Some((read, written))) = (of_thread(tid), counted(tid)) {
            known.read.store(read, Ordering::Relaxed);
            known.written.store(written, Ordering::Relaxed);
        }
    }
}

/// In a forked child, which has moved nothing: what there is is of the threads of its parent.
pub(crate) fn forget() {
    all().for_each(|of_parent| of_parent.tid.store(0, Ordering::Relaxed));
    USED.store(0, Ordering::Release);
    MINE.set(null());
}

/// What the threads that live now should have moved on files that are watched, as metadata say it.
pub(crate) fn of_system() -> String {
    let mut text = String::new();
    for tid in threads() {
        let Some((read, written)) = counted(tid) else { continue };
        let known = all().find(|known| known.tid.load(Ordering::Acquire) == tid);
        let elsewhere = |of: fn(&Elsewhere) -> &AtomicU64| known.map_or(0, |known| of(known).load(Ordering::Relaxed));
        let read = read.saturating_sub(elsewhere(|known| &known.read));
        let written = written.saturating_sub(elsewhere(|known| &known.written));
        if read > 0 || written > 0 {
            let _ = write!(text, "{}{tid}:{read}:{written}", if text.is_empty() { "" } else { " " });
        }
    }
    text
}

fn threads() -> impl Iterator<Item = u32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok())
}

/// The bytes that a thread has read and written by system calls.
fn counted(tid: u32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/io")).ok()?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((number("rchar:")?, number("wchar:")?))
}

fn all() -> impl Iterator<Item = &'static Elsewhere> {
    let used = USED.load(Ordering::Acquire).min(MOST);
    let base = if used == 0 { null() } else { TABLE.base().cast::<Elsewhere>().cast_const() };
    let used = if base.is_null() { 0 } else { used };
    // SAFETY: within the table, which is zero where nothing was stored.
    (0..used).map(move |at| unsafe { &*base.add(at) })
}

/// The calling thread moves bytes for the first time. One that had its number before may have moved some: then less is
/// missing than is.
#[cold]
fn first() -> Option<&'static Elsewhere> {
    // SAFETY: a plain system call.
    let mine = of_thread(unsafe { libc::syscall(libc::SYS_gettid) as u32 })?;
    MINE.set(mine);
    Some(mine)
}

/// What is known of a thread, of which nothing was known before where there is none.
fn of_thread(tid: u32) -> Option<&'static Elsewhere> {
    let base = TABLE.base().cast::<Elsewhere>();
    if base.is_null() {
        return None;
    }
    all().find(|known| known.tid.load(Ordering::Acquire) == tid).or_else(|| {
        let next = |used: usize| (used < MOST).then_some(used + 1);
        let at = USED.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
        // SAFETY: as above.
        let new = unsafe { &*base.add(at) };
        new.read.store(0, Ordering::Relaxed);
        new.written.store(0, Ordering::Relaxed);
        new.tid.store(tid, Ordering::Release);
        Some(new)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_counts_of_their_own() {
        let of_thread = || {
            elsewhere(Way::Read, 10);
            elsewhere(Way::Written, 1);
            elsewhere(Way::Read, 5);
            // SAFETY: it was set above, and lies in the table.
            let mine = unsafe { &*MINE.get() };
            (mine.read.load(Ordering::Relaxed), mine.written.load(Ordering::Relaxed))
        };
        let started: Vec<_> = (0..20).map(|_| std::thread::spawn(of_thread)).collect();
        assert!(started.into_iter().all(|thread| thread.join().unwrap() == (15, 1)));
        let own = std::fs::read_link("/proc/thread-self").unwrap();
        let own = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
        assert!(threads().any(|tid| tid == own));
        let before = counted(own).unwrap().0;
        let text = std::fs::read("/proc/self/stat").unwrap();
        assert!(counted(own).unwrap().0 >= before + text.len() as u64);
    }
}
