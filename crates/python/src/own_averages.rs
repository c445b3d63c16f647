//! What a process asks of its own recording when it wants no single events: their averages.

use crate::own_recording::{AverageRow, RecordingRequest, average_sums, record_filter};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use stepscope_torch_events::{Grouping, NamedAverage, join};

/// The averages of what captures hold of what is asked of each, in order of first events; see `AverageRow`. Neither memory
/// nor operations nor overloads nor stacks are among them. RuntimeError when a capture is gone.
#[pyfunction]
pub(crate) fn read_averages(
    py: Python<'_>,
    windows: Vec<(PathBuf, RecordingRequest)>,
    by_shapes: bool,
) -> PyResult<Vec<AverageRow>> {
    let grouping = Grouping { by_shapes, ..Grouping::default() };
    let read = |(capture, asked): (PathBuf, RecordingRequest)| {
        let read = stepscope_torch_events::read_averages(&capture, &record_filter(asked), grouping);
        read.map_err(|error| PyRuntimeError::new_err(error.to_string()))
    };
    py.detach(|| {
        let lists = windows.into_iter().map(read).collect::<PyResult<Vec<_>>>()?;
        Ok(join(lists, grouping).into_iter().map(row).collect())
    })
}

fn row(average: NamedAverage) -> AverageRow {
    let NamedAverage { name, shapes, scope, is_async, is_label, sums } = average;
    ((name, shapes, String::new(), Vec::new()), average_sums(&sums), (scope, is_label, is_async, sums.is_on_device))
}
