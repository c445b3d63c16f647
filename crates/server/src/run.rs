//! A run that was named: whether it is read, how far reading is, and what the last reading gave.

use crate::discover::{key_of, name_of};
use crate::failure::Failure;
use crate::loaded_run::LoadedRun;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use stepscope_engine::{EngineError, Fingerprint, OpenedRun, Progress, Trace};

/// A pause after reading a run that is being recorded, in times of what reading took.
const PAUSE: u32 = 4;

/// A run.
pub(crate) struct Run {
    /// Its place in the list.
    pub(crate) id: usize,
    /// What names it in links: it stays when runs are added, and after a restart.
    pub(crate) key: String,
    /// Where it is read from.
    pub(crate) path: PathBuf,
    name: String,
    /// Held while its tables are made, so that they are made once.
    pub(crate) making_tables: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    loaded: Option<Arc<LoadedRun>>,
    phase: Phase,
    error: Option<EngineError>,
    fingerprint: Fingerprint,
    /// True when nothing was there at the last look, and what is shown is what was read before.
    is_gone: bool,
    /// The number of the last request for it, counted over all runs.
    last_request: u64,
    read_again_at: Option<Instant>,
}

#[derive(Default)]
enum Phase {
    /// No request yet.
    #[default]
    Waiting,
    /// A request waits for it.
    Requested,
    Reading(Progress),
    Read,
}

/// What reading gave.
pub(crate) struct Reading {
    pub(crate) run: Result<OpenedRun, EngineError>,
    /// What the input looked like before it was read.
    pub(crate) fingerprint: Fingerprint,
    pub(crate) took: Duration,
    /// The shortest pause before the next reading.
    pub(crate) pause: Duration,
}

impl Run {
    pub(crate) fn new(id: usize, path: &Path) -> Self {
        Self {
            id,
            key: key_of(path),
            path: path.into(),
            name: name_of(path),
            making_tables: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// What a person calls it: the name of its file or folder.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last reading. `request` is the number of the request, counted over all runs.
    ///
    /// # Errors
    /// When there is none: it is being read (and is, from now on, if nobody asked before), or could not be.
    pub(crate) fn loaded(&self, request: u64) -> Result<Arc<LoadedRun>, Failure> {
        let mut state = self.state();
        state.last_request = request;
        if let Some(loaded) = &state.loaded {
            return Ok(loaded.clone());
        }
        if let Some(error) = state.error.clone() {
            return Err(Failure::from(error).with_status(StatusCode::NOT_FOUND));
        }
        if matches!(state.phase, Phase::Waiting) {
            state.phase = Phase::Requested;
        }
        let failure = Failure::new(StatusCode::CONFLICT, "this run is still being read").at(self.path.display());
        Err(failure.hint("ask again in a moment; api/runs says how far it is"))
    }

    /// Requests that it be read.
    pub(crate) fn request(&self) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Waiting) {
            state.phase = Phase::Requested;
        }
    }

    /// True when a request waits for it.
    pub(crate) fn is_requested(&self) -> bool {
        matches!(self.state().phase, Phase::Requested)
    }

    /// True when it was read and looks different now, or is still being recorded, and enough time has passed.
    pub(crate) fn is_due(&self) -> bool {
        let (seen, is_live) = {
            let state = self.state();
            if !matches!(state.phase, Phase::Read) || state.read_again_at.is_some_and(|at| Instant::now() < at) {
                return false;
            }
            (state.fingerprint.clone(), state.loaded.as_ref().is_some_and(|loaded| loaded.run.is_live()))
        };
        let now = Fingerprint::of(&self.path);
        self.state().is_gone = now.is_empty();
        // What was taken away is still shown.
        !now.is_empty() && (is_live || now != seen)
    }

    /// Says that it is being read from now on.
    pub(crate) fn begin(&self, progress: Progress) {
        self.state().phase = Phase::Reading(progress);
    }

    /// Takes over what was read. What was there before stays when nothing is new, or nothing could be read. `version`
    /// gives the new version's number, above that of the last. Gives what is new.
    pub(crate) fn finish(&self, reading: Reading, version: impl FnOnce(u64) -> u64) -> Option<Arc<LoadedRun>> {
        let mut state = self.state();
        state.phase = Phase::Read;
        state.fingerprint = reading.fingerprint;
        state.read_again_at = Some(Instant::now() + reading.pause.max(reading.took * PAUSE));
        match reading.run {
            Ok(run) => {
                state.error = None;
                let last = state.loaded.as_ref();
                if last.is_none_or(|last| is_new(&last.run, &run)) {
                    let version = version(last.map_or(0, |last| last.version));
                    state.loaded = Some(Arc::new(LoadedRun::new(version, run)));
                    return state.loaded.clone();
                }
            }
            Err(error) => state.error = Some(error),
        }
        None
    }

    /// About how much memory it takes, and the number of the last request for it.
    pub(crate) fn weight(&self) -> (u64, u64) {
        let state = self.state();
        (state.loaded.as_ref().map_or(0, |loaded| loaded.run.contents().held_bytes), state.last_request)
    }

    /// Lets go of what was read, until somebody asks again.
    pub(crate) fn unload(&self) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Read) {
            (state.loaded, state.phase, state.read_again_at) = (None, Phase::Waiting, None);
        }
    }

    /// The run in the list of runs.
    pub(crate) fn row(&self) -> Value {
        let state = self.state();
        let loaded = state.loaded.as_ref();
        let word = match (&state.phase, loaded, &state.error) {
            (_, Some(_), _) => "ready",
            (Phase::Read, None, Some(_)) => "failed",
            (Phase::Waiting, ..) => "waiting",
            _ => "loading",
        };
        let (done, total) = match &state.phase {
            Phase::Reading(progress) => (progress.done_bytes(), progress.total_bytes()),
            _ => (0, 0),
        };
        let error = state.error.as_ref();
        json!({
            "id": self.id,
            "key": self.key,
            "name": self.name,
            "path": self.path.display().to_string(),
            "state": word,
            "progress": { "done_bytes": done, "total_bytes": total },
            "error": error.map(|error| json!({
                "what": error.to_string(), "where": error.place(), "hint": error.hint(),
            })),
            "version": loaded.map(|loaded| loaded.version),
            "is_gone": state.is_gone,
            "is_live": loaded.is_some_and(|loaded| loaded.run.is_live()),
        })
    }
}

/// Whether a later reading of an input says anything else.
fn is_new(last: &OpenedRun, now: &OpenedRun) -> bool {
    let times = |trace: &Trace| (trace.start_unix_ns, trace.span());
    let (before, after) = (last.trace(), now.trace());
    last.contents() != now.contents()
        || times(before) != times(after)
        || before.findings != after.findings
        || before.steps != after.steps
}
