//! The functions of PyTorch that the hook calls, found by their exported names.

use crate::Refusal;
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A callback as `at::RecordFunctionCallback` lays it out: 40 bytes, trivially copyable, unchanged since torch 1.8.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    pub(crate) start: StartFn,
    pub(crate) end: EndFn,
    pub(crate) sampling_probability: f64,
    pub(crate) scopes: [bool; 10],
    pub(crate) needs_inputs: bool,
    pub(crate) needs_outputs: bool,
    pub(crate) needs_ids: bool,
}

const _: () = assert!(size_of::<Callback>() == 40);

/// Called when a range begins. Returns a `unique_ptr` by hidden reference: its address is the first argument and the
/// return value.
pub(crate) type StartFn = unsafe extern "C" fn(context: *mut *mut c_void, function: *const u8) -> *mut *mut c_void;
/// Called when a range ends.
pub(crate) type EndFn = unsafe extern "C" fn(function: *const u8, context: *mut c_void);

/// PyTorch's exported functions.
#[derive(Clone, Copy)]
pub(crate) struct Api {
    /// `at::addGlobalCallback(RecordFunctionCallback)`.
    pub(crate) add_global_callback: unsafe extern "C" fn(Callback) -> u64,
    /// `at::removeCallback(handle)`.
    pub(crate) remove_callback: unsafe extern "C" fn(u64),
    /// `at::RecordFunction::name()`.
    pub(crate) name: unsafe extern "C" fn(*const u8) -> *const c_char,
    /// `at::RecordFunction::overload_name()`, since torch 2.8.
    pub(crate) overload_name: Option<unsafe extern "C" fn(*const u8) -> *const c_char>,
    /// `at::RecordFunction::isAsync()`.
    pub(crate) is_async: Option<unsafe extern "C" fn(*const u8) -> bool>,
    /// `at::RecordFunction::num_inputs()`.
    pub(crate) num_inputs: unsafe extern "C" fn(*const u8) -> usize,
    /// `at::RecordFunction::currentThreadId()`.
    pub(crate) current_thread_id: extern "C" fn() -> u64,
}

impl Api {
    /// Finds the functions in the `libtorch_cpu.so` of `folder`, which the process has loaded.
    pub(crate) fn find(folder: &Path) -> Result<Self, Refusal> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Refusal::UnsupportedPlatform);
        }
        let library = library(folder, "libtorch_cpu.so")?;
        // SAFETY: each symbol's mangled name fixes its argument types, which the field's type repeats.
        unsafe {
            Ok(Self {
                add_global_callback: symbol(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE")?,
                remove_callback: symbol(library, "_ZN2at14removeCallbackEm")?,
                name: symbol(library, "_ZNK2at14RecordFunction4nameEv")?,
                overload_name: symbol(library, "_ZNK2at14RecordFunction13overload_nameEv").ok(),
                is_async: symbol(library, "_ZNK2at14RecordFunction7isAsyncEv").ok(),
                num_inputs: symbol(library, "_ZNK2at14RecordFunction10num_inputsEv")?,
                current_thread_id: symbol(library, "_ZN2at14RecordFunction15currentThreadIdEv")?,
            })
        }
    }

    /// Registers callbacks for every scope and thread; gives the handle that removes them. With `needs_ids` PyTorch numbers
    /// ranges.
    ///
    /// # Safety
    /// The callbacks keep to their types' contracts and live for ever: PyTorch may call them after their removal.
    pub(crate) unsafe fn add(&self, start: StartFn, end: EndFn, needs_inputs: bool, needs_ids: bool) -> u64 {
        let callback = Callback {
            start,
            end,
            sampling_probability: 1.0,
            scopes: [true; 10],
            needs_inputs,
            needs_outputs: false,
            needs_ids,
        };
        // SAFETY: the caller's promise.
        unsafe { (self.add_global_callback)(callback) }
    }
}

/// The library called `file` in `folder`, which the process has loaded.
pub(crate) fn library(folder: &Path, file: &str) -> Result<*mut c_void, Refusal> {
    let path = folder.join(file);
    let name =
        CString::new(path.as_os_str().as_bytes()).map_err(|_| Refusal::LibraryNotLoaded { path: path.clone() })?;
    // SAFETY: a terminated path; nothing is loaded that is not there already.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if library.is_null() { Err(Refusal::LibraryNotLoaded { path }) } else { Ok(library) }
}

/// The function called `name`, or the address of the object.
///
/// # Safety
/// `F` is the function's type.
pub(crate) unsafe fn symbol<F: Copy>(library: *mut c_void, name: &'static str) -> Result<F, Refusal> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let text = CString::new(name).map_err(|_| Refusal::MissingSymbol { name })?;
    // SAFETY: an open library and a terminated name.
    let address = unsafe { libc::dlsym(library, text.as_ptr()) };
    if address.is_null() {
        return Err(Refusal::MissingSymbol { name });
    }
    // SAFETY: the caller's promise; the sizes are equal.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

/// The address of a symbol in a library of `folder` that the process has loaded.
pub(crate) fn address_in(folder: &Path, library: &str, symbol: &CStr) -> Option<*mut c_void> {
    let path = CString::new(folder.join(library).as_os_str().as_bytes()).ok()?;
    // SAFETY: terminated texts; nothing is loaded that is not there already.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() {
            return None;
        }
        Some(libc::dlsym(library, symbol.as_ptr())).filter(|address| !address.is_null())
    }
}
