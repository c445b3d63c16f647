//! `sys.monitoring`, since Python 3.12: one tool among others, told of calls on all threads.

use super::callback;
use super::{enter_c_function, enter_code, leave_c_function, leave_code};
use crate::cpython::{FastCall, PyCode_Type, argument_count};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicI32, Ordering};
use stepscope_recorder as recorder;

/// The ids that no kind of tool has for its own. That of profilers is left to `cProfile`, which takes no other.
const FREE_TOOLS: [i32; 2] = [4, 3];
const NO_TOOL: i32 = -1;
const NAME: &str = "stepscope";
static TOOL: AtomicI32 = AtomicI32::new(NO_TOOL);

/// What is called at which event.
static CALLBACKS: [(&str, FastCall); 9] = [
    ("PY_START", on_enter),
    ("PY_RESUME", on_enter),
    ("PY_THROW", on_enter),
    ("PY_RETURN", on_leave),
    ("PY_YIELD", on_leave),
    ("PY_UNWIND", on_leave),
    ("CALL", on_call),
    ("C_RETURN", on_c_return),
    ("C_RAISE", on_c_return),
];

/// True while the tool's id is ours: a program may have given it back, and then it may be somebody else's.
fn is_ours(monitoring: &Bound<'_, PyAny>, tool: i32) -> PyResult<bool> {
    Ok(tool != NO_TOOL && monitoring.call_method1("get_tool", (tool,))?.eq(NAME)?)
}

/// Registers everything. A later call begins anew.
pub(super) fn start(py: Python<'_>) -> PyResult<()> {
    let monitoring = py.import("sys")?.getattr("monitoring")?;
    let mut tool = TOOL.load(Ordering::Relaxed);
    if !is_ours(&monitoring, tool)? {
        tool = NO_TOOL;
        for id in FREE_TOOLS {
            if monitoring.call_method1("get_tool", (id,))?.is_none() {
                monitoring.call_method1("use_tool_id", (id, NAME))?;
                tool = id;
                break;
            }
        }
        if tool == NO_TOOL {
            return Err(PyRuntimeError::new_err("other tools use all free ids of sys.monitoring"));
        }
        TOOL.store(tool, Ordering::Relaxed);
    }
    let events = monitoring.getattr("events")?;
    let mut mask = 0;
    for (event, call) in &CALLBACKS {
        let event: i32 = events.getattr(*event)?.extract()?;
        let callback = callback::make(py, *call)?;
        monitoring.call_method1("register_callback", (tool, event, callback))?;
        mask |= event;
    }
    monitoring.call_method1("set_events", (tool, mask))?;
    Ok(())
}

/// Gives the id back.
pub(super) fn stop(py: Python<'_>) -> PyResult<()> {
    let tool = TOOL.swap(NO_TOOL, Ordering::Relaxed);
    let monitoring = py.import("sys")?.getattr("monitoring")?;
    if !is_ours(&monitoring, tool)? {
        return Ok(());
    }
    monitoring.call_method1("set_events", (tool, 0))?;
    let events = monitoring.getattr("events")?;
    for (event, _) in &CALLBACKS {
        monitoring.call_method1("register_callback", (tool, events.getattr(*event)?, py.None()))?;
    }
    monitoring.call_method1("free_tool_id", (tool,))?;
    Ok(())
}

/// `None`, as callbacks return it. References to it are not counted where there is `sys.monitoring`.
#[inline(always)]
unsafe fn none() -> *mut PyObject {
    // SAFETY: the callers hold the lock.
    unsafe { ffi::Py_None() }
}

/// True when the first argument is a code object, as the interpreter gives it. An extension in C may tell of calls of
/// its own, with an object that only looks like one.
#[inline(always)]
unsafe fn is_code(args: *const *mut PyObject, count: usize) -> bool {
    // SAFETY: the callers got the number of arguments that `count` says.
    unsafe { argument_count(count) > 0 && std::ptr::eq(ffi::Py_TYPE(*args), &raw const PyCode_Type) }
}

unsafe extern "C" fn on_enter(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called with the lock.
    unsafe {
        if is_code(args, count) && !enter_code(*args) {
            // A thread that began since then is seen from its first call on: there is none around it.
            recorder::set_outer_calls(&[]);
        }
        none()
    }
}

unsafe extern "C" fn on_leave(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called with the lock.
    unsafe {
        if is_code(args, count) {
            leave_code(*args);
        }
        none()
    }
}

/// Called with code, offset, what is called, and its first argument.
unsafe extern "C" fn on_call(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter with these arguments.
    unsafe {
        if argument_count(count) > 3 {
            enter_c_function(*args.add(2), *args.add(3));
        }
        none()
    }
}

unsafe extern "C" fn on_c_return(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter with these arguments.
    unsafe {
        if argument_count(count) > 2 {
            leave_c_function(*args.add(2));
        }
        none()
    }
}
