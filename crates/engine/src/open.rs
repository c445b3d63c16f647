//! From what a person typed to a trace.

use crate::inputs::expanded;
use crate::{Align, EngineError, Selection, Trace};
use std::path::{Path, PathBuf};
use stepscope_align::{aligned, with_offsets};
use stepscope_base::Span;
use stepscope_import::{ImportError, Joining, Progress, RecordFilter};
use stepscope_store::{Fault, StoreError};
use stepscope_trace::StepSource;

/// How several inputs become one run on one clock.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// How clocks are put together.
    pub align: Align,
    /// What is added to the clock of a rank, in ns, before clocks are put together.
    pub offsets: Vec<(u32, i64)>,
    /// What is joined, and which rank a file is of.
    pub joining: Joining,
    /// Bytes of memory that events of a run of many files may take; as many as are free where it is not said.
    pub max_memory: Option<u64>,
}

impl OpenOptions {
    /// The arguments of the command line that say the same, but for memory.
    pub fn spelled(&self) -> Vec<String> {
        let align = match self.align {
            Align::Auto => "auto",
            Align::Base => "base",
            Align::Collectives => "collectives",
            Align::None => "none",
        };
        let offsets = self.offsets.iter().map(|(rank, ns)| format!("--offset={rank}={ns}"));
        let rank_from = self.joining.rank_from.iter().map(|regex| format!("--rank-from={}", regex.as_str()));
        let join = self.joining.is_one_job.then(|| "--join".to_string());
        std::iter::once(format!("--align={align}")).chain(offsets).chain(rank_from).chain(join).collect()
    }
}

/// Reads the run, trace file or folder that `inputs` name; several are the ranks of one job. Its ranks are on one clock.
/// A pattern such as `rank*.json` is what it matches, `@FILE` what the lines of FILE name.
///
/// # Errors
/// [`EngineError::NoInput`], [`EngineError::NotFound`], or what the reader says of the input.
pub fn open_run<P: AsRef<Path>>(inputs: &[P]) -> Result<Trace, EngineError> {
    open_run_with_progress(inputs, &OpenOptions::default(), &Progress::default())
}

/// As [`open_run`]; `progress` tells another thread how far it is. `-` is standard input.
///
/// # Errors
/// As [`open_run`].
pub fn open_run_with_progress<P: AsRef<Path>>(
    inputs: &[P],
    options: &OpenOptions,
    progress: &Progress,
) -> Result<Trace, EngineError> {
    opened(&paths_of(inputs)?, options, progress)
}

/// What `paths` are, as one run.
pub(crate) fn opened(paths: &[PathBuf], options: &OpenOptions, progress: &Progress) -> Result<Trace, EngineError> {
    let joining = &options.joining;
    let opened = match paths {
        [] => return Err(EngineError::NoInput),
        [only] => stepscope_import::open_joining(only, joining, progress),
        _ => stepscope_import::open_several(paths, joining, progress),
    };
    on_one_clock(opened.map_err(|error| told(&error, &paths[0]))?, options)
}

/// The paths that `inputs` name, which all are there. `-` is standard input.
///
/// # Errors
/// [`EngineError::NoInput`], [`EngineError::NotFound`], [`EngineError::NothingMatches`].
pub fn paths_of<P: AsRef<Path>>(inputs: &[P]) -> Result<Vec<PathBuf>, EngineError> {
    let paths: Vec<PathBuf> = expanded(inputs)?;
    paths.iter().filter(|path| path.as_os_str() != "-").try_for_each(|path| check_is_there(path))?;
    if paths.is_empty() { Err(EngineError::NoInput) } else { Ok(paths) }
}

/// Checks that a file or folder is at `path`.
///
/// # Errors
/// [`EngineError::NotFound`], or what a store says where it cannot be asked.
pub fn check_is_there(path: &Path) -> Result<(), EngineError> {
    let Err(error) = stepscope_store::metadata(path) else { return Ok(()) };
    match StoreError::in_error(&error) {
        Some(said) if said.fault != Fault::NotFound => Err(cannot_read(&error, path)),
        _ => Err(EngineError::NotFound { path: path.into() }),
    }
}

