//! The summary of each file of a run: read where one is kept, else made.

use crate::{AnalysisContext, Selection, Trace};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use stepscope_analyses::{Analysis, Needs, RankAdvice, RankRows, catalogue, condensed};
use stepscope_import::{ImportError, Joining, Progress};
use stepscope_summary::{Place, Summary};
use stepscope_trace::Contents;

/// Files of fewer bytes, all together, are read again rather than kept as summaries.
const KEPT_FROM_BYTES: u64 = 32 << 20;
/// Files that are read at once, each with all of its events in memory.
const READ_AT_ONCE: usize = 4;

/// What `make` makes of each of `count`, in order, on all processors but for no more than a few at once.
pub(super) fn each<T: Send + Sync>(count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let left = Mutex::new(0..count);
    let made: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    let work = || {
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(at) = next() {
            made[at].get_or_init(|| make(at));
        }
    };
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 1..processors.min(READ_AT_ONCE).min(count) {
            scope.spawn(work);
        }
        work();
    });
    made.into_iter().map(|made| made.into_inner().expect("each was made")).collect()
}

/// The summaries of `files`, in their order. They are kept where that saves reading much.
pub(super) fn summaries(
    files: &[PathBuf],
    joining: &Joining,
    progress: &Progress,
) -> Vec<Result<Summary, ImportError>> {
    let bytes = |path: &PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
    let is_kept = files.iter().map(bytes).sum::<u64>() >= KEPT_FROM_BYTES;
    each(files.len(), |at| summary(&files[at], joining, is_kept, progress))
}

/// The summary of the file at `path`, kept where `is_kept`.
pub(super) fn summary(
    path: &Path,
    joining: &Joining,
    is_kept: bool,
    progress: &Progress,
) -> Result<Summary, ImportError> {
    let place = is_kept.then(|| Place::of(path).ok()).flatten();
    if let Some(summary) = place.as_ref().and_then(Place::read) {
        return Ok(summary);
    }
    let summary = of_events(&stepscope_import::open_joining(path, joining, progress)?);
    if let Some(place) = place {
        // Where nothing can be written, it is made again the next time.
        place.write(&summary);
    }
    Ok(summary)
}

/// The summary of a trace.
fn of_events(trace: &Trace) -> Summary {
    let all = Selection::default();
    let context = AnalysisContext::new(trace, &all);
    let analyses: Vec<&Analysis> = catalogue().iter().filter(|analysis| analysis.needs == Needs::EachRank).collect();
    let tables = analyses.iter().map(|analysis| (analysis.name, (analysis.run)(&context).table)).collect();
    let steps = Selection { complete_steps: true, ..Selection::default() };
    let rows_in_steps = RankRows::of(&AnalysisContext::new(trace, &steps));
    let (contents, rows, advice) = (Contents::of(trace), RankRows::of(&context), RankAdvice::of(&context));
    let (trace, results) = condensed(&context);
    Summary { trace, contents, results, rows, rows_in_steps, advice, tables }
}
