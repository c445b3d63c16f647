//! The summary of each part of a run: read where one is kept, else made.

use crate::each::on_threads;
use crate::{AnalysisContext, Selection, Trace, each};
use std::io;
use std::path::{Path, PathBuf};
use stepscope_analyses::{Needs, RankAdvice, RankRows, catalogue, condensed};
use stepscope_import::{ImportError, Joining, Parts, Progress, RunRanks};
use stepscope_summary::{Place, Summary};
use stepscope_trace::Contents;

/// Files of fewer bytes, all together, are read again rather than kept as summaries.
const KEPT_FROM_BYTES: u64 = 32 << 20;
/// The same of a run of our own recorder, whose files are packed.
const KEPT_FROM_BYTES_OF_RUN: u64 = 2 << 20;
/// Files that are read at once, each with all of its events in memory.
pub(super) const READ_AT_ONCE: usize = 4;
/// Summaries that a store is asked for at once: each answer takes long to come, and is small.
const ASKED_AT_ONCE: usize = 32;
/// Rows of an analysis up to which they are kept.
const KEPT_ROWS: usize = 10_000;

/// The summary of each part of a run, in order. They are kept where that saves reading much.
pub(super) fn summaries(parts: &Parts, joining: &Joining, progress: &Progress) -> Vec<Result<Summary, ImportError>> {
    let are_kept = are_kept(parts);
    let mut known = if are_kept { known(parts, are_kept) } else { Vec::new() };
    known.resize_with(parts.count(), Known::default);
    let missing: Vec<usize> = (0..parts.count()).filter(|at| known[*at].summary.is_none()).collect();
    let made = each(missing.len(), READ_AT_ONCE, |nth| {
        let at = missing[nth];
        made(parts, at, joining, known[at].place.as_ref(), progress)
    });
    let mut made = made.into_iter();
    let found = known.into_iter().map(|known| known.summary.map(Ok));
    found.map(|found| found.unwrap_or_else(|| made.next().expect("what is not known was made"))).collect()
}

/// What is known of a part without reading it.
#[derive(Default)]
pub(super) struct Known {
    /// What it is; `None` where that cannot be said, as of a process that still records.
    pub(super) place: Option<Place>,
    /// What is kept of it.
    pub(super) summary: Option<Summary>,
}

/// What is known of each part, with the summaries that are kept where `are_kept`. A store is asked for many at once.
pub(super) fn known(parts: &Parts, are_kept: bool) -> Vec<Known> {
    let of_part = |at| {
        let place = if parts.is_closed(at) { place_of(parts, at).ok() } else { None };
        let summary = place.as_ref().filter(|_| are_kept).and_then(|place| kept(parts, at, place));
        Known { place, summary }
    };
    let is_in_store = parts.count() > 0 && stepscope_store::is_remote(&parts.name_in_folder(0).0);
    match is_in_store {
        true => on_threads(parts.count(), ASKED_AT_ONCE, of_part),
        false => each(parts.count(), READ_AT_ONCE, of_part),
    }
}

/// Whether the summaries of these parts save reading much.
pub(super) fn are_kept(parts: &Parts) -> bool {
    let bytes = |path: &PathBuf| stepscope_store::len(path);
    let all = (0..parts.count()).flat_map(|at| parts.files(at)).map(bytes).sum::<u64>();
    let kept_from = match parts {
        Parts::Files { .. } => KEPT_FROM_BYTES,
        Parts::Ranks(_) => KEPT_FROM_BYTES_OF_RUN,
    };
    all >= kept_from
}

/// Keeps the summary of each rank of the run of our own recorder at `run` that has ended, where the run is of several ranks
/// as far as its folder says: so each host does it for what it has recorded. Where it cannot be, it is made when the run
/// is opened.
pub fn keep_summaries(run: &Path) {
    let Ok(ranks) = RunRanks::of(run) else { return };
    if ranks.ranks() == [0] {
        return;
    }
    let parts = Parts::Ranks(Box::new(ranks));
    each(parts.count(), READ_AT_ONCE, |at| {
        summary(&parts, at, &Joining::default(), true, &Progress::default()).is_ok()
    });
}

/// The summary of the part at a place, kept where `is_kept`.
pub(super) fn summary(
    parts: &Parts,
    at: usize,
    joining: &Joining,
    is_kept: bool,
    progress: &Progress,
) -> Result<Summary, ImportError> {
    let place = if is_kept && parts.is_closed(at) { place_of(parts, at).ok() } else { None };
    if let Some(summary) = place.as_ref().and_then(|place| kept(parts, at, place)) {
        return Ok(summary);
    }
    made(parts, at, joining, place.as_ref(), progress)
}

/// The summary of the part at a place, read now and kept at `place`.
fn made(
    parts: &Parts,
    at: usize,
    joining: &Joining,
    place: Option<&Place>,
    progress: &Progress,
) -> Result<Summary, ImportError> {
    let mut summary = of_events(&parts.open(at, joining, progress)?);
    if let Some(place) = place {
        // Where nothing can be written, it is made again the next time.
        place.write(&mut summary);
    }
    Ok(summary)
}

/// Where the summary of the part at a place is kept, and what the part is.
///
/// # Errors
/// When a file of it cannot be looked at.
pub(super) fn place_of(parts: &Parts, at: usize) -> io::Result<Place> {
    let (folder, name) = parts.name_in_folder(at);
    Place::of(&folder, &name, parts.files(at), &parts.surroundings(at))
}

/// The summary of the part at a place that is kept there.
pub(super) fn kept(parts: &Parts, at: usize, place: &Place) -> Option<Summary> {
    let mut summary = place.read()?;
    // Folders are moved with what is kept in them.
    summary.trace.sources = vec![parts.source(at)];
    Some(summary)
}

/// The summary of a trace.
pub(super) fn of_events(trace: &Trace) -> Summary {
    let all = Selection::default();
    let context = AnalysisContext::new(trace, &all);
    let kept = catalogue().iter().filter(|analysis| matches!(analysis.needs, Needs::EachRankKept));
    let tables = kept.map(|analysis| (analysis.name, (analysis.run)(&context).table));
    let tables = tables.filter(|(_, table)| table.len() <= KEPT_ROWS).collect();
    let steps = Selection { complete_steps: true, ..Selection::default() };
    let (contents, rows, advice) = (Contents::of(trace), RankRows::of(&context), RankAdvice::of(&context));
    let rows_in_steps = Some(RankRows::of(&AnalysisContext::new(trace, &steps))).filter(|in_steps| *in_steps != rows);
    let (trace, results) = condensed(&context);
    Summary { trace, contents, results, rows, rows_in_steps, advice, tables, ..Summary::default() }
}
