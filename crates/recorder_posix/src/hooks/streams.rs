//! The C library's buffered streams.

use crate::descriptors::{closing, opened, watched};
use crate::files::File;
use crate::real::hooks;
use crate::recorded::{Call, Returned, errno, named, set_errno, timed, write};
use crate::start::{is_on, is_vforked};
use crate::unseen::{Way, elsewhere};
use libc::{AT_FDCWD, FILE, off_t, size_t, ssize_t};
use std::ffi::{c_char, c_int, c_long, c_void};
use stepscope_recorder::IoFunction::{
    self, Fclose, Fdopen, Fflush, Fgets, Fopen, Fprintf, Fputs, Fread, Freopen, Fseek, Fwrite, Getdelim, Getline,
};
use stepscope_recorder::ticks;

/// The file of a stream, when it is watched.
#[inline(always)]
fn file_of(stream: *mut FILE) -> Option<&'static File> {
    if !is_on() || stream.is_null() {
        return None;
    }
    // SAFETY: the caller's stream.
    watched(unsafe { libc::fileno(stream) })?.file()
}

/// A call on a stream.
#[inline(always)]
fn on_stream<R: Returned>(function: IoFunction, stream: *mut FILE, real: impl FnOnce() -> R) -> R {
    let file = file_of(stream);
    if file.is_none() {
        return real();
    }
    timed(real, |_| Call::on(function, file))
}

/// A call that moves bytes, which `count` counts in what it gives back.
#[inline(always)]
fn through<R: Returned>(
    function: IoFunction,
    stream: *mut FILE,
    asked: Option<usize>,
    real: impl FnOnce() -> R,
    count: impl FnOnce(R) -> usize,
) -> R {
    let file = file_of(stream);
    if file.is_none() {
        return through_another(function, real, count);
    }
    // What is given back is the same at the end of a file as where the call fails, and a reason may be left from before.
    let before = errno();
    set_errno(0);
    let start = ticks();
    let returned = real();
    let end = ticks();
    let reason = errno();
    let bytes = count(returned);
    let is_short = asked.map_or_else(|| returned.is_failed(), |asked| bytes < asked);
    // SAFETY: the caller's stream.
    let is_failed = is_short && reason != 0 && unsafe { libc::ferror(stream) } != 0;
    let bytes = bytes as u64;
    let asked = asked.map(|asked| asked as u64).filter(|asked| *asked != bytes);
    write(&Call { bytes, asked, ..Call::on(function, file) }, is_failed, (start, end), reason);
    set_errno(if reason == 0 { before } else { reason });
    returned
}

/// A call that moves bytes, of a stream that is not watched.
#[inline(always)]
fn through_another<R: Copy>(function: IoFunction, real: impl FnOnce() -> R, count: impl FnOnce(R) -> usize) -> R {
    let returned = real();
    if is_on() {
        elsewhere(Way::of(function), count(returned));
    }
    returned
}

/// Text is formatted, as many bytes as the call gives back. It may be about the reason that is left from before: `%m`.
#[inline(always)]
pub(super) fn formatted(stream: *mut FILE, real: impl FnOnce() -> c_int) -> c_int {
    match file_of(stream) {
        None => through_another(Fprintf, real, positive),
        file => timed(real, |bytes| Call { bytes: positive(bytes) as u64, ..Call::on(Fprintf, file) }),
    }
}

/// Moves a stream to its beginning: that it failed is only said by the reason that it left.
fn to_start(stream: *mut FILE, real: impl FnOnce()) {
    let file = file_of(stream);
    if file.is_none() {
        return real();
    }
    let before = errno();
    set_errno(0);
    let start = ticks();
    real();
    let end = ticks();
    let reason = errno();
    write(&Call::on(Fseek, file), reason != 0, (start, end), reason);
    set_errno(if reason == 0 { before } else { reason });
}

fn open_stream(function: IoFunction, path: *const c_char, real: impl FnOnce() -> *mut FILE) -> *mut FILE {
    if !is_on() || is_vforked() {
        return real();
    }
    let file = named(AT_FDCWD, path);
    let stream = match file {
        Some(_) => timed(real, |_| Call::on(function, file)),
        None => real(),
    };
    if !stream.is_null() && !path.is_null() {
        // SAFETY: it was opened.
        opened(unsafe { libc::fileno(stream) }, file, crate::open_files::UNKNOWN);
    }
    stream
}

/// The length of a text that the C library gave back.
fn len_of(text: *const c_char) -> usize {
    // SAFETY: null or terminated.
    if text.is_null() { 0 } else { unsafe { libc::strlen(text) } }
}

fn positive(bytes: c_int) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}

