//! A forked child cannot use what its parent's drivers and profilers set up.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_USED: AtomicBool = AtomicBool::new(false);
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// True in a process that was forked from one whose devices were recorded.
pub(crate) fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// From now on a child is told that it is one.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler is a plain function that lives as long as the process: this library is never unloaded.
        unsafe { libc::pthread_atfork(Some(crate::session::before_fork), Some(after_fork), Some(in_child)) };
    });
    IS_USED.store(true, Ordering::Relaxed);
}

unsafe extern "C" fn after_fork() {
    crate::session::after_fork(false);
}

unsafe extern "C" fn in_child() {
    IS_FORKED.store(IS_USED.load(Ordering::Relaxed), Ordering::Relaxed);
    crate::session::after_fork(true);
}
