//! Whether PyTorch's own profiler was ever used in this process: from then on it is a subscriber of CUPTI's for good.
//!
//! Its library keeps one object, in which a pointer leads to the profiler once there is one. The profiler is known by its
//! table of functions, which is exported; where in the object the pointer stands need not be known.

use crate::api::address_in;
use crate::peek::Peek;
use std::ffi::c_void;
use std::path::Path;

const LIBRARY: &str = "libtorch_cpu.so";
/// `libkineto::LibkinetoApi& libkineto::api()`.
const API: &std::ffi::CStr = c"_ZN9libkineto3apiEv";
/// `vtable for libkineto::ActivityProfilerProxy`.
const PROFILER: &std::ffi::CStr = c"_ZTVN9libkineto21ActivityProfilerProxyE";
/// Words ahead of a table's first function.
const TABLE_HEAD: usize = 2;
/// Words of the object in which the pointer is looked for; it has more.
const LOOKED_AT: usize = 16;

/// True where it was, false where it was not; `None` where this PyTorch does not tell, whose libraries are in `folder`.
pub fn is_kineto_used(folder: &Path) -> Option<bool> {
    let table = address_in(folder, LIBRARY, PROFILER)?.addr() + TABLE_HEAD * size_of::<usize>();
    let api = address_in(folder, LIBRARY, API)?;
    // SAFETY: the function takes nothing and gives the address of an object that lives as long as the process, as its
    // mangled name and its place in PyTorch's public interface say; the object is only looked at where it is readable.
    let object = unsafe {
        let api: extern "C" fn() -> *const c_void = std::mem::transmute(api);
        api()
    };
    let peek = Peek::new().ok()?;
    Some(words::<LOOKED_AT>(&peek, object.addr()).into_iter().any(|word| words::<1>(&peek, word) == [table]))
}

/// The words at an address, of those that can be read.
fn words<const COUNT: usize>(peek: &Peek, address: usize) -> Vec<usize> {
    let mut bytes = vec![0; COUNT * size_of::<usize>()];
    let readable = peek.copy(std::ptr::with_exposed_provenance(address), &mut bytes);
    let words = bytes[..readable].chunks_exact(size_of::<usize>());
    words.map(|word| usize::from_ne_bytes(word.try_into().unwrap_or_default())).collect()
}
