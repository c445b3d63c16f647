//! Objects that wait to be used again: a label and what a `with` binds to it live as long as a block.

use pyo3::ffi::{self, PyObject};
use std::cell::UnsafeCell;

/// As many as blocks lie inside each other, twice; what is beyond that is freed.
const OBJECTS: usize = 32;

/// Memory of objects of one class that nobody refers to, which the collector does not look at.
pub(crate) struct Stock(UnsafeCell<([*mut PyObject; OBJECTS], usize)>);

// SAFETY: only touched by the thread that holds the interpreter's lock.
unsafe impl Sync for Stock {}

impl Stock {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(([std::ptr::null_mut(); OBJECTS], 0)))
    }

    /// An object with a head of its own, and behind it what its fields were last; `None` when there is none.
    ///
    /// # Safety
    /// Called with the lock, with the class of this stock.
    #[inline]
    pub(crate) unsafe fn take(&self, class: *mut ffi::PyTypeObject) -> Option<*mut PyObject> {
        // SAFETY: the caller's promise; what waits has the memory of such an object.
        unsafe {
            let (objects, count) = &mut *self.0.get();
            let last = count.checked_sub(1)?;
            *count = last;
            Some(ffi::PyObject_Init(objects[last], class))
        }
    }

    /// Keeps the memory of an object; false when there is no room.
    ///
    /// # Safety
    /// Called with the lock, with an object of the stock's class that nobody refers to and that refers to nothing.
    #[inline]
    pub(crate) unsafe fn give(&self, object: *mut PyObject) -> bool {
        // SAFETY: the caller's promise.
        let (objects, count) = unsafe { &mut *self.0.get() };
        let has_room = *count < OBJECTS;
        if has_room {
            objects[*count] = object;
            *count += 1;
        }
        has_room
    }
}
