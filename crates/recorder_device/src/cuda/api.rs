//! CUPTI's functions, of the interface that this CUPTI is listened to by.
//!
//! The first interface belongs to one listener a process. From CUDA 13.3 on there is a second, of which every listener
//! has a handle of its own; the two must not be mixed.

use super::callbacks;
use super::functions::{Code, Common, First, Handle, Second, Subscription};
use crate::{Library, Refusal};
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

const SUCCESS: Code = 0;
const NOT_COMPATIBLE: Code = 14;
const INSUFFICIENT_PRIVILEGES: Code = 35;
const MULTIPLE_SUBSCRIBERS: Code = 39;
const VIRTUALIZED_INSUFFICIENT_PRIVILEGES: Code = 40;

/// CUDA 11.8, whose records are the oldest that are known here.
const OLDEST: u32 = 18;
/// CUDA 13.3, the first whose second interface is complete.
const SECOND_INTERFACE: u32 = 130_300;
/// Flushes what has no end yet, too.
const FORCED: u32 = 1;
/// Threads are told by the lower half of `pthread_self`.
const THREADS_OF_PTHREAD: u32 = 0;

/// Whose functions a call is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Domain {
    Driver = 1,
    Runtime = 2,
}

/// CUPTI, as it was found.
pub(super) struct Cupti {
    version: u32,
    common: Common,
    first: First,
    second: Option<Second>,
    subscriber: Subscriber,
}

enum Subscriber {
    /// Nobody, as yet.
    None,
    /// Nobody: somebody else is, who is idle. The first interface works all the same.
    Unsubscribed,
    First(Handle),
    Second(Handle),
}

// SAFETY: CUPTI's handles and functions may be used on any thread.
unsafe impl Send for Cupti {}

/// Called for calls that were asked for: none are.
unsafe extern "C" fn listener(_data: *mut c_void, _domain: u32, _call: u32, _info: *const c_void) {}

impl Cupti {
    /// Finds the functions.
    pub(super) fn find(library: Library) -> Result<Self, Refusal> {
        // SAFETY: the types are those of CUPTI's headers, where no function has ever changed its own.
        let (common, first, second) =
            unsafe { (Common::find(library)?, First::find(library)?, Second::find(library).ok()) };
        let mut version = 0;
        // SAFETY: the number is writable.
        let code = unsafe { (common.get_version)(&mut version) };
        let cupti = Self { version, common, first, second, subscriber: Subscriber::None };
        cupti.check(code, "its version is asked for")?;
        if version < OLDEST {
            return Err(Refusal(format!("CUPTI {version} is too old: CUDA 11.8 or later is needed")));
        }
        Ok(cupti)
    }

    /// `13.0`, or the number that it had until CUDA 12.9.
    pub(super) fn version_text(&self) -> String {
        match self.version {
            0..1000 => format!("API {}", self.version),
            _ => format!("{}.{}", self.version / 10_000, self.version % 10_000 / 100),
        }
    }

