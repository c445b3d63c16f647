//! The object behind every label of a program: entered and left, made for every block.

mod bound;
mod passed_on;
mod stock;

pub(crate) use passed_on::{latest, pass_labels_on};
pub(crate) use stock::Stock;

use crate::class;
use crate::cpython::{FAST, MethodDefinition, NO_ARGUMENTS, PyUnicode_AsUTF8AndSize};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use stepscope_recorder as recorder;
use stepscope_recorder_torch as torch;

/// True while somebody wants labels.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The object, behind the head that every object has.
#[repr(C)]
pub(crate) struct Label {
    head: [usize; 2],
    pub(crate) name: *mut PyObject,
    /// For each time that it is entered now, the latest in the lowest bits: [`BEGUN`], [`PASSED_ON`].
    entered: u64,
    /// What was begun with PyTorch, for each time that it was passed on: a list, or null.
    passed_on: *mut PyObject,
    /// What `record_function` was given beside the name; null or `None` without.
    pub(crate) args: *mut PyObject,
    /// 0 once the label ends with something else than the block.
    pub(crate) ends_with_block: c_char,
}

/// A label of ours was begun.
const BEGUN: u64 = 1;
/// PyTorch was told, for its listeners.
const PASSED_ON: u64 = 2;
const BITS: u32 = 2;

/// Says whether labels are wanted.
#[pyfunction]
pub(crate) fn set_labels(are_on: bool) {
    IS_ON.store(are_on, Ordering::Relaxed);
}

/// True while somebody wants labels of the calling thread: a decorator has less to do where nobody does.
#[pyfunction]
pub(crate) fn are_labels_wanted() -> bool {
    IS_ON.load(Ordering::Relaxed) || torch::has_other_listeners()
}

/// True while somebody else than us hears of labels of the calling thread.
#[pyfunction]
pub(crate) fn has_other_listeners() -> bool {
    torch::has_other_listeners()
}

/// A class of labels: a new reference that is never released.
pub(crate) fn make_class(
    py: Python<'_>,
    name: &'static CStr,
    flags: c_ulong,
    bytes: usize,
    methods: &'static [MethodDefinition],
    own_slots: &[(c_int, *mut c_void)],
) -> PyResult<*mut PyObject> {
    let mut slots = own_slots.to_vec();
    slots.push((ffi::Py_tp_methods, methods.as_ptr().cast_mut().cast()));
    let class = class::make(py, name, flags, bytes, &slots)?;
    // SAFETY: a class of labels, as all that are made here.
    unsafe { bound::replace_methods(py, class) }?;
    Ok(class)
}

pub(crate) const ENTER: MethodDefinition = MethodDefinition {
    doc: c"__enter__($self)\n--\n\n".as_ptr(),
    ..MethodDefinition::new(c"__enter__", enter as *const c_void, NO_ARGUMENTS)
};
pub(crate) const EXIT: MethodDefinition = MethodDefinition {
    doc: c"__exit__($self, exc_type, exc_value, traceback)\n--\n\n".as_ptr(),
    ..MethodDefinition::new(c"__exit__", exit as *const c_void, FAST)
};

/// Gives up what a label refers to.
///
/// # Safety
/// Called with the lock, for an object of our class.
pub(crate) unsafe fn clear(label: *mut Label) {
    // SAFETY: the caller's promise.
    unsafe {
        let name = std::mem::replace(&mut (*label).name, std::ptr::null_mut());
        let args = std::mem::replace(&mut (*label).args, std::ptr::null_mut());
        let passed_on = std::mem::replace(&mut (*label).passed_on, std::ptr::null_mut());
        ffi::Py_DecRef(name);
        ffi::Py_DecRef(args);
        ffi::Py_DecRef(passed_on);
    }
}

/// A label with this name that is not entered, its memory taken from the stock where there is some: a new reference;
/// null with an exception set. The collector looks at it if it does so at those of its class.
///
/// # Safety
/// Called with the lock, with a class of labels, the stock of that class alone, and an object.
#[inline(always)]
pub(crate) unsafe fn make<L>(class: *mut ffi::PyTypeObject, stock: &Stock, name: *mut PyObject) -> *mut PyObject {
    const { assert!(size_of::<L>() >= size_of::<Label>()) };
    // SAFETY: the caller's promise; `alloc` gives zeroed memory with a head.
    unsafe {
        let known = stock.take(class);
        let object = known.unwrap_or_else(|| ffi::PyType_GenericAlloc(class, 0));
        if !object.is_null() {
            if known.is_some() {
                let head = size_of::<[usize; 2]>();
                object.cast::<u8>().add(head).write_bytes(0, size_of::<L>() - head);
            }
            ffi::Py_IncRef(name);
            let label = object.cast::<Label>();
            ((*label).name, (*label).ends_with_block) = (name, 1);
        }
        object
    }
}

