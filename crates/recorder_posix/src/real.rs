//! The functions that this library stands for, as they are behind it.

use crate::imports::name_of;
use crate::recorded::{Returned, set_errno};
use std::ffi::{CStr, CString, c_int, c_void};
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
        _ if is_of_aio(name) => in_aio(name),
        _ => std::ptr::null_mut(),
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

/// libaio, which a program may have loaded for one of its own libraries alone: nothing else finds it then.
const AIO: &[u8] = b"libaio";

/// Whether an object that is loaded from `path` is libaio, which packages rename: `libaio-1f3c.so.1`.
pub(crate) fn is_aio(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|file| file.starts_with(AIO))
}

fn is_of_aio(name: &CStr) -> bool {
    name.to_bytes().starts_with(b"io_")
}

/// A function of libaio, which stays loaded then.
#[cold]
fn in_aio(name: &CStr) -> *mut c_void {
    unsafe extern "C" fn find(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
        // SAFETY: as it is passed below, and the loader tells it.
        let (found, path) = unsafe { (&mut *found.cast::<Option<CString>>(), name_of(&*info)) };
        *found = CString::new(path).ok().filter(|path| is_aio(path.to_bytes()));
        found.is_some().into()
    }
    let mut found: Option<CString> = None;
    // SAFETY: the callback takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(find), (&raw mut found).cast()) };
    let Some(path) = found else { return std::ptr::null_mut() };
    // SAFETY: both texts are terminated, and where the handle is null it is not used.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() { library } else { libc::dlsym(library, name.as_ptr()) }
    }
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

/// Defines functions that stand for those of the C library: each has their name and type, and says with `real`, which
/// calls the one behind it, what is recorded. `HOOKS` lists them.
macro_rules! hooks {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $returns:ty |$real:ident| $body:expr;)*) => {
        $(unsafe extern "C" fn $name($($argument: $type),*) -> $returns {
            let $real = || -> $returns { $crate::real::real!($name($($argument: $type),*) -> $returns) };
            $body
        })*

        /// By their names, as the system finds them. Apart from those above: what has such a name here may be another
        /// library's.
        #[cfg(not(test))]
        mod exported {
            use super::*;

            $(#[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) -> $returns {
                // SAFETY: with the caller's arguments.
                unsafe { super::$name($($argument),*) }
            })*
        }

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
pub(crate) use hooks;
