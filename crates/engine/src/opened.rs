//! A run as it is opened: of one trace all events, of many files what was condensed of each, and events only where an
//! analysis needs them.
//!
//! ```text
//! file ─▶ its summary, kept or made ─┐
//! file ─▶ its summary ───────────────┴▶ joined, on one clock ─▶ analyses of several ranks
//!   └───▶ its events ──────────────────────────────────────────▶ analyses of one rank after the other
//! ```

use crate::envelope::envelope;
use crate::open::{on_one_clock, opened, paths_of, told};
use crate::{AnalysisContext, EngineError, Envelope, OpenOptions, Selection, Trace, check_selection};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use stepscope_analyses::{
    Analysis, FirstIds, Needs, Outcome, RankResults, Ranks, SharedResults, Table, Values, catalogue, condensed,
    coverage, given,
};
use stepscope_base::Span;
use stepscope_import::{ImportError, JoinedFiles, Joining, Progress};
use stepscope_summary::{Place, Summary};

/// Files of fewer bytes, all together, are read again rather than kept as summaries.
const KEPT_FROM_BYTES: u64 = 32 << 20;
/// Files that are read at once, each with all of its events in memory.
const READ_AT_ONCE: usize = 4;

/// A run that was opened.
pub struct OpenedRun {
    trace: Trace,
    /// The files that `trace` was condensed of; `None` when it has all events.
    files: Option<Files>,
    /// What analyses of all events have shared so far.
    of_events: BySelection,
}

/// What analyses have shared so far, by what was asked for.
#[derive(Default)]
struct BySelection(Mutex<Vec<(Selection, SharedResults)>>);

impl BySelection {
    fn get(&self, selection: &Selection, make: impl FnOnce() -> SharedResults) -> SharedResults {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, results)) = known.iter().find(|(asked, _)| asked == selection) {
            return results.clone();
        }
        let results = make();
        known.push((selection.clone(), results.clone()));
        results
    }
}

/// The files of a run, each of other ranks or of another time.
struct Files {
    paths: Vec<PathBuf>,
    options: OpenOptions,
    joined: Vec<File>,
    /// Whether all that is of a rank is in one file.
    has_one_a_rank: bool,
    whole: OnceLock<Result<Trace, EngineError>>,
    /// What analyses of what was condensed have shared so far.
    of_condensed: BySelection,
}

/// What is known of a file that was joined.
struct File {
    path: PathBuf,
    /// Where it begins in the run, and where what follows it would begin if it were the first.
    first: FirstIds,
    size: FirstIds,
    /// Without its trace, which is in that of the run.
    summary: Summary,
    /// Its ranks in the run.
    ranks: Vec<u32>,
}

impl OpenedRun {
    /// Opens what `inputs` name, as [`open_run`](crate::open_run) does, but of several files only as much as has to be
    /// known of all ranks. `progress` tells another thread how far it is.
    ///
    /// # Errors
    /// As [`open_run`](crate::open_run).
    pub fn open<P: AsRef<Path>>(inputs: &[P], options: &OpenOptions, progress: &Progress) -> Result<Self, EngineError> {
        let paths = paths_of(inputs)?;
        let of = |trace: Trace, files: Option<Files>| Self { trace, files, of_events: BySelection::default() };
        let whole = || Ok(of(opened(&paths, options, progress)?, None));
        let failed = |error: ImportError| told(&error, &paths[0]);
        // What is read from standard input cannot be read again.
        let is_read_once = paths.iter().any(|path| path.as_os_str() == "-");
        let files = stepscope_import::files_to_join(&paths).map_err(failed)?.filter(|_| !is_read_once);
        let Some((name, files)) = files else { return whole() };
        let mut summaries = summaries(&files, &options.joining, progress);
        let mut read = BTreeMap::new();
        let joined = stepscope_import::join(name, &files, &options.joining, &mut |at: usize| {
            let mut summary = summaries[at].take().expect("each file is asked for once")?;
            let trace = std::mem::take(&mut summary.trace);
            read.insert(at, (summary, FirstIds::default().after(&trace)));
            Ok(trace)
        });
        let joined = joined.map_err(failed)?;
        let kept = placed(&files, &joined, read);
        let mut times_of: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
        for file in &kept {
            file.ranks.iter().for_each(|rank| times_of.entry(*rank).or_default().extend(file.times(&joined.trace)));
        }
        // What two files of one time say of a rank belongs together.
        if times_of.values_mut().any(|times| overlap(times)) {
            return whole();
        }
        let has_one_a_rank = times_of.values().all(|times| times.len() == 1);
        let trace = on_one_clock(joined.trace, options)?;
        let (options, whole, of_condensed) = (options.clone(), OnceLock::new(), BySelection::default());
        Ok(of(trace, Some(Files { paths, options, joined: kept, has_one_a_rank, whole, of_condensed })))
    }

