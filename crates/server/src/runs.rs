//! Every run that is served, and the thread that reads them: those that somebody waits for, those that have changed,
//! and those that appear in a folder.

use crate::discover;
use crate::failure::Failure;
use crate::loaded_run::LoadedRun;
use crate::run::{Reading, Run};
use serde_json::Value;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stepscope_engine::{EngineError, Fingerprint, OpenOptions, OpenedRun, Progress};
use tokio::sync::watch;

/// How often the list of runs is compared with the last one that was published.
const TICK: Duration = Duration::from_millis(200);
/// Traces that are kept in memory, when several were named: those asked for last, as many as fit, and one in any case.
const MAX_TRACES_BYTES: u64 = 8 << 30;

/// The runs, and the list of them that is published.
pub(crate) struct Runs {
    runs: Mutex<Vec<Arc<Run>>>,
    inputs: Vec<PathBuf>,
    /// Those of them that are folders of several runs, in which more may appear; what a folder is, it is from the start.
    collections: Vec<PathBuf>,
    open: OpenOptions,
    /// Counts requests, to know which run was requested last.
    request_count: AtomicU64,
    list: watch::Sender<Arc<str>>,
    wake: Mutex<Sender<()>>,
    watch_every: Option<Duration>,
    reread_after: Duration,
}

impl Runs {
    /// The runs that `inputs` name; reading begins. It ends when the last other holder lets go.
    pub(crate) fn start(
        inputs: Vec<PathBuf>,
        open: OpenOptions,
        watch_every: Option<Duration>,
        reread_after: Duration,
    ) -> std::io::Result<Arc<Self>> {
        let (wake, woken) = channel();
        let (list, _) = watch::channel(Arc::from("[]"));
        let is_collection = |input: &&PathBuf| discover::is_collection(input, &open.joining);
        let runs = Arc::new(Self {
            runs: Mutex::default(),
            collections: inputs.iter().filter(is_collection).cloned().collect(),
            inputs,
            open,
            request_count: AtomicU64::new(0),
            list,
            wake: Mutex::new(wake),
            watch_every,
            reread_after,
        });
        runs.discover_new();
        let all = runs.all();
        // What was named by itself is wanted; of a folder, what somebody asks for.
        let is_named = |run: &&Arc<Run>| runs.inputs.contains(&run.path) || all.len() == 1;
        all.iter().filter(is_named).for_each(|run| run.request());
        runs.publish();
        let watched = Arc::downgrade(&runs);
        thread::Builder::new().name("stepscope runs".into()).spawn(move || {
            let mut last_look = Instant::now();
            while wait(&woken) {
                let Some(runs) = watched.upgrade() else { return };
                runs.poll(&mut last_look);
            }
        })?;
        Ok(runs)
    }

    fn all(&self) -> Vec<Arc<Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How the files of an input become one run.
    pub(crate) fn open_options(&self) -> &OpenOptions {
        &self.open
    }

    /// The last reading of the run with this number or key.
    ///
    /// # Errors
    /// When there is no such run, or it is not read yet: then it will be.
    pub(crate) fn loaded(&self, id: &str) -> Result<(Arc<Run>, Arc<LoadedRun>), Failure> {
        let all = self.all();
        let found = match id.parse::<usize>() {
            Ok(number) => all.get(number),
            Err(_) => all.iter().find(|run| run.key == id),
        };
        let unknown = || {
            let hint = match all.len() {
                0 => "there are none".to_string(),
                count => format!("runs are numbered from 0 to {}; api/runs lists them with their keys", count - 1),
            };
            Failure::not_found("there is no such run").hint(hint)
        };
        let run = found.ok_or_else(unknown)?;
        let loaded = run.loaded(self.request_count.fetch_add(1, Ordering::Relaxed) + 1);
        if loaded.is_err() && run.is_requested() {
            let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody is there to wake while the server ends.
            let _ = wake.send(());
        }
        Ok((run.clone(), loaded?))
    }

    /// The list of runs as JSON, and whatever it becomes.
    pub(crate) fn list(&self) -> watch::Receiver<Arc<str>> {
        self.publish();
        self.list.subscribe()
    }

