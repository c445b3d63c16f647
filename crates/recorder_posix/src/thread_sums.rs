//! What each thread has moved by calls of which there is no record: one entry a thread, which it alone adds to. What threads
//! moved that have ended is added up, and their entries are used again.
//!
//! ```text
//! entries   [ main ]  [ worker ]  [ ended: free ]
//! the end of a thread ─▶ added to what ended threads have ─▶ its entry is free
//! ```

use crate::mapped::Mapped;
use crate::start::{Inside, is_vforked};
use crate::unseen;
use std::cell::Cell;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use stepscope_recorder::{ForkGuard, ForkLock};

/// Threads at once of which something is known; of more nothing is said.
const MOST: usize = 1 << 16;
/// How many sums there are of a thread, and those of sockets among them.
const SUMS: usize = 8;
const OF_SOCKETS: Range<usize> = 2..8;

static TABLE: Mapped<{ MOST * size_of::<ThreadSums>() }> = Mapped::new();
/// How many were ever in use at once.
static USED: AtomicUsize = AtomicUsize::new(0);
/// What is left of threads that have ended.
static ENDED: ForkLock<Ended> = ForkLock::new(Ended::NONE);

thread_local! {
    static MINE: Cell<*const ThreadSums> = const { Cell::new(null()) };
}

/// What is summed up of a thread.
#[derive(Clone, Copy)]
pub(crate) enum Sum {
    /// Bytes that were read where nothing is recorded.
    ReadElsewhere,
    /// Bytes that were written there.
    WrittenElsewhere,
    /// Over sockets to the network: calls, and the bytes that were received and sent.
    NetworkCalls,
    NetworkReceived,
    NetworkSent,
    /// Over sockets to processes of the same host.
    LocalCalls,
    LocalReceived,
    LocalSent,
}

/// The sums of a thread. On cache lines of its own.
#[repr(align(64))]
pub(crate) struct ThreadSums {
    tid: AtomicU32,
    sums: [AtomicU64; SUMS],
}

/// The thread of such an entry has ended: the entry is free. A system has no thread with this bit.
const HAS_ENDED: u32 = 1 << 31;

/// That of threads which there is no room for, or which are about to end: it means nothing.
static NOBODY: ThreadSums = ThreadSums { tid: AtomicU32::new(0), sums: [const { AtomicU64::new(0) }; SUMS] };

impl ThreadSums {
    #[inline]
    pub(crate) fn get(&self, sum: Sum) -> u64 {
        self.sums[sum as usize].load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, sum: Sum, value: u64) {
        self.sums[sum as usize].store(value, Ordering::Relaxed);
    }

    /// By the thread whose it is: nobody else adds to it.
    #[inline]
    pub(crate) fn add(&self, sum: Sum, more: u64) {
        self.set(sum, self.get(sum).wrapping_add(more));
    }

    fn clear(&self, tid: u32) {
        self.sums.iter().for_each(|sum| sum.store(0, Ordering::Relaxed));
        self.tid.store(tid, Ordering::Release);
    }
}

/// What threads have left that have ended.
pub(crate) struct Ended {
    /// Bytes that the system counted as read and written by them, less what they moved elsewhere.
    pub(crate) on_files: [u64; 2],
    /// The sums of sockets, less those of all threads when recording began.
    sockets: [u64; OF_SOCKETS.end - OF_SOCKETS.start],
}

impl Ended {
    const NONE: Self = Self { on_files: [0; 2], sockets: [0; OF_SOCKETS.end - OF_SOCKETS.start] };
}

/// The sums of the calling thread, which is known from now on.
#[inline]
pub(crate) fn mine() -> &'static ThreadSums {
    // SAFETY: null, or never unmapped.
    unsafe { MINE.get().as_ref() }.unwrap_or_else(first)
}

/// What is known of a thread, if it has not ended.
pub(crate) fn known(tid: u32) -> Option<&'static ThreadSums> {
    all().find(|known| known.tid.load(Ordering::Acquire) == tid)
}

/// Whether a thread of which the system still knows has left what it had.
pub(crate) fn has_ended(tid: u32) -> bool {
    known(tid | HAS_ENDED).is_some()
}

/// What threads have left that have ended; while it is held, none does.
pub(crate) fn ended() -> ForkGuard<'static, Ended> {
    ENDED.lock()
}

/// Recording begins.
pub(crate) fn begin() {
    let mut ended = ENDED.lock();
    *ended = Ended::NONE;
    ended.sockets = of_sockets(&ended).map(u64::wrapping_neg);
}

/// Of all threads: the sums of sockets, since recording began.
pub(crate) fn of_sockets(ended: &Ended) -> [u64; OF_SOCKETS.end - OF_SOCKETS.start] {
    let mut sums = ended.sockets;
    for entry in all() {
        for (sum, more) in sums.iter_mut().zip(&entry.sums[OF_SOCKETS]) {
            *sum = sum.wrapping_add(more.load(Ordering::Relaxed));
        }
    }
    sums
}

/// In a forked child, which has moved nothing: what there is is of the threads of its parent.
pub(crate) fn in_child() {
    ENDED.force_unlock();
    *ENDED.lock() = Ended::NONE;
    all().for_each(|of_parent| of_parent.clear(0));
    USED.store(0, Ordering::Release);
    MINE.set(null());
}

