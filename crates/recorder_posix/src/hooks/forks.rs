//! `_Fork`, which signal handlers may call: it runs nothing that is registered to run at a fork.

#![expect(non_snake_case, reason = "it is named as in C")]

use crate::open_files::note_fork;
use crate::real::hooks;
use crate::start::{is_on, is_vforked, record_no_more};
use libc::pid_t;

/// The child writes nothing: what it would write to is its parent's, and another thread may have held the lock of the
/// memory allocator, which `fork` would have released.
fn forked(pid: pid_t) -> pid_t {
    if is_on() && !is_vforked() {
        match pid {
            0 => record_no_more(),
            _ => note_fork(),
        }
    }
    pid
}

hooks! {
    fn _Fork() -> pid_t |real| forked(real());
}
