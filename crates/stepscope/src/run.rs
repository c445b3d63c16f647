//! Starting and ending a recording, and its steps.

use crate::{Schedule, process_metadata, recorder, scope};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Names the run that `stepscope record`, or a parent process, records into.
const RUN_VARIABLE: &str = "STEPSCOPE_RUN";

/// True while scopes are recorded: between `start` and the end, in active steps.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// True from a start to the end of its run.
static IS_STARTED: AtomicBool = AtomicBool::new(false);
/// The number of the step that runs now.
static STEP: AtomicU64 = AtomicU64::new(0);
/// The schedule of the run: skip_first, wait, warmup, active, repeat; 0 active steps: none. Atomics and no lock, since
/// a forked child may step at once, whatever the parent's threads were doing.
static SCHEDULE: [AtomicU32; 5] = [const { AtomicU32::new(0) }; 5];

/// Why nothing is recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordError {
    reason: String,
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for RecordError {}

/// Describes a recording into the run folder `run`; [`Recording::start`] begins it. All processes of a job name the
/// same folder.
///
/// Below `stepscope record`, and in processes that a recording program starts, the run is the one that the environment
/// variable `STEPSCOPE_RUN` names, and `run` is not used.
pub fn record(run: impl Into<PathBuf>) -> Recording {
    Recording { run: run.into(), schedule: None, metadata: Vec::new() }
}

/// A recording that has not begun.
#[derive(Clone, Debug)]
#[must_use = "nothing is recorded before `start`"]
pub struct Recording {
    run: PathBuf,
    schedule: Option<Schedule>,
    metadata: Vec<(String, String)>,
}

impl Recording {
    /// Records the steps that `schedule` says; without one everything is recorded.
    pub fn schedule(self, schedule: Schedule) -> Self {
        Self { schedule: Some(schedule), ..self }
    }

    /// The process's rank among `world_size`. Without it the launcher's variables say so: `RANK` and `WORLD_SIZE`, or
    /// those of Lightning, MPI, jsrun, Flux or Slurm.
    pub fn rank(self, rank: u32, world_size: u32) -> Self {
        self.fact("rank", &rank.to_string()).fact("world_size", &world_size.to_string())
    }

    /// A fact about this process, such as a version; reports show it.
    pub fn fact(mut self, key: &str, value: &str) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// Begins: step 0 runs now.
    ///
    /// # Errors
    /// When this process records already, the run folder cannot be written, or this system is not Linux. The program
    /// can go on: everything else of this crate then does nothing.
    pub fn start(self) -> Result<Run, RecordError> {
        let failed = |reason: String| RecordError { reason };
        if IS_STARTED.swap(true, Ordering::AcqRel) {
            return Err(failed("this process records already".into()));
        }
        let run = std::env::var_os(RUN_VARIABLE).filter(|run| !run.is_empty()).map_or(self.run, PathBuf::from);
        let opened = open(&run, self.metadata).map_err(failed);
        let (path, is_owner) = opened.inspect_err(|_| IS_STARTED.store(false, Ordering::Release))?;
        let fields = self.schedule.map_or([0; 5], Schedule::to_fields);
        SCHEDULE.iter().zip(fields).for_each(|(at, field)| at.store(field, Ordering::Relaxed));
        STEP.store(0, Ordering::Release);
        change_step(None, 0);
        Ok(Run { path, is_owner, pid: std::process::id() })
    }
}

/// Opens the capture; gives the run's absolute path, and whether the capture is new.
fn open(run: &Path, metadata: Vec<(String, String)>) -> Result<(PathBuf, bool), String> {
    let run = std::path::absolute(run).map_err(|error| format!("cannot name {}: {error}", run.display()))?;
    create_run(&run).map_err(|error| format!("cannot make the run folder {}: {error}", run.display()))?;
    let metadata: Vec<(String, String)> = process_metadata::of_process().into_iter().chain(metadata).collect();
    let opened = recorder::open(&run, &metadata)?;
    recorder::close_at_exit();
    Ok((run, opened.is_new))
}

/// Makes the run folder, unless another process has.
fn create_run(run: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(run)?;
    let manifest = run.join("run.json");
    if manifest.exists() {
        return Ok(());
    }
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let text = format!(
        "{{\n  \"format\": \"stepscope-run\",\n  \"version\": 1,\n  \"created_unix_ns\": {created},\n  \"command\": []\n}}\n"
    );
    let beside = run.join(format!("run.json.{}.new", std::process::id()));
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, manifest)
}

/// A recording under way; dropping it ends it. When it is never dropped, the end of the process ends it.
#[derive(Debug)]
#[must_use = "recording ends when this value is dropped"]
pub struct Run {
    path: PathBuf,
    /// False when somebody else opened the capture: it is theirs to close.
    is_owner: bool,
    pid: u32,
}

impl Run {
    /// The run folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the recording: what was recorded is complete on disk.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let step = STEP.load(Ordering::Acquire);
        // Without a schedule what ran since the last `step` is no whole step: left open, it counts as cut. In a forked
        // child the step is the parent's.
        if schedule().is_some() && self.pid == std::process::id() {
            end_step(step);
        }
        if let Some(cycle) = cycle_of(step).filter(|_| IS_ON.swap(false, Ordering::AcqRel)) {
            recorder::set_window(false, cycle);
        }
        if self.is_owner {
            recorder::close();
        }
        IS_STARTED.store(false, Ordering::Release);
    }
}

/// True while scopes are recorded: a run has begun, and its schedule wants this step.
#[inline]
pub fn is_recording() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Says that a step has ended and the next one begins. Nothing happens while nothing is started.
///
/// The program's main loop calls it; the loop may move from thread to thread, as tasks of an async runtime do. Without
/// a schedule steps are labelled from the first call on.
pub fn step() {
    if !IS_STARTED.load(Ordering::Acquire) {
        return;
    }
    let ended = STEP.fetch_add(1, Ordering::AcqRel);
    end_step(ended);
    change_step(Some(ended), ended + 1);
}

/// Records a fact about this process; the last value of a key holds.
pub fn set_fact(key: &str, value: &str) {
    if IS_STARTED.load(Ordering::Acquire) {
        recorder::set_metadata(key, value);
    }
}

fn end_step(number: u64) {
    if is_labelled(number) {
        recorder::step_end(number as i64);
    }
}

/// Switches recording as the schedule says, and begins step `next`.
fn change_step(ended: Option<u64>, next: u64) {
    let (before, now) = (ended.and_then(cycle_of), cycle_of(next));
    if let Some(cycle) = before.filter(|_| before != now) {
        IS_ON.store(false, Ordering::Release);
        recorder::set_window(false, cycle);
    }
    if let Some(cycle) = now.filter(|_| before != now) {
        recorder::set_window(true, cycle);
        IS_ON.store(true, Ordering::Release);
    }
    if is_labelled(next) {
        scope::introduce_thread();
        recorder::step_begin(next as i64);
    }
}

/// True when step `number` is recorded as one. Without a schedule only a first `step` shows that there are steps.
fn is_labelled(number: u64) -> bool {
    cycle_of(number).is_some() && (number > 0 || schedule().is_some())
}

fn cycle_of(step: u64) -> Option<u64> {
    schedule().map_or(Some(0), |schedule| schedule.cycle(step))
}

fn schedule() -> Option<Schedule> {
    Schedule::from_fields(SCHEDULE.each_ref().map(|field| field.load(Ordering::Relaxed)))
}
