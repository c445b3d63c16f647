//! Buffers that a vendor's profiler fills: taken and put back on its threads and the job's, without lock or allocation.

use crate::forked;
use crate::wakeup::Wakeup;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

/// Bytes of one buffer.
pub const BUFFER_BYTES: usize = 4 << 20;
/// The most buffers that there can be: 4 GiB.
const SLOTS: usize = 1024;
/// Buffers that are there from the start, as far as the limit allows.
const FIRST: usize = 16;
/// Of those, how many are touched at once: the first ones taken.
const TOUCHED: usize = 2;
/// Fewer free ones than this, and more are made.
const SPARE: usize = 4;

/// What becomes of a slot.
mod state {
    /// It has no memory.
    pub(super) const ABSENT: u32 = 0;
    /// It can be taken.
    pub(super) const FREE: u32 = 1;
    /// The vendor's profiler has it.
    pub(super) const TAKEN: u32 = 2;
    /// It is full, and waits to be read.
    pub(super) const FULL: u32 = 3;
    /// The thread of ours has it.
    pub(super) const OURS: u32 = 4;
}

struct Slot {
    state: AtomicU32,
    base: AtomicPtr<u8>,
    /// Of a full one: the bytes that hold activity records, when it became full, and in which session it was taken.
    len: AtomicUsize,
    ticket: AtomicU64,
    session: AtomicU32,
}

impl Slot {
    // Each use of it is a slot of its own, as it should be.
    #[allow(clippy::declare_interior_mutable_const)]
    const ABSENT: Self = Self {
        state: AtomicU32::new(state::ABSENT),
        base: AtomicPtr::new(std::ptr::null_mut()),
        len: AtomicUsize::new(0),
        ticket: AtomicU64::new(0),
        session: AtomicU32::new(0),
    };

    fn moves(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }
}

/// A vendor's buffers. A process has one of them a vendor, for ever: late callbacks find it closed.
pub struct Pool {
    slots: [Slot; SLOTS],
    is_open: AtomicBool,
    limit: AtomicUsize,
    session: AtomicU32,
    ticket: AtomicU64,
}

/// A full buffer. Once dropped it can be taken again.
pub struct Full<'a> {
    slot: &'a Slot,
    /// False of one that was taken in a session before: nobody asks for its activity records any more.
    pub is_current: bool,
}

impl Full<'_> {
    /// Its first byte, for the vendor's own functions.
    pub fn base(&self) -> *mut u8 {
        self.slot.base.load(Relaxed)
    }

    /// How many of its bytes hold activity records.
    pub fn len(&self) -> usize {
        self.slot.len.load(Relaxed)
    }

    /// True when it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it holds.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the slot is ours until this is dropped, and its memory is `BUFFER_BYTES` long, of which `len`
        // (bounded by that in `put`) were written by the vendor before it put the buffer back.
        unsafe { std::slice::from_raw_parts(self.base(), self.len()) }
    }
}

impl Drop for Full<'_> {
    fn drop(&mut self) {
        self.slot.state.store(state::FREE, Release);
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    /// One without buffers.
    pub const fn new() -> Self {
        Self {
            slots: [Slot::ABSENT; SLOTS],
            is_open: AtomicBool::new(false),
            limit: AtomicUsize::new(0),
            session: AtomicU32::new(0),
            ticket: AtomicU64::new(0),
        }
    }

    /// Gives out buffers from now on, of at most `limit_bytes` together. By the thread of ours, as all below.
    pub fn open(&self, limit_bytes: usize) {
        self.limit.store((limit_bytes / BUFFER_BYTES).clamp(2, SLOTS), Relaxed);
        self.session.fetch_add(1, Relaxed);
        self.make(FIRST);
        for slot in self.slots.iter().take(TOUCHED).filter(|slot| slot.moves(state::FREE, state::OURS)) {
            touch(slot.base.load(Relaxed));
            slot.state.store(state::FREE, Release);
        }
        self.is_open.store(true, Release);
    }

    /// Makes more buffers where few are free.
    pub fn tend(&self) {
        let free = self.slots.iter().filter(|slot| slot.state.load(Relaxed) == state::FREE).count();
        if self.is_open.load(Relaxed) && free < SPARE {
            let present = self.slots.iter().filter(|slot| slot.state.load(Relaxed) != state::ABSENT).count();
            self.make(present + SPARE);
        }
    }

    /// Gives out no more, and gives the memory of those that are free back to the system.
    pub fn close(&self) {
        self.is_open.store(false, Release);
        for slot in self.slots.iter().filter(|slot| slot.moves(state::FREE, state::OURS)) {
            let base = slot.base.swap(std::ptr::null_mut(), Relaxed);
            // SAFETY: mapped in `make` with this length; the slot is ours, so nobody else has the address.
            unsafe { libc::munmap(base.cast(), BUFFER_BYTES) };
            slot.state.store(state::ABSENT, Release);
        }
    }

    /// The full buffer that has waited longest.
    pub fn next_full(&self) -> Option<Full<'_>> {
        let full = self.slots.iter().filter(|slot| slot.state.load(Acquire) == state::FULL);
        let slot = full.min_by_key(|slot| slot.ticket.load(Relaxed))?;
        let is_current = slot.session.load(Relaxed) == self.session.load(Relaxed);
        slot.moves(state::FULL, state::OURS).then_some(Full { slot, is_current })
    }

    /// Takes a buffer of [`BUFFER_BYTES`]; none when none is free. For callbacks, on any thread.
    pub fn take(&self) -> Option<NonNull<u8>> {
        if !self.is_open.load(Acquire) || forked::is_forked() {
            return None;
        }
        // The first that is free: few are ever used, and those stay warm.
        let slot = self.slots.iter().find(|slot| slot.moves(state::FREE, state::TAKEN))?;
        slot.session.store(self.session.load(Relaxed), Relaxed);
        NonNull::new(slot.base.load(Relaxed))
    }

    /// Puts a buffer back of which `len` bytes hold activity records. For callbacks, on any thread. False for one that
    /// is not of this pool, or not taken.
    pub fn put(&self, base: *mut u8, len: usize) -> bool {
        if base.is_null() || forked::is_forked() {
            return false;
        }
        let Some(slot) = self.slots.iter().find(|slot| slot.base.load(Relaxed) == base) else { return false };
        if slot.state.load(Relaxed) != state::TAKEN {
            return false;
        }
        slot.len.store(len.min(BUFFER_BYTES), Relaxed);
        slot.ticket.store(self.ticket.fetch_add(1, Relaxed), Relaxed);
        let was_taken = slot.moves(state::TAKEN, state::FULL);
        Wakeup::worker().wake();
        was_taken
    }

    /// Has memory for `count` buffers, or for as many as the limit allows.
    fn make(&self, count: usize) {
        let count = count.min(self.limit.load(Relaxed));
        for slot in &self.slots[..count] {
            if !slot.moves(state::ABSENT, state::OURS) {
                continue;
            }
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a fresh mapping.
            let base = unsafe { libc::mmap(std::ptr::null_mut(), BUFFER_BYTES, access, flags, -1, 0) };
            let is_made = base != libc::MAP_FAILED;
            slot.base.store(if is_made { base.cast() } else { std::ptr::null_mut() }, Relaxed);
            slot.state.store(if is_made { state::FREE } else { state::ABSENT }, Release);
        }
    }
}

