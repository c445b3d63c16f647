//! What a process asks of its own recording: the events of a window, their averages, a Chrome trace.

use crate::to_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;
use stepscope_engine::{Exclude, ExcludeDevice, RecordFilter, RecordingRows, Trace, open_filtered, open_window};
use stepscope_export::{ExportError, ProfileOptions, save_memory_timeline, save_recording, save_window};
use stepscope_torch_events::{Average, Grouping, Wanted, averages, read};

/// Whether operators, labels, steps and calls are asked for, and which kinds of a device's activities and `PYTHON_GC` are.
type Kinds = (bool, bool, bool, bool, Vec<String>);
/// Spans in monotonic ns, thread or all with the numbers of its profiler states, and what is asked for.
pub(crate) type RecordingRequest = (Vec<(i64, i64)>, (Option<u64>, Vec<u64>), Kinds);

pub(crate) fn record_filter(
    (spans, (thread, states), (operators, labels, steps, calls, kinds)): RecordingRequest,
) -> RecordFilter {
    let spans = spans.into_iter().map(|(start_ns, end_ns)| Range { start: start_ns, end: end_ns }).collect();
    let is_hidden = |kind: &str| !kinds.iter().any(|asked| asked == kind);
    let device = ExcludeDevice {
        kernels: is_hidden("CONCURRENT_KERNEL"),
        memcpys: is_hidden("GPU_MEMCPY"),
        memsets: is_hidden("GPU_MEMSET"),
        annotations: is_hidden("GPU_USER_ANNOTATION"),
        runtime_calls: is_hidden("RUNTIME"),
        driver_calls: is_hidden("DRIVER"),
        overheads: is_hidden("OVERHEAD"),
        synchronizations: is_hidden("CUDA_SYNC"),
    };
    let collections = is_hidden("PYTHON_GC");
    let exclude = Exclude { operators: !operators, labels: !labels, steps: !steps, calls: !calls, collections, device };
    RecordFilter { spans, thread, states, exclude }
}

/// The events that the capture at `capture` holds of what is asked for; RuntimeError when it is gone. `wanted`: whether
/// memory, operations and overloads are.
#[pyfunction]
pub(crate) fn read_events(
    py: Python<'_>,
    capture: PathBuf,
    asked: RecordingRequest,
    wanted: (bool, bool, bool),
) -> PyResult<Events> {
    let (memory, flops, overloads) = wanted;
    let filter = record_filter(asked);
    let wanted = Wanted { memory, flops, overloads, exclude_device: filter.exclude.device };
    let events = py.detach(|| read(&capture, &filter, wanted));
    events.map(Events).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Writes the same as Chrome JSON, packed when the name ends in `.gz`, with `facts` as members of its own; ids of operators
/// begin at `first_id`. Says whether that was possible without a whole trace, which `streams` allows, and how many ids there
/// are. With `with_overloads`, which takes a whole trace, operators are called `aten::add.Tensor`; with `verbose` rows have the
/// functions around them.
#[pyfunction]
#[pyo3(signature = (path, capture, asked, facts, first_id=1, streams=true, with_overloads=false, verbose=false))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn write_chrome(
    py: Python<'_>,
    path: PathBuf,
    capture: PathBuf,
    asked: RecordingRequest,
    facts: Vec<(String, String)>,
    first_id: i64,
    streams: bool,
    with_overloads: bool,
    verbose: bool,
) -> PyResult<(bool, i64)> {
    let set_metadata = |trace: &mut Trace| {
        trace.name = path.to_string_lossy().into_owned();
        // The run has what was last said in the process; the caller knows what held for this window.
        trace.facts.retain(|(key, _)| !key.starts_with("metadata.") && !key.starts_with("distributedInfo."));
        trace.facts.extend(facts);
    };
    py.detach(|| {
        let filter = record_filter(asked);
        let options = ProfileOptions { is_verbose: verbose, first_id };
        let failed = |error: ExportError| pyo3::exceptions::PyOSError::new_err(error.to_string());
        let is_packed = path.extension().is_some_and(|ending| ending == "gz");
        if streams
            && !with_overloads
            && let Some(mut rows) = RecordingRows::open(&capture, &filter)
        {
            set_metadata.clone()(rows.skeleton_mut());
            if let Some(next_id) = save_recording(&rows, options, &path, is_packed).map_err(failed)? {
                return Ok((true, next_id - first_id));
            }
        }
        let (mut trace, window) = open_window(&capture, &filter).map_err(to_exception)?;
        set_metadata(&mut trace);
        if with_overloads {
            name_overloads(&mut trace);
        }
        let next_id = save_window(&trace, window, options, &path, is_packed).map_err(failed)?;
        Ok((false, next_id - first_id))
    })
}

