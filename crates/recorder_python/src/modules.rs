//! Calls of modules. Who a module is, is worked out in Python when it is first called; here it is looked up.
//!
//! Everything here is only touched by the thread that holds the interpreter's lock.

use crate::cpython::{MethodDefinition, ONE};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use stepscope_recorder::scope;
use stepscope_recorder::{self as recorder, CallName, call_name_with};

static ENTER: MethodDefinition = MethodDefinition::new(c"enter_module", enter as *const c_void, ONE);
static LEAVE: MethodDefinition = MethodDefinition::new(c"leave_module", leave as *const c_void, ONE);
static MODULES: Modules = Modules(RefCell::new(None));

/// Names of living modules by their address, and the function that is asked about others.
struct Modules(RefCell<Option<Known>>);

type Known = (HashMap<usize, &'static CallName>, Py<PyAny>);

/// The names that were looked up last, by the low bits of an address.
static RECENT: Recent = Recent([const { Cell::new((0, None)) }; SLOTS]);
const SLOTS: usize = 512;

struct Recent([Cell<(usize, Option<&'static CallName>)>; SLOTS]);

// SAFETY: as for `Modules`.
unsafe impl Sync for Recent {}

impl Recent {
    /// Objects lie 16 bytes apart.
    #[inline(always)]
    fn slot(&self, module: usize) -> &Cell<(usize, Option<&'static CallName>)> {
        &self.0[(module >> 4 ^ module >> 13) % SLOTS]
    }
}

// SAFETY: the interpreter's lock is held wherever it is touched.
unsafe impl Sync for Modules {}

/// Gives the functions to call when a module is entered and left. `describe(module, root)` is called with a module that
/// has no name, and the `id` of the outermost module around it or `None`; it calls `name_module`.
#[pyfunction]
pub(crate) fn module_calls(py: Python<'_>, describe: Py<PyAny>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    if let Ok(mut modules) = MODULES.0.try_borrow_mut() {
        let names = modules.take().map(|(names, _)| names).unwrap_or_default();
        *modules = Some((names, describe));
    }
    // SAFETY: new references, or null with the exception that is then raised.
    unsafe {
        let enter = Bound::from_owned_ptr_or_err(py, ENTER.make())?;
        let leave = Bound::from_owned_ptr_or_err(py, LEAVE.make())?;
        Ok((enter.unbind(), leave.unbind()))
    }
}

/// Names the module at an address; `parameters` is how many it has, and how many of them are trained.
#[pyfunction]
pub(crate) fn name_module(module: usize, name: &str, parameters: (u64, u64)) {
    let size = CString::new(format!("{} {}", parameters.0, parameters.1)).unwrap_or_default();
    let name = call_name_with(name, &size);
    RECENT.slot(module).set((0, None));
    if let Ok(mut modules) = MODULES.0.try_borrow_mut() {
        modules.iter_mut().for_each(|(names, _)| _ = names.insert(module, name));
    }
}

/// The module at an address is no more.
#[pyfunction]
pub(crate) fn forget_module(module: usize) {
    RECENT.slot(module).set((0, None));
    if let Ok(mut modules) = MODULES.0.try_borrow_mut() {
        modules.iter_mut().for_each(|(names, _)| _ = names.remove(&module));
    }
}

#[inline(always)]
fn known(module: usize) -> Option<&'static CallName> {
    let slot = RECENT.slot(module);
    match slot.get() {
        (found, Some(name)) if found == module => Some(name),
        _ => {
            let name = MODULES.0.try_borrow().ok()?.as_ref()?.0.get(&module).copied();
            slot.set((module, name));
            name
        }
    }
}

#[cold]
fn ask(module: *mut PyObject) -> Option<&'static CallName> {
    // SAFETY: called by the interpreter, with the lock.
    let py = unsafe { Python::assume_attached() };
    let describe = MODULES.0.try_borrow().ok()?.as_ref()?.1.clone_ref(py);
    // SAFETY: an argument lives during the call.
    let object = unsafe { Bound::from_borrowed_ptr(py, module) };
    // Whatever goes wrong is not the program's: the module is then called by its class.
    let _ = describe.call1(py, (object, recorder::outermost_call(scope::MODULE)));
    known(module as usize)
}

unsafe extern "C" fn enter(_: *mut PyObject, module: *mut PyObject) -> *mut PyObject {
    if let Some(name) = known(module as usize).or_else(|| ask(module)) {
        recorder::push_call(module as usize, name, scope::MODULE, -1, true);
    }
    none()
}

unsafe extern "C" fn leave(_: *mut PyObject, module: *mut PyObject) -> *mut PyObject {
    if !recorder::pop_call(module as usize) {
        recorder::pop_outer_call(module as usize, None);
    }
    none()
}

fn none() -> *mut PyObject {
    // SAFETY: called by the interpreter, with the lock.
    unsafe {
        let none = ffi::Py_None();
        ffi::Py_IncRef(none);
        none
    }
}
