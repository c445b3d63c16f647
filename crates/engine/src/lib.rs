//! What the command line, Python and a server share: open a run, run an analysis by name, the result's envelope and
//! its forms (JSON, CSV, text), and the report that sums a run up.
//!
//! The engine computes no number of its own: it lays out what the analyses returned.

mod cells;
mod compare;
mod csv;
mod difference;
mod each;
mod envelope;
mod error;
mod findings;
mod fingerprint;
mod inputs;
mod metrics;
mod open;
mod opened;
mod options;
mod order;
mod outcomes;
mod printable;
pub mod report;
mod rows;
mod sql_program;
mod text_table;

pub use cells::{column_headings, column_words, format_cell, has_answers, is_right_aligned, unit_word};
pub use compare::{compare, largest_changes};
pub use csv::{to_csv, to_tsv};
pub use difference::{DifferenceLine, difference_lines};
pub use each::each;
pub use envelope::{
    ColumnRow, Described, Envelope, RunIdentity, SCHEMA, analyze, analyze_in, find_analysis, list_analyses, nearest_of,
};
pub use error::EngineError;
pub use findings::{FindingRow, finding_rows};
pub use fingerprint::Fingerprint;
pub use inputs::separate;
pub use metrics::{METRICS, Measured, Measurements, Metric};
pub use open::{
    OpenOptions, cannot_read, check_is_there, check_selection, open_filtered, open_run, open_run_with_progress,
    open_window, paths_of, split_place,
};
pub use opened::{AllResults, DEVICE_WORK, OpenedRun, Reduction, keep_summaries, summary_elsewhere, this_program};
pub use options::{OptionTexts, window, with_options};
pub use order::{find_column, limited, sort_rows, sorted, with_rows};
pub use outcomes::outcomes;
pub use printable::{fit_name, fit_width, printable, width_of};
pub use rows::{OneRow, Rows};
pub use sql_program::{SqlComplaint, find_sql, find_stepscope, sql_command};
pub use stepscope_align::{Align, Joined, Part, last_to_come};
pub use stepscope_analyses::Needs;
pub use stepscope_analyses::compare::Compared;
pub use stepscope_analyses::memory_timeline::{MemoryAction, MemoryChange, memory_timeline};
pub use stepscope_analyses::occupancy::occupancy_ratio;
pub use stepscope_analyses::{
    Analysis, AnalysisContext, Column, Coverage, Ranks, RanksError, Selection, SharedResults, Table, Unit, Values,
    catalogue,
};
pub use stepscope_import::{
    Exclude, ExcludeDevice, Joining, Progress, RecordFilter, RecordingRows, Regex, SliceRow, SliceSink, close_ended,
    is_job, recover, source_text,
};
pub use stepscope_store::is_remote;
pub use stepscope_trace::Trace;
pub use text_table::{TextTable, text_table};
