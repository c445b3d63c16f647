//! Requests that a program hands to the system by io_uring, with liburing.
//!
//! ```text
//! io_uring_submit ─▶ what each request is of is remembered ─▶ a call for each that was taken, which moves nothing
//! any call that may wait ─▶ what stands in the ring since the last one: a call for each request that is over
//! ```
//!
//! Programs fill and empty rings by code of their own, which liburing has in its headers. What they have taken out of a
//! ring is found there at the next call.

use super::aio::part;
use super::transfers::bytes_of;
use crate::descriptors::{closing, watched};
use crate::files::File;
use crate::open_files;
use crate::real::bound_hooks;
use crate::recorded::{Call, errno, named, set_errno, write};
use crate::start::{is_on, is_vforked};
use crate::uring::known::{Known, Place, Request, forget, known, known_from_now};
use crate::uring::ring::{Completion, Entry, Ring};
use libc::iovec;
use std::ffi::{c_int, c_void};
use stepscope_recorder::IoFunction::{IoUringRead, IoUringSubmit, IoUringSync, IoUringWrite};
use stepscope_recorder::ticks;

/// Flags of a request: its descriptor is the place of a registered file; nothing is told when it succeeds.
const IS_REGISTERED: u8 = 1 << 0;
const IS_SILENT: u8 = 1 << 6;
/// Of a completion: it is of memory that the program may use again, not of bytes.
const IS_NOTIFICATION: u32 = 1 << 3;
/// The system chooses the place of a file.
const ANY_PLACE: u32 = u32::MAX;

// As the system numbers them.
const READ: [u8; 4] = [1, 4, 22, 60];
const WRITE: [u8; 4] = [2, 5, 23, 61];
const OF_VECTORS: [u8; 4] = [1, 2, 60, 61];
const SYNC: [u8; 2] = [3, 8];
const ACCEPT: u8 = 13;
const OPEN: [u8; 2] = [18, 28];
const CLOSE: u8 = 19;
const UPDATE_FILES: u8 = 20;
const SOCKET: u8 = 45;

/// The request that an entry is, of a file that is watched.
fn request_of(entry: &Entry, known: Option<&Known>) -> Option<Request> {
    let function = match entry.operation {
        operation if READ.contains(&operation) => IoUringRead,
        operation if WRITE.contains(&operation) => IoUringWrite,
        operation if SYNC.contains(&operation) => IoUringSync,
        _ => return None,
    };
    let file = if entry.flags & IS_REGISTERED != 0 {
        known?.file(entry.descriptor as u32)
    } else {
        watched(entry.descriptor)?.file()
    }?;
    if function == IoUringSync {
        return Some(Request { function, file, bytes: None, place: Place::Nowhere });
    }
    let bytes = if OF_VECTORS.contains(&entry.operation) {
        bytes_of(entry.address.cast::<iovec>(), c_int::try_from(entry.bytes).unwrap_or(0)) as u64
    } else {
        entry.bytes.into()
    };
    let place = match entry.offset {
        // At its own position, which a registered file has, too.
        u64::MAX if entry.flags & IS_REGISTERED != 0 => Place::Nowhere,
        u64::MAX => Place::Of(entry.descriptor),
        offset => Place::At(offset),
    };
    Some(Request { function, file, bytes: Some(bytes), place })
}

impl Place {
    /// Where its descriptor stands is moved, by a request that is under way or over.
    fn moves(self) {
        if let Self::Of(descriptor) = self {
            watched(descriptor).into_iter().for_each(|open| open.set_position(open_files::UNKNOWN));
        }
    }
}

/// Requests that open or close files: another file may have their descriptor, or their place, afterwards.
fn note_files(entry: &Entry, ring: &Ring) {
    let place = entry.file_place.checked_sub(1).filter(|_| entry.file_place != ANY_PLACE);
    let set = |file: Option<&'static File>| {
        let known = if file.is_some() { known_from_now(ring) } else { known(ring) };
        known.zip(place).into_iter().for_each(|(known, place)| known.set_file(place, file));
    };
    match entry.operation {
        CLOSE if entry.file_place == 0 => closing(entry.descriptor),
        operation if OPEN.contains(&operation) && place.is_some() => {
            set(named(entry.descriptor, entry.address.cast()));
        }
        CLOSE | ACCEPT | SOCKET => set(None),
        UPDATE_FILES => update_files(ring, entry.offset as u32, entry.address.cast(), entry.bytes),
        _ => {}
    }
}

/// What a call hands over.
struct Submission {
    /// From where on there are requests, and up to where.
    from: u32,
    until: u32,
    /// Those of files that are watched.
    requests: Vec<(u32, Request)>,
}

