//! Follows the calls of Python on all threads: by `sys.monitoring` where there is one, else by a profile function.

mod callback;
mod monitoring;
mod profile_function;

use crate::cpython::PyFrame_GetCode;
use crate::function_names::{self, HIDDEN};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyCode, PyDict};
use std::ffi::c_void;
use stepscope_recorder::scope;
use stepscope_recorder::{self as recorder, CallName, OpenCall};

/// Frames of one thread that are looked at when recording begins.
const MAX_DEPTH: usize = 1 << 17;

/// Follows calls from now on. `frames` is what `sys._current_frames()` gives; `prefixes` are left out of paths. Gives
/// how many threads are left out, since another profiler follows them.
///
/// # Errors
/// One line that says why calls cannot be followed.
#[pyfunction]
pub(crate) fn start_stacks(
    py: Python<'_>,
    are_all_written: bool,
    prefixes: Vec<String>,
    frames: Bound<'_, PyDict>,
) -> PyResult<usize> {
    function_names::prepare(py, Some(prefixes)).map_err(PyRuntimeError::new_err)?;
    let mut left_out = Vec::new();
    if py.version_info() >= (3, 12) {
        monitoring::start(py)?;
    } else {
        left_out = profile_function::start(py)?;
    }
    let is_followed = |frame: &Bound<'_, PyAny>| !left_out.contains(&(frame.as_ptr() as usize));
    let frames = frames.iter().filter(|(_, frame)| is_followed(frame));
    let open = frames.filter_map(|(thread, frame)| Some((thread.extract().ok()?, calls_of(&frame))));
    recorder::start_calls(are_all_written, open.collect());
    Ok(left_out.len())
}

/// Follows calls no longer.
#[pyfunction]
pub(crate) fn stop_stacks(py: Python<'_>) -> PyResult<()> {
    recorder::stop_calls();
    if py.version_info() >= (3, 12) { monitoring::stop(py) } else { profile_function::stop(py) }
}

/// Leaves a function of our own, given by its code or itself when it is one in C, out of stacks.
#[pyfunction]
pub(crate) fn hide(py: Python<'_>, function: Bound<'_, PyAny>) {
    // Where nothing can be named, nothing is shown.
    if function_names::prepare(py, None).is_err() {
        return;
    }
    // SAFETY: the lock is held.
    unsafe {
        match function.cast::<PyCode>() {
            Ok(code) => function_names::hide_code(code.as_ptr()),
            Err(_) => function_names::hide_c_function(function.as_ptr()),
        }
    }
}

/// Shows a function again, given by its code.
#[pyfunction]
pub(crate) fn show(py: Python<'_>, code: Bound<'_, PyCode>) {
    if function_names::prepare(py, None).is_ok() {
        // SAFETY: the lock is held.
        unsafe { function_names::show_code(code.as_ptr()) };
    }
}

/// The calls that a frame lies in, with its own, outermost first.
fn calls_of(frame: &Bound<'_, PyAny>) -> Vec<OpenCall> {
    let mut calls = Vec::new();
    let mut next = Some(frame.clone());
    while let Some(frame) = next.filter(|_| calls.len() < MAX_DEPTH) {
        // SAFETY: the lock is held, and it is a frame.
        calls.extend(unsafe { call_of(frame.as_ptr().cast()) });
        next = frame.getattr("f_back").ok().filter(|back| !back.is_none());
    }
    calls.reverse();
    calls
}

/// The call of a frame; `None` when it is not shown.
unsafe fn call_of(frame: *mut c_void) -> Option<OpenCall> {
    // SAFETY: the callers hold the lock and give a frame.
    unsafe {
        let code = PyFrame_GetCode(frame);
        let name = function_names::of_code(code);
        ffi::Py_DecRef(code);
        let is_shown = !std::ptr::eq(name, &HIDDEN);
        is_shown.then_some(OpenCall { key: code as usize, name, scope: scope::PYTHON_CALL })
    }
}

/// A function in Python begins; false when calls around it may not be known.
#[inline(always)]
unsafe fn enter_code(code: *mut PyObject) -> bool {
    // SAFETY: the callers hold the lock and give a code object.
    let name = unsafe { function_names::of_code(code) };
    if std::ptr::eq(name, &HIDDEN) {
        return true;
    }
    recorder::push_call(code as usize, name, scope::PYTHON_CALL, -1, false)
}

#[inline(always)]
unsafe fn leave_code(code: *mut PyObject) {
    if !recorder::pop_call(code as usize) {
        // SAFETY: as in `enter_code`.
        unsafe { leave_outer(code) };
    }
}

#[cold]
unsafe fn leave_outer(code: *mut PyObject) {
    // SAFETY: as in `enter_code`.
    if !std::ptr::eq(unsafe { function_names::of_code(code) }, &HIDDEN) {
        recorder::pop_outer_call(code as usize, None);
    }
}

#[inline(always)]
unsafe fn enter_c_function(function: *mut PyObject, bound_to: *mut PyObject) -> Option<&'static CallName> {
    // SAFETY: the callers hold the lock.
    unsafe {
        let id = function_names::c_function(function)?;
        let name = function_names::of_c_function(id, function, bound_to);
        if std::ptr::eq(name, &HIDDEN) {
            return None;
        }
        recorder::push_call(id.key, name, scope::C_CALL, -1, false);
        Some(name)
    }
}

#[inline(always)]
unsafe fn leave_c_function(function: *mut PyObject) {
    // SAFETY: the callers hold the lock.
    if let Some(id) = unsafe { function_names::c_function(function) }
        && !recorder::pop_call(id.key)
    {
        // It was entered before anybody followed, or what it called has not said that it ended.
        recorder::pop_outer_call(id.key, Some(scope::PYTHON_CALL));
    }
}
