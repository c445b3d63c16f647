//! Positions are moved, files flushed, cut, reserved, locked; what is known of an open file is asked.

use crate::descriptors::watched;
use crate::open_files::OpenFile;
use crate::real::hooks;
use crate::recorded::{Call, on_descriptor, on_open_file, on_path, timed, timed_with_error};
use libc::{AT_FDCWD, mode_t, off_t, size_t};
use std::ffi::{c_char, c_int, c_void};
use stepscope_recorder::IoFunction;
use stepscope_recorder::IoFunction::{
    Fallocate, Fchmod, Fdatasync, Flock, Fstat, Fsync, Ftruncate, Getdents, Lseek, PosixFadvise, Readahead,
    SyncFileRange, Truncate,
};

fn seek(descriptor: c_int, real: impl FnOnce() -> isize) -> isize {
    on_open_file(descriptor, real, |position, open| {
        if position >= 0 {
            open.set_position(position as i64);
        }
        Call { offset: u64::try_from(position).ok(), ..Call::on(Lseek, open.file()) }
    })
}

/// A call on a part of a file.
fn part(function: IoFunction, open: &OpenFile, (at, len): (off_t, off_t)) -> Call {
    Call { asked: u64::try_from(len).ok(), offset: u64::try_from(at).ok(), ..Call::on(function, open.file()) }
}

fn on_range(function: IoFunction, descriptor: c_int, range: (off_t, off_t), real: impl FnOnce() -> c_int) -> c_int {
    on_open_file(descriptor, real, |_, open| part(function, open, range))
}

/// As [`on_range`], of a function that gives its error back.
fn advised(function: IoFunction, descriptor: c_int, range: (off_t, off_t), real: impl FnOnce() -> c_int) -> c_int {
    let Some(open) = watched(descriptor) else { return real() };
    timed_with_error(real, part(function, open, range))
}

hooks! {
    fn lseek(descriptor: c_int, offset: off_t, whence: c_int) -> isize |real| seek(descriptor, real);
    fn lseek64(descriptor: c_int, offset: off_t, whence: c_int) -> isize |real| seek(descriptor, real);
    fn fsync(descriptor: c_int) -> c_int |real| on_descriptor(Fsync, descriptor, real);
    fn fdatasync(descriptor: c_int) -> c_int |real| on_descriptor(Fdatasync, descriptor, real);
    fn sync_file_range(descriptor: c_int, at: off_t, len: off_t, flags: u32) -> c_int
        |real| on_range(SyncFileRange, descriptor, (at, len), real);
    fn ftruncate(descriptor: c_int, len: off_t) -> c_int |real| on_range(Ftruncate, descriptor, (0, len), real);
    fn ftruncate64(descriptor: c_int, len: off_t) -> c_int |real| on_range(Ftruncate, descriptor, (0, len), real);
    fn truncate(path: *const c_char, len: off_t) -> c_int |real| on_path(Truncate, (AT_FDCWD, path), real);
    fn truncate64(path: *const c_char, len: off_t) -> c_int |real| on_path(Truncate, (AT_FDCWD, path), real);
    fn fallocate(descriptor: c_int, mode: c_int, at: off_t, len: off_t) -> c_int
        |real| on_range(Fallocate, descriptor, (at, len), real);
    fn fallocate64(descriptor: c_int, mode: c_int, at: off_t, len: off_t) -> c_int
        |real| on_range(Fallocate, descriptor, (at, len), real);
    fn posix_fallocate(descriptor: c_int, at: off_t, len: off_t) -> c_int
        |real| advised(Fallocate, descriptor, (at, len), real);
    fn posix_fallocate64(descriptor: c_int, at: off_t, len: off_t) -> c_int
        |real| advised(Fallocate, descriptor, (at, len), real);
    fn posix_fadvise(descriptor: c_int, at: off_t, len: off_t, advice: c_int) -> c_int
        |real| advised(PosixFadvise, descriptor, (at, len), real);
    fn posix_fadvise64(descriptor: c_int, at: off_t, len: off_t, advice: c_int) -> c_int
        |real| advised(PosixFadvise, descriptor, (at, len), real);
    fn readahead(descriptor: c_int, at: off_t, len: size_t) -> isize |real| {
        let Some(open) = watched(descriptor) else { return real() };
        let offset = u64::try_from(at).ok();
        timed(real, |_| Call { asked: Some(len as u64), offset, ..Call::on(Readahead, open.file()) })
    };
    fn flock(descriptor: c_int, operation: c_int) -> c_int |real| on_descriptor(Flock, descriptor, real);
    fn fchmod(descriptor: c_int, mode: mode_t) -> c_int |real| on_descriptor(Fchmod, descriptor, real);
    fn fstat(descriptor: c_int, to: *mut c_void) -> c_int |real| on_descriptor(Fstat, descriptor, real);
    fn fstat64(descriptor: c_int, to: *mut c_void) -> c_int |real| on_descriptor(Fstat, descriptor, real);
    fn __fxstat(version: c_int, descriptor: c_int, to: *mut c_void) -> c_int
        |real| on_descriptor(Fstat, descriptor, real);
    fn __fxstat64(version: c_int, descriptor: c_int, to: *mut c_void) -> c_int
        |real| on_descriptor(Fstat, descriptor, real);
    fn getdents64(descriptor: c_int, to: *mut c_void, len: size_t) -> isize
        |real| on_descriptor(Getdents, descriptor, real);
}
