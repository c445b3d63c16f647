//! Files are opened and closed, descriptors duplicated.

use crate::descriptors::{closing, duplicated, opened, position_at, watched};
use crate::real::hooks;
use crate::recorded::{Call, named, on_descriptor, timed};
use crate::start::{is_on, is_vforked};
use libc::{AT_FDCWD, mode_t};
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