/// Puts overloads into the names of operators, of a trace that is only written.
fn name_overloads(trace: &mut Trace) {
    let mut known = HashMap::new();
    for (slice, info) in trace.ops.slice.iter().zip(&trace.ops.info) {
        let name = &mut trace.slices.name[slice.index()];
        *name = *known.entry((*name, info.overload)).or_insert_with(|| match trace.strings.get(info.overload) {
            "" => *name,
            overload => {
                let text = format!("{}.{overload}", trace.strings.get(*name));
                trace.strings.intern(&text)
            }
        });
    }
}

/// Writes the memory that was in use in the meantime to `path`, whose ending says in which form: that of the host, or of
/// a device by its number.
#[pyfunction]
pub(crate) fn write_memory_timeline(
    py: Python<'_>,
    path: PathBuf,
    capture: PathBuf,
    asked: RecordingRequest,
    device: Option<i64>,
) -> PyResult<()> {
    py.detach(|| {
        let trace = open_filtered(&capture, &record_filter(asked)).map_err(to_exception)?;
        let saved = save_memory_timeline(&trace, &path, device);
        saved.map_err(|error| pyo3::exceptions::PyOSError::new_err(error.to_string()))
    })
}

/// The events of a window, in memory. A row is an event.
#[pyclass(frozen)]
pub(crate) struct Events(stepscope_torch_events::Events);

/// Name, shapes as JSON, overload, the innermost functions around it.
pub(crate) type AverageKey = (String, String, String, Vec<String>);
/// Count, total and self ns, total and self ns on devices, total and self bytes of the host, the same of devices,
/// operations.
pub(crate) type AverageSums = (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64);
/// What is said of the first of them: scope, whether it is a label, whether it ended on another thread, whether it ran on
/// a device.
pub(crate) type AverageRow = (AverageKey, AverageSums, (u8, bool, bool, bool));

/// The sums as Python has them.
pub(crate) fn average_sums(of: &Average) -> AverageSums {
    (
        of.count,
        of.total_ns,
        of.self_ns,
        of.device_ns,
        of.self_device_ns,
        of.cpu_bytes,
        of.self_cpu_bytes,
        of.device_bytes,
        of.self_device_bytes,
        of.flops,
    )
}

#[pymethods]
impl Events {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Averages of this list and of those in `more`, in order of first events; see `AverageRow`.
    fn averages(
        &self,
        py: Python<'_>,
        more: Vec<Py<Self>>,
        by_shapes: bool,
        by_overloads: bool,
        stack_frames: usize,
    ) -> Vec<AverageRow> {
        let lists: Vec<&stepscope_torch_events::Events> =
            std::iter::once(&self.0).chain(more.iter().map(|events| &events.get().0)).collect();
        py.detach(|| {
            let found = averages(&lists, Grouping { by_shapes, by_overloads, stack_frames });
            found.into_iter().map(|average| average_row(&lists, average, stack_frames)).collect()
        })
    }

    /// Writes the stacks of this list and of those in `more`, folded, with their own times or those on devices; OSError
    /// when that fails.
    fn write_stacks(&self, py: Python<'_>, path: PathBuf, more: Vec<Py<Self>>, is_of_devices: bool) -> PyResult<()> {
        py.detach(|| {
            let mut file = BufWriter::new(File::create(path)?);
            self.0.write_folded(&mut file, is_of_devices)?;
            more.iter().try_for_each(|events| events.get().0.write_folded(&mut file, is_of_devices))?;
            Ok(file.flush()?)
        })
    }

    /// How many ids of operators there are, and of rows of memory.
    fn ids(&self) -> (u32, usize) {
        (self.0.numbers, self.0.is_memory.iter().filter(|is_memory| **is_memory).count())
    }

    /// Whether any row ran on a device.
    fn has_device_work(&self) -> bool {
        (0..self.0.len()).any(|row| self.0.device.is_on_device(row))
    }

