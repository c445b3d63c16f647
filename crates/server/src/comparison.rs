//! Two runs side by side, or two ranks of one, as a server keeps them.

use std::path::PathBuf;
use stepscope_engine::{Compared, Selection};

/// What is compared: a part of a run beside another, and what of them.
#[derive(Clone, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) a: ReadPart,
    pub(crate) b: ReadPart,
    pub(crate) what: Compared,
}

/// A part of a run, as it was read once.
#[derive(Clone, PartialEq)]
pub(crate) struct ReadPart {
    pub(crate) path: PathBuf,
    pub(crate) version: u64,
    pub(crate) selection: Selection,
}
