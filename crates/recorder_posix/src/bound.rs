//! Recording that begins and ends in a process that runs: the import tables of what is loaded lead to this library
//! meanwhile.

use crate::imports::Imports;
use crate::real::IS_BEFORE_ALL;
use crate::start::{Inside, begin_now, end_now, is_on, kept, watched};
use crate::{ends, hooks, unseen};
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use stepscope_recorder::ForkLock;

/// What was found in the process; `None` until calls are recorded for the first time.
static IMPORTS: ForkLock<Option<Imports>> = ForkLock::new(None);

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
    IMPORTS.lock().get_or_insert_with(|| Imports::new(hooks::all())).bind_all();
    // What threads moved until now was not seen.
    unseen::begin();
    1
}

/// Ends what [`stepscope_files_start`] began.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code, reason = "tests are not recorded"))]
unsafe extern "C" fn stepscope_files_stop() {
    if !IMPORTS.lock().as_mut().is_some_and(Imports::bind_no_more) {
        return;
    }
    // First: what threads move between is recorded, but not compared.
    ends::finish();
    IMPORTS.lock().iter_mut().for_each(Imports::unbind_all);
    if let Some(_inside) = Inside::enter() {
        end_now();
    }
}

/// Binds what was loaded since; false where nothing is bound.
pub(crate) fn bind_new() -> bool {
    let mut imports = IMPORTS.lock();
    let Some(imports) = imports.as_mut().filter(|imports| imports.is_bound()) else { return false };
    imports.bind_new();
    true
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
