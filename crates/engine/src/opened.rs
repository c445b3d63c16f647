//! A run as it is opened: of one trace all events, of many files what was condensed of each, and events only where an
//! analysis needs them.
//!
//! ```text
//! file ─▶ its summary, kept or made ─┐
//! file ─▶ its summary ───────────────┴▶ joined, on one clock ─▶ analyses of several ranks
//!   └───▶ its events ──────────────────────────────────────────▶ analyses of one rank after the other
//! ```

mod files;
mod held;
mod reduction;
mod summaries;

use crate::envelope::envelope;
use crate::open::{on_one_clock, opened, paths_of, told};
use crate::{AnalysisContext, EngineError, Envelope, OpenOptions, Selection, Trace, check_selection, outcomes};
pub use files::DEVICE_WORK;
use files::Files;
use held::BySelection;
pub use reduction::{Reduction, summary_elsewhere, this_program};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepscope_analyses::advice::AllRanks;
use stepscope_analyses::{Analysis, DeviceWork, Needs, Ranks, SharedResults, catalogue, given};
use stepscope_import::{ImportError, Parts, Progress};
use stepscope_summary::Summary;
use stepscope_trace::{Contents, FindingCode};
pub use summaries::keep_summaries;
use summaries::summaries;

/// A run that was opened.
pub struct OpenedRun {
    trace: Arc<Trace>,
    /// The files that `trace` was condensed of; `None` when it has all events.
    files: Option<Files>,
    /// What analyses of `trace` have shared so far.
    shared: BySelection,
    /// What analyses whose rows are put together have shared so far.
    of_rows: BySelection,
}

/// The results of all analyses of a part of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AllResults {
    /// In the order of the catalogue.
    pub results: Vec<Envelope>,
    /// The names of analyses whose events do not fit into memory, and what says so.
    pub left_out: Vec<(&'static str, EngineError)>,
}

impl OpenedRun {
    /// Opens what `inputs` name, as [`open_run`](crate::open_run) does, but of several files only as much as has to be
    /// known of all ranks. `progress` tells another thread how far it is.
    ///
    /// # Errors
    /// As [`open_run`](crate::open_run).
    pub fn open<P: AsRef<Path>>(inputs: &[P], options: &OpenOptions, progress: &Progress) -> Result<Self, EngineError> {
        let paths = paths_of(inputs)?;
        let parts = parts_of(&paths)?;
        Self::of_parts(&paths, parts, options, progress, |parts| summaries(parts, &options.joining, progress))
    }

    /// Opens the run at `paths`, which consists of `parts`; `summaries` gives that of each where there are several.
    fn of_parts(
        paths: &[PathBuf],
        parts: Option<Parts>,
        options: &OpenOptions,
        progress: &Progress,
        summaries: impl FnOnce(&Parts) -> Vec<Result<Summary, ImportError>>,
    ) -> Result<Self, EngineError> {
        if let Some(only) = parts.as_ref().filter(|parts| parts.count() == 1) {
            let trace = only.open(0, &options.joining, progress).map_err(|error| told(&error, &paths[0]))?;
            return Ok(Self::of(on_one_clock(trace, options)?));
        }
        let open = |parts: Parts| {
            let summaries = summaries(&parts);
            Files::open(parts, summaries, options)
        };
        match parts.map(open).transpose()?.flatten() {
            Some((trace, files)) => Ok(Self { files: Some(files), ..Self::of(trace) }),
            None => Ok(Self::of(opened(paths, options, progress)?)),
        }
    }

    /// A run of which all events are in `trace`.
    pub fn of(trace: Trace) -> Self {
        let [shared, of_rows] = [BySelection::default(), BySelection::default()];
        Self { trace: Arc::new(trace), files: None, shared, of_rows }
    }

    /// The run: its ranks, steps, facts and findings; all of its events only when it is not of several files.
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// Whether [`OpenedRun::trace`] has all events.
    pub fn has_all_events(&self) -> bool {
        self.files.is_none()
    }

    /// Whether processes were still recording when it was opened.
    pub fn is_live(&self) -> bool {
        self.trace.findings.count(FindingCode::ProcessRunning) > 0
    }

    /// Whether all events fit into the memory that they may take.
    pub fn fits_in_memory(&self) -> bool {
        self.files.as_ref().is_none_or(|files| files.fit_in_memory(&Ranks::default()))
    }

    /// What it has, all events counted.
    pub fn contents(&self) -> Contents {
        self.files.as_ref().map_or_else(|| Contents::of(&self.trace), Files::contents)
    }

    /// When the devices of each rank do anything but communicate, where [`OpenedRun::trace`] has not all events.
    pub fn device_work(&self) -> impl Iterator<Item = &DeviceWork> {
        self.files.iter().flat_map(Files::work)
    }

    /// All events of these ranks, and of those in the same files; they are read where they are not in memory.
    ///
    /// # Errors
    /// What the readers say of the files; [`EngineError::TooLarge`].
    pub fn events(&self, ranks: &Ranks) -> Result<Arc<Trace>, EngineError> {
        match &self.files {
            Some(files) => Ok(Arc::clone(&files.events(&self.trace, ranks)?.trace)),
            None => Ok(Arc::clone(&self.trace)),
        }
    }

