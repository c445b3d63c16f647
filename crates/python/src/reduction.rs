//! A run whose summaries other processes make, for the executors of Python.

use crate::_engine::Run;
use crate::{open_options, to_exception};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use stepscope_engine::{Progress, summary_elsewhere, this_program};

/// The sum of what this program is, which tells programs apart.
#[pyfunction]
pub(crate) fn program() -> u64 {
    this_program()
}

/// The summary of the part that `task` tells, made for a process whose `program()` is given; or why there is none, as text
/// for `Reduction.add`.
#[pyfunction]
pub(crate) fn summary_of<'py>(
    py: Python<'py>,
    program: u64,
    task: &str,
) -> (Option<Bound<'py, PyBytes>>, Option<String>) {
    match py.detach(|| summary_elsewhere(program, task)) {
        Ok(summary) => (Some(PyBytes::new(py, &summary)), None),
        Err(why) => (None, Some(why)),
    }
}

/// A run before its summaries are put together.
#[pyclass(frozen)]
pub(crate) struct Reduction(Mutex<Option<stepscope_engine::Reduction>>);

impl Reduction {
    fn with<T>(&self, make: impl FnOnce(&mut stepscope_engine::Reduction) -> T) -> PyResult<T> {
        let mut reduction = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reduction.as_mut().map(make).ok_or_else(opened_already)
    }
}

#[pymethods]
impl Reduction {
    /// Finds the parts of a run; ValueError when there is no run.
    #[new]
    #[pyo3(signature = (paths, align=None, offsets=Vec::new(), rank_from=None, join=false, memory=None))]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        align: Option<String>,
        offsets: Vec<(u32, i64)>,
        rank_from: Option<String>,
        join: bool,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let options = open_options(align.as_deref(), offsets, rank_from.as_deref(), join, memory)?;
        let begun = py.detach(|| stepscope_engine::Reduction::begin(&paths, &options));
        begun.map(|begun| Self(Mutex::new(Some(begun)))).map_err(to_exception)
    }

    /// The places of the parts whose summaries are to be made, and what a process that makes one is told.
    fn tasks(&self, py: Python<'_>) -> PyResult<Vec<(usize, String)>> {
        py.detach(|| self.with(|reduction| reduction.tasks().collect()))
    }

    /// Where the part at a place is.
    fn path(&self, at: usize) -> PyResult<PathBuf> {
        self.with(|reduction| reduction.path(at))
    }

    /// Takes what `summary_of` gave for the part at a place. RuntimeError when the process that made it does not see the same
    /// file or is another program.
    fn add(&self, py: Python<'_>, at: usize, summary: Option<&[u8]>, failure: Option<&str>) -> PyResult<()> {
        let given = summary.map(<[u8]>::to_vec).ok_or(failure.unwrap_or_default());
        py.detach(|| self.with(|reduction| reduction.add(at, given)))?.map_err(to_exception)
    }

    /// Opens the run, once. What there is no summary of is read here.
    fn open(&self, py: Python<'_>) -> PyResult<Run> {
        let reduction = self.0.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(opened_already)?;
        py.detach(|| reduction.open(&Progress::default())).map(Run).map_err(to_exception)
    }
}

fn opened_already() -> PyErr {
    PyRuntimeError::new_err("it is open already")
}
