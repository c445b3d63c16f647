//! `libroctracer64.so`: its functions, and the callback that it is given.

use super::records::{self, RECORD_BYTES, Texts, Writer};
use crate::library::functions;
use crate::{BUFFER_BYTES, Library, Pool, Refusal};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

type Pooled = *mut c_void;
type BufferCallback = unsafe extern "C" fn(*const u8, *const u8, *mut c_void);

/// `roctracer_properties_t`.
#[repr(C)]
pub(super) struct Properties {
    mode: u32,
    buffer_size: usize,
    allocate: Option<unsafe extern "C" fn(*mut *mut u8, usize, *mut c_void)>,
    allocate_arg: *mut c_void,
    callback: BufferCallback,
    callback_arg: *mut c_void,
}

functions! {
    /// The functions.
    pub(super) struct Roctracer {
        required version_major: unsafe extern "C" fn() -> u32 = c"roctracer_version_major";
        required version_minor: unsafe extern "C" fn() -> u32 = c"roctracer_version_minor";
        required error: unsafe extern "C" fn() -> *const c_char = c"roctracer_error_string";
        required open: unsafe extern "C" fn(*const Properties, *mut Pooled) -> i32 = c"roctracer_open_pool_expl";
        required close: unsafe extern "C" fn(Pooled) -> i32 = c"roctracer_close_pool_expl";
        required enable: unsafe extern "C" fn(u32, Pooled) -> i32 = c"roctracer_enable_domain_activity_expl";
        required disable: unsafe extern "C" fn(u32) -> i32 = c"roctracer_disable_domain_activity";
        required flush: unsafe extern "C" fn(Pooled) -> i32 = c"roctracer_flush_activity_expl";
        required timestamp: unsafe extern "C" fn(*mut u64) -> i32 = c"roctracer_get_timestamp";
        required text: unsafe extern "C" fn(u32, u32, u32) -> *const c_char = c"roctracer_op_string";
        optional number: unsafe extern "C" fn(u32, *const c_char, *mut u32, *mut u32) -> i32 = c"roctracer_op_code";
        optional disable_one: unsafe extern "C" fn(u32, u32) -> i32 = c"roctracer_disable_op_activity";
    }
}

/// A pool of the library's, of which activity records come to [`POOL`].
pub(super) struct Opened(Pooled);

// SAFETY: the library's functions may be called on any thread, and this is only handed back to them.
unsafe impl Send for Opened {}

/// Bytes of each of the library's own two buffers: the job waits while both are full.
const THEIR_BYTES: usize = 1 << 20;

impl Roctracer {
    /// # Errors
    /// Which function is missing.
    pub(super) fn of(library: Library) -> Result<Self, Refusal> {
        // SAFETY: the types are those of `roctracer.h`.
        unsafe { Self::find(library) }
    }

    pub(super) fn version(&self) -> (u32, u32) {
        // SAFETY: they take nothing.
        unsafe { ((self.version_major)(), (self.version_minor)()) }
    }

    pub(super) fn timestamp_ns(&self) -> Option<i64> {
        let mut ns = 0;
        // SAFETY: the address of a number.
        let status = unsafe { (self.timestamp)(&raw mut ns) };
        i64::try_from(ns).ok().filter(|ns| status == 0 && *ns > 0)
    }

    /// # Errors
    /// What the library says.
    pub(super) fn open(&self) -> Result<Opened, String> {
        let properties = Properties {
            mode: 0,
            buffer_size: THEIR_BYTES,
            allocate: None,
            allocate_arg: std::ptr::null_mut(),
            callback: completed,
            callback_arg: std::ptr::null_mut(),
        };
        let mut pool = std::ptr::null_mut();
        // SAFETY: properties that it copies, and the address of a pointer that it sets; the callback lives as long as
        // the process, since this library is never unloaded.
        self.checked(unsafe { (self.open)(&raw const properties, &raw mut pool) })?;
        Ok(Opened(pool))
    }

    /// # Errors
    /// What the library says.
    pub(super) fn enable(&self, domain: u32, pool: &Opened) -> Result<(), String> {
        // SAFETY: a pool that is open.
        self.checked(unsafe { (self.enable)(domain, pool.0) })
    }

