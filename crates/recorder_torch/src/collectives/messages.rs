//! What the inputs of a range `gloo:all_reduce` say: tensors, of which the number of elements and their type count.
//!
//! The range has its inputs also where no callback asks for inputs. Each is a value of 16 bytes: a payload, here the
//! tensor, and a tag. The tag of tensors is learnt from an op that runs with a known tensor.

use super::{element_type, gloo_groups, process_group};
use crate::api::{library, symbol};
use crate::hook::Hook;
use crate::peek::Peek;
use crate::solve::Refusal;
use std::ffi::{CStr, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};
use stepscope_recorder::collectives::describe as describe_pairs;

/// Bytes of one input.
const INPUT_BYTES: usize = 16;
/// Collectives of more tensors than this are not summed up.
const MOST_INPUTS: usize = 1 << 16;

/// How tensors among inputs are read.
struct Tensors {
    tag: u32,
    get_numel: GetLong,
    get_dtype: GetInt,
}

/// Getters of PyTorch's C interface: 0 means success.
type GetLong = unsafe extern "C" fn(tensor: *const c_void, value: *mut i64) -> i32;
type GetInt = unsafe extern "C" fn(tensor: *const c_void, value: *mut i32) -> i32;

static TENSORS: AtomicPtr<Tensors> = AtomicPtr::new(std::ptr::null_mut());

/// The first input of the op that was watched, and its thread; no thread: nothing is watched.
static SEEN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static WATCHED_THREAD: AtomicI64 = AtomicI64::new(0);
static WATCH_HANDLE: AtomicU64 = AtomicU64::new(0);

/// Begins to watch the calling thread's next op.
///
/// # Errors
/// When PyTorch was not probed.
pub fn prove_tensors_begin() -> Result<(), Refusal> {
    let hook = Hook::ready().ok_or(Refusal::NotProbed)?;
    WATCHED_THREAD.store(tid(), Ordering::Release);
    // SAFETY: the callbacks keep to their contracts and live as long as the process.
    WATCH_HANDLE.store(unsafe { hook.api.add(see_start, see_end, true, false) }, Ordering::Release);
    Ok(())
}

/// Ends the watch. The op's first input was the tensor whose object lies at `tensor`, with `numel` elements of the
/// type with the number `dtype`; only when all of that is found, tensors are read from now on.
///
/// # Errors
/// What was not found.
pub fn prove_tensors_end(folder: &Path, tensor: u64, numel: i64, dtype: i32) -> Result<(), Refusal> {
    let hook = Hook::ready().ok_or(Refusal::NotProbed)?;
    // SAFETY: the handle that `add` gave.
    unsafe { (hook.api.remove_callback)(WATCH_HANDLE.swap(0, Ordering::AcqRel)) };
    WATCHED_THREAD.store(0, Ordering::Release);
    let [payload, tag] = [&SEEN[0], &SEEN[1]].map(|word| word.swap(0, Ordering::AcqRel));
    if payload != tensor || tensor == 0 {
        return Err(Refusal::Ambiguous { field: "tensor among the inputs", candidates: vec![] });
    }
    let library = library(folder, "libtorch_cpu.so")?;
    // SAFETY: the C interface's own types.
    let tensors = unsafe {
        Tensors {
            tag: tag as u32,
            get_numel: symbol(library, "aoti_torch_get_numel")?,
            get_dtype: symbol(library, "aoti_torch_get_dtype")?,
        }
    };
    // A tensor is one pointer to its object; so is the payload.
    let handle = std::ptr::from_ref(&payload).cast();
    // SAFETY: the caller's tensor lives, and the getters only read it.
    if unsafe { tensors.read(handle) } != Some((numel, dtype)) {
        return Err(Refusal::Ambiguous { field: "size of a tensor", candidates: vec![] });
    }
    TENSORS.store(Box::into_raw(Box::new(tensors)), Ordering::Release);
    Ok(())
}

