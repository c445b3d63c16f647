//! What functions of `torch.autograd.Function` are called with, as torch.profiler shows it: from the frame that calls
//! PyTorch, of `Function.apply` and its like.

use crate::cpython::{PyFrame_GetCode, has_lock};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyTuple};
use std::sync::OnceLock;
use stepscope_recorder_torch::{Argument, MAX_SCALARS, set_argument_reader};

/// Lists in lists, and items of a list, beyond which nobody looks into a value: it would take too long.
const MAX_DEPTH: usize = 8;
const MAX_ITEMS: usize = 4096;

static KNOWN: OnceLock<Known> = OnceLock::new();

struct Known {
    /// The codes of frames that call functions, and the variable of each that holds the arguments.
    callers: Vec<(Py<PyAny>, String)>,
    /// The class of tensors.
    tensor: Py<PyAny>,
}

/// Reads the arguments of functions in frames that run these codes, in the variables beside them; among them are
/// tensors, of the class `tensor`.
#[pyfunction]
pub(crate) fn read_arguments_of(callers: Vec<(Py<PyAny>, String)>, tensor: Py<PyAny>) {
    let _ = KNOWN.set(Known { callers, tensor });
    set_argument_reader(read);
}

/// The arguments with which the calling thread's frame calls a function; `None` when it is another frame.
fn read() -> Option<Vec<Argument>> {
    let Known { callers, tensor } = KNOWN.get()?;
    if !has_lock() {
        return None;
    }
    // SAFETY: this thread holds the lock; the frame lives as long as it runs.
    unsafe {
        let py = Python::assume_attached();
        let frame = ffi::PyEval_GetFrame().cast::<PyObject>();
        if frame.is_null() || PyErr::occurred(py) {
            return None;
        }
        let code = Bound::from_owned_ptr_or_opt(py, PyFrame_GetCode(frame.cast()))?;
        let (_, variable) = callers.iter().find(|(caller, _)| code.is(caller))?;
        let variables = Bound::from_borrowed_ptr(py, frame).getattr("f_locals").ok()?;
        let arguments = variables.get_item(variable).ok()?.cast_into::<PyTuple>().ok()?;
        Some(arguments.iter().filter_map(|argument| shown(&argument, tensor.bind(py))).collect())
    }
}

/// How an argument is shown; `None` for what torch.profiler leaves out.
fn shown(argument: &Bound<'_, PyAny>, tensor: &Bound<'_, PyAny>) -> Option<Argument> {
    // SAFETY: two types, with the lock. Asking the class itself would call Python.
    if unsafe { ffi::PyType_IsSubtype(ffi::Py_TYPE(argument.as_ptr()), tensor.as_ptr().cast()) } != 0 {
        return Some(Argument::Tensor);
    }
    let kind = Kind::of(argument, MAX_DEPTH)?;
    let Some(list) = argument.cast::<PyList>().ok().filter(|list| list.len() <= MAX_SCALARS) else {
        return Some(number(argument));
    };
    let items: Vec<Argument> = list.iter().map(|item| number(&item)).collect();
    let is_shown = kind.has_numbers() && items.first() != Some(&Argument::Other);
    Some(if is_shown { Argument::List(items) } else { Argument::Other })
}

/// A number; shown as nothing when it is none, or one that no tensor has.
fn number(value: &Bound<'_, PyAny>) -> Argument {
    if let Ok(value) = value.cast::<PyBool>() {
        Argument::Bool(value.is_true())
    } else if let Ok(value) = value.cast::<PyInt>() {
        value.extract().map_or(Argument::Other, Argument::Int)
    } else if let Ok(value) = value.cast::<PyFloat>() {
        Argument::Double(value.value())
    } else if let Ok(value) = value.cast_exact::<PyComplex>() {
        Argument::Complex(value.real(), value.imag())
    } else {
        Argument::Other
    }
}

/// How many items a tuple, list or dict has; `None` for anything else, whose length only its own code could tell.
fn items_of(value: &Bound<'_, PyAny>) -> Option<usize> {
    let tuple = value.cast::<PyTuple>().map(|tuple| tuple.len());
    let list = || value.cast::<PyList>().map(|list| list.len());
    tuple.or_else(|_| list()).ok().or_else(|| value.cast::<PyDict>().map(|dict| dict.len()).ok())
}

/// What a value is to PyTorch: `tryToInferPrimitiveType` there.
#[derive(Clone, PartialEq)]
enum Kind {
    None,
    Bool,
    Int,
    Float,
    Complex,
    Optional(Box<Kind>),
    Tuple(Vec<Kind>),
    List(Box<Kind>),
    Dict(Box<Kind>, Box<Kind>),
    /// A container that was not looked into; shown as nothing.
    Unseen,
}

impl Kind {
    /// `None` for what PyTorch does not convert.
    fn of(value: &Bound<'_, PyAny>, depth: usize) -> Option<Self> {
        let inner = |value: Bound<'_, PyAny>| Self::of(&value, depth - 1);
        if value.is_none() {
            Some(Self::None)
        } else if value.is_instance_of::<PyBool>() {
            Some(Self::Bool)
        } else if value.is_instance_of::<PyInt>() {
            Some(Self::Int)
        } else if value.is_instance_of::<PyFloat>() {
            Some(Self::Float)
        } else if value.is_exact_instance_of::<PyComplex>() {
            Some(Self::Complex)
        } else if items_of(value)? > MAX_ITEMS || depth == 0 {
            Some(Self::Unseen)
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            tuple.iter().map(inner).collect::<Option<_>>().map(Self::Tuple)
        } else if let Ok(list) = value.cast::<PyList>() {
            Self::of_all(list.iter().map(inner)).map(|kind| Self::List(Box::new(kind)))
        } else if let Ok(dict) = value.cast::<PyDict>() {
            let keys = Self::of_all(dict.iter().map(|(key, _)| inner(key)))?;
            let values = Self::of_all(dict.iter().map(|(_, value)| inner(value)))?;
            Some(Self::Dict(Box::new(keys), Box::new(values)))
        } else {
            None
        }
    }

    /// The kind of which all are; `None` without any.
    fn of_all(mut kinds: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        let first = kinds.next()??;
        kinds.try_fold(first, |all, kind| all.with(kind?))
    }

    fn with(self, other: Self) -> Option<Self> {
        match (self, other) {
            (one, other) if one == other => Some(one),
            (Self::Optional(inner), Self::None) | (Self::None, Self::Optional(inner)) => Some(Self::Optional(inner)),
            (Self::None, some) | (some, Self::None) => Some(Self::Optional(Box::new(some))),
            (Self::Optional(inner), some) | (some, Self::Optional(inner)) if *inner == some => {
                Some(Self::Optional(inner))
            }
            (Self::Tuple(one), Self::Tuple(other)) if one.len() == other.len() => {
                one.into_iter().zip(other).map(|(one, other)| one.with(other)).collect::<Option<_>>().map(Self::Tuple)
            }
            _ => None,
        }
    }

    /// True for a list of numbers, of which some may be none.
    fn has_numbers(&self) -> bool {
        let Self::List(kind) = self else { return false };
        let kind = if let Self::Optional(kind) = &**kind { kind } else { kind };
        matches!(**kind, Self::Bool | Self::Int | Self::Float | Self::Complex)
    }
}