/// Has the system give memory for a buffer now, so that the job's thread does not wait for it.
fn touch(base: *mut u8) {
    for page in (0..BUFFER_BYTES).step_by(4096) {
        // SAFETY: inside of the mapping, which is ours; the bytes mean nothing.
        unsafe { base.add(page).write_volatile(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(pool: &Pool) -> usize {
        pool.slots.iter().filter(|slot| !slot.base.load(Relaxed).is_null()).count()
    }

    #[test]
    fn buffers_go_round_in_the_order_in_which_they_became_full() {
        let pool = Box::new(Pool::new());
        assert!(pool.take().is_none(), "closed");
        pool.open(64 << 20);
        let [a, b] = [pool.take().unwrap(), pool.take().unwrap()];
        assert!(pool.put(b.as_ptr(), 8));
        assert!(pool.put(a.as_ptr(), 0));
        assert!(!pool.put(a.as_ptr(), 8), "twice");
        assert!(!pool.put(a.as_ptr().wrapping_add(8), 8), "not a buffer");
        let full = pool.next_full().unwrap();
        assert_eq!((full.base(), full.bytes(), full.is_current), (b.as_ptr(), &[0; 8][..], true));
        assert_eq!(pool.next_full().unwrap().base(), a.as_ptr());
        assert!(pool.next_full().is_none());
        drop(full);
        pool.close();
        assert_eq!(memory(&pool), 0);
    }

    #[test]
    fn no_more_is_given_out_than_the_limit_allows() {
        let pool = Box::new(Pool::new());
        pool.open(24 * BUFFER_BYTES + 1);
        let mut taken = Vec::new();
        for _ in 0..100 {
            taken.extend(pool.take());
            pool.tend();
        }
        assert_eq!(taken.len(), 24);
        taken.iter().for_each(|base| assert!(pool.put(base.as_ptr(), usize::MAX)));
        assert_eq!(std::iter::from_fn(|| pool.next_full()).filter(|full| full.len() == BUFFER_BYTES).count(), 24);
        assert_eq!(std::iter::from_fn(|| pool.take()).count(), 24);
        pool.close();
        assert_eq!(memory(&pool), 24, "those that are out stay");
    }

    #[test]
    fn what_comes_back_late_is_told_from_what_is_asked_for() {
        let pool = Box::new(Pool::new());
        pool.open(64 << 20);
        let late = pool.take().unwrap();
        pool.close();
        assert!(pool.take().is_none());
        pool.open(64 << 20);
        assert!(pool.put(late.as_ptr(), 16));
        assert!(!pool.next_full().unwrap().is_current);
        pool.close();
        assert_eq!(memory(&pool), 0);
    }

    #[test]
    fn threads_never_share_a_buffer() {
        let pool = Box::new(Pool::new());
        pool.open(32 << 20);
        let read = AtomicU64::new(0);
        let wrote = AtomicU64::new(0);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (1..=4u8)
                .map(|mark| {
                    let (pool, wrote) = (&pool, &wrote);
                    scope.spawn(move || {
                        for _ in 0..5000 {
                            let Some(base) = pool.take() else {
                                std::thread::yield_now();
                                continue;
                            };
                            // SAFETY: the buffer was taken.
                            unsafe { base.as_ptr().write_bytes(mark, 64) };
                            assert!(pool.put(base.as_ptr(), 64));
                            wrote.fetch_add(1, Relaxed);
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                loop {
                    let was_over = is_over.load(Acquire);
                    while let Some(full) = pool.next_full() {
                        assert!(full.bytes().iter().all(|byte| *byte == full.bytes()[0]), "mixed");
                        read.fetch_add(1, Relaxed);
                    }
                    if was_over {
                        break;
                    }
                    std::thread::yield_now();
                }
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_over.store(true, Release);
        });
        assert_eq!(read.into_inner(), wrote.into_inner());
    }
}
