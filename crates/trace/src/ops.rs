//! What is known of ops beyond their slice.

use crate::SliceId;

/// Facts about one op.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpInfo {
    /// Autograd's sequence number; joins a forward op with its backward node.
    pub sequence_number: Option<i64>,
    /// For a backward node: the framework's id of the thread that ran the forward op.
    pub forward_thread: Option<u64>,
    /// The framework's scope of the op (PyTorch's `RecordScope`: 0 function, 1 backward, 7 user …).
    pub scope: u8,
}

/// Facts about ops; a row belongs to one slice of kind `Op`, ordered by slice. Slices without facts have no row.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    /// The op's slice.
    pub slice: Vec<SliceId>,
    /// Its facts.
    pub info: Vec<OpInfo>,
}

impl Ops {
    /// The facts of an op's slice, when there are any.
    pub fn get(&self, slice: SliceId) -> Option<OpInfo> {
        self.slice.binary_search(&slice).ok().map(|row| self.info[row])
    }
}
