//! The functions of PyTorch around a thread's profiler state, found by their exported names.

#[cfg(test)]
pub(super) mod fake;

use crate::api::{library, symbol};
use crate::solve::Refusal;
use std::ffi::c_void;
use std::path::Path;

/// A `std::shared_ptr` of libstdc++: the object, and the block that counts its owners. Without such a block nobody
/// counts, and the object is never freed.
#[repr(C)]
pub(super) struct Shared {
    object: *const c_void,
    owners: *const c_void,
}

impl Shared {
    /// A pointer to an object that lives for ever.
    pub(super) fn uncounted(object: *const c_void) -> Self {
        Self { object, owners: std::ptr::null() }
    }

    fn null() -> Self {
        Self::uncounted(std::ptr::null())
    }
}

/// PyTorch's number of the profiler's slot, in the releases in which it is a number.
const SLOT_NUMBER: usize = 2;

/// PyTorch's exported functions; a `Shared` is passed and given back by hidden reference.
#[derive(Clone, Copy)]
pub(super) struct StateApi {
    /// What names the profiler's slot: a number, or in later releases an address.
    slot: usize,
    /// `c10::ThreadLocalDebugInfo::get(DebugInfoKind)`.
    get: unsafe extern "C" fn(usize) -> *const c_void,
    /// `c10::ThreadLocalDebugInfo::_push(DebugInfoKind, std::shared_ptr<DebugInfoBase>)`.
    push: unsafe extern "C" fn(usize, *mut Shared),
    /// `c10::ThreadLocalDebugInfo::_pop(DebugInfoKind)`; throws when the innermost object is in another slot.
    pop: unsafe extern "C" fn(*mut Shared, usize) -> *mut Shared,
    /// `c10::ThreadLocalDebugInfo::current()`: what holds the innermost object.
    current: unsafe extern "C" fn(*mut Shared) -> *mut Shared,
    /// `c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(std::shared_ptr<ThreadLocalDebugInfo>)`.
    force_current: unsafe extern "C" fn(*mut Shared),
    /// `c10::memoryProfilingEnabled()`.
    pub(super) is_memory_wanted: unsafe extern "C" fn() -> bool,
    /// `c10::reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, Device)`.
    pub(super) report_memory: unsafe extern "C" fn(u64, i64, u64, u64, u16),
    /// `c10::reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device)`.
    pub(super) report_out_of_memory: unsafe extern "C" fn(i64, u64, u64, u16),
    /// `torch::profiler::impl::profilerEnabled()`.
    pub(super) is_profiler_enabled: unsafe extern "C" fn() -> bool,
    /// `torch::profiler::impl::profilerType()`.
    pub(super) profiler_type: unsafe extern "C" fn() -> i32,
    /// What tells `dynamic_cast` that an object is a `c10::MemoryReportingInfoBase` and nothing more; 0: unknown.
    pub(super) type_info: usize,
}

impl StateApi {
    /// Finds the functions in the libraries in `folder`, which the process has loaded.
    pub(super) fn find(folder: &Path) -> Result<Self, Refusal> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Refusal::UnsupportedPlatform);
        }
        let (c10, cpu) = (library(folder, "libc10.so")?, library(folder, "libtorch_cpu.so")?);
        // SAFETY: each symbol's mangled name fixes its argument types, which the field's type repeats; the slot's name
        // is an object of the size of an address.
        unsafe {
            let slot = symbol::<*const usize>(c10, "_ZN3c1013DebugInfoKind14PROFILER_STATEE");
            Ok(Self {
                slot: slot.map_or(SLOT_NUMBER, |slot| *slot),
                get: symbol(c10, "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE")?,
                push: symbol(
                    c10,
                    "_ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE",
                )?,
                pop: symbol(c10, "_ZN3c1020ThreadLocalDebugInfo4_popENS_13DebugInfoKindE")?,
                current: symbol(c10, "_ZN3c1020ThreadLocalDebugInfo7currentEv")?,
                force_current: symbol(
                    c10,
                    "_ZN3c1020ThreadLocalDebugInfo22_forceCurrentDebugInfoESt10shared_ptrIS0_E",
                )?,
                is_memory_wanted: symbol(c10, "_ZN3c1022memoryProfilingEnabledEv")?,
                report_memory: symbol(c10, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE")?,
                report_out_of_memory: symbol(c10, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE")?,
                is_profiler_enabled: symbol(cpu, "_ZN5torch8profiler4impl15profilerEnabledEv")?,
                profiler_type: symbol(cpu, "_ZN5torch8profiler4impl12profilerTypeEv")?,
                type_info: symbol(c10, "_ZTIN3c1023MemoryReportingInfoBaseE").unwrap_or(0),
            })
        }
    }

    /// The object in the calling thread's slot, or null.
    #[inline(always)]
    pub(super) fn in_slot(&self) -> *const c_void {
        // SAFETY: looks only.
        unsafe { (self.get)(self.slot) }
    }

    /// Puts an object into the calling thread's slot.
    ///
    /// # Safety
    /// PyTorch can use the object as what it expects there.
    pub(super) unsafe fn push(&self, mut object: Shared) {
        // SAFETY: the caller's promise.
        unsafe { (self.push)(self.slot, &raw mut object) };
    }

    /// What holds the calling thread's innermost object, and begins with its address; null without one.
    pub(super) fn holder(&self) -> *const *const c_void {
        let mut innermost = Shared::null();
        // SAFETY: room for what is given back. It is counted: giving it to PyTorch again, as what it is already, is how
        // it is let go of.
        unsafe {
            (self.current)(&raw mut innermost);
            let holder = innermost.object.cast();
            (self.force_current)(&raw mut innermost);
            holder
        }
    }

    /// The exported function that looks into slots.
    pub(super) fn looks_into_slots(&self) -> *const c_void {
        self.get as *const c_void
    }

    /// Takes `object` out of the calling thread's slot, unless something else of this thread was pushed after it.
    ///
    /// # Safety
    /// `object` was pushed by [`Self::push`], uncounted.
    pub(super) unsafe fn pop_if_innermost(&self, object: *const c_void) -> bool {
        let holder = self.holder();
        // SAFETY: the thread's own holder, which lives as long as it is the innermost. That it begins with the pointer
        // to its object the trial has proven.
        let is_innermost = !holder.is_null() && std::ptr::eq(unsafe { *holder }, object);
        if is_innermost {
            let mut popped = Shared::null();
            // SAFETY: room for what is given back, which is not counted.
            unsafe { (self.pop)(&raw mut popped, self.slot) };
        }
        is_innermost
    }
}
