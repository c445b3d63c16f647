//! A PyTorch for tests: one slot a thread, and a table of functions in an order of the test's choice.

use super::{Shared, StateApi};
use std::cell::Cell;
use std::ffi::c_void;

/// What this PyTorch does.
#[derive(Clone, Copy)]
pub(in super::super) struct Fake {
    /// Entries for reports, lack of memory, whether memory is wanted, and the kind of profiler.
    pub(in super::super) entries: [usize; 4],
    /// How the device is told.
    pub(in super::super) device_shift: u32,
    pub(in super::super) is_enabled: bool,
    pub(in super::super) loses_what_is_pushed: bool,
}

pub(in super::super) const AS_EXPECTED: Fake =
    Fake { entries: [2, 3, 4, 5], device_shift: 0, is_enabled: false, loses_what_is_pushed: false };

thread_local! {
    static FAKE: Cell<Fake> = const { Cell::new(AS_EXPECTED) };
    static IN_SLOT: Cell<*const c_void> = const { Cell::new(std::ptr::null()) };
}

/// The functions of this PyTorch, for the calling thread.
pub(in super::super) fn api(fake: Fake) -> StateApi {
    FAKE.set(fake);
    StateApi {
        slot: 2,
        get,
        push,
        pop,
        current,
        force_current,
        is_memory_wanted,
        report_memory,
        report_out_of_memory,
        is_profiler_enabled,
        profiler_type,
        type_info: 0,
    }
}

/// The function at an entry of the table of the object in the slot.
fn entry(which: usize) -> *const c_void {
    // SAFETY: objects begin with the address of their table.
    unsafe { *(*IN_SLOT.get().cast::<*const *const c_void>()).add(FAKE.get().entries[which]) }
}

unsafe extern "C" fn get(_: usize) -> *const c_void {
    IN_SLOT.get()
}

unsafe extern "C" fn push(_: usize, object: *mut Shared) {
    if !FAKE.get().loses_what_is_pushed {
        // SAFETY: the caller's pointer.
        IN_SLOT.set(unsafe { (*object).object });
    }
}

unsafe extern "C" fn pop(into: *mut Shared, _: usize) -> *mut Shared {
    IN_SLOT.set(std::ptr::null());
    into
}

unsafe extern "C" fn current(into: *mut Shared) -> *mut Shared {
    // SAFETY: room of the caller's; the slot stands for what holds its object.
    IN_SLOT.with(|slot| unsafe { (*into).object = slot.as_ptr().cast_const().cast() });
    into
}

unsafe extern "C" fn force_current(_: *mut Shared) {}

unsafe extern "C" fn is_memory_wanted() -> bool {
    // SAFETY: the trial's functions take any arguments.
    let ask: unsafe extern "C" fn(*const c_void) -> u64 = unsafe { std::mem::transmute(entry(2)) };
    // SAFETY: as above.
    unsafe { ask(IN_SLOT.get()) as u8 != 0 }
}

unsafe extern "C" fn profiler_type() -> i32 {
    // SAFETY: as above.
    let ask: unsafe extern "C" fn(*const c_void) -> u64 = unsafe { std::mem::transmute(entry(3)) };
    // SAFETY: as above.
    unsafe { ask(IN_SLOT.get()) as i32 }
}

unsafe extern "C" fn report_memory(address: u64, bytes: i64, allocated: u64, reserved: u64, device: u16) {
    let device = u64::from(device) << FAKE.get().device_shift;
    // SAFETY: as above.
    let tell: unsafe extern "C" fn(*const c_void, u64, i64, u64, u64, u64) = unsafe { std::mem::transmute(entry(0)) };
    // SAFETY: as above.
    unsafe { tell(IN_SLOT.get(), address, bytes, allocated, reserved, device) };
}

unsafe extern "C" fn report_out_of_memory(bytes: i64, allocated: u64, reserved: u64, device: u16) {
    // SAFETY: as above.
    let tell: unsafe extern "C" fn(*const c_void, i64, u64, u64, u64) = unsafe { std::mem::transmute(entry(1)) };
    // SAFETY: as above.
    unsafe { tell(IN_SLOT.get(), bytes, allocated, reserved, u64::from(device)) };
}

unsafe extern "C" fn is_profiler_enabled() -> bool {
    FAKE.get().is_enabled
}
