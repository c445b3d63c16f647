//! The callbacks that record: called by PyTorch on every thread, around every op, node and range.

use crate::api::{Api, StartFn};
use crate::arguments;
use crate::collectives;
use crate::inputs::InputsReader;
use crate::listeners;
use crate::numbers;
use crate::solve::{Layout, Refusal};
use crate::state::attend_thread;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use stepscope_recorder::{self as recorder, Name, Signature, scope};

/// Everything the callbacks need, once it is proven.
#[derive(Clone, Copy)]
pub(crate) struct Hook {
    pub(crate) api: Api,
    pub(crate) layout: Layout,
    /// The address that `overload_name()` gives for ranges without a schema; `None`: cannot be told.
    pub(crate) no_overload: Option<usize>,
    /// Where the number is that PyTorch gives to ranges when somebody asks for it; `None`: cannot be told.
    pub(crate) number: Option<usize>,
    /// Reads what ops are called with, once a probe of its own has proven where that is.
    pub(crate) inputs: Option<InputsReader>,
}

/// The hook that a probe made ready; never freed, since PyTorch may call it until the process ends.
static READY: AtomicPtr<Hook> = AtomicPtr::new(std::ptr::null_mut());
/// The handle of the registered callbacks; 0 without.
static HANDLE: AtomicU64 = AtomicU64::new(0);
/// Whether the callbacks that were registered last record what ops are called with.
static HAS_INPUTS: AtomicBool = AtomicBool::new(false);

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

/// Records from now on, on all threads; with `needs_inputs` also what ops are called with. Nothing happens when it
/// records already.
///
/// # Errors
/// When no probe succeeded, of the ops or of their inputs.
pub fn hook(needs_inputs: bool) -> Result<(), Refusal> {
    let ready = Hook::ready().filter(|ready| !needs_inputs || ready.inputs.is_some()).ok_or(Refusal::NotProbed)?;
    if HANDLE.load(Ordering::Acquire) == 0 {
        recorder::reintroduce_thread();
        let start: StartFn = if needs_inputs { on_start_with_inputs } else { on_start };
        HAS_INPUTS.store(needs_inputs, Ordering::Release);
        listeners::one_more_of_ours();
        // SAFETY: the callbacks keep to their contracts and live as long as the process.
        HANDLE.store(unsafe { ready.api.add(start, on_end, needs_inputs, false) }, Ordering::Release);
        numbers::switch(true);
    }
    Ok(())
}

/// Records no longer. Ops that are open now still record their end.
pub fn unhook() {
    numbers::switch(false);
    let handle = HANDLE.swap(0, Ordering::AcqRel);
    if let Some(ready) = Hook::ready().filter(|_| handle != 0) {
        // SAFETY: the handle that `add` gave.
        unsafe { (ready.api.remove_callback)(handle) };
        listeners::one_less_of_ours();
    }
}

/// True while ops are recorded.
pub fn is_hooked() -> bool {
    HANDLE.load(Ordering::Acquire) != 0
}

/// True while what ops are called with is recorded.
pub fn are_inputs_recorded() -> bool {
    is_hooked() && HAS_INPUTS.load(Ordering::Acquire)
}

// What is called for every op lies on one page. Where the linker put it across two, an op cost 13 ns more.
#[cfg(target_os = "linux")]
std::arch::global_asm!(
    ".section .text.stepscope_hook, \"ax\", @progbits",
    ".p2align 12",
    ".section .text.stepscope_hook_with_inputs, \"ax\", @progbits",
    ".p2align 12",
    ".text"
);

#[cfg_attr(target_os = "linux", unsafe(link_section = ".text.stepscope_hook"))]
unsafe extern "C" fn on_start(context: *mut *mut c_void, function: *const u8) -> *mut *mut c_void {
    // SAFETY: as there.
    unsafe { start::<false>(context, function) }
}

#[cfg_attr(target_os = "linux", unsafe(link_section = ".text.stepscope_hook_with_inputs"))]
unsafe extern "C" fn on_start_with_inputs(context: *mut *mut c_void, function: *const u8) -> *mut *mut c_void {
    // SAFETY: as there.
    unsafe { start::<true>(context, function) }
}

