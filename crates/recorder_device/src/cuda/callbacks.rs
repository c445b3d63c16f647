//! What CUPTI calls, on its threads and on the job's: no lock, no allocation, and nothing that could panic.

use super::POOL;
use crate::BUFFER_BYTES;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

pub(super) type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub(super) type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
pub(super) type RequestOfMany = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize, *mut c_void);
pub(super) type CompleteOfMany = unsafe extern "C" fn(*mut u8, usize, usize, *mut c_void);

pub(super) type Clock = unsafe extern "C" fn() -> u64;

/// Unix time, CUPTI's clock where nobody has set another.
pub(super) unsafe extern "C" fn unix_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable, and every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// CUPTI wants a buffer. Without one it throws records away and counts them.
pub(super) unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    let taken = POOL.take();
    // SAFETY: CUPTI's own variables, which it wants to be set.
    unsafe {
        *buffer = taken.map_or(null_mut(), NonNull::as_ptr);
        *size = if taken.is_some() { BUFFER_BYTES } else { 0 };
        // As many as there is room for.
        *most_records = 0;
    }
}

/// CUPTI gives a buffer back.
pub(super) unsafe extern "C" fn complete(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    POOL.put(buffer, valid);
}

pub(super) unsafe extern "C" fn request_of_many(
    buffer: *mut *mut u8,
    size: *mut usize,
    most_records: *mut usize,
    _: *mut c_void,
) {
    // SAFETY: as the caller vouches for.
    unsafe { request(buffer, size, most_records) };
}

pub(super) unsafe extern "C" fn complete_of_many(buffer: *mut u8, _: usize, valid: usize, _: *mut c_void) {
    POOL.put(buffer, valid);
}
