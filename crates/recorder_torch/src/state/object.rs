//! Objects that PyTorch takes for a profiler's state: a table of functions, and nothing but zeros behind it.

use std::ffi::c_void;

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

/// The object that stays.
pub(super) fn new(slots: &Slots, type_info: usize) -> *const c_void {
    let functions = super::FUNCTIONS;
    let mut table = [nothing as *const () as usize; TABLE_LEN];
    table[slots.report_memory] = functions.report_memory as usize;
    table[slots.report_out_of_memory] = functions.report_out_of_memory as usize;
    table[slots.is_memory_wanted] = functions.is_memory_wanted as usize;
    table[slots.profiler_type] = functions.profiler_type as usize;
    with_table(table, type_info)
}

/// An object whose table has these functions. It is never freed.
pub(super) fn with_table(functions: [usize; TABLE_LEN], type_info: usize) -> *const c_void {
    // Before the functions: how far the object is from its beginning, and what tells its type.
    let mut table = Box::new([0; TABLE_LEN + 2]);
    table[1] = type_info;
    table[2..].copy_from_slice(&functions);
    let mut object = Box::new([0_usize; OBJECT_WORDS]);
    object[0] = (&raw const table[2]) as usize;
    Box::leak(table);
    std::ptr::from_mut(Box::leak(object)).cast_const().cast()
}

/// What PyTorch is not known to call.
unsafe extern "C" fn nothing(_: *const c_void) -> usize {
    0
}
