//! Calls of signal handlers that interrupted the recording of another call: they wait until that is written.

use crate::recorded::Call;
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};

/// As many of a thread at once; more are not recorded.
const MOST: u32 = 32;

/// A call that has ended, and when; its error.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) call: Call,
    pub(crate) errno: u16,
    pub(crate) times: (u64, u64),
}

/// Filled by handlers, each of which ends before what it interrupted goes on; emptied by what none of them interrupts.
struct Waiting {
    first: Cell<u32>,
    end: AtomicU32,
    calls: [UnsafeCell<MaybeUninit<Ended>>; MOST as usize],
}

thread_local! {
    static WAITING: Waiting = const {
        Waiting {
            first: Cell::new(0),
            end: AtomicU32::new(0),
            calls: [const { UnsafeCell::new(MaybeUninit::uninit()) }; MOST as usize],
        }
    };
}

/// A handler has made a call while another one was being written; false where too many wait.
#[cold]
pub(crate) fn wait(ended: Ended) -> bool {
    WAITING.with(|waiting| {
        // A handler that interrupts this one takes the next place.
        let at = waiting.end.fetch_add(1, Ordering::Relaxed);
        if at.wrapping_sub(waiting.first.get()) >= MOST {
            waiting.end.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        // SAFETY: the place is this call's, and nobody else on this thread looks at it now.
        unsafe { (*waiting.calls[(at % MOST) as usize].get()).write(ended) };
        true
    })
}

/// Whether no call waits.
#[inline(always)]
pub(crate) fn is_empty() -> bool {
    WAITING.with(|waiting| waiting.first.get() == waiting.end.load(Ordering::Relaxed))
}

/// The call that waits longest; by what writes, and what a handler does not interrupt otherwise.
#[cold]
pub(crate) fn next() -> Option<Ended> {
    WAITING.with(|waiting| {
        let at = waiting.first.get();
        if at == waiting.end.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: it was filled by a handler, which has ended.
        let ended = unsafe { (*waiting.calls[(at % MOST) as usize].get()).assume_init() };
        waiting.first.set(at.wrapping_add(1));
        Some(ended)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file;
    use stepscope_recorder::IoFunction::Read;

    #[test]
    fn calls_come_in_order_and_no_more_than_there_is_room_for() {
        let call = Call::on(Read, file(b"/data/a"));
        let ended = |start: u32| Ended { call, errno: 0, times: (start.into(), 0) };
        // More than once around.
        for _ in 0..5 {
            assert!(is_empty() && next().is_none());
            assert!((0..MOST).all(|at| wait(ended(at))) && !wait(ended(MOST)));
            assert!((0..MOST).all(|at| next().is_some_and(|next| next.times.0 == u64::from(at))));
            assert!((0..20).all(|at| wait(ended(at))));
            assert_eq!(std::iter::from_fn(next).count(), 20);
        }
    }
}
