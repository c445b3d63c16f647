//! Makes objects without a tuple of arguments, where it is certain how. A class keeps the function that does so in a
//! place that no interface tells before 3.14; CPython's own classes tell it.

use super::{RecordFunction, STOCK};
use crate::cpython::{FastCall, argument_count, with_tuple_and_dict};
use crate::{label, layout};
use pyo3::ffi::{self, PyObject};

/// Has calls of `class` make objects directly. Nothing happens where it is not certain how: calls then take a little
/// longer.
///
/// # Safety
/// Called with the lock, with a class of labels.
pub(super) unsafe fn prepare(class: *mut PyObject) {
    let Some(offset) = layout::vectorcall_of_class() else { return };
    // SAFETY: the caller's promise; the place is that of such a function.
    unsafe {
        let place = class.byte_add(offset).cast::<Option<FastCall>>();
        if (*place).is_none() {
            *place = Some(make);
        }
    }
}

/// `record_function(name)`, called for the class itself and not for those that inherit from it.
unsafe extern "C" fn make(
    class: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock, for the class itself.
    unsafe {
        let count = argument_count(count);
        if count != 1 || !keywords.is_null() {
            return make_slowly(class, args, count, keywords);
        }
        let object = label::make::<RecordFunction>(class.cast(), &STOCK, *args);
        if !object.is_null() && ffi::PyObject_GC_IsTracked(object) == 0 {
            ffi::PyObject_GC_Track(object.cast());
        }
        object
    }
}

/// As [`make`], for any arguments.
#[cold]
unsafe fn make_slowly(
    class: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as in `make`.
    unsafe {
        with_tuple_and_dict(args, count, keywords, |tuple, dict| {
            let object = ffi::PyType_GenericNew(class.cast(), tuple, dict);
            if !object.is_null() && super::init(object, tuple, dict) != 0 {
                ffi::Py_DecRef(object);
                return std::ptr::null_mut();
            }
            object
        })
    }
}
