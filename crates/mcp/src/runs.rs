//! Which runs may be opened, and those that are open.

use crate::failure::Failure;
use crate::serve::Options;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use stepscope_engine::{EngineError, Fingerprint, OpenOptions, OpenedRun, Progress, paths_of, printable, sql_command};
use stepscope_export::kept_tables;

/// Runs that stay open: those asked for last.
const MAX_RUNS: usize = 4;
/// Memory that they may take together where none is said; one stays in any case.
const MAX_BYTES: u64 = 8 << 30;
/// A run that is being recorded is read again after this, or after four times what reading took.
const READ_AGAIN: Duration = Duration::from_secs(5);
/// Runs that the instructions name.
const NAMED: usize = 5;

/// The runs.
pub(crate) struct Runs {
    /// As they were named.
    given: Vec<PathBuf>,
    /// Where else nothing may be opened; none where anything may.
    below: Option<Vec<PathBuf>>,
    open: OpenOptions,
    max_bytes: u64,
    /// What was asked for last comes last.
    slots: Mutex<Vec<Arc<Slot>>>,
}

/// A run as its files were when it was asked for, once it is read.
struct Slot {
    paths: Vec<PathBuf>,
    fingerprints: Vec<Fingerprint>,
    read: OnceLock<Result<Read, EngineError>>,
}

#[derive(Clone)]
struct Read {
    run: Arc<OpenedRun>,
    /// When a run that is being recorded is read again.
    again_at: Option<Instant>,
}

impl Slot {
    fn is_outdated(&self) -> bool {
        let again_at = self.read.get().and_then(|read| read.as_ref().ok()?.again_at);
        again_at.is_some_and(|at| Instant::now() >= at)
    }

    fn held_bytes(&self) -> u64 {
        match self.read.get() {
            Some(Ok(read)) => read.run.contents().held_bytes,
            _ => 0,
        }
    }
}

impl Runs {
    /// Those that `options` name.
    ///
    /// # Errors
    /// When one of them is not there.
    pub(crate) fn of(options: Options) -> Result<Self, EngineError> {
        let Options { runs, only, open } = options;
        let mut below = Vec::new();
        for run in &runs {
            below.extend(paths_of(std::slice::from_ref(run))?.iter().map(|path| real(path)));
        }
        let max_bytes = open.max_memory.unwrap_or(MAX_BYTES);
        Ok(Self { given: runs, below: only.then_some(below), open, max_bytes, slots: Mutex::default() })
    }

    /// What a client is told of the tools and of the runs at hand.
    pub(crate) fn instructions(&self) -> String {
        let named: Vec<String> =
            self.given.iter().take(NAMED).map(|run| printable(&run.display().to_string())).collect();
        let more = match self.given.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let runs = match named.as_slice() {
            [] => "Name each run by its path.".into(),
            [only] => format!("Without `run`, tools look at {only}."),
            named => format!("Runs at hand: {}{more}.", named.join(", ")),
        };
        let others = if self.below.is_some() { " Only these, and what is below them, can be opened." } else { "" };
        format!(
            "Stepscope measures deep-learning jobs: recorded runs, and traces of torch.profiler. Begin with `verdict`; \
             `explain` has one of its answers in full. Times are ns, `_ratio` is a share from 0 to 1. Every number was \
             measured: quote it, and compute none of your own. {runs}{others}"
        )
    }

    /// The run called `name`: a path, or the only one at hand. It is read when it is not open, or has changed.
    ///
    /// # Errors
    /// When it may not be opened, is not there, or cannot be read.
    pub(crate) fn get(&self, name: Option<&str>) -> Result<Arc<OpenedRun>, Failure> {
        let paths = self.paths(name)?;
        let fingerprints: Vec<Fingerprint> = paths.iter().map(|path| Fingerprint::of(path)).collect();
        let slot = self.slot(paths, fingerprints);
        let read = slot.read.get_or_init(|| self.read(&slot.paths)).clone();
        if read.is_err() {
            // It may be there the next time.
            self.slots().retain(|known| !Arc::ptr_eq(known, &slot));
        }
        self.let_go();
        Ok(read?.run)
    }

