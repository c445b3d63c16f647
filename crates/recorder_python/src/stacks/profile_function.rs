//! A profile function on every thread, before Python 3.12. A thread that somebody else follows is left to them.

use super::{call_of, enter_c_function, enter_code, leave_c_function, leave_code};
use crate::cpython::{FAST, MethodDefinition, Profiling, PyFrame_GetCode};
use crate::layout::{self, CodeOffset};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use stepscope_recorder::{self as recorder, CallName, call_name};

/// What happened, as CPython numbers it.
const CALL: c_int = 0;
const RETURN: c_int = 3;
const C_CALL: c_int = 4;
const C_EXCEPTION: c_int = 5;
const C_RETURN: c_int = 6;

/// Where frames have their code, when that is certain.
static CODE_OFFSET: OnceLock<Option<CodeOffset>> = OnceLock::new();
static IS_ON: AtomicBool = AtomicBool::new(false);
/// True once the run says that another profiler follows a thread.
static IS_LOSS_KNOWN: AtomicBool = AtomicBool::new(false);
/// What new threads call first; see [`on_new_thread`].
static NEW_THREAD: MethodDefinition = MethodDefinition::new(c"stepscope", on_new_thread as *const c_void, FAST);

/// What sets another profile function: from there on this thread's calls may be told to somebody else.
static FOLLOWERS: Followers = Followers(OnceLock::new());

struct Followers(OnceLock<[usize; 3]>);

impl Followers {
    fn prepare(&self) {
        let names = [
            "<built-in function setprofile>",
            "<built-in method enable of Profile object>",
            "<built-in method enable of _lsprof.Profiler object>",
        ];
        self.0.get_or_init(|| names.map(|name| std::ptr::from_ref(call_name(name)) as usize));
    }

    #[inline(always)]
    fn contains_name(&self, name: &CallName) -> bool {
        self.0.get().is_some_and(|names| names.contains(&(std::ptr::from_ref(name) as usize)))
    }
}

fn profiling() -> Option<Profiling> {
    static FOUND: OnceLock<Option<Profiling>> = OnceLock::new();
    *FOUND.get_or_init(Profiling::find)
}

/// The object that our profile function is set with: what `sys.getprofile()` then gives, and `threading` passes on.
fn token(py: Python<'_>) -> PyResult<Py<PyAny>> {
    static TOKEN: OnceLock<usize> = OnceLock::new();
    let address = *TOKEN.get_or_init(|| NEW_THREAD.make() as usize);
    let object = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: made above and never freed; null where there was no memory for it.
    unsafe { Bound::from_borrowed_ptr_or_err(py, object).map(Bound::unbind) }
}

/// Sets our function on all threads of the interpreter; gives the innermost frames of the threads that somebody else
/// follows.
pub(super) fn start(py: Python<'_>) -> PyResult<Vec<usize>> {
    let profiling = profiling().ok_or_else(|| PyRuntimeError::new_err("this Python sets no profile functions"))?;
    FOLLOWERS.prepare();
    CODE_OFFSET.get_or_init(|| layout::code_of_frame(py));
    let token = token(py)?;
    let get_profile = py.import("sys")?.getattr("getprofile")?;
    let mut left_out = Vec::new();
    // SAFETY: the lock is held until the end, so that no thread runs, starts or ends; each is asked as if it were the
    // current one, and the current one is restored.
    unsafe {
        let current = ffi::PyThreadState_Get();
        let mut thread = (profiling.first_thread)(ffi::PyInterpreterState_Get());
        while !thread.is_null() {
            ffi::PyThreadState_Swap(thread);
            let found = ffi::PyObject_CallObject(get_profile.as_ptr(), std::ptr::null_mut());
            ffi::PyThreadState_Swap(current);
            let is_free = found.is_null() || found == ffi::Py_None() || found == token.as_ptr();
            if found.is_null() {
                ffi::PyErr_Clear();
            } else {
                ffi::Py_DecRef(found);
            }
            if is_free && (profiling.set)(thread, Some(on_profile), token.as_ptr()) != 0 {
                ffi::PyErr_Clear();
            }
            if !is_free {
                let frame = (profiling.frame_of)(thread);
                left_out.push(frame as usize);
                ffi::Py_DecRef(frame.cast());
            }
            thread = (profiling.next_thread)(thread);
        }
    }
    let threading = py.import("threading")?;
    if threading.getattr("_profile_hook")?.is_none() {
        threading.call_method1("setprofile", (&token,))?;
    }
    IS_LOSS_KNOWN.store(!left_out.is_empty(), Ordering::Relaxed);
    IS_ON.store(true, Ordering::Release);
    Ok(left_out)
}

