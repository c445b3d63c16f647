//! The tables of a trace as Parquet: one file a table, or the table of slices alone.
//!
//! Times count from the start of the trace; the Unix time of that moment stands in each file's metadata. Texts are
//! dictionary-encoded. Rows of other tables name slices by their row in `slices`.

mod events;
mod sheet;
mod slices;
mod statements;

use crate::{Destination, ExportError};
use sheet::Sheet;
pub(crate) use sheet::plain_error;
use std::io::Write;
use std::path::Path;
use stepscope_trace::Trace;

/// Writes the table of slices as Parquet.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_slices(trace: &Trace, out: &mut (dyn Write + Send)) -> std::io::Result<()> {
    slices::slices(trace).write(trace, out)
}

/// Writes every table as `NAME.parquet` into the folder `path`, which is made when it is not there. The folder appears
/// with all of them or not at all; in one that is there, each file is replaced by itself.
///
/// # Errors
/// [`ExportError::Write`].
pub fn write_tables(trace: &Trace, path: &Path) -> Result<(), ExportError> {
    let failed = |source| ExportError::Write { path: path.into(), source };
    // A store has no folders: what begins with the same name is one.
    let is_new = !path.exists() && !stepscope_store::is_remote(path);
    let name = path.file_name().ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
    let beside = path.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
    let folder = if is_new { beside.as_path() } else { path };
    if is_new {
        std::fs::create_dir(folder).map_err(failed)?;
    }
    let written = sheets(trace).iter().try_for_each(|sheet| {
        Destination::write(&folder.join(format!("{}.parquet", sheet.name)), |out| sheet.write(trace, out))
    });
    let finished = written.and_then(|()| if is_new { std::fs::rename(folder, path).map_err(failed) } else { Ok(()) });
    if finished.is_err() && is_new {
        // The failure that led here is told; what is left of the folder is of no use.
        let _ = std::fs::remove_dir_all(folder);
    }
    finished
}

/// Every table, also without rows.
fn sheets(trace: &Trace) -> Vec<Sheet<'_>> {
    vec![
        slices::slices(trace),
        events::device_events(trace),
        events::ops(trace),
        statements::synchronizations(trace),
        statements::collectives(trace),
        statements::io(trace),
        events::memory(trace),
        events::flows(trace),
        events::steps(trace),
        statements::instants(trace),
        events::counters(trace),
        events::stack_samples(trace),
    ]
}

#[cfg(test)]
mod tests;