    /// How it is listened to.
    pub(super) fn interface_text(&self) -> &'static str {
        match self.subscriber {
            Subscriber::Second(_) => "v2, beside others",
            Subscriber::First(_) => "v1",
            Subscriber::Unsubscribed => "v1, unsubscribed",
            Subscriber::None if self.has_second() => "v2",
            Subscriber::None => "v1",
        }
    }

    /// False where it is listened to beside somebody who is.
    pub(super) fn is_subscribed(&self) -> bool {
        matches!(self.subscriber, Subscriber::First(_) | Subscriber::Second(_))
    }

    fn has_second(&self) -> bool {
        self.version >= SECOND_INTERFACE && self.second.is_some()
    }

    /// Makes us a listener. `others_are_idle`: who else is one does not listen now, and so is not disturbed.
    pub(super) fn subscribe(&mut self, others_are_idle: bool) -> Result<(), Refusal> {
        let mut handle = null_mut();
        let mut other = [0u8; 128];
        if let (true, Some(second)) = (self.has_second(), &self.second) {
            let mut subscription = Subscription {
                size: size_of::<Subscription>(),
                name: c"stepscope".as_ptr(),
                other: other.as_mut_ptr().cast(),
                other_size: other.len(),
                allows_others: 1,
                padding: [0; 7],
            };
            // SAFETY: handle and parameters are writable, and the callback lives for ever.
            match unsafe { (second.subscribe)(&mut handle, listener, null_mut(), &mut subscription) } {
                SUCCESS => {
                    self.subscriber = Subscriber::Second(handle);
                    return Ok(());
                }
                // Somebody listens by the first interface, or has: it is that for all.
                NOT_COMPATIBLE => {}
                MULTIPLE_SUBSCRIBERS if others_are_idle => {}
                code => return Err(self.refusal(code, "it is subscribed to", &text_of(&other))),
            }
        }
        // SAFETY: as above.
        match unsafe { (self.first.subscribe)(&mut handle, listener, null_mut()) } {
            SUCCESS => self.subscriber = Subscriber::First(handle),
            MULTIPLE_SUBSCRIBERS if others_are_idle => self.subscriber = Subscriber::Unsubscribed,
            code => return Err(self.refusal(code, "it is subscribed to", "")),
        }
        if let Some(set_thread_ids) = self.first.set_thread_ids {
            // SAFETY: a number that the function knows.
            let code = unsafe { set_thread_ids(THREADS_OF_PTHREAD) };
            self.check(code, "threads are to be told by pthread_self")?;
        }
        Ok(())
    }

    /// Has CUPTI use the clock that it has by itself. PyTorch's profiler gives it another one, for ever: times of both
    /// in one capture would be told by one line. Where it cannot be set, nobody else can set it either.
    pub(super) fn set_clock(&self) {
        // The second interface has no such function, and refuses that of the first.
        if let (None, Some(set_clock)) = (self.second(), self.first.set_clock) {
            // SAFETY: the callback lives for ever, never unwinds, and may be called on any thread.
            unsafe { set_clock(callbacks::unix_ns) };
        }
    }

    /// Has buffers taken from the pool.
    pub(super) fn register(&self) -> Result<(), Refusal> {
        // SAFETY: the callbacks live for ever, never unwind, and may be called on any thread.
        let code = unsafe {
            match self.second() {
                Some((second, handle)) => {
                    (second.register)(handle, callbacks::request_of_many, callbacks::complete_of_many)
                }
                None => (self.first.register)(callbacks::request, callbacks::complete),
            }
        };
        self.check(code, "buffers are offered")
    }

    /// Turns a kind of record on, which is called `what`.
    pub(super) fn enable(&self, kind: u32, what: &str) -> Result<(), Refusal> {
        // SAFETY: plain numbers; there is no configuration.
        let code = unsafe {
            match self.second() {
                Some((second, handle)) => (second.enable)(handle, kind, null()),
                None => (self.first.enable)(kind),
            }
        };
        self.check(code, &format!("{what} are asked for"))
    }

    /// Turns it off.
    pub(super) fn disable(&self, kind: u32) {
        // SAFETY: as above.
        unsafe {
            match self.second() {
                Some((second, handle)) => (second.disable)(handle, kind, null()),
                None => (self.first.disable)(kind),
            }
        };
    }

    /// Turns off one call of a domain that is on. Where that cannot be done, it stays on.
    pub(super) fn turn_off_call(&self, domain: Domain, call: u32) {
        // SAFETY: plain numbers.
        unsafe {
            match (self.second(), domain) {
                (Some((second, handle)), Domain::Driver) => Some((second.enable_driver_call)(handle, call, 0)),
                (Some((second, handle)), Domain::Runtime) => Some((second.enable_runtime_call)(handle, call, 0)),
                (None, Domain::Driver) => self.first.enable_driver_call.map(|enable| enable(call, 0)),
                (None, Domain::Runtime) => self.first.enable_runtime_call.map(|enable| enable(call, 0)),
            }
        };
    }

    /// The name of a call.
    pub(super) fn call_name(&self, domain: Domain, call: u32) -> Option<&'static CStr> {
        let mut name = null();
        // SAFETY: the pointer is writable.
        let code = unsafe { (self.common.callback_name)(domain as u32, call, &mut name) };
        // SAFETY: CUPTI's names are constants of its library, which is never unloaded.
        (code == SUCCESS && !name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
    }

    /// Has full buffers handed over, and those that are complete; when `is_forced`, all.
    pub(super) fn flush(&self, is_forced: bool) {
        // SAFETY: callbacks are registered.
        unsafe { (self.common.flush_all)(if is_forced { FORCED } else { 0 }) };
    }

    /// The record after `record` in a buffer, the first after null; null when there is none.
    ///
    /// # Safety
    /// `base` is that of a buffer that CUPTI has filled with `len` bytes and nobody else has; `record` came from here.
    pub(super) unsafe fn next_record(&self, base: *mut u8, len: usize, record: *mut u8) -> *mut u8 {
        let mut record = record;
        // SAFETY: as the caller vouches for.
        let code = unsafe {
            match self.second() {
                Some((second, handle)) => (second.next)(handle, base, len, &mut record),
                None => (self.first.next)(base, len, &mut record),
            }
        };
        if code == SUCCESS { record } else { null_mut() }
    }

    /// How many records CUPTI has thrown away since the last time.
    pub(super) fn dropped(&self) -> u64 {
        let mut dropped = 0;
        // SAFETY: the number is writable.
        let code = unsafe {
            match self.second() {
                Some((second, handle)) => (second.dropped)(handle, null_mut(), 0, &mut dropped),
                None => (self.first.dropped)(null_mut(), 0, &mut dropped),
            }
        };
        if code == SUCCESS { dropped as u64 } else { 0 }
    }

    /// CUPTI's clock.
    pub(super) fn now_ns(&self) -> Option<i64> {
        let mut now = 0;
        // SAFETY: the number is writable.
        let code = unsafe {
            match self.second() {
                Some((second, handle)) => (second.now)(handle, &mut now),
                None => (self.first.now)(&mut now),
            }
        };
        (code == SUCCESS && now != 0).then_some(now as i64)
    }

    fn second(&self) -> Option<(&Second, Handle)> {
        match (&self.second, &self.subscriber) {
            (Some(second), Subscriber::Second(handle)) => Some((second, *handle)),
            _ => None,
        }
    }

    fn check(&self, code: Code, when: &str) -> Result<(), Refusal> {
        if code == SUCCESS { Ok(()) } else { Err(self.refusal(code, when, "")) }
    }

    /// What a user can do about it, or at least what CUPTI says.
    fn refusal(&self, code: Code, when: &str, other: &str) -> Refusal {
        Refusal(match code {
            INSUFFICIENT_PRIVILEGES | VIRTUALIZED_INSUFFICIENT_PRIVILEGES => {
                "the driver lets only administrators profile: have its module loaded with \
                 NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN"
                    .into()
            }
            MULTIPLE_SUBSCRIBERS => {
                let other = if other.is_empty() { "another tool" } else { other };
                format!(
                    "{other} listens to CUPTI already, and CUPTI has one listener a process: end it, or begin to \
                     record before it does"
                )
            }
            _ => format!("CUPTI says {} when {when}", self.text_of(code)),
        })
    }

    fn text_of(&self, code: Code) -> String {
        let mut text = null();
        // SAFETY: the pointer is writable, and the texts are constants of the library.
        let known = self.common.result_text.and_then(|result_text| unsafe {
            (result_text(code, &mut text) == SUCCESS && !text.is_null()).then(|| CStr::from_ptr(text))
        });
        known.map_or_else(|| format!("error {code}"), |text| text.to_string_lossy().into_owned())
    }
}

impl Drop for Cupti {
    fn drop(&mut self) {
        if let Subscriber::First(handle) | Subscriber::Second(handle) = self.subscriber {
            // SAFETY: the handle of our subscription, once.
            unsafe { (self.common.unsubscribe)(handle) };
        }
    }
}

/// The text up to its zero.
fn text_of(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes).map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
}