/// No thread is leaving what it has when the process is copied.
pub(crate) fn before_fork() {
    std::mem::forget(ENDED.lock());
}

pub(crate) fn in_parent() {
    ENDED.force_unlock();
}

fn all() -> impl Iterator<Item = &'static ThreadSums> {
    let used = USED.load(Ordering::Acquire);
    let base = if used == 0 { null() } else { TABLE.base().cast::<ThreadSums>().cast_const() };
    let used = if base.is_null() { 0 } else { used };
    // SAFETY: within the table, which is zero where nothing was stored.
    (0..used).map(move |at| unsafe { &*base.add(at) })
}

/// The calling thread moves bytes for the first time. One that had its number before may have moved some: then less is
/// missing than is.
#[cold]
fn first() -> &'static ThreadSums {
    if is_vforked() {
        return &NOBODY;
    }
    // SAFETY: a plain system call.
    let mine = of_thread(unsafe { libc::syscall(libc::SYS_gettid) as u32 }).unwrap_or(&NOBODY);
    MINE.set(mine);
    set_key(mine);
    mine
}

/// The entry of a thread, a new one where it has none.
pub(crate) fn of_thread(tid: u32) -> Option<&'static ThreadSums> {
    loop {
        let mut free = None;
        for entry in all() {
            match entry.tid.load(Ordering::Acquire) {
                of if of == tid => return Some(entry),
                of if (of == 0 || of & HAS_ENDED != 0) && free.is_none() => free = Some((entry, of)),
                _ => {}
            }
        }
        // Another thread, or a signal handler of this one, may take it first.
        if let Some((entry, before)) = free
            && entry.tid.compare_exchange(before, tid, Ordering::AcqRel, Ordering::Acquire).is_ok()
        {
            return Some(entry);
        }
        if free.is_none() {
            let next = |used: usize| (used < MOST && !TABLE.base().is_null()).then_some(used + 1);
            USED.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
        }
    }
}

/// The C library's number of what it calls at the end of a thread; see [`watch_ends`].
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);
const NO_KEY: u32 = u32::MAX;
/// Of these numbers the C library has room in each thread; for others it asks the program's allocator for some.
const KEYS_WITH_ROOM: u32 = 32;

/// From now on the end of a thread is noticed, once a process. Where the C library has no such number left, threads that
/// have ended are not compared.
pub(crate) fn watch_ends() {
    let mut key = NO_KEY;
    // SAFETY: a plain function of this library, which is never unloaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } != 0 {
        return;
    }
    if key < KEYS_WITH_ROOM {
        KEY.store(key, Ordering::Relaxed);
    } else {
        // SAFETY: it was made above, and nobody uses it.
        unsafe { libc::pthread_key_delete(key) };
    }
}

fn set_key(mine: &'static ThreadSums) {
    let key = KEY.load(Ordering::Relaxed);
    if key != NO_KEY {
        // SAFETY: the key is never deleted. Null for who has nothing to leave.
        unsafe { libc::pthread_setspecific(key, std::ptr::from_ref(mine).cast()) };
    }
}

/// The calling thread ends: it leaves what it has. What it still moves is not compared.
unsafe extern "C" fn ends(_: *mut c_void) {
    let mine = MINE.replace(&raw const NOBODY);
    // SAFETY: null, or never unmapped.
    let Some(mine) = unsafe { mine.as_ref() }.filter(|mine| !std::ptr::eq(*mine, &NOBODY)) else { return };
    let Some(_inside) = Inside::enter() else { return };
    let tid = mine.tid.load(Ordering::Relaxed);
    let on_files = unseen::on_files(tid, Some(mine)).unwrap_or_default();
    let mut ended = ENDED.lock();
    for (sum, more) in ended.on_files.iter_mut().zip(on_files) {
        *sum = sum.saturating_add(more);
    }
    for (sum, more) in ended.sockets.iter_mut().zip(&mine.sums[OF_SOCKETS]) {
        *sum = sum.wrapping_add(more.load(Ordering::Relaxed));
    }
    mine.clear(tid | HAS_ENDED);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_sums_of_their_own() {
        let of_thread = || {
            mine().add(Sum::ReadElsewhere, 10);
            mine().add(Sum::WrittenElsewhere, 1);
            mine().add(Sum::ReadElsewhere, 5);
            (mine().get(Sum::ReadElsewhere), mine().get(Sum::WrittenElsewhere))
        };
        let started: Vec<_> = (0..20).map(|_| std::thread::spawn(of_thread)).collect();
        assert!(started.into_iter().all(|thread| thread.join().unwrap() == (15, 1)));
    }

    #[test]
    fn threads_that_ended_leave_what_they_have_and_their_entries() {
        watch_ends();
        let before = ended().on_files[0];
        for _ in 0..1_000 {
            let thread = std::thread::spawn(|| {
                let own = mine().tid.load(Ordering::Relaxed);
                assert!(std::ptr::eq(known(own).unwrap(), mine()) && !has_ended(own));
                std::fs::read("/proc/self/stat").unwrap().len() as u64
            });
            thread.join().unwrap();
        }
        // Each has read more than a hundred bytes, and none of them elsewhere as far as this library knows.
        assert!(ended().on_files[0] >= before + 100_000);
        assert!(all().count() < 200);
    }
}
