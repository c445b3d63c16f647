//! Objects that PyTorch takes for a profiler's state: a table of functions, and nothing but zeros behind it.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries of a table of functions; PyTorch's own have 6 to 8.
pub(super) const TABLE_LEN: usize = 16;
/// Words of an object. PyTorch's own take about 100; zeros say that profiling is switched off.
const OBJECT_WORDS: usize = 512;

/// The functions that PyTorch calls.
pub(super) struct Functions {
    pub(super) report_memory: unsafe extern "C" fn(*const c_void, u64, i64, u64, u64, u16),
    pub(super) report_out_of_memory: unsafe extern "C" fn(*const c_void, i64, u64, u64, u16),
    pub(super) is_memory_wanted: unsafe extern "C" fn(*const c_void) -> bool,
    pub(super) profiler_type: unsafe extern "C" fn(*const c_void) -> i32,
}

/// Which entry of the table each of them is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slots {
    pub(super) report_memory: usize,
    pub(super) report_out_of_memory: usize,
    pub(super) is_memory_wanted: usize,
    pub(super) profiler_type: usize,
}

/// A table of our functions, which objects that stay have in common.
pub(super) fn table(slots: &Slots, type_info: usize) -> Table {
    let functions = super::FUNCTIONS;
    let mut table = [nothing as *const () as usize; TABLE_LEN];
    table[slots.report_memory] = functions.report_memory as usize;
    table[slots.report_out_of_memory] = functions.report_out_of_memory as usize;
    table[slots.is_memory_wanted] = functions.is_memory_wanted as usize;
    table[slots.profiler_type] = functions.profiler_type as usize;
    table_of(table, type_info)
}

/// An object whose table has these functions. It is never freed.
pub(super) fn with_table(functions: [usize; TABLE_LEN], type_info: usize) -> *const c_void {
    new(table_of(functions, type_info), 0)
}

/// The address with which objects of a table begin.
pub(super) type Table = usize;

fn table_of(functions: [usize; TABLE_LEN], type_info: usize) -> Table {
    // Before the functions: how far the object is from its beginning, and what tells its type.
    let mut table = Box::new([0; TABLE_LEN + 2]);
    table[1] = type_info;
    table[2..].copy_from_slice(&functions);
    let functions = (&raw const table[2]) as Table;
    Box::leak(table);
    functions
}

/// An object that stays, with a number behind all that PyTorch looks at. It is never freed.
pub(super) fn new(table: Table, number: u64) -> *const c_void {
    let object = Box::leak(Box::new([const { AtomicU64::new(0) }; OBJECT_WORDS]));
    object[0].store(table as u64, Ordering::Relaxed);
    object[OBJECT_WORDS - 1].store(number, Ordering::Relaxed);
    std::ptr::from_ref(object).cast()
}

/// The number of an object; `None` for those that have another table.
///
/// # Safety
/// `object` is null, or the address of a live object with a table of functions.
#[inline]
pub(super) unsafe fn number_of(table: Table, object: *const c_void) -> Option<u64> {
    // SAFETY: the caller's promise; who has our table is as long as our objects are.
    unsafe {
        let is_ours = !object.is_null() && object.cast::<Table>().read() == table;
        is_ours.then(|| (*object.cast::<AtomicU64>().add(OBJECT_WORDS - 1)).load(Ordering::Relaxed))
    }
}

/// Gives one of our objects another number.
///
/// # Safety
/// `object` was made by [`new`].
pub(super) unsafe fn set_number(object: *const c_void, number: u64) {
    // SAFETY: the caller's promise.
    unsafe { &*object.cast::<AtomicU64>().add(OBJECT_WORDS - 1) }.store(number, Ordering::Relaxed);
}

/// What PyTorch is not known to call.
unsafe extern "C" fn nothing(_: *const c_void) -> usize {
    0
}
