//! Libraries whose functions are stood for where a program has loaded them. It may have done so for one of its own libraries
//! alone: nothing else finds them then. And which library a function is of that the program itself has an entry for.

use crate::imports::{is_of_system, name_of, range_of};
use crate::real::{is_entry, is_own};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::Range;

/// Such a library.
struct Library {
    /// How the names of its functions begin.
    functions: &'static [u8],
    /// How its file is named, which packages rename: `libaio-1f3c.so.1`.
    file: &'static [u8],
    /// What else is in that name, where only some versions are known.
    version: &'static [u8],
}

const LIBRARIES: [Library; 5] = [
    // Rings of versions before 2 lie otherwise in memory.
    Library { functions: b"io_uring_", file: b"liburing", version: b".so.2" },
    Library { functions: b"__io_uring_", file: b"liburing", version: b".so.2" },
    Library { functions: b"io_", file: b"libaio", version: b"" },
    Library { functions: b"MPI_", file: b"libmpi", version: b"" },
    Library { functions: b"H5", file: b"libhdf5", version: b"" },
];

impl Library {
    fn is_at(&self, path: &[u8]) -> bool {
        let has_version =
            |file: &[u8]| self.version.is_empty() || file.windows(self.version.len()).any(|at| at == self.version);
        let file = path.rsplit(|byte| *byte == b'/').next();
        file.is_some_and(|file| file.starts_with(self.file) && has_version(file))
    }
}

/// Whether an object that is loaded from `path` is such a library.
pub(crate) fn is_one(path: &[u8]) -> bool {
    LIBRARIES.iter().any(|library| library.is_at(path))
}

/// The path of the library that a function is of by its name, where it is loaded.
fn path_of(library: &'static Library) -> Option<CString> {
    struct Search {
        library: &'static Library,
        found: Option<CString>,
    }
    unsafe extern "C" fn find(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: as it is passed below, and the loader tells it.
        let (search, path) = unsafe { (&mut *search.cast::<Search>(), name_of(&*info)) };
        search.found = CString::new(path).ok().filter(|path| search.library.is_at(path.to_bytes()));
        search.found.is_some().into()
    }
    let mut search = Search { library, found: None };
    // SAFETY: the callback takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(find), (&raw mut search).cast()) };
    search.found
}

/// The library of a function with this name; `None`: it is of none of these.
fn of_function(name: &CStr) -> Option<&'static Library> {
    LIBRARIES.iter().find(|library| name.to_bytes().starts_with(library.functions))
}

/// Whether a function is of such a library, which is not loaded.
pub(crate) fn is_missing(name: &CStr) -> bool {
    of_function(name).is_some_and(|library| path_of(library).is_none())
}

/// A function of such a library, which stays loaded then; null where it is not loaded, or has no such function.
#[cold]
pub(crate) fn function(name: &CStr) -> *mut c_void {
    let Some(path) = of_function(name).and_then(path_of) else { return std::ptr::null_mut() };
    // SAFETY: both texts are terminated, and where the handle is null it is not used.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() { library } else { libc::dlsym(library, name.as_ptr()) }
    }
}

/// The function of this name that the first loaded object has which defines it, other than the program and this library; null
/// where there is none.
#[cold]
pub(crate) fn defined(name: &CStr) -> *mut c_void {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, objects: *mut c_void) -> c_int {
        // SAFETY: as it is passed below, and the loader tells it.
        let (objects, info) = unsafe { (&mut *objects.cast::<Vec<(CString, Range<usize>)>>(), &*info) };
        objects.extend(CString::new(name_of(info)).ok().map(|path| (path, range_of(info))));
        0
    }
    let mut objects: Vec<(CString, Range<usize>)> = Vec::new();
    // SAFETY: the callback takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut objects).cast()) };
    // The program's name is empty, and so would be the handle of all of them.
    let libraries = objects.iter().filter(|(path, _)| !path.is_empty() && !is_of_system(path.to_bytes()));
    let functions = libraries.map(|(path, range)| {
        // SAFETY: both texts are terminated, and where the handle is null it is not used.
        let function = unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
            if library.is_null() {
                return library;
            }
            let function = libc::dlsym(library, name.as_ptr());
            libc::dlclose(library);
            function
        };
        // Else it is of an object that this one needs.
        if range.contains(&(function as usize)) { function } else { std::ptr::null_mut() }
    });
    functions
        .into_iter()
        .find(|function| !function.is_null() && !is_own(*function) && !is_entry(*function))
        .unwrap_or(std::ptr::null_mut())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_by_their_files() {
        for path in
            ["/usr/lib/libaio.so.1", "/a/h5py.libs/libhdf5-9e18.so.320.0.0", "libmpi.so.12", "/x/liburing-1f.so.2.3"]
        {
            assert!(is_one(path.as_bytes()), "{path}");
        }
        for path in ["", "/libaio/libc.so.6", "/usr/lib/liburing.so.1", "/x/liburing/liburing.so"] {
            assert!(!is_one(path.as_bytes()), "{path}");
        }
    }
}