    /// Publishes the list when it has changed.
    fn publish(&self) {
        let rows = Value::Array(self.all().iter().map(|run| run.row()).collect()).to_string();
        self.list.send_if_modified(|list| {
            let has_changed = **list != *rows;
            if has_changed {
                *list = Arc::from(rows);
            }
            has_changed
        });
    }

    /// One look at everything; at most one run is being read at a time.
    fn poll(self: &Arc<Self>, last_look: &mut Instant) {
        if self.watch_every.is_some_and(|every| last_look.elapsed() >= every) {
            self.discover_new();
            *last_look = Instant::now();
            if let Some(due) = self.all().into_iter().find(|run| run.is_due()) {
                self.read(&due);
            }
        }
        while let Some(requested) = self.all().into_iter().find(|run| run.is_requested()) {
            self.read(&requested);
        }
        self.publish();
    }

    /// Adds what appeared in folders.
    fn discover_new(&self) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known: HashSet<PathBuf> = runs.iter().map(|run| run.path.clone()).collect();
        let is_first = runs.is_empty();
        let inputs = self.inputs.iter().map(|input| (input, self.collections.contains(input)));
        let found: Vec<PathBuf> = inputs
            .filter(|(_, is_collection)| is_first || *is_collection)
            .flat_map(|(input, is_collection)| match is_collection {
                true => discover::runs_in(input),
                false => vec![input.clone()],
            })
            .collect();
        for path in found.into_iter().filter(|path| known.insert(path.clone())) {
            // An empty folder stands for itself until there is something in it.
            let id = runs.len();
            runs.push(Arc::new(Run::new(id, &path)));
        }
    }

    /// Reads a run, and publishes its progress meanwhile.
    fn read(self: &Arc<Self>, run: &Arc<Run>) {
        let progress = Progress::default();
        run.begin(progress.clone());
        self.publish();
        let begun = Instant::now();
        let fingerprint = Fingerprint::of(&run.path);
        let opened = thread::scope(|scope| {
            // A defect in a reader must not end the server.
            let reading =
                scope.spawn(|| catch_unwind(AssertUnwindSafe(|| OpenedRun::open(&[&run.path], &self.open, &progress))));
            while !reading.is_finished() {
                thread::sleep(TICK.min(begun.elapsed() / 4 + Duration::from_millis(1)));
                self.publish();
            }
            reading.join().and_then(|read| read).unwrap_or_else(|_| Err(defect(run)))
        });
        let pause = self.reread_after;
        let new = run.finish(Reading { run: opened, fingerprint, took: begun.elapsed(), pause }, next_version);
        self.unload_old(run);
        self.publish();
        new.iter().for_each(|loaded| loaded.prepare());
    }

    /// Lets go of traces that nobody asked for lately, where all together are too large. `last` stays.
    fn unload_old(&self, last: &Arc<Run>) {
        let mut runs: Vec<(u64, u64, Arc<Run>)> = self
            .all()
            .into_iter()
            .filter(|run| !Arc::ptr_eq(run, last))
            .map(|run| {
                let (bytes, last_request) = run.weight();
                (last_request, bytes, run)
            })
            .collect();
        runs.sort_by_key(|(last_request, ..)| *last_request);
        let mut total = last.weight().0 + runs.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
        for (_, bytes, run) in runs.into_iter().filter(|(_, bytes, _)| *bytes > 0) {
            if total <= MAX_TRACES_BYTES {
                return;
            }
            run.unload();
            total -= bytes;
        }
    }
}

/// Waits for the next look; false when the server has ended.
fn wait(woken: &Receiver<()>) -> bool {
    !matches!(woken.recv_timeout(TICK), Err(RecvTimeoutError::Disconnected))
}

/// Above `last`, and above that of any server before: what a browser has kept of another's version is never taken for
/// this one's.
fn next_version(last: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(now).unwrap_or(0).max(last + 1)
}

fn defect(run: &Run) -> EngineError {
    EngineError::Import {
        what: "reading met a defect of the program".into(),
        path: run.path.clone(),
        hint: Some("please report it, with what the command wrote".into()),
    }
}
