//! Devices: their profilers and their properties, for `python/stepscope/_device.py`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use stepscope_recorder_device as device;

/// What is able to record devices of a `kind` (`cuda`, `rocm`, `xpu`): a dict with `library`, `version`, `interface`,
/// `devices` (a JSON list, as the metadata key has it) and `remarks` (a list of texts), or `{"refused": why}`.
///
/// `libraries` are paths to try, best first, or bare names that the loader looks for. With `may_initialize` the process
/// may begin to use the devices, which it otherwise never does: for a process of `doctor`'s own.
#[pyfunction]
#[pyo3(signature = (kind, libraries, may_initialize = false))]
pub(crate) fn device_find<'py>(
    py: Python<'py>,
    kind: &str,
    libraries: Vec<PathBuf>,
    may_initialize: bool,
) -> PyResult<Bound<'py, PyDict>> {
    match py.detach(|| device::find(kind, &libraries, may_initialize)) {
        Ok(found) => described(py, &found),
        Err(refusal) => {
            let dict = PyDict::new(py);
            dict.set_item("refused", refusal.to_string())?;
            Ok(dict)
        }
    }
}

/// Begins to record devices; gives what `device_find` does. Raises `RuntimeError(why)` when it cannot be done.
///
/// `options`: `kind`; `libraries`; `calls`, `waits`, `graph_nodes`, `ranges`, `others_are_idle` (bool);
/// `buffer_limit_bytes`, `flush_period_ms`, `sample_period_ms` (0: no samples). What is left out has its default. The
/// metadata key `devices` is written as soon as the process uses any.
#[pyfunction]
pub(crate) fn device_start<'py>(py: Python<'py>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let kind: String = option(options, "kind")?.unwrap_or_else(|| "cuda".into());
    let wanted = wanted(options)?;
    let found = py.detach(|| device::start(&kind, &wanted)).map_err(|why| PyRuntimeError::new_err(why.to_string()))?;
    described(py, &found)
}

/// Has what the devices' profiler holds written, as far as it is complete.
#[pyfunction]
pub(crate) fn device_flush(py: Python<'_>) {
    py.detach(device::flush);
}

/// Records devices no longer; gives up waiting for the devices' profiler after ten seconds.
#[pyfunction]
pub(crate) fn device_stop(py: Python<'_>) {
    py.detach(device::stop);
}

/// Tries whether the profiler of a device, by its number, reports what happened: in a process that is there for nothing
/// else, of which nothing that it inherited is left. What it tells on standard output says `run_child`.
#[pyfunction]
pub(crate) fn device_try(py: Python<'_>, options: &Bound<'_, PyDict>, device: u32, limit_s: u64) -> PyResult<()> {
    let kind: String = option(options, "kind")?.unwrap_or_else(|| "cuda".into());
    let wanted = wanted(options)?;
    py.detach(|| device::run_child(&kind, &wanted, device, Duration::from_secs(limit_s)));
    Ok(())
}

/// Runs a command with these variables and no others, for at most `limit_s`; gives what it wrote to standard output,
/// and how it ended: `("code", 0)`, `("signal", 11)`, `("late", 0)`; `("unknown", 0)` where somebody else was told; why
/// it could not be started, and `("not started", 0)`.
///
/// No callback of Python's hears of it. Raises what a signal's handler raises, and nothing else.
#[pyfunction]
pub(crate) fn run_limited(
    py: Python<'_>,
    words: Vec<OsString>,
    variables: HashMap<OsString, OsString>,
    limit_s: f64,
) -> PyResult<(Vec<u8>, (&'static str, i32))> {
    let limit = Duration::try_from_secs_f64(limit_s).unwrap_or_default();
    let mut words = words.iter();
    let mut command = Command::new(words.next().cloned().unwrap_or_default());
    command.args(words).env_clear().envs(variables).current_dir("/");
    let mut raised = None;
    let run = py.detach(|| {
        let mut is_wanted = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(error) => {
                raised = Some(error);
                false
            }
        };
        device::run_limited(&mut command, limit, &mut is_wanted)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    Ok(match run {
        Ok((answer, device::End::Code(code))) => (answer, ("code", code)),
        Ok((answer, device::End::Signal(signal))) => (answer, ("signal", signal)),
        Ok((answer, device::End::Late)) => (answer, ("late", 0)),
        Ok((answer, device::End::Unknown)) => (answer, ("unknown", 0)),
        Err(why) => (why.into_bytes(), ("not started", 0)),
    })
}

fn wanted(options: &Bound<'_, PyDict>) -> PyResult<device::Wanted> {
    let default = device::Wanted::default();
    let milliseconds =
        |key, default: Duration| PyResult::Ok(option::<u64>(options, key)?.map_or(default, Duration::from_millis));
    let sample_period = milliseconds("sample_period_ms", default.sample_period.unwrap_or_default())?;
    Ok(device::Wanted {
        libraries: option(options, "libraries")?.unwrap_or_default(),
        buffer_limit_bytes: option(options, "buffer_limit_bytes")?.unwrap_or(default.buffer_limit_bytes),
        flush_period: milliseconds("flush_period_ms", default.flush_period)?,
        sample_period: (!sample_period.is_zero()).then_some(sample_period),
        has_calls: option(options, "calls")?.unwrap_or(default.has_calls),
        has_synchronizations: option(options, "waits")?.unwrap_or(default.has_synchronizations),
        has_graph_nodes: option(options, "graph_nodes")?.unwrap_or(default.has_graph_nodes),
        has_ranges: option(options, "ranges")?.unwrap_or(default.has_ranges),
        others_are_idle: option(options, "others_are_idle")?.unwrap_or(default.others_are_idle),
    })
}

fn option<'py, T: FromPyObjectOwned<'py>>(options: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<T>> {
    let value = options.get_item(key)?.filter(|value| !value.is_none());
    value.map(|value| value.extract().map_err(Into::into)).transpose()
}

fn described<'py>(py: Python<'py>, found: &device::Found) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("library", found.library.to_string_lossy())?;
    dict.set_item("version", &found.version)?;
    dict.set_item("interface", &found.interface)?;
    dict.set_item("devices", device::DeviceProperties::to_json(&found.devices))?;
    dict.set_item("remarks", &found.remarks)?;
    Ok(dict)
}
