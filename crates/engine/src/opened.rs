//! A run as it is opened: of one trace all events, of many files what was condensed of each, and the events of a rank or
//! of all when an analysis needs them.
//!
//! ```text
//! file ─▶ its summary, kept or made ─┐
//! file ─▶ its summary ───────────────┴▶ joined, on one clock ─▶ analyses of several ranks
//!   └──▶ its events ───────────────────────────────────────────▶ analyses of one rank after the other
//! ```

use crate::open::{OpenOptions, on_one_clock, told};
use crate::outcomes::outcomes;
use crate::{AnalysisContext, EngineError, Envelope, Selection, Trace, envelope};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use stepscope_analyses::{Analysis, FirstIds, Needs, Outcome, RankResults, Table, catalogue, condensed, given};
use stepscope_import::{ImportError, Progress};
use stepscope_summary::{Place, Summary};

/// Traces of fewer bytes, all together, are read again rather than kept as summaries.
const KEPT_FROM_BYTES: u64 = 32 << 20;

/// A run that was opened.
pub struct OpenedRun {
    /// All events, or of many files what was condensed of them.
    trace: Trace,
    /// What many files are of.
    files: Option<Files>,
}

/// The files of a run of many.
struct Files {
    name: String,
    /// Those that were joined, in order, with what was computed of each.
    joined: Vec<JoinedFile>,
    options: OpenOptions,
    whole: OnceLock<Result<Trace, EngineError>>,
}

struct JoinedFile {
    path: PathBuf,
    first: FirstIds,
    results: RankResults,
    tables: Vec<(&'static str, Table)>,
    /// The rank that the run gives it, where the file does not say it.
    rank: Option<u32>,
}
