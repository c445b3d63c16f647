//! Rows and elements picked by indices, and what is written or added by indices.

use super::counts::{Counts, bytes_if_given, sum, times};
use super::element_wise::without;
use super::inputs::{Inputs, product as elements};

pub(super) fn embedding(inputs: &Inputs) -> Counts {
    let (weight, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let moved = indices.elements()?.checked_mul(*weight.dims.last()?)?.checked_mul(weight.element_bytes?)?;
    Some((0, sum([indices.bytes(), Some(moved), Some(moved)])))
}

pub(super) fn embedding_backward(inputs: &Inputs) -> Counts {
    let (grad, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let table = || inputs.number(2)?.checked_mul(*grad.dims.last()?)?.checked_mul(grad.element_bytes?);
    Some((grad.elements()?, sum([grad.bytes(), indices.bytes(), table()])))
}

pub(super) fn gather(inputs: &Inputs, index: usize) -> Counts {
    let (from, index) = (inputs.tensor(0)?, inputs.tensor(index)?);
    let moved = index.elements()?.checked_mul(from.element_bytes?)?;
    Some((0, sum([index.bytes(), Some(moved), Some(moved)])))
}

/// Rows of argument 0 along the axis that argument 1 names, by the indices in argument 2.
pub(super) fn index_select(inputs: &Inputs) -> Counts {
    let (from, index) = (inputs.tensor(0)?, inputs.tensor(2)?);
    let row = elements(&without(&from.dims, &[inputs.number(1)?])?)?;
    let moved = from.bytes_of(times(&[row, index.elements()?]));
    Some((0, sum([index.bytes(), moved, moved])))
}

/// Sums of rows of argument 0: the indices are argument 1, the first of each bag argument 2, and argument 7 says
/// whether the end of the last is there too.
pub(super) fn embedding_bag(inputs: &Inputs) -> Counts {
    let (weight, indices, offsets) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let row = *weight.dims.last()?;
    let picked = times(&[indices.elements()?, row])?;
    let bags = || offsets.elements()?.checked_sub(i64::from(inputs.flag(7)?)).filter(|bags| *bags >= 0);
    let written = weight.bytes_of(bags().and_then(|bags| times(&[bags, row])));
    let scales = bytes_if_given(inputs.tensor(6));
    Some((picked, sum([indices.bytes(), offsets.bytes(), scales, weight.bytes_of(Some(picked)), written])))
}

/// How values are written to argument 0 by indices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ScatterArguments {
    /// Operations for each value; 0 when it replaces what is there, which is then not read.
    pub(crate) flops: i64,
    pub(crate) index: usize,
    pub(crate) source: usize,
    /// True when an index is for a whole row of the source.
    pub(crate) is_by_row: bool,
    /// True when the result is a copy.
    pub(crate) is_copied: bool,
}

pub(super) fn scatter(inputs: &Inputs, of: ScatterArguments) -> Counts {
    let (to, index) = (inputs.tensor(0)?, inputs.tensor(of.index)?);
    let source = inputs.tensor(of.source);
    let moved = if of.is_by_row { source?.elements()? } else { index.elements()? };
    let read = source.map_or(Some(0), |source| source.bytes_of(Some(moved)));
    let to_bytes = if of.is_copied {
        to.bytes_unexpanded().and_then(|written| sum([to.bytes(), Some(written)]))
    } else {
        to.bytes_of(times(&[moved, if of.flops > 0 { 2 } else { 1 }]))
    };
    Some((times(&[of.flops, moved])?, sum([index.bytes(), read, to_bytes])))
}
