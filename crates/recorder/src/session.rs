//! The capture of this process: opened, handed to threads by segments, closed, and opened anew in a forked child.

use crate::inputs::InputsTable;
use crate::lock::ForkLock;
use crate::names::NameTable;
use crate::ring::{FreeSegments, Ring};
use crate::snapshot::Snapshotter;
use crate::{clock, fork, fork_state, helper, labels};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;
use stepscope_capture::layout::{Header, Tag};
use stepscope_capture::{CaptureFile, NewCapture, ProcessIdentity};

/// Changes whenever buffers must be renewed: a capture was opened or closed, or this is a forked child.
pub(crate) static EPOCH: AtomicU64 = AtomicU64::new(1);
/// The header of the open capture, where dropped records are counted; null without one.
static HEADER: AtomicPtr<Header> = AtomicPtr::new(std::ptr::null_mut());
pub(crate) static STATE: ForkLock<State> = ForkLock::new(State { session: None, inherited: None, last_error: None });

/// What the process knows about its recording.
pub(crate) struct State {
    pub(crate) session: Option<Session>,
    /// In a forked child: what its capture will be opened with, once it records something.
    pub(crate) inherited: Option<Plan>,
    pub(crate) last_error: Option<String>,
}

/// What a capture is opened with.
#[derive(Clone)]
pub(crate) struct Plan {
    run: PathBuf,
    metadata: BTreeMap<String, String>,
    /// How much of the past is kept; `None`: everything.
    ring: Option<Duration>,
}

/// An open capture.
pub(crate) struct Session {
    pub(crate) file: Arc<CaptureFile>,
    pub(crate) path: PathBuf,
    pub(crate) ready: Vec<Segment>,
    pub(crate) partial: Vec<Segment>,
    pub(crate) retired: Vec<Segment>,
    pub(crate) free: FreeSegments,
    pub(crate) names: NameTable,
    pub(crate) inputs: InputsTable,
    pub(crate) next_ordinal: u32,
    pub(crate) helper: Option<helper::Helper>,
    plan: Plan,
}

/// The unwritten part of a mapped segment.
pub(crate) struct Segment {
    pub(crate) base: NonNull<u8>,
    pub(crate) cursor: NonNull<u32>,
    /// Of one that an ended thread left: when that was.
    pub(crate) left_ns: i64,
}

// SAFETY: a segment belongs to the holder of this value; nobody else touches its bytes.
unsafe impl Send for Segment {}

impl Segment {
    pub(crate) fn unmap(self) {
        // SAFETY: the value is consumed, so nobody uses the mapping any more.
        unsafe { CaptureFile::unmap_segment(self.base) };
    }
}

/// A capture that was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// The capture's file.
    pub path: PathBuf,
    /// False when a capture was open already; `path` is then that one.
    pub is_new: bool,
}

/// Opens this process's capture below the run folder `run`, which must exist, with `metadata` about the process.
///
/// # Errors
/// One line that says what could not be created, and why.
pub fn open(run: &Path, metadata: &[(String, String)]) -> Result<Opened, String> {
    open_ring(run, metadata, None)
}

/// As [`open`]; with a `ring`, only that much of the past is kept.
///
/// # Errors
/// As [`open`].
pub fn open_ring(run: &Path, metadata: &[(String, String)], ring: Option<Duration>) -> Result<Opened, String> {
    clock::kind();
    fork::install();
    let plan = Plan { run: run.into(), metadata: metadata.iter().cloned().collect(), ring };
    let path = {
        let mut state = STATE.lock();
        if let Some(session) = &state.session {
            return Ok(Opened { path: session.path.clone(), is_new: false });
        }
        state.inherited = None;
        start(&mut state, plan)?
    };
    Ok(Opened { path, is_new: true })
}

/// Has this process' capture opened as [`open_ring`] does as soon as something is recorded, as a forked child's is.
pub fn open_when_needed(run: &Path, metadata: &[(String, String)], ring: Option<Duration>) {
    clock::kind();
    fork::install();
    let mut state = STATE.lock();
    if state.session.is_none() {
        state.inherited = Some(Plan { run: run.into(), metadata: metadata.iter().cloned().collect(), ring });
        EPOCH.fetch_add(1, Ordering::Release);
    }
}

/// True while a capture is open, or will be as soon as this forked child records something.
pub fn is_open() -> bool {
    let state = STATE.lock();
    state.session.is_some() || state.inherited.is_some()
}

/// The last thing that went wrong where nobody could be told.
pub fn last_error() -> Option<String> {
    STATE.lock().last_error.clone()
}

/// Records a metadata entry of the process; the last value of a key holds. Forked children inherit it.
pub fn set_metadata(key: &str, value: &str) {
    {
        let mut state = STATE.lock();
        let State { session, inherited, .. } = &mut *state;
        let plan = session.as_mut().map(|session| &mut session.plan).or(inherited.as_mut());
        plan.map(|plan| plan.metadata.insert(key.into(), value.into()));
    }
    labels::append_metadata(key, value);
}

/// As [`set_metadata`], without opening a capture that is not open yet.
pub fn learn_metadata(key: &str, value: &str) {
    let mut state = STATE.lock();
    match &mut state.inherited {
        Some(plan) => _ = plan.metadata.insert(key.into(), value.into()),
        None => {
            drop(state);
            set_metadata(key, value);
        }
    }
}

