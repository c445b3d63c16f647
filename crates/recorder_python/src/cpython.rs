//! Functions of CPython that the stable interface does not have, found by name in the process.

use pyo3::ffi::{self, PyObject, PyThreadState};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// Called by the interpreter around calls: object, frame, what happened, what it happened to.
pub(crate) type ProfileFunction = unsafe extern "C" fn(*mut PyObject, *mut c_void, c_int, *mut PyObject) -> c_int;

unsafe extern "C" {
    pub(crate) static PyCode_Type: pyo3::ffi::PyTypeObject;
    /// Of built-in functions that ask for the class that defines them.
    pub(crate) static PyCMethod_Type: pyo3::ffi::PyTypeObject;
    pub(crate) fn PyFrame_GetCode(frame: *mut c_void) -> *mut PyObject;
    pub(crate) fn PyUnicode_AsUTF8AndSize(text: *mut PyObject, len: *mut isize) -> *const c_char;
    pub(crate) fn PyVectorcall_Call(
        object: *mut PyObject,
        args: *mut PyObject,
        keywords: *mut PyObject,
    ) -> *mut PyObject;
    pub(crate) fn PyObject_GenericGetDict(object: *mut PyObject, closure: *mut c_void) -> *mut PyObject;
    pub(crate) fn PyObject_GenericSetDict(object: *mut PyObject, value: *mut PyObject, closure: *mut c_void) -> c_int;
}

/// A function that takes what it is called on, its arguments as an array, their number, and the names of keywords.
pub(crate) type FastCall =
    unsafe extern "C" fn(*mut PyObject, *const *mut PyObject, usize, *mut PyObject) -> *mut PyObject;

/// The bit of a number of arguments that says something else.
const OFFSET_BIT: usize = 1 << (usize::BITS - 1);

/// How many arguments such a number says.
pub(crate) const fn argument_count(count: usize) -> usize {
    count & !OFFSET_BIT
}

/// Does `f` with the same arguments as a tuple and a dict. Those of keywords stand behind the others.
///
/// # Safety
/// Called with the lock; `args` are as many as `count` and the keywords say.
pub(crate) unsafe fn with_tuple_and_dict(
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
    f: impl FnOnce(*mut PyObject, *mut PyObject) -> *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the caller's promise; the tuple takes a reference to each argument over.
    unsafe {
        let (tuple, dict) = (ffi::PyTuple_New(count as isize), ffi::PyDict_New());
        let mut result = std::ptr::null_mut();
        if !tuple.is_null() && !dict.is_null() {
            for at in 0..count {
                ffi::Py_IncRef(*args.add(at));
                ffi::PyTuple_SetItem(tuple, at as isize, *args.add(at));
            }
            let keyword_count = if keywords.is_null() { 0 } else { ffi::PyTuple_Size(keywords) as usize };
            for at in 0..keyword_count {
                ffi::PyDict_SetItem(dict, ffi::PyTuple_GetItem(keywords, at as isize), *args.add(count + at));
            }
            result = f(tuple, dict);
        }
        ffi::Py_DecRef(tuple);
        ffi::Py_DecRef(dict);
        result
    }
}

/// What tells the function with which an object is called; `None` before 3.11.
pub(crate) fn vectorcall_of() -> Option<unsafe extern "C" fn(*mut PyObject) -> *const c_void> {
    // SAFETY: the name fixes the type.
    unsafe { symbol(c"PyVectorcall_Function") }
}

/// `PyGetSetDef` as every release lays it out.
#[repr(C)]
pub(crate) struct GetSetDefinition {
    name: *const c_char,
    get: *const c_void,
    set: *const c_void,
    doc: *const c_char,
    closure: *const c_void,
}

// SAFETY: the pointers are to constants.
unsafe impl Sync for GetSetDefinition {}

impl GetSetDefinition {
    /// Behind the last one of a class.
    pub(crate) const END: Self = Self {
        name: std::ptr::null(),
        get: std::ptr::null(),
        set: std::ptr::null(),
        doc: std::ptr::null(),
        closure: std::ptr::null(),
    };

    pub(crate) const fn new(
        name: &'static CStr,
        get: unsafe extern "C" fn(*mut PyObject, *mut c_void) -> *mut PyObject,
        set: unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut c_void) -> c_int,
    ) -> Self {
        Self { name: name.as_ptr(), get: get as *const c_void, set: set as *const c_void, ..Self::END }
    }
}

/// `PyMethodDef` as every release lays it out.
#[repr(C)]
pub(crate) struct MethodDefinition {
    pub(crate) name: *const c_char,
    pub(crate) function: *const c_void,
    pub(crate) flags: c_int,
    pub(crate) doc: *const c_char,
}

