//! What is bound by memory: element by element, normalizations, reductions, losses, copies.

use super::counts::{Counts, POSITION_BYTES, bytes_if_given, sum, times};
use super::inputs::{Inputs, Tensor, product as elements};

/// Operations element by element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MapArguments {
    /// Operations an element.
    pub(crate) flops: i64,
    /// The argument that has the shape of the result; else all arguments stretched to each other.
    pub(crate) size_of: Option<usize>,
    /// Bytes of an element of the result; else those of the widest argument.
    pub(crate) element_bytes: Option<i64>,
    /// How many results of that shape there are.
    pub(crate) results: i64,
    /// From here on stand results that the caller gives.
    pub(crate) out: Option<usize>,
}

/// The shape of a result whose inputs are stretched to each other.
fn broadcast<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Option<Vec<i64>> {
    let mut shape: Vec<i64> = Vec::new();
    for tensor in tensors {
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
fn result_element_bytes<'a>(mut tensors: impl Iterator<Item = &'a Tensor> + Clone) -> Option<i64> {
    let wide = tensors.clone().filter(|tensor| !tensor.dims.is_empty());
    let widest = wide.map(|tensor| tensor.element_bytes).reduce(|a, b| Some(a?.max(b?)));
    widest.unwrap_or_else(|| tensors.next()?.element_bytes)
}

pub(super) fn map(inputs: &Inputs, of: MapArguments) -> Counts {
    let read = inputs.tensors_before(of.out);
    read.clone().next()?;
    let size = match of.size_of {
        Some(at) => inputs.tensor(at)?.elements()?,
        None => elements(&broadcast(read.clone())?)?,
    };
    let element_bytes = match inputs.result(of.out) {
        Some(result) => result.element_bytes,
        None => of.element_bytes.or_else(|| result_element_bytes(read.clone())),
    };
    let written = element_bytes.and_then(|bytes| times(&[size, bytes, of.results]));
    let bytes = if inputs.has_list() { None } else { sum(read.map(Tensor::bytes).chain([written])) };
    Some((times(&[of.flops, size])?, bytes))
}

/// Where the gradients of a normalization find what they need among their arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NormBackwardArguments {
    /// Operations an element of the input.
    pub(crate) flops: i64,
    pub(crate) weight: usize,
    /// Added after the weight: its gradient needs no value of it.
    pub(crate) bias: Option<usize>,
    /// Gradients beside that of the input, each of the weight's size.
    pub(crate) parameters: usize,
    /// Which gradients are asked for; else all.
    pub(crate) mask: Option<usize>,
    /// From here on stand results that the caller gives.
    pub(crate) out: Option<usize>,
}

/// Arguments 0 and 1 are the input and the gradient of the result, in any order.
pub(super) fn norm_backward(inputs: &Inputs, of: NormBackwardArguments) -> Counts {
    let (input, weight) = (inputs.tensor(0)?, inputs.tensor(of.weight));
    let mask = match of.mask {
        Some(at) => inputs.flags(at),
        None => Some(vec![true; 1 + of.parameters]),
    };
    let written = mask.and_then(|mask| {
        let is_asked = |at: usize| mask.get(at).copied().unwrap_or(false);
        let of_input = is_asked(0).then(|| input.bytes_unexpanded());
        let of_parameters = (1..=of.parameters).filter(|at| is_asked(*at)).filter_map(|_| weight);
        sum(of_input.into_iter().chain(of_parameters.map(Tensor::bytes_unexpanded)))
    });
    let not_read = bytes_if_given(of.bias.and_then(|at| inputs.tensor(at)));
    let read =
        sum(inputs.tensors_before(of.out).map(Tensor::bytes)).zip(not_read).map(|(all, not_read)| all - not_read);
    Some((times(&[of.flops, input.elements()?])?, sum([read, written])))
}

pub(super) fn reduce(inputs: &Inputs, flops: i64, dim_at: usize) -> Counts {
    if inputs.tensor(1).is_some_and(|other| !other.dims.is_empty()) {
        return map(inputs, MapArguments { flops, size_of: None, element_bytes: None, results: 1, out: Some(2) });
    }
    let from = inputs.tensor(0)?;
    let dims = if inputs.is_absent(dim_at) { Some(Vec::new()) } else { inputs.numbers(dim_at) };
    let dims = dims.or_else(|| Some(vec![inputs.number(dim_at)?]));
    let written = dims.and_then(|dims| elements(&without(&from.dims, &dims)?)?.checked_mul(from.element_bytes?));
    Some((flops.checked_mul(from.elements()?)?, sum([from.bytes(), written])))
}

/// `shape` without the axes `dims`, which count from the end when negative; none mean all.
pub(super) fn without(shape: &[i64], dims: &[i64]) -> Option<Vec<i64>> {
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

/// A loss of argument 0 against argument 1, maybe weighted by argument 2, and summed up when `reduction` says so.
pub(super) fn loss(inputs: &Inputs, flops: i64, reduction: usize) -> Counts {
    let (x, target) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let size = x.elements().filter(|size| target.elements() == Some(*size))?;
    let is_summed = inputs.number(reduction)? != 0;
    let written = x.bytes_of(Some(if is_summed { 1 } else { size }));
    let flops = times(&[size, flops + i64::from(is_summed)])?;
    Some((flops, sum([x.bytes(), target.bytes(), bytes_if_given(inputs.tensor(2)), written])))
}

/// The negative log likelihood: of each position the score of its class is looked up, weighted and summed up.
pub(super) fn nll_loss(inputs: &Inputs) -> Counts {
    let (scores, target) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let size = target.elements()?;
    let results = if inputs.number(3)? != 0 { 1 } else { size };
    let looked_up = inputs.tensor(2).map_or(Some(0), |weight| weight.bytes_of(Some(weight.elements()?.min(size))));
    let total_weight = scores.bytes_of(Some(1));
    let bytes = [target.bytes(), scores.bytes_of(Some(size)), looked_up, scores.bytes_of(Some(results)), total_weight];
    Some((size, sum(bytes)))
}

/// The gradient of the scores, argument 1: zero but for one class of each position of argument 2.
pub(super) fn nll_loss_backward(inputs: &Inputs) -> Counts {
    let (grad, scores, target) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let size = target.elements()?;
    let looked_up = inputs.tensor(3).map_or(Some(0), |weight| weight.bytes_of(Some(weight.elements()?.min(size))));
    let total_weight = bytes_if_given(inputs.tensor(6));
    Some((size, sum([grad.bytes(), target.bytes(), looked_up, total_weight, scores.bytes_unexpanded()])))
}

/// All values in order, and where each was.
pub(super) fn sort(inputs: &Inputs) -> Counts {
    let from = inputs.tensor(0)?;
    let positions = times(&[from.elements()?, POSITION_BYTES]);
    Some((0, sum([from.bytes(), from.bytes_unexpanded(), positions])))
}

/// The first of an order along one axis, and where each was.
pub(super) fn topk(inputs: &Inputs) -> Counts {
    let from = inputs.tensor(0)?;
    let axis = if inputs.is_absent(2) { -1 } else { inputs.number(2)? };
    let results = times(&[elements(&without(&from.dims, &[axis])?)?, inputs.number(1)?]);
    let positions = results.and_then(|results| times(&[results, POSITION_BYTES]));
    Some((0, sum([from.bytes(), from.bytes_of(results), positions])))
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
