//! Sums and products that give no answer when a part is not known or does not fit.

use super::inputs::{Tensor, product as elements};

/// Operations, and bytes where they can be known.
pub(super) type Counts = Option<(i64, Option<i64>)>;

/// Bytes of a position as PyTorch returns it.
pub(super) const POSITION_BYTES: i64 = 8;

/// The product of factors.
pub(super) fn times(factors: &[i64]) -> Option<i64> {
    elements(factors)
}

/// The sum of parts.
pub(super) fn sum(parts: impl IntoIterator<Item = Option<i64>>) -> Option<i64> {
    parts.into_iter().try_fold(0_i64, |sum, part| sum.checked_add(part?))
}

/// Bytes of an input; nothing for one that is not given.
pub(super) fn bytes_if_given(tensor: Option<&Tensor>) -> Option<i64> {
    tensor.map_or(Some(0), Tensor::bytes)
}

impl Tensor {
    /// Bytes of `elements` elements of this tensor's type.
    pub(super) fn bytes_of(&self, elements: Option<i64>) -> Option<i64> {
        times(&[elements?, self.element_bytes?])
    }

    /// Bytes of all its elements, each stored by itself: of a result of its shape.
    pub(super) fn bytes_unexpanded(&self) -> Option<i64> {
        self.bytes_of(self.elements())
    }
}
