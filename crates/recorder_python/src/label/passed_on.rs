//! Labels that somebody else than us hears of, too: PyTorch is told of them by a label of its own.

use super::{Label, text};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::c_char;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An exception is set that is not ours to swallow, as of a program that is being interrupted.
pub(super) struct Interrupted;

/// What begins a label of PyTorch's, and what ends it; never freed, 0 before PyTorch is there.
static ENTER: AtomicUsize = AtomicUsize::new(0);
static EXIT: AtomicUsize = AtomicUsize::new(0);

/// Has labels passed on where somebody listens: `enter(name, args)` gives an object, and `exit(object)` ends it.
#[pyfunction]
pub(crate) fn pass_labels_on(enter: Py<PyAny>, exit: Py<PyAny>) {
    EXIT.store(exit.into_ptr() as usize, Ordering::Release);
    ENTER.store(enter.into_ptr() as usize, Ordering::Release);
}

/// Tells PyTorch that a label is entered: whether it was told.
///
/// # Safety
/// Called with the lock, for a label.
#[cold]
pub(super) unsafe fn enter(object: *mut PyObject) -> Result<bool, Interrupted> {
    let enter: *mut PyObject = std::ptr::with_exposed_provenance_mut(ENTER.load(Ordering::Acquire));
    let label = object.cast::<Label>();
    // SAFETY: the caller's promise; the function is never freed, and the arguments end with a null pointer.
    unsafe {
        if enter.is_null() {
            return Ok(false);
        }
        let name = text(&*label);
        let name = ffi::PyUnicode_FromStringAndSize(name.as_ptr().cast::<c_char>(), name.len() as isize);
        if name.is_null() {
            return swallowed();
        }
        let args = if (*label).args.is_null() { ffi::Py_None() } else { (*label).args };
        let theirs = ffi::PyObject_CallFunctionObjArgs(enter, name, args, std::ptr::null_mut::<PyObject>());
        ffi::Py_DecRef(name);
        if theirs.is_null() {
            return swallowed();
        }
        if (*label).passed_on.is_null() {
            (*label).passed_on = ffi::PyList_New(0);
        }
        let list = (*label).passed_on;
        let is_kept = !list.is_null() && ffi::PyList_Append(list, theirs) == 0;
        ffi::Py_DecRef(theirs);
        if is_kept { Ok(true) } else { swallowed() }
    }
}

/// Tells PyTorch that a label is left which was passed on.
///
/// # Safety
/// As in [`enter`].
#[cold]
pub(super) unsafe fn exit(object: *mut PyObject) -> Result<(), Interrupted> {
    let exit: *mut PyObject = std::ptr::with_exposed_provenance_mut(EXIT.load(Ordering::Acquire));
    // SAFETY: the caller's promise, as in `enter`.
    unsafe {
        let theirs = latest(object);
        let list = (*object.cast::<Label>()).passed_on;
        if list.is_null() || ffi::PyList_Size(list) == 0 {
            ffi::Py_DecRef(theirs);
            return Ok(());
        }
        let len = ffi::PyList_Size(list);
        ffi::PyList_SetSlice(list, len - 1, len, std::ptr::null_mut());
        let ended = ffi::PyObject_CallFunctionObjArgs(exit, theirs, std::ptr::null_mut::<PyObject>());
        ffi::Py_DecRef(theirs);
        if ended.is_null() {
            return swallowed().map(drop);
        }
        ffi::Py_DecRef(ended);
        Ok(())
    }
}

/// What was begun with PyTorch when the label was entered last, or `None`: a new reference.
///
/// # Safety
/// As in [`enter`].
pub(crate) unsafe fn latest(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: the caller's promise.
    unsafe {
        let list = (*object.cast::<Label>()).passed_on;
        let len = if list.is_null() { 0 } else { ffi::PyList_Size(list) };
        let found = if len > 0 { ffi::PyList_GetItem(list, len - 1) } else { ffi::Py_None() };
        ffi::Py_IncRef(found);
        found
    }
}

/// A label must not fail in the program, whatever PyTorch says of it.
unsafe fn swallowed() -> Result<bool, Interrupted> {
    // SAFETY: with the lock, and an exception set.
    unsafe {
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) == 0 {
            return Err(Interrupted);
        }
        ffi::PyErr_Clear();
        Ok(false)
    }
}
