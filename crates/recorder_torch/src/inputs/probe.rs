//! Watches a few known ops with known inputs run, to learn where PyTorch keeps them.
//!
//! The caller runs the calls of [`KNOWN_CALLS`] in their order between [`inputs_probe_begin`] and [`inputs_probe_end`],
//! on one thread, and names some tensors whose sizes it knows.

use super::solve::{
    Known, OBJECT_BYTES, SeenCall, SeenTensor, SeenValue, TARGET_BYTES, TENSOR_BYTES, VALUE_BYTES, solve,
};
use super::{InputsReader, LayoutFn};
use crate::Refusal;
use crate::api::address_in;
use crate::hook::Hook;
use crate::peek::Peek;
use std::ffi::{CStr, c_void};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A tensor that the caller knows: its address, sizes, strides, scalar type, and what it is.
pub struct KnownTensor {
    /// Address of PyTorch's object.
    pub address: usize,
    /// Its sizes.
    pub sizes: Vec<i64>,
    /// Its strides; of one that has none, nothing.
    pub strides: Vec<i64>,
    /// Name of its scalar type, as `torch.float32`.
    pub dtype: String,
    /// `plain`; `strides` or `sizes` when it asks Python for them; `sparse`.
    pub what: String,
}

/// Scalar types and their numbers, which never change: saved models hold them.
const DTYPES: [(&str, u16); 8] = [
    ("torch.uint8", 0),
    ("torch.int64", 4),
    ("torch.float16", 5),
    ("torch.float32", 6),
    ("torch.float64", 7),
    ("torch.complex64", 9),
    ("torch.bool", 11),
    ("torch.bfloat16", 15),
];

/// A probe under way.
struct Probe {
    hook: Hook,
    handle: u64,
    peek: Peek,
    tid: i64,
    seen: Vec<(String, SeenCall)>,
}

static PROBE: Mutex<Option<Probe>> = Mutex::new(None);

/// The calls that are run: op, and what it is called with. The tensors of `aten::cat` are the first two that are named.
fn known_calls(tensors: &[KnownTensor]) -> Vec<(&'static str, Vec<Known>)> {
    let full = |sizes: &[i64], value: Known, dtype: i64| {
        let sizes = Known::Ints(sizes.into());
        ("aten::full", vec![sizes, value, Known::Int(dtype), Known::Any, Known::Any, Known::Bool(false)])
    };
    let address = |at: usize| tensors.get(at).map_or(0, |tensor| tensor.address);
    let cat = |order: &[usize], axis: i64| {
        let tensors = Known::Tensors(order.iter().map(|at| address(*at)).collect());
        ("aten::cat", vec![tensors, Known::Int(axis)])
    };
    vec![
        full(&[3, 5, 7], Known::Double(1.5), 7),
        full(&[11], Known::Bool(true), 11),
        full(&[2, 4], Known::Complex(2.5, 3.5), 10),
        full(&[6], Known::Int(-9), 4),
        cat(&[0, 1, 0], 1),
        cat(&[1, 0], -1),
        ("aten::div", vec![Known::Any, Known::Any, Known::Text("trunc")]),
        ("aten::pad", vec![Known::Any, Known::Ints(vec![1, 2]), Known::Text("constant"), Known::Any]),
    ]
}

/// Begins to watch the calling thread's ops.
///
/// # Errors
/// When the hook itself is not ready.
pub fn inputs_probe_begin() -> Result<(), Refusal> {
    let hook = *Hook::ready().ok_or(Refusal::NotProbed)?;
    let peek = Peek::new().map_err(|error| Refusal::CannotLook { reason: error.to_string() })?;
    *PROBE.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Probe { hook, handle: 0, peek, tid: crate::probe::tid(), seen: Vec::new() });
    // SAFETY: both callbacks keep to their contracts and live as long as the process.
    let handle = unsafe { hook.api.add(see_start, crate::probe::see_end, true, false) };
    if let Some(probe) = &mut *PROBE.lock().unwrap_or_else(PoisonError::into_inner) {
        probe.handle = handle;
    }
    Ok(())
}

/// Ends a watch; nothing happens without one.
pub fn inputs_probe_cancel() {
    drop(take());
}

fn take() -> Option<Probe> {
    let probe = PROBE.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    // SAFETY: the handle that `add` gave.
    unsafe { (probe.hook.api.remove_callback)(probe.handle) };
    Some(probe)
}

