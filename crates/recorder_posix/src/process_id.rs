//! Which process the memory belongs to, where `vfork` is not seen.

use std::sync::atomic::{AtomicI64, Ordering};

static PID: AtomicI64 = AtomicI64::new(0);

fn own() -> i64 {
    // SAFETY: a plain system call.
    unsafe { libc::syscall(libc::SYS_getpid) as i64 }
}

/// The memory is that of the calling process.
pub(crate) fn note() {
    PID.store(own(), Ordering::Relaxed);
}

/// Whether this is another process than the one whose memory it uses: a child of `vfork`, which must leave that as it is.
pub(crate) fn is_vforked() -> bool {
    own() != PID.load(Ordering::Relaxed)
}
