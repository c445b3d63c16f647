//! A run whose summaries are made by other processes, of this machine or of many.
//!
//! ```text
//! part ─▶ task, as text ─▶ another process: reads the part ─▶ its summary, as bytes ─┐
//! part, whose summary is kept already ───────────────────────────────────────────────┴▶ the run
//! ```
//!
//! A task says all that is known of a part, so that nobody lists the run again. Only this process keeps summaries. What
//! another process has read is the same file that this one sees when its sum is the same: its length, its time, its first
//! and last bytes.

use super::files::path_of;
use super::summaries::{Known, READ_AT_ONCE, are_kept, known, of_events, place_of, summary};
use super::{OpenedRun, parts_of};
use crate::open::{paths_of, told};
use crate::{EngineError, OpenOptions, each};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::{Path, PathBuf};
use stepscope_import::{ImportError, Joining, Parts, Progress};
use stepscope_summary::{Place, Summary, of_program, to_bytes};

/// A run before its summaries are put together.
pub struct Reduction {
    paths: Vec<PathBuf>,
    options: OpenOptions,
    /// `None` of what is opened at once.
    parts: Option<Parts>,
    /// Of each part, where there are several.
    states: Vec<State>,
    are_kept: bool,
}

/// What is known of a part.
#[derive(Default)]
struct State {
    /// What it is; `None` where that cannot be said, as of a process that still records. This process reads it then.
    place: Option<Place>,
    summary: Option<Result<Summary, ImportError>>,
}

/// What another process is told of a part.
#[derive(Serialize, Deserialize)]
struct Task {
    /// The part alone, with whole paths.
    part: Parts,
    /// Where the part is, as it is named here.
    source: String,
    /// The sum of what it is.
    sum: u64,
}

/// Why another process gives no summary.
#[derive(Serialize, Deserialize)]
enum Failure {
    /// It is another program.
    OtherProgram { version: String },
    /// It sees no such file, or may not read it.
    NotRead { why: String },
    /// The file there is another one.
    OtherFile,
    /// The file is none that can be read, wherever it is.
    Broken { text: String, hint: Option<String> },
    /// The summary cannot be written down.
    NotSaid,
}

impl Reduction {
    /// Finds the parts of what `inputs` name, and what is kept of them.
    ///
    /// # Errors
    /// As [`OpenedRun::open`] where nothing is read yet.
    pub fn begin<P: AsRef<Path>>(inputs: &[P], options: &OpenOptions) -> Result<Self, EngineError> {
        let paths = paths_of(inputs)?;
        let parts = parts_of(&paths)?;
        let (mut states, mut keeps) = (Vec::new(), false);
        if let Some(parts) = parts.as_ref().filter(|parts| parts.count() > 1) {
            keeps = are_kept(parts);
            let of_known = |Known { place, summary }| State { place, summary: summary.map(Ok) };
            states = known(parts, keeps).into_iter().map(of_known).collect();
        }
        Ok(Self { paths, options: options.clone(), parts, states, are_kept: keeps })
    }

