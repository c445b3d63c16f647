//! One reading of a run: the trace as it then was, and what was computed of it. It never changes; a later reading is
//! another.

use crate::cache::Cache;
use crate::failure::Failure;
use crate::pool::Pool;
use crate::source_files::SourceFiles;
use std::mem::size_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use stepscope_engine::{
    self as engine, Analysis, AnalysisContext, Envelope, Joined, Selection, SharedResults, Table, Trace, Values,
};
use stepscope_timeline::{SearchIndex, Timeline};
use tokio::sync::SetOnce;

/// Bytes of results that are kept of one reading.
const MAX_RESULT_BYTES: usize = 128 << 20;
/// Bytes of reports that are kept of one reading.
const MAX_REPORT_BYTES: usize = 8 << 20;
/// Parts of a trace of which what analyses share is kept.
const MAX_PARTS: usize = 4;

/// A run as it was read once.
pub(crate) struct LoadedRun {
    /// Grows from reading to reading.
    pub(crate) version: u64,
    /// What was read.
    pub(crate) trace: Arc<Trace>,
    /// Which files its stacks name.
    pub(crate) source_files: OnceLock<SourceFiles>,
    /// What ranks do together.
    joined: OnceLock<Joined>,
    /// Reports as JSON, by rank and step.
    pub(crate) reports: Cache<Selection, String>,
    timeline: SetOnce<Option<Timeline>>,
    search: SetOnce<Option<SearchIndex>>,
    results: Cache<(&'static str, Selection), Envelope>,
    parts: Mutex<Vec<(Selection, SharedResults)>>,
}

impl LoadedRun {
    pub(crate) fn new(version: u64, trace: Trace) -> Self {
        Self {
            version,
            trace: Arc::new(trace),
            source_files: OnceLock::new(),
            joined: OnceLock::new(),
            reports: Cache::new(MAX_REPORT_BYTES),
            timeline: SetOnce::new(),
            search: SetOnce::new(),
            results: Cache::new(MAX_RESULT_BYTES),
            parts: Mutex::default(),
        }
    }

    /// The result of an analysis, kept or computed on `pool`.
    ///
    /// # Errors
    /// When the rank or step is not there.
    pub(crate) async fn analyze(
        self: &Arc<Self>,
        pool: &Pool,
        analysis: &'static Analysis,
        selection: Selection,
    ) -> Result<Arc<Envelope>, Failure> {
        engine::check_selection(&self.trace, &selection)?;
        let (loaded, part) = (self.clone(), selection.clone());
        let compute = move || {
            let context = AnalysisContext::with_results(&loaded.trace, &part, loaded.shared(&part));
            engine::analyze_in(&context, analysis)
        };
        let computed = async { pool.long(compute).await };
        self.results.get((analysis.name, selection), bytes_of, computed).await
    }

    /// What analyses of a part share.
    fn shared(&self, selection: &Selection) -> SharedResults {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = parts.iter().position(|(known, _)| known == selection);
        let part = known.map_or_else(|| (selection.clone(), SharedResults::default()), |at| parts.remove(at));
        parts.push(part.clone());
        if parts.len() > MAX_PARTS {
            parts.remove(0);
        }
        part.1
    }

    /// What ranks do together: computed when it is first asked for, which may take a while.
    pub(crate) fn joined(&self) -> &Joined {
        self.joined.get_or_init(|| Joined::of(&self.trace))
    }

    /// Builds what requests of the timeline need, in the thread that read the trace. Requests only wait for it.
    pub(crate) fn prepare(&self) {
        // A defect must leave no request waiting.
        let timeline = catch_unwind(AssertUnwindSafe(|| Timeline::of(&self.trace))).ok();
        let _ = self.timeline.set(timeline);
        let search = catch_unwind(AssertUnwindSafe(|| SearchIndex::of(&self.trace))).ok();
        let _ = self.search.set(search);
    }

    /// The rows of the timeline, once they are built.
    ///
    /// # Errors
    /// When building them met a defect.
    pub(crate) async fn timeline(&self) -> Result<&Timeline, Failure> {
        self.timeline.wait().await.as_ref().ok_or_else(|| Failure::internal("internal error in the timeline"))
    }

    /// The rows of the timeline, if they are built already.
    pub(crate) fn timeline_if_ready(&self) -> Option<&Timeline> {
        self.timeline.get()?.as_ref()
    }

    /// The index of names, if it is built already.
    pub(crate) fn search_if_ready(&self) -> Option<&SearchIndex> {
        self.search.get()?.as_ref()
    }

    /// The index of names, once it is built.
    ///
    /// # Errors
    /// As [`LoadedRun::timeline`].
    pub(crate) async fn search(&self) -> Result<&SearchIndex, Failure> {
        self.search.wait().await.as_ref().ok_or_else(|| Failure::internal("internal error in the search"))
    }
}

/// About how many bytes a result takes.
pub(crate) fn bytes_of(envelope: &Envelope) -> usize {
    table_bytes(&envelope.results) + (64 << 10)
}

fn table_bytes(table: &Table) -> usize {
    let bytes = |values: &Values| match values {
        Values::Int(values) => values.len() * size_of::<Option<i64>>(),
        Values::Float(values) => values.len() * size_of::<Option<f64>>(),
        Values::Bool(values) => values.len(),
        // Texts that rows share are counted with each of them: too much rather than too little.
        Values::Text(values) => values.iter().map(|text| 16 + text.as_deref().map_or(0, str::len)).sum(),
    };
    table.columns.iter().map(|column| bytes(&column.values)).sum()
}
