//! Files are mapped into memory, which is given back, written to the file, advised on.

use crate::descriptors::watched;
use crate::faults::unmapping;
use crate::mapped_files::{first_of, mapped, mapped_at, unmapped};
use crate::real::hooks;
use crate::recorded::{Call, timed, timed_with_error};
use crate::start::{is_on, is_vforked};
use libc::{MAP_FAILED, off_t, size_t};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use stepscope_recorder::IoFunction::{self, Madvise, Mmap, Mremap, Msync, Munmap};

fn addresses(start: *mut c_void, len: size_t) -> Range<u64> {
    const PAGE: u64 = 4096;
    let start = start as u64;
    start..start.saturating_add((len as u64).next_multiple_of(PAGE))
}

/// A part of a file is mapped. Memory without a file is not recorded: allocators map it.
fn map(descriptor: c_int, (at, len): (off_t, size_t), real: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let open = if descriptor >= 0 { watched(descriptor) } else { None };
    let offset = u64::try_from(at).ok();
    let memory = match open {
        Some(open) => timed(real, |_| Call { asked: Some(len as u64), offset, ..Call::on(Mmap, open.file()) }),
        None => real(),
    };
    let addresses = addresses(memory, len);
    if memory != MAP_FAILED && (open.is_some() || mapped_at(&addresses).is_some()) && !is_vforked() {
        unmapped(&addresses);
        if let (Some(file), Some(offset)) = (open.and_then(|open| open.file()), offset) {
            mapped(&addresses, file, offset);
        }
    }
    memory
}

/// A call on addresses, which is about the file that is mapped there.
fn on_addresses(function: IoFunction, (start, len): (*mut c_void, size_t), real: impl FnOnce() -> c_int) -> c_int {
    match mapped_at(&addresses(start, len)) {
        Some((file, offset)) => {
            timed(real, |_| Call { asked: Some(len as u64), offset: Some(offset), ..Call::on(function, Some(file)) })
        }
        None => real(),
    }
}

/// Memory is given back. Said before it is: afterwards another thread may have it again.
fn unmap(memory: (*mut c_void, size_t), real: impl FnOnce() -> c_int) -> c_int {
    let addresses = addresses(memory.0, memory.1);
    let Some((file, offset)) = mapped_at(&addresses) else { return real() };
    if is_vforked() {
        return real();
    }
    unmapping(&addresses, file, offset);
    unmapped(&addresses);
    timed(real, |_| Call { asked: Some(memory.1 as u64), offset: Some(offset), ..Call::on(Munmap, Some(file)) })
}

/// Memory is made longer or shorter, or moves. As in [`unmap`], said before.
fn remap(old: (*mut c_void, size_t), len: size_t, flags: c_int, real: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let stays = old.1 == 0 || flags & libc::MREMAP_DONTUNMAP != 0;
    // Without a length, what is mapped there is mapped once more.
    let old = addresses(old.0, old.1.max(1));
    if is_vforked() {
        return real();
    }
    let Some((known, file, offset)) = first_of(&old) else {
        let new = real();
        if new != MAP_FAILED {
            unmapped(&addresses(new, len));
        }
        return new;
    };
    if !stays {
        unmapped(&old);
    }
    let new = timed(real, |_| Call { asked: Some(len as u64), offset: Some(offset), ..Call::on(Mremap, Some(file)) });
    if new != MAP_FAILED {
        let new = addresses(new, len);
        unmapped(&new);
        mapped(&new, file, offset);
    } else if !stays {
        mapped(&known, file, offset);
    }
    new
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
    fn munmap(start: *mut c_void, len: size_t) -> c_int |real| match is_on() {
        true => unmap((start, len), real),
        // SAFETY: as above.
        false => unsafe { libc::syscall(libc::SYS_munmap, start, len) as c_int },
    };
    fn madvise(start: *mut c_void, len: size_t, advice: c_int) -> c_int |real| match is_on() {
        true => on_addresses(Madvise, (start, len), real),
        // SAFETY: as above.
        false => unsafe { libc::syscall(libc::SYS_madvise, start, len, advice) as c_int },
    };
    fn mremap(start: *mut c_void, len: size_t, new_len: size_t, flags: c_int, new: *mut c_void) -> *mut c_void
        |real| match is_on() {
            true => remap((start, len), new_len, flags, real),
            // SAFETY: as above.
            false => unsafe { libc::syscall(libc::SYS_mremap, start, len, new_len, flags, new) as *mut c_void },
        };
    fn posix_madvise(start: *mut c_void, len: size_t, advice: c_int) -> c_int |real| {
        match mapped_at(&addresses(start, len)) {
            Some((file, offset)) if is_on() => timed_with_error(
                real,
                Call { asked: Some(len as u64), offset: Some(offset), ..Call::on(Madvise, Some(file)) },
            ),
            _ => real(),
        }
    };
    fn msync(start: *mut c_void, len: size_t, flags: c_int) -> c_int |real| on_addresses(Msync, (start, len), real);
}