/// Ends the watch; when one layout explains all that was seen, inputs can be recorded. `folder` has PyTorch's libraries.
///
/// # Errors
/// When nothing is certain: inputs are then not recorded.
pub fn inputs_probe_end(folder: &Path, tensors: &[KnownTensor]) -> Result<(), Refusal> {
    let probe = take().ok_or(Refusal::NotProbed)?;
    let known = known_calls(tensors);
    let mut seen = probe.seen.into_iter();
    let mut calls = Vec::new();
    for (op, values) in known {
        // The calls ran in this order; an op may call itself again.
        let Some((_, call)) = seen.find(|(name, call)| name == op && call.values.len() == values.len()) else {
            return Err(Refusal::InputsUnclear { field: op, is_ambiguous: false });
        };
        calls.push((call, values));
    }
    let tensors: Vec<SeenTensor> = tensors.iter().filter_map(|tensor| see_tensor(&probe.peek, tensor)).collect();
    let layout = solve(&calls, &tensors)?;
    let undefined = address_in(folder, "libc10.so", c"_ZN3c1019UndefinedTensorImpl10_singletonE");
    let undefined = undefined.ok_or(Refusal::MissingSymbol { name: "UndefinedTensorImpl::_singleton" })? as usize;
    let get_layout = address_in(folder, "libtorch_cpu.so", c"aoti_torch_get_layout");
    // SAFETY: a C function, whose name fixes its type.
    let get_layout = get_layout.map(|address| unsafe { std::mem::transmute::<*mut c_void, LayoutFn>(address) });
    Hook { inputs: Some(InputsReader { layout, undefined, get_layout }), ..probe.hook }.make_ready();
    Ok(())
}

fn see_tensor(peek: &Peek, known: &KnownTensor) -> Option<SeenTensor> {
    let mut bytes = [0; TENSOR_BYTES];
    peek.copy(known.address as *const u8, &mut bytes);
    let numbers_at = |place: usize| {
        let address = u64::from_le_bytes(bytes[place..place + 8].try_into().ok()?);
        let mut numbers = vec![0; known.sizes.len() * 16];
        let len = peek.copy(address as *const u8, &mut numbers);
        let number = |chunk: &[u8]| i64::from_le_bytes(chunk.try_into().unwrap_or_default());
        (len == numbers.len()).then(|| (place, numbers.chunks_exact(8).map(number).collect()))
    };
    Some(SeenTensor {
        outer: (8..TENSOR_BYTES).step_by(8).filter_map(numbers_at).collect(),
        bytes,
        sizes: known.sizes.clone(),
        strides: known.strides.clone(),
        dtype: DTYPES.iter().find(|(name, _)| *name == known.dtype)?.1,
        policy: match known.what.as_str() {
            "strides" | "sparse" => 1,
            "sizes" => 2,
            _ => 0,
        },
        is_plain: known.what != "sparse",
    })
}

unsafe extern "C" fn see_start(context: *mut *mut c_void, function: *const u8) -> *mut *mut c_void {
    const MOST_SEEN: usize = 64;
    // SAFETY: PyTorch passes room for its pointer; null is a `unique_ptr` that owns nothing.
    unsafe { *context = std::ptr::null_mut() };
    // As in the other probe, nobody waits.
    let Ok(mut probe) = PROBE.try_lock() else { return context };
    let is_wanted = |probe: &&mut Probe| probe.tid == crate::probe::tid() && probe.seen.len() < MOST_SEEN;
    if let Some(probe) = probe.as_mut().filter(is_wanted) {
        // SAFETY: PyTorch passes a live object, which the first probe has proven.
        let seen = unsafe { see(probe, function) };
        probe.seen.extend(seen);
    }
    context
}

unsafe fn see(probe: &Probe, function: *const u8) -> Option<(String, SeenCall)> {
    let layout = &probe.hook.layout;
    // SAFETY: the caller's promise.
    let (name, values, count) = unsafe {
        let name = CStr::from_ptr((probe.hook.api.name)(function)).to_str().ok()?.to_string();
        let values = function.add(layout.inputs).cast::<*const u8>().read();
        (name, values, function.add(layout.inputs + 8).cast::<usize>().read())
    };
    let values = (0..count.min(16)).map(|at| see_value(&probe.peek, values.wrapping_add(at * VALUE_BYTES))).collect();
    Some((name, SeenCall { values, keywords: empty_map_at(&probe.peek, function, layout.inputs + 16) }))
}

fn see_value(peek: &Peek, value: *const u8) -> SeenValue {
    let mut bytes = [0; VALUE_BYTES];
    peek.copy(value, &mut bytes);
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let (payload, tag) = (word(&bytes, 0), word(&bytes, 8) as u32);
    let mut object = [0; OBJECT_BYTES];
    peek.copy(payload as *const u8, &mut object);
    let target = |at: usize| {
        let mut target = [0; TARGET_BYTES];
        peek.copy(word(&object, at) as *const u8, &mut target);
        target
    };
    SeenValue { payload, tag, object, targets: (0..OBJECT_BYTES).step_by(8).map(target).collect() }
}

/// `place` when an empty `std::unordered_map` stands there: one bucket that is inside the map, nothing in it, and a load
/// of 1.
fn empty_map_at(peek: &Peek, function: *const u8, place: usize) -> Option<usize> {
    let map = function.wrapping_add(place);
    let mut bytes = [0; 56];
    let len = peek.copy(map, &mut bytes);
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let is_empty = [word(0), word(8), word(16), word(24)] == [map as u64 + 48, 1, 0, 0];
    (len == bytes.len() && is_empty && word(32) as u32 == 1.0_f32.to_bits()).then_some(place)
}