/// What a store says of `path`, or the disk, with what a person can do.
pub fn cannot_read(error: &std::io::Error, path: &Path) -> EngineError {
    let hint = StoreError::in_error(error).and_then(StoreError::hint).map(String::from);
    EngineError::Import { what: format!("cannot read: {error}"), path: path.into(), hint }
}

/// `trace` with its clocks put together.
pub(crate) fn on_one_clock(trace: Trace, options: &OpenOptions) -> Result<Trace, EngineError> {
    let OpenOptions { align, offsets, .. } = options;
    check_offsets(&trace, offsets)?;
    // What begins together does so before anybody shifts it.
    Ok(match align {
        Align::None => with_offsets(aligned(trace, *align), offsets),
        _ => aligned(with_offsets(trace, offsets), *align),
    })
}

fn check_offsets(trace: &Trace, offsets: &[(u32, i64)]) -> Result<(), EngineError> {
    let ranks = trace.ranks();
    match offsets.iter().find(|(rank, _)| !ranks.contains(rank)) {
        Some((rank, _)) => Err(EngineError::UnknownRank { rank: *rank, run: trace.name.clone(), ranks }),
        None => Ok(()),
    }
}

/// Reads a part of what one process records, or has recorded, into the capture at `raw`.
///
/// # Errors
/// What the reader says of it.
pub fn open_filtered(raw: &Path, filter: &RecordFilter) -> Result<Trace, EngineError> {
    stepscope_import::open_filtered(raw, filter).map_err(|error| told(&error, raw))
}

/// As [`open_filtered`], with the span in which that was recorded, in times of the trace.
///
/// # Errors
/// What the reader says of it.
pub fn open_window(raw: &Path, filter: &RecordFilter) -> Result<(Trace, Option<Span>), EngineError> {
    stepscope_import::open_window(raw, filter).map_err(|error| told(&error, raw))
}

pub(crate) fn told(error: &ImportError, path: &Path) -> EngineError {
    let (what, place) = split_place(&error.to_string(), path);
    EngineError::Import { what, path: place, hint: error.hint() }
}

/// Checks that the ranks and the step asked for exist: every rank that was named alone, and of each range one.
///
/// # Errors
/// [`EngineError::UnknownRank`], [`EngineError::UnknownRanks`], [`EngineError::UnknownStep`].
pub fn check_selection(trace: &Trace, selection: &Selection) -> Result<(), EngineError> {
    let run = trace.name.clone();
    let ranks = trace.ranks();
    match selection.ranks.part_without(&ranks) {
        Some((first, last)) if first == last => return Err(EngineError::UnknownRank { rank: first, run, ranks }),
        Some((first, last)) => return Err(EngineError::UnknownRanks { first, last, run, ranks }),
        None => {}
    }
    let Some(step) = selection.step else { return Ok(()) };
    let anywhere = Selection { window: None, ..selection.clone() };
    if anywhere.steps(trace).next().is_some() {
        return Ok(());
    }
    let is_known = |step: &&stepscope_trace::Step| step.source != StepSource::Whole && selection.has_rank(step.rank);
    let numbers = trace.steps.iter().filter(is_known).map(|step| step.number);
    let limits = numbers.fold(None, |limits: Option<(i64, i64)>, number| {
        let (first, last) = limits.unwrap_or((number, number));
        Some((first.min(number), last.max(number)))
    });
    Err(EngineError::UnknownStep { step, run, limits })
}

/// What happened and where, from an error's `text`: it ends with the path, which is shown on a line of its own. That is
/// `path` or, in a run folder, a file below it.
pub fn split_place(text: &str, path: &Path) -> (String, PathBuf) {
    let line = text.lines().collect::<Vec<_>>().join("; ");
    let line = without_system_numbers(&line);
    let below = format!(": {}", path.display());
    match line.rfind(&below) {
        Some(at) if at > 0 => (line[..at].to_string(), PathBuf::from(&line[at + ": ".len()..])),
        _ => (line, path.into()),
    }
}

