//! Names of kernels, as `torch.profiler` shows them: demangled by the process's own C++ library.

use crate::Library;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::ptr::null_mut;

/// Names that are kept; a job has a few hundred.
const MOST: usize = 16_384;
/// Longer ones stay as they are, as PyTorch leaves them.
const LONGEST: usize = 1024;

/// `char* __cxa_demangle(const char* name, char* buffer, size_t* length, int* status)`.
type Demangle = unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// Demangles, and remembers.
pub(crate) struct Demangler {
    demangle: Option<Demangle>,
    known: HashMap<Box<CStr>, Box<str>>,
    last: Box<str>,
}

impl Default for Demangler {
    fn default() -> Self {
        let library =
            Library::loaded(Path::new("libstdc++.so.6")).or_else(|| Library::loaded(Path::new("libc++abi.so.1")));
        // SAFETY: the type that the C++ ABI gives it.
        let demangle = library.and_then(|library| unsafe { library.function(c"__cxa_demangle") });
        Self { demangle, known: HashMap::new(), last: Box::default() }
    }
}

impl Demangler {
    /// What the name means, or the name.
    pub(crate) fn demangle(&mut self, name: &CStr) -> &str {
        if !self.known.contains_key(name) {
            let text = self.demangled(name).unwrap_or_else(|| name.to_string_lossy().into());
            if self.known.len() >= MOST {
                self.last = text;
                return &self.last;
            }
            self.known.insert(name.into(), text);
        }
        self.known.get(name).map_or("", |text| text)
    }

    fn demangled(&self, name: &CStr) -> Option<Box<str>> {
        let demangle = self.demangle.filter(|_| name.to_bytes().starts_with(b"_Z") && name.count_bytes() <= LONGEST)?;
        let mut status = 0;
        // SAFETY: a text with its zero; without a buffer the function allocates one, which is ours to free.
        unsafe {
            let text = demangle(name.as_ptr(), null_mut(), null_mut(), &mut status);
            if text.is_null() {
                return None;
            }
            let demangled = (status == 0).then(|| CStr::from_ptr(text).to_string_lossy().into());
            libc::free(text.cast());
            demangled
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled_once_and_what_is_none_stays_as_it_is() {
        assert!(Library::load(Path::new("libstdc++.so.6")).is_ok(), "the C++ library is needed here");
        let mut names = Demangler::default();
        for _ in 0..2 {
            assert_eq!(names.demangle(c"_Z6vecAddPKfS0_Pfi"), "vecAdd(float const*, float const*, float*, int)");
        }
        assert_eq!(names.demangle(c"triton_poi_fused_add_0"), "triton_poi_fused_add_0");
        assert_eq!(names.demangle(c"_Zwhatever"), "_Zwhatever");
        assert_eq!(names.known.len(), 3);
    }

    #[test]
    fn a_job_with_many_kernels_does_not_fill_memory() {
        let mut names = Demangler::default();
        for number in 0..MOST + 10 {
            let name = std::ffi::CString::new(format!("kernel_{number}")).unwrap();
            assert_eq!(names.demangle(&name), name.to_str().unwrap());
        }
        assert_eq!(names.known.len(), MOST);
    }
}