    /// The places of the parts of which another process may make the summary, and what it is told of each. What is not
    /// among them is kept already, or this process reads it.
    pub fn tasks(&self) -> impl Iterator<Item = (usize, String)> + '_ {
        let here = std::env::current_dir().unwrap_or_default();
        let moved = move |path: &Path| if stepscope_store::is_remote(path) { path.into() } else { here.join(path) };
        self.states.iter().enumerate().filter(|(_, state)| state.summary.is_none()).filter_map(move |(at, state)| {
            let (parts, sum) = (self.parts.as_ref()?, state.place.as_ref()?.sum());
            let task = Task { part: parts.alone(at, &moved), source: parts.source(at), sum };
            // Text is UTF-8, and not every path is.
            Some((at, serde_json::to_string(&task).ok()?))
        })
    }

    /// Where the part at a place is.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn path(&self, at: usize) -> PathBuf {
        path_of(self.parts.as_ref().expect("there are parts"), at)
    }

    /// Takes what [`summary_elsewhere`] gave for the part at a place.
    ///
    /// # Errors
    /// [`EngineError::Elsewhere`] when the other process is another program, or does not see the same file.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn add(&mut self, at: usize, given: Result<Vec<u8>, &str>) -> Result<(), EngineError> {
        let path = self.path(at);
        let refused = |what: String, hint: &str| EngineError::Elsewhere { what, path: path.clone(), hint: hint.into() };
        let other_program = |version: &str| {
            let what = format!(
                "a worker runs another stepscope ({version}) than this process ({})",
                env!("CARGO_PKG_VERSION")
            );
            refused(what, "install the same one wherever a worker runs")
        };
        let (parts, state) = (self.parts.as_ref().expect("there are parts"), &mut self.states[at]);
        let failure = match given {
            Ok(bytes) => {
                let place = state.place.as_ref().expect("a task has a sum");
                let taken = place.take(bytes, self.are_kept);
                let taken = taken
                    .map_err(|error| refused(format!("a worker gave no summary of it: {error}"), "reduce again"))?;
                state.summary = Some(Ok(taken));
                return Ok(());
            }
            Err(text) => serde_json::from_str(text).map_err(|_| other_program("of an unknown version"))?,
        };
        match failure {
            Failure::OtherProgram { version } => Err(other_program(&version)),
            Failure::NotRead { why } if parts.files(at).iter().all(|file| can_be_read(file)) => {
                let (what, _) =
                    crate::split_place(&format!("a worker cannot read what this process can: {why}"), &path);
                Err(refused(
                    what,
                    "each worker needs the files at the same paths: on a disk that all share, or in an object store",
                ))
            }
            Failure::OtherFile => Err(refused(
                "a worker sees another file than this process, or the file has changed".into(),
                "each worker needs the same files at the same paths; where one is still written, reduce again later",
            )),
            Failure::Broken { text, hint } => {
                state.summary = Some(Err(ImportError::Elsewhere { text, hint }));
                Ok(())
            }
            // This process reads it, and says what is wrong.
            Failure::NotRead { .. } | Failure::NotSaid => Ok(()),
        }
    }

    /// Opens the run. This process reads what it has no summary of.
    ///
    /// # Errors
    /// As [`OpenedRun::open`].
    pub fn open(self, progress: &Progress) -> Result<OpenedRun, EngineError> {
        let Self { paths, options, parts, states, are_kept } = self;
        OpenedRun::of_parts(&paths, parts, &options, progress, |parts| {
            let left: Vec<usize> = (0..states.len()).filter(|at| states[*at].summary.is_none()).collect();
            let mut made =
                each(left.len(), READ_AT_ONCE, |at| summary(parts, left[at], &options.joining, are_kept, progress))
                    .into_iter();
            let own = |state: State| state.summary.or_else(|| made.next()).expect("each was made");
            states.into_iter().map(own).collect()
        })
    }
}

/// The summary of the part that a task of [`Reduction`] tells, as the content of its file. `program` is that of the process
/// which made the task.
///
/// # Errors
/// Why not, as text for [`Reduction::add`].
pub fn summary_elsewhere(program: u64, task: &str) -> Result<Vec<u8>, String> {
    made(program, task).map_err(|failure| serde_json::to_string(&failure).unwrap_or_default())
}

/// The sum of what this program is: what makes summaries must be the same.
pub fn this_program() -> u64 {
    of_program()
}

fn made(program: u64, task: &str) -> Result<Vec<u8>, Failure> {
    let other_program = || Failure::OtherProgram { version: env!("CARGO_PKG_VERSION").into() };
    if program != of_program() {
        return Err(other_program());
    }
    let Task { part, source, sum } = serde_json::from_str(task).map_err(|_| other_program())?;
    let place = place_of(&part, 0).map_err(|error| Failure::NotRead { why: error.to_string() })?;
    if place.sum() != sum {
        return Err(Failure::OtherFile);
    }
    let moved = part.source(0);
    let named = |text: String| text.replace(&moved, &source);
    let trace = part.open(0, &Joining::default(), &Progress::default()).map_err(|error| match &error {
        error if error.is_of_machine() => Failure::NotRead { why: told(error, Path::new(&moved)).to_string() },
        error => Failure::Broken { text: named(error.to_string()), hint: error.hint() },
    })?;
    let mut summary = of_events(&trace);
    summary.trace.sources = vec![source.clone()];
    summary.trace.findings.examples_mut().for_each(|example| *example = named(std::mem::take(example)));
    to_bytes(&summary, sum).map_err(|_| Failure::NotSaid)
}

