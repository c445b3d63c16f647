//! Whose buffer is whose: each thread has one from its first record to its end.

use super::ThreadBuffer;
use crate::session::count_dropped;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// In one place, so that the hot path asks once where this thread's memory is.
    static MINE: Mine = const { Mine { buffer: Cell::new(std::ptr::null_mut()), words: Cell::new([std::ptr::null(); 2]) } };
    pub(crate) static OWNER: RefCell<Owner> = const { RefCell::new(Owner { name: None, is_owning: false }) };
}

/// What each thread has.
struct Mine {
    buffer: Cell<*mut ThreadBuffer>,
    words: Cell<[*const c_void; 2]>,
}

/// The hook's own words of the calling thread; null in a new thread.
#[inline(always)]
pub fn thread_words() -> [*const c_void; 2] {
    MINE.with(|mine| mine.words.get())
}

/// Sets them.
pub fn set_thread_words(words: [*const c_void; 2]) {
    MINE.with(|mine| mine.words.set(words));
}

/// Frees the buffer when its thread ends. Apart from [`MINE`], so that the hot path needs no destructor check.
pub(crate) struct Owner {
    /// The name that the program gave the thread.
    pub(crate) name: Option<Box<[u8]>>,
    is_owning: bool,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.is_owning {
            return;
        }
        let buffer = MINE.with(|mine| mine.buffer.replace(DEAD));
        if !buffer.is_null() && buffer != DEAD {
            // SAFETY: made by `Box::into_raw` for this thread, which ends.
            unsafe { Box::from_raw(buffer) }.retire();
        }
    }
}

/// Stands for the buffer of a thread that is past its end.
const DEAD: *mut ThreadBuffer = std::ptr::without_provenance_mut(8);

/// How a hook learns the framework's id of the calling thread; 0 while there is none.
static FRAMEWORK_THREAD: AtomicUsize = AtomicUsize::new(0);

/// Says how the framework's own id of the calling thread is found; asked once a thread and segment.
pub fn set_framework_thread(id_of_thread: extern "C" fn() -> u64) {
    FRAMEWORK_THREAD.store(id_of_thread as usize, Ordering::Release);
}

pub(crate) fn framework_thread() -> u64 {
    match FRAMEWORK_THREAD.load(Ordering::Acquire) {
        0 => 0,
        address => {
            // SAFETY: only ever set from a function of this type.
            let id_of_thread = unsafe { std::mem::transmute::<usize, extern "C" fn() -> u64>(address) };
            id_of_thread()
        }
    }
}

#[inline(always)]
fn buffer_of_thread() -> *mut ThreadBuffer {
    MINE.with(|mine| mine.buffer.get())
}

/// True once the calling thread has recorded something.
pub(crate) fn has_buffer() -> bool {
    !buffer_of_thread().is_null()
}

/// True when the calling thread is past its end and cannot record any more.
pub(crate) fn is_past_end() -> bool {
    buffer_of_thread() == DEAD
}

/// Runs `f` with the calling thread's buffer; `None` when the thread is past its end.
#[inline(always)]
pub(crate) fn with_buffer<R>(f: impl FnOnce(&mut ThreadBuffer) -> R) -> Option<R> {
    // SAFETY: `f` does not re-enter.
    Some(f(unsafe { own_buffer() }?))
}

/// The calling thread's buffer; `None` when the thread is past its end.
///
/// # Safety
/// Nobody else on this thread has a reference to it for as long as the caller has.
#[inline(always)]
pub(super) unsafe fn own_buffer<'a>() -> Option<&'a mut ThreadBuffer> {
    let buffer = buffer_of_thread();
    let buffer = if buffer as usize <= DEAD as usize { first_use(buffer)? } else { buffer };
    // SAFETY: the buffer lives until its thread ends, and is only used by that thread; the caller's promise.
    Some(unsafe { &mut *buffer })
}

/// Whether this is the process' first thread. It ends with the process, and what runs while that ends is still recorded.
fn is_first_thread() -> bool {
    // SAFETY: plain system calls.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}

#[cold]
fn first_use(found: *mut ThreadBuffer) -> Option<*mut ThreadBuffer> {
    if found == DEAD {
        count_dropped();
        return None;
    }
    let is_owning = !is_first_thread();
    let marked = OWNER.try_with(|owner| owner.try_borrow_mut().map(|mut owner| owner.is_owning = is_owning).is_ok());
    if !matches!(marked, Ok(true)) {
        return None;
    }
    let buffer = Box::into_raw(Box::new(ThreadBuffer::new()));
    MINE.with(|mine| mine.buffer.set(buffer));
    Some(buffer)
}
