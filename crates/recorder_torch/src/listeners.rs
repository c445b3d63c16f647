//! Whether somebody else than us wants to hear of labels: another profiler, an observer, a tracer.
//!
//! PyTorch has a function that gives the callbacks of the calling thread for a scope, or none; it calls it for every op,
//! so that it takes few nanoseconds. What it gives is a list in a place of the caller's, of which we count the entries. A
//! trial proves that beforehand.

use crate::api::{Callback, EndFn, StartFn, library, symbol};
use crate::probe::see_end;
use crate::solve::Refusal;
use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use stepscope_recorder::scope;

/// Room for what PyTorch gives back, of which it takes 13 in the releases that are known.
const WORDS: usize = 64;

/// The head of `std::optional<at::StepCallbacks>`: a `c10::SmallVector`, whose entries follow while they are few.
#[repr(C)]
struct Given {
    /// Left as it was where there are no callbacks.
    begin: *mut c_void,
    len: u32,
    capacity: u32,
    rest: [usize; WORDS - 2],
}

/// PyTorch's exported functions.
#[derive(Clone, Copy)]
struct Listeners {
    /// `at::getStepCallbacksUnlessEmpty(RecordScope)`; gives back by hidden reference.
    callbacks: unsafe extern "C" fn(*mut MaybeUninit<Given>, u8) -> *mut MaybeUninit<Given>,
    /// `torch::jit::tracer::getTracingState()`: a reference to a `std::shared_ptr`, null while nothing is traced.
    tracing_state: unsafe extern "C" fn() -> *const *const c_void,
    /// `at::addThreadLocalCallback(RecordFunctionCallback)`.
    add_to_thread: unsafe extern "C" fn(Callback) -> u64,
    /// `at::removeCallback(handle)`.
    remove: unsafe extern "C" fn(u64),
}

/// Made ready by [`probe_listeners`]; never freed or changed.
static READY: AtomicPtr<Listeners> = AtomicPtr::new(std::ptr::null_mut());
/// Callbacks for all threads that are ours, or about to be.
static OURS: AtomicU32 = AtomicU32::new(0);

/// Proves, in the PyTorch whose libraries lie in `folder`, that listeners can be counted. Nothing happens when that is
/// known.
///
/// # Errors
/// When anything is not as expected: nobody else is then taken for a listener.
pub fn probe_listeners(folder: &Path) -> Result<(), Refusal> {
    if Listeners::ready().is_some() {
        return Ok(());
    }
    let listeners = Listeners::find(folder)?;
    // On a thread of its own, whose callbacks nobody else hears of.
    let trial = std::thread::Builder::new().name("stepscope-probe".into()).spawn(move || listeners.are_counted());
    let trial = trial.map_err(|error| Refusal::CannotLook { reason: error.to_string() })?;
    if !trial.join().unwrap_or(false) {
        return Err(Refusal::StateNotUnderstood { what: "callbacks cannot be counted" });
    }
    READY.store(Box::into_raw(Box::new(listeners)), Ordering::Release);
    Ok(())
}

/// True when somebody else than us hears of labels that begin on the calling thread now: through a callback, or as they
/// become part of a traced graph.
#[inline(always)]
pub fn has_other_listeners() -> bool {
    Listeners::ready().is_some_and(|listeners| {
        // SAFETY: functions that were tried.
        unsafe { listeners.count(scope::LABEL) > OURS.load(Ordering::Relaxed) || listeners.is_tracing() }
    })
}

/// Adds callbacks of the calling thread, for all scopes; gives the handle that removes them. `None` where nothing is proven.
///
/// # Safety
/// They keep to their types' contracts and live for ever: PyTorch may call them after their removal.
pub(crate) unsafe fn add_to_thread(start: StartFn, end: EndFn) -> Option<u64> {
    // SAFETY: the caller's promise.
    Listeners::ready().map(|listeners| unsafe { listeners.add(start, end, |_| true) })
}

