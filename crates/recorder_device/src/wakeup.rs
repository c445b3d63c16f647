//! Wakes a thread that waits, from anywhere: no lock is taken.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Wakes waiting threads, by a futex. Counts the wake-ups: a thread that waits says which count it has seen.
pub struct Wakeup(AtomicU32);

static WORKER: Wakeup = Wakeup(AtomicU32::new(0));

impl Wakeup {
    /// One without a wake-up so far.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The one that wakes the thread `stepscope gpu`.
    pub fn worker() -> &'static Self {
        &WORKER
    }

    /// Wakes every thread that waits.
    pub fn wake(&self) {
        self.0.fetch_add(1, Ordering::Release);
        // SAFETY: the word outlives the call; without waiters the kernel does nothing.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), WAKE, i32::MAX) };
    }

    /// How many wake-ups there were: read before looking for work.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Waits until a wake-up after `seen` was read, and for `limit` at most. May return for no reason.
    pub fn wait(&self, seen: u32, limit: Duration) {
        let limit =
            libc::timespec { tv_sec: limit.as_secs().min(3600) as libc::time_t, tv_nsec: limit.subsec_nanos().into() };
        // SAFETY: the word and the limit outlive the call.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), WAIT, seen, &limit) };
    }
}

impl Default for Wakeup {
    fn default() -> Self {
        Self::new()
    }
}

const WAIT: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_between_looking_and_waiting_is_not_missed() {
        let wakeup = Wakeup::new();
        let seen = wakeup.count();
        wakeup.wake();
        // Would wait for an hour.
        wakeup.wait(seen, Duration::from_secs(3600));
        assert_ne!(wakeup.count(), seen);
    }

    #[test]
    fn a_thread_that_waits_is_woken() {
        let wakeup = Wakeup::new();
        let seen = wakeup.count();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                while wakeup.count() == seen {
                    wakeup.wait(seen, Duration::from_secs(3600));
                }
            });
            wakeup.wake();
            waits.join().unwrap();
        });
    }
}
