//! A call that is recorded: from the reading of the clock before it to its record.

use crate::bound;
use crate::descriptors::{Of, is_other, of, watched};
use crate::files::{File, file};
use crate::late::{self, Ended};
use crate::open_files::OpenFile;
use crate::paths::{absolute, is_watched};
use crate::refused::{Lack, count};
use crate::sockets::{self, Peer};
use crate::start::{begin_to_write, end_to_write, has_own_descriptors, is_inside, is_on};
use crate::thread_sums::mine;
use crate::unseen::{Way, elsewhere};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;
use stepscope_recorder::{IoFunction, IoRecord, capture_number, define_file, io_call, ticks};

/// What a function of the C library gives back.
pub(crate) trait Returned: Copy {
    /// What it gives back when it fails.
    const FAILED: Self;
    /// The reason of a call that failed; `None`: the one that the C library keeps for the thread.
    const REASON: Option<c_int> = None;

    /// Whether the call failed, and left a reason.
    fn is_failed(self) -> bool;
}

impl Returned for c_int {
    const FAILED: Self = -1;

    #[inline(always)]
    fn is_failed(self) -> bool {
        self < 0
    }
}

impl Returned for isize {
    const FAILED: Self = -1;

    #[inline(always)]
    fn is_failed(self) -> bool {
        self < 0
    }
}

/// Of streams, which do not say here whether less was moved because of an error.
impl Returned for usize {
    const FAILED: Self = 0;

    #[inline(always)]
    fn is_failed(self) -> bool {
        false
    }
}

/// Of what gives nothing back.
impl Returned for () {
    const FAILED: Self = ();

    #[inline(always)]
    fn is_failed(self) -> bool {
        false
    }
}

/// What a library gives back that has numbers of its own for errors.
macro_rules! own_errors {
    ($type:ident($number:ty), $failed:literal, |$value:ident| $is_failed:expr) => {
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(super) struct $type(pub(super) $number);

        impl $crate::recorded::Returned for $type {
            const FAILED: Self = Self($failed);
            const REASON: Option<std::ffi::c_int> = Some(stepscope_recorder::UNKNOWN_ERROR as std::ffi::c_int);

            fn is_failed(self) -> bool {
                let $value = self.0;
                $is_failed
            }
        }
    };
}
pub(crate) use own_errors;

impl<T> Returned for *mut T {
    const FAILED: Self = std::ptr::null_mut();

    #[inline(always)]
    fn is_failed(self) -> bool {
        self.is_null() || self.cast::<c_void>() == libc::MAP_FAILED
    }
}

/// The reason that the last call that failed left on this thread.
#[inline(always)]
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library has one for each thread.
    unsafe { *libc::__errno_location() }
}

#[inline(always)]
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// What is known of a call beside when it was.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) function: IoFunction,
    pub(crate) file: Option<&'static File>,
    pub(crate) other_file: Option<&'static File>,
    pub(crate) bytes: u64,
    pub(crate) asked: Option<u64>,
    pub(crate) offset: Option<u64>,
}

impl Call {
    /// One on `file` that moves nothing.
    #[inline(always)]
    pub(crate) fn on(function: IoFunction, file: Option<&'static File>) -> Self {
        Self { function, file, other_file: None, bytes: 0, asked: None, offset: None }
    }
}

/// Calls `real`, and records the call as `describe` says it of what that gave back; of no file, nothing.
#[inline(always)]
pub(crate) fn timed<R: Returned>(real: impl FnOnce() -> R, describe: impl FnOnce(R) -> Call) -> R {
    let start = ticks();
    let returned = real();
    let end = ticks();
    let reason = errno();
    write(&describe(returned), returned.is_failed(), (start, end), R::REASON.unwrap_or(reason));
    set_errno(reason);
    returned
}

/// As [`timed`], of a function that gives its error back, and leaves the one of the thread as it is.
#[inline(always)]
pub(crate) fn timed_with_error(real: impl FnOnce() -> c_int, call: Call) -> c_int {
    let start = ticks();
    let error = real();
    let end = ticks();
    let reason = errno();
    write(&call, error != 0, (start, end), error);
    set_errno(reason);
    error
}

