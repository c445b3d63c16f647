//! One reading of a run: the run as it then was, and what was computed of it. It never changes; a later reading is
//! another.

use crate::cache::Cache;
use crate::failure::Failure;
use crate::pool::Pool;
use crate::shown::Shown;
use std::mem::size_of;
use std::sync::{Arc, Mutex, PoisonError};
use stepscope_engine::{self as engine, Analysis, Envelope, OpenedRun, Ranks, Selection, Table, Trace, Values};
use tokio::sync::SetOnce;

/// Bytes of results that are kept of one reading.
const MAX_RESULT_BYTES: usize = 128 << 20;
/// Bytes of reports that are kept of one reading.
const MAX_REPORT_BYTES: usize = 8 << 20;
/// Bytes of a description of tables that is kept.
const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// Ranks whose timeline is kept, where not all events fit into memory.
const MAX_RANKS_SHOWN: usize = 4;

/// A run as it was read once.
pub(crate) struct LoadedRun {
    /// Grows from reading to reading.
    pub(crate) version: u64,
    /// What was read.
    pub(crate) run: OpenedRun,
    /// Reports as JSON, by rank and step.
    pub(crate) reports: Cache<Selection, String>,
    /// What tables and functions queries have, as JSON.
    pub(crate) sql_schema: Cache<(), String>,
    results: Cache<(&'static str, Selection), Envelope>,
    /// All events, or what was condensed where they do not fit into memory.
    all: ShownOnce,
    of_ranks: Mutex<Vec<(u32, Arc<ShownOnce>)>>,
}

/// What the timeline shows, once it is there.
type ShownOnce = SetOnce<Result<Arc<Shown>, Failure>>;

impl LoadedRun {
    pub(crate) fn new(version: u64, run: OpenedRun) -> Self {
        Self {
            version,
            run,
            reports: Cache::new(MAX_REPORT_BYTES),
            sql_schema: Cache::new(MAX_SCHEMA_BYTES),
            results: Cache::new(MAX_RESULT_BYTES),
            all: SetOnce::new(),
            of_ranks: Mutex::default(),
        }
    }

    /// The run: its ranks, steps, facts and findings, but not always all events.
    pub(crate) fn trace(&self) -> &Trace {
        self.run.trace()
    }

    /// The result of an analysis, kept or computed on `pool`.
    ///
    /// # Errors
    /// When the rank or step is not there, or events that it needs cannot be read.
    pub(crate) async fn analyze(
        self: &Arc<Self>,
        pool: &Pool,
        analysis: &'static Analysis,
        selection: Selection,
    ) -> Result<Arc<Envelope>, Failure> {
        engine::check_selection(self.trace(), &selection)?;
        let (loaded, part) = (self.clone(), selection.clone());
        let compute = move || loaded.run.analyze(analysis, &part);
        let computed = async { Ok(pool.long(compute).await??) };
        self.results.get((analysis.name, selection), bytes_of, computed).await
    }

    /// Whether the timeline shows all events at once; else those of one rank at a time, and of all what was condensed.
    pub(crate) fn shows_all(&self) -> bool {
        self.run.fits_in_memory()
    }

    /// All events; those of one rank, when it was asked for and not all are shown.
    ///
    /// # Errors
    /// When the events cannot be read or do not fit into memory, or there is no such rank.
    pub(crate) fn events(&self, rank: Option<u32>) -> Result<Arc<Trace>, Failure> {
        let ranks: Ranks = rank.filter(|_| !self.shows_all()).into();
        let selection = Selection { ranks, ..Selection::default() };
        engine::check_selection(self.trace(), &selection)?;
        Ok(self.run.events(&selection.ranks)?)
    }

    /// Reads and builds what requests of the timeline need, in the thread that read the run. Requests only wait for it.
    pub(crate) fn prepare(&self) {
        let all = match self.shows_all() {
            true => self.events(None).map(|trace| Arc::new(Shown::new(trace))),
            false => Ok(Arc::new(Shown::condensed(&self.run))),
        };
        let shown = all.clone();
        let _ = self.all.set(all);
        shown.iter().for_each(|shown| shown.prepare());
    }

    /// What the timeline shows; of one rank, when it was asked for and not all is shown.
    ///
    /// # Errors
    /// When the events cannot be read, or there is no such rank.
    pub(crate) async fn shown(self: &Arc<Self>, pool: &Pool, rank: Option<u32>) -> Result<Arc<Shown>, Failure> {
        let Some(rank) = rank.filter(|_| !self.shows_all()) else {
            return self.all.wait().await.clone();
        };
        let (shown, is_new) = self.of_rank(rank);
        if is_new {
            let (loaded, filled) = (self.clone(), Arc::clone(&shown));
            let read = move || {
                let found = loaded.events(Some(rank)).map(|trace| Arc::new(Shown::new(trace)));
                let shown = found.clone();
                let _ = filled.set(found);
                shown.iter().for_each(|shown| shown.prepare());
            };
            // A request that goes away leaves the others their answer.
            let (pool, failed) = (pool.clone(), Arc::clone(&shown));
            tokio::spawn(async move {
                if let Err(failure) = pool.long(read).await {
                    let _ = failed.set(Err(failure));
                }
            });
        }
        shown.wait().await.clone()
    }

    /// Where the timeline of a rank will be, and whether it has to be made.
    fn of_rank(&self, rank: u32) -> (Arc<ShownOnce>, bool) {
        let mut of_ranks = self.of_ranks.lock().unwrap_or_else(PoisonError::into_inner);
        let has_failed = |shown: &ShownOnce| matches!(shown.get(), Some(Err(_)));
        of_ranks.retain(|(of, shown)| *of != rank || !has_failed(shown));
        let known = of_ranks.iter().position(|(of, _)| *of == rank);
        let is_new = known.is_none();
        let entry = known.map_or_else(|| (rank, Arc::default()), |at| of_ranks.remove(at));
        of_ranks.push(entry.clone());
        if of_ranks.len() > MAX_RANKS_SHOWN {
            of_ranks.remove(0);
        }
        (entry.1, is_new)
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
