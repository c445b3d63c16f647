//! What `sys.monitoring` calls: objects that are a function and nothing else. A built-in function of CPython's checks
//! and counts each of its calls, which takes about as long as what these do.

use crate::class::{self, HAS_VECTORCALL, Members, NOT_MADE_BY_CALLS};
use crate::cpython::{FastCall, PyVectorcall_Call};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::OnceLock;

#[repr(C)]
struct Callback {
    head: [usize; 2],
    call: FastCall,
}

static MEMBERS: Members = class::vectorcall_at(offset_of!(Callback, call));

/// An object whose call is `call`.
pub(super) fn make(py: Python<'_>, call: FastCall) -> PyResult<Bound<'_, PyAny>> {
    let class = class_of_callbacks(py)?;
    // SAFETY: an object of the class, zeroed but for its head, and ours alone.
    unsafe {
        let callback = Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(class, 0))?;
        (*callback.as_ptr().cast::<Callback>()).call = call;
        Ok(callback)
    }
}

fn class_of_callbacks(py: Python<'_>) -> PyResult<*mut ffi::PyTypeObject> {
    static CLASS: OnceLock<usize> = OnceLock::new();
    if let Some(class) = CLASS.get() {
        return Ok(std::ptr::with_exposed_provenance_mut(*class));
    }
    let slots = [(ffi::Py_tp_call, PyVectorcall_Call as *mut c_void), (ffi::Py_tp_members, MEMBERS.slot())];
    let flags = NOT_MADE_BY_CALLS | HAS_VECTORCALL;
    let class = class::make(py, c"stepscope.Callback", flags, size_of::<Callback>(), &slots)?;
    Ok(std::ptr::with_exposed_provenance_mut(*CLASS.get_or_init(|| class as usize)))
}