impl Submission {
    /// What a ring is about to hand over. It is remembered before it is: another thread may be told of its end at once,
    /// and free what it was made of.
    fn of(ring: &Ring) -> Self {
        let until = ring.made();
        let from = known(ring).map_or_else(|| ring.handed_over(), |known| known.recorded(ring, until));
        let count = until.wrapping_sub(from).min(ring.most_made());
        let mut requests = Vec::new();
        for at in (0..count).map(|at| from.wrapping_add(at)) {
            let entry = ring.entry(at);
            let is_new = known(ring).is_none_or(|known| known.is_new(at));
            if is_new {
                note_files(&entry, ring);
            }
            let Some(request) = request_of(&entry, known(ring)) else { continue };
            if is_new
                && entry.flags & IS_SILENT == 0
                && let Some(known) = known_from_now(ring)
            {
                known.remember(entry.data, &request);
            }
            requests.push((at, request));
        }
        if let Some(known) = known(ring) {
            known.set_remembered(until);
        }
        Self { from, until, requests }
    }

    /// Up to there the system has them after the call.
    fn handed_over(&self, ring: &Ring) -> u32 {
        let handed_over = ring.handed_over().wrapping_sub(self.from);
        if handed_over > self.until.wrapping_sub(self.from) { 0 } else { handed_over }
    }

    /// Records what the system has taken of it, or the error that it gave; `all`: among how many calls the time is divided.
    fn record(&self, taken: u32, returned: c_int, time: (u64, u64), all: usize) {
        // The first one is what an error is about.
        let (count, error) = if returned < 0 && taken == 0 { (1, -returned) } else { (taken, 0) };
        for (at, request) in &self.requests {
            let at = at.wrapping_sub(self.from);
            if at < count {
                request.place.moves();
                let offset = if let Place::At(offset) = request.place { Some(offset) } else { None };
                let call = Call { asked: request.bytes, offset, ..Call::on(IoUringSubmit, Some(request.file)) };
                write(&call, error != 0, part(time, at as usize, all), error);
            }
        }
    }
}

/// Records a request that is over.
fn record_end(request: &Request, completion: &Completion, time: (u64, u64)) {
    let Request { function, file, bytes, place } = *request;
    let moved = u64::try_from(completion.result).unwrap_or(0);
    let offset = match place {
        Place::At(offset) => Some(offset),
        Place::Of(_) | Place::Nowhere => None,
    };
    place.moves();
    let call = match function {
        IoUringSync => Call::on(function, Some(file)),
        _ => {
            let asked = bytes.filter(|bytes| *bytes != moved && *bytes != 0);
            Call { bytes: moved, asked, offset, ..Call::on(function, Some(file)) }
        }
    };
    write(&call, completion.result < 0, time, completion.result.saturating_neg());
}

/// Records what became of requests up to `until`; `before`: how many calls share the time with these.
fn look(ring: &Ring, until: u32, time: (u64, u64), before: usize) {
    let Some(known) = known(ring) else { return };
    known.look(ring, until, |(at, count), request, completion| {
        if completion.flags & IS_NOTIFICATION == 0
            && let Some(request) = request
        {
            record_end(&request, completion, part(time, before + at, before + count));
        }
    });
}

/// A call that may hand over requests, or wait until some are over.
#[derive(Clone, Copy)]
struct Does {
    submits: bool,
    waits: bool,
}

const SUBMITS: Does = Does { submits: true, waits: false };
const WAITS: Does = Does { submits: false, waits: true };
const BOTH: Does = Does { submits: true, waits: true };

fn on_ring(ring: *const Ring, does: Does, real: impl FnOnce() -> c_int) -> c_int {
    if !is_on() || is_vforked() {
        return real();
    }
    let Some(ring) = Ring::at(ring) else { return real() };
    let before = errno();
    // What the program has taken by itself.
    let now = ticks();
    look(ring, ring.seen(), (now, now), 0);
    let submission = does.submits.then(|| Submission::of(ring));
    set_errno(before);
    let start = ticks();
    let returned = real();
    let time = (start, ticks());
    let Some(known) = known(ring) else { return returned };
    let before = errno();
    let over = ring.over();
    let waiting = if does.waits { known.waiting(over) } else { 0 };
    let mut submitted = 0;
    if let Some(submission) = submission {
        let taken = submission.handed_over(ring);
        submitted = if returned < 0 { taken.max(1) } else { taken } as usize;
        submission.record(taken, returned, time, submitted + waiting);
        known.set_recorded(submission.from.wrapping_add(taken));
    }
    if does.waits {
        look(ring, over, time, submitted);
    }
    set_errno(before);
    returned
}

/// The ring is no longer: what the program has taken of it, or never will, is recorded.
fn exit(ring: *const Ring, real: impl FnOnce() -> c_int) -> c_int {
    if is_on()
        && !is_vforked()
        && let Some(ring) = Ring::at(ring)
    {
        let now = ticks();
        look(ring, ring.over(), (now, now), 0);
        forget(ring);
    }
    real()
}

