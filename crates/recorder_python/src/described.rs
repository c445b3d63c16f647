//! What the program says of a label beside its name: numbers, texts, and lists of these, by name.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use stepscope_recorder::{self as recorder, Signature};

/// Longest text of which all is kept.
const MAX_TEXT_BYTES: usize = 1 << 10;

/// The token of the innermost range that the calling thread has open; 0 without one.
#[pyfunction]
pub(crate) fn innermost() -> usize {
    recorder::innermost().unwrap_or(0)
}

/// Says of the open range with this token what the items of `details` are, in place of what was said before. What is
/// neither a number nor a text, nor a list of one of these, is left out.
#[pyfunction]
pub(crate) fn describe(token: usize, details: &Bound<'_, PyDict>) {
    let mut signature = Signature::default();
    for (key, value) in details.iter() {
        let mut single = Signature::default();
        if let (Ok(key), true) = (key.cast::<PyString>(), put(&value, &mut single)) {
            signature.keyword(key.to_string_lossy().as_bytes());
            put(&value, &mut signature);
        }
    }
    if token != 0 && !signature.words().is_empty() {
        recorder::describe(token, &signature);
    }
}

/// False for what is left out.
fn put(value: &Bound<'_, PyAny>, signature: &mut Signature) -> bool {
    if let Some(items) = items_of(value) {
        let is_of_texts = items.first().is_some_and(|item| item.is_instance_of::<PyString>());
        let is_item = |item: &Bound<'_, PyAny>| {
            item.is_instance_of::<PyString>() == is_of_texts && put_single(item, &mut Signature::default())
        };
        if !items.iter().all(is_item) {
            return false;
        }
        if is_of_texts {
            signature.text_list(items.len())
        } else {
            signature.scalar_list(items.len())
        }
        return items.iter().all(|item| put_single(item, signature));
    }
    put_single(value, signature)
}

fn items_of<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    match (value.cast::<PyList>(), value.cast::<PyTuple>()) {
        (Ok(list), _) => Some(list.iter().collect()),
        (_, Ok(tuple)) => Some(tuple.iter().collect()),
        _ => None,
    }
}

/// Only Python's own numbers: asking another object for its value could run anything.
fn put_single(value: &Bound<'_, PyAny>, signature: &mut Signature) -> bool {
    if let Ok(value) = value.cast::<PyBool>() {
        signature.bool(value.is_true());
    } else if let Ok(value) = value.cast::<PyInt>() {
        let Ok(value) = value.extract::<i64>() else { return false };
        signature.int(value);
    } else if let Ok(value) = value.cast::<PyFloat>() {
        signature.double(value.value());
    } else if let Ok(value) = value.cast::<PyString>() {
        let text = value.to_string_lossy();
        let end = (0..=text.len().min(MAX_TEXT_BYTES)).rfind(|at| text.is_char_boundary(*at));
        signature.text(text[..end.unwrap_or(0)].as_bytes());
    } else {
        return false;
    }
    true
}
