//! What functions are called: of Python `file.py(12): name`, as `torch.profiler` writes it, of C
//! `<built-in function len>`. Made when a function is first seen, and never by running Python code.
//!
//! Everything here is only touched by the thread that holds the interpreter's lock.

use crate::cpython::{CodeExtra, PyCMethod_Type};
use crate::layout::{self, DEFINITION};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::c_void;
use stepscope_recorder::{CallName, call_name};

/// Stands for functions that are not shown: those of the recorder itself.
pub(crate) static HIDDEN: CallName = CallName::new("");
static NAMES: WithLock<Option<FunctionNames>> = WithLock(UnsafeCell::new(None));

/// Distinct C functions kept; what comes later is not named apart.
const MAX_C_FUNCTIONS: usize = 1 << 16;
const SLOTS: usize = 1024;

/// A value that only the holder of the interpreter's lock touches.
struct WithLock<T>(UnsafeCell<T>);

// SAFETY: the interpreter's lock is held wherever it is touched.
unsafe impl<T> Sync for WithLock<T> {}

struct FunctionNames {
    extra: CodeExtra,
    index: isize,
    /// Where code objects have it, when that is certain.
    place: Option<usize>,
    prefixes: Vec<String>,
    has_c_functions: bool,
    recent: Box<[(CFunction, Option<&'static CallName>); SLOTS]>,
    c_functions: HashMap<CFunction, &'static CallName>,
}

/// What tells C functions apart: the address of the definition and that of its name, since memory may be used again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CFunction {
    pub(crate) key: usize,
    name: usize,
}

/// Makes ready; `prefixes`, when they are known, are what paths of files are shown without, the first that fits.
///
/// # Errors
/// When this interpreter has no place for names.
pub(crate) fn prepare(py: Python<'_>, prefixes: Option<Vec<String>>) -> Result<(), &'static str> {
    // SAFETY: the lock is held, and nobody else has a reference now.
    let names = unsafe { &mut *NAMES.0.get() };
    if let Some(names) = names {
        prefixes.into_iter().for_each(|prefixes| names.prefixes = prefixes);
        return Ok(());
    }
    let refused = "this Python keeps no data with code objects";
    let extra = CodeExtra::find().ok_or(refused)?;
    // SAFETY: the lock is held; nothing is to be freed.
    let index = unsafe { (extra.request)(None) };
    if index < 0 {
        return Err(refused);
    }
    let made = FunctionNames {
        place: layout::extra_of_code(py, &extra, index),
        extra,
        index,
        prefixes: prefixes.unwrap_or_default(),
        has_c_functions: layout::has_known_definitions(py),
        recent: Box::new([(CFunction { key: 0, name: 0 }, None); SLOTS]),
        c_functions: HashMap::new(),
    };
    // SAFETY: as above. Not before: to make it runs Python's own code.
    unsafe { *NAMES.0.get() = Some(made) };
    Ok(())
}

/// The name of a code object.
///
/// # Safety
/// The lock is held, [`prepare`] was called, `code` is a code object.
#[inline(always)]
pub(crate) unsafe fn of_code(code: *mut PyObject) -> &'static CallName {
    // SAFETY: the caller's promises; what is found was set below, from a reference that lives for ever.
    unsafe {
        let Some(names) = &*NAMES.0.get() else { return &HIDDEN };
        let found = match names.place {
            Some(place) => layout::extra_at(code, place, names.index),
            None => names.extra.of(code, names.index),
        };
        if found.is_null() { name_code(code) } else { &*found.cast::<CallName>() }
    }
}

/// Shows a code object no longer.
///
/// # Safety
/// As [`of_code`].
pub(crate) unsafe fn hide_code(code: *mut PyObject) {
    // SAFETY: as in `of_code`.
    unsafe { set_name(code, &HIDDEN) };
}

/// Shows a code object again.
///
/// # Safety
/// As [`of_code`].
pub(crate) unsafe fn show_code(code: *mut PyObject) {
    // SAFETY: as in `of_code`; without a name it gets its own when it is called next.
    unsafe { set_extra(code, std::ptr::null_mut()) };
}

/// Shows a C function no longer.
///
/// # Safety
/// As [`of_code`].
pub(crate) unsafe fn hide_c_function(function: *mut PyObject) {
    // SAFETY: the lock is held, and nobody keeps a reference.
    unsafe {
        if let (Some(id), Some(names)) = (c_function(function), &mut *NAMES.0.get()) {
            names.c_functions.insert(id, &HIDDEN);
        }
    }
}

#[cold]
unsafe fn name_code(code: *mut PyObject) -> &'static CallName {
    // SAFETY: the lock is held, and the code object lives.
    unsafe {
        undisturbed(|py| {
            let code = Bound::from_borrowed_ptr(py, code);
            let text = |name: &str| -> Option<String> {
                let text = code.getattr(name).ok()?;
                Some(text.cast::<PyString>().ok()?.to_string_lossy().into_owned())
            };
            let line = code.getattr("co_firstlineno").ok().and_then(|line| line.extract::<i64>().ok()).unwrap_or(0);
            let file = text("co_filename").unwrap_or_default();
            let prefixes = (*NAMES.0.get()).as_ref().map(|names| names.prefixes.as_slice()).unwrap_or_default();
            let short = prefixes.iter().find_map(|prefix| file.strip_prefix(prefix.as_str())).unwrap_or(&file);
            let name = call_name(&format!("{short}({line}): {}", text("co_name").unwrap_or_default()));
            set_name(code.as_ptr(), name);
            name
        })
    }
}

