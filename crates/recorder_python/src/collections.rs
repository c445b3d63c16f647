//! Python's garbage collections, as `gc.callbacks` tells of them.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use stepscope_recorder::scope;
use stepscope_recorder::{self as recorder, CallName};

static NAME: CallName = CallName::new("Python GC");
/// No function lies at this address.
const KEY: usize = 1;

/// What to put into `gc.callbacks`: a collection starts or stops on the calling thread.
#[pyfunction]
pub(crate) fn on_collection(phase: &Bound<'_, PyString>, info: &Bound<'_, PyDict>) {
    if phase.to_string_lossy() == "start" {
        let generation = info.get_item("generation").ok().flatten().and_then(|generation| generation.extract().ok());
        recorder::push_call(KEY, &NAME, scope::GARBAGE_COLLECTION, generation.unwrap_or(-1), true);
    } else if !recorder::pop_call(KEY) {
        recorder::pop_outer_call(KEY, None);
    }
}
