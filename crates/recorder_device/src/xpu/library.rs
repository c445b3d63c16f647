//! `libpti_view.so`: its functions, and the callbacks that it is given.

use super::records::{Sizes, Texts};
use crate::library::functions;
use crate::{BUFFER_BYTES, Library, Pool, Refusal};
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU64, Ordering};

type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize);
type Completed = unsafe extern "C" fn(*mut u8, usize, usize);

functions! {
    /// The functions.
    pub(super) struct Pti {
        required set_callbacks: unsafe extern "C" fn(Requested, Completed) -> u32 = c"ptiViewSetCallbacks";
        required enable: unsafe extern "C" fn(u32) -> u32 = c"ptiViewEnable";
        required disable: unsafe extern "C" fn(u32) -> u32 = c"ptiViewDisable";
        required flush: unsafe extern "C" fn() -> u32 = c"ptiFlushAllViews";
        required next_record: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> u32 = c"ptiViewGetNextRecord";
        required timestamp: unsafe extern "C" fn() -> u64 = c"ptiViewGetTimestamp";
        required version: unsafe extern "C" fn() -> *const c_char = c"ptiVersionString";
        optional result_text: unsafe extern "C" fn(u32) -> *const c_char = c"ptiResultTypeToString";
        optional overhead_text: unsafe extern "C" fn(u32) -> *const c_char = c"ptiViewOverheadKindToString";
        /// From 0.11 on, as are the two below.
        optional call_name: unsafe extern "C" fn(u32, u32, *mut *const c_char) -> u32 = c"ptiViewGetApiIdName";
        optional enable_runtime_calls: unsafe extern "C" fn(u32, u32, u32) -> u32 = c"ptiViewEnableRuntimeApiClass";
        optional enable_driver_calls: unsafe extern "C" fn(u32, u32, u32) -> u32 = c"ptiViewEnableDriverApiClass";
    }
}

/// Calls that enqueue work, and those that wait for it.
const CALL_CLASSES: [u32; 2] = [1, 2];
/// The calls of every library.
const ALL_GROUPS: u32 = 0x7fff_ffff;

impl Pti {
    /// # Errors
    /// Which function is missing.
    pub(super) fn of(library: Library) -> Result<Self, Refusal> {
        // SAFETY: the types are those of `pti_view.h` and `pti.h`.
        unsafe { Self::find(library) }
    }

    pub(super) fn version(&self) -> String {
        // SAFETY: a text of the library's own, or null.
        text(unsafe { (self.version)() }).unwrap_or_default()
    }

    pub(super) fn timestamp_ns(&self) -> Option<i64> {
        // SAFETY: only called where the driver is in use, which the library takes for granted.
        i64::try_from(unsafe { (self.timestamp)() }).ok().filter(|ns| *ns > 0)
    }

    /// How long records are, of which the library walks an empty one of each kind.
    pub(super) fn sizes(&self) -> Sizes {
        Sizes::of(|kind| {
            const ROOM: usize = 1024;
            let mut words = [0u64; ROOM / 8];
            words[0] = u64::from(kind);
            let base = words.as_mut_ptr().cast::<u8>();
            let mut record = base;
            // SAFETY: a buffer of this length that holds a record of the kind, and the address of that record. What is
            // behind the last record is never looked into; the words outlive the call.
            let status = unsafe { (self.next_record)(base, ROOM, &raw mut record) };
            (status == 0).then(|| record.addr().wrapping_sub(base.addr())).filter(|size| (4..ROOM).contains(size))
        })
    }

    /// Has buffers of the pool used.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn set_callbacks(&self) -> Result<(), String> {
        // SAFETY: two functions that live as long as the process: this library is never unloaded.
        self.checked(unsafe { (self.set_callbacks)(requested, completed) })
    }

    /// # Errors
    /// What the library says.
    pub(super) fn enable(&self, kind: u32) -> Result<(), String> {
        // SAFETY: a number.
        self.checked(unsafe { (self.enable)(kind) })
    }

    pub(super) fn disable(&self, kind: u32) {
        // SAFETY: a number. That it was not enabled does no harm.
        unsafe { (self.disable)(kind) };
    }

    /// Leaves out calls that neither enqueue work nor wait. Without this every call is recorded.
    pub(super) fn select_calls(&self) {
        for select in [self.enable_runtime_calls, self.enable_driver_calls].into_iter().flatten() {
            for class in CALL_CLASSES {
                // SAFETY: numbers.
                unsafe { select(1, class, ALL_GROUPS) };
            }
        }
    }

    pub(super) fn flush(&self) {
        // SAFETY: nothing is handed over; what is complete comes through `completed`.
        unsafe { (self.flush)() };
    }

    fn checked(&self, status: u32) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: any number has a text of the library's own, or null.
        let message = self.result_text.and_then(|tell| text(unsafe { tell(status) }));
        Err(message.unwrap_or_else(|| format!("error {status}")))
    }
}