unsafe fn set_name(code: *mut PyObject, name: &'static CallName) {
    // SAFETY: the callers'.
    unsafe { set_extra(code, std::ptr::from_ref(name).cast_mut().cast()) };
}

unsafe fn set_extra(code: *mut PyObject, value: *mut c_void) {
    // SAFETY: the callers hold the lock and give a code object; a failure leaves no name, and no exception.
    unsafe {
        if let Some(names) = &*NAMES.0.get()
            && (names.extra.set)(code, names.index, value) != 0
        {
            ffi::PyErr_Clear();
        }
    }
}

/// What tells a C function apart; `None` for what is not shown.
///
/// # Safety
/// As [`of_code`], for any object.
#[inline(always)]
pub(crate) unsafe fn c_function(function: *mut PyObject) -> Option<CFunction> {
    // SAFETY: the caller's promises; a built-in function has its definition where it was found.
    unsafe {
        let kind = ffi::Py_TYPE(function);
        if std::ptr::eq(kind, &raw const ffi::PyCFunction_Type) || std::ptr::eq(kind, &raw const PyCMethod_Type) {
            if !(*NAMES.0.get()).as_ref()?.has_c_functions {
                return None;
            }
            let definition = *function.byte_add(DEFINITION).cast::<*const usize>();
            return Some(CFunction { key: definition as usize, name: *definition });
        }
        std::ptr::eq(kind, &raw const ffi::PyMethodDescr_Type).then_some(CFunction { key: function as usize, name: 0 })
    }
}

/// The name of a C function; `bound_to` is the object that a method descriptor is called with, if there is one.
///
/// # Safety
/// As [`of_code`]; `id` is what [`c_function`] gave for `function`.
#[inline(always)]
pub(crate) unsafe fn of_c_function(
    id: CFunction,
    function: *mut PyObject,
    bound_to: *mut PyObject,
) -> &'static CallName {
    // SAFETY: the lock is held, and nobody keeps a reference.
    unsafe {
        let Some(names) = &mut *NAMES.0.get() else { return &HIDDEN };
        if let (found, Some(name)) = names.recent[slot(id)]
            && found == id
        {
            return name;
        }
        name_c_function(id, function, bound_to)
    }
}

fn slot(id: CFunction) -> usize {
    (id.key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - SLOTS.ilog2())
}

#[cold]
unsafe fn name_c_function(id: CFunction, function: *mut PyObject, bound_to: *mut PyObject) -> &'static CallName {
    // SAFETY: the lock is held; describing does not come back here, so that nobody keeps a reference.
    unsafe {
        let known = (*NAMES.0.get()).as_ref().and_then(|names| names.c_functions.get(&id).copied());
        let name = known.unwrap_or_else(|| undisturbed(|py| call_name(&describe(py, function, bound_to))));
        if let Some(names) = &mut *NAMES.0.get() {
            if known.is_none() && names.c_functions.len() < MAX_C_FUNCTIONS {
                names.c_functions.insert(id, name);
                if id.name == 0 {
                    // Known by its own address, which nobody may use again.
                    ffi::Py_IncRef(function);
                }
            }
            names.recent[slot(id)] = (id, Some(name));
        }
        name
    }
}

/// As Python writes it, without the address that would make it another name in every process.
unsafe fn describe(py: Python<'_>, function: *mut PyObject, bound_to: *mut PyObject) -> String {
    // SAFETY: both objects live. For functions and methods in C neither `__get__` nor `repr` runs Python code.
    let text = unsafe {
        let function = Bound::from_borrowed_ptr(py, function);
        let bound = (!bound_to.is_null()).then(|| Bound::from_borrowed_ptr(py, bound_to));
        // With the type: CPython 3.12 and 3.13 look into the null that stands for it where a method wants its class.
        let bound = bound.and_then(|object| function.call_method1("__get__", (&object, object.get_type())).ok());
        bound.unwrap_or(function).repr().map(|text| text.to_string_lossy().into_owned())
    };
    let text = text.unwrap_or_else(|_| "<built-in function>".into());
    match text.rfind(" at 0x") {
        Some(at) => format!("{}>", &text[..at]),
        None => text,
    }
}

/// Runs `f` with whatever exception is under way put aside.
unsafe fn undisturbed<R>(f: impl FnOnce(Python<'_>) -> R) -> R {
    let mut exception = [std::ptr::null_mut(); 3];
    let [kind, value, traceback] = &mut exception;
    // SAFETY: the callers hold the lock.
    unsafe {
        ffi::PyErr_Fetch(kind, value, traceback);
        let result = f(Python::assume_attached());
        ffi::PyErr_Restore(*kind, *value, *traceback);
        result
    }
}
