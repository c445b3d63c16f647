//! Makes objects without a tuple of arguments, where that is certain. A class keeps the function that does so in a place
//! that no interface tells before 3.14; CPython's own classes tell it: each has, in that place and no other, the function
//! that CPython says is called for it.

use super::{RecordFunction, STOCK};
use crate::cpython::{FastCall, argument_count, vectorcall_of, with_tuple_and_dict};
use crate::label;
use pyo3::ffi::{self, PyObject};
use stepscope_recorder_torch::Peek;

const WORD_BYTES: usize = size_of::<usize>();
/// Words of a class that are looked at.
const CLASS_WORDS: usize = 52;

/// Has calls of `class` make objects directly. Nothing happens where it is not certain how: calls then take a little
/// longer.
///
/// # Safety
/// Called with the lock, with a class of labels.
pub(super) unsafe fn prepare(class: *mut PyObject) {
    let Some(offset) = find_offset() else { return };
    // SAFETY: the caller's promise; the place is that of such a function.
    unsafe {
        let place = class.byte_add(offset).cast::<Option<FastCall>>();
        if (*place).is_none() {
            *place = Some(make);
        }
    }
}

/// Where classes have the function.
fn find_offset() -> Option<usize> {
    let vectorcall_of = vectorcall_of()?;
    let classes = [
        &raw mut ffi::PyList_Type,
        &raw mut ffi::PyDict_Type,
        &raw mut ffi::PyTuple_Type,
        &raw mut ffi::PySet_Type,
        &raw mut ffi::PyFrozenSet_Type,
    ];
    let peek = Peek::new().ok()?;
    let mut found = None;
    for class in classes {
        // SAFETY: with the lock, for a class of CPython's.
        let function = unsafe { vectorcall_of(class.cast()) } as usize;
        let mut words = [0_usize; CLASS_WORDS];
        let mut bytes = [0; CLASS_WORDS * WORD_BYTES];
        if peek.copy(class.cast(), &mut bytes) != bytes.len() {
            return None;
        }
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<WORD_BYTES>().0) {
            *word = usize::from_ne_bytes(*bytes);
        }
        let mut places = words.iter().enumerate().filter(|(_, word)| **word == function).map(|(at, _)| at);
        let place = places.next().filter(|_| function != 0 && places.next().is_none())?;
        if *found.get_or_insert(place) != place {
            return None;
        }
    }
    Some(found? * WORD_BYTES)
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

/// The same for any arguments.
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
