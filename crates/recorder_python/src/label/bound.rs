//! What a `with` gets when it asks a label for `__enter__` and `__exit__`. Up to 3.13 CPython makes a bound method for
//! each of them, in every block, which is a third of what a label costs while nothing records. Ours are used again.
//!
//! ```text
//! with label:   type(label).__enter__ ─▶ Method ─ bound to the label ─▶ BoundMethod ─ called ─▶ what enters it
//! ```
//!
//! Whatever else is done with either is left to CPython's own methods; but that there are no weak references to ours.

use super::stock::Stock;
use super::{enter, exit};
use crate::class::{self, HAS_VECTORCALL, Members};
use crate::cpython::{FastCall, PyVectorcall_Call, argument_count, with_tuple_and_dict};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::sync::OnceLock;

/// From this version on a `with` calls CPython's own methods without binding them.
const BINDS_NO_MORE: (u8, u8) = (3, 14);
/// Stands in a class in the place of CPython's own method; never freed.
#[repr(C)]
struct Method {
    head: [usize; 2],
    call: FastCall,
    class: *mut ffi::PyTypeObject,
    own: *mut PyObject,
    /// Whether the collector looks at labels of the class: only then can one be part of a circle.
    is_collected: bool,
}

#[repr(C)]
struct BoundMethod {
    head: [usize; 2],
    call: FastCall,
    label: *mut PyObject,
    method: *const Method,
}

static MEMBERS: Members = class::vectorcall_at(offset_of!(BoundMethod, call));

/// The classes of both, never freed.
struct Classes {
    of_methods: usize,
    of_bound: usize,
}

static CLASSES: OnceLock<Classes> = OnceLock::new();

static STOCK: Stock = Stock::new();

/// Has a `with` use our methods for labels of `class`.
///
/// # Safety
/// `class` is a class of labels.
pub(super) unsafe fn replace_methods(py: Python<'_>, class: *mut PyObject) -> PyResult<()> {
    let version = py.version_info();
    if (version.major, version.minor) >= BINDS_NO_MORE {
        return Ok(());
    }
    let of_methods = std::ptr::with_exposed_provenance_mut(classes(py)?.of_methods);
    // SAFETY: the caller's promise; `alloc` gives zeroed memory with a head.
    unsafe {
        let labels = Bound::from_borrowed_ptr(py, class);
        for (name, call) in [("__enter__", call_enter as FastCall), ("__exit__", call_exit as FastCall)] {
            let own = labels.getattr(name)?;
            let method = Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(of_methods, 0))?;
            let fields = method.as_ptr().cast::<Method>();
            ((*fields).call, (*fields).class, (*fields).own) = (call, class.cast(), own.into_ptr());
            (*fields).is_collected = ffi::PyType_GetFlags(class.cast()) & ffi::Py_TPFLAGS_HAVE_GC != 0;
            ffi::Py_IncRef(method.as_ptr());
            labels.setattr(name, method)?;
        }
    }
    Ok(())
}

