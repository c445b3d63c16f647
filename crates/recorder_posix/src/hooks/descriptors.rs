//! Files are opened and closed, descriptors duplicated.

use crate::descriptors::{closing, duplicated, opened, position_at, watched};
use crate::real::hooks;
use crate::recorded::{Call, errno, named, on_descriptor, set_errno, timed};
use crate::start::{is_on, is_vforked};
use libc::{AT_FDCWD, mode_t, size_t};
use std::ffi::{c_char, c_int};
use stepscope_recorder::IoFunction;

/// A file is opened by name.
fn open_named(
    function: IoFunction,
    (descriptor, path): (c_int, *const c_char),
    flags: c_int,
    real: impl FnOnce() -> c_int,
) -> c_int {
    if !is_on() || is_vforked() {
        return real();
    }
    let file = named(descriptor, path);
    let new = match file {
        Some(_) => timed(real, |_| Call::on(function, file)),
        None => real(),
    };
    if new >= 0 {
        opened(new, file, position_at(flags, 0));
    }
    new
}

fn duplicate(function: IoFunction, original: c_int, real: impl FnOnce() -> c_int) -> c_int {
    if !is_on() || is_vforked() {
        return real();
    }
    let copy = on_descriptor(function, original, real);
    if copy >= 0 && copy != original {
        duplicated(original, copy);
    }
    copy
}

fn close_one(descriptor: c_int, real: impl FnOnce() -> c_int) -> c_int {
    if !is_on() || is_vforked() {
        return real();
    }
    let file = watched(descriptor).and_then(|open| open.file());
    closing(descriptor);
    match file {
        Some(_) => timed(real, |_| Call::on(IoFunction::Close, file)),
        None => real(),
    }
}

/// Descriptors from `first` on are closed.
fn close_from(first: c_int, last: c_int) {
    if is_on() && !is_vforked() {
        crate::descriptors::closing_all(first, last);
    }
}

/// How a file is opened, as the system has it.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

impl OpenHow {
    /// The path from the folder that is passed, which the system may be told to take for the root.
    fn seen_by_system(&self, mut path: *const c_char) -> *const c_char {
        const IN_ROOT: u64 = 0x10;
        // SAFETY: it is terminated, where it is not null.
        while self.resolve & IN_ROOT != 0 && !path.is_null() && unsafe { *path } == b'/' as c_char {
            // SAFETY: this is not its end.
            path = unsafe { path.add(1) };
        }
        path
    }
}

/// Calls the C library's function, or the system where it has none: a program finds this library's function then.
fn or_system_call(real: impl FnOnce() -> c_int, system: impl FnOnce() -> c_int) -> c_int {
    let before = errno();
    let new = real();
    if new >= 0 || errno() != libc::ENOSYS {
        return new;
    }
    set_errno(before);
    system()
}

const F_DUPFD: c_int = libc::F_DUPFD;
const F_DUPFD_CLOEXEC: c_int = libc::F_DUPFD_CLOEXEC;

fn control(descriptor: c_int, command: c_int, real: impl FnOnce() -> c_int) -> c_int {
    match command {
        F_DUPFD | F_DUPFD_CLOEXEC => duplicate(IoFunction::Dup, descriptor, real),
        // They may wait.
        libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
            on_descriptor(IoFunction::Fcntl, descriptor, real)
        }
        _ => real(),
    }
}

// The functions that take more arguments after a flag get one here that always is there: where it was not passed, it is
// what happens to stand in its place, and passed on as such.
hooks! {
    fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int
        |real| open_named(IoFunction::Open, (AT_FDCWD, path), flags, real);
    fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int
        |real| open_named(IoFunction::Open, (AT_FDCWD, path), flags, real);
    fn __open_2(path: *const c_char, flags: c_int) -> c_int
        |real| open_named(IoFunction::Open, (AT_FDCWD, path), flags, real);
    fn __open64_2(path: *const c_char, flags: c_int) -> c_int
        |real| open_named(IoFunction::Open, (AT_FDCWD, path), flags, real);
    fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int
        |real| open_named(IoFunction::Openat, (folder, path), flags, real);
    fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int
        |real| open_named(IoFunction::Openat, (folder, path), flags, real);
    fn __openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int
        |real| open_named(IoFunction::Openat, (folder, path), flags, real);
    fn __openat64_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int
        |real| open_named(IoFunction::Openat, (folder, path), flags, real);
    fn openat2(folder: c_int, path: *const c_char, how: *const OpenHow, len: size_t) -> c_int |real| {
        // SAFETY: null, or what the caller passes to the system.
        let how_it_is = unsafe { how.as_ref() };
        let flags = how_it_is.map_or(0, |how| how.flags as c_int);
        let seen = how_it_is.map_or(path, |how| how.seen_by_system(path));
        open_named(IoFunction::Openat2, (folder, seen), flags, || or_system_call(real, || {
            // SAFETY: the caller's arguments.
            unsafe { libc::syscall(libc::SYS_openat2, folder, path, how, len) as c_int }
        }))
    };
    fn creat(path: *const c_char, mode: mode_t) -> c_int
        |real| open_named(IoFunction::Creat, (AT_FDCWD, path), 0, real);
    fn creat64(path: *const c_char, mode: mode_t) -> c_int
        |real| open_named(IoFunction::Creat, (AT_FDCWD, path), 0, real);
    fn close(descriptor: c_int) -> c_int |real| close_one(descriptor, real);
    fn close_range(first: u32, last: u32, flags: c_int) -> c_int |real| {
        // A flag may leave them open until another program begins: then they are looked up again.
        close_from(c_int::try_from(first).unwrap_or(c_int::MAX), c_int::try_from(last).unwrap_or(c_int::MAX));
        real()
    };
    fn dup(descriptor: c_int) -> c_int |real| duplicate(IoFunction::Dup, descriptor, real);
    fn dup2(descriptor: c_int, copy: c_int) -> c_int |real| duplicate(IoFunction::Dup2, descriptor, real);
    fn dup3(descriptor: c_int, copy: c_int, flags: c_int) -> c_int |real| duplicate(IoFunction::Dup3, descriptor, real);
    fn fcntl(descriptor: c_int, command: c_int, argument: usize) -> c_int |real| control(descriptor, command, real);
    fn fcntl64(descriptor: c_int, command: c_int, argument: usize) -> c_int |real| control(descriptor, command, real);
}
