//! Labels that the program sets around its own code: an object that is entered and left, made for every block.

use crate::cpython::{FAST, FastFunction, MethodDefinition, PyUnicode_AsUTF8AndSize};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use stepscope_recorder as recorder;

/// True while somebody wants labels.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// The class, and the function that wraps functions; never freed.
static CLASS: AtomicUsize = AtomicUsize::new(0);
static DECORATE: AtomicUsize = AtomicUsize::new(0);

static ANNOTATE: MethodDefinition = MethodDefinition {
    doc: c"annotate(name)\n--\n\n".as_ptr(),
    ..MethodDefinition::new(c"annotate", annotate as *const c_void, FAST | KEYWORDS)
};
const KEYWORDS: c_int = 0x02;
const NO_ARGUMENTS: c_int = 0x04;

/// The object, behind the head that every object has.
#[repr(C)]
struct Annotation {
    head: [usize; 2],
    name: *mut PyObject,
    /// For each time that it is entered now, the latest in the lowest bit: whether a label was begun.
    entered: u64,
}

/// Says whether labels are wanted.
#[pyfunction]
pub(crate) fn set_labels(are_on: bool) {
    IS_ON.store(are_on, Ordering::Relaxed);
}

/// The function `annotate(name)`. Its object, called with a function, gives what `decorate(name, function)` gives.
#[pyfunction]
pub(crate) fn make_annotate(py: Python<'_>, decorate: Py<PyAny>) -> PyResult<Py<PyAny>> {
    static MADE: OnceLock<usize> = OnceLock::new();
    if MADE.get().is_none() {
        CLASS.store(make_class(py)? as usize, Ordering::Release);
        DECORATE.store(decorate.into_ptr() as usize, Ordering::Release);
    }
    let function = *MADE.get_or_init(|| ANNOTATE.make() as usize);
    // SAFETY: made once and never freed; null without memory.
    unsafe { Bound::from_borrowed_ptr_or_err(py, std::ptr::with_exposed_provenance_mut(function)).map(Bound::unbind) }
}

fn make_class(py: Python<'_>) -> PyResult<*mut PyObject> {
    static METHODS: [MethodDefinition; 3] = [
        MethodDefinition::new(c"__enter__", enter as *const c_void, NO_ARGUMENTS),
        MethodDefinition::new(c"__exit__", exit as *const c_void, FAST),
        MethodDefinition { name: std::ptr::null(), function: std::ptr::null(), flags: 0, doc: std::ptr::null() },
    ];
    let methods = (&raw const METHODS).cast_mut().cast();
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_dealloc, free as *mut c_void),
        slot(ffi::Py_tp_call, call as *mut c_void),
        slot(ffi::Py_tp_methods, methods),
        slot(0, std::ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"stepscope.Annotation".as_ptr(),
        basicsize: size_of::<Annotation>() as c_int,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the slots are functions of the types that they are called with; a new reference or null.
    let class = unsafe { ffi::PyType_FromSpec(&mut spec) };
    if class.is_null() {
        Err(PyErr::take(py).unwrap_or_else(|| PyRuntimeError::new_err("no class")))
    } else {
        Ok(class)
    }
}

/// Makes the object; `args` holds the values of keywords behind those without.
unsafe extern "C" fn annotate(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: isize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock; `alloc` gives zeroed memory with a head.
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
        let object = ffi::PyType_GenericAlloc(class, 0);
        if !object.is_null() {
            ffi::Py_IncRef(name);
            (*object.cast::<Annotation>()).name = name;
        }
        object
    }
}

unsafe fn is_name_alone(keywords: *mut PyObject) -> bool {
    // SAFETY: the interpreter gives a tuple of texts.
    unsafe {
        ffi::PyTuple_Size(keywords) == 1
            && ffi::PyUnicode_CompareWithASCIIString(ffi::PyTuple_GetItem(keywords, 0), c"name".as_ptr()) == 0
    }
}

unsafe extern "C" fn free(object: *mut PyObject) {
    // SAFETY: nobody has a reference any more; an object of a class made at run time owns one to its class.
    unsafe {
        let class = ffi::Py_TYPE(object);
        ffi::Py_DecRef((*object.cast::<Annotation>()).name);
        ffi::PyObject_Free(object.cast());
        ffi::Py_DecRef(class.cast());
    }
}

/// The address with its lowest bit set: no op and no other label has it, and objects stay where they are.
fn token(object: *mut PyObject) -> usize {
    object as usize | 1
}

unsafe extern "C" fn enter(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock, for an object of our class.
    unsafe {
        let annotation = object.cast::<Annotation>();
        let is_on = IS_ON.load(Ordering::Relaxed);
        (*annotation).entered = (*annotation).entered << 1 | u64::from(is_on);
        if is_on {
            recorder::begin_label_as(token(object), text(&*annotation));
        }
        ffi::Py_IncRef(object);
        object
    }
}

unsafe extern "C" fn exit(object: *mut PyObject, _: *const *mut PyObject, _: isize) -> *mut PyObject {
    // SAFETY: as in `enter`.
    unsafe {
        let annotation = object.cast::<Annotation>();
        if (*annotation).entered & 1 != 0 {
            recorder::end_label(token(object), text(&*annotation));
        }
        (*annotation).entered >>= 1;
        let none = ffi::Py_None();
        ffi::Py_IncRef(none);
        none
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
        let decorate = std::ptr::with_exposed_provenance_mut(DECORATE.load(Ordering::Acquire));
        let name = (*object.cast::<Annotation>()).name;
        let both = ffi::PyTuple_Pack(2, name, ffi::PyTuple_GetItem(args, 0));
        if both.is_null() {
            return both;
        }
        let result = ffi::PyObject_CallObject(decorate, both);
        ffi::Py_DecRef(both);
        result
    }
}

/// The name as UTF-8, which the text object keeps; empty where there is none.
unsafe fn text(annotation: &Annotation) -> &str {
    let mut len = 0;
    // SAFETY: the object owns its name.
    unsafe {
        let text = PyUnicode_AsUTF8AndSize(annotation.name, &mut len);
        if text.is_null() {
            ffi::PyErr_Clear();
            return "";
        }
        std::str::from_utf8_unchecked(std::slice::from_raw_parts(text.cast(), len as usize))
    }
}

const _: FastFunction = exit;
