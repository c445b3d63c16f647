//! Folders are listed.

use crate::descriptors::{closing, opened, watched};
use crate::real::hooks;
use crate::recorded::{Call, errno, named, set_errno, timed};
use crate::start::{is_on, is_vforked};
use libc::{AT_FDCWD, DIR};
use std::ffi::{c_char, c_int, c_void};
use stepscope_recorder::IoFunction::{Closedir, Fdopendir, Opendir, Readdir};

/// The next entry of a folder. At its end there is none, and no error either.
fn next(folder: *mut DIR, real: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if !is_on() {
        return real();
    }
    // SAFETY: the caller's folder.
    let Some(open) = watched(unsafe { libc::dirfd(folder) }) else { return real() };
    let mut entry = std::ptr::null_mut();
    let before = errno();
    set_errno(0);
    timed(
        || {
            entry = real();
            if entry.is_null() && errno() != 0 { -1 } else { 0 }
        },
        |_| Call::on(Readdir, open.file()),
    );
    if errno() == 0 {
        set_errno(before);
    }
    entry
}

hooks! {
    fn opendir(path: *const c_char) -> *mut DIR |real| {
        if !is_on() || is_vforked() {
            return real();
        }
        let file = named(AT_FDCWD, path);
        let Some(_) = file else { return real() };
        let folder = timed(real, |_| Call::on(Opendir, file));
        if !folder.is_null() {
            // SAFETY: it was opened.
            opened(unsafe { libc::dirfd(folder) }, file, 0);
        }
        folder
    };
    fn fdopendir(descriptor: c_int) -> *mut DIR |real| {
        let file = watched(descriptor).and_then(|open| open.file());
        if file.is_none() {
            return real();
        }
        timed(real, |_| Call::on(Fdopendir, file))
    };
    fn readdir(folder: *mut DIR) -> *mut c_void |real| next(folder, real);
    fn readdir64(folder: *mut DIR) -> *mut c_void |real| next(folder, real);
    fn closedir(folder: *mut DIR) -> c_int |real| {
        if !is_on() || is_vforked() {
            return real();
        }
        // SAFETY: the caller's folder.
        let descriptor = unsafe { libc::dirfd(folder) };
        let file = watched(descriptor).and_then(|open| open.file());
        closing(descriptor);
        match file {
            Some(_) => timed(real, |_| Call::on(Closedir, file)),
            None => real(),
        }
    };
}