/// Records a call; of no file, nothing.
#[inline(always)]
pub(crate) fn write(call: &Call, is_failed: bool, times: (u64, u64), reason: c_int) {
    if call.file.is_none() || is_inside() {
        return;
    }
    let ended = Ended { call: *call, errno: if is_failed { reason as u16 } else { 0 }, times };
    if !begin_to_write() {
        return if !late::wait(ended) {
            count(Lack::Waiting)
        };
    }
    record(&ended);
    loop {
        end_to_write();
        // From here on a handler writes by itself.
        if late::is_empty() || !begin_to_write() {
            return;
        }
        late::next().iter().for_each(record);
    }
}

#[inline(always)]
fn record(ended: &Ended) {
    let Ended { call, errno, times: (start, end) } = ended;
    let Some(file) = call.file else { return };
    let Some(capture) = capture_with(file) else { return };
    // What it has done counts when it ends.
    mine();
    let other_file = call
        .other_file
        .filter(|other| other.capture.load(Ordering::Relaxed) == capture || define(other) == Some(capture));
    let record = IoRecord {
        function: call.function,
        errno: *errno,
        duration_ticks: end.saturating_sub(*start),
        file: file.number,
        other_file: other_file.map_or(0, |other| other.number),
        bytes: call.bytes,
        asked: call.asked,
        offset: call.offset,
        thread: 0,
    };
    io_call(*start, &record, capture);
}

/// The number of the capture that is open, in which the file is defined now; `None` where nothing can be written.
#[inline(always)]
pub(crate) fn capture_with(file: &File) -> Option<u64> {
    let capture = file.capture.load(Ordering::Relaxed);
    if capture == capture_number() { Some(capture) } else { define(file) }
}

#[cold]
fn define(file: &File) -> Option<u64> {
    let capture = define_file(file.number, file.path())?;
    file.capture.store(capture, Ordering::Relaxed);
    Some(capture)
}

/// A call that moves bytes at the position of a descriptor, or at `offset`.
#[inline(always)]
pub(crate) fn transfer(
    function: IoFunction,
    descriptor: c_int,
    asked: impl FnOnce() -> usize,
    offset: Option<i64>,
    real: impl FnOnce() -> isize,
) -> isize {
    if !is_on() {
        return real();
    }
    if is_other(descriptor) {
        return moved_elsewhere(function, real);
    }
    transfer_known(function, descriptor, asked, offset, real)
}

/// Apart, so that what is not watched has little to do.
#[inline(never)]
fn transfer_known(
    function: IoFunction,
    descriptor: c_int,
    asked: impl FnOnce() -> usize,
    offset: Option<i64>,
    real: impl FnOnce() -> isize,
) -> isize {
    let open = match of(descriptor) {
        Of::File(open) => open,
        Of::Socket(peer) => return moved_on_socket(function, (descriptor, peer), asked, real),
        Of::Other => return moved_elsewhere(function, real),
    };
    let position = offset.or_else(|| open.position(|| ask_position(descriptor)));
    timed(real, |moved| {
        if offset.is_none() && moved > 0 && position.is_some() {
            open.advance(moved as i64);
        }
        let (bytes, asked) = bytes_and_asked(moved, asked);
        let offset = position.and_then(|position| u64::try_from(position).ok());
        Call { bytes, asked, offset, ..Call::on(function, open.file()) }
    })
}

/// What a call moved, and what it was asked for where that is something else.
#[inline(always)]
pub(crate) fn bytes_and_asked(moved: isize, asked: impl FnOnce() -> usize) -> (u64, Option<u64>) {
    let bytes = moved.max(0) as u64;
    // A list of buffers that the system could not read, or would not, cannot be read here.
    let is_readable = moved >= 0 || !matches!(errno(), libc::EFAULT | libc::EINVAL);
    let asked = is_readable.then(asked).map(|asked| asked as u64);
    (bytes, asked.filter(|asked| *asked != bytes))
}

