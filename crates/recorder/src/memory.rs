//! What allocators report: memory allocated and freed, and allocations that failed.

use crate::buffer::with_buffer;
use crate::clock::ticks;
use stepscope_capture::layout::Tag;
use stepscope_capture::memory::{LONGEST, Record, record};

/// Memory is allocated on the calling thread (`bytes` above 0) or freed (below). `allocated` and `reserved` are what
/// the allocator counts after it; `device` is as [`stepscope_capture::memory`] describes.
#[inline(always)]
pub fn memory(address: u64, bytes: i64, allocated: u64, reserved: u64, device: u16) {
    with_buffer(|buffer| {
        // What allocates or frees outside of operators has a call stack, too.
        buffer.flush_pending_calls();
        if buffer.reserve(LONGEST) {
            match record(address, bytes, allocated, reserved, device) {
                Record::Memory(words) => buffer.write_words(ticks(), Tag::Memory, words),
                Record::MemoryReserved(words) => buffer.write_words(ticks(), Tag::MemoryReserved, words),
            }
        }
    });
}

/// An allocation of `bytes` failed on the calling thread.
#[cold]
pub fn out_of_memory(bytes: i64, allocated: u64, reserved: u64, device: u16) {
    let words = [bytes as u64, allocated, reserved, u64::from(device)];
    with_buffer(|buffer| {
        buffer.flush_pending_calls();
        buffer.append(ticks(), Tag::OutOfMemory, &words, &[]);
    });
}
