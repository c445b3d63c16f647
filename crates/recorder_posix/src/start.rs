//! When recording begins, and whether the calling thread is inside the recorder.

use crate::paths::{Watched, watch};
use crate::real::{find_all, is_own};
use crate::{
    bound, descriptors, faults, mapped_files, open_files, programs, refused, sockets, thread_sums, unseen, uring,
};
use std::cell::Cell;
use std::ffi::{CStr, OsString, c_char, c_int};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};
use std::time::Duration;
use stepscope_recorder::{HELPER_THREAD, HelperTask};

/// The variables that tell a process what to record, and where its run is.
const RUN: &str = "STEPSCOPE_RUN";
const INCLUDE: &str = "STEPSCOPE_IO_INCLUDE";
const EXCLUDE: &str = "STEPSCOPE_IO_EXCLUDE";
/// How much of the past is kept, ns; everything where it is not set.
const RING: &str = "STEPSCOPE_IO_RING";

static IS_ON: AtomicBool = AtomicBool::new(false);

thread_local! {
    static THREAD: Doing = const {
        Doing { is_inside: Cell::new(false), is_writing: Cell::new(false), descriptors: Cell::new(Descriptors::NotAsked) }
    };
}

/// What the calling thread does for the recorder. A thread that writes a record is not inside: of what it calls then, nothing
/// is of files that are watched, and a signal handler may use those.
struct Doing {
    is_inside: Cell<bool>,
    is_writing: Cell<bool>,
    descriptors: Cell<Descriptors>,
}

/// Whose descriptors a thread's are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Descriptors {
    NotAsked,
    Programs,
    Own,
}

/// Whether calls are recorded.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

#[cfg(target_arch = "x86_64")]
pub(crate) use crate::hooks::is_vforked;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use crate::process_id::is_vforked;

/// The calling thread is inside the recorder: what it calls meanwhile is not recorded.
pub(crate) struct Inside;

impl Inside {
    /// `None` where it is already.
    #[inline(always)]
    pub(crate) fn enter() -> Option<Self> {
        // Made only where it is entered: dropped, it would leave.
        THREAD.with(|thread| !thread.is_writing.get() && !thread.is_inside.replace(true)).then(|| Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        THREAD.with(|thread| thread.is_inside.set(false));
    }
}

/// Whether the calling thread is [`Inside`].
#[inline(always)]
pub(crate) fn is_inside() -> bool {
    THREAD.with(|thread| thread.is_inside.get())
}

/// Whether the calling thread is the recorder's helper thread, of this library or of another part of the recorder: the
/// numbers of its descriptors are of something else in the program.
#[inline(always)]
pub(crate) fn has_own_descriptors() -> bool {
    THREAD.with(|thread| match thread.descriptors.get() {
        Descriptors::NotAsked => ask_descriptors(thread),
        descriptors => descriptors == Descriptors::Own,
    })
}

#[cold]
fn ask_descriptors(thread: &Doing) -> bool {
    let mut name = [0_u8; 16];
    // SAFETY: the system writes as much as there is room for.
    unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr(), 0, 0, 0) };
    let is_helper = CStr::from_bytes_until_nul(&name).is_ok_and(|name| name.to_bytes() == HELPER_THREAD.as_bytes());
    thread.descriptors.set(if is_helper { Descriptors::Own } else { Descriptors::Programs });
    is_helper
}

/// The calling thread begins to write a record; false where it is at it.
#[inline(always)]
pub(crate) fn begin_to_write() -> bool {
    let is_first = THREAD.with(|thread| !thread.is_writing.replace(true));
    // A signal handler sees it from here on.
    compiler_fence(Ordering::SeqCst);
    is_first
}

/// It has written the record.
#[inline(always)]
pub(crate) fn end_to_write() {
    compiler_fence(Ordering::SeqCst);
    THREAD.with(|thread| thread.is_writing.set(false));
    compiler_fence(Ordering::SeqCst);
}

/// Called by the loader, once.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn() = at_load;

