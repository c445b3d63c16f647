//! The allocator of this library: apart from the program's, which may itself use files, and which a call from inside of
//! it would find locked.
//!
//! Blocks are powers of two, taken from mapped memory and kept for the next one of their size.

use crate::mapped::map;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: Blocks = Blocks::new();

/// The smallest block, and how many sizes there are; what is larger is mapped by itself.
const SMALLEST: usize = 32;
const SIZES: usize = 15;
/// Memory is mapped by as much at once.
const PIECE: usize = 1 << 20;
/// The upper bits of a head count its changes, so that a block that comes back meanwhile is noticed: an address has 48.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

pub(crate) struct Blocks {
    /// Of each size, the first block that is free.
    free: [AtomicU64; SIZES],
    /// What is left of the last piece: where it begins, and its end is the next multiple of [`PIECE`].
    rest: AtomicUsize,
}

impl Blocks {
    pub(crate) const fn new() -> Self {
        Self { free: [const { AtomicU64::new(0) }; SIZES], rest: AtomicUsize::new(0) }
    }

    fn size_of(layout: Layout) -> Option<usize> {
        let bytes = layout.size().max(layout.align()).max(SMALLEST).next_power_of_two();
        let size = (bytes / SMALLEST).trailing_zeros() as usize;
        (size < SIZES).then_some(size)
    }

    fn pop(&self, size: usize) -> *mut u8 {
        let head = &self.free[size];
        let mut first = head.load(Ordering::Acquire);
        loop {
            let block = (first & ADDRESS) as *mut AtomicU64;
            if block.is_null() {
                return null_mut();
            }
            // SAFETY: blocks are never unmapped; where another thread has taken it meanwhile, the head has changed.
            let next = unsafe { (*block).load(Ordering::Relaxed) } & ADDRESS;
            let changed = next | ((first >> ADDRESS_BITS).wrapping_add(1) << ADDRESS_BITS);
            match head.compare_exchange_weak(first, changed, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return block.cast(),
                Err(found) => first = found,
            }
        }
    }

    fn push(&self, size: usize, block: *mut u8) {
        let head = &self.free[size];
        let mut first = head.load(Ordering::Acquire);
        loop {
            // SAFETY: the block is free, and large enough.
            unsafe { (*block.cast::<AtomicU64>()).store(first & ADDRESS, Ordering::Relaxed) };
            let changed = block as u64 & ADDRESS | ((first >> ADDRESS_BITS).wrapping_add(1) << ADDRESS_BITS);
            match head.compare_exchange_weak(first, changed, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(found) => first = found,
            }
        }
    }

    /// A new block.
    fn carve(&self, size: usize) -> *mut u8 {
        let bytes = SMALLEST << size;
        loop {
            let rest = self.rest.load(Ordering::Acquire);
            let left = rest.next_multiple_of(PIECE) - rest;
            let at = rest.next_multiple_of(bytes);
            if left >= at - rest + bytes {
                let carved = self.rest.compare_exchange(rest, at + bytes, Ordering::AcqRel, Ordering::Acquire);
                if carved.is_ok() {
                    return at as *mut u8;
                }
                continue;
            }
            let mapped = map(2 * PIECE);
            if mapped.is_null() {
                return null_mut();
            }
            // One byte behind a multiple would look full, and the last one is not used: a piece begins behind one.
            let piece = (mapped as usize).next_multiple_of(PIECE) + SMALLEST;
            let _ = self.rest.compare_exchange(rest, piece, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}

// SAFETY: each block is handed to one owner; it is as large and as aligned as its power of two.
unsafe impl GlobalAlloc for Blocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(size) = Self::size_of(layout) else { return map(layout.size().max(layout.align())) };
        let block = self.pop(size);
        if block.is_null() { self.carve(size) } else { block }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match Self::size_of(layout) {
            Some(size) => self.push(size, block),
            None => {
                let bytes = layout.size().max(layout.align());
                // SAFETY: it was mapped by itself.
                unsafe { libc::syscall(libc::SYS_munmap, block, bytes) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_apart_and_come_back() {
        let blocks = &Blocks::new();
        let threads: Vec<usize> = (1..=4).collect();
        std::thread::scope(|scope| {
            for thread in threads {
                scope.spawn(move || {
                    let mut kept: Vec<(*mut u8, Layout)> = Vec::new();
                    for round in 0..20_000_usize {
                        let bytes = (round * 7919 * thread) % 3_000 + 1;
                        let layout = Layout::from_size_align(bytes, 16).unwrap();
                        // SAFETY: as the allocator asks for.
                        let block = unsafe { blocks.alloc(layout) };
                        assert!(!block.is_null() && (block as usize).is_multiple_of(16));
                        // SAFETY: it is ours.
                        unsafe { block.write_bytes(thread as u8, bytes) };
                        kept.push((block, layout));
                        if round % 3 == 0 {
                            let (block, layout) = kept.swap_remove(round % kept.len());
                            // SAFETY: it is as this thread left it.
                            let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
                            assert!(bytes.iter().all(|byte| *byte == thread as u8));
                            // SAFETY: it was allocated with this layout.
                            unsafe { blocks.dealloc(block, layout) };
                        }
                    }
                });
            }
        });
        let layout = Layout::from_size_align(100, 8).unwrap();
        // SAFETY: as the allocator asks for.
        unsafe {
            let block = blocks.alloc(layout);
            blocks.dealloc(block, layout);
            assert_eq!(blocks.alloc(layout), block);
        }
    }
}