#[inline(always)]
unsafe fn start<const HAS_INPUTS: bool>(context: *mut *mut c_void, function: *const u8) -> *mut *mut c_void {
    attend_thread();
    // SAFETY: only registered once READY is set, with inputs once their reader is there; PyTorch passes room for its
    // pointer and a live object, whose fields lie where the probe proved them.
    unsafe {
        *context = std::ptr::null_mut();
        let hook = &*READY.load(Ordering::Relaxed);
        let Begun { text, mut scope, sequence_number, forward_thread } = hook.begun(function);
        if scope == scope::LABEL {
            scope = hook.scope_of_label(function);
        }
        if collectives::is_issuing() {
            collectives::describe_issue_around(hook, text);
        }
        let mut is_collective = false;
        let name = || hook.name_of(function, text, &mut is_collective);
        let op = function as usize;
        if HAS_INPUTS {
            // Asked for first: what Python does meanwhile may be recorded itself.
            let arguments = if scope == scope::FUNCTION { arguments::of_function(text) } else { None };
            let inputs = |signature: &mut Signature| {
                if let Some(reader) = &hook.inputs {
                    reader.put(function, &hook.layout, arguments.as_deref(), signature);
                }
            };
            recorder::begin_with_inputs(text, name, scope, sequence_number, forward_thread, op, inputs);
        } else {
            recorder::begin(text, name, scope, sequence_number, forward_thread, op);
        }
        hook.describe(function, text, is_collective);
    }
    context
}

#[cfg_attr(target_os = "linux", unsafe(link_section = ".text.stepscope_hook"))]
unsafe extern "C" fn on_end(function: *const u8, _: *mut c_void) {
    // SAFETY: as in `start`.
    unsafe {
        let hook = &*READY.load(Ordering::Relaxed);
        if collectives::is_issuing() {
            collectives::describe_issued(hook, function);
        }
        let name = || Name::temporary((hook.api.name)(function));
        let origin = || *function.add(hook.layout.thread).cast::<u64>();
        recorder::end(function as usize, name, origin);
    }
}

/// What a begin says.
struct Begun {
    text: *const c_char,
    scope: u8,
    sequence_number: i64,
    forward_thread: u64,
}

impl Hook {
    /// # Safety
    /// `function` is a live object of the probed layout.
    #[inline(always)]
    unsafe fn begun(&self, function: *const u8) -> Begun {
        // SAFETY: the caller's promise.
        unsafe {
            Begun {
                text: (self.api.name)(function),
                scope: *function.add(self.layout.scope),
                sequence_number: *function.add(self.layout.sequence_number).cast::<i64>(),
                forward_thread: *function.add(self.layout.forward_thread).cast::<u64>(),
            }
        }
    }

    /// The scope of a label: works of collectives say that they may end on another thread.
    ///
    /// # Safety
    /// `function` is a live object.
    #[cold]
    unsafe fn scope_of_label(&self, function: *const u8) -> u8 {
        // SAFETY: the caller's promise.
        let is_async = self.api.is_async.is_some_and(|is_async| unsafe { is_async(function) });
        if is_async { scope::ASYNC_LABEL } else { scope::LABEL }
    }

    /// Its name: that of an op with a schema never moves, and has an overload. Of other ranges it is told whether they
    /// are collectives.
    ///
    /// # Safety
    /// `function` is a live object, and `text` is what names it.
    #[inline(always)]
    unsafe fn name_of(&self, function: *const u8, text: *const c_char, is_collective: &mut bool) -> Name {
        // SAFETY: the caller's promise; the name of an overload is a terminated string that lives as long as its op.
        unsafe {
            if let (Some(overload_name), Some(none)) = (self.api.overload_name, self.no_overload) {
                let overload = overload_name(function);
                if overload as usize != none {
                    return Name::stable(text).with_overload(overload);
                }
            }
            *is_collective = collectives::is_collective(text);
            Name::temporary(text)
        }
    }

    /// Records what is known of the op that has just begun, when it is a collective or issues one.
    ///
    /// # Safety
    /// `function` is a live object of the probed layout, and `text` is what names it.
    #[inline(always)]
    unsafe fn describe(&self, function: *const u8, text: *const c_char, is_collective: bool) {
        // SAFETY: the caller's promise.
        unsafe {
            if is_collective {
                collectives::describe(self, function, text);
            } else if collectives::is_issue(text) {
                collectives::describe_issue(function, text);
            }
        }
    }
}
