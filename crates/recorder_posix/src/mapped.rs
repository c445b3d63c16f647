//! Memory straight from the system, never given back.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// `bytes` of memory that is zero; null where the system has none. It takes room only where it is touched.
#[cold]
pub(crate) fn map(bytes: usize) -> *mut u8 {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a new mapping. Past the C library, whose function this library stands for.
    let found = unsafe { libc::syscall(libc::SYS_mmap, null_mut::<u8>(), bytes, protection, flags, -1, 0_usize) };
    if found == -1 { null_mut() } else { found as *mut u8 }
}

/// A piece of memory that is mapped when it is first asked for.
pub(crate) struct Mapped<const BYTES: usize> {
    base: AtomicPtr<u8>,
}

impl<const BYTES: usize> Mapped<BYTES> {
    pub(crate) const fn new() -> Self {
        Self { base: AtomicPtr::new(null_mut()) }
    }

    /// Its first byte; null where the system has no memory.
    #[inline(always)]
    pub(crate) fn base(&self) -> *mut u8 {
        let base = self.base.load(Ordering::Acquire);
        if base.is_null() { self.first() } else { base }
    }

    #[cold]
    fn first(&self) -> *mut u8 {
        let mapped = map(BYTES);
        match self.base.compare_exchange(null_mut(), mapped, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => mapped,
            // Another thread was first.
            Err(found) => {
                if !mapped.is_null() {
                    // SAFETY: nobody knows of it.
                    unsafe { libc::syscall(libc::SYS_munmap, mapped, BYTES) };
                }
                found
            }
        }
    }
}

/// Pieces of any length, one after the other, which are never given back.
pub(crate) struct Arena<const BYTES: usize> {
    memory: Mapped<BYTES>,
    used: AtomicUsize,
}

impl<const BYTES: usize> Arena<BYTES> {
    pub(crate) const fn new() -> Self {
        Self { memory: Mapped::new(), used: AtomicUsize::new(0) }
    }

    /// `bytes` that are zero, aligned to 16; null where there is no room.
    pub(crate) fn take(&self, bytes: usize) -> *mut u8 {
        let base = self.memory.base();
        let bytes = bytes.next_multiple_of(16);
        let taken = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            used.checked_add(bytes).filter(|end| *end <= BYTES)
        });
        match taken {
            // SAFETY: within the mapping.
            Ok(at) if !base.is_null() => unsafe { base.add(at) },
            _ => null_mut(),
        }
    }
}
