//! Resolved edges between slices.

use crate::SliceId;

/// What an edge means.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FlowKind {
    /// From an API call to the device event it enqueued.
    Launch,
    /// From a forward op to its backward node.
    ForwardBackward,
    /// From the making of a batch to the `next()` of a loop that takes it.
    Batch,
}

impl FlowKind {
    /// The kind's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::ForwardBackward => "forward_backward",
            Self::Batch => "batch",
        }
    }
}

/// An edge from one slice to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flow {
    /// Where it starts.
    pub from: SliceId,
    /// Where it ends.
    pub to: SliceId,
    /// What it means.
    pub kind: FlowKind,
}
