//! Snapshots: a copy of what is in the ring goes to a folder of its own, which is a run like any other.
//!
//! ```text
//! RUN/raw/….capture                                      the rings, of every process
//! RUN/kept/20260101-120000-slow_step/raw/….capture       copies, of every process
//! ```
//!
//! Who wants a copy makes the folder. Helper threads look for folders once a second and add the copy of their process:
//! so all ranks keep their window, wherever they run, as far as they share the run folder.

use crate::clock;
use crate::labels;
use crate::session::STATE;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use stepscope_capture::{CaptureFile, Snapshot};

/// Copies in one run, at most: what is worth a look is among the first.
const MAX_SNAPSHOTS: usize = 16;
/// Requests that wait for the helper thread, at most.
const MAX_REQUESTS: usize = 16;

/// Time from one look for what other processes keep to the next.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// What is called before each copy.
static BEFORE_SNAPSHOT: OnceLock<fn()> = OnceLock::new();

/// Has `f` called before each snapshot, on a thread of the recorder's own: what holds records back writes them then. It
/// should not take long. The first one that is given stays.
pub fn before_snapshot(f: fn()) {
    let _ = BEFORE_SNAPSHOT.set(f);
}

/// When the signal came, in ticks, as its handler says; 0 when none is waiting.
static SIGNALLED_TICKS: AtomicU64 = AtomicU64::new(0);

/// Requests a snapshot of the ring, in this process and all others of the run; false without a ring. Nothing is
/// waited for. The first word of `because` becomes part of the folder's name.
pub fn snapshot(because: &str) -> bool {
    let state = STATE.lock();
    let session = state.session.as_ref().filter(|session| session.is_ring());
    match session.and_then(|session| session.helper.as_ref()) {
        Some(helper) => {
            helper.request_snapshot(because);
            true
        }
        None => false,
    }
}

/// Requests a snapshot whenever this process gets `signal`; a handler that was there is called as well.
pub fn snapshot_on_signal(signal: i32) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handler is a plain function that lives as long as the process, and does what a handler may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut before: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            // Asked first: the handler may run as soon as it is there.
            if libc::sigaction(signal, std::ptr::null(), &mut before) != 0 {
                return;
            }
            if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN {
                TAKES_DETAILS.store(before.sa_flags & libc::SA_SIGINFO != 0, Ordering::Relaxed);
                HANDLER_BEFORE.store(before.sa_sigaction, Ordering::Release);
            }
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    });
}

/// The handler that was there, 0 without; and whether it takes three arguments.
static HANDLER_BEFORE: AtomicUsize = AtomicUsize::new(0);
static TAKES_DETAILS: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    SIGNALLED_TICKS.store(clock::ticks().max(1), Ordering::Release);
    let before = HANDLER_BEFORE.load(Ordering::Acquire);
    if before == 0 {
        return;
    }
    // SAFETY: what the system had as a handler of this kind.
    unsafe {
        if TAKES_DETAILS.load(Ordering::Relaxed) {
            let handler = std::mem::transmute::<
                usize,
                extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void),
            >(before);
            handler(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(before)(signal);
        }
    }
}

/// Requests for snapshots, with their reasons and moments, from any thread to the helper thread.
#[derive(Default)]
pub(crate) struct SnapshotRequests(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    requested: Vec<Request>,
    /// How many had no room, and the last of them.
    refused: u64,
    last_refused: String,
}

struct Request {
    because: String,
    at_ticks: u64,
}

impl SnapshotRequests {
    pub(crate) fn add(&self, because: &str) {
        let mut waiting = self.lock();
        if waiting.requested.len() < MAX_REQUESTS {
            waiting.requested.push(Request { because: because.into(), at_ticks: clock::ticks() });
        } else {
            waiting.refused += 1;
            waiting.last_refused = because.into();
        }
    }

    /// True when a snapshot is requested.
    pub(crate) fn are_waiting(&self) -> bool {
        SIGNALLED_TICKS.load(Ordering::Acquire) != 0 || !self.lock().requested.is_empty()
    }

