//! The numbers that PyTorch gives to ranges while an execution trace is recorded: `rf_id` there. They are asked for and
//! written by callbacks of their own, so that without an execution trace nobody pays for them.

use crate::hook::{Hook, is_hooked};
use crate::listeners;
use crate::probe::see_end;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use stepscope_recorder::{self as recorder, RANGE_NUMBER};

/// How many want numbers.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// The handle of the registered callbacks; 0 without.
static HANDLE: AtomicU64 = AtomicU64::new(0);

/// Records the numbers of ranges while ops are recorded, or no longer when nobody else wants them. Nothing happens where
/// PyTorch keeps them in a place that is not known.
pub fn want_numbers(are_wanted: bool) {
    let change = |wanted: u32| Some(if are_wanted { wanted + 1 } else { wanted.saturating_sub(1) });
    let _ = WANTED.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    switch(is_hooked());
}

/// Registers callbacks while ops are recorded and numbers are wanted. Those of ops are added before, and called before: a
/// number follows its range.
pub(crate) fn switch(is_hooked: bool) {
    let Some(ready) = Hook::ready().filter(|ready| ready.number.is_some()) else { return };
    let is_on = is_hooked && WANTED.load(Ordering::Acquire) > 0;
    if is_on && HANDLE.load(Ordering::Acquire) == 0 {
        listeners::one_more_of_ours();
        // SAFETY: the callbacks keep to their contracts and live as long as the process.
        HANDLE.store(unsafe { ready.api.add(on_start, see_end, false, true) }, Ordering::Release);
    } else if !is_on {
        let handle = HANDLE.swap(0, Ordering::AcqRel);
        if handle != 0 {
            // SAFETY: the handle that `add` gave.
            unsafe { (ready.api.remove_callback)(handle) };
            listeners::one_less_of_ours();
        }
    }
}

unsafe extern "C" fn on_start(context: *mut *mut c_void, function: *const u8) -> *mut *mut c_void {
    // SAFETY: PyTorch passes room for its pointer and a live object, in which the probe proved the place.
    unsafe {
        *context = std::ptr::null_mut();
        if let Some(at) = Hook::ready().and_then(|ready| ready.number) {
            recorder::counter(RANGE_NUMBER, *function.add(at).cast::<i64>());
        }
    }
    context
}
