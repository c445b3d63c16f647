//! Calls a function where nothing of the program's threads is: their modes, hooks and tracers belong to them. The
//! thread is made by the system, since Python's own tell of themselves, and may be something else than threads.

use pyo3::exceptions::{PyRuntimeError, PyTimeoutError};
use pyo3::prelude::*;
use std::sync::mpsc::channel;
use std::time::Duration;

/// What `function()` gives or raises, called on a new thread. After `seconds` nobody waits for it any more, and it runs
/// on.
#[pyfunction]
pub(crate) fn call_on_new_thread(py: Python<'_>, function: Py<PyAny>, seconds: f64) -> PyResult<Py<PyAny>> {
    let (give, take) = channel();
    let call = move || {
        Python::attach(|py| {
            // Nobody takes it when it comes too late.
            let _ = give.send(function.call0(py));
            drop(function);
        });
    };
    let thread = std::thread::Builder::new().name("stepscope-probe".into()).spawn(call);
    thread.map_err(|error| PyRuntimeError::new_err(format!("no thread can be started: {error}")))?;
    let timeout = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    py.detach(move || take.recv_timeout(timeout)).unwrap_or_else(|_| {
        let late = format!("what was to be found out took longer than {seconds} s");
        Err(PyTimeoutError::new_err(late))
    })
}
