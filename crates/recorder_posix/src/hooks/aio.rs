//! Requests that a program hands to the system by libaio, and whose results it fetches later.
//!
//! ```text
//! io_submit ─▶ what each request is of is remembered ─▶ a call for each that was taken, which moves nothing
//! io_getevents ─▶ a call for each request that is over, with the bytes that it moved
//! ```

use crate::aio_requests::{Request, remember, take};
use crate::descriptors::watched;
use crate::hooks::transfers::bytes_of;
use crate::real::hooks;
use crate::recorded::{Call, Returned, errno, set_errno, write};
use crate::start::{is_on, is_vforked};
use libc::{iovec, timespec};
use std::ffi::{c_int, c_long, c_void};
use stepscope_recorder::IoFunction::{AioOther, AioRead, AioWrite, IoSubmit};
use stepscope_recorder::ticks;

/// The system's number of this call.
const SYS_IO_PGETEVENTS: c_long = if cfg!(target_arch = "x86_64") { 333 } else { 292 };

/// A request, as libaio and the system have it.
#[repr(C)]
struct ControlBlock {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: i16,
    descriptor: c_int,
    buffer: *const c_void,
    bytes: u64,
    offset: i64,
    others: [u64; 2],
}

/// What the system tells of a request that is over.
#[repr(C)]
struct Event {
    data: u64,
    block: *const c_void,
    /// The bytes that were moved, or the error.
    result: i64,
    other_result: i64,
}

/// How many requests a function of libaio took or gives back, or an error below zero: `errno` has none.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Number(c_int);

impl Returned for Number {
    /// No error: there is no libaio.
    const FAILED: Self = Self(c_int::MIN);

    fn is_failed(self) -> bool {
        self.0 < 0
    }
}

impl Number {
    /// That of the library, else that of the system call which it stands for: a program may find this function where it
    /// has no libaio, or one by another name.
    fn of(library: impl FnOnce() -> Self, system: impl FnOnce() -> c_long) -> Self {
        let before = errno();
        let number = library();
        if number.0 != Self::FAILED.0 {
            return number;
        }
        let number = match system() {
            -1 => -errno(),
            number => number as c_int,
        };
        set_errno(before);
        Self(number)
    }

    fn positive(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }
}

fn request_of(block: &ControlBlock) -> Option<Request> {
    // As the system numbers them.
    const VECTORS: u16 = 7;
    let function = match block.operation {
        0 | VECTORS => AioRead,
        1 | 8 => AioWrite,
        2 | 3 => AioOther,
        _ => return None,
    };
    let bytes = match (function, block.operation) {
        (AioOther, _) => 0,
        (_, VECTORS..) => bytes_of(block.buffer.cast::<iovec>(), c_int::try_from(block.bytes).unwrap_or(0)) as u64,
        _ => block.bytes,
    };
    let file = watched(block.descriptor)?.file()?;
    Some(Request { function, file, bytes, offset: u64::try_from(block.offset).unwrap_or(0) })
}

/// The part of a call's time that belongs to one of the requests that it is about.
pub(super) fn part((start, end): (u64, u64), at: usize, all: usize) -> (u64, u64) {
    let until = |at: usize| start + (u128::from(end.saturating_sub(start)) * at as u128 / all as u128) as u64;
    (until(at), until(at + 1))
}

fn submit(count: c_long, blocks: *const *const ControlBlock, real: impl FnOnce() -> Number) -> Number {
    if !is_on() || is_vforked() || count <= 0 || blocks.is_null() {
        return real();
    }
    // SAFETY: the caller passes as many to the system.
    let blocks = unsafe { std::slice::from_raw_parts(blocks, count as usize) };
    // Before: another thread may fetch the result at once, and free the request.
    let request_of = |block: &*const ControlBlock| {
        // SAFETY: null, or the caller's.
        let request = unsafe { block.as_ref() }.and_then(request_of)?;
        remember(block.cast(), &request);
        Some((block.cast(), request))
    };
    let requests: Vec<Option<(*const c_void, Request)>> = blocks.iter().map(request_of).collect();
    let start = ticks();
    let taken = real();
    let end = ticks();
    // The first one is what an error is about.
    let (count, error) = if taken.is_failed() { (1, -taken.0) } else { (taken.positive(), 0) };
    // The system has not taken these.
    requests.iter().skip(taken.positive()).flatten().for_each(|(block, _)| _ = take(*block));
    let before = errno();
    for (at, (_, request)) in requests.iter().take(count).enumerate().filter_map(|(at, of)| Some((at, of.as_ref()?))) {
        let asked = Some(request.bytes).filter(|_| request.function != AioOther);
        let offset = asked.map(|_| request.offset);
        let call = Call { asked, offset, ..Call::on(IoSubmit, Some(request.file)) };
        write(&call, error != 0, part((start, end), at, count), error);
    }
    set_errno(before);
    taken
}

fn get_events(events: *const Event, real: impl FnOnce() -> Number) -> Number {
    if !is_on() || is_vforked() {
        return real();
    }
    let start = ticks();
    let number = real();
    let end = ticks();
    let count = number.positive();
    if count == 0 || events.is_null() {
        return number;
    }
    // SAFETY: the system has just written as many.
    let events = unsafe { std::slice::from_raw_parts(events, count) };
    let before = errno();
    for (at, event) in events.iter().enumerate() {
        let Some(Request { function, file, bytes, offset }) = take(event.block) else { continue };
        let moved = u64::try_from(event.result).unwrap_or(0);
        let asked = Some(bytes).filter(|bytes| *bytes != moved);
        let call = match function {
            AioOther => Call::on(function, Some(file)),
            _ => Call { bytes: moved, asked, offset: Some(offset), ..Call::on(function, Some(file)) },
        };
        let error = if event.result < 0 { event.result.unsigned_abs() as c_int } else { 0 };
        write(&call, error != 0, part((start, end), at, count), error);
    }
    set_errno(before);
    number
}

hooks! {
    fn io_submit(context: usize, count: c_long, blocks: *const *const ControlBlock) -> Number
        |real| submit(count, blocks, || Number::of(real, || {
            // SAFETY: the caller's arguments.
            unsafe { libc::syscall(libc::SYS_io_submit, context, count, blocks) }
        }));
    fn io_getevents(context: usize, least: c_long, most: c_long, events: *mut Event, until: *mut timespec) -> Number
        |real| get_events(events, || Number::of(real, || {
            // SAFETY: the caller's arguments.
            unsafe { libc::syscall(libc::SYS_io_getevents, context, least, most, events, until) }
        }));
    fn io_pgetevents(
        context: usize,
        least: c_long,
        most: c_long,
        events: *mut Event,
        until: *mut timespec,
        signals: *mut libc::sigset_t
    ) -> Number |real| get_events(events, || Number::of(real, || {
        // The mask, and how many bytes of it the system looks at.
        let mask: [usize; 2] = [signals as usize, 8];
        // SAFETY: the caller's arguments.
        unsafe { libc::syscall(SYS_IO_PGETEVENTS, context, least, most, events, until, mask.as_ptr()) }
    }));
}
