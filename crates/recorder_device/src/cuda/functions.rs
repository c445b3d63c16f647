//! CUPTI's functions, as its headers declare them: none has ever changed its type.

use super::callbacks;
use crate::library::functions;
use std::ffi::{c_char, c_void};

/// CUPTI's number of a result.
pub(super) type Code = u32;
/// A subscriber.
pub(super) type Handle = *mut c_void;
/// What a subscriber is called by.
pub(super) type Listener = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

functions! {
    /// What both interfaces share.
    pub(super) struct Common {
        required get_version: unsafe extern "C" fn(*mut u32) -> Code = c"cuptiGetVersion";
        optional result_text: unsafe extern "C" fn(Code, *mut *const c_char) -> Code = c"cuptiGetResultString";
        required callback_name: unsafe extern "C" fn(u32, u32, *mut *const c_char) -> Code = c"cuptiGetCallbackName";
        required flush_all: unsafe extern "C" fn(u32) -> Code = c"cuptiActivityFlushAll";
        required unsubscribe: unsafe extern "C" fn(Handle) -> Code = c"cuptiUnsubscribe";
    }
}

functions! {
    /// The interface for one listener.
    pub(super) struct First {
        required subscribe: unsafe extern "C" fn(*mut Handle, Listener, *mut c_void) -> Code = c"cuptiSubscribe";
        required register: unsafe extern "C" fn(callbacks::Request, callbacks::Complete) -> Code = c"cuptiActivityRegisterCallbacks";
        required enable: unsafe extern "C" fn(u32) -> Code = c"cuptiActivityEnable";
        required disable: unsafe extern "C" fn(u32) -> Code = c"cuptiActivityDisable";
        required next: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> Code = c"cuptiActivityGetNextRecord";
        required dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> Code = c"cuptiActivityGetNumDroppedRecords";
        required now: unsafe extern "C" fn(*mut u64) -> Code = c"cuptiGetTimestamp";
        optional enable_runtime_call: unsafe extern "C" fn(u32, u8) -> Code = c"cuptiActivityEnableRuntimeApi";
        optional enable_driver_call: unsafe extern "C" fn(u32, u8) -> Code = c"cuptiActivityEnableDriverApi";
        optional set_thread_ids: unsafe extern "C" fn(u32) -> Code = c"cuptiSetThreadIdType";
        optional set_clock: unsafe extern "C" fn(callbacks::Clock) -> Code = c"cuptiActivityRegisterTimestampCallback";
    }
}

functions! {
    /// The interface for many.
    pub(super) struct Second {
        required subscribe: unsafe extern "C" fn(*mut Handle, Listener, *mut c_void, *mut Subscription) -> Code = c"cuptiSubscribe_v2";
        required register: unsafe extern "C" fn(Handle, callbacks::RequestOfMany, callbacks::CompleteOfMany) -> Code = c"cuptiActivityRegisterCallbacks_v2";
        required enable: unsafe extern "C" fn(Handle, u32, *const c_void) -> Code = c"cuptiActivityEnable_v2";
        required disable: unsafe extern "C" fn(Handle, u32, *const c_void) -> Code = c"cuptiActivityDisable_v2";
        required next: unsafe extern "C" fn(Handle, *mut u8, usize, *mut *mut u8) -> Code = c"cuptiActivityGetNextRecord_v2";
        required dropped: unsafe extern "C" fn(Handle, *mut c_void, u32, *mut usize) -> Code = c"cuptiActivityGetNumDroppedRecords_v2";
        required now: unsafe extern "C" fn(Handle, *mut u64) -> Code = c"cuptiGetTimestamp_v2";
        required enable_runtime_call: unsafe extern "C" fn(Handle, u32, u8) -> Code = c"cuptiActivityEnableRuntimeApi_v2";
        required enable_driver_call: unsafe extern "C" fn(Handle, u32, u8) -> Code = c"cuptiActivityEnableDriverApi_v2";
    }
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