    /// The run: its ranks, steps, facts and findings; all of its events only when it is not of several files.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// All events of the run; those of several files are read when this is first called.
    ///
    /// # Errors
    /// What the readers say of the files.
    pub fn whole(&self) -> Result<&Trace, EngineError> {
        let Some(files) = &self.files else { return Ok(&self.trace) };
        let read = || opened(&files.paths, &files.options, &Progress::default());
        files.whole.get_or_init(read).as_ref().map_err(EngineError::clone)
    }

    /// Runs an analysis on the part that was asked for.
    ///
    /// # Errors
    /// When the run has no such rank or step, or when events are needed and their file cannot be read any more.
    pub fn analyze(&self, analysis: &Analysis, selection: &Selection) -> Result<Envelope, EngineError> {
        check_selection(&self.trace, selection)?;
        // A window is of the time of all ranks, which the events of one do not know; and others define otherwise.
        let is_of_events = selection.window.is_some() || selection.compat.is_some();
        let outcome = match &self.files {
            Some(files) if !is_of_events && analysis.needs == Needs::Condensed => {
                let shared = files.of_condensed.get(selection, || given(&self.trace, &files.placed(), selection));
                (analysis.run)(&AnalysisContext::with_results(&self.trace, selection, shared))
            }
            Some(files) if !is_of_events && analysis.needs == Needs::EachRank && files.has_one_a_rank => {
                files.one_after_the_other(&self.trace, analysis, selection)?
            }
            _ => (analysis.run)(&self.context(selection)?),
        };
        Ok(envelope(&self.trace, analysis, outcome))
    }

    /// All events of the run, with what analyses of `selection` have shared so far.
    ///
    /// # Errors
    /// As [`OpenedRun::whole`].
    pub fn context<'a>(&'a self, selection: &'a Selection) -> Result<AnalysisContext<'a>, EngineError> {
        let results = self.of_events.get(selection, SharedResults::default);
        Ok(AnalysisContext::with_results(self.whole()?, selection, results))
    }
}

/// Whether two of `spans` share a moment.
fn overlap(spans: &mut [Span]) -> bool {
    spans.sort_unstable();
    spans.windows(2).any(|pair| pair[1].start_ns < pair[0].end_ns)
}

impl File {
    /// From when to when it is, in the joined trace.
    fn times(&self, joined: &Trace) -> Option<Span> {
        let first = self.first.slice as usize;
        let slices = (first..first + self.size.slice as usize).map(stepscope_trace::SliceId::from_index);
        let spans = slices.map(|slice| joined.slices.span(slice));
        spans.reduce(|a, b| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns)))
    }
}

impl Files {
    fn placed(&self) -> Vec<(FirstIds, &RankResults)> {
        self.joined.iter().map(|file| (file.first, &file.summary.results)).collect()
    }

