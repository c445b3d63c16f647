//! A lock that a forked child can always take over.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A spin lock for short sections off the hot path. Unlike the standard one it can be released by a forked child on
/// behalf of the thread that took it before the fork.
pub struct ForkLock<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is only reached through a guard, and there is at most one guard at a time.
unsafe impl<T: Send> Sync for ForkLock<T> {}

impl<T> ForkLock<T> {
    /// A lock that nobody has taken.
    pub const fn new(value: T) -> Self {
        Self { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until nobody else has it.
    pub fn lock(&self) -> ForkGuard<'_, T> {
        let mut spins = 0u32;
        while self.is_taken.swap(true, Ordering::Acquire) {
            spins += 1;
            if spins < 100 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        ForkGuard { lock: self }
    }

    /// `None` where somebody has it.
    pub fn try_lock(&self) -> Option<ForkGuard<'_, T>> {
        (!self.is_taken.swap(true, Ordering::Acquire)).then(|| ForkGuard { lock: self })
    }

    /// Releases a lock whose guard was forgotten.
    pub fn force_unlock(&self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

/// Access to what a [`ForkLock`] protects.
pub struct ForkGuard<'a, T> {
    lock: &'a ForkLock<T>,
}

impl<T> Deref for ForkGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for ForkGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for ForkGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.force_unlock();
    }
}
