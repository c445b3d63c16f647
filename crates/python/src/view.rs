//! The pages of `stepscope view`, served from within a Python process.

use crate::open_options;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use stepscope_server::{Editor, Options, Running};

/// Serves runs and traces on this machine; OSError when nothing can listen there.
#[pyfunction]
#[pyo3(signature = (paths, port=0, allowed_hosts=Vec::new(), allows_frames=false, editor=None, align=None, offsets=Vec::new(), rank_from=None, join=false, memory=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn serve(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    port: u16,
    allowed_hosts: Vec<String>,
    allows_frames: bool,
    editor: Option<String>,
    align: Option<String>,
    offsets: Vec<(u32, i64)>,
    rank_from: Option<String>,
    join: bool,
    memory: Option<u64>,
) -> PyResult<Server> {
    let open = open_options(align.as_deref(), offsets, rank_from.as_deref(), join, memory)?;
    let editor = editor.as_deref().unwrap_or("vscode").parse::<Editor>().map_err(PyValueError::new_err)?;
    let mut options = Options { open, allowed_hosts, allows_frames, editor: Some(editor), ..Options::new(paths) };
    options.address.set_port(port);
    let running = py.detach(|| stepscope_server::serve(options));
    let running = running.map_err(|error| {
        let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        PyOSError::new_err(format!("{error}{hint}"))
    })?;
    Ok(Server { url: running.url.clone(), running: Mutex::new(Some(running)) })
}

/// A server at work; it ends when it is stopped, or with the process.
#[pyclass(frozen)]
pub(crate) struct Server {
    /// The address to open.
    #[pyo3(get)]
    url: String,
    running: Mutex<Option<Running>>,
}

#[pymethods]
impl Server {
    /// Ends it.
    fn stop(&self, py: Python<'_>) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(running));
    }
}
