//! The callbacks that record: called by PyTorch on every thread, around every op, node and range.

use crate::api::Api;
use crate::collectives;
use crate::solve::{Layout, Refusal};
use crate::state::attend_thread;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use stepscope_recorder::{self as recorder, Name};

/// Everything the callbacks need, once it is proven.
#[derive(Clone, Copy)]
pub(crate) struct Hook {
    pub(crate) api: Api,
    pub(crate) layout: Layout,
    /// The address that `overload_name()` gives for ranges without a schema; `None`: cannot be told.
    pub(crate) no_overload: Option<usize>,
}

/// The hook that a probe made ready; never freed, since PyTorch may call it until the process ends.
static READY: AtomicPtr<Hook> = AtomicPtr::new(std::ptr::null_mut());
/// The handle of the registered callbacks; 0 without.
static HANDLE: AtomicU64 = AtomicU64::new(0);

impl Hook {
    pub(crate) fn make_ready(self) {
        recorder::set_framework_thread(self.api.current_thread_id);
        READY.store(Box::into_raw(Box::new(self)), Ordering::Release);
    }

    pub(crate) fn ready() -> Option<&'static Hook> {
        // SAFETY: null, or a hook that is never freed or changed.
        unsafe { READY.load(Ordering::Acquire).as_ref() }
    }
}

/// Records from now on, on all threads. Nothing happens when it records already.
///
/// # Errors
/// When no probe succeeded.
pub fn hook() -> Result<(), Refusal> {
    let ready = Hook::ready().ok_or(Refusal::NotProbed)?;
    if HANDLE.load(Ordering::Acquire) == 0 {
        recorder::reintroduce_thread();
        // SAFETY: the callbacks keep to their contracts and live as long as the process.
        HANDLE.store(unsafe { ready.api.add(on_start, on_end, false) }, Ordering::Release);
    }
    Ok(())
}

/// Records no longer. Ops that are open now still record their end.
pub fn unhook() {
    let handle = HANDLE.swap(0, Ordering::AcqRel);
    if let Some(ready) = Hook::ready().filter(|_| handle != 0) {
        // SAFETY: the handle that `add` gave.
        unsafe { (ready.api.remove_callback)(handle) };
    }
}

/// True while ops are recorded.
pub fn is_hooked() -> bool {
    HANDLE.load(Ordering::Acquire) != 0
}

unsafe extern "C" fn on_start(context: *mut *mut c_void, function: *const u8) -> *mut *mut c_void {
    attend_thread();
    // SAFETY: only registered once READY is set; PyTorch passes room for its pointer and a live object, whose fields
    // lie where the probe proved them.
    unsafe {
        *context = std::ptr::null_mut();
        let hook = &*READY.load(Ordering::Relaxed);
        let text = (hook.api.name)(function);
        let mut is_collective = false;
        let name = || {
            if hook.has_schema(function) {
                return Name::stable(text);
            }
            // Only asked of ranges: the names of operators are known by their address.
            is_collective = collectives::is_collective(text);
            Name::temporary(text)
        };
        let scope = *function.add(hook.layout.scope);
        let sequence_number = *function.add(hook.layout.sequence_number).cast::<i64>();
        let forward_thread = *function.add(hook.layout.forward_thread).cast::<u64>();
        recorder::begin(text, name, scope, sequence_number, forward_thread, function as usize);
        if is_collective {
            collectives::describe(hook, function, text);
        } else if collectives::is_issue(text) {
            collectives::describe_issue(text);
        }
    }
    context
}

unsafe extern "C" fn on_end(function: *const u8, _: *mut c_void) {
    // SAFETY: as in `on_start`.
    unsafe {
        let hook = &*READY.load(Ordering::Relaxed);
        let name = || Name::temporary((hook.api.name)(function));
        let origin = || *function.add(hook.layout.thread).cast::<u64>();
        recorder::end(function as usize, name, origin);
    }
}

impl Hook {
    /// True for ops with a schema, whose name never moves.
    ///
    /// # Safety
    /// `function` is a live object.
    #[inline(always)]
    unsafe fn has_schema(&self, function: *const u8) -> bool {
        match (self.api.overload_name, self.no_overload) {
            // SAFETY: the caller's promise.
            (Some(overload_name), Some(none)) => unsafe { overload_name(function) as usize != none },
            _ => false,
        }
    }
}
