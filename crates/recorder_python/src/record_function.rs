//! `stepscope.profiler.record_function`, as far as it runs when nothing records: a native class, since programs have
//! labels everywhere. What is rare is written in Python and put into the class.

mod fast_call;

use crate::cpython::{
    GetSetDefinition, MethodDefinition, NO_ARGUMENTS, PyObject_GenericGetDict, PyObject_GenericSetDict,
};
use crate::label::{ENTER, EXIT, Label, Stock, clear, latest, let_go, make_class};
use pyo3::ffi::{self, PyMemberDef, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::offset_of;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A label that a program may inherit from and hang attributes on.
#[repr(C)]
struct RecordFunction {
    label: Label,
    attributes: *mut PyObject,
    weak_references: *mut PyObject,
}

/// The class, never freed; 0 before it is made.
static CLASS: AtomicUsize = AtomicUsize::new(0);
static STOCK: Stock = Stock::new();

struct Members([PyMemberDef; 6]);

// SAFETY: the pointers are to constants.
unsafe impl Sync for Members {}

const fn member(name: &'static CStr, (type_code, flags): (c_int, c_int), offset: usize) -> PyMemberDef {
    PyMemberDef { name: name.as_ptr(), type_code, offset: offset as isize, flags, doc: std::ptr::null() }
}

/// Kinds of members, and whether they are read-only, as every release numbers them.
const OBJECT: (c_int, c_int) = (6, 0);
const BOOL: (c_int, c_int) = (14, 0);
const OFFSET: (c_int, c_int) = (19, 1);

static MEMBERS: Members = Members([
    member(c"name", OBJECT, offset_of!(Label, name)),
    member(c"args", OBJECT, offset_of!(Label, args)),
    member(c"run_callbacks_on_exit", BOOL, offset_of!(Label, ends_with_block)),
    member(c"__dictoffset__", OFFSET, offset_of!(RecordFunction, attributes)),
    member(c"__weaklistoffset__", OFFSET, offset_of!(RecordFunction, weak_references)),
    PyMemberDef { name: std::ptr::null(), type_code: 0, offset: 0, flags: 0, doc: std::ptr::null() },
]);

static METHODS: [MethodDefinition; 5] = [
    ENTER,
    EXIT,
    MethodDefinition::new(c"_let_go", take as *const c_void, NO_ARGUMENTS),
    MethodDefinition::new(c"_passed_on", passed_on as *const c_void, NO_ARGUMENTS),
    MethodDefinition::END,
];

static ATTRIBUTES: [GetSetDefinition; 2] =
    [GetSetDefinition::new(c"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict), GetSetDefinition::END];

const DOC: &CStr = c"record_function(name, args=None)\n--\n\n";

/// The class, once a process; `rest` has what else is in it.
#[pyfunction]
pub(crate) fn make_record_function(py: Python<'_>, rest: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    if CLASS.load(Ordering::Acquire) == 0 {
        let slots = [
            (ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
            (ffi::Py_tp_dealloc, free as *mut c_void),
            (ffi::Py_tp_traverse, traverse as *mut c_void),
            (ffi::Py_tp_clear, clear_attributes as *mut c_void),
            (ffi::Py_tp_new, ffi::PyType_GenericNew as *mut c_void),
            (ffi::Py_tp_init, init as *mut c_void),
            (ffi::Py_tp_members, (&raw const MEMBERS.0).cast_mut().cast()),
            (ffi::Py_tp_getset, (&raw const ATTRIBUTES).cast_mut().cast()),
        ];
        let flags = ffi::Py_TPFLAGS_BASETYPE | ffi::Py_TPFLAGS_HAVE_GC;
        let name = c"stepscope.profiler.record_function";
        let class = make_class(py, name, flags, size_of::<RecordFunction>(), &METHODS, &slots)?;
        CLASS.store(class as usize, Ordering::Release);
    }
    let class = std::ptr::with_exposed_provenance_mut(CLASS.load(Ordering::Acquire));
    // SAFETY: made once and never freed.
    let class = unsafe { Bound::from_borrowed_ptr_or_err(py, class)? };
    for (name, value) in rest {
        class.setattr(name.cast::<PyString>()?, value)?;
    }
    // SAFETY: a class whose objects are made as `fast_call` makes them.
    unsafe { fast_call::prepare(class.as_ptr()) };
    Ok(class.unbind())
}

unsafe extern "C" fn init(object: *mut PyObject, args: *mut PyObject, keywords: *mut PyObject) -> c_int {
    // SAFETY: called by the interpreter, with the lock, for an object of our class; `args` is a tuple, and the format
    // has as many places as there are pointers.
    unsafe {
        let (mut name, mut input) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut names = [c"name".as_ptr().cast_mut(), c"args".as_ptr().cast_mut(), std::ptr::null_mut::<c_char>()];
        let format = c"O|O:record_function".as_ptr();
        let (names, places) = (names.as_mut_ptr(), (&raw mut name, &raw mut input));
        if ffi::PyArg_ParseTupleAndKeywords(args, keywords, format, names, places.0, places.1) == 0 {
            return -1;
        }
        ffi::Py_IncRef(name);
        ffi::Py_IncRef(input);
        let label = object.cast::<Label>();
        clear(label);
        ((*label).name, (*label).args, (*label).ends_with_block) = (name, input, 1);
        0
    }
}

unsafe extern "C" fn take(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock, for an object of our class.
    unsafe { ffi::PyLong_FromSize_t(let_go(object)) }
}

unsafe extern "C" fn passed_on(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as in `take`.
    unsafe { latest(object) }
}

unsafe extern "C" fn traverse(object: *mut PyObject, visit: ffi::visitproc, with: *mut c_void) -> c_int {
    // SAFETY: called by the collector for an object of our class.
    unsafe {
        let object = object.cast::<RecordFunction>();
        for found in [ffi::Py_TYPE(object.cast()).cast(), (*object).attributes] {
            let stop = if found.is_null() { 0 } else { visit(found, with) };
            if stop != 0 {
                return stop;
            }
        }
        0
    }
}

unsafe extern "C" fn clear_attributes(object: *mut PyObject) -> c_int {
    // SAFETY: as in `traverse`.
    unsafe {
        let attributes = std::mem::replace(&mut (*object.cast::<RecordFunction>()).attributes, std::ptr::null_mut());
        ffi::Py_DecRef(attributes);
        0
    }
}

unsafe extern "C" fn free(object: *mut PyObject) {
    // SAFETY: nobody has a reference any more; an object of a class made at run time owns one to its class.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        if !(*object.cast::<RecordFunction>()).weak_references.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        clear_attributes(object);
        clear(object.cast());
        let class = ffi::Py_TYPE(object);
        // Those of classes that inherit from it are larger.
        let is_own = class as usize == CLASS.load(Ordering::Relaxed);
        if !(is_own && STOCK.give(object)) {
            ffi::PyObject_GC_Del(object.cast());
        }
        ffi::Py_DecRef(class.cast());
    }
}
