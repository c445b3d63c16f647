//! `vfork`, whose child uses the memory of the process that made it: what the recorder keeps there must stay as it is.
//!
//! A function that calls the one behind it cannot stand for this one: the child would return from it, and the parent would
//! find its frame overwritten. So this one makes the system call itself, with the address that it returns to in a register,
//! as the C library does.

use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::{c_int, c_long, c_void};

use crate::imports::Hook;
use crate::programs::{is_to_say, say};
use crate::recorded::{errno, set_errno};
use crate::start::Inside;

thread_local! {
    /// Children that the calling thread has become, each of the one before. They have the parent's thread-local memory,
    /// and the parent stands still until they end or begin another program.
    static CHILDREN: Cell<u32> = const { Cell::new(0) };
}

/// Whether the calling thread is another process than the one whose memory it uses.
#[inline(always)]
pub(crate) fn is_vforked() -> bool {
    CHILDREN.get() > 0
}

extern "C" fn forked(returned: c_long) -> c_int {
    match returned {
        0 => CHILDREN.set(CHILDREN.get() + 1),
        1.. => {
            CHILDREN.set(CHILDREN.get().saturating_sub(1));
            if is_to_say() && !is_vforked() {
                said_for_child();
            }
        }
        error => {
            set_errno(-error as c_int);
            return -1;
        }
    }
    returned as c_int
}

/// What the child has found of the program that it began.
#[cold]
fn said_for_child() {
    let Some(_inside) = Inside::enter() else { return };
    let reason = errno();
    say();
    set_errno(reason);
}

macro_rules! vfork {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name() -> c_int {
            naked_asm!(
                "pop rdi",
                "mov eax, {number}",
                "syscall",
                "push rdi",
                "sub rsp, 8",
                "mov rdi, rax",
                "call {forked}",
                "add rsp, 8",
                "ret",
                number = const libc::SYS_vfork,
                forked = sym forked,
            )
        }
    };
}

vfork!(own_vfork);
#[cfg(not(test))]
vfork!(
    #[unsafe(no_mangle)]
    vfork
);

pub(super) static HOOKS: &[Hook] = &[Hook::new(c"vfork", own_vfork as *const c_void)];

#[cfg(test)]
mod tests {
    use super::*;

    /// Becomes a child that ends with what `child` gives; the code with which it did.
    fn code_of(child: impl FnOnce() -> c_int) -> c_int {
        let mut status = 0;
        // SAFETY: the child only looks at its own counter, and ends; the status is writable.
        unsafe {
            let pid = own_vfork();
            if pid == 0 {
                libc::_exit(child());
            }
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        }
        libc::WEXITSTATUS(status)
    }

    #[test]
    fn a_child_is_known_as_one_and_its_parent_is_none_after_it() {
        let both = code_of(|| 10 * code_of(|| CHILDREN.get() as c_int) + CHILDREN.get() as c_int);
        assert_eq!((both, is_vforked()), (21, false));
    }
}
