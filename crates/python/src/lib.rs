//! `stepscope._engine`: the command line and the analyses, for Python. It converts, releases the interpreter lock and
//! calls; it decides nothing.

mod own_averages;
mod own_recording;
mod reduction;
mod view;

use stepscope_engine::{Align, Joining, OpenOptions, Regex};

#[pyo3::pymodule]
mod _engine {
    #[pymodule_export]
    use crate::own_averages::read_averages;
    #[pymodule_export]
    use crate::own_recording::{Events, read_events, write_chrome, write_memory_timeline};
    #[pymodule_export]
    use crate::reduction::{Reduction, program, summary_of};
    #[pymodule_export]
    use crate::view::{Server, serve};
    use crate::{open_options, to_exception};
    use arrow_array::ffi_stream::FFI_ArrowArrayStream;
    use arrow_array::{RecordBatch, RecordBatchIterator};
    use arrow_ipc::reader::StreamReader;
    use arrow_schema::{ArrowError, SchemaRef};
    use pyo3::prelude::*;
    use pyo3::types::{PyBytes, PyCapsule};
    use std::ffi::OsString;
    use std::io::{BufReader, Read, Write};
    use std::path::PathBuf;
    use std::sync::{Mutex, PoisonError};
    use stepscope_engine::{
        EngineError, OpenedRun, OptionTexts, Progress, Ranks, Selection, find_analysis, list_analyses, with_options,
    };
    use stepscope_export::record_batch;

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

    /// Whether `path` is an address in a store that can be opened.
    #[pyfunction]
    fn is_remote(path: PathBuf) -> bool {
        stepscope_engine::is_remote(&path)
    }

    /// The names of all analyses.
    #[pyfunction]
    fn analyses() -> Vec<&'static str> {
        list_analyses().into_iter().map(|(name, _)| name).collect()
    }

    /// The reference of an analysis: its name, definition, units, source and edge cases, each under its heading.
    #[pyfunction]
    fn reference(name: &str) -> PyResult<Vec<(&'static str, String)>> {
        let analysis = find_analysis(name).map_err(to_exception)?;
        let headings = ["Definition", "Units", "Source", "Edge cases"];
        Ok(headings.map(|heading| (heading, analysis.section(heading))).into())
    }

    /// Opens a run folder or a trace file, or the ranks of a job, which may be several paths; ValueError when it cannot be
    /// read.
    #[pyfunction]
    #[pyo3(signature = (paths, align=None, offsets=Vec::new(), rank_from=None, join=false, memory=None))]
    fn open(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        align: Option<String>,
        offsets: Vec<(u32, i64)>,
        rank_from: Option<String>,
        join: bool,
        memory: Option<u64>,
    ) -> PyResult<Run> {
        let options = open_options(align.as_deref(), offsets, rank_from.as_deref(), join, memory)?;
        py.detach(|| OpenedRun::open(&paths, &options, &Progress::default())).map(Run).map_err(to_exception)
    }

    /// An opened run.
    #[pyclass(frozen)]
    pub(crate) struct Run(pub(crate) OpenedRun);

    #[pymethods]
    impl Run {
        /// Runs the analysis `name`. ValueError when there is no such analysis, rank or step, or the analysis does not
        /// accept an option.
        #[pyo3(signature = (name, rank=None, step=None, start_ns=None, end_ns=None, group_by=None, compat=None, bucket_ms=None, depth=None, top=None))]
        #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
        fn analyze(
            &self,
            py: Python<'_>,
            name: &str,
            rank: Option<String>,
            step: Option<i64>,
            start_ns: Option<i64>,
            end_ns: Option<i64>,
            group_by: Option<String>,
            compat: Option<String>,
            bucket_ms: Option<String>,
            depth: Option<String>,
            top: Option<String>,
        ) -> PyResult<Envelope> {
            let texts = OptionTexts { group_by, compat, bucket_ms, depth, top };
            let analyze = || -> Result<stepscope_engine::Envelope, EngineError> {
                let window = stepscope_engine::window(start_ns, end_ns)?;
                let ranks = rank.map(|ranks| ranks.parse::<Ranks>()).transpose()?.unwrap_or_default();
                let selection = Selection { ranks, step, window, ..Selection::default() };
                let analysis = find_analysis(name)?;
                self.0.analyze(analysis, &with_options(analysis, selection, &texts)?)
            };
            py.detach(analyze).map(Envelope).map_err(to_exception)
        }

        /// What `stepscope report --json` prints of the run that was opened as `input`. ValueError as of `analyze`.
        #[pyo3(signature = (input, rank=None, step=None))]
        fn report(&self, py: Python<'_>, input: &str, rank: Option<String>, step: Option<i64>) -> PyResult<String> {
            let report = || -> Result<String, EngineError> {
                let ranks = rank.map(|ranks| ranks.parse::<Ranks>()).transpose()?.unwrap_or_default();
                let selection = Selection { ranks, step, ..Selection::default() };
                Ok(stepscope_engine::report::report(&self.0, &selection, input)?.to_json())
            };
            py.detach(report).map_err(to_exception)
        }
    }

    /// Batches as a stream of Arrow's PyCapsule interface.
    fn arrow_stream(py: Python<'_>, schema: SchemaRef, batches: Vec<RecordBatch>) -> PyResult<Bound<'_, PyCapsule>> {
        let batches = RecordBatchIterator::new(batches.into_iter().map(Ok).collect::<Vec<_>>(), schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// Rows as a program wrote them into a stream of Arrow's IPC.
    #[pyclass(frozen)]
    struct ArrowRows {
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
    }

    #[pymethods]
    impl ArrowRows {
        /// Reads `bytes`; ValueError when they are no such stream.
        #[new]
        fn new(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
            let read = || {
                let reader = StreamReader::try_new(bytes, None)?;
                let schema = reader.schema();
                Ok(Self { schema, batches: reader.collect::<Result<_, _>>()? })
            };
            py.detach(read).map_err(refused)
        }

        /// How many rows there are.
        fn __len__(&self) -> usize {
            self.batches.iter().map(RecordBatch::num_rows).sum()
        }

        /// The names of the columns.
        fn columns(&self) -> Vec<String> {
            self.schema.fields().iter().map(|field| field.name().clone()).collect()
        }

        /// As that of [`Envelope`].
        #[pyo3(signature = (requested_schema=None))]
        fn __arrow_c_stream__<'py>(
            &self,
            py: Python<'py>,
            requested_schema: Option<Bound<'py, PyAny>>,
        ) -> PyResult<Bound<'py, PyCapsule>> {
            drop(requested_schema);
            arrow_stream(py, self.schema.clone(), self.batches.clone())
        }
    }

    /// Batches of rows while another program writes them, as a stream of Arrow's IPC.
    #[pyclass(frozen)]
    struct ArrowBatches(Mutex<StreamReader<BufReader<PythonFile>>>);

    #[pymethods]
    impl ArrowBatches {
        /// Reads from a binary file with `read1`; ValueError when there is no such stream.
        #[new]
        fn new(py: Python<'_>, file: Py<PyAny>) -> PyResult<Self> {
            let reader = py.detach(|| StreamReader::try_new(BufReader::with_capacity(1 << 20, PythonFile(file)), None));
            reader.map(|reader| Self(Mutex::new(reader))).map_err(refused)
        }

        fn __iter__(slf: Py<Self>) -> Py<Self> {
            slf
        }

        /// The next rows; ValueError where the stream breaks off.
        fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowRows>> {
            let next = || {
                let mut reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let batch = reader.next().transpose()?;
                Ok(batch.map(|batch| ArrowRows { schema: batch.schema(), batches: vec![batch] }))
            };
            py.detach(next).map_err(refused)
        }
    }

    /// A binary file of Python's.
    struct PythonFile(Py<PyAny>);

    impl Read for PythonFile {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            Python::attach(|py| {
                let read = self.0.bind(py).call_method1("read1", (buffer.len(),))?;
                let read = read.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
                let len = read.len().min(buffer.len());
                buffer[..len].copy_from_slice(&read[..len]);
                Ok(len)
            })
        }
    }

    /// The error of what is no stream of Arrow's IPC, or what Python raised meanwhile.
    fn refused(error: ArrowError) -> PyErr {
        match error {
            ArrowError::IoError(_, error) => error.into(),
            other => pyo3::exceptions::PyValueError::new_err(other.to_string()),
        }
    }

    /// A result with what it means, in memory.
    #[pyclass(frozen)]
    struct Envelope(stepscope_engine::Envelope);

    #[pymethods]
    impl Envelope {
        /// All of it as JSON.
        fn to_json(&self, py: Python<'_>) -> String {
            py.detach(|| self.0.to_json())
        }

        /// The rows as a stream of Arrow batches, for whatever program knows Arrow's PyCapsule interface; it takes the
        /// columns over without copying them. The schema that a caller may ask for is not looked at, as the interface
        /// allows.
        #[pyo3(signature = (requested_schema=None))]
        fn __arrow_c_stream__<'py>(
            &self,
            py: Python<'py>,
            requested_schema: Option<Bound<'py, PyAny>>,
        ) -> PyResult<Bound<'py, PyCapsule>> {
            drop(requested_schema);
            let batch = py.detach(|| record_batch(&self.0));
            arrow_stream(py, batch.schema(), vec![batch])
        }
    }
}

