//! Scopes: ranges of one thread's time with a name.

use crate::{is_recording, recorder};
use std::cell::Cell;
use std::ffi::CStr;
use std::marker::PhantomData;

/// Gives what runs from here to the end of the block a name.
///
/// A literal costs least; any other `&str` is looked up by its text. Up to 65,536 distinct names are kept as numbers,
/// so put a number into a name only where that is few enough to read.
///
/// ```
/// fn forward(layers: &[String]) {
///     stepscope::scope!("forward");
///     for layer in layers {
///         stepscope::scope!(layer.as_str());
///         // …
///     }
/// }
/// # forward(&["first".into()]);
/// ```
#[macro_export]
macro_rules! scope {
    ($name:literal) => {
        let _stepscope_scope = {
            const NAME: &::core::ffi::CStr =
                match ::core::ffi::CStr::from_bytes_with_nul(::core::concat!($name, "\0").as_bytes()) {
                    ::core::result::Result::Ok(name) => name,
                    ::core::result::Result::Err(_) => ::core::panic!("the name of a scope has a zero in it"),
                };
            $crate::Scope::constant(NAME)
        };
    };
    ($name:expr) => {
        let _name = $name;
        let _name: &str = &_name;
        let _stepscope_scope = $crate::Scope::new(_name);
    };
}

/// A range that ends when this value is dropped, on the thread where it began. [`scope!`] makes one.
#[must_use = "the range ends when this value is dropped"]
pub struct Scope<'a> {
    open: Option<Open<'a>>,
    /// Ranges nest on their thread.
    _is_of_thread: PhantomData<*const ()>,
}

enum Open<'a> {
    Constant(usize, &'static CStr),
    Text(usize, &'a str),
}

impl<'a> Scope<'a> {
    /// A range called `name` begins, when something records.
    #[inline]
    pub fn new(name: &'a str) -> Self {
        Self::of(if is_recording() { Some(Open::text(name)) } else { None })
    }

    /// A range begins whose name is known by its address.
    #[doc(hidden)]
    #[inline]
    pub fn constant(name: &'static CStr) -> Self {
        Self::of(if is_recording() { Some(Open::constant(name)) } else { None })
    }

    #[inline]
    fn of(open: Option<Open<'a>>) -> Self {
        Self { open, _is_of_thread: PhantomData }
    }
}

impl Drop for Scope<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            open.end();
        }
    }
}

/// Never inline: a function with scopes must not save registers for what it does only while something records.
impl<'a> Open<'a> {
    #[inline(never)]
    fn text(name: &'a str) -> Self {
        introduce_thread();
        Self::Text(recorder::begin_label(name), name)
    }

    #[inline(never)]
    fn constant(name: &'static CStr) -> Self {
        introduce_thread();
        Self::Constant(recorder::begin_constant_label(name), name)
    }

    #[inline(never)]
    fn end(&self) {
        match *self {
            Self::Constant(token, name) => recorder::end_constant_label(token, name),
            Self::Text(token, name) => recorder::end_label(token, name),
        }
    }
}

thread_local! {
    static IS_INTRODUCED: Cell<bool> = const { Cell::new(false) };
}

/// Tells the recorder the whole name that the program gave the calling thread; the system keeps 15 bytes of it.
#[inline]
pub(crate) fn introduce_thread() {
    if !IS_INTRODUCED.get() {
        introduce_thread_now();
    }
}

#[cold]
fn introduce_thread_now() {
    IS_INTRODUCED.set(true);
    if let Some(name) = std::thread::current().name() {
        recorder::name_thread(name);
    }
}

/// Names the calling thread in the run. Without it a thread has the name that [`std::thread::Builder`] gave it.
pub fn name_thread(name: &str) {
    IS_INTRODUCED.set(true);
    recorder::name_thread(name);
}
