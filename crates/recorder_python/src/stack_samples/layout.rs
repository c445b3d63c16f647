//! Where this CPython keeps the frames of its threads, found by trial: everything is looked for in objects whose answer is
//! known, and used only where exactly one place fits them all.

use super::memory::Memory;
use crate::cpython::{PyFrame_GetCode, symbol};
use crate::layout::{CodeOffset, code_of_frame};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::ops::Range;

const WORD_BYTES: usize = size_of::<usize>();
const THREAD_WORDS: usize = 64;
const INTERPRETER_WORDS: usize = 2048;
const BEHIND_WORDS: usize = 4;
const FRAME_WORDS: usize = 10;
const CODE_BYTES: usize = 320;
const TEXT_BYTES: usize = 96;
/// Objects have their class here, and what may vary in size says how large it is behind it.
pub(super) const CLASS: usize = 8;
pub(super) const SIZE: usize = 16;
/// Where `bytes` begin in their object.
pub(super) const BYTES: usize = 32;
/// Threads of an interpreter are a list, each with the next one here.
pub(super) const NEXT_THREAD: usize = 8;

/// Where a thread has its innermost frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Innermost {
    InThread(usize),
    Behind(usize, usize),
}

/// Offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) innermost: Innermost,
    pub(super) system_thread: usize,
    /// Where an interpreter has its first thread.
    pub(super) first_thread: usize,
    pub(super) code: usize,
    pub(super) caller: usize,
    pub(super) instruction: usize,
    pub(super) first_instruction: usize,
    pub(super) file: usize,
    pub(super) function: usize,
    pub(super) first_line: usize,
    pub(super) locations: usize,
    /// Where the characters of a text begin that has nothing but ASCII.
    pub(super) ascii: usize,
}

/// What was seen of threads and frames at one moment: for each question the places that would answer it.
#[derive(Default)]
pub(super) struct Seen {
    innermost: Option<Vec<Innermost>>,
    system_thread: Option<Vec<usize>>,
    caller: Option<Vec<usize>>,
    /// In a frame, and in its code.
    instruction: Option<Vec<(usize, usize)>>,
    file: Option<Vec<usize>>,
    function: Option<Vec<usize>>,
    first_line: Option<Vec<usize>>,
    locations: Option<Vec<usize>>,
    ascii: Option<Vec<usize>>,
    code: Option<CodeOffset>,
    first_thread: Option<Vec<usize>>,
    has_list_of_threads: bool,
}

/// Leaves the places that fit now, too.
fn keep<P: PartialEq>(known: &mut Option<Vec<P>>, fitting: Vec<P>) {
    match known {
        Some(known) => known.retain(|place| fitting.contains(place)),
        None => *known = Some(fitting),
    }
}

fn only<P: Copy>(places: &Option<Vec<P>>, what: &'static str) -> Result<P, String> {
    match places.as_deref() {
        Some([place]) => Ok(*place),
        Some(places) => Err(format!("{} places fit for {what}", places.len())),
        None => Err(format!("{what} was not looked for")),
    }
}

impl Seen {
    /// Looks at the frames that the calling thread is inside of. Called by functions of Python that call each other.
    pub(super) fn look(&mut self, py: Python<'_>) -> Option<()> {
        let mut memory = Memory::new()?;
        let CodeOffset::Behind(to_frame, code) = code_of_frame(py)? else { return None };
        self.code = Some(CodeOffset::Behind(to_frame, code));
        // SAFETY: the lock is held.
        let thread = unsafe { ffi::PyThreadState_Get() } as usize;
        self.look_at_thread(thread, &mut memory);
        let innermost = py.import("sys").and_then(|sys| sys.call_method0("_getframe")).ok()?;
        let frames: Vec<_> = outwards(innermost).take(3).collect();
        let addresses: Vec<usize> =
            frames.iter().map(|frame| memory.word(frame.as_ptr() as usize + to_frame)).collect::<Option<_>>()?;
        for (frame, address) in frames.iter().zip(&addresses) {
            self.look_at_frame(frame, *address, &mut memory)?;
        }
        for pair in addresses.windows(2) {
            keep(&mut self.caller, offsets(&mut memory, pair[0], FRAME_WORDS, pair[1]));
        }
        let innermost = addresses[0];
        let mut places: Vec<Innermost> =
            offsets(&mut memory, thread, THREAD_WORDS, innermost).into_iter().map(Innermost::InThread).collect();
        for at in (0..THREAD_WORDS).map(|at| at * WORD_BYTES) {
            let Some(behind) = memory.word(thread + at) else { continue };
            let found = offsets(&mut memory, behind, BEHIND_WORDS, innermost);
            places.extend(found.into_iter().map(|offset| Innermost::Behind(at, offset)));
        }
        keep(&mut self.innermost, places);
        Some(())
    }

