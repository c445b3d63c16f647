//! Our place in PyTorch's profiler state: what it tells its own profiler alone.
//!
//! Each thread of PyTorch has a slot for the profiler that is active there. Allocators report to the object in it, and
//! the ranges that compiled code sets around itself exist only where there is one. We put an object of ours into slots
//! that are empty: on a thread's first op, or when the thread says that it begins. It looks to PyTorch like a profiler
//! that is switched off, but wants to hear of memory.
//!
//! The object is never freed and nobody counts its owners: PyTorch hands it on to autograd's threads and keeps it for
//! as long as it likes. Where another profiler has the slot, it stays; a profiler that is about to start needs it empty,
//! so we [`step_aside`] until it has started.

mod api;
mod object;
mod place;
mod trial;

use crate::solve::Refusal;
use api::{Shared, StateApi};
use place::{Holder, Place};
use std::cell::Cell;
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// What is proven, and our object.
struct State {
    api: StateApi,
    object: *const c_void,
    /// Where a thread has what holds its innermost object, when that was found.
    place: Option<Place>,
}

/// Made ready by [`probe_state`]; never freed or changed, since PyTorch keeps its object.
static READY: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());
/// [`IS_ON`] and [`HAS_MEMORY`], or 0.
static MODE: AtomicU8 = AtomicU8::new(0);
/// Threads are attended to.
const IS_ON: u8 = 1;
/// Allocations are recorded.
const HAS_MEMORY: u8 = 2;

thread_local! {
    /// How many callers on this thread want the slot left alone.
    static ASIDE: Cell<u32> = const { Cell::new(0) };
}

/// Proves, in the PyTorch whose libraries lie in `folder`, that an object of ours can have the slot. Nothing happens
/// when that is known.
///
/// # Errors
/// When anything is not as expected: the slot is then never used.
pub fn probe_state(folder: &Path) -> Result<(), Refusal> {
    if State::ready().is_some() {
        return Ok(());
    }
    let api = StateApi::find(folder)?;
    // On a thread of its own: this one's slot may be taken.
    let trial = move || trial::slots(&api).map(|slots| (slots, trial::place(&api)));
    let trial = std::thread::Builder::new().name("stepscope-probe".into()).spawn(trial);
    let trial = trial.map_err(|error| Refusal::CannotLook { reason: error.to_string() })?;
    let found = trial.join().unwrap_or(Err("the trial did not end"));
    let (slots, place) = found.map_err(|what| Refusal::StateNotUnderstood { what })?;
    let object = object::new(&slots, api.type_info);
    READY.store(Box::into_raw(Box::new(State { api, object, place })), Ordering::Release);
    Ok(())
}

/// Attends to threads from now on: to the calling one at once, to others with their next op.
///
/// # Errors
/// When no probe succeeded.
pub fn start_state(has_memory: bool) -> Result<(), Refusal> {
    State::ready().ok_or(Refusal::NotProbed)?;
    MODE.store(IS_ON | if has_memory { HAS_MEMORY } else { 0 }, Ordering::Release);
    attend_thread();
    Ok(())
}

/// Records no longer. Our object leaves the calling thread's slot; in others it stays, and does nothing.
pub fn stop_state() {
    MODE.store(0, Ordering::Release);
    step_aside();
    step_back();
}

/// Puts our object into the calling thread's slot when it is empty and we record.
#[inline(always)]
pub fn attend_thread() {
    // Asked for first and in any case: what follows in the same function then finds the thread's memory with it.
    let place = stepscope_recorder::thread_word();
    if MODE.load(Ordering::Relaxed) != 0
        && let Some(state) = State::ready()
        && !state.is_innermost(place.cast())
    {
        state.push_where_empty();
    }
}

/// True when our object has the calling thread's slot.
pub fn is_attending() -> bool {
    State::ready().is_some_and(State::is_in_slot)
}

/// Empties the calling thread's slot where our object has it, and leaves it alone until [`step_back`].
pub fn step_aside() {
    ASIDE.set(ASIDE.get() + 1);
    if let Some(state) = State::ready().filter(|state| state.is_in_slot()) {
        state.pop();
    }
}

/// Ends what the last [`step_aside`] began.
pub fn step_back() {
    ASIDE.set(ASIDE.get().saturating_sub(1));
    attend_thread();
}

impl State {
    #[inline(always)]
    fn ready() -> Option<&'static State> {
        // SAFETY: null, or a state that is never freed or changed.
        unsafe { READY.load(Ordering::Acquire).as_ref() }
    }

    /// True when our object is the calling thread's innermost one, and that can be seen. `known` is where this thread has
    /// its holder; null until that was asked for.
    #[inline(always)]
    fn is_innermost(&self, known: *const Holder) -> bool {
        let at = if known.is_null() { self.find_holder() } else { known };
        // SAFETY: a word of PyTorch's that the calling thread alone changes: null, or the address of a live holder.
        unsafe {
            let holder = *at;
            !holder.is_null() && std::ptr::eq(*holder, self.object)
        }
    }

    #[cold]
    fn find_holder(&self) -> *const Holder {
        struct Nowhere(Holder);
        // SAFETY: never changed.
        unsafe impl Sync for Nowhere {}
        static NOWHERE: Nowhere = Nowhere(std::ptr::null());
        let at = self.place.map_or(&raw const NOWHERE.0, Place::in_this_thread);
        stepscope_recorder::set_thread_word(at.cast());
        at
    }

    #[inline(never)]
    fn push_where_empty(&self) {
        if self.api.in_slot().is_null() && ASIDE.get() == 0 {
            self.push();
        }
    }

    fn is_in_slot(&self) -> bool {
        std::ptr::eq(self.api.in_slot(), self.object)
    }

    #[cold]
    fn push(&self) {
        // SAFETY: an object that lives for ever, of the form that the trial proved.
        unsafe { self.api.push(Shared::uncounted(self.object)) };
    }

    #[cold]
    fn pop(&self) {
        // SAFETY: as in `push`.
        unsafe { self.api.pop_if_innermost(self.object) };
    }
}

/// Where allocators report to, by the entries of our object's table of functions.
const FUNCTIONS: object::Functions =
    object::Functions { report_memory, report_out_of_memory, is_memory_wanted, profiler_type };

unsafe extern "C" fn report_memory(
    _: *const c_void,
    address: u64,
    bytes: i64,
    allocated: u64,
    reserved: u64,
    device: u16,
) {
    // Allocators of devices report whether asked or not.
    if MODE.load(Ordering::Relaxed) & HAS_MEMORY != 0 {
        stepscope_recorder::memory(address, bytes, allocated, reserved, device);
    }
}

unsafe extern "C" fn report_out_of_memory(_: *const c_void, bytes: i64, allocated: u64, reserved: u64, device: u16) {
    if MODE.load(Ordering::Relaxed) & HAS_MEMORY != 0 {
        stepscope_recorder::out_of_memory(bytes, allocated, reserved, device);
    }
}

unsafe extern "C" fn is_memory_wanted(_: *const c_void) -> bool {
    MODE.load(Ordering::Relaxed) & HAS_MEMORY != 0
}

/// PyTorch's number for no profiler.
unsafe extern "C" fn profiler_type(_: *const c_void) -> i32 {
    0
}