fn can_be_read(file: &Path) -> bool {
    stepscope_store::open(file).and_then(|mut file| file.read(&mut [0])).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::summaries;
    use super::super::tests::{two_ranks, written};
    use super::*;
    use crate::Selection;
    use std::fs;
    use stepscope_analyses::catalogue;

    fn begun(inputs: &[&Path]) -> Reduction {
        Reduction::begin(inputs, &OpenOptions::default()).unwrap()
    }

    /// The run, of which every task was done.
    fn reduced(inputs: &[&Path]) -> Result<OpenedRun, EngineError> {
        let mut reduction = begun(inputs);
        for (at, task) in reduction.tasks().collect::<Vec<_>>() {
            let made = summary_elsewhere(this_program(), &task);
            reduction.add(at, made.as_deref().map(<[u8]>::to_vec).map_err(String::as_str))?;
        }
        reduction.open(&Progress::default())
    }

    /// All results, or the error.
    fn results(run: Result<OpenedRun, EngineError>) -> Result<Vec<String>, EngineError> {
        let run = run?;
        let result = |analysis| run.analyze(analysis, &Selection::default()).unwrap().to_json();
        Ok(catalogue().iter().map(result).collect())
    }

    fn opened(inputs: &[&Path]) -> Result<OpenedRun, EngineError> {
        OpenedRun::open(inputs, &OpenOptions::default(), &Progress::default())
    }

    fn recorded() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/ddp-cpu");
        fs::copy(from.join("run.json"), folder.path().join("run.json")).unwrap();
        for rank in ["rank=0", "rank=1"] {
            fs::create_dir(folder.path().join(rank)).unwrap();
            for file in fs::read_dir(from.join(rank)).unwrap().map(|file| file.unwrap().path()) {
                fs::copy(&file, folder.path().join(rank).join(file.file_name().unwrap())).unwrap();
            }
        }
        folder
    }

    #[test]
    fn results_are_those_of_a_run_that_one_process_reads() {
        let (files, run) = (two_ranks(), recorded());
        for folder in [files.path(), run.path()] {
            assert_eq!(begun(&[folder]).tasks().count(), 2);
            assert_eq!(results(reduced(&[folder])), results(opened(&[folder])));
        }
        let several = [files.path().join("b.json"), files.path().join("a.json")];
        let several = several.each_ref().map(PathBuf::as_path);
        assert_eq!(results(reduced(&several)), results(opened(&several)));
        // One file is opened as it is, and so are files of one rank and one time.
        assert_eq!(begun(&several[..1]).tasks().count(), 0);
        assert_eq!(results(reduced(&several[..1])), results(opened(&several[..1])));
        written(files.path(), "c.json", 0, 0);
        assert!(reduced(&[files.path()]).unwrap().has_all_events());
        assert_eq!(results(reduced(&[files.path()])), results(opened(&[files.path()])));
    }

    #[test]
    fn a_task_says_all_that_is_known_of_its_part() {
        let run = recorded();
        let tasks: Vec<_> = begun(&[run.path()]).tasks().collect();
        let of_rank_1 = || summary_elsewhere(this_program(), &tasks[1].1).unwrap();
        let expected = of_rank_1();
        fs::remove_dir_all(run.path().join("rank=0")).unwrap();
        fs::remove_file(run.path().join("run.json")).unwrap();
        assert_eq!(of_rank_1(), expected);
    }

    #[test]
    fn what_is_kept_is_no_task_and_what_comes_back_is_kept() {
        let run = recorded();
        let big = [run.path().join("rank=0"), run.path().join("rank=1")];
        let bytes: u64 = big
            .iter()
            .flat_map(|rank| fs::read_dir(rank).unwrap())
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum();
        assert!(bytes < 2 << 20, "it is too small to be kept");
        let mut reduction = begun(&[run.path()]);
        reduction.are_kept = true;
        let tasks: Vec<_> = reduction.tasks().collect();
        for (at, task) in &tasks {
            reduction.add(*at, Ok(summary_elsewhere(this_program(), task).unwrap())).unwrap();
        }
        let kept =
            |state: &State| state.summary.as_ref().unwrap().as_ref().is_ok_and(|summary| summary.tables.is_empty());
        assert!(reduction.states.iter().all(kept));
        let parts = reduction.parts.as_ref().unwrap();
        let [own, expected] = [0, 1].map(|at| {
            let file = run.path().join(format!(".stepscope/rank={at}.parquet"));
            let given = fs::read(&file).unwrap();
            fs::remove_file(&file).unwrap();
            summary(parts, at, &Joining::default(), true, &Progress::default()).unwrap();
            (given, fs::read(&file).unwrap())
        });
        assert!(own.0 == own.1 && expected.0 == expected.1, "as if this process had kept them");
        // They are found the next time.
        let place = reduction.states[1].place.as_ref().unwrap();
        assert!(summaries::kept(parts, 1, place).is_some());
    }

    #[test]
    fn a_worker_that_sees_something_else_is_an_error() {
        let folder = two_ranks();
        let path = folder.path().join("a.json");
        let mut reduction = begun(&[folder.path()]);
        let (at, task) = reduction.tasks().next().unwrap();
        let mut refused = |given: Result<Vec<u8>, String>| {
            let given = given.as_deref().map(<[u8]>::to_vec).map_err(String::as_str);
            let error = reduction.add(at, given).unwrap_err();
            assert_eq!(error.place(), Some(path.display().to_string()));
            assert!(error.hint().is_some() && matches!(error, EngineError::Elsewhere { .. }));
            error.to_string()
        };
        let text = fs::read(&path).unwrap();
        let other = refused(summary_elsewhere(this_program() ^ 1, &task));
        assert_eq!(other, "a worker runs another stepscope (0.1.0) than this process (0.1.0)");
        assert!(refused(Err("?".into())).contains("another stepscope (of an unknown version)"));
        assert!(refused(Ok(b"PAR1".to_vec())).starts_with("a worker gave no summary of it: "));
        let [first, second] =
            [0, 1].map(|at| summary_elsewhere(this_program(), &begun(&[folder.path()]).tasks().nth(at).unwrap().1));
        assert!(first.is_ok());
        assert_eq!(refused(second), "a worker gave no summary of it: it is of something else");
        fs::remove_file(&path).unwrap();
        let not_there = summary_elsewhere(this_program(), &task);
        fs::write(&path, [&text[..], b" "].concat()).unwrap();
        assert_eq!(refused(not_there), "a worker cannot read what this process can: No such file or directory");
        let changed = summary_elsewhere(this_program(), &task);
        assert!(refused(changed).starts_with("a worker sees another file than this process"));
    }

    #[test]
    fn what_nobody_can_read_is_told_as_by_a_run_that_one_process_reads() {
        let folder = two_ranks();
        fs::write(folder.path().join("c.json"), "{\"traceEvents\": 3").unwrap();
        fs::write(folder.path().join("d.json"), "").unwrap();
        let expected = results(opened(&[folder.path()]));
        assert!(expected.as_ref().unwrap()[0].contains("file_left_out"));
        assert_eq!(results(reduced(&[folder.path()])), expected);
        let broken = [folder.path().join("c.json"), folder.path().join("d.json")];
        let broken = broken.each_ref().map(PathBuf::as_path);
        assert!(matches!(results(opened(&broken)), Err(EngineError::Import { hint: Some(_), .. })));
        assert_eq!(results(reduced(&broken)), results(opened(&broken)));
        // A file that is gone for all.
        let mut reduction = begun(&[folder.path()]);
        let tasks: Vec<_> = reduction.tasks().collect();
        fs::remove_file(folder.path().join("a.json")).unwrap();
        for (at, task) in tasks {
            let made = summary_elsewhere(this_program(), &task);
            reduction.add(at, made.as_deref().map(<[u8]>::to_vec).map_err(String::as_str)).unwrap();
        }
        let run = reduction.open(&Progress::default()).unwrap();
        assert_eq!(run.trace().ranks(), [0]);
    }
}
