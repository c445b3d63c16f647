//! Where this CPython keeps what it otherwise tells only through a call: found by trial, in objects whose answer is
//! known, and used only where exactly one place fits them all. Everywhere else the call is made.

use crate::cpython::{CodeExtra, PyFrame_GetCode, vectorcall_of};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::c_void;
use stepscope_recorder_torch::Peek;

const WORD_BYTES: usize = size_of::<usize>();
/// Frames, and what they say, that are looked at.
const FRAMES: usize = 4;
const FRAME_WORDS: usize = 9;
const CODE_WORDS: usize = 40;
const CLASS_WORDS: usize = 52;
/// Where a built-in function has its definition, when [`has_known_definitions`].
pub(crate) const DEFINITION: usize = 16;

/// Where a frame has its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CodeOffset {
    /// Bytes from the frame's begin.
    InFrame(usize),
    /// Bytes from the frame's begin to a pointer, and bytes from what that points to: from 3.11 on.
    Behind(usize, usize),
}

/// `N` words, from an address that need not be readable; 0 for those that are not.
fn words<const N: usize>(peek: &Peek, address: usize) -> [usize; N] {
    let mut words = [0; N];
    // SAFETY: the bytes of whole words.
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), N * WORD_BYTES) };
    peek.copy(std::ptr::with_exposed_provenance(address), bytes);
    words
}

/// The one place that is right for every object; `None` when there is none, or more.
fn only_offset<P: PartialEq>(mut offsets_of_objects: impl Iterator<Item = Vec<P>>) -> Option<P> {
    let mut offsets = offsets_of_objects.next()?;
    for others in offsets_of_objects {
        offsets.retain(|offset| others.contains(offset));
    }
    offsets.pop().filter(|_| offsets.is_empty())
}

fn offsets_of(words: &[usize], sought: usize) -> impl Iterator<Item = usize> {
    words.iter().enumerate().filter(move |(_, word)| **word == sought).map(|(at, _)| at * WORD_BYTES)
}

/// The frames that the calling thread is inside of, the innermost first.
fn frames<'py>(py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
    let innermost = py.import("sys").and_then(|sys| sys.call_method0("_getframe")).ok();
    let outer = |frame: &Bound<'py, PyAny>| frame.getattr("f_back").ok().filter(|back| !back.is_none());
    std::iter::successors(innermost, outer).take(FRAMES).collect()
}

fn code_of<'py>(frame: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    // SAFETY: a frame, which always has a code: a new reference.
    unsafe { Bound::from_owned_ptr(frame.py(), PyFrame_GetCode(frame.as_ptr().cast())) }
}

/// Where frames have their code.
pub(crate) fn code_of_frame(py: Python<'_>) -> Option<CodeOffset> {
    let peek = Peek::new().ok()?;
    let candidates_of = |frame: Bound<'_, PyAny>| {
        let code = code_of(&frame).as_ptr() as usize;
        let of_frame = words::<FRAME_WORDS>(&peek, frame.as_ptr() as usize);
        let mut offsets: Vec<_> = offsets_of(&of_frame, code).map(CodeOffset::InFrame).collect();
        for (at, word) in of_frame.iter().enumerate() {
            let behind = words::<FRAME_WORDS>(&peek, *word);
            offsets.extend(offsets_of(&behind, code).map(|offset| CodeOffset::Behind(at * WORD_BYTES, offset)));
        }
        offsets
    };
    only_offset(frames(py).into_iter().map(candidates_of))
}

/// Where a code object names what hangs on it: how many things these are, and then what each is. The frames' codes must
/// have nothing of that index yet.
pub(crate) fn extra_of_code(py: Python<'_>, extra: &CodeExtra, index: isize) -> Option<usize> {
    let peek = Peek::new().ok()?;
    let mut mark = 0_usize;
    let mut candidates_of = |frame: Bound<'_, PyAny>| {
        let code = code_of(&frame);
        mark += 1;
        let value = (&raw const mark).addr().wrapping_add(mark * WORD_BYTES);
        // SAFETY: the lock is held; what is set is taken away before anybody looks at it.
        unsafe {
            if (extra.set)(code.as_ptr(), index, std::ptr::without_provenance_mut(value)) != 0 {
                ffi::PyErr_Clear();
                return Vec::new();
            }
        }
        let at = index.unsigned_abs();
        let is_it = |word: usize| {
            let of_extra = words::<CODE_WORDS>(&peek, word);
            of_extra[0] > at && of_extra.get(1 + at) == Some(&value)
        };
        let of_code = words::<CODE_WORDS>(&peek, code.as_ptr() as usize);
        let offsets = of_code.iter().enumerate().filter(|(_, word)| is_it(**word)).map(|(at, _)| at * WORD_BYTES);
        let offsets = offsets.collect();
        // SAFETY: as above.
        unsafe { (extra.set)(code.as_ptr(), index, std::ptr::null_mut()) };
        offsets
    };
    only_offset(frames(py).into_iter().map(&mut candidates_of))
}

/// What hangs on a code object, where [`extra_of_code`] found `place`; null where nothing does.
///
/// # Safety
/// Called with the lock, for a code object.
#[inline(always)]
pub(crate) unsafe fn extra_at(code: *mut PyObject, place: usize, index: isize) -> *mut c_void {
    // SAFETY: the caller's promise; the place was right for others.
    unsafe {
        let extra = *code.byte_add(place).cast::<*const isize>();
        if extra.is_null() || *extra <= index {
            return std::ptr::null_mut();
        }
        *extra.offset(1 + index).cast()
    }
}

/// Where classes have the function that makes their objects without a tuple of arguments.
pub(crate) fn vectorcall_of_class() -> Option<usize> {
    let vectorcall_of = vectorcall_of()?;
    let peek = Peek::new().ok()?;
    let classes = [
        &raw mut ffi::PyList_Type,
        &raw mut ffi::PyDict_Type,
        &raw mut ffi::PyTuple_Type,
        &raw mut ffi::PySet_Type,
        &raw mut ffi::PyFrozenSet_Type,
    ];
    let candidates_of = |class: *mut ffi::PyTypeObject| {
        // SAFETY: with the lock, for a class of CPython's.
        let function = unsafe { vectorcall_of(class.cast()) } as usize;
        let of_class = words::<CLASS_WORDS>(&peek, class as usize);
        offsets_of(&of_class, function).filter(|_| function != 0).collect()
    };
    only_offset(classes.into_iter().map(candidates_of))
}

/// True when built-in functions have their definition at [`DEFINITION`], as in every release so far.
pub(crate) fn has_known_definitions(py: Python<'_>) -> bool {
    let Ok(peek) = Peek::new() else { return false };
    let is_as_known = |name: &str| -> Option<bool> {
        let function = py.import("builtins").ok()?.getattr(name).ok()?;
        let [definition] = words(&peek, function.as_ptr() as usize + DEFINITION);
        let [text, address] = words(&peek, definition);
        let mut found = vec![0; name.len() + 1];
        peek.copy(std::ptr::with_exposed_provenance(text), &mut found);
        // SAFETY: a built-in function; what it gives is only compared.
        let expected = unsafe { ffi::PyCFunction_GetFunction(function.as_ptr()) }? as usize;
        Some(found[..name.len()] == *name.as_bytes() && found[name.len()] == 0 && address == expected)
    };
    ["len", "abs", "sorted", "getattr"].into_iter().all(|name| is_as_known(name) == Some(true))
}
