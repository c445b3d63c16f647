//! CUPTI's functions, as its headers declare them: none has ever changed its type.

use super::callbacks;
use crate::{Library, Refusal};
use std::ffi::{c_char, c_void};

/// CUPTI's number of a result.
pub(super) type Code = u32;
/// A subscriber.
pub(super) type Handle = *mut c_void;
/// What a subscriber is called by.
pub(super) type Listener = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// What both interfaces share.
pub(super) struct Common {
    pub(super) get_version: unsafe extern "C" fn(*mut u32) -> Code,
    pub(super) result_text: Option<unsafe extern "C" fn(Code, *mut *const c_char) -> Code>,
    pub(super) callback_name: unsafe extern "C" fn(u32, u32, *mut *const c_char) -> Code,
    pub(super) flush_all: unsafe extern "C" fn(u32) -> Code,
    pub(super) unsubscribe: unsafe extern "C" fn(Handle) -> Code,
}

/// The interface for one listener.
pub(super) struct First {
    pub(super) subscribe: unsafe extern "C" fn(*mut Handle, Listener, *mut c_void) -> Code,
    pub(super) register: unsafe extern "C" fn(callbacks::Request, callbacks::Complete) -> Code,
    pub(super) enable: unsafe extern "C" fn(u32) -> Code,
    pub(super) disable: unsafe extern "C" fn(u32) -> Code,
    pub(super) next: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> Code,
    pub(super) dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> Code,
    pub(super) now: unsafe extern "C" fn(*mut u64) -> Code,
    pub(super) enable_runtime_call: Option<unsafe extern "C" fn(u32, u8) -> Code>,
    pub(super) enable_driver_call: Option<unsafe extern "C" fn(u32, u8) -> Code>,
    pub(super) set_thread_ids: Option<unsafe extern "C" fn(u32) -> Code>,
    pub(super) set_clock: Option<unsafe extern "C" fn(callbacks::Clock) -> Code>,
}

/// The interface for many.
pub(super) struct Second {
    pub(super) subscribe: unsafe extern "C" fn(*mut Handle, Listener, *mut c_void, *mut Subscription) -> Code,
    pub(super) register: unsafe extern "C" fn(Handle, callbacks::RequestOfMany, callbacks::CompleteOfMany) -> Code,
    pub(super) enable: unsafe extern "C" fn(Handle, u32, *const c_void) -> Code,
    pub(super) disable: unsafe extern "C" fn(Handle, u32, *const c_void) -> Code,
    pub(super) next: unsafe extern "C" fn(Handle, *mut u8, usize, *mut *mut u8) -> Code,
    pub(super) dropped: unsafe extern "C" fn(Handle, *mut c_void, u32, *mut usize) -> Code,
    pub(super) now: unsafe extern "C" fn(Handle, *mut u64) -> Code,
    pub(super) enable_runtime_call: unsafe extern "C" fn(Handle, u32, u8) -> Code,
    pub(super) enable_driver_call: unsafe extern "C" fn(Handle, u32, u8) -> Code,
}

/// `CUpti_SubscriberParams`.
#[repr(C)]
pub(super) struct Subscription {
    pub(super) size: usize,
    pub(super) name: *const c_char,
    pub(super) other: *mut c_char,
    pub(super) other_size: usize,
    pub(super) allows_others: u8,
    pub(super) padding: [u8; 7],
}

/// # Safety
/// The library is CUPTI.
pub(super) unsafe fn common(library: Library) -> Result<Common, Refusal> {
    // SAFETY: as the caller vouches for; likewise below.
    unsafe {
        Ok(Common {
            get_version: library.required(c"cuptiGetVersion")?,
            result_text: library.function(c"cuptiGetResultString"),
            callback_name: library.required(c"cuptiGetCallbackName")?,
            flush_all: library.required(c"cuptiActivityFlushAll")?,
            unsubscribe: library.required(c"cuptiUnsubscribe")?,
        })
    }
}

/// # Safety
/// The library is CUPTI.
pub(super) unsafe fn first(library: Library) -> Result<First, Refusal> {
    // SAFETY: as above.
    unsafe {
        Ok(First {
            subscribe: library.required(c"cuptiSubscribe")?,
            register: library.required(c"cuptiActivityRegisterCallbacks")?,
            enable: library.required(c"cuptiActivityEnable")?,
            disable: library.required(c"cuptiActivityDisable")?,
            next: library.required(c"cuptiActivityGetNextRecord")?,
            dropped: library.required(c"cuptiActivityGetNumDroppedRecords")?,
            now: library.required(c"cuptiGetTimestamp")?,
            enable_runtime_call: library.function(c"cuptiActivityEnableRuntimeApi"),
            enable_driver_call: library.function(c"cuptiActivityEnableDriverApi"),
            set_thread_ids: library.function(c"cuptiSetThreadIdType"),
            set_clock: library.function(c"cuptiActivityRegisterTimestampCallback"),
        })
    }
}

/// # Safety
/// The library is CUPTI.
pub(super) unsafe fn second(library: Library) -> Option<Second> {
    // SAFETY: as above.
    unsafe {
        Some(Second {
            subscribe: library.function(c"cuptiSubscribe_v2")?,
            register: library.function(c"cuptiActivityRegisterCallbacks_v2")?,
            enable: library.function(c"cuptiActivityEnable_v2")?,
            disable: library.function(c"cuptiActivityDisable_v2")?,
            next: library.function(c"cuptiActivityGetNextRecord_v2")?,
            dropped: library.function(c"cuptiActivityGetNumDroppedRecords_v2")?,
            now: library.function(c"cuptiGetTimestamp_v2")?,
            enable_runtime_call: library.function(c"cuptiActivityEnableRuntimeApi_v2")?,
            enable_driver_call: library.function(c"cuptiActivityEnableDriverApi_v2")?,
        })
    }
}