#[cfg_attr(test, expect(dead_code, reason = "tests are not recorded"))]
unsafe extern "C" fn at_load() {
    let Some(_inside) = Inside::enter() else { return };
    let is_first = is_first();
    if is_first {
        find_all();
    }
    let Some(run) = std::env::var_os(RUN).filter(|run| !run.is_empty()).map(PathBuf::from) else { return };
    // Loaded by a program that runs, it waits until it is told to begin.
    if is_first {
        begin(&run, watched());
        stepscope_recorder::open_when_needed(&run, &facts(), ring());
        bound::bind_libraries();
        IS_ON.store(true, Ordering::Release);
    }
}

/// Whether the process finds this library before the C library, as where the system was told to load it first. Another
/// library that comes before both has some of their functions, but not all.
fn is_first() -> bool {
    [c"read", c"eventfd", c"readahead", c"__fgets_chk"].into_iter().any(|name| {
        // SAFETY: the name is terminated.
        is_own(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
    })
}

/// Recording begins: into the run folder `run`, of files in the folders that are `watched`.
fn begin(run: &Path, mut watched: Watched) {
    // The run's own files, whichever part of the recorder writes them.
    watched.excluded.push(run.as_os_str().as_bytes().to_vec());
    watched.excluded.extend(run.canonicalize().map(|run| run.into_os_string().into_vec()));
    watch(watched);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: plain functions of this library, which is never unloaded. Before the recorder has its own: a thread that
        // opens a capture holds the recorder's lock, and waits for that of faults.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
        thread_sums::watch_ends();
        stepscope_recorder::set_helper_task(HelperTask { begin: faults::begin, run: helper_task });
    });
    #[cfg(not(target_arch = "x86_64"))]
    crate::process_id::note();
    unseen::begin();
    refused::begin();
}

/// As [`begin`], in a process that runs, which may have opened and closed files while nothing was recorded. What went wrong
/// is said. With a `ring`, only that much of the past is kept.
///
/// # Errors
/// When the capture cannot be opened.
pub(crate) fn begin_now(run: &Path, watched: Watched, ring: Option<Duration>) -> Result<(), String> {
    descriptors::closing_all(0, c_int::MAX);
    mapped_files::unmapped(&(0..u64::MAX));
    uring::known::forget_all();
    begin(run, watched);
    stepscope_recorder::open_ring(run, &facts(), ring)?;
    IS_ON.store(true, Ordering::Release);
    Ok(())
}

/// What [`begin_now`] began ends.
pub(crate) fn end_now() {
    IS_ON.store(false, Ordering::Release);
    stepscope_recorder::close();
    faults::end();
}

/// This process records nothing from now on, and leaves all that there is as it is.
pub(crate) fn record_no_more() {
    IS_ON.store(false, Ordering::Release);
}

/// What the recorder's helper thread does for this library.
fn helper_task() -> Duration {
    let _inside = Inside::enter();
    refused::say();
    faults::record_settled().min(sockets::say()).min(bound::bind_new())
}

unsafe extern "C" fn before_fork() {
    faults::before_fork();
    bound::before_fork();
    thread_sums::before_fork();
}

unsafe extern "C" fn in_parent() {
    thread_sums::in_parent();
    bound::after_fork();
    faults::after_fork();
    open_files::note_fork();
}

unsafe extern "C" fn in_child() {
    thread_sums::in_child();
    sockets::in_child();
    refused::begin();
    bound::after_fork();
    faults::in_child();
    #[cfg(not(target_arch = "x86_64"))]
    crate::process_id::note();
    open_files::note_fork();
    programs::forget();
    uring::known::forget_all();
}

/// What the environment's variables say.
pub(crate) fn watched() -> Watched {
    Watched { included: folders(INCLUDE), excluded: folders(EXCLUDE) }
}

fn ring() -> Option<Duration> {
    kept(std::env::var(RING).ok()?.parse().ok()?)
}

/// The length of a ring of some nanoseconds; 0: everything is kept.
pub(crate) fn kept(ns: u64) -> Option<Duration> {
    (ns > 0).then(|| Duration::from_nanos(ns))
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
