//! What records calls on files is a library of its own, which the system loads before Python, or which is loaded here. It is
//! told what is learned of the process.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

type SetMetadata = unsafe extern "C" fn(*const c_char, *const c_char);
type Start = unsafe extern "C" fn(*const c_char, *const c_char, u64) -> c_int;
type Stop = unsafe extern "C" fn();

/// The library, where it was loaded here; it is never unloaded.
static LOADED: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// A function of the library; null where it is not loaded.
fn function(name: &CStr) -> *mut c_void {
    let loaded = LOADED.load(Ordering::Acquire);
    // SAFETY: the name is terminated.
    unsafe { libc::dlsym(if loaded.is_null() { libc::RTLD_DEFAULT } else { loaded }, name.as_ptr()) }
}

/// Tells the library, where it is loaded, a metadata entry of the process.
pub(crate) fn set_metadata(key: &str, value: &str) {
    let function = function(c"stepscope_files_set_metadata");
    if let (false, Ok(key), Ok(value)) = (function.is_null(), CString::new(key), CString::new(value)) {
        // SAFETY: our library has it as this type; both texts are terminated and live during the call.
        unsafe { std::mem::transmute::<*mut c_void, SetMetadata>(function)(key.as_ptr(), value.as_ptr()) };
    }
}

/// Loads the library at `library`, where the process has none yet, and has it record calls on files into the run folder
/// `run`, but for those in the folders `left_out` unless the environment chooses others. Unless `ring_ns` is 0, only
/// that much of the past is kept. False where they are recorded already.
///
/// # Errors
/// One line that says what cannot be done.
pub(crate) fn start(library: &Path, run: &Path, left_out: &[PathBuf], ring_ns: u64) -> Result<bool, String> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string());
    let (library, run) = (text(library)?, text(run)?);
    // An empty text ends the list.
    let mut list = Vec::new();
    for folder in left_out.iter().filter(|folder| !folder.as_os_str().is_empty()) {
        list.extend(text(folder)?.into_bytes_with_nul());
    }
    list.push(0);
    if function(c"stepscope_files_start").is_null() {
        // SAFETY: the path is terminated.
        let loaded = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        LOADED.store(loaded, Ordering::Release);
    }
    let function = function(c"stepscope_files_start");
    if function.is_null() {
        return Err(format!("cannot load {}", library.to_string_lossy()));
    }
    // SAFETY: our library has it as this type; both live during the call.
    let started =
        unsafe { std::mem::transmute::<*mut c_void, Start>(function)(run.as_ptr(), list.as_ptr().cast(), ring_ns) };
    Ok(started != 0)
}

/// Has the library record no longer, where [`start`] made it.
pub(crate) fn stop() {
    let function = function(c"stepscope_files_stop");
    if !function.is_null() {
        // SAFETY: our library has it as this type.
        unsafe { std::mem::transmute::<*mut c_void, Stop>(function)() };
    }
}
