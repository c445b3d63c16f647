//! `dlopen`: something is about to be loaded, which is to be bound as soon as it is.
//!
//! The loader looks for a library by the folders of the object that calls it, which it knows by the address that it
//! returns to. So this function says what is about to happen, and jumps.

use crate::bound;
use crate::imports::Hook;
use crate::real::Real;
use crate::recorded::{errno, set_errno};
use crate::start::{Inside, is_on, is_vforked};
use std::arch::naked_asm;
use std::ffi::c_void;

/// Says so; the function of the C library.
extern "C" fn about_to_load() -> *const c_void {
    static REAL: Real = Real::new(c"dlopen");
    let reason = errno();
    if is_on()
        && !is_vforked()
        && let Some(_inside) = Inside::enter()
    {
        bound::look_soon();
    }
    let real = REAL.address().cast_const();
    set_errno(reason);
    if real.is_null() { nothing_loaded as *const c_void } else { real }
}

/// Where there is none.
extern "C" fn nothing_loaded() -> *mut c_void {
    std::ptr::null_mut()
}

macro_rules! dlopen {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "push rdi",
                "push rsi",
                "sub rsp, 8",
                "call {about_to_load}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                about_to_load = sym about_to_load,
            )
        }
    };
}

dlopen!(own_dlopen);
#[cfg(not(test))]
dlopen!(
    #[unsafe(no_mangle)]
    dlopen
);

pub(super) static HOOKS: &[Hook] = &[Hook::new(c"dlopen", own_dlopen as *const c_void)];

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{c_char, c_int};

    #[test]
    fn what_is_asked_for_is_loaded() {
        type Function = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
        // SAFETY: it passes on what the C library's function takes.
        let function = unsafe { std::mem::transmute::<unsafe extern "C" fn(), Function>(own_dlopen) };
        // SAFETY: the names are terminated.
        let (found, none) = unsafe {
            (function(c"libc.so.6".as_ptr(), libc::RTLD_NOW), function(c"libnone.so".as_ptr(), libc::RTLD_NOW))
        };
        // SAFETY: as above.
        assert_eq!(found, unsafe { libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOW) });
        assert!(!found.is_null() && none.is_null());
    }
}