/// `text` without the `(os error 13)` that stands behind the system's own words.
fn without_system_numbers(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((before, rest)) => before.to_string() + rest.split_once(')').map_or("", |(_, after)| after),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn inputs_that_are_not_there_are_named() {
        assert_eq!(open_run::<&str>(&[]).unwrap_err(), EngineError::NoInput);
        for inputs in [vec!["not/there"], vec![".", "not/there"]] {
            assert_eq!(open_run(&inputs).unwrap_err(), EngineError::NotFound { path: "not/there".into() });
        }
    }

    #[test]
    fn clocks_are_shifted_before_they_are_put_together_and_after_they_begin_together() {
        let folder = tempfile::tempdir().unwrap();
        for (rank, ts) in [(0, 1_000_000), (1, 1_000_007)] {
            let event = format!(r#"{{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":{ts},"dur":5}}"#);
            let info = format!(r#""distributedInfo": {{"rank": {rank}, "world_size": 2}}"#);
            let text = format!(r#"{{{info}, "baseTimeNanoseconds": 0, "traceEvents": [{event}]}}"#);
            std::fs::write(folder.path().join(format!("{rank}.json")), text).unwrap();
        }
        let inputs = [folder.path().join("*.json")];
        let starts = |align, offsets: &[(u32, i64)]| {
            let options = OpenOptions { align, offsets: offsets.to_vec(), ..OpenOptions::default() };
            open_run_with_progress(&inputs, &options, &Progress::default()).map(|trace| trace.slices.start_ns)
        };
        assert_eq!(starts(Align::Auto, &[]), Ok(vec![0, 7_000]));
        assert_eq!(starts(Align::Auto, &[(0, 1_000), (0, 1_500)]), Ok(vec![2_500, 7_000]));
        assert_eq!(starts(Align::None, &[]), Ok(vec![0, 0]));
        assert_eq!(starts(Align::None, &[(1, -500)]), Ok(vec![500, 0]));
        assert!(matches!(starts(Align::Auto, &[(2, 1)]), Err(EngineError::UnknownRank { rank: 2, .. })));
    }

    #[test]
    fn a_rank_or_step_that_is_not_there_is_an_error_that_names_those_that_are() {
        let trace = drawn("rank 2 step 333444");
        let ask = |rank: Option<u32>, step| {
            check_selection(&trace, &Selection { ranks: rank.into(), step, ..Selection::default() })
        };
        assert_eq!(ask(Some(2), Some(4)), Ok(()));
        assert_eq!(ask(Some(0), None).unwrap_err().hint().unwrap(), "its ranks are 2");
        let set =
            |text: &str| check_selection(&trace, &Selection { ranks: text.parse().unwrap(), ..Selection::default() });
        assert_eq!((set("0-3"), set("2,2-9")), (Ok(()), Ok(())));
        assert_eq!(set("2,3-9").unwrap_err().to_string(), "none of the ranks 3-9 is in this run");
        assert_eq!(set("0,2").unwrap_err().to_string(), "rank 0 is not in this run");
        assert_eq!(ask(None, Some(9)).unwrap_err().hint().unwrap(), "its steps reach from 3 to 4");
    }

    #[test]
    fn the_path_is_told_once() {
        let split = |text: &str| split_place(text, Path::new("runs/a"));
        assert_eq!(split("no such file: runs/a"), ("no such file".into(), "runs/a".into()));
        assert_eq!(split("damaged: runs/a/part-0"), ("damaged".into(), "runs/a/part-0".into()));
        assert_eq!(split("cannot read: denied (os error 13): runs/a").0, "cannot read: denied");
        assert_eq!(split("no such file"), ("no such file".into(), "runs/a".into()));
    }
}
