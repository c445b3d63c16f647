//! Recurrent layers: each matrix of weights is multiplied with the state or the input of every position.

use super::counts::{Counts, bytes_if_given, sum, times};
use super::inputs::{Inputs, Tensor, product as elements};

/// Where a recurrent network finds what it needs among its arguments; argument 0 is the input, 1 the weights of all
/// layers and directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecurrentArguments {
    /// Hidden and cell state.
    pub(crate) states: [usize; 2],
    pub(crate) hidden_size: usize,
    /// The size that the hidden state is projected to, 0 for none.
    pub(crate) projected_size: Option<usize>,
    pub(crate) is_bidirectional: usize,
}

/// Positions: steps of all sequences.
fn positions(input: &Tensor) -> Option<i64> {
    let (_, outer) = input.dims.split_last()?;
    elements(outer)
}

/// A multiplication and an addition for each element of a matrix; what else a cell computes is left out, as biases are.
fn matrices<'a>(weights: impl Iterator<Item = &'a [i64]>) -> Option<i64> {
    sum(weights.filter(|shape| shape.len() == 2).map(elements))
}

pub(super) fn recurrent(inputs: &Inputs, at: RecurrentArguments) -> Counts {
    let (input, weights) = (inputs.tensor(0)?, inputs.shapes(1)?);
    let positions = positions(input)?;
    let flops = times(&[2, positions, matrices(weights.iter().map(Vec::as_slice))?])?;
    let result = || {
        let projected = at.projected_size.map_or(Some(0), |at| inputs.number(at))?;
        let size = if projected > 0 { projected } else { inputs.number(at.hidden_size)? };
        times(&[positions, size, 1 + i64::from(inputs.flag(at.is_bidirectional)?)])
    };
    let states = sum(at.states.map(|at| bytes_if_given(inputs.tensor(at)))).and_then(|bytes| times(&[2, bytes]));
    // The libraries take weights of the input's type only.
    let weights = input.bytes_of(sum(weights.iter().map(|shape| elements(shape))));
    Some((flops, sum([input.bytes(), weights, states, input.bytes_of(result())])))
}

/// Gradients of input and states, and of the weights when the mask at a position asks for them, which is as much work
/// again. Argument 3 holds all weights in one.
pub(super) fn recurrent_backward(inputs: &Inputs, mask: usize) -> Counts {
    let (input, shapes, weights) = (inputs.tensor(0)?, inputs.shapes(1)?, inputs.tensor(3));
    let is_of_weights = *inputs.flags(mask)?.get(3)?;
    let once = times(&[2, positions(input)?, matrices(shapes.iter().map(Vec::as_slice))?])?;
    let states = [4, 5].map(|at| bytes_if_given(inputs.tensor(at)));
    let of_weights = if is_of_weights { weights?.bytes_unexpanded() } else { Some(0) };
    let read = sum(inputs.tensors().map(Tensor::bytes)).filter(|_| weights.is_some());
    let written = states.into_iter().chain([input.bytes_unexpanded(), of_weights]);
    Some((times(&[once, 1 + i64::from(is_of_weights)])?, sum(written.chain([read]))))
}

/// One layer in one direction: its two matrices of weights are arguments 1 and 2, its states 5 and 6.
pub(super) fn recurrent_layer(inputs: &Inputs) -> Counts {
    let (input, of_input, of_hidden) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let positions = positions(input)?;
    let weights = [of_input, of_hidden].map(|weights| weights.dims.as_slice());
    let flops = times(&[2, positions, matrices(weights.into_iter())?])?;
    let result = times(&[positions, *of_hidden.dims.last()?]);
    let states = [5, 6].map(|at| bytes_if_given(inputs.tensor(at)));
    let read = inputs.tensors().map(Tensor::bytes);
    Some((flops, sum(read.chain(states).chain([input.bytes_of(result)]))))
}