/// How inputs become one run, as Python says it; ValueError when a word or the regular expression means nothing.
fn open_options(
    align: Option<&str>,
    offsets: Vec<(u32, i64)>,
    rank_from: Option<&str>,
    join: bool,
    max_memory: Option<u64>,
) -> pyo3::PyResult<OpenOptions> {
    let refused = pyo3::exceptions::PyValueError::new_err::<String>;
    let align = match align {
        None | Some("auto") => Align::Auto,
        Some("base") => Align::Base,
        Some("collectives") => Align::Collectives,
        Some("none") => Align::None,
        Some(other) => return Err(refused(format!("align is {other:?}: use auto, base, collectives or none"))),
    };
    let rank_from = rank_from.map(Regex::new).transpose().map_err(|error| refused(format!("rank_from: {error}")))?;
    let joining = Joining { rank_from, is_one_job: join };
    Ok(OpenOptions { align, offsets, joining, max_memory })
}

/// What happened and where, and on a second line what to do.
fn to_exception(error: stepscope_engine::EngineError) -> pyo3::PyErr {
    let place = error.place().map(|place| format!(": {place}")).unwrap_or_default();
    let more_memory =
        |gib| format!("ask for fewer ranks, or allow more memory: stepscope.open(…, memory={gib} * 2**30)");
    let hint = error.gib_needed().map(more_memory).or_else(|| error.hint());
    let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    let text = format!("{error}{place}{hint}");
    match error {
        stepscope_engine::EngineError::NotFound { .. } => pyo3::exceptions::PyFileNotFoundError::new_err(text),
        stepscope_engine::EngineError::Elsewhere { .. } => pyo3::exceptions::PyRuntimeError::new_err(text),
        _ => pyo3::exceptions::PyValueError::new_err(text),
    }
}
