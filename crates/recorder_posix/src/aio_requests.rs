//! Requests that the system has taken and of which the results were not fetched yet, by the address of the program's own
//! note of them: that may be gone by then, and the descriptor closed.

use crate::files::File;
use crate::mapped::Mapped;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use stepscope_recorder::IoFunction;

/// Twice as many as a system takes at once, unless it is told to take more (`aio-max-nr`), and the places where one may
/// stand.
const PLACES: usize = 1 << 17;
const PROBES: usize = 64;

static TABLE: Mapped<{ PLACES * size_of::<Place>() }> = Mapped::new();

/// What is asked of a file.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    /// What it is once it is over.
    pub(crate) function: IoFunction,
    pub(crate) file: &'static File,
    /// As many are to be moved.
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
}

/// Values of a place that another thread has taken meanwhile are of no use, and do no harm.
struct Place {
    /// The address; 0: it is free.
    of: AtomicUsize,
    file: AtomicPtr<File>,
    bytes: AtomicU64,
    offset: AtomicU64,
    function: AtomicU64,
}

/// Where a request may stand.
fn places(of: *const c_void) -> impl Iterator<Item = &'static Place> {
    let base = TABLE.base().cast::<Place>().cast_const();
    let first = (of as usize).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize) >> 24;
    let count = if base.is_null() { 0 } else { PROBES };
    // SAFETY: within the table, which is zero where nothing was stored.
    (0..count).map(move |probe| unsafe { &*base.add(first.wrapping_add(probe) % PLACES) })
}

fn place(of: *const c_void) -> Option<&'static Place> {
    places(of).find(|place| place.of.load(Ordering::Acquire) == of as usize)
}

/// The request is about to be handed to the system.
pub(crate) fn remember(of: *const c_void, request: &Request) {
    // One that was never fetched gives way.
    let claimed = |place: &&Place| place.of.compare_exchange(0, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok();
    let Some(place) = place(of).or_else(|| places(of).find(claimed)) else { return };
    place.file.store(std::ptr::from_ref(request.file).cast_mut(), Ordering::Relaxed);
    place.bytes.store(request.bytes, Ordering::Relaxed);
    place.offset.store(request.offset, Ordering::Relaxed);
    place.function.store(request.function as u64, Ordering::Relaxed);
    place.of.store(of as usize, Ordering::Release);
}

/// No request has this address.
const CLAIMED: usize = 1;

/// What was asked, of a request that is over, or that the system has not taken: it is known no longer. `None` where its
/// file is not watched.
pub(crate) fn take(of: *const c_void) -> Option<Request> {
    let place = place(of)?;
    // SAFETY: null, or a file, which is never freed.
    let file = unsafe { place.file.swap(null_mut(), Ordering::Relaxed).as_ref() };
    let (bytes, offset) = (place.bytes.load(Ordering::Relaxed), place.offset.load(Ordering::Relaxed));
    let function = IoFunction::from_number(place.function.load(Ordering::Relaxed) as u8);
    place.of.store(0, Ordering::Release);
    Some(Request { function: function?, file: file?, bytes, offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file;

    #[test]
    fn each_request_is_told_once_whoever_fetches_it() {
        let file = file(b"/data/swapped").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                scope.spawn(move || {
                    for round in 0..50_u64 {
                        let addresses = || (1..500_usize).map(|at| ((thread * 1_000 + at) * 64) as *const c_void);
                        for of in addresses() {
                            let bytes = of as u64 + round;
                            remember(of, &Request { function: IoFunction::AioRead, file, bytes, offset: 7 });
                        }
                        for of in addresses() {
                            let request = take(of).unwrap();
                            assert_eq!((request.bytes, request.offset), (of as u64 + round, 7));
                            assert_eq!((request.function, request.file.number), (IoFunction::AioRead, file.number));
                            assert!(take(of).is_none());
                        }
                    }
                });
            }
        });
        let of = 64 as *const c_void;
        for bytes in [1, 2] {
            remember(of, &Request { function: IoFunction::AioWrite, file, bytes, offset: 0 });
        }
        assert_eq!(take(of).map(|request| request.bytes), Some(2));
        assert!(take(of).is_none());
    }
}