/// Removes callbacks.
///
/// # Safety
/// The handle is one that [`add_to_thread`] gave on this thread.
pub(crate) unsafe fn remove(handle: u64) {
    // SAFETY: the caller's promise.
    Listeners::ready().into_iter().for_each(|listeners| unsafe { (listeners.remove)(handle) });
}

/// A callback of ours for all threads is about to be added.
pub(crate) fn one_more_of_ours() {
    OURS.fetch_add(1, Ordering::AcqRel);
}

/// It was removed.
pub(crate) fn one_less_of_ours() {
    OURS.fetch_sub(1, Ordering::AcqRel);
}

thread_local! {
    /// Where the calling thread's tracing state is, once that was asked for.
    static TRACING_STATE: Cell<*const *const c_void> = const { Cell::new(std::ptr::null()) };
}

impl Listeners {
    fn find(folder: &Path) -> Result<Self, Refusal> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Refusal::UnsupportedPlatform);
        }
        let library = library(folder, "libtorch_cpu.so")?;
        // SAFETY: each symbol's mangled name fixes its argument types, which the field's type repeats.
        unsafe {
            Ok(Self {
                callbacks: symbol(library, "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE")?,
                tracing_state: symbol(library, "_ZN5torch3jit6tracer15getTracingStateEv")?,
                add_to_thread: symbol(library, "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE")?,
                remove: symbol(library, "_ZN2at14removeCallbackEm")?,
            })
        }
    }

    #[inline(always)]
    fn ready() -> Option<&'static Listeners> {
        // SAFETY: null, or what is never freed or changed.
        unsafe { READY.load(Ordering::Acquire).as_ref() }
    }

    /// How many callbacks the calling thread has for a scope.
    ///
    /// # Safety
    /// The function is PyTorch's, or does as it does.
    #[inline(always)]
    unsafe fn count(&self, scope: u8) -> u32 {
        let mut given = MaybeUninit::<Given>::uninit();
        // SAFETY: room for more than is written, and a head of which the address is written in any case.
        unsafe {
            let begin = &raw mut (*given.as_mut_ptr()).begin;
            begin.write(std::ptr::null_mut());
            (self.callbacks)(&raw mut given, scope);
            if (*begin).is_null() { 0 } else { Self::count_given(given.as_mut_ptr()) }
        }
    }

    /// # Safety
    /// A list that was given.
    #[cold]
    unsafe fn count_given(given: *mut Given) -> u32 {
        // SAFETY: the caller's promise; a list of many has its entries elsewhere, in memory of its own.
        unsafe {
            if !(given as usize..given.add(1) as usize).contains(&((*given).begin as usize)) {
                libc::free((*given).begin);
            }
            (*given).len
        }
    }

    /// # Safety
    /// As in [`Self::count`].
    #[inline(always)]
    unsafe fn is_tracing(&self) -> bool {
        // Asked for once a thread, which has it at one place: a call takes more than twice as long as looking there.
        let known = TRACING_STATE.get();
        // SAFETY: a reference is no null pointer, and lives as long as the thread.
        unsafe { !(*if known.is_null() { self.find_tracing_state() } else { known }).is_null() }
    }

    #[cold]
    unsafe fn find_tracing_state(&self) -> *const *const c_void {
        // SAFETY: the caller's promise.
        let found = unsafe { (self.tracing_state)() };
        TRACING_STATE.set(found);
        found
    }

    /// Adds and removes callbacks of the calling thread, which has none of its own and traces nothing: true where the
    /// count follows each time.
    fn are_counted(&self) -> bool {
        const MANY: u32 = 6;
        // SAFETY: functions that are found by their names; what is given is looked at as the count does it, and the
        // callbacks live as long as the process.
        unsafe {
            let before = self.count(scope::LABEL);
            let for_ops = self.add_silent(&[scope::FUNCTION]);
            let mut follows = self.count(scope::LABEL) == before && !self.is_tracing();
            let handles: Vec<u64> = (1..=MANY)
                .map(|added| {
                    let handle = self.add_silent(&[scope::FUNCTION, scope::LABEL]);
                    follows &= self.count(scope::LABEL) == before + added;
                    handle
                })
                .collect();
            for (removed, handle) in (1..).zip(handles) {
                (self.remove)(handle);
                follows &= self.count(scope::LABEL) == before + MANY - removed;
            }
            (self.remove)(for_ops);
            follows
        }
    }

    /// # Safety
    /// As in [`Self::are_counted`].
    unsafe fn add_silent(&self, scopes: &[u8]) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.add(see_nothing, see_end, |scope| scopes.contains(&scope)) }
    }

    /// # Safety
    /// As in [`add_to_thread`].
    unsafe fn add(&self, start: StartFn, end: EndFn, has_scope: impl Fn(u8) -> bool) -> u64 {
        let callback = Callback {
            start,
            end,
            sampling_probability: 1.0,
            scopes: std::array::from_fn(|scope| has_scope(scope as u8)),
            needs_inputs: false,
            needs_outputs: false,
            needs_ids: false,
        };
        // SAFETY: the caller's promise.
        unsafe { (self.add_to_thread)(callback) }
    }
}

