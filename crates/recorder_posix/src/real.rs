//! The functions that this library stands for, as they are behind it.

use crate::libraries;
use crate::recorded::{Returned, set_errno};
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
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

unsafe extern "C" {
    // As the linker calls the ends of the section in which [`real`] puts them.
    #[link_name = "__start_stepscope_real"]
    static FIRST: u8;
    #[link_name = "__stop_stepscope_real"]
    static BEHIND_LAST: u8;
}

/// Finds all of them now, but for those of libraries that are not loaded. Asked later, on a thread of the program, the
/// loader would forget what it has to say of the program's own last question: `fprintf(stderr, "%s", dlerror())` would
/// print a text that is gone.
pub(crate) fn find_all() {
    let (first, behind_last) = (&raw const FIRST, &raw const BEHIND_LAST);
    let count = (behind_last as usize - first as usize) / size_of::<Real>();
    // SAFETY: the section has nothing else in it, and they are as large as they are aligned.
    let all = unsafe { std::slice::from_raw_parts(first.cast::<Real>(), count) };
    let is_due = |real: &&Real| real.address.load(Ordering::Relaxed).is_null() && !libraries::is_missing(real.name);
    all.iter().filter(is_due).for_each(|real| _ = real.find());
}

/// The function of this name behind this library; null where there is none.
pub(crate) fn behind(name: &CStr) -> *mut c_void {
    // Where this library was loaded by a program that runs, nothing finds it: what is behind it is what all find.
    let handle = if IS_BEFORE_ALL.load(Ordering::Relaxed) { libc::RTLD_NEXT } else { libc::RTLD_DEFAULT };
    // SAFETY: the name is terminated.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    match found {
        // What nothing has that all find is found in this library itself, where it looks last.
        found if found.is_null() || is_own(found) => libraries::function(name),
        found if is_entry(found) => libraries::defined(name),
        found => found,
    }
}

/// Whether an address is only an object's entry for a function of another one: that of a program that is not independent of
/// its position, and takes the function's address, is what all find. It leads to where its import table does: back to this
/// library, once that is changed.
pub(crate) fn is_entry(address: *const c_void) -> bool {
    /// The last argument of `dladdr1` asks for the symbol, by its number in `dlfcn.h`.
    const SYMBOL: c_int = 1;
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    let mut symbol: *mut c_void = std::ptr::null_mut();
    // SAFETY: the loader writes both where it knows the address.
    let is_known = unsafe { libc::dladdr1(address, info.as_mut_ptr(), &raw mut symbol, SYMBOL) } != 0;
    let symbol = symbol.cast::<libc::Elf64_Sym>();
    // SAFETY: of a table of symbols of an object that is loaded.
    is_known && !symbol.is_null() && unsafe { (*symbol).st_shndx } == 0
}

unsafe extern "C" {
    // The ends of this library, as the linker calls them.
    #[link_name = "__ehdr_start"]
    static START: u8;
    #[link_name = "_end"]
    static END: u8;
}

/// Whether an address lies in this library.
pub(crate) fn is_own(address: *const c_void) -> bool {
    (&raw const START..&raw const END).contains(&address.cast())
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
        #[used]
        #[unsafe(link_section = "stepscope_real")]
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