    fn look_at_thread(&mut self, thread: usize, memory: &mut Memory) {
        // SAFETY: a plain question.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as usize;
        keep(&mut self.system_thread, offsets(memory, thread, THREAD_WORDS, tid));
        // SAFETY: the lock is held; the new state is of no thread, and goes at once.
        unsafe {
            let interpreter = ffi::PyInterpreterState_Get();
            let Some(first) = first_thread(interpreter) else { return };
            keep(&mut self.first_thread, offsets(memory, interpreter as usize, INTERPRETER_WORDS, first));
            let new = ffi::PyThreadState_New(interpreter);
            if new.is_null() {
                return;
            }
            memory.forget();
            keep(&mut self.first_thread, offsets(memory, interpreter as usize, INTERPRETER_WORDS, new as usize));
            self.has_list_of_threads = first_thread(interpreter) == Some(new as usize)
                && memory.word(new as usize + NEXT_THREAD) == Some(first);
            ffi::PyThreadState_Clear(new);
            ffi::PyThreadState_Delete(new);
            memory.forget();
        }
    }

    fn look_at_frame(&mut self, frame: &Bound<'_, PyAny>, address: usize, memory: &mut Memory) -> Option<()> {
        // SAFETY: a frame, which always has a code: a new reference.
        let code = unsafe { Bound::from_owned_ptr(frame.py(), PyFrame_GetCode(frame.as_ptr().cast())) };
        let of_code = code.as_ptr() as usize;
        let last: usize = frame.getattr("f_lasti").ok()?.extract().ok()?;
        let mut instructions = Vec::new();
        for at in (0..FRAME_WORDS).map(|at| at * WORD_BYTES) {
            let begin = memory.word(address + at)?.checked_sub(last).and_then(|begin| begin.checked_sub(of_code));
            instructions.extend(begin.filter(|begin| *begin < CODE_BYTES).map(|begin| (at, begin)));
        }
        keep(&mut self.instruction, instructions);
        let words = CODE_BYTES / WORD_BYTES;
        let mut of_attribute =
            |name: &str| Some(offsets(memory, of_code, words, code.getattr(name).ok()?.as_ptr() as usize));
        let (file, function) = (of_attribute("co_filename")?, of_attribute("co_qualname")?);
        let locations = of_attribute("co_linetable")?;
        keep(&mut self.file, file);
        keep(&mut self.function, function);
        keep(&mut self.locations, locations);
        let first: i32 = code.getattr("co_firstlineno").ok()?.extract().ok()?;
        let lines = (0..CODE_BYTES / 4).map(|at| at * 4);
        keep(&mut self.first_line, lines.filter(|at| memory.number(of_code + at) == Some(first)).collect());
        let name = code.getattr("co_qualname").ok()?;
        let text = name.cast::<PyString>().ok()?.to_string_lossy().into_owned();
        let is_there =
            |at: &usize| memory.bytes(name.as_ptr() as usize + at, text.len()).as_deref() == Some(text.as_bytes());
        keep(&mut self.ascii, (SIZE..TEXT_BYTES).filter(is_there).collect());
        let table = code.getattr("co_linetable").ok()?;
        let table = table.cast::<PyBytes>().ok()?;
        let is_known = memory.word(table.as_ptr() as usize + SIZE) == Some(table.as_bytes().len())
            && memory.bytes(table.as_ptr() as usize + BYTES, table.as_bytes().len()).as_deref()
                == Some(table.as_bytes());
        is_known.then_some(())
    }

    /// What was found.
    pub(super) fn layout(&self) -> Result<Layout, String> {
        let Some(CodeOffset::Behind(_, code)) = self.code else { return Err("frames are not as expected".into()) };
        if !self.has_list_of_threads {
            return Err("threads are no list as expected".into());
        }
        let (instruction, first_instruction) = only(&self.instruction, "instructions")?;
        Ok(Layout {
            innermost: only(&self.innermost, "the innermost frame")?,
            first_thread: only(&self.first_thread, "the first thread")?,
            system_thread: only(&self.system_thread, "the system's number of a thread")?,
            code,
            caller: only(&self.caller, "callers")?,
            instruction,
            first_instruction,
            file: only(&self.file, "files")?,
            function: only(&self.function, "functions")?,
            first_line: only(&self.first_line, "first lines")?,
            locations: only(&self.locations, "locations")?,
            ascii: only(&self.ascii, "texts")?,
        })
    }
}

/// The first thread of an interpreter.
///
/// # Safety
/// It is one, and the lock is held.
unsafe fn first_thread(interpreter: *mut ffi::PyInterpreterState) -> Option<usize> {
    type First = unsafe extern "C" fn(*mut ffi::PyInterpreterState) -> *mut ffi::PyThreadState;
    // SAFETY: the name fixes the type.
    let first: Option<First> = unsafe { symbol(c"PyInterpreterState_ThreadHead") };
    // SAFETY: the caller's promise.
    first.map(|first| unsafe { first(interpreter) } as usize)
}

/// A frame, that of its caller, and so on.
fn outwards<'py>(frame: Bound<'py, PyAny>) -> impl Iterator<Item = Bound<'py, PyAny>> {
    let outer = |frame: &Bound<'py, PyAny>| frame.getattr("f_back").ok().filter(|back| !back.is_none());
    std::iter::successors(Some(frame), outer)
}

/// The places of a word among the `words` from an address on.
fn offsets(memory: &mut Memory, address: usize, words: usize, sought: usize) -> Vec<usize> {
    let places = (0..words).map(|at| at * WORD_BYTES);
    places.filter(|at| memory.word(address.wrapping_add(*at)) == Some(sought)).collect()
}

/// What sampling needs to know.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) layout: Layout,
    /// Where threads wait for the interpreter's lock.
    pub(super) lock: Option<Range<usize>>,
}
