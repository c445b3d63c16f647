//! Libraries and their functions, found while the process runs.

use crate::Refusal;
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A library that is loaded, and stays so.
#[derive(Clone, Copy, Debug)]
pub struct Library(*mut c_void);

// SAFETY: a handle of `dlopen` may be used on any thread, and is never closed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// The one that the process has loaded under this path or name.
    pub fn loaded(path: &Path) -> Option<Self> {
        Self::open(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD).ok()
    }

    /// Loads it, unless it is.
    ///
    /// # Errors
    /// What the loader says.
    pub fn load(path: &Path) -> Result<Self, String> {
        Self::open(path, libc::RTLD_LAZY | libc::RTLD_LOCAL)
    }

    /// The first of `paths` that is loaded already, else the first that can be.
    ///
    /// # Errors
    /// What the loader says of the last.
    pub fn first_of(paths: &[PathBuf]) -> Result<(Self, PathBuf), String> {
        if let Some(found) = paths.iter().find_map(|path| Some((Self::loaded(path)?, path.clone()))) {
            return Ok(found);
        }
        let mut error = String::from("no place to look for it is known");
        for path in paths {
            match Self::load(path) {
                Ok(library) => return Ok((library, path.clone())),
                Err(why) => error = why,
            }
        }
        Err(error)
    }

    fn open(path: &Path, flags: i32) -> Result<Self, String> {
        let text = CString::new(path.as_os_str().as_bytes()).map_err(|_| "a path with a zero byte".to_string())?;
        // SAFETY: a text with its zero. What a library runs as it is loaded is its own affair, as with any import.
        let library = unsafe { libc::dlopen(text.as_ptr(), flags) };
        if !library.is_null() {
            return Ok(Self(library));
        }
        // SAFETY: after a failure a text of the thread's own, or null.
        let why = unsafe {
            let why = libc::dlerror();
            if why.is_null() { None } else { Some(CStr::from_ptr(why).to_string_lossy().into_owned()) }
        };
        Err(why.unwrap_or_else(|| "it is not loaded".into()))
    }

    /// A function.
    ///
    /// # Safety
    /// `F` is a type of function pointer, and the one that the library gives the function of this name.
    pub unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is never closed.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: a pointer to a function has the size of the address, and the caller vouches for its type.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
    }

    /// A function that there must be.
    ///
    /// # Errors
    /// That it is missing.
    ///
    /// # Safety
    /// As [`Self::function`].
    pub unsafe fn required<F: Copy>(self, name: &CStr) -> Result<F, Refusal> {
        // SAFETY: as the caller vouches for.
        unsafe { self.function(name) }.ok_or_else(|| Refusal(format!("the library has no {}", name.to_string_lossy())))
    }
}

/// A table of functions of a library, each with its type and the name that the library has for it. Without a `required`
/// one there is no table; an `optional` one is an [`Option`].
macro_rules! functions {
    (@type required $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@find $library:ident required $name:literal) => { $library.required($name)? };
    (@find $library:ident optional $name:literal) => { $library.function($name) };
    ($(#[$meta:meta])* $vis:vis struct $table:ident {
        $($(#[$doc:meta])* $how:ident $function:ident: $type:ty = $name:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        $vis struct $table {
            $($(#[$doc])* $vis $function: $crate::library::functions!(@type $how $type),)*
        }

        impl $table {
            /// # Errors
            /// Which function is missing.
            ///
            /// # Safety
            /// The library gives the functions of these names these types.
            $vis unsafe fn find(library: $crate::Library) -> Result<Self, $crate::Refusal> {
                // SAFETY: as the caller vouches for.
                unsafe { Ok(Self { $($function: $crate::library::functions!(@find library $how $name),)* }) }
            }
        }
    };
}
pub(crate) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_name_and_what_is_missing_is_said() {
        let (libc_so, path) = Library::first_of(&["no-such.so".into(), "libc.so.6".into()]).unwrap();
        assert_eq!(path, Path::new("libc.so.6"));
        // SAFETY: the type of `getpid`.
        let getpid = unsafe { libc_so.function::<extern "C" fn() -> i32>(c"getpid") }.unwrap();
        assert_eq!(getpid(), std::process::id() as i32);
        // SAFETY: there is no such function.
        let missing = unsafe { libc_so.required::<extern "C" fn()>(c"stepscope_has_no_such") };
        assert_eq!(missing.unwrap_err().to_string(), "the library has no stepscope_has_no_such");
        assert!(Library::loaded(Path::new("no-such.so")).is_none());
        assert!(Library::first_of(&["no-such.so".into()]).unwrap_err().contains("no-such.so"));
        assert!(Library::first_of(&[]).is_err());
    }
}
