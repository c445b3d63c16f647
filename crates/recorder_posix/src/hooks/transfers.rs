//! Bytes move between files and memory, and from file to file.

use crate::descriptors::{peer, watched};
use crate::real::hooks;
use crate::recorded::{Call, timed, transfer};
use crate::sockets;
use crate::start::is_on;
use crate::unseen::{Way, elsewhere};
use libc::{iovec, off_t, size_t, ssize_t};
use std::ffi::{c_int, c_void};
use stepscope_recorder::IoFunction;
use stepscope_recorder::IoFunction::{
    CopyFileRange, CopyFileRangeTo, Pread, Preadv, Preadv2, Pwrite, Pwritev, Pwritev2, Read, Readv, Sendfile,
    SendfileTo, Splice, SpliceTo, Write, Writev,
};

/// The bytes of a list of buffers.
pub(super) fn bytes_of(buffers: *const iovec, count: c_int) -> usize {
    if buffers.is_null() {
        return 0;
    }
    // SAFETY: the caller has passed as many to the system.
    let buffers = unsafe { std::slice::from_raw_parts(buffers, usize::try_from(count).unwrap_or(0)) };
    buffers.iter().fold(0, |sum: usize, buffer| sum.saturating_add(buffer.iov_len))
}

/// Negative: the position of the descriptor.
fn offset(offset: off_t) -> Option<i64> {
    (offset >= 0).then_some(offset)
}

/// Bytes move from file to file. The call is recorded as `function` when the first file is watched, and as `function_to`
/// when only the second one is. Where a place is null, the descriptor's position counts.
fn between(
    (function, function_to): (IoFunction, IoFunction),
    (from, from_place): (c_int, *mut off_t),
    (to, to_place): (c_int, *mut off_t),
    asked: size_t,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let (source, target) = (watched(from), watched(to));
    let peers = [(peer(from), Way::Read), (peer(to), Way::Written)];
    let real = || {
        let moved = real();
        // The system counts both ways, but for `splice`; where only one is recorded, neither is compared.
        if moved > 0 && source.and(target).is_none() && function != Splice && is_on() {
            [Way::Read, Way::Written].into_iter().for_each(|way| elsewhere(way, moved as usize));
        }
        for (peer, way) in peers {
            if let (Some(peer), 1..) = (peer, moved) {
                sockets::moved(peer, way, moved as u64);
            }
        }
        moved
    };
    if source.or(target).is_none() {
        return real();
    }
    // SAFETY: null, or what the caller passes to the system.
    let place = unsafe { from_place.as_ref() }.copied();
    let place = place.or_else(|| source?.position(|| crate::recorded::ask_position(from)));
    timed(real, |moved| {
        let moved = moved.max(0);
        source.filter(|_| from_place.is_null()).into_iter().for_each(|open| open.advance(moved as i64));
        target.filter(|_| to_place.is_null()).into_iter().for_each(|open| open.advance(moved as i64));
        let (source, target) = (source.and_then(|open| open.file()), target.and_then(|open| open.file()));
        Call {
            other_file: source.and(target),
            bytes: moved as u64,
            asked: Some(asked as u64).filter(|asked| *asked != moved as u64),
            offset: place.filter(|_| source.is_some()).and_then(|place| u64::try_from(place).ok()),
            ..Call::on(if source.is_some() { function } else { function_to }, source.or(target))
        }
    })
}

hooks! {
    fn read(descriptor: c_int, to: *mut c_void, len: size_t) -> ssize_t
        |real| transfer(Read, descriptor, move || len, None, real);
    fn __read_chk(descriptor: c_int, to: *mut c_void, len: size_t, room: size_t) -> ssize_t
        |real| transfer(Read, descriptor, move || len, None, real);
    fn pread(descriptor: c_int, to: *mut c_void, len: size_t, at: off_t) -> ssize_t
        |real| transfer(Pread, descriptor, move || len, Some(at), real);
    fn pread64(descriptor: c_int, to: *mut c_void, len: size_t, at: off_t) -> ssize_t
        |real| transfer(Pread, descriptor, move || len, Some(at), real);
    fn __pread_chk(descriptor: c_int, to: *mut c_void, len: size_t, at: off_t, room: size_t) -> ssize_t
        |real| transfer(Pread, descriptor, move || len, Some(at), real);
    fn __pread64_chk(descriptor: c_int, to: *mut c_void, len: size_t, at: off_t, room: size_t) -> ssize_t
        |real| transfer(Pread, descriptor, move || len, Some(at), real);
    fn readv(descriptor: c_int, to: *const iovec, count: c_int) -> ssize_t
        |real| transfer(Readv, descriptor, move || bytes_of(to, count), None, real);
    fn preadv(descriptor: c_int, to: *const iovec, count: c_int, at: off_t) -> ssize_t
        |real| transfer(Preadv, descriptor, move || bytes_of(to, count), Some(at), real);
    fn preadv64(descriptor: c_int, to: *const iovec, count: c_int, at: off_t) -> ssize_t
        |real| transfer(Preadv, descriptor, move || bytes_of(to, count), Some(at), real);
    fn preadv2(descriptor: c_int, to: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t
        |real| transfer(Preadv2, descriptor, move || bytes_of(to, count), offset(at), real);
    fn preadv64v2(descriptor: c_int, to: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t
        |real| transfer(Preadv2, descriptor, move || bytes_of(to, count), offset(at), real);
    fn write(descriptor: c_int, from: *const c_void, len: size_t) -> ssize_t
        |real| transfer(Write, descriptor, move || len, None, real);
    fn pwrite(descriptor: c_int, from: *const c_void, len: size_t, at: off_t) -> ssize_t
        |real| transfer(Pwrite, descriptor, move || len, Some(at), real);
    fn pwrite64(descriptor: c_int, from: *const c_void, len: size_t, at: off_t) -> ssize_t
        |real| transfer(Pwrite, descriptor, move || len, Some(at), real);
    fn writev(descriptor: c_int, from: *const iovec, count: c_int) -> ssize_t
        |real| transfer(Writev, descriptor, move || bytes_of(from, count), None, real);
    fn pwritev(descriptor: c_int, from: *const iovec, count: c_int, at: off_t) -> ssize_t
        |real| transfer(Pwritev, descriptor, move || bytes_of(from, count), Some(at), real);
    fn pwritev64(descriptor: c_int, from: *const iovec, count: c_int, at: off_t) -> ssize_t
        |real| transfer(Pwritev, descriptor, move || bytes_of(from, count), Some(at), real);
    fn pwritev2(descriptor: c_int, from: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t
        |real| transfer(Pwritev2, descriptor, move || bytes_of(from, count), offset(at), real);
    fn pwritev64v2(descriptor: c_int, from: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t
        |real| transfer(Pwritev2, descriptor, move || bytes_of(from, count), offset(at), real);
    fn sendfile(to: c_int, from: c_int, at: *mut off_t, len: size_t) -> ssize_t
        |real| between((Sendfile, SendfileTo), (from, at), (to, std::ptr::null_mut()), len, real);
    fn sendfile64(to: c_int, from: c_int, at: *mut off_t, len: size_t) -> ssize_t
        |real| between((Sendfile, SendfileTo), (from, at), (to, std::ptr::null_mut()), len, real);
    fn copy_file_range(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, len: size_t, flags: u32)
        -> ssize_t |real| between((CopyFileRange, CopyFileRangeTo), (from, from_at), (to, to_at), len, real);
    fn splice(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, len: size_t, flags: u32) -> ssize_t
        |real| between((Splice, SpliceTo), (from, from_at), (to, to_at), len, real);
}