/// Files are registered at places from `first` on; `files` is null, or has their descriptors. Negative ones leave a place
/// empty, or as it is.
fn update_files(ring: &Ring, first: u32, files: *const c_int, count: u32) {
    const AS_IT_IS: c_int = -2;
    for at in 0..if files.is_null() { 0 } else { count } {
        // SAFETY: the caller passes as many to the system.
        let descriptor = unsafe { *files.add(at as usize) };
        let file = if descriptor < 0 { None } else { watched(descriptor).and_then(|open| open.file()) };
        if descriptor != AS_IT_IS
            && let Some(known) = known(ring)
        {
            known.set_file(first.wrapping_add(at), file);
        }
    }
}

fn register(ring: *const Ring, files: *const c_int, count: u32, real: impl FnOnce() -> c_int) -> c_int {
    let returned = real();
    if returned >= 0
        && is_on()
        && !is_vforked()
        && let Some(ring) = Ring::at(ring)
        && let Some(known) = known_from_now(ring)
    {
        known.register(count);
        update_files(ring, 0, files, count);
    }
    returned
}

fn update(ring: *const Ring, first: u32, files: *const c_int, count: u32, real: impl FnOnce() -> c_int) -> c_int {
    let returned = real();
    if returned >= 0
        && is_on()
        && !is_vforked()
        && let Some(ring) = Ring::at(ring)
    {
        // As many as it says.
        update_files(ring, first, files, count.min(returned as u32));
    }
    returned
}

bound_hooks! {
    fn io_uring_submit(ring: *const Ring) -> c_int |real| on_ring(ring, SUBMITS, real);
    fn io_uring_submit_and_wait(ring: *const Ring, number: u32) -> c_int |real| on_ring(ring, BOTH, real);
    fn io_uring_submit_and_wait_timeout(
        ring: *const Ring,
        to: *mut c_void,
        number: u32,
        until: *mut c_void,
        signals: *mut c_void
    ) -> c_int |real| on_ring(ring, BOTH, real);
    fn io_uring_submit_and_wait_min_timeout(
        ring: *const Ring,
        to: *mut c_void,
        number: u32,
        until: *mut c_void,
        least: u32,
        signals: *mut c_void
    ) -> c_int |real| on_ring(ring, BOTH, real);
    fn io_uring_submit_and_wait_reg(ring: *const Ring, to: *mut c_void, number: u32, wait: c_int) -> c_int
        |real| on_ring(ring, BOTH, real);
    fn io_uring_submit_and_get_events(ring: *const Ring) -> c_int |real| on_ring(ring, BOTH, real);
    fn io_uring_get_events(ring: *const Ring) -> c_int |real| on_ring(ring, WAITS, real);
    fn io_uring_wait_cqes(
        ring: *const Ring,
        to: *mut c_void,
        number: u32,
        until: *mut c_void,
        signals: *mut c_void
    ) -> c_int |real| on_ring(ring, WAITS, real);
    fn io_uring_wait_cqes_min_timeout(
        ring: *const Ring,
        to: *mut c_void,
        number: u32,
        until: *mut c_void,
        least: u32,
        signals: *mut c_void
    ) -> c_int |real| on_ring(ring, WAITS, real);
    fn io_uring_wait_cqe_timeout(ring: *const Ring, to: *mut c_void, until: *mut c_void) -> c_int
        |real| on_ring(ring, WAITS, real);
    fn __io_uring_get_cqe(ring: *const Ring, to: *mut c_void, submit: u32, number: u32, signals: *mut c_void) -> c_int
        |real| on_ring(ring, WAITS, real);
    fn io_uring_peek_batch_cqe(ring: *const Ring, to: *mut c_void, number: u32) -> c_int
        |real| on_ring(ring, WAITS, real);
    // Of liburing as other languages call it, which has no headers then.
    fn io_uring_wait_cqe(ring: *const Ring, to: *mut c_void) -> c_int |real| on_ring(ring, WAITS, real);
    fn io_uring_wait_cqe_nr(ring: *const Ring, to: *mut c_void, number: u32) -> c_int
        |real| on_ring(ring, WAITS, real);
    fn io_uring_peek_cqe(ring: *const Ring, to: *mut c_void) -> c_int |real| on_ring(ring, WAITS, real);
    fn io_uring_queue_exit(ring: *const Ring) -> c_int |real| exit(ring, real);
    fn io_uring_register_files(ring: *const Ring, files: *const c_int, count: u32) -> c_int
        |real| register(ring, files, count, real);
    fn io_uring_register_files_tags(ring: *const Ring, files: *const c_int, tags: *const u64, count: u32) -> c_int
        |real| register(ring, files, count, real);
    fn io_uring_register_files_sparse(ring: *const Ring, count: u32) -> c_int
        |real| register(ring, std::ptr::null(), count, real);
    fn io_uring_register_files_update(ring: *const Ring, first: u32, files: *const c_int, count: u32) -> c_int
        |real| update(ring, first, files, count, real);
    fn io_uring_register_files_update_tag(
        ring: *const Ring,
        first: u32,
        files: *const c_int,
        tags: *const u64,
        count: u32
    ) -> c_int |real| update(ring, first, files, count, real);
    fn io_uring_unregister_files(ring: *const Ring) -> c_int |real| register(ring, std::ptr::null(), 0, real);
}