    /// The program that answers SQL on the run called `name`, which has its tables; they are made when they are not kept.
    ///
    /// # Errors
    /// As [`Runs::get`]; when the program is not installed, or tables can be kept nowhere.
    pub(crate) fn sql_command(&self, name: Option<&str>) -> Result<Command, Failure> {
        let paths = self.paths(name)?;
        let mut command = sql_command(&self.open).ok_or_else(|| {
            Failure::new("queries need a program that is not installed").hint("pip install 'stepscope[sql]'")
        })?;
        let kept = kept_tables(&paths, &self.open, || OpenedRun::open(&paths, &self.open, &Progress::default()))?;
        let name = paths.first().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
        command.args(kept.told(name.as_deref().unwrap_or("run"), &paths));
        Ok(command)
    }

    fn read(&self, paths: &[PathBuf]) -> Result<Read, EngineError> {
        let begun = Instant::now();
        let run = OpenedRun::open(paths, &self.open, &Progress::default())?;
        let pause = READ_AGAIN.max(begun.elapsed() * 4);
        let again_at = run.is_live().then(|| Instant::now() + pause);
        Ok(Read { run: Arc::new(run), again_at })
    }

    /// The files and folders that `name` means, which may be opened.
    fn paths(&self, name: Option<&str>) -> Result<Vec<PathBuf>, Failure> {
        let run = match (name, self.given.as_slice()) {
            (Some(name), _) => PathBuf::from(name),
            (None, [only]) => only.clone(),
            (None, _) => return Err(Failure::new("no run was named").hint(self.hint())),
        };
        let paths = paths_of(&[&run]).map_err(|error| match error {
            EngineError::NotFound { .. } => Failure::from(error).hint(self.hint()),
            error => error.into(),
        })?;
        for path in &paths {
            // Standard input is the protocol's.
            if !stepscope_store::is_remote(path) && !path.is_file() && !path.is_dir() {
                return Err(Failure::new("neither a file nor a folder").at(path.display()).hint(self.hint()));
            }
            let real = real(path);
            if self.below.as_ref().is_some_and(|below| !below.iter().any(|folder| real.starts_with(folder))) {
                let failure = Failure::new("this server may not open it: it was started with --only");
                return Err(failure.at(path.display()).hint(self.hint()));
            }
        }
        Ok(paths)
    }

    /// What to name.
    fn hint(&self) -> String {
        let named: Vec<String> = self.given.iter().take(NAMED).map(|run| run.display().to_string()).collect();
        match named.as_slice() {
            [] => "give run: the path of a run folder or a trace file".into(),
            named => format!("runs at hand: {}", named.join(", ")),
        }
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, paths: Vec<PathBuf>, fingerprints: Vec<Fingerprint>) -> Arc<Slot> {
        let mut slots = self.slots();
        let known = slots.iter().position(|slot| slot.paths == paths).map(|at| slots.remove(at));
        let current = known.filter(|slot| slot.fingerprints == fingerprints && !slot.is_outdated());
        let slot = current.unwrap_or_else(|| Arc::new(Slot { paths, fingerprints, read: OnceLock::new() }));
        slots.push(Arc::clone(&slot));
        slot
    }

    /// Closes those that were not asked for as long, as far as there are too many.
    fn let_go(&self) {
        let mut slots = self.slots();
        let is_too_much = |slots: &[Arc<Slot>]| {
            let bytes = slots.iter().map(|slot| slot.held_bytes()).fold(0, u64::saturating_add);
            slots.len() > MAX_RUNS || bytes > self.max_bytes
        };
        while slots.len() > 1 && is_too_much(&slots) {
            slots.remove(0);
        }
    }
}

/// `path` without links and `..`.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.into())
}