unsafe extern "C" fn see_nothing(context: *mut *mut c_void, _: *const u8) -> *mut *mut c_void {
    // SAFETY: PyTorch passes room for its pointer; null is a `unique_ptr` that owns nothing.
    unsafe { *context = std::ptr::null_mut() };
    context
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static CALLBACKS: RefCell<Vec<(u64, Callback)>> = const { RefCell::new(Vec::new()) };
        /// What the fake adds to each count.
        static MISCOUNT: Cell<u32> = const { Cell::new(0) };
    }

    /// Entries that are kept beside the head.
    const FEW: usize = 4;
    const ENTRY_BYTES: usize = 16;

    unsafe extern "C" fn callbacks(into: *mut MaybeUninit<Given>, scope: u8) -> *mut MaybeUninit<Given> {
        let wanted = |(_, callback): &&(u64, Callback)| callback.scopes[usize::from(scope)];
        let len = CALLBACKS.with_borrow(|callbacks| callbacks.iter().filter(wanted).count());
        if len > 0 {
            // SAFETY: the caller's room; memory that `free` takes.
            unsafe {
                let given = (*into).as_mut_ptr();
                let own = (&raw mut (*given).rest).cast();
                (*given).begin = if len > FEW { libc::malloc(len * ENTRY_BYTES) } else { own };
                (*given).len = len as u32 + MISCOUNT.get();
            }
        }
        into
    }

    unsafe extern "C" fn tracing_state() -> *const *const c_void {
        struct Nothing(*const c_void);
        // SAFETY: never changed.
        unsafe impl Sync for Nothing {}
        static NOTHING: Nothing = Nothing(std::ptr::null());
        &raw const NOTHING.0
    }

    unsafe extern "C" fn add(callback: Callback) -> u64 {
        CALLBACKS.with_borrow_mut(|callbacks| {
            let handle = callbacks.last().map_or(1, |(handle, _)| handle + 1);
            callbacks.push((handle, callback));
            handle
        })
    }

    unsafe extern "C" fn remove(handle: u64) {
        CALLBACKS.with_borrow_mut(|callbacks| callbacks.retain(|(known, _)| *known != handle));
    }

    const FAKE: Listeners = Listeners { callbacks, tracing_state, add_to_thread: add, remove };

    #[test]
    fn callbacks_are_counted_few_and_many_and_those_of_others_too() {
        assert!(FAKE.are_counted());
        // SAFETY: the fake does as PyTorch does.
        unsafe {
            assert_eq!(FAKE.count(scope::LABEL), 0);
            FAKE.add_silent(&[scope::LABEL]);
            assert!(FAKE.are_counted());
            assert_eq!((FAKE.count(scope::LABEL), FAKE.count(scope::FUNCTION)), (1, 0));
        }
    }

    #[test]
    fn a_count_that_does_not_follow_is_refused() {
        MISCOUNT.set(1);
        assert!(!FAKE.are_counted());
    }
}
