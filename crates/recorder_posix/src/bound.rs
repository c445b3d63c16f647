//! The import tables of what is loaded lead to this library: all of them while recording is on that began in a process
//! that runs, those of libraries that the program may load in any other.

use crate::imports::Imports;
use crate::real::{IS_BEFORE_ALL, find_all};
use crate::start::{Inside, begin_now, end_now, is_on, kept, watched};
use crate::{ends, hooks, unseen};
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use stepscope_recorder::ForkLock;

/// What was found in the process; `None` until calls are recorded for the first time.
static IMPORTS: ForkLock<Option<Imports>> = ForkLock::new(None);
/// Whether recording began in a process that runs.
static IS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Binds what the system does not find here, in a process that has this library before all others. What it loads later is
/// bound as it is found.
pub(crate) fn bind_libraries() {
    IMPORTS.lock().get_or_insert_with(|| Imports::new(hooks::of_libraries())).bind_all();
}

/// Begins to record into the run folder `run` the files that the environment's variables choose; where they name none,
/// without those in the folders `left_out`, each of which ends with a zero. Unless `ring_ns` is 0, only that
/// much of the past is kept. 0 where calls are recorded already, or cannot be.
///
/// # Safety
/// The texts are terminated; the list ends with an empty text.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code, reason = "tests are not recorded"))]
unsafe extern "C" fn stepscope_files_start(run: *const c_char, left_out: *const c_char, ring_ns: u64) -> c_int {
    if is_on() {
        return 0;
    }
    let Some(_inside) = Inside::enter() else { return 0 };
    // SAFETY: the caller's promise.
    let (run, left_out) = unsafe { (CStr::from_ptr(run).to_bytes(), list(left_out)) };
    let mut watched = watched();
    if watched.included.is_empty() {
        watched.excluded.extend(left_out);
    }
    IS_BEFORE_ALL.store(false, Ordering::Relaxed);
    if begin_now(Path::new(OsStr::from_bytes(run)), watched, kept(ring_ns)).is_err() {
        return 0;
    }
    find_all();
    IMPORTS.lock().get_or_insert_with(|| Imports::new(hooks::all())).bind_all();
    IS_BEGUN.store(true, Ordering::Relaxed);
    // What threads moved until now was not seen.
    unseen::begin();
    1
}

/// Ends what [`stepscope_files_start`] began.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code, reason = "tests are not recorded"))]
unsafe extern "C" fn stepscope_files_stop() {
    if !IS_BEGUN.swap(false, Ordering::Relaxed) {
        return;
    }
    IMPORTS.lock().iter_mut().for_each(Imports::bind_no_more);
    // First: what threads move between is recorded, but not compared.
    ends::finish();
    IMPORTS.lock().iter_mut().for_each(Imports::unbind_all);
    if let Some(_inside) = Inside::enter() {
        end_now();
    }
}

/// Time from one look at what was loaded to the next: while something is being loaded, while it is about to be, and
/// otherwise. What is not seen to be about to be loaded, as where another tool asks the loader for it, is found then.
const WHILE_LOADING: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_millis(5);
const OTHERWISE: Duration = Duration::from_millis(if cfg!(target_arch = "x86_64") { 200 } else { 20 });
const NEVER: Duration = Duration::from_secs(24 * 3_600);

/// How often to look again soon.
static SOON_LOOKS: AtomicU32 = AtomicU32::new(0);
const MOST_SOON: u32 = 20;

/// Something was loaded, and no helper thread is there yet that looks.
static IS_LEFT: AtomicBool = AtomicBool::new(false);

/// Something is about to be loaded.
#[cfg(target_arch = "x86_64")]
pub(crate) fn look_soon() {
    SOON_LOOKS.store(MOST_SOON, Ordering::Relaxed);
    IS_LEFT.store(!stepscope_recorder::run_helper_task(), Ordering::Relaxed);
}

/// The calling thread has time: it looks, where no other does.
#[inline(always)]
pub(crate) fn look_now() {
    if IS_LEFT.load(Ordering::Relaxed) {
        look();
    }
}

#[cold]
fn look() {
    let Some(_inside) = Inside::enter() else { return };
    let is_again = bind_new() == WHILE_LOADING;
    IS_LEFT.store(is_again, Ordering::Relaxed);
}

/// Binds what was loaded since; when to do so again.
pub(crate) fn bind_new() -> Duration {
    let mut imports = IMPORTS.lock();
    let Some(imports) = imports.as_mut().filter(|imports| imports.is_bound()) else { return NEVER };
    if imports.bind_new() {
        return WHILE_LOADING;
    }
    let less = |looks: u32| looks.checked_sub(1);
    let is_soon = SOON_LOOKS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
    if is_soon { SOON } else { OTHERWISE }
}

/// No thread is within the loader's list, whose lock a child would inherit.
pub(crate) fn before_fork() {
    std::mem::forget(IMPORTS.lock());
}

pub(crate) fn after_fork() {
    IMPORTS.force_unlock();
}

/// # Safety
/// As of [`stepscope_files_start`].
unsafe fn list(texts: *const c_char) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut at = texts;
    loop {
        // SAFETY: the caller's promise: an empty text ends the list.
        let text = unsafe { CStr::from_ptr(at) }.to_bytes();
        if text.is_empty() {
            return found;
        }
        found.push(text.to_vec());
        // SAFETY: the next one.
        at = unsafe { at.add(text.len() + 1) };
    }
}