/// Records a metadata entry of this process alone, which its forked children do not have.
pub fn set_own_metadata(key: &str, value: &str) {
    labels::append_metadata(key, value);
}

/// Records that a schedule switched recording on or off in `cycle`.
pub fn set_window(is_on: bool, cycle: u64) {
    if !is_on {
        // The window may be read now, while the capture is open.
        labels::append_clock_unless_recent();
    }
    labels::append(Tag::Window, &[u64::from(is_on), cycle], &[]);
}

/// Closes the capture, when one is open; what threads record afterwards is dropped.
pub fn close() {
    if STATE.lock().session.is_none() {
        STATE.lock().inherited = None;
        return;
    }
    // First, and outside the lock: what it still has to say belongs into the capture.
    let helper = STATE.lock().session.as_mut().and_then(|session| session.helper.take());
    helper.into_iter().for_each(helper::Helper::stop);
    labels::append_clock();
    let closed = {
        let mut state = STATE.lock();
        let closed = state.session.take();
        EPOCH.fetch_add(1, Ordering::Release);
        HEADER.store(std::ptr::null_mut(), Ordering::Release);
        closed
    };
    // Somebody else may have closed it meanwhile.
    let Some(session) = closed else { return };
    session.helper.into_iter().for_each(helper::Helper::stop);
    session.file.header().closed.store(1, Ordering::Release);
    [session.ready, session.partial, session.retired].into_iter().flatten().for_each(Segment::unmap);
}

/// Closes the capture when the process ends in good order, also by `exit`; registered once a process.
pub fn close_at_exit() {
    extern "C" fn close_now() {
        close();
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler lives as long as the process: this library is never unloaded.
        unsafe { libc::atexit(close_now) };
    });
}

/// Creates the capture file and its helper thread.
fn start(state: &mut State, plan: Plan) -> Result<PathBuf, String> {
    let opened = clock::now();
    let process = ProcessIdentity::of_self();
    let folder = plan.run.join("raw");
    let path = folder.join(format!("{}-{}.capture", process.pid, opened.unix_ns));
    let cannot = |error: std::io::Error| format!("cannot create {}: {error}", folder.display());
    if !plan.run.is_dir() {
        return Err(format!("the run folder is gone: {}", plan.run.display()));
    }
    std::fs::create_dir_all(&folder).map_err(cannot)?;
    let parent_pid = u64::from(std::os::unix::process::parent_id());
    let ring_ns = plan.ring.map_or(0, |ring| u64::try_from(ring.as_nanos()).unwrap_or(u64::MAX));
    let new = NewCapture { process, parent_pid, clock_kind: clock::kind(), opened, ring_ns };
    let file = Arc::new(CaptureFile::create(&path, &new).map_err(|error| error.to_string())?);
    let ring = plan.ring.map(|window| (Ring::new(window), Snapshotter::new(&plan.run, &path)));
    let helper = helper::Helper::start(Arc::clone(&file), ring);
    if plan.ring.is_some() && helper.is_none() {
        let _ = std::fs::remove_file(&path);
        return Err("cannot start the thread that keeps the ring small".into());
    }
    HEADER.store(std::ptr::from_ref(file.header()).cast_mut(), Ordering::Release);
    fork_state::begin();
    EPOCH.fetch_add(1, Ordering::Release);
    state.session = Some(Session {
        helper,
        file,
        path: path.clone(),
        ready: Vec::new(),
        partial: Vec::new(),
        retired: Vec::new(),
        free: FreeSegments::default(),
        names: NameTable::default(),
        inputs: InputsTable::default(),
        next_ordinal: 0,
        plan,
    });
    // What the helper said before this moment was not heard.
    labels::forget_clock();
    Ok(path)
}

impl State {
    /// In a forked child: opens the capture that it inherited the plan of.
    pub(crate) fn open_inherited(&mut self) {
        let opened = self.inherited.take().map(|plan| start(self, plan));
        if let Some(Err(error)) = opened {
            self.last_error = Some(error);
        }
    }

    /// In a forked child: the parent's capture is not ours to write.
    pub(crate) fn become_child(&mut self) {
        if let Some(session) = self.session.take() {
            self.inherited = Some(session.plan.clone());
            // The parent's segments and helper thread: the former must not be written, the latter does not exist here.
            std::mem::forget((session.helper, session.ready, session.partial, session.retired));
        }
        EPOCH.fetch_add(1, Ordering::Release);
        HEADER.store(std::ptr::null_mut(), Ordering::Release);
    }
}

impl Session {
    /// True when only the last moments are kept.
    pub(crate) fn is_ring(&self) -> bool {
        self.plan.ring.is_some()
    }

    /// Metadata to write at the beginning of the capture.
    pub(crate) fn metadata(&self) -> Vec<(String, String)> {
        self.plan.metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// Counts a record that cannot be written.
#[cold]
pub(crate) fn count_dropped() {
    let header = HEADER.load(Ordering::Acquire);
    if !header.is_null() {
        // SAFETY: headers are never unmapped.
        unsafe { &*header }.dropped.fetch_add(1, Ordering::Relaxed);
    }
}