    /// The rows of each rank, by rank.
    fn one_after_the_other(
        &self,
        trace: &Trace,
        analysis: &Analysis,
        selection: &Selection,
    ) -> Result<Outcome, EngineError> {
        let mut table = Table { columns: analysis.columns(selection) };
        let is_kept = Selection { ranks: Ranks::default(), ..selection.clone() } == Selection::default();
        let mut files: Vec<&File> = self.joined.iter().collect();
        files.sort_by_key(|file| file.ranks.first().copied());
        for file in files.into_iter().filter(|file| file.ranks.iter().any(|rank| selection.has_rank(*rank))) {
            let kept = file.summary.tables.iter().find(|(name, _)| is_kept && *name == analysis.name);
            match kept {
                Some((_, kept)) => table.append(of_ranks(kept, selection)),
                None => table.append((analysis.run)(&AnalysisContext::new(&self.events(file)?, selection)).table),
            }
        }
        let coverage = coverage(trace, &self.placed(), selection);
        Ok(Outcome { table, coverage, ..Outcome::default() })
    }

    /// All events of a file, with the rank that it has in the run.
    fn events(&self, file: &File) -> Result<Trace, EngineError> {
        let read = stepscope_import::open_joining(&file.path, &self.options.joining, &Progress::default());
        let mut trace = read.map_err(|error| told(&error, &file.path))?;
        if let ([rank], true) = (file.ranks.as_slice(), trace.ranks() != file.ranks) {
            trace.set_rank(*rank);
        }
        Ok(trace)
    }
}

/// The rows of the ranks asked for.
fn of_ranks(table: &Table, selection: &Selection) -> Table {
    let Some(Values::Int(ranks)) = table.column("rank").map(|column| &column.values) else { return table.clone() };
    let is_asked = |rank: &Option<i64>| {
        rank.and_then(|rank| u32::try_from(rank).ok()).is_some_and(|rank| selection.has_rank(rank))
    };
    let rows: Vec<usize> = ranks.iter().enumerate().filter(|(_, rank)| is_asked(rank)).map(|(at, _)| at).collect();
    crate::with_rows(table, &rows)
}

/// The files that were joined, in their order. Each has the rank that the run gives it.
fn placed(files: &[PathBuf], joined: &JoinedFiles, mut read: BTreeMap<usize, (Summary, FirstIds)>) -> Vec<File> {
    let mut first = FirstIds::default();
    let mut placed = Vec::new();
    for at in &joined.files {
        let (mut summary, size) = read.remove(at).expect("what was joined was read");
        let next = first.plus(size);
        let processes = &joined.trace.processes[first.process as usize..next.process as usize];
        let ranks: BTreeSet<u32> = processes.iter().map(|process| process.rank).collect();
        if let (Some(rank), 1) = (ranks.first(), ranks.len()) {
            summary.set_rank(*rank);
        }
        placed.push(File { path: files[*at].clone(), first, size, summary, ranks: ranks.into_iter().collect() });
        first = next;
    }
    placed
}

/// The summaries of `files`, in their order, made on all processors. They are kept where that saves reading much.
fn summaries(files: &[PathBuf], joining: &Joining, progress: &Progress) -> Vec<Option<Result<Summary, ImportError>>> {
    let bytes = |path: &PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
    let is_kept = files.iter().map(bytes).sum::<u64>() >= KEPT_FROM_BYTES;
    let left = Mutex::new(0..files.len());
    let made: Vec<OnceLock<Result<Summary, ImportError>>> = files.iter().map(|_| OnceLock::new()).collect();
    let make = || {
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(at) = next() {
            made[at].get_or_init(|| summary(&files[at], joining, is_kept, progress));
        }
    };
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 1..processors.min(READ_AT_ONCE).min(files.len()) {
            scope.spawn(make);
        }
        make();
    });
    made.into_iter().map(OnceLock::into_inner).collect()
}

/// The summary of the file at `path`, read where one is kept, else made, and kept where `is_kept`.
fn summary(path: &Path, joining: &Joining, is_kept: bool, progress: &Progress) -> Result<Summary, ImportError> {
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
    let (trace, results) = condensed(&context);
    Summary { trace, results, tables }
}

#[cfg(test)]
mod tests;
