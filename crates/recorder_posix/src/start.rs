//! When recording begins, and whether the calling thread is inside the recorder.

use crate::open_files;
use crate::paths::{Watched, watch};
use crate::unseen;
use std::cell::Cell;
use std::ffi::{CStr, OsString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The variables that tell a process what to record, and where its run is.
const RUN: &str = "STEPSCOPE_RUN";
const INCLUDE: &str = "STEPSCOPE_IO_INCLUDE";
const EXCLUDE: &str = "STEPSCOPE_IO_EXCLUDE";

static IS_ON: AtomicBool = AtomicBool::new(false);

/// The process that this memory belongs to.
static PID: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether calls are recorded.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Whether this is another process than the one whose memory it uses: a child of `vfork`, which must leave that as it is.
#[inline]
pub(crate) fn is_vforked() -> bool {
    // SAFETY: a plain system call.
    let pid = unsafe { libc::syscall(libc::SYS_getpid) };
    pid != PID.load(Ordering::Relaxed)
}

/// The calling thread is inside the recorder: what it calls meanwhile is not recorded.
pub(crate) struct Inside;

impl Inside {
    /// `None` where it is already.
    #[inline(always)]
    pub(crate) fn enter() -> Option<Self> {
        // Made only where it is entered: dropped, it would leave.
        (!IS_INSIDE.replace(true)).then(|| Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

/// Called by the loader, once.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn() = at_load;

#[cfg_attr(test, expect(dead_code, reason = "tests are not recorded"))]
unsafe extern "C" fn at_load() {
    let Some(_inside) = Inside::enter() else { return };
    let Some(run) = std::env::var_os(RUN).filter(|run| !run.is_empty()).map(PathBuf::from) else { return };
    // The run's own files, whichever part of the recorder writes them.
    let mut excluded = folders(EXCLUDE);
    excluded.extend([run.clone().into_os_string().into_vec()]);
    excluded.extend(run.canonicalize().map(|run| run.into_os_string().into_vec()));
    watch(Watched { included: folders(INCLUDE), excluded });
    // Before the recorder has its own: a thread that opens a capture holds the recorder's lock, and waits for that of faults.
    crate::faults::watch();
    stepscope_recorder::open_when_needed(&run, &facts());
    // SAFETY: plain functions of this library, which is never unloaded.
    unsafe { libc::pthread_atfork(None, Some(forked), Some(in_child)) };
    note_pid();
    unseen::begin();
    IS_ON.store(true, Ordering::Release);
}

fn note_pid() {
    // SAFETY: a plain system call.
    PID.store(unsafe { libc::syscall(libc::SYS_getpid) }, Ordering::Relaxed);
}

unsafe extern "C" fn forked() {
    note_pid();
    open_files::note_fork();
}

unsafe extern "C" fn in_child() {
    // SAFETY: a function of this library.
    unsafe { forked() };
    unseen::forget();
}

/// The folders in a variable, with colons between them.
fn folders(variable: &str) -> Vec<Vec<u8>> {
    let value = std::env::var_os(variable).unwrap_or_default().into_vec();
    value.split(|byte| *byte == b':').filter(|folder| !folder.is_empty()).map(<[u8]>::to_vec).collect()
}

/// What is known of this process.
fn facts() -> Vec<(String, String)> {
    let of_launcher = stepscope_recorder::launcher_facts(|name| std::env::var(name).ok());
    let mut facts: Vec<(String, String)> =
        of_launcher.into_iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let name = std::env::args_os().next().map(PathBuf::from);
    let name = name.as_deref().and_then(std::path::Path::file_name).map(|name| name.to_string_lossy().into_owned());
    facts.extend(name.map(|name| ("process_name".to_string(), name)));
    facts.extend(host().map(|host| ("host".to_string(), host)));
    facts.push(("recorder".to_string(), "files".to_string()));
    facts
}

fn host() -> Option<String> {
    let mut name = [0_u8; 256];
    // SAFETY: the call writes no more than there is room for.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let len = name.iter().position(|byte| *byte == 0)?;
    (!failed).then(|| OsString::from_vec(name[..len].to_vec()).to_string_lossy().into_owned())
}

/// What another part of the recorder learns of this process.
///
/// # Safety
/// Both texts are terminated.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code, reason = "tests are not recorded"))]
unsafe extern "C" fn stepscope_files_set_metadata(key: *const c_char, value: *const c_char) {
    let Some(_inside) = Inside::enter().filter(|_| is_on()) else { return };
    // SAFETY: the caller's promise.
    let [key, value] = [key, value].map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy());
    stepscope_recorder::learn_metadata(&key, &value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_inside_until_it_leaves() {
        let inside = Inside::enter();
        assert!(inside.is_some());
        assert!(Inside::enter().is_none());
        // Having asked changes nothing.
        assert!(Inside::enter().is_none());
        drop(inside);
        assert!(Inside::enter().is_some());
    }
}