/// A call that moves bytes, of something that is not watched.
#[inline(always)]
fn moved_elsewhere(function: IoFunction, real: impl FnOnce() -> isize) -> isize {
    let moved = real();
    if moved > 0 {
        elsewhere(Way::of(function), moved as usize);
    }
    moved
}

/// A call for files on a socket.
fn moved_on_socket(
    function: IoFunction,
    (socket, peer): (c_int, Peer),
    asked: impl FnOnce() -> usize,
    real: impl FnOnce() -> isize,
) -> isize {
    let moved = sockets::recorded(on_socket(function), socket, asked, || moved_elsewhere(function, real));
    if moved > 0 {
        sockets::moved(peer, Way::of(function), moved as u64);
    }
    moved
}

/// A function for files, where it is called on a socket; `None` of those that only work on files.
fn on_socket(function: IoFunction) -> Option<IoFunction> {
    match function {
        IoFunction::Read => Some(IoFunction::SocketRead),
        IoFunction::Readv => Some(IoFunction::SocketReadv),
        IoFunction::Write => Some(IoFunction::SocketWrite),
        IoFunction::Writev => Some(IoFunction::SocketWritev),
        _ => None,
    }
}

/// A call on a descriptor that moves no bytes.
#[inline(always)]
pub(crate) fn on_descriptor<R: Returned>(function: IoFunction, descriptor: c_int, real: impl FnOnce() -> R) -> R {
    on_open_file(descriptor, real, |_, open| Call::on(function, open.file()))
}

/// A call on a descriptor, which `describe` describes.
#[inline(always)]
pub(crate) fn on_open_file<R: Returned>(
    descriptor: c_int,
    real: impl FnOnce() -> R,
    describe: impl FnOnce(R, &'static OpenFile) -> Call,
) -> R {
    let Some(open) = watched(descriptor) else { return real() };
    timed(real, |returned| describe(returned, open))
}

/// Where the system has a descriptor stand; negative where it stands nowhere.
#[cold]
pub(crate) fn ask_position(descriptor: c_int) -> i64 {
    let reason = errno();
    // SAFETY: a plain system call.
    let position = unsafe { libc::syscall(libc::SYS_lseek, descriptor, 0, libc::SEEK_CUR) };
    set_errno(reason);
    position
}

/// The file that a call names by `path`, from the folder that `descriptor` is of, when it is watched. Paths are what the
/// program passes to the C library: null or terminated.
#[inline]
pub(crate) fn named(descriptor: c_int, path: *const c_char) -> Option<&'static File> {
    if !is_on() {
        return None;
    }
    if is_inside() || has_own_descriptors() {
        return None;
    }
    let reason = errno();
    bound::look_now();
    // SAFETY: the path is null or terminated.
    let found = unsafe { absolute(descriptor, path, |path| if is_watched(path) { file(path) } else { None }) };
    set_errno(reason);
    found
}

/// A call on a file that is named.
#[inline]
pub(crate) fn on_path<R: Returned>(
    function: IoFunction,
    (descriptor, path): (c_int, *const c_char),
    real: impl FnOnce() -> R,
) -> R {
    match named(descriptor, path) {
        Some(file) => timed(real, |_| Call::on(function, Some(file))),
        None => real(),
    }
}

/// A call on two files that are named.
#[inline]
pub(crate) fn on_two_paths<R: Returned>(
    function: IoFunction,
    (descriptor, path): (c_int, *const c_char),
    (other_descriptor, other_path): (c_int, *const c_char),
    real: impl FnOnce() -> R,
) -> R {
    let (file, other_file) = (named(descriptor, path), named(other_descriptor, other_path));
    match file.or(other_file) {
        Some(first) => timed(real, |_| Call { other_file: file.and(other_file), ..Call::on(function, Some(first)) }),
        None => real(),
    }
}