fn classes(py: Python<'_>) -> PyResult<&'static Classes> {
    if CLASSES.get().is_none() {
        let slots = [
            (ffi::Py_tp_new, refuse as *mut c_void),
            (ffi::Py_tp_descr_get, bind as *mut c_void),
            (ffi::Py_tp_call, call_method as *mut c_void),
            (ffi::Py_tp_getattro, attribute_of_method as *mut c_void),
        ];
        let of_methods = class::make(py, c"stepscope.Method", 0, size_of::<Method>(), &slots)?;
        let slots = [
            (ffi::Py_tp_new, refuse as *mut c_void),
            (ffi::Py_tp_dealloc, free as *mut c_void),
            (ffi::Py_tp_traverse, traverse as *mut c_void),
            (ffi::Py_tp_call, PyVectorcall_Call as *mut c_void),
            (ffi::Py_tp_getattro, attribute as *mut c_void),
            (ffi::Py_tp_richcompare, compare as *mut c_void),
            (ffi::Py_tp_hash, hash as *mut c_void),
            (ffi::Py_tp_repr, repr as *mut c_void),
            (ffi::Py_tp_members, MEMBERS.slot()),
        ];
        let flags = ffi::Py_TPFLAGS_HAVE_GC | HAS_VECTORCALL;
        let of_bound = class::make(py, c"stepscope.BoundMethod", flags, size_of::<BoundMethod>(), &slots)?;
        let _ = CLASSES.set(Classes { of_methods: of_methods as usize, of_bound: of_bound as usize });
    }
    CLASSES.get().ok_or_else(|| PyRuntimeError::new_err("there are no classes"))
}

/// Objects are only made here.
unsafe extern "C" fn refuse(_: *mut PyObject, _: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock.
    unsafe {
        ffi::PyErr_SetString(ffi::PyExc_TypeError, c"methods of labels are not made by calling their class".as_ptr())
    };
    std::ptr::null_mut()
}

/// The method of a label, or of a class where there is none.
unsafe extern "C" fn bind(method: *mut PyObject, label: *mut PyObject, class: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock, for a method of ours.
    unsafe {
        let method = &*method.cast::<Method>();
        let is_label = !label.is_null() && ffi::PyObject_TypeCheck(label, method.class) != 0;
        let Some(classes) = CLASSES.get().filter(|_| is_label) else { return bind_own(method.own, label, class) };
        let bound = take(std::ptr::with_exposed_provenance_mut(classes.of_bound));
        if !bound.is_null() {
            ffi::Py_IncRef(label);
            let fields = bound.cast::<BoundMethod>();
            ((*fields).call, (*fields).label, (*fields).method) = (method.call, label, method);
            if method.is_collected {
                ffi::PyObject_GC_Track(bound.cast());
            }
        }
        bound
    }
}

/// A bound method without a label, which the collector does not look at; null with an exception set.
unsafe fn take(class: *mut ffi::PyTypeObject) -> *mut PyObject {
    // SAFETY: with the lock, for the class of bound methods.
    unsafe {
        if let Some(known) = STOCK.take(class) {
            return known;
        }
        let made = ffi::PyType_GenericAlloc(class, 0);
        if !made.is_null() {
            ffi::PyObject_GC_UnTrack(made.cast());
        }
        made
    }
}

unsafe extern "C" fn free(bound: *mut PyObject) {
    // SAFETY: nobody has a reference any more; an object of a class made at run time owns one to its class.
    unsafe {
        ffi::PyObject_GC_UnTrack(bound.cast());
        let class = ffi::Py_TYPE(bound);
        let fields = bound.cast::<BoundMethod>();
        ffi::Py_DecRef((*fields).label);
        // Only now: what goes with the label may itself take and free such objects.
        if !STOCK.give(bound) {
            ffi::PyObject_GC_Del(bound.cast());
        }
        ffi::Py_DecRef(class.cast());
    }
}

unsafe extern "C" fn traverse(bound: *mut PyObject, visit: ffi::visitproc, with: *mut c_void) -> c_int {
    // SAFETY: called by the collector for a bound method of ours.
    unsafe {
        for found in [ffi::Py_TYPE(bound).cast(), (*bound.cast::<BoundMethod>()).label] {
            let stop = if found.is_null() { 0 } else { visit(found, with) };
            if stop != 0 {
                return stop;
            }
        }
        0
    }
}

unsafe extern "C" fn call_enter(
    bound: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock, for a bound method whose label is one.
    unsafe {
        match argument_count(count) {
            0 if keywords.is_null() => enter((*bound.cast::<BoundMethod>()).label, std::ptr::null_mut()),
            count => call_own(bound, args, count, keywords),
        }
    }
}

unsafe extern "C" fn call_exit(
    bound: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as in `call_enter`.
    unsafe {
        let count = argument_count(count);
        match keywords.is_null() {
            true => exit((*bound.cast::<BoundMethod>()).label, args, count as isize),
            false => call_own(bound, args, count, keywords),
        }
    }
}

/// CPython's own method, bound to `label` where there is one: a new reference; null with an exception set.
unsafe fn bind_own(own: *mut PyObject, label: *mut PyObject, class: *mut PyObject) -> *mut PyObject {
    // SAFETY: with the lock; the arguments end with a null pointer.
    unsafe {
        if label.is_null() {
            ffi::Py_IncRef(own);
            return own;
        }
        let bind = ffi::PyObject_GetAttrString(own, c"__get__".as_ptr());
        if bind.is_null() {
            return bind;
        }
        let class = if class.is_null() { ffi::Py_None() } else { class };
        let bound = ffi::PyObject_CallFunctionObjArgs(bind, label, class, std::ptr::null_mut::<PyObject>());
        ffi::Py_DecRef(bind);
        bound
    }
}

/// CPython's own method that a bound method of ours stands for: a new reference; null with an exception set.
unsafe fn own_of(bound: *mut PyObject) -> *mut PyObject {
    // SAFETY: the caller's promise, as in `bind_own`.
    unsafe {
        let BoundMethod { label, method, .. } = *bound.cast::<BoundMethod>();
        bind_own((*method).own, label, ffi::Py_TYPE(label).cast())
    }
}

/// Calls it with arguments that ours does not take.
#[cold]
unsafe fn call_own(
    bound: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the caller's promise.
    unsafe {
        with_own(bound, std::ptr::null_mut(), |own| {
            with_tuple_and_dict(args, count, keywords, |tuple, dict| ffi::PyObject_Call(own, tuple, dict))
        })
    }
}

/// Does `f` with CPython's own method; what it gives is given, or `failure` with an exception set.
unsafe fn with_own<R>(bound: *mut PyObject, failure: R, f: impl FnOnce(*mut PyObject) -> R) -> R {
    // SAFETY: the caller's promise, as in `own_of`.
    unsafe {
        let own = own_of(bound);
        if own.is_null() {
            return failure;
        }
        let result = f(own);
        ffi::Py_DecRef(own);
        result
    }
}

/// Two that are bound to one label are the same method.
unsafe extern "C" fn compare(bound: *mut PyObject, other: *mut PyObject, operation: c_int) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock, for a bound method of ours.
    unsafe {
        let is_ours = std::ptr::eq(ffi::Py_TYPE(bound), ffi::Py_TYPE(other));
        let null = std::ptr::null_mut();
        with_own(bound, null, |own| match is_ours {
            true => with_own(other, null, |other| ffi::PyObject_RichCompare(own, other, operation)),
            false => ffi::PyObject_RichCompare(own, other, operation),
        })
    }
}

unsafe extern "C" fn hash(bound: *mut PyObject) -> ffi::Py_hash_t {
    // SAFETY: as in `compare`.
    unsafe { with_own(bound, -1, |own| ffi::PyObject_Hash(own)) }
}

unsafe extern "C" fn repr(bound: *mut PyObject) -> *mut PyObject {
    // SAFETY: as in `compare`.
    unsafe { with_own(bound, std::ptr::null_mut(), |own| ffi::PyObject_Repr(own)) }
}

unsafe extern "C" fn attribute(bound: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock, for a bound method of ours.
    unsafe { with_own(bound, std::ptr::null_mut(), |own| ffi::PyObject_GetAttr(own, name)) }
}

unsafe extern "C" fn attribute_of_method(method: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock, for a method of ours.
    unsafe { ffi::PyObject_GetAttr((*method.cast::<Method>()).own, name) }
}

unsafe extern "C" fn call_method(method: *mut PyObject, args: *mut PyObject, keywords: *mut PyObject) -> *mut PyObject {
    // SAFETY: as in `attribute_of_method`.
    unsafe { ffi::PyObject_Call((*method.cast::<Method>()).own, args, keywords) }
}
