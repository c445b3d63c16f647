//! Classes that are made at run time.

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyMemberDef, PyObject};
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_ulong, c_void};

/// Objects of the class say what function they are called with, at the offset that [`vectorcall_at`] gives.
pub(crate) const HAS_VECTORCALL: c_ulong = 1 << 11;
/// Nobody makes an object by calling the class. Since 3.10.
pub(crate) const NOT_MADE_BY_CALLS: c_ulong = 1 << 7;
/// `T_PYSSIZET` and `READONLY`, which the member must be.
const SIZE: c_int = 19;
const READ_ONLY: c_int = 1;

/// Members of a class: where its objects have the function.
pub(crate) struct Members([PyMemberDef; 2]);

// SAFETY: the pointers are to constants.
unsafe impl Sync for Members {}

impl Members {
    /// What `Py_tp_members` wants.
    pub(crate) const fn slot(&'static self) -> *mut c_void {
        self.0.as_ptr().cast_mut().cast()
    }
}

/// The function stands `offset` bytes from an object's begin.
pub(crate) const fn vectorcall_at(offset: usize) -> Members {
    let name = c"__vectorcalloffset__".as_ptr();
    let doc = std::ptr::null();
    let end = PyMemberDef { name: std::ptr::null(), type_code: 0, offset: 0, flags: 0, doc };
    Members([PyMemberDef { name, type_code: SIZE, offset: offset as isize, flags: READ_ONLY, doc }, end])
}

/// A class whose objects have `bytes`: a new reference that is never released.
pub(crate) fn make(
    py: Python<'_>,
    name: &'static CStr,
    flags: c_ulong,
    bytes: usize,
    slots: &[(c_int, *mut c_void)],
) -> PyResult<*mut PyObject> {
    let slot = |(slot, pfunc): (c_int, *mut c_void)| ffi::PyType_Slot { slot, pfunc };
    let end = (0, std::ptr::null_mut());
    let mut slots: Vec<ffi::PyType_Slot> = slots.iter().copied().chain([end]).map(slot).collect();
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: bytes as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | flags) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the slots are functions of the types that they are called with, and methods and members live for ever; a
    // new reference or null.
    let class = unsafe { ffi::PyType_FromSpec(&mut spec) };
    if class.is_null() {
        Err(PyErr::take(py).unwrap_or_else(|| PyRuntimeError::new_err("no class")))
    } else {
        Ok(class)
    }
}
