//! Recording that begins and ends in a process that runs: the import tables of what is loaded lead to this library
//! meanwhile.

use crate::imports::Imports;
use crate::paths::Watched;
use crate::real::IS_BEFORE_ALL;
use crate::start::{Inside, begin_now, end_now, is_on};
use crate::{ends, hooks, unseen};
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use stepscope_recorder::ForkLock;

/// `None` while nothing is bound.
static BOUND: ForkLock<Option<Imports>> = ForkLock::new(None);

/// Begins to record into the run folder `run` the files in the folders `included`, all where there is none, without those
/// in `excluded`; each folder ends with a zero. 0 where calls are recorded already, or cannot be.
///
/// # Safety
/// The texts are terminated; lists end with an empty text.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code, reason = "tests are not recorded"))]
unsafe extern "C" fn stepscope_files_start(
    run: *const c_char,
    included: *const c_char,
    excluded: *const c_char,
) -> c_int {
    if is_on() {
        return 0;
    }
    let Some(_inside) = Inside::enter() else { return 0 };
    // SAFETY: the caller's promise.
    let (run, watched) = unsafe {
        let run = CStr::from_ptr(run).to_bytes();
        (Path::new(OsStr::from_bytes(run)), Watched { included: list(included), excluded: list(excluded) })
    };
    IS_BEFORE_ALL.store(false, Ordering::Relaxed);
    if begin_now(run, watched).is_err() {
        return 0;
    }
    let mut imports = Imports::new(hooks::all());
    imports.bind_all();
    // What threads moved until now was not seen.
    unseen::begin();
    *BOUND.lock() = Some(imports);
    1
}

/// Ends what [`stepscope_files_start`] began.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code, reason = "tests are not recorded"))]
unsafe extern "C" fn stepscope_files_stop() {
    let bound = BOUND.lock().take();
    let Some(mut imports) = bound else { return };
    // First: what threads move between is recorded, but not compared.
    ends::finish();
    imports.unbind_all();
    if let Some(_inside) = Inside::enter() {
        end_now();
    }
}

/// Binds what was loaded since; false where nothing is bound.
pub(crate) fn bind_new() -> bool {
    let mut bound = BOUND.lock();
    bound.iter_mut().for_each(Imports::bind_all);
    bound.is_some()
}

/// No thread is within the loader's list, whose lock a child would inherit.
pub(crate) fn before_fork() {
    std::mem::forget(BOUND.lock());
}

pub(crate) fn after_fork() {
    BOUND.force_unlock();
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