unsafe extern "C" fn see_start(context: *mut *mut c_void, function: *const u8) -> *mut *mut c_void {
    // SAFETY: PyTorch passes room for its pointer; null is a `unique_ptr` that owns nothing.
    unsafe { *context = std::ptr::null_mut() };
    let is_watched = WATCHED_THREAD.load(Ordering::Acquire) == tid() && SEEN[0].load(Ordering::Acquire) == 0;
    if let Some(hook) = Hook::ready().filter(|_| is_watched) {
        // SAFETY: PyTorch passes a live object; what its fields point at is copied without risk of a fault.
        unsafe {
            if CStr::from_ptr((hook.api.name)(function)).to_bytes() != b"aten::exp" {
                return context;
            }
            let inputs = *function.add(hook.layout.inputs).cast::<*const u8>();
            let mut words = [0_u8; INPUT_BYTES];
            if Peek::new().is_ok_and(|peek| peek.copy(inputs, &mut words) == INPUT_BYTES) {
                let word = |at: usize| u64::from_le_bytes(words[at..at + 8].try_into().unwrap_or_default());
                SEEN[1].store(word(8), Ordering::Release);
                SEEN[0].store(word(0), Ordering::Release);
            }
        }
    }
    context
}

unsafe extern "C" fn see_end(_: *const u8, _: *mut c_void) {}

fn tid() -> i64 {
    // SAFETY: a plain system call.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

impl Tensors {
    /// Number of elements, and type, of the tensor at `handle`.
    ///
    /// # Safety
    /// A live tensor lies there.
    unsafe fn read(&self, handle: *const c_void) -> Option<(i64, i32)> {
        let (mut numel, mut dtype) = (0, 0);
        // SAFETY: the caller's promise; the values are writable.
        let codes = unsafe { [(self.get_numel)(handle, &mut numel), (self.get_dtype)(handle, &mut dtype)] };
        (codes == [0, 0]).then_some((numel, dtype))
    }

    /// Elements of all inputs together, and their common type; `None` where an input is no tensor.
    ///
    /// # Safety
    /// `function` is a live object of the hook's layout.
    unsafe fn sum(&self, hook: &Hook, function: *const u8) -> Option<(i64, Option<i32>)> {
        // SAFETY: the probe proved the field; inputs live while the range begins, and only those with the tag of
        // tensors are taken for one.
        unsafe {
            let inputs = *function.add(hook.layout.inputs).cast::<*const u8>();
            let len = *function.add(hook.layout.inputs + 8).cast::<usize>();
            if inputs.is_null() || len == 0 || len > MOST_INPUTS {
                return None;
            }
            let mut elements = 0_i64;
            let mut common = None;
            for input in (0..len).map(|at| inputs.add(at * INPUT_BYTES)) {
                let (payload, tag) = (*input.cast::<u64>(), *input.add(8).cast::<u32>());
                if tag != self.tag || payload == 0 {
                    return None;
                }
                let (numel, dtype) = self.read(input.cast())?;
                elements = elements.checked_add(numel)?;
                common = match common {
                    None => Some(Some(dtype)),
                    Some(Some(known)) if known == dtype => common,
                    _ => Some(None),
                };
            }
            Some((elements, common.flatten()))
        }
    }
}

/// Describes the collective of a labelled range.
///
/// # Safety
/// `function` is a live object of the hook's layout.
pub(super) unsafe fn describe(hook: &Hook, function: *const u8, name: &str) -> Option<(String, Option<i64>)> {
    // SAFETY: null, or what is never freed or changed.
    let tensors = unsafe { TENSORS.load(Ordering::Acquire).as_ref() };
    // SAFETY: the caller's promise.
    let sum = tensors.and_then(|tensors| unsafe { tensors.sum(hook, function) });
    let mut pairs = vec![("name", name.to_string())];
    if let Some((elements, dtype)) = sum {
        pairs.extend(dtype.and_then(element_type).map(|dtype| ("dtype", dtype.to_string())));
        pairs.push(("input_elements", elements.to_string()));
        // These work in place.
        if matches!(name, "all_reduce" | "broadcast") {
            pairs.push(("output_elements", elements.to_string()));
        }
    }
    let description = describe_pairs(pairs);
    let group = if gloo_groups::is_on() { gloo_groups::work_begins() } else { process_group::begin() };
    match group {
        Some((group, number)) => Some((format!("{description}\n{group}"), number)),
        None => Some((description, None)),
    }
}
