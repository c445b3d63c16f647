//! The functions that this library stands for, as they are behind it.

use crate::libraries;
use crate::recorded::{Returned, set_errno};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Whether the process finds this library before the C library, as where the system was told to load it first.
pub(crate) static IS_BEFORE_ALL: AtomicBool = AtomicBool::new(true);

/// A function of the C library, or of another library that stands between it and this one.
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null where the C library has no such function.
    #[inline(always)]
    pub(crate) fn address(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        if address.is_null() { self.find() } else { address }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        let address = behind(self.name);
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

/// The function of this name behind this library; null where there is none.
pub(crate) fn behind(name: &CStr) -> *mut c_void {
    // Where this library was loaded by a program that runs, nothing finds it: what is behind it is what all find.
    let handle = if IS_BEFORE_ALL.load(Ordering::Relaxed) { libc::RTLD_NEXT } else { libc::RTLD_DEFAULT };
    // SAFETY: the name is terminated.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    // What nothing has that all find is found in this library itself, where it looks last.
    match found {
        found if !found.is_null() && object_of(found) != object_of(behind as *const c_void) => found,
        _ => libraries::function(name),
    }
}

/// Where the object is loaded that an address lies in.
pub(crate) fn object_of(address: *const c_void) -> Option<*mut c_void> {
    // SAFETY: plain data, which the call fills.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let is_known = unsafe { libc::dladdr(address, &raw mut info) } != 0;
    is_known.then_some(info.dli_fbase)
}

/// What a function gives back that the C library does not have.
#[cold]
pub(crate) fn missing<R: Returned>() -> R {
    set_errno(libc::ENOSYS);
    R::FAILED
}

/// Calls the function of this name behind this library: `real!(read(fd: c_int, to: *mut c_void, len: size_t) -> ssize_t)`.
macro_rules! real {
    ($name:ident($($argument:ident: $type:ty),*) -> $returns:ty) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new(match std::ffi::CStr::from_bytes_with_nul(
            concat!(stringify!($name), "\0").as_bytes(),
        ) {
            Ok(name) => name,
            Err(_) => c"",
        });
        let address = REAL.address();
        if address.is_null() {
            return $crate::real::missing();
        }
        // SAFETY: the function has this type in the C library.
        let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($type),*) -> $returns>(address) };
        // SAFETY: with the caller's arguments.
        unsafe { function($($argument),*) }
    }};
}
pub(crate) use real;

/// Defines functions that stand for others, where objects are bound to them: each has their name and type, and says with
/// `real`, which calls the one behind it, what is recorded. `HOOKS` lists them.
macro_rules! bound_hooks {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $returns:ty |$real:ident| $body:expr;)*) => {
        $(unsafe extern "C" fn $name($($argument: $type),*) -> $returns {
            let $real = move || -> $returns { $crate::real::real!($name($($argument: $type),*) -> $returns) };
            $body
        })*

        /// All of them.
        pub(super) static HOOKS: &[$crate::imports::Hook] = &[$($crate::imports::Hook::new(
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            $name as *const std::ffi::c_void,
        ),)*];
    };
}
pub(crate) use bound_hooks;

/// As [`bound_hooks`], of functions of the C library, or of one that may stand for it: the system finds them by their names
/// where this library is the first.
macro_rules! hooks {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $returns:ty |$real:ident| $body:expr;)*) => {
        $crate::real::bound_hooks! { $(fn $name($($argument: $type),*) -> $returns |$real| $body;)* }

        /// Apart from those above: what has such a name there may be another library's.
        #[cfg(not(test))]
        mod exported {
            use super::*;

            $(#[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) -> $returns {
                // SAFETY: with the caller's arguments.
                unsafe { super::$name($($argument),*) }
            })*
        }
    };
}
pub(crate) use hooks;