hooks! {
    fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE |real| open_stream(Fopen, path, real);
    fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE |real| open_stream(Fopen, path, real);
    fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE
        |real| open_stream(Freopen, path, real);
    fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE
        |real| open_stream(Freopen, path, real);
    fn fdopen(descriptor: c_int, mode: *const c_char) -> *mut FILE |real| {
        let file = watched(descriptor).and_then(|open| open.file());
        if file.is_none() {
            return real();
        }
        timed(real, |_| Call::on(Fdopen, file))
    };
    fn fclose(stream: *mut FILE) -> c_int |real| {
        if !is_on() || stream.is_null() || is_vforked() {
            return real();
        }
        // SAFETY: the caller's stream.
        let descriptor = unsafe { libc::fileno(stream) };
        let file = watched(descriptor).and_then(|open| open.file());
        closing(descriptor);
        match file {
            Some(_) => timed(real, |_| Call::on(Fclose, file)),
            None => real(),
        }
    };
    fn fread(to: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t
        |real| through(Fread, stream, Some(size.saturating_mul(count)), real, |items| items.saturating_mul(size));
    fn __fread_chk(to: *mut c_void, room: size_t, size: size_t, count: size_t, stream: *mut FILE) -> size_t
        |real| through(Fread, stream, Some(size.saturating_mul(count)), real, |items| items.saturating_mul(size));
    fn fread_unlocked(to: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t
        |real| through(Fread, stream, Some(size.saturating_mul(count)), real, |items| items.saturating_mul(size));
    fn __fread_unlocked_chk(to: *mut c_void, room: size_t, size: size_t, count: size_t, stream: *mut FILE) -> size_t
        |real| through(Fread, stream, Some(size.saturating_mul(count)), real, |items| items.saturating_mul(size));
    fn fwrite(from: *const c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t
        |real| through(Fwrite, stream, Some(size.saturating_mul(count)), real, |items| items.saturating_mul(size));
    fn fwrite_unlocked(from: *const c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t
        |real| through(Fwrite, stream, Some(size.saturating_mul(count)), real, |items| items.saturating_mul(size));
    fn fgets(to: *mut c_char, len: c_int, stream: *mut FILE) -> *mut c_char
        |real| through(Fgets, stream, None, real, |text| len_of(text));
    fn __fgets_chk(to: *mut c_char, room: size_t, len: c_int, stream: *mut FILE) -> *mut c_char
        |real| through(Fgets, stream, None, real, |text| len_of(text));
    fn fgets_unlocked(to: *mut c_char, len: c_int, stream: *mut FILE) -> *mut c_char
        |real| through(Fgets, stream, None, real, |text| len_of(text));
    fn __fgets_unlocked_chk(to: *mut c_char, room: size_t, len: c_int, stream: *mut FILE) -> *mut c_char
        |real| through(Fgets, stream, None, real, |text| len_of(text));
    fn fputs_unlocked(text: *const c_char, stream: *mut FILE) -> c_int
        |real| through(Fputs, stream, None, real, |returned| if returned < 0 { 0 } else { len_of(text) });
    fn fputs(text: *const c_char, stream: *mut FILE) -> c_int
        |real| through(Fputs, stream, None, real, |returned| if returned < 0 { 0 } else { len_of(text) });
    fn getline(to: *mut *mut c_char, len: *mut size_t, stream: *mut FILE) -> ssize_t
        |real| through(Getline, stream, None, real, |bytes| bytes.max(0) as usize);
    fn getdelim(to: *mut *mut c_char, len: *mut size_t, end: c_int, stream: *mut FILE) -> ssize_t
        |real| through(Getdelim, stream, None, real, |bytes| bytes.max(0) as usize);
    fn __getdelim(to: *mut *mut c_char, len: *mut size_t, end: c_int, stream: *mut FILE) -> ssize_t
        |real| through(Getdelim, stream, None, real, |bytes| bytes.max(0) as usize);
    fn fflush_unlocked(stream: *mut FILE) -> c_int |real| on_stream(Fflush, stream, real);
    fn fflush(stream: *mut FILE) -> c_int |real| on_stream(Fflush, stream, real);
    fn fseek(stream: *mut FILE, offset: c_long, whence: c_int) -> c_int |real| on_stream(Fseek, stream, real);
    fn fseeko(stream: *mut FILE, offset: off_t, whence: c_int) -> c_int |real| on_stream(Fseek, stream, real);
    fn fseeko64(stream: *mut FILE, offset: off_t, whence: c_int) -> c_int |real| on_stream(Fseek, stream, real);
    fn fgetpos(stream: *mut FILE, to: *mut c_void) -> c_int |real| on_stream(Fseek, stream, real);
    fn fgetpos64(stream: *mut FILE, to: *mut c_void) -> c_int |real| on_stream(Fseek, stream, real);
    fn fsetpos(stream: *mut FILE, from: *const c_void) -> c_int |real| on_stream(Fseek, stream, real);
    fn fsetpos64(stream: *mut FILE, from: *const c_void) -> c_int |real| on_stream(Fseek, stream, real);
    fn rewind(stream: *mut FILE) -> () |real| to_start(stream, real);
}