/// The address with its lowest bit set: no op and no other label has it, and objects stay where they are.
fn token(object: *mut PyObject) -> usize {
    object as usize | 1
}

unsafe extern "C" fn enter(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock, for an object of our class.
    unsafe {
        let label = object.cast::<Label>();
        if !IS_ON.load(Ordering::Relaxed) && !torch::has_other_listeners() {
            (*label).entered <<= BITS;
        } else if !enter_heard(object) {
            return std::ptr::null_mut();
        }
        ffi::Py_IncRef(object);
        object
    }
}

/// Enters a label that somebody wants; false with an exception set.
///
/// # Safety
/// Called with the lock, for an object of our class.
#[inline(never)]
unsafe fn enter_heard(object: *mut PyObject) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let (mut how, mut is_ours) = (0, IS_ON.load(Ordering::Relaxed));
        if torch::has_other_listeners() {
            let Ok(is_passed_on) = passed_on::enter(object) else { return false };
            how |= if is_passed_on { PASSED_ON } else { 0 };
            // Where ops are recorded, the hook is one of those that now hear of it.
            is_ours &= !(is_passed_on && torch::is_hooked());
        }
        if is_ours {
            begin(object);
            how |= BEGUN;
        }
        let label = object.cast::<Label>();
        (*label).entered = (*label).entered << BITS | how;
        true
    }
}

/// # Safety
/// Called with the lock, for an object of our class.
unsafe fn begin(object: *mut PyObject) {
    // SAFETY: the caller's promise.
    unsafe {
        let label = &*object.cast::<Label>();
        let has_input = !label.args.is_null() && label.args != ffi::Py_None();
        if has_input && torch::are_inputs_recorded() {
            // A text is an input of which torch.profiler shows nothing.
            recorder::begin_label_with_inputs(token(object), &text(label), |inputs| inputs.other());
        } else {
            recorder::begin_label_as(token(object), &text(label));
        }
    }
}

unsafe extern "C" fn exit(object: *mut PyObject, _: *const *mut PyObject, _: isize) -> *mut PyObject {
    // SAFETY: as in `enter`.
    unsafe {
        let label = object.cast::<Label>();
        let entered = (*label).entered;
        (*label).entered >>= BITS;
        if entered & (BEGUN | PASSED_ON) != 0 && !exit_heard(object, entered) {
            return std::ptr::null_mut();
        }
        let none = ffi::Py_None();
        ffi::Py_IncRef(none);
        none
    }
}

/// Leaves a label that was entered so; false with an exception set.
///
/// # Safety
/// Called with the lock, for an object of our class.
#[inline(never)]
unsafe fn exit_heard(object: *mut PyObject, entered: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let label = &*object.cast::<Label>();
        if entered & BEGUN != 0 && label.ends_with_block != 0 {
            recorder::end_label(token(object), &text(label));
        }
        entered & PASSED_ON == 0 || passed_on::exit(object).is_ok()
    }
}

/// Forgets that it was entered last, so that leaving it ends nothing; gives the token that ends what was then begun, or
/// 0. What was passed on still hears that the block is left.
///
/// # Safety
/// Called with the lock, for an object of our class.
pub(crate) unsafe fn let_go(object: *mut PyObject) -> usize {
    // SAFETY: the caller's promise.
    let label = unsafe { &mut *object.cast::<Label>() };
    let was_begun = label.entered & BEGUN != 0;
    label.entered &= !BEGUN;
    if was_begun { token(object) } else { 0 }
}

/// A name that is no UTF-8: bytes are taken as such, and anything else as Python prints it. What is not so is replaced.
#[cold]
fn lossy(name: &Bound<'_, PyAny>) -> String {
    match name.cast::<PyBytes>() {
        Ok(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
        Err(_) => name.str().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default(),
    }
}

/// The name as UTF-8, which the text object keeps; see [`lossy`] for what is none.
unsafe fn text(label: &Label) -> Cow<'_, str> {
    let mut len = 0;
    // SAFETY: called with the lock; the object owns its name.
    unsafe {
        if label.name.is_null() {
            return Cow::Borrowed("");
        }
        let text = PyUnicode_AsUTF8AndSize(label.name, &mut len);
        if text.is_null() {
            ffi::PyErr_Clear();
            let name = Bound::from_borrowed_ptr(Python::assume_attached(), label.name);
            return Cow::Owned(lossy(&name));
        }
        Cow::Borrowed(std::str::from_utf8_unchecked(std::slice::from_raw_parts(text.cast(), len as usize)))
    }
}
