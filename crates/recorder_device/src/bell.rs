//! Wakes a thread that waits, from anywhere: no lock is taken.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Counts how often it was rung. Who waits says up to which ring it has seen.
pub struct Bell(AtomicU32);

static WORKER: Bell = Bell(AtomicU32::new(0));

impl Bell {
    /// One that was never rung.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The one that wakes the thread `stepscope gpu`.
    pub fn worker() -> &'static Self {
        &WORKER
    }

    /// Wakes whoever waits.
    pub fn ring(&self) {
        self.0.fetch_add(1, Ordering::Release);
        // SAFETY: the word outlives the call; without waiters the kernel does nothing.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), WAKE, i32::MAX) };
    }

    /// How often it was rung: read before one looks for what there is to do.
    pub fn rings(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Waits until it has been rung since `seen` was read, and for `limit` at most. May return for no reason.
    pub fn wait(&self, seen: u32, limit: Duration) {
        let limit =
            libc::timespec { tv_sec: limit.as_secs().min(3600) as libc::time_t, tv_nsec: limit.subsec_nanos().into() };
        // SAFETY: the word and the limit outlive the call.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), WAIT, seen, &limit) };
    }
}

impl Default for Bell {
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
        let bell = Bell::new();
        let seen = bell.rings();
        bell.ring();
        // Would wait for an hour.
        bell.wait(seen, Duration::from_secs(3600));
        assert_ne!(bell.rings(), seen);
    }

    #[test]
    fn a_thread_that_waits_is_woken() {
        let bell = Bell::new();
        let seen = bell.rings();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                while bell.rings() == seen {
                    bell.wait(seen, Duration::from_secs(3600));
                }
            });
            bell.ring();
            waits.join().unwrap();
        });
    }
}
