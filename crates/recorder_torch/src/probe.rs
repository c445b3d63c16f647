//! Watches a few known ops run, to learn where PyTorch keeps what the hook needs.
//!
//! The caller runs the ops between [`probe_begin`] and [`probe_end`], on the same thread: an op several times, each time
//! followed by a user range, with autograd's sequence number noted before each, and one backward node called directly
//! (running a whole backward pass would start autograd's threads in a process that may still want to fork).

use crate::api::Api;
use crate::hook::Hook;
use crate::peek::Peek;
use crate::solve::{Expected, Found, Layout, Refusal, SEEN_BYTES, Seen, solve};
use std::ffi::{CStr, c_void};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A probe under way.
struct Probe {
    api: Api,
    handle: u64,
    peek: Peek,
    /// The thread that runs the ops; others' are ignored.
    tid: i64,
    seen: Vec<Seen>,
}

/// The known ops are far fewer.
const MOST_SEEN: usize = 256;

static PROBE: Mutex<Option<Probe>> = Mutex::new(None);

/// Begins to watch the calling thread's ops, in the PyTorch whose libraries lie in `folder`.
///
/// # Errors
/// When PyTorch cannot be hooked at all.
pub fn probe_begin(folder: &Path) -> Result<(), Refusal> {
    let api = Api::find(folder)?;
    let peek = Peek::new().map_err(|error| Refusal::CannotLook { reason: error.to_string() })?;
    let mut probe = PROBE.lock().unwrap_or_else(PoisonError::into_inner);
    *probe = Some(Probe { api, handle: 0, peek, tid: tid(), seen: Vec::new() });
    drop(probe);
    // SAFETY: both callbacks keep to their contracts and live as long as the process.
    let handle = unsafe { api.add(see_start, see_end, true, true) };
    if let Some(probe) = &mut *PROBE.lock().unwrap_or_else(PoisonError::into_inner) {
        probe.handle = handle;
    }
    Ok(())
}

/// Ends the watch and, when one layout explains all that was seen, makes the hook ready.
///
/// # Errors
/// When nothing is certain: the hook then stays refused.
pub fn probe_end(op: &str, sequence_numbers: &[i64], range: &str, release: &str) -> Result<Layout, Refusal> {
    let handle = PROBE.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|probe| (probe.api, probe.handle));
    let (api, handle) = handle.ok_or(Refusal::NotProbed)?;
    // SAFETY: the handle that `add` gave.
    unsafe { (api.remove_callback)(handle) };
    let probe = PROBE.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(Refusal::NotProbed)?;
    let Found { layout, no_overload, number } = solve(&probe.seen, &Expected { op, sequence_numbers, range, release })?;
    Hook { api, layout, no_overload, number, inputs: None }.make_ready();
    Ok(layout)
}

/// Ends a watch whose ops did not run to the end; nothing happens without one.
pub fn probe_cancel() {
    let probe = PROBE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(probe) = probe {
        // SAFETY: the handle that `add` gave.
        unsafe { (probe.api.remove_callback)(probe.handle) };
    }
}

pub(crate) fn tid() -> i64 {
    // SAFETY: a plain system call.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

unsafe extern "C" fn see_start(context: *mut *mut c_void, function: *const u8) -> *mut *mut c_void {
    // SAFETY: PyTorch passes room for its pointer; null is a `unique_ptr` that owns nothing.
    unsafe { *context = std::ptr::null_mut() };
    // Other threads' ops must not wait, least of all in a child that was forked while this thread held the lock.
    let Ok(mut probe) = PROBE.try_lock() else { return context };
    let is_wanted = |probe: &&mut Probe| probe.tid == tid() && probe.seen.len() < MOST_SEEN;
    if let Some(probe) = probe.as_mut().filter(is_wanted) {
        // SAFETY: PyTorch passes a live object.
        let seen = unsafe { see(probe, function) };
        probe.seen.extend(seen);
    }
    context
}

unsafe fn see(probe: &Probe, function: *const u8) -> Option<Seen> {
    let mut bytes = Box::new([0; SEEN_BYTES]);
    // What lies behind the object may be unreadable: bytes that are not there stay zero.
    probe.peek.copy(function, &mut bytes[..]);
    let api = &probe.api;
    // SAFETY: member functions of a live object; the name is a terminated string.
    unsafe {
        Some(Seen {
            bytes,
            name: CStr::from_ptr((api.name)(function)).to_str().ok()?.into(),
            overload_name: api.overload_name.map_or(0, |overload_name| overload_name(function) as usize),
            num_inputs: (api.num_inputs)(function),
            thread: (api.current_thread_id)(),
        })
    }
}

pub(crate) unsafe extern "C" fn see_end(_: *const u8, _: *mut c_void) {}
