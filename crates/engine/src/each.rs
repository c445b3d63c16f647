//! The same work for many things, on all processors.

use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// What `make` makes of each of `count`, in order, on all processors but for no more than `at_once`. `make` runs on the calling thread as well.
///
/// # Panics
/// When `make` does.
pub fn each<T: Send + Sync>(count: usize, at_once: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    on_threads(count, processors.min(at_once), make)
}

/// As [`each`], on `threads` threads, however few processors there are: for work that waits for others.
///
/// # Panics
/// When `make` does.
pub(crate) fn on_threads<T: Send + Sync>(count: usize, threads: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let left = Mutex::new(0..count);
    let made: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    let work = || {
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(at) = next() {
            made[at].get_or_init(|| make(at));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            scope.spawn(work);
        }
        work();
    });
    made.into_iter().map(|made| made.into_inner().expect("each was made")).collect()
}
