//! What is bound by memory: element by element, reductions, copies, look-ups.

use super::inputs::{Inputs, Tensor, product as elements};

type Counts = Option<(i64, Option<i64>)>;

fn sum(parts: impl IntoIterator<Item = Option<i64>>) -> Option<i64> {
    parts.into_iter().try_fold(0_i64, |sum, part| sum.checked_add(part?))
}

/// The shape of a result whose inputs are stretched to each other.
fn broadcast(inputs: &Inputs) -> Option<Vec<i64>> {
    let mut shape: Vec<i64> = Vec::new();
    for tensor in inputs.tensors() {
        let missing = tensor.dims.len().saturating_sub(shape.len());
        shape.splice(0..0, std::iter::repeat_n(1, missing));
        for (size, other) in shape.iter_mut().rev().zip(tensor.dims.iter().rev()) {
            match (*size, *other) {
                (1, other) => *size = other,
                (size, other) if other == 1 || size == other => {}
                _ => return None,
            }
        }
    }
    Some(shape)
}

/// Bytes of an element of the result: of the widest input, where numbers beside tensors widen nothing.
fn result_element_bytes(inputs: &Inputs) -> Option<i64> {
    let wide = inputs.tensors().filter(|tensor| !tensor.dims.is_empty());
    let widest = wide.map(|tensor| tensor.element_bytes).reduce(|a, b| Some(a?.max(b?)));
    widest.unwrap_or_else(|| inputs.tensors().next()?.element_bytes)
}

pub(super) fn map(inputs: &Inputs, flops: i64, size_of: Option<usize>, element_bytes: Option<i64>) -> Counts {
    inputs.tensors().next()?;
    let size = match size_of {
        Some(at) => inputs.tensor(at)?.elements()?,
        None => elements(&broadcast(inputs)?)?,
    };
    let element_bytes = element_bytes.or_else(|| result_element_bytes(inputs));
    let written = element_bytes.and_then(|bytes| size.checked_mul(bytes));
    let bytes = if inputs.has_list() { None } else { sum(inputs.tensors().map(Tensor::bytes).chain([written])) };
    Some((flops.checked_mul(size)?, bytes))
}

pub(super) fn reduce(inputs: &Inputs, flops: i64, dim_at: usize) -> Counts {
    if inputs.tensor(1).is_some_and(|other| !other.dims.is_empty()) {
        return map(inputs, flops, None, None);
    }
    let from = inputs.tensor(0)?;
    let dims = if inputs.is_absent(dim_at) { Some(Vec::new()) } else { inputs.numbers(dim_at) };
    let dims = dims.or_else(|| Some(vec![inputs.number(dim_at)?]));
    let written = dims.and_then(|dims| elements(&without(&from.dims, &dims)?)?.checked_mul(from.element_bytes?));
    Some((flops.checked_mul(from.elements()?)?, sum([from.bytes(), written])))
}

/// `shape` without the axes `dims`, which count from the end when negative; none mean all.
fn without(shape: &[i64], dims: &[i64]) -> Option<Vec<i64>> {
    let rank = shape.len() as i64;
    let axes = dims.iter().map(|dim| if *dim < 0 { dim.checked_add(rank) } else { Some(*dim) });
    let axes: Vec<i64> = axes.collect::<Option<_>>()?;
    if axes.iter().any(|axis| !(0..rank.max(1)).contains(axis)) {
        return None;
    }
    let is_left = |axis: usize| !axes.is_empty() && !axes.contains(&(axis as i64));
    Some((0..shape.len()).filter(|axis| is_left(*axis)).map(|axis| shape[axis]).collect())
}

/// The types of tensors in lists are not recorded, so their bytes are not known.
pub(super) fn each(inputs: &Inputs, flops: i64) -> Counts {
    let shapes = inputs.first_list()?;
    let size = sum(shapes.iter().map(|shape| elements(shape)))?;
    Some((flops.checked_mul(size)?, None))
}

pub(super) fn copy(inputs: &Inputs) -> Counts {
    let (to, from) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let written = to.elements()?.checked_mul(to.element_bytes?);
    Some((0, sum([from.bytes(), written])))
}

pub(super) fn fill(inputs: &Inputs) -> Counts {
    let to = inputs.tensor(0)?;
    Some((0, to.elements()?.checked_mul(to.element_bytes?)))
}

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