/// Takes our function away wherever it still is.
pub(super) fn stop(py: Python<'_>) -> PyResult<()> {
    IS_ON.store(false, Ordering::Release);
    let Some(profiling) = profiling() else { return Ok(()) };
    let token = token(py)?;
    let get_profile = py.import("sys")?.getattr("getprofile")?;
    // SAFETY: as in `start`.
    unsafe {
        let current = ffi::PyThreadState_Get();
        let mut thread = (profiling.first_thread)(ffi::PyInterpreterState_Get());
        while !thread.is_null() {
            ffi::PyThreadState_Swap(thread);
            let found = ffi::PyObject_CallObject(get_profile.as_ptr(), std::ptr::null_mut());
            ffi::PyThreadState_Swap(current);
            let is_ours = found == token.as_ptr();
            if found.is_null() {
                ffi::PyErr_Clear();
            } else {
                ffi::Py_DecRef(found);
            }
            if is_ours && (profiling.set)(thread, None, std::ptr::null_mut()) != 0 {
                ffi::PyErr_Clear();
            }
            thread = (profiling.next_thread)(thread);
        }
    }
    let threading = py.import("threading")?;
    if threading.getattr("_profile_hook")?.is(&token) {
        threading.call_method1("setprofile", (py.None(),))?;
    } else {
        report_loss();
    }
    Ok(())
}

/// Somebody else has set a profile function where ours was.
#[cold]
fn report_loss() {
    if !IS_LOSS_KNOWN.swap(true, Ordering::Relaxed) {
        let reason = "Python's calls of some threads are not recorded: another profiler was started";
        recorder::set_metadata("stacks_refused", reason);
    }
}

/// `threading` sets this as the profile function of a new thread, which is slow: at the first event the thread gets the
/// fast one.
unsafe extern "C" fn on_new_thread(_: *mut PyObject, _: *const *mut PyObject, _: isize) -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock.
    unsafe {
        let py = Python::assume_attached();
        if let (Some(profiling), Ok(token)) = (profiling(), token(py)) {
            let function = IS_ON.load(Ordering::Acquire).then_some(on_profile as crate::cpython::ProfileFunction);
            let token = if function.is_some() { token.as_ptr() } else { std::ptr::null_mut() };
            if (profiling.set)(ffi::PyThreadState_Get(), function, token) != 0 {
                ffi::PyErr_Clear();
            }
        }
        let none = ffi::Py_None();
        ffi::Py_IncRef(none);
        none
    }
}

/// Does `f` with the code of a frame.
#[inline(always)]
unsafe fn with_code<R>(frame: *mut c_void, f: impl FnOnce(*mut PyObject) -> R) -> R {
    // SAFETY: the callers hold the lock and give a frame, which keeps its code. A place is only known where it is
    // certain.
    unsafe {
        match CODE_OFFSET.get().copied().flatten() {
            Some(CodeOffset::Behind(first, then)) => {
                let behind = *frame.byte_add(first).cast::<*const c_void>();
                f(*behind.byte_add(then).cast())
            }
            Some(CodeOffset::InFrame(offset)) => f(*frame.byte_add(offset).cast()),
            None => {
                let code = PyFrame_GetCode(frame);
                let result = f(code);
                ffi::Py_DecRef(code);
                result
            }
        }
    }
}

unsafe extern "C" fn on_profile(_: *mut PyObject, frame: *mut c_void, what: c_int, arg: *mut PyObject) -> c_int {
    // SAFETY: called by the interpreter, with the lock, for a frame that runs; `arg` is the C function for C calls.
    unsafe {
        match what {
            CALL => {
                let is_known = with_code(frame, |code| enter_code(code));
                if !is_known {
                    put_callers_around(frame);
                }
            }
            RETURN => with_code(frame, |code| leave_code(code)),
            C_CALL if !arg.is_null() => {
                let name = enter_c_function(arg, std::ptr::null_mut());
                if name.is_some_and(|name| FOLLOWERS.contains_name(name)) {
                    recorder::pop_calls();
                    report_loss();
                }
            }
            C_RETURN | C_EXCEPTION if !arg.is_null() => leave_c_function(arg),
            _ => {}
        }
    }
    0
}

/// The first call that is seen on a thread lies in others.
#[cold]
unsafe fn put_callers_around(frame: *mut c_void) {
    let Some(profiling) = profiling() else { return };
    let mut callers = Vec::new();
    // SAFETY: the lock is held; `PyFrame_GetBack` gives new references.
    unsafe {
        let mut caller = (profiling.frame_back)(frame);
        while !caller.is_null() && callers.len() < super::MAX_DEPTH {
            callers.extend(call_of(caller));
            let next = (profiling.frame_back)(caller);
            ffi::Py_DecRef(caller.cast());
            caller = next;
        }
        if !caller.is_null() {
            ffi::Py_DecRef(caller.cast());
        }
    }
    callers.reverse();
    recorder::set_outer_calls(&callers);
}
