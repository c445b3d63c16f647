//! One reading of a run: the trace as it then was, and what was computed of it. It never changes; a later reading is
//! another.

use crate::failure::Failure;
use crate::kept::Kept;
use crate::pool::Pool;
use crate::source_files::SourceFiles;
use self_cell::self_cell;
use std::mem::size_of;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use stepscope_base::Span;
use stepscope_engine::{self as engine, Analysis, Asked, Envelope, Selection, Table, Trace, Values};

/// Bytes of results that are kept of one reading.
const MAX_RESULT_BYTES: usize = 128 << 20;
/// Bytes of reports that are kept of one reading.
const MAX_REPORT_BYTES: usize = 8 << 20;
/// Parts of a trace of which what analyses share is kept.
const MAX_PARTS: usize = 4;

self_cell! {
    /// A part of a trace with what its analyses share.
    struct SharedPart {
        owner: (Arc<Trace>, Selection),
        #[covariant]
        dependent: Asked,
    }
}

/// What of a trace is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Rank, step, and how to answer.
    pub(crate) selection: Selection,
    /// Only what lies in this window.
    pub(crate) window: Option<Span>,
}

/// A run as it was read once.
pub(crate) struct Opened {
    /// Grows from reading to reading.
    pub(crate) version: u64,
    /// What was read.
    pub(crate) trace: Arc<Trace>,
    /// Which files its stacks name.
    pub(crate) source_files: OnceLock<SourceFiles>,
    /// Reports as JSON, by rank and step.
    pub(crate) reports: Kept<Selection, String>,
    results: Kept<(&'static str, Part), Envelope>,
    parts: Mutex<Vec<(Part, Arc<SharedPart>)>>,
}

impl Opened {
    pub(crate) fn new(version: u64, trace: Trace) -> Self {
        Self {
            version,
            trace: Arc::new(trace),
            source_files: OnceLock::new(),
            reports: Kept::new(MAX_REPORT_BYTES),
            results: Kept::new(MAX_RESULT_BYTES),
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
        part: Part,
    ) -> Result<Arc<Envelope>, Failure> {
        engine::check_selection(&self.trace, &part.selection)?;
        let opened = self.clone();
        let computed =
            async { pool.long(move || engine::analyze_asked(opened.shared(part).borrow_dependent(), analysis)).await };
        self.results.get((analysis.name, part), bytes_of, computed).await
    }

    /// What analyses of a part share.
    fn shared(&self, part: Part) -> Arc<SharedPart> {
        let find = |parts: &mut Vec<(Part, Arc<SharedPart>)>| {
            let at = parts.iter().position(|(known, _)| *known == part)?;
            let found = parts.remove(at);
            parts.push(found.clone());
            Some(found.1)
        };
        if let Some(found) = find(&mut self.parts.lock().unwrap_or_else(PoisonError::into_inner)) {
            return found;
        }
        // Cutting takes a while: others need not wait for it.
        let trace = self.part_of_trace(part.window);
        let shared =
            Arc::new(SharedPart::new((trace, part.selection), |(trace, selection)| Asked::new(trace, selection)));
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = find(&mut parts) {
            return found;
        }
        parts.push((part, shared.clone()));
        if parts.len() > MAX_PARTS {
            parts.remove(0);
        }
        shared
    }

    /// The trace, or what of it lies in a window: slices that cross its limits are cut there.
    pub(crate) fn part_of_trace(&self, window: Option<Span>) -> Arc<Trace> {
        match window {
            None => self.trace.clone(),
            Some(window) => Arc::new(self.trace.clipped(window)),
        }
    }
}

/// About how many bytes a result takes.
fn bytes_of(envelope: &Envelope) -> usize {
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