    /// Leaves out one call of a domain, by its name.
    pub(super) fn leave_out(&self, domain: u32, name: &str) {
        let (Some(number), Some(disable), Ok(name)) = (self.number, self.disable_one, CString::new(name)) else {
            return;
        };
        let mut call = 0;
        // SAFETY: a text with its zero, the address of a number, and no second one.
        if unsafe { number(domain, name.as_ptr(), &raw mut call, std::ptr::null_mut()) } == 0 {
            // SAFETY: numbers.
            unsafe { disable(domain, call) };
        }
    }

    pub(super) fn disable(&self, domain: u32) {
        // SAFETY: a number. That it was not enabled does no harm.
        unsafe { (self.disable)(domain) };
    }

    pub(super) fn flush(&self, pool: &Opened) {
        // SAFETY: a pool that is open.
        unsafe { (self.flush)(pool.0) };
    }

    /// Closes a pool of which nothing is enabled any more.
    pub(super) fn close(&self, pool: Opened) {
        // SAFETY: a pool that is open, and nobody else has it.
        unsafe { (self.close)(pool.0) };
    }

    fn checked(&self, status: i32) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: a text of the thread's own, or null.
        let message = text(unsafe { (self.error)() }).filter(|message| !message.is_empty());
        Err(message.unwrap_or_else(|| format!("error {status}")))
    }
}

impl Texts for Roctracer {
    fn operation(&self, domain: u32, op: u32, kind: u32) -> Option<String> {
        // SAFETY: a text of the library's own, or null.
        text(unsafe { (self.text)(domain, op, kind) })
    }
}

fn text(at: *const c_char) -> Option<String> {
    // SAFETY: callers have it from the library, as a text that ends with a zero.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}

/// The buffers.
pub(super) static POOL: Pool = Pool::new();
static LOST: AtomicU64 = AtomicU64::new(0);

/// How many activity records had no buffer since the last time.
pub(super) fn take_dropped() -> u64 {
    LOST.swap(0, Ordering::Relaxed)
}

/// The library hands over records, and takes them back when this returns, with the names that they point to. So both
/// are copied, on the library's own thread; behind it the job would have to wait.
unsafe extern "C" fn completed(begin: *const u8, end: *const u8, _: *mut c_void) {
    if begin.is_null() || begin.addr() >= end.addr() {
        return;
    }
    let mut left = (end.addr() - begin.addr()) / RECORD_BYTES;
    // SAFETY: `left` records begin there, and none is changed before this returns.
    let mut records =
        unsafe { std::slice::from_raw_parts(begin, left * RECORD_BYTES) }.chunks_exact(RECORD_BYTES).peekable();
    while left > 0 {
        let Some(base) = POOL.take() else {
            LOST.fetch_add(left as u64, Ordering::Relaxed);
            return;
        };
        // SAFETY: the buffer was taken, and has `BUFFER_BYTES` bytes that were written when it was mapped.
        let mut writer = Writer::new(unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), BUFFER_BYTES) });
        while let Some(record) = records.next_if(|record| {
            // SAFETY: the library keeps the text of a name that a record has for as long as the record.
            let name = records::name_address(record).map(|at| unsafe { CStr::from_ptr(at as *const c_char) });
            writer.add(record, name.map_or(&[], CStr::to_bytes))
        }) {
            debug_assert_eq!(record.len(), RECORD_BYTES);
            left -= 1;
        }
        POOL.put(base.as_ptr(), writer.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_buffer_records_are_counted() {
        let records = [0u8; 5 * RECORD_BYTES + 1];
        // SAFETY: the records' own bounds.
        let complete =
            || unsafe { completed(records.as_ptr(), records.as_ptr().add(records.len()), std::ptr::null_mut()) };
        complete();
        assert_eq!([take_dropped(), take_dropped()], [5, 0]);
        POOL.open(8 << 20);
        complete();
        let full = POOL.next_full().expect("a buffer");
        assert_eq!((records::written(full.bytes()).count(), take_dropped()), (5, 0));
        drop(full);
        POOL.close();
    }
}
