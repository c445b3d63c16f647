//! `stepscope._engine`: the command line and the analyses, for Python. It converts, releases the interpreter lock and
//! calls; it decides nothing.

#[pyo3::pymodule]
mod _engine {
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use std::ffi::OsString;
    use std::io::Write;
    use std::path::PathBuf;
    use stepscope_engine::{EngineError, OptionTexts, Selection, find_analysis, list_analyses, open_run, with_options};

    /// Runs the command line with `arguments`, the first of which is the program's name, and returns its exit code.
    #[pyfunction]
    fn main(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
        py.detach(|| {
            let code = stepscope_cli::main_with_args(arguments);
            // Rust flushes standard output at the end of its own programs only; this one is Python's. When it cannot
            // be flushed, nobody reads it.
            let _ = std::io::stdout().flush();
            code
        })
    }

    /// The names of all analyses.
    #[pyfunction]
    fn analyses() -> Vec<&'static str> {
        list_analyses().into_iter().map(|(name, _)| name).collect()
    }

    /// Opens a run folder or a trace file; ValueError when it cannot be read.
    #[pyfunction]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Trace> {
        py.detach(|| open_run(&[path])).map(Trace).map_err(to_exception)
    }

    /// An opened run, in memory.
    #[pyclass(frozen)]
    struct Trace(stepscope_engine::Trace);

    #[pymethods]
    impl Trace {
        /// Runs the analysis `name`; the result envelope as JSON. ValueError when there is no such analysis, rank or
        /// step, or the analysis does not accept an option.
        #[pyo3(signature = (name, rank=None, step=None, group_by=None, compat=None, bucket_ms=None))]
        #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
        fn analyze(
            &self,
            py: Python<'_>,
            name: &str,
            rank: Option<u32>,
            step: Option<i64>,
            group_by: Option<String>,
            compat: Option<String>,
            bucket_ms: Option<String>,
        ) -> PyResult<String> {
            let texts = OptionTexts { group_by, compat, bucket_ms };
            let analyze = || {
                let selection = Selection { rank, step, ..Selection::default() };
                let selection = with_options(find_analysis(name)?, selection, &texts)?;
                stepscope_engine::analyze(&self.0, name, &selection)
            };
            py.detach(|| analyze().map(|envelope| envelope.to_json())).map_err(to_exception)
        }
    }

    /// What happened and where, and on a second line what to do.
    fn to_exception(error: EngineError) -> PyErr {
        let place = error.place().map(|place| format!(": {place}")).unwrap_or_default();
        let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        PyValueError::new_err(format!("{error}{place}{hint}"))
    }
}
