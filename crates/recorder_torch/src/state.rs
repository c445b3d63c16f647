//! Our place in PyTorch's profiler state: what it tells its own profiler alone.
//!
//! Each thread of PyTorch has a slot for the profiler that is active there. Allocators report to the object in it, and
//! the ranges that compiled code sets around itself exist only where there is one. We put an object of ours into slots
//! that are empty: on a thread's first op, or when the thread says that it begins. It looks to PyTorch like a profiler
//! that is switched off, but wants to hear of memory.
//!
//! The object is never freed and nobody counts its owners: PyTorch hands it on to autograd's threads and keeps it for
//! as long as it likes. Where another profiler has the slot, it stays; a profiler that is about to start needs it empty,
//! so we [`step_aside`] until it has started, and come back when [all that began under it](open_ops) has ended.

mod api;
mod numbered;
mod object;
mod open_ops;
mod slot_address;
mod trial;

pub use numbered::{enter_state, leave_state};
pub use open_ops::{others_begin, others_end};

use crate::solve::Refusal;
use api::{Shared, StateApi};
use object::Table;
use slot_address::{Holder, SlotAddress};
use std::cell::Cell;
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use stepscope_recorder::ProfilerState;

/// What is proven, and our object.
struct State {
    api: StateApi,
    /// What our objects begin with.
    table: Table,
    /// That of threads that asked for none of their own.
    object: *const c_void,
    /// Where a thread has what holds its innermost object, when that was found.
    slot_address: Option<SlotAddress>,
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
    let trial = move || trial::slots(&api).map(|slots| (slots, trial::slot_address(&api)));
    let trial = std::thread::Builder::new().name("stepscope-probe".into()).spawn(trial);
    let trial = trial.map_err(|error| Refusal::CannotLook { reason: error.to_string() })?;
    let found = trial.join().unwrap_or(Err("the trial did not end"));
    let (slots, slot_address) = found.map_err(|what| Refusal::StateNotUnderstood { what })?;
    let table = object::table(&slots, api.type_info);
    let object = object::new(table, ProfilerState::OF_NOBODY);
    READY.store(Box::into_raw(Box::new(State { api, table, object, slot_address })), Ordering::Release);
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

/// Puts our object into the calling thread's slot when it is empty and we record, and says whose object is there.
#[inline(always)]
pub fn attend_thread() {
    // Asked for first and in any case: what follows in the same function then finds the thread's memory with it.
    let [slot_address, seen] = stepscope_recorder::thread_words();
    if MODE.load(Ordering::Relaxed) != 0 && !is_innermost(slot_address.cast(), seen) {
        attend_changed_thread();
    }
}

/// True when the object that was seen last is the calling thread's innermost one still. `slot_address` is where this thread has
/// its holder; null until that was asked for.
#[inline(always)]
fn is_innermost(slot_address: *const Holder, seen: *const c_void) -> bool {
    // SAFETY: a word of PyTorch's that the calling thread alone changes: null, or the address of a live holder.
    unsafe {
        let holder = if slot_address.is_null() { std::ptr::null() } else { *slot_address };
        !holder.is_null() && std::ptr::eq(*holder, seen)
    }
}

#[inline(never)]
fn attend_changed_thread() {
    if let Some(state) = State::ready() {
        state.attend();
    }
}

/// True when our object has the calling thread's slot.
pub fn is_attending() -> bool {
    State::ready().is_some_and(State::is_in_slot)
}

/// Empties the calling thread's slot where our object has it, and leaves it alone until [`step_back`].
pub fn step_aside() {
    ASIDE.set(ASIDE.get() + 1);
    State::ready().into_iter().for_each(State::pop);
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

    /// Looks into the slot, puts an object of ours there when it is empty, and says whose object it is.
    fn attend(&self) {
        let mut object = self.api.in_slot();
        if object.is_null() && ASIDE.get() == 0 && open_ops::have_ended() {
            object = numbered::of_thread().unwrap_or(self.object);
            // SAFETY: an object that lives for ever, of the form that the trial proved.
            unsafe { self.api.push(Shared::uncounted(object)) };
        }
        self.note(object);
    }

    /// Says that what the calling thread runs from here on was begun under the state that `object` is.
    fn note(&self, object: *const c_void) {
        let [mut slot_address, _] = stepscope_recorder::thread_words();
        if slot_address.is_null() {
            slot_address = self.slot_address.map_or(slot_address, |slot_address| slot_address.in_this_thread().cast());
        }
        let number = self.number_of(object);
        stepscope_recorder::set_profiler_state(number.unwrap_or(ProfilerState::NOT_KNOWN));
        // Others' objects may be freed, and something else have their address.
        stepscope_recorder::set_thread_words([slot_address, number.map_or(std::ptr::null(), |_| object)]);
    }

    /// The number of an object in a slot, when it is ours.
    fn number_of(&self, object: *const c_void) -> Option<u64> {
        // SAFETY: what is in a slot is live, and has a table of functions.
        unsafe { object::number_of(self.table, object) }
    }

    fn is_in_slot(&self) -> bool {
        self.number_of(self.api.in_slot()).is_some()
    }

    /// Takes our object out of the slot.
    fn pop(&self) {
        let object = self.api.in_slot();
        if self.number_of(object).is_some() {
            // SAFETY: pushed by us, uncounted, here or on the thread that this one works for.
            unsafe { self.api.pop_if_innermost(object) };
        }
    }
}

/// Where allocators report to, by the entries of our object's table of functions.
const FUNCTIONS: object::Functions =
    object::Functions { report_memory, report_out_of_memory, is_memory_wanted, profiler_type };

unsafe extern "C" fn report_memory(
    object: *const c_void,
    address: u64,
    bytes: i64,
    allocated: u64,
    reserved: u64,
    device: u16,
) {
    // Allocators of devices report whether asked or not.
    if MODE.load(Ordering::Relaxed) & HAS_MEMORY != 0 {
        note_report(object);
        stepscope_recorder::memory(address, bytes, allocated, reserved, device);
    }
}

unsafe extern "C" fn report_out_of_memory(
    object: *const c_void,
    bytes: i64,
    allocated: u64,
    reserved: u64,
    device: u16,
) {
    if MODE.load(Ordering::Relaxed) & HAS_MEMORY != 0 {
        note_report(object);
        stepscope_recorder::out_of_memory(bytes, allocated, reserved, device);
    }
}

/// A report goes to the object in the slot, whichever it is by now.
#[inline]
fn note_report(object: *const c_void) {
    let [_, seen] = stepscope_recorder::thread_words();
    if !std::ptr::eq(object, seen) {
        State::ready().into_iter().for_each(|state| state.note(object));
    }
}

unsafe extern "C" fn is_memory_wanted(_: *const c_void) -> bool {
    MODE.load(Ordering::Relaxed) & HAS_MEMORY != 0
}

/// PyTorch's number for no profiler.
unsafe extern "C" fn profiler_type(_: *const c_void) -> i32 {
    0
}
