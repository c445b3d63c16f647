//! What records calls on files is a library of its own, which the system loads before Python: it is told here what is
//! learned of the process.

use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

type SetMetadata = unsafe extern "C" fn(*const c_char, *const c_char);

/// Tells the library, where it is loaded, a metadata entry of the process.
pub(crate) fn set_metadata(key: &str, value: &str) {
    static FUNCTION: OnceLock<Option<SetMetadata>> = OnceLock::new();
    let function = FUNCTION.get_or_init(|| {
        // SAFETY: the name is terminated.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"stepscope_files_set_metadata".as_ptr()) };
        // SAFETY: our library has it as this type.
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, SetMetadata>(found) })
    });
    if let (Some(function), Ok(key), Ok(value)) = (function, CString::new(key), CString::new(value)) {
        // SAFETY: both are terminated and live during the call.
        unsafe { function(key.as_ptr(), value.as_ptr()) };
    }
}
