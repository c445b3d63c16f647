//! Files are made under names that the C library finds.

use crate::descriptors::{closing, opened, position_at, watched};
use crate::real::hooks;
use crate::recorded::{Call, named, timed};
use crate::start::{is_on, is_vforked};
use libc::{AT_FDCWD, FILE};
use std::ffi::{c_char, c_int};
use stepscope_recorder::IoFunction::{Mkstemp, Tmpfile};

/// A file is made, whose name replaces the one that is passed.
fn make(path: *mut c_char, flags: c_int, real: impl FnOnce() -> c_int) -> c_int {
    if !is_on() || is_vforked() {
        return real();
    }
    let mut file = None;
    let new = timed(real, |_| {
        file = named(AT_FDCWD, path);
        Call::on(Mkstemp, file)
    });
    if new >= 0 {
        opened(new, file, position_at(flags, 0));
    }
    new
}

/// A file without a name is made, which the system is asked for.
fn make_unnamed(real: impl FnOnce() -> *mut FILE) -> *mut FILE {
    if !is_on() || is_vforked() {
        return real();
    }
    timed(real, |stream| {
        // SAFETY: it was opened.
        let descriptor = if stream.is_null() { -1 } else { unsafe { libc::fileno(stream) } };
        closing(descriptor);
        Call::on(Tmpfile, watched(descriptor).and_then(|open| open.file()))
    })
}

hooks! {
    fn mkstemp(path: *mut c_char) -> c_int |real| make(path, 0, real);
    fn mkstemp64(path: *mut c_char) -> c_int |real| make(path, 0, real);
    fn mkostemp(path: *mut c_char, flags: c_int) -> c_int |real| make(path, flags, real);
    fn mkostemp64(path: *mut c_char, flags: c_int) -> c_int |real| make(path, flags, real);
    fn mkstemps(path: *mut c_char, end: c_int) -> c_int |real| make(path, 0, real);
    fn mkstemps64(path: *mut c_char, end: c_int) -> c_int |real| make(path, 0, real);
    fn mkostemps(path: *mut c_char, end: c_int, flags: c_int) -> c_int |real| make(path, flags, real);
    fn mkostemps64(path: *mut c_char, end: c_int, flags: c_int) -> c_int |real| make(path, flags, real);
    fn tmpfile() -> *mut FILE |real| make_unnamed(real);
    fn tmpfile64() -> *mut FILE |real| make_unnamed(real);
}