// SAFETY: the pointers are to constants.
unsafe impl Sync for MethodDefinition {}

/// The function takes its arguments as an array.
pub(crate) const FAST: c_int = 0x80;
/// The function takes one argument.
pub(crate) const ONE: c_int = 0x08;

/// The function takes none beside `self`.
pub(crate) const NO_ARGUMENTS: c_int = 0x04;

impl MethodDefinition {
    /// Behind the last one of a class.
    pub(crate) const END: Self =
        Self { name: std::ptr::null(), function: std::ptr::null(), flags: 0, doc: std::ptr::null() };

    pub(crate) const fn new(name: &'static CStr, function: *const c_void, flags: c_int) -> Self {
        Self { name: name.as_ptr(), function, flags, doc: std::ptr::null() }
    }

    /// The built-in function that it describes: a new reference; null with an exception set.
    pub(crate) fn make(&'static self) -> *mut PyObject {
        let definition = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the definition is as CPython lays it out, and lives for ever.
        unsafe { pyo3::ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), std::ptr::null_mut()) }
    }
}

/// True when the calling thread holds the interpreter's lock; false where that cannot be told.
pub(crate) fn has_lock() -> bool {
    type Current = unsafe extern "C" fn() -> *mut PyThreadState;
    static CURRENT: OnceLock<Option<Current>> = OnceLock::new();
    // SAFETY: the names fix the type, which did not change with the prefix in 3.13. Neither function needs the lock.
    unsafe {
        let find = || symbol(c"PyThreadState_GetUnchecked").or_else(|| symbol(c"_PyThreadState_UncheckedGet"));
        let Some(current) = CURRENT.get_or_init(find) else { return false };
        let own = ffi::PyGILState_GetThisThreadState();
        !own.is_null() && current() == own
    }
}

/// What lets data hang on a code object.
#[derive(Clone, Copy)]
pub(crate) struct CodeExtra {
    pub(crate) request: unsafe extern "C" fn(Option<unsafe extern "C" fn(*mut c_void)>) -> isize,
    pub(crate) get: unsafe extern "C" fn(*mut PyObject, isize, *mut *mut c_void) -> c_int,
    pub(crate) set: unsafe extern "C" fn(*mut PyObject, isize, *mut c_void) -> c_int,
}

impl CodeExtra {
    /// What hangs on a code object; null where nothing does.
    ///
    /// # Safety
    /// Called with the lock, for a code object.
    pub(crate) unsafe fn of(&self, code: *mut PyObject, index: isize) -> *mut c_void {
        let mut found = std::ptr::null_mut();
        // SAFETY: the caller's promise.
        if unsafe { (self.get)(code, index, &mut found) } == 0 { found } else { std::ptr::null_mut() }
    }

    pub(crate) fn find() -> Option<Self> {
        // SAFETY: the names fix the types, which did not change with the prefix in 3.12.
        unsafe {
            Some(Self {
                request: symbol(c"PyUnstable_Eval_RequestCodeExtraIndex")
                    .or_else(|| symbol(c"_PyEval_RequestCodeExtraIndex"))?,
                get: symbol(c"PyUnstable_Code_GetExtra").or_else(|| symbol(c"_PyCode_GetExtra"))?,
                set: symbol(c"PyUnstable_Code_SetExtra").or_else(|| symbol(c"_PyCode_SetExtra"))?,
            })
        }
    }
}

/// What sets a thread's profile function, before 3.12.
#[derive(Clone, Copy)]
pub(crate) struct Profiling {
    pub(crate) set: unsafe extern "C" fn(*mut PyThreadState, Option<ProfileFunction>, *mut PyObject) -> c_int,
    pub(crate) first_thread: unsafe extern "C" fn(*mut pyo3::ffi::PyInterpreterState) -> *mut PyThreadState,
    pub(crate) next_thread: unsafe extern "C" fn(*mut PyThreadState) -> *mut PyThreadState,
    pub(crate) frame_of: unsafe extern "C" fn(*mut PyThreadState) -> *mut c_void,
    pub(crate) frame_back: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
}

impl Profiling {
    pub(crate) fn find() -> Option<Self> {
        // SAFETY: the names fix the types.
        unsafe {
            Some(Self {
                set: symbol(c"_PyEval_SetProfile")?,
                first_thread: symbol(c"PyInterpreterState_ThreadHead")?,
                next_thread: symbol(c"PyThreadState_Next")?,
                frame_of: symbol(c"PyThreadState_GetFrame")?,
                frame_back: symbol(c"PyFrame_GetBack")?,
            })
        }
    }
}

/// The function called `name`.
///
/// # Safety
/// `F` is the function's type.
pub(crate) unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a terminated name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: the caller's promise; the sizes are equal.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
}