    /// Sum of the durations of all events less those of their children, ns.
    fn self_ns(&self) -> i64 {
        self.0.self_ns.iter().sum()
    }

    /// The columns: numbers as the bytes of an array, texts as lists.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let events = &self.0;
        columns.set_item("names", &events.names)?;
        columns.set_item("traced_names", &events.traced_names)?;
        columns.set_item("threads", &events.threads)?;
        let bytes =
            |column: &[i64]| PyBytes::new(py, &column.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>());
        columns.set_item("start_ns", bytes(&events.start_ns))?;
        columns.set_item("dur_ns", bytes(&events.dur_ns))?;
        columns.set_item("sequence_number", bytes(&events.sequence_number))?;
        columns.set_item("cpu_bytes", bytes(&events.cpu_bytes))?;
        columns.set_item("device_bytes", bytes(&events.device_bytes))?;
        columns.set_item("flops", bytes(&events.flops))?;
        columns.set_item("stream", bytes(&events.device.stream))?;
        columns.set_item("device_ns", bytes(&events.device.total_ns))?;
        columns.set_item("self_device_ns", bytes(&events.device.self_ns))?;
        let bytes =
            |column: &[u32]| PyBytes::new(py, &column.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>());
        columns.set_item("name", bytes(&events.name))?;
        columns.set_item("thread", bytes(&events.thread))?;
        columns.set_item("parent", bytes(&events.parent))?;
        columns.set_item("number", bytes(&events.number))?;
        columns.set_item("inputs", bytes(&events.inputs))?;
        columns.set_item("overload", bytes(&events.overload))?;
        columns.set_item("correlation", bytes(&events.device.correlation))?;
        columns.set_item("linked", bytes(&events.device.linked))?;
        columns.set_item("linked_number", bytes(&events.device.linked_number))?;
        columns.set_item("overloads", &events.overloads)?;
        columns.set_item("stacks", events.stacks.frames())?;
        columns.set_item("stack", bytes(&events.stack))?;
        columns.set_item("call", bytes(&events.call))?;
        columns.set_item("caller", bytes(&events.caller))?;
        let texts = events.input_texts.iter();
        let texts = texts.map(|of| (&of.shapes, &of.dims, &of.strides, &of.types, &of.keywords, &of.concrete));
        columns.set_item("input_texts", texts.collect::<Vec<_>>())?;
        columns.set_item("flow", bytes(&events.flow))?;
        let bytes = |column: &[bool]| PyBytes::new(py, &column.iter().map(|is| u8::from(*is)).collect::<Vec<_>>());
        columns.set_item("is_flow_start", bytes(&events.is_flow_start))?;
        columns.set_item("is_async", bytes(&events.is_async))?;
        columns.set_item("is_memory", bytes(&events.is_memory))?;
        let forward: Vec<u8> = events.forward_thread.iter().flat_map(|id| id.to_le_bytes()).collect();
        columns.set_item("forward_thread", PyBytes::new(py, &forward))?;
        columns.set_item("scope", PyBytes::new(py, &events.scope))?;
        let device: Vec<u8> = events.device.device.iter().flat_map(|number| number.to_le_bytes()).collect();
        columns.set_item("device", PyBytes::new(py, &device))?;
        columns.set_item("activity", PyBytes::new(py, &events.device.activity))?;
        columns.set_item("device_type", PyBytes::new(py, &events.device.device_type))?;
        Ok(columns)
    }
}

fn average_row(lists: &[&stepscope_torch_events::Events], average: Average, stack_frames: usize) -> AverageRow {
    let events = lists[average.list];
    let row = average.first as usize;
    let inputs = events.inputs.get(row).and_then(|inputs| events.input_texts.get(*inputs as usize));
    let shapes = inputs.map(|texts| texts.shapes.clone());
    let overload = events.overload.get(row).map(|overload| events.overloads[*overload as usize].clone());
    (
        (
            events.names[events.name[row] as usize].clone(),
            shapes.unwrap_or_default(),
            overload.unwrap_or_default(),
            events.stack_of(row).take(stack_frames).map(String::from).collect(),
        ),
        average_sums(&average),
        (events.scope[row], events.is_label(row), events.is_async[row], average.is_on_device),
    )
}