    /// Runs an analysis on the part that was asked for.
    ///
    /// # Errors
    /// When the run has no such rank or step, or when events are needed and their file cannot be read any more.
    pub fn analyze(&self, analysis: &Analysis, selection: &Selection) -> Result<Envelope, EngineError> {
        check_selection(&self.trace, selection)?;
        let needs = analysis.needs_for(selection);
        let outcome = match (&self.files, needs) {
            (Some(files), Needs::EachRank | Needs::EachRankKept) if files.are_by_rank(needs, selection) => {
                files.one_after_the_other(&self.trace, analysis, selection)?
            }
            _ => self.with_context(selection, needs, analysis.run)?,
        };
        Ok(envelope(&self.trace, analysis, outcome))
    }

    /// The results of all analyses, without those whose events do not fit into memory.
    ///
    /// # Errors
    /// As [`OpenedRun::analyze`].
    pub fn analyze_all(&self, selection: &Selection) -> Result<AllResults, EngineError> {
        let mut all = AllResults::default();
        if self.files.is_some() {
            for analysis in catalogue() {
                match self.analyze(analysis, selection) {
                    Ok(result) => all.results.push(result),
                    Err(error @ EngineError::TooLarge { .. }) => all.left_out.push((analysis.name, error)),
                    Err(error) => return Err(error),
                }
            }
            return Ok(all);
        }
        check_selection(&self.trace, selection)?;
        let analyses: Vec<&Analysis> = catalogue().iter().collect();
        let found = self.with_context(selection, Needs::AllEvents, |context| outcomes(context, &analyses))?;
        let found = analyses.into_iter().zip(found);
        all.results = found.map(|(analysis, outcome)| envelope(&self.trace, analysis, outcome)).collect();
        Ok(all)
    }

    /// What `make` makes of the part that was asked for, which has what analyses need that say `needs`. Rank and step
    /// exist.
    ///
    /// # Errors
    /// As [`OpenedRun::events`].
    pub fn with_context<T>(
        &self,
        selection: &Selection,
        needs: Needs,
        make: impl FnOnce(&AnalysisContext<'_>) -> T,
    ) -> Result<T, EngineError> {
        let nothing = || Ok(SharedResults::default());
        let Some(files) = &self.files else {
            let shared = self.shared.get(selection, nothing)?;
            return Ok(make(&AnalysisContext::with_results(&self.trace, selection, shared)));
        };
        let is_of_asked = !matches!(needs, Needs::AllEvents | Needs::Condensed);
        let ranks = if is_of_asked { selection.ranks.clone() } else { Ranks::default() };
        let shared = match needs {
            Needs::Steps => SharedResults::default(),
            Needs::Condensed if selection.window.is_none() => {
                self.shared.get(selection, || Ok(given(&self.trace, &files.placed(), selection, None)))?
            }
            Needs::Condensed if !files.fit_in_memory(&ranks) => self.shared.get(selection, || {
                let launched = files.launched(&self.trace, selection)?;
                Ok(given(&self.trace, &files.placed(), selection, Some(launched)))
            })?,
            Needs::Rows | Needs::RowsTogether if files.are_by_rank(needs, selection) => {
                let shared = self.of_rows.get(selection, || files.rows(&self.trace, selection))?;
                self.give_all_ranks(files, needs, selection, &shared)?;
                shared
            }
            Needs::Joined(joined) if files.are_by_rank(needs, selection) => {
                files.joined(&self.trace, joined, selection)?
            }
            _ => {
                let held = files.events(&self.trace, &ranks)?;
                let shared = held.shared.get(selection, nothing)?;
                self.give_all_ranks(files, needs, selection, &shared)?;
                return Ok(make(&AnalysisContext::with_results(&held.trace, selection, shared)));
            }
        };
        Ok(make(&AnalysisContext::with_results(&self.trace, selection, shared)))
    }

    /// Adds to `shared` of a selection all ranks as they were condensed, where that is needed.
    fn give_all_ranks(
        &self,
        files: &Files,
        needs: Needs,
        selection: &Selection,
        shared: &SharedResults,
    ) -> Result<(), EngineError> {
        if matches!(needs, Needs::RowsTogether) {
            let all = AllRanks::asked_for(selection);
            let results = self.shared.get(&all, || Ok(given(&self.trace, &files.placed(), &all, None)))?;
            AllRanks::give(shared, &self.trace, results);
        }
        Ok(())
    }
}

/// The parts of the run that `paths` are; `None` of what is opened at once.
fn parts_of(paths: &[PathBuf]) -> Result<Option<Parts>, EngineError> {
    // What is read from standard input cannot be read again.
    let is_read_once = paths.iter().any(|path| path.as_os_str() == "-");
    Ok(Parts::of(paths).map_err(|error| told(&error, &paths[0]))?.filter(|_| !is_read_once))
}

#[cfg(test)]
mod tests;
