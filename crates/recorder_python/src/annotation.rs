//! `stepscope.annotate`: a function that makes labels, and what a label is as a decorator.

use crate::cpython::{FAST, MethodDefinition};
use crate::label::{self, ENTER, EXIT, Label, Stock, clear, make_class};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The class, and the function that wraps functions; never freed.
static CLASS: AtomicUsize = AtomicUsize::new(0);
static DECORATE: AtomicUsize = AtomicUsize::new(0);
static STOCK: Stock = Stock::new();

static ANNOTATE: MethodDefinition = MethodDefinition {
    doc: c"annotate(name)\n--\n\n".as_ptr(),
    ..MethodDefinition::new(c"annotate", annotate as *const c_void, FAST | KEYWORDS)
};
const KEYWORDS: c_int = 0x02;

/// The function `annotate(name)`. Its object, called with a function, gives what `decorate(name, function)` gives.
#[pyfunction]
pub(crate) fn make_annotate(py: Python<'_>, decorate: Py<PyAny>) -> PyResult<Py<PyAny>> {
    static MADE: OnceLock<usize> = OnceLock::new();
    if MADE.get().is_none() {
        CLASS.store(make_annotation_class(py)? as usize, Ordering::Release);
        DECORATE.store(decorate.into_ptr() as usize, Ordering::Release);
    }
    let function = *MADE.get_or_init(|| ANNOTATE.make() as usize);
    // SAFETY: made once and never freed; null without memory.
    unsafe { Bound::from_borrowed_ptr_or_err(py, std::ptr::with_exposed_provenance_mut(function)).map(Bound::unbind) }
}

fn make_annotation_class(py: Python<'_>) -> PyResult<*mut PyObject> {
    static METHODS: [MethodDefinition; 3] = [ENTER, EXIT, MethodDefinition::END];
    let slots = [(ffi::Py_tp_dealloc, free as *mut c_void), (ffi::Py_tp_call, call as *mut c_void)];
    make_class(py, c"stepscope.Annotation", 0, size_of::<Label>(), &METHODS, &slots)
}

unsafe extern "C" fn free(object: *mut PyObject) {
    // SAFETY: nobody has a reference any more; an object of a class made at run time owns one to its class.
    unsafe {
        clear(object.cast());
        let class = ffi::Py_TYPE(object);
        if !STOCK.give(object) {
            ffi::PyObject_Free(object.cast());
        }
        ffi::Py_DecRef(class.cast());
    }
}

/// Makes the object; `args` holds the values of keywords behind those without.
unsafe extern "C" fn annotate(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: isize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock.
    unsafe {
        let is_named = count == 0 && !keywords.is_null() && is_name_alone(keywords);
        if !(is_named || count == 1 && (keywords.is_null() || ffi::PyTuple_Size(keywords) == 0)) {
            ffi::PyErr_SetString(ffi::PyExc_TypeError, c"annotate() takes one argument: name".as_ptr());
            return std::ptr::null_mut();
        }
        let name = *args;
        if ffi::PyUnicode_Check(name) == 0 {
            ffi::PyErr_SetString(ffi::PyExc_TypeError, c"the name of an annotation is a string".as_ptr());
            return std::ptr::null_mut();
        }
        let class = std::ptr::with_exposed_provenance_mut(CLASS.load(Ordering::Acquire));
        label::make::<Label>(class, &STOCK, name)
    }
}

unsafe fn is_name_alone(keywords: *mut PyObject) -> bool {
    // SAFETY: the interpreter gives a tuple of texts.
    unsafe {
        ffi::PyTuple_Size(keywords) == 1
            && ffi::PyUnicode_CompareWithASCIIString(ffi::PyTuple_GetItem(keywords, 0), c"name".as_ptr()) == 0
    }
}

/// Called with a function: wraps it.
unsafe extern "C" fn call(object: *mut PyObject, args: *mut PyObject, keywords: *mut PyObject) -> *mut PyObject {
    // SAFETY: as in `enter`; `args` is a tuple.
    unsafe {
        if ffi::PyTuple_Size(args) != 1 || !keywords.is_null() && ffi::PyDict_Size(keywords) != 0 {
            ffi::PyErr_SetString(ffi::PyExc_TypeError, c"an annotation decorates one function".as_ptr());
            return std::ptr::null_mut();
        }
        if (*object.cast::<Label>()).name.is_null() {
            ffi::PyErr_SetString(ffi::PyExc_TypeError, c"an annotation is made by annotate(name)".as_ptr());
            return std::ptr::null_mut();
        }
        let decorate = std::ptr::with_exposed_provenance_mut(DECORATE.load(Ordering::Acquire));
        let name = (*object.cast::<Label>()).name;
        let both = ffi::PyTuple_Pack(2, name, ffi::PyTuple_GetItem(args, 0));
        if both.is_null() {
            return both;
        }
        let result = ffi::PyObject_CallObject(decorate, both);
        ffi::Py_DecRef(both);
        result
    }
}
