//! A forked child gets a capture of its own: two processes must never write one mapping.

use crate::call_names::NAMES;
use crate::calls::SEEDS;
use crate::fork_state;
use crate::session::STATE;
use std::sync::Once;

/// Registers the handlers, once a process.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handlers are plain functions that live as long as the process: this library is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// Nobody may be inside a lock when the process is copied.
unsafe extern "C" fn before() {
    std::mem::forget(STATE.lock());
    std::mem::forget(NAMES.lock());
    std::mem::forget(SEEDS.lock());
}

unsafe extern "C" fn in_parent() {
    release();
}

fn release() {
    STATE.force_unlock();
    NAMES.force_unlock();
    SEEDS.force_unlock();
}

unsafe extern "C" fn in_child() {
    release();
    fork_state::become_child();
    STATE.lock().become_child();
}
