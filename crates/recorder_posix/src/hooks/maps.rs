//! Files are mapped into memory.

use crate::descriptors::watched;
use crate::real::hooks;
use crate::recorded::{Call, timed};
use crate::start::is_on;
use libc::{off_t, size_t};
use std::ffi::{c_int, c_void};
use stepscope_recorder::IoFunction::Mmap;

/// A part of a file is mapped. Memory without a file is not looked at: allocators map it.
fn map(descriptor: c_int, (at, len): (off_t, size_t), real: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let Some(open) = (if descriptor >= 0 { watched(descriptor) } else { None }) else { return real() };
    timed(real, |_| Call { asked: Some(len as u64), offset: u64::try_from(at).ok(), ..Call::on(Mmap, open.file()) })
}

/// Before this library has begun, an allocator that begins asks for memory: finding the function behind this one would
/// ask the allocator.
fn before_start(
    (near, len): (*mut c_void, size_t),
    (protection, flags): (c_int, c_int),
    (descriptor, at): (c_int, off_t),
) -> *mut c_void {
    // SAFETY: what the caller asks of the system.
    unsafe { libc::syscall(libc::SYS_mmap, near, len, protection, flags, descriptor, at) as *mut c_void }
}

hooks! {
    fn mmap(near: *mut c_void, len: size_t, protection: c_int, flags: c_int, descriptor: c_int, at: off_t)
        -> *mut c_void |real| match is_on() {
            true => map(descriptor, (at, len), real),
            false => before_start((near, len), (protection, flags), (descriptor, at)),
        };
    fn mmap64(near: *mut c_void, len: size_t, protection: c_int, flags: c_int, descriptor: c_int, at: off_t)
        -> *mut c_void |real| match is_on() {
            true => map(descriptor, (at, len), real),
            false => before_start((near, len), (protection, flags), (descriptor, at)),
        };
}