impl Texts for Pti {
    fn call(&self, group: u32, id: u32) -> Option<String> {
        let mut name = std::ptr::null();
        // SAFETY: the address of a pointer, that the library sets to a text of its own.
        let status = unsafe { self.call_name?(group, id, &raw mut name) };
        if status == 0 { text(name) } else { None }
    }

    fn overhead(&self, kind: u32) -> String {
        // SAFETY: any number has a text of the library's own, or null.
        let message = self.overhead_text.and_then(|tell| text(unsafe { tell(kind) }));
        message.unwrap_or_else(|| format!("overhead {kind}"))
    }

    fn at(&self, address: u64) -> Option<&'static CStr> {
        let text = std::ptr::with_exposed_provenance::<c_char>(address as usize);
        // SAFETY: from a record of a kind whose fields are known; the library keeps the texts that its records point to
        // for as long as it is loaded, which is for ever.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
    }

    fn has_call_ids(&self) -> bool {
        self.call_name.is_some()
    }
}

fn text(at: *const c_char) -> Option<String> {
    // SAFETY: callers have it from the library, as a text that ends with a zero.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}

/// The buffers.
pub(super) static POOL: Pool = Pool::new();
/// Bytes of activity records that had no buffer.
static LOST_BYTES: AtomicU64 = AtomicU64::new(0);
/// Where activity records go that have no buffer: the library does not expect to get none. Nobody reads it.
static SINK: Sink = Sink(UnsafeCell::new([0; SINK_BYTES / 8]));
const SINK_BYTES: usize = 64 << 10;

struct Sink(UnsafeCell<[u64; SINK_BYTES / 8]>);

// SAFETY: its bytes are only ever written, by code that is not ours, through a raw pointer.
unsafe impl Sync for Sink {}

/// The shortest record of work: what is lost is counted from bytes, and never too low.
const SHORTEST_WORK: u64 = 136;

/// How many activity records had no buffer since the last time.
pub(super) fn take_dropped() -> u64 {
    LOST_BYTES.swap(0, Ordering::Relaxed).div_ceil(SHORTEST_WORK)
}

/// The library wants a buffer, on a thread of the job's or of its own.
unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize) {
    if buffer.is_null() || size.is_null() {
        return;
    }
    let (base, len) = match POOL.take() {
        Some(base) => (base.as_ptr(), BUFFER_BYTES),
        None => (SINK.0.get().cast::<u8>(), SINK_BYTES),
    };
    // SAFETY: the library's own two variables, which it asks to be set.
    unsafe {
        *buffer = base;
        *size = len;
    }
}

/// The library hands a buffer over that it writes to no longer.
unsafe extern "C" fn completed(buffer: *mut u8, _size: usize, valid: usize) {
    if std::ptr::eq(buffer, SINK.0.get().cast()) {
        LOST_BYTES.fetch_add(valid as u64, Ordering::Relaxed);
    } else {
        POOL.put(buffer, valid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> (*mut u8, usize) {
        let (mut buffer, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: two variables.
        unsafe { requested(&raw mut buffer, &raw mut size) };
        (buffer, size)
    }

    #[test]
    fn without_a_buffer_reports_go_nowhere_and_are_counted() {
        let (sink, size) = request();
        assert_eq!((sink.is_null(), size), (false, SINK_BYTES));
        assert_eq!(request().0, sink);
        // SAFETY: what was requested.
        unsafe { completed(sink, size, 10 * 136) };
        assert_eq!([take_dropped(), take_dropped()], [10, 0]);
        // SAFETY: what was requested.
        unsafe { completed(sink, size, 1) };
        assert_eq!(take_dropped(), 1, "never too low");

        POOL.open(8 << 20);
        let (buffer, size) = request();
        assert_eq!((buffer == sink, size), (false, BUFFER_BYTES));
        // SAFETY: what was requested.
        unsafe { completed(buffer, size, 48) };
        assert_eq!(POOL.next_full().map(|full| full.len()), Some(48));
        assert_eq!(take_dropped(), 0);
        POOL.close();
    }
}
