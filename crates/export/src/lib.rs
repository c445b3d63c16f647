//! Traces and results as files that other programs read. Everything is laid out here and nothing computed: the numbers
//! are those of the trace and of the analyses.
//!
//! A trace becomes [`Format::Chrome`] JSON, a Perfetto trace or Parquet tables; a result becomes an Arrow batch, a
//! Parquet file or Markdown; a report becomes an HTML page or Markdown. Files are written piece by piece under another
//! name and renamed at the end: a reader finds all of a file or nothing.

mod arrow;
mod background_writer;
mod block;
mod by_slice;
mod chrome;
mod destination;
mod direct;
mod error;
mod format;
mod gzip;
mod html;
mod markdown;
mod memory_timeline;
mod numbering;
mod numbers;
mod perfetto;
mod protobuf;
mod save;
mod tables;
mod tensorboard;

pub use arrow::{record_batch, write_arrow, write_result};
pub use chrome::{ProfileOptions, write_chrome, write_chrome_of_rank};
pub use destination::Destination;
pub use error::ExportError;
pub use format::Format;
pub use html::report_html;
pub use markdown::{
    code as markdown_code, escaped as markdown_escaped, findings_markdown, report_markdown, result_markdown,
    table_markdown,
};
pub use memory_timeline::save_memory_timeline;
pub use numbers::report_numbers;
pub use perfetto::write_perfetto;
pub use save::{RANK_PLACE, save_ranks, save_recording, save_tables, save_trace, save_window, write_trace};
pub use tables::{
    ColumnDescription, KeptTables, TableDescription, kept_tables, table_descriptions, write_slices, write_tables,
};
pub use tensorboard::tensorboard_events;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    /// Real traces, when this machine has them: the files in `kineto` below `STEPSCOPE_TRACES` or beside the project.
    pub(crate) fn real_traces() -> Vec<PathBuf> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
        let folder = std::env::var_os("STEPSCOPE_TRACES").map_or(beside, PathBuf::from).join("kineto");
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
}
