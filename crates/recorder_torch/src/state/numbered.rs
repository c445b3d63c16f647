//! Objects of threads that want to know what was begun under their own state.
//!
//! PyTorch hands a thread's profiler state on with the work that other threads do for it: backward passes, `jit.fork`,
//! works of Gloo. A thread that has an object of its own, with a number of its own, is so known wherever its work runs.

use super::{MODE, State, attend_thread, object};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use stepscope_recorder::ProfilerState;

/// An object is used again when this number of others were released after it: until then, a thread may still work under
/// it.
const RESTING: usize = 64;

/// Objects that are not any thread's own, the one first that was released first. Nobody waits for them.
static FREE: Mutex<VecDeque<usize>> = Mutex::new(VecDeque::new());
/// The next number.
static NEXT: AtomicU64 = AtomicU64::new(ProfilerState::OF_NOBODY + 1);

thread_local! {
    /// This thread's own object, and how many have entered.
    static OWN: Cell<(*const c_void, u32)> = const { Cell::new((std::ptr::null(), 0)) };
}

/// The calling thread's own object.
pub(super) fn of_thread() -> Option<*const c_void> {
    Some(OWN.get().0).filter(|own| !own.is_null())
}

/// Gives the calling thread a state of its own until [`leave_state`], and its number: what it begins from here on, and
/// what is done for that on other threads, is recorded with it. Who enters again before leaving gets the same one.
/// [`ProfilerState::NOT_KNOWN`] where the thread cannot have one: nothing is proven or recorded, or another profiler has
/// the slot.
pub fn enter_state() -> u64 {
    let Some(state) = State::ready().filter(|_| MODE.load(Ordering::Relaxed) != 0) else {
        return ProfilerState::NOT_KNOWN;
    };
    let (mut own, entered) = OWN.get();
    if own.is_null() {
        own = take_object(state);
        state.pop();
    }
    OWN.set((own, entered + 1));
    attend_thread();
    match state.number_of(own) {
        Some(number) if std::ptr::eq(state.api.in_slot(), own) => number,
        _ => {
            leave_state();
            ProfilerState::NOT_KNOWN
        }
    }
}

/// Ends what the last [`enter_state`] began that gave a number.
pub fn leave_state() {
    let (own, entered) = OWN.get();
    if entered > 1 {
        return OWN.set((own, entered - 1));
    }
    OWN.set((std::ptr::null(), 0));
    if let Some(state) = State::ready().filter(|_| !own.is_null()) {
        if std::ptr::eq(state.api.in_slot(), own) {
            state.pop();
            attend_thread();
        }
        let free = FREE.try_lock();
        free.into_iter().for_each(|mut free| free.push_back(own.expose_provenance()));
    }
}

fn take_object(state: &State) -> *const c_void {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let rested = FREE.try_lock().ok().and_then(|mut free| if free.len() >= RESTING { free.pop_front() } else { None });
    match rested {
        Some(object) => {
            let object = std::ptr::with_exposed_provenance(object);
            // SAFETY: made by `new`.
            unsafe { object::set_number(object, number) };
            object
        }
        None => object::new(state.table, number),
    }
}