    fn take(&self) -> Waiting {
        let mut waiting = std::mem::take(&mut *self.lock());
        let at_ticks = SIGNALLED_TICKS.swap(0, Ordering::AcqRel);
        if at_ticks != 0 {
            waiting.requested.push(Request { because: "signal".into(), at_ticks });
        }
        waiting
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the snapshots, on the helper thread.
pub(crate) struct Snapshotter {
    run: PathBuf,
    /// The capture's file name.
    name: OsString,
    /// Folders that have the copy, or were there before this capture.
    seen: HashSet<OsString>,
    next_look: Instant,
    /// How many requests were refused.
    refused: u64,
}

impl Snapshotter {
    pub(crate) fn new(run: &Path, capture: &Path) -> Self {
        let name = capture.file_name().unwrap_or_default().to_os_string();
        let mut snapshotter =
            Self { run: run.into(), name, seen: HashSet::new(), next_look: Instant::now(), refused: 0 };
        snapshotter.seen = snapshotter.folders().into_iter().collect();
        snapshotter
    }

    /// Writes the snapshots that were requested, here or by another process; `between` is called now and then while it
    /// copies.
    pub(crate) fn take_requested(
        &mut self,
        file: &CaptureFile,
        requests: &SnapshotRequests,
        is_last: bool,
        mut between: impl FnMut(),
    ) {
        let Waiting { requested, refused, last_refused } = requests.take();
        self.refuse(refused, &last_refused);
        for request in &requested {
            match self.create_folder(&request.because) {
                Some(folder) => self.copy_to(&folder, request, file, &mut between),
                None => self.refuse(1, &request.because),
            }
        }
        if !is_last && Instant::now() < self.next_look {
            return;
        }
        self.next_look = Instant::now() + LOOK_PERIOD;
        for folder in self.folders() {
            let because = folder.to_string_lossy().splitn(3, '-').nth(2).unwrap_or_default().to_string();
            self.copy_to(&folder, &Request { because, at_ticks: clock::ticks() }, file, &mut between);
        }
    }

    /// Notes in the run that this snapshot was requested and not written.
    fn refuse(&mut self, count: u64, because: &str) {
        if count > 0 {
            self.refused += count;
            // Of this process alone: metadata of the session would go on to its children.
            labels::append_metadata("windows_not_kept", &format!("{} {because}", self.refused));
        }
    }

    /// Makes the folder of a copy; `None` when there are too many, or it cannot be made.
    fn create_folder(&self, because: &str) -> Option<OsString> {
        let word: String = because.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').take(32).collect();
        let word = if word.is_empty() { "asked" } else { &word };
        let [before, now] = [1, 0].map(|seconds_ago| format!("{}-{word}", compact_utc(seconds_ago)));
        let path = self.run.join("kept");
        // Made by another rank a moment ago, for the same reason: one is enough for all.
        if path.join(&before).is_dir() {
            return Some(before.into());
        }
        if self.folders().len() >= MAX_SNAPSHOTS || std::fs::create_dir_all(&path).is_err() {
            return None;
        }
        match std::fs::create_dir(path.join(&now)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => None,
            _ => Some(now.into()),
        }
    }

    fn folders(&self) -> Vec<OsString> {
        let Ok(entries) = std::fs::read_dir(self.run.join("kept")) else { return Vec::new() };
        let mut folders: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
        folders.sort();
        folders
    }

    fn copy_to(&mut self, folder: &OsString, request: &Request, file: &CaptureFile, between: &mut impl FnMut()) {
        if !self.seen.insert(folder.clone()) || self.seen.len() > 4 * MAX_SNAPSHOTS {
            return;
        }
        // Nobody can be told: the run shows which processes are in the copy.
        let _ = self.copy(&self.run.join("kept").join(folder), request, file, between);
    }

    fn copy(&self, folder: &Path, request: &Request, file: &CaptureFile, between: &mut impl FnMut()) -> io::Result<()> {
        let raw = folder.join("raw");
        std::fs::create_dir_all(&raw)?;
        let manifest = folder.join("run.json");
        if !manifest.exists() {
            let beside = folder.join(format!(".run.json.{}", std::process::id()));
            std::fs::copy(self.run.join("run.json"), &beside)?;
            std::fs::rename(&beside, &manifest)?;
        }
        if let Some(f) = BEFORE_SNAPSHOT.get() {
            f();
        }
        let path = raw.join(&self.name).with_extension("new");
        file.write_snapshot(&Snapshot { path: &path, because: &request.because, at_ticks: request.at_ticks }, between)?;
        std::fs::rename(&path, raw.join(&self.name))
    }
}

/// The time some seconds ago, as `20260101-120000`.
fn compact_utc(seconds_ago: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seconds = now.saturating_sub(seconds_ago);
    let mut text = [0u8; 32];
    // SAFETY: both calls fill what they are given, and the text is longer than what the format makes.
    let len = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&(seconds as libc::time_t), &mut time);
        libc::strftime(text.as_mut_ptr().cast(), text.len(), c"%Y%m%d-%H%M%S".as_ptr(), &time)
    };
    String::from_utf8_lossy(&text[..len]).into_owned()
}
