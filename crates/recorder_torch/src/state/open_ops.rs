//! Ops that are open on a thread and began while another profiler ran there.
//!
//! The callback with which PyTorch's profiler hears that an op ends takes whatever is in the slot for its own. It does
//! nothing where the slot is empty, as it is when the profiler has stopped. So our object does not come back before the
//! last of these ops has ended. They are seen by callbacks of the thread, which are there while the other profiler is.

use crate::listeners;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// How many ops are open that began on a thread.
type Count = Arc<AtomicU32>;

/// The open ops by their address, each with the count of its thread: it may end on another one.
static OPEN: Mutex<BTreeMap<usize, Count>> = Mutex::new(BTreeMap::new());
/// How often it is tried to have it: in a forked process, a thread may hold it that is not there.
const TRIES: usize = 1000;

thread_local! {
    static COUNT: Count = Count::default();
    /// The callbacks of this thread; 0 without.
    static CALLBACKS: Cell<u64> = const { Cell::new(0) };
}

/// Another profiler has started on the calling thread.
pub fn others_begin() {
    if CALLBACKS.get() == 0 {
        // SAFETY: the callbacks keep to their contracts and live as long as the process.
        match unsafe { listeners::add_to_thread(op_begins, op_ends) } {
            Some(handle) => CALLBACKS.set(handle),
            // What cannot be heard of never ends.
            None => COUNT.with(|count| _ = count.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// It has stopped.
pub fn others_end() {
    let handle = CALLBACKS.replace(0);
    if handle != 0 {
        // SAFETY: the handle that was given.
        unsafe { listeners::remove(handle) };
    }
}

/// Whether nothing is open that began while another profiler ran on the calling thread.
pub(super) fn have_ended() -> bool {
    COUNT.try_with(|count| count.load(Ordering::Acquire) == 0).unwrap_or(false)
}

unsafe extern "C" fn op_begins(context: *mut *mut c_void, op: *const u8) -> *mut *mut c_void {
    // SAFETY: PyTorch passes room for its pointer, null being a `unique_ptr` that owns nothing.
    unsafe { *context = std::ptr::null_mut() };
    if let Ok(count) = COUNT.try_with(Arc::clone) {
        count.fetch_add(1, Ordering::Relaxed);
        let before = open_ops().and_then(|mut open| open.insert(op.addr(), count));
        before.into_iter().for_each(|count| _ = count.fetch_sub(1, Ordering::Release));
    }
    context
}

unsafe extern "C" fn op_ends(op: *const u8, _: *mut c_void) {
    let ended = open_ops().and_then(|mut open| open.remove(&op.addr()));
    ended.into_iter().for_each(|count| _ = count.fetch_sub(1, Ordering::Release));
}

fn open_ops() -> Option<MutexGuard<'static, BTreeMap<usize, Count>>> {
    (0..TRIES).find_map(|_| OPEN.try_lock().inspect_err(|_| std::thread::yield_now()).ok())
}
