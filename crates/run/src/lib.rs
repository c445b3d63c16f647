//! The run folder: what is on disk of one execution of a job, and how raw captures become Parquet parts.
//!
//! ```text
//! RUN/run.json                       what the run is, and the version of its format
//! RUN/raw/PID-TIME.capture           of processes that record, or died and were not compacted yet
//! RUN/rank=R/part-PID-TIME.parquet   one a process, complete in itself
//! ```
//!
//! `docs/format.md` describes every column.

mod calls;
mod compact;
mod error;
mod files;
mod folder;
mod part;
mod ranks;
mod record_filter;
mod warmup;

pub use calls::{ListedCalls, numbered_modules};
pub use compact::{Compaction, EndedCapture, Recovered, open, recover};
pub use error::RunError;
pub use files::{is_over, is_run_folder, kept_in};
pub use folder::{Manifest, NewRun, Run, create, read};
pub use part::{read_part, write_part};
pub use ranks::{RankCaptures, RunFiles};
pub use record_filter::{
    BACKWARD_SCOPE, Exclude, ExcludeDevice, RecordFilter, ResolvedFilter, ThreadFilter, ThreadInclusion, note_forward,
    read_capture,
};
