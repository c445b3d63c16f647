//! Matrix products and convolutions. Each gives operations and, where they can be known, bytes; everything is checked,
//! so that absurd shapes give no answer.

use super::counts::{Counts, bytes_if_given, sum, times};
use super::formula::ConvolutionArguments;
use super::inputs::{Inputs, Tensor, product as elements};

/// Where a matrix product finds what it needs among its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProductArguments {
    pub(crate) a: usize,
    pub(crate) b: usize,
    /// What is added to the product.
    pub(crate) added: Option<usize>,
    /// The type of the result, when it can be another than that of `a`.
    pub(crate) result_type: Option<usize>,
}

pub(super) fn product(inputs: &Inputs, at: ProductArguments) -> Counts {
    let (a, b) = (inputs.tensor(at.a)?, inputs.tensor(at.b)?);
    let shared = *a.dims.last()?;
    let (inner, columns) = match b.dims.as_slice() {
        [inner] => (*inner, 1),
        [.., inner, columns] => (*inner, *columns),
        [] => return None,
    };
    if inner != shared || (a.dims.len() > 2 && a.dims[0] != b.dims[0]) {
        return None;
    }
    let rows = elements(&a.dims[..a.dims.len() - 1])?;
    let flops = times(&[2, rows, shared, columns])?;
    let added = bytes_if_given(at.added.and_then(|at| inputs.tensor(at)));
    let result = result_bytes(inputs, a, at.result_type, times(&[rows, columns]));
    Some((flops, sum([a.bytes(), b.bytes(), added, result])))
}

/// Bytes of a result whose type is given at a position, or else that of `like`.
fn result_bytes(inputs: &Inputs, like: &Tensor, type_at: Option<usize>, elements: Option<i64>) -> Option<i64> {
    match type_at.filter(|at| !inputs.is_absent(*at)) {
        Some(at) => times(&[elements?, inputs.scalar_type_bytes(at)?]),
        None => like.bytes_of(elements),
    }
}

/// Argument 0 times the transpose of argument 1, and what is added or what scales: argument 2.
pub(super) fn linear(inputs: &Inputs) -> Counts {
    let (a, weight) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let shared = *a.dims.last()?;
    let columns = match weight.dims.as_slice() {
        [inner] if *inner == shared => 1,
        [columns, inner] if *inner == shared => *columns,
        _ => return None,
    };
    let rows = elements(&a.dims[..a.dims.len() - 1])?;
    let flops = times(&[2, rows, shared, columns])?;
    let result = a.bytes_of(times(&[rows, columns]));
    Some((flops, sum([a.bytes(), weight.bytes(), bytes_if_given(inputs.tensor(2)), result])))
}

/// Argument 0 with a weight of 4-bit integers, packed as `[columns / 8, …]`; its scales are argument 3.
pub(super) fn int4_product(inputs: &Inputs) -> Counts {
    let (a, weight, scales) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(3)?);
    let (rows, shared) = match a.dims[..] {
        [rows, shared] => (rows, shared),
        _ => return None,
    };
    let columns = times(&[8, *weight.dims.first()?])?;
    let flops = times(&[2, rows, shared, columns])?;
    Some((flops, sum([a.bytes(), weight.bytes(), scales.bytes(), a.bytes_of(times(&[rows, columns]))])))
}

/// Products of groups: of rows of `a`, of columns of `b` or of what both share, cut where the offsets say; or of one
/// matrix each. All offsets together cover everything.
pub(super) fn grouped_product(inputs: &Inputs, offsets: usize, result_type: usize) -> Counts {
    let (a, b, offsets) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(offsets));
    let (rows, shared) = match a.dims[..] {
        [.., rows, shared] => (rows, shared),
        _ => return None,
    };
    let (inner, columns) = match b.dims[..] {
        [.., inner, columns] => (inner, columns),
        _ => return None,
    };
    let groups = offsets.map(|offsets| offsets.elements());
    let (each, result_groups) = match (a.dims.len(), b.dims.len(), groups) {
        (2, 2, Some(groups)) => (1, groups?),
        (2, 3, Some(groups)) if groups? == b.dims[0] => (1, 1),
        (3, 2, Some(groups)) if groups? == a.dims[0] => (1, 1),
        (3, 3, None) if a.dims[0] == b.dims[0] => (a.dims[0], a.dims[0]),
        _ => return None,
    };
    if inner != shared {
        return None;
    }
    let flops = times(&[2, each, rows, shared, columns])?;
    let result = result_bytes(inputs, a, Some(result_type), times(&[result_groups, rows, columns]));
    Some((flops, sum([a.bytes(), b.bytes(), bytes_if_given(offsets), result])))
}

pub(super) fn convolution(inputs: &Inputs, at: ConvolutionArguments) -> Counts {
    let (x, weight) = (inputs.tensor(0)?, inputs.tensor(1)?);
    if x.dims.len() < 3 || x.dims.len() != weight.dims.len() {
        return None;
    }
    let spatial = x.dims.len() - 2;
    let is_transposed = at.transposed.map_or(Some(at.is_transposed), |at| inputs.flag(at))?;
    let sizes = |at: Option<usize>, unless_given: i64| match at {
        None => Some(vec![unless_given; spatial]),
        Some(at) => match inputs.numbers(at)?.as_slice() {
            [all] => Some(vec![*all; spatial]),
            sizes if sizes.len() == spatial => Some(sizes.to_vec()),
            _ => None,
        },
    };
    let (stride, padding, dilation) = (sizes(at.stride, 1)?, sizes(at.padding, 0)?, sizes(at.dilation, 1)?);
    let output_padding = if is_transposed { sizes(at.output_padding, 0)? } else { vec![0; spatial] };
    let result_size = |axis: usize| {
        let kernel = dilation[axis].checked_mul(weight.dims[axis + 2].checked_sub(1)?)?;
        let padding = padding[axis].checked_mul(2)?;
        let size = if is_transposed {
            let reach = x.dims[axis + 2].checked_sub(1)?.checked_mul(stride[axis])?;
            reach.checked_sub(padding)?.checked_add(kernel)?.checked_add(output_padding[axis])?.checked_add(1)?
        } else {
            let room = x.dims[axis + 2].checked_add(padding)?.checked_sub(kernel)?.checked_sub(1)?;
            if room < 0 || stride[axis] <= 0 {
                return None;
            }
            room / stride[axis] + 1
        };
        Some(size).filter(|size| *size >= 0)
    };
    let result: Vec<i64> = (0..spatial).map(result_size).collect::<Option<_>>()?;
    let positions = if is_transposed { elements(&x.dims[2..]) } else { elements(&result) }?;
    let flops = times(&[2, positions, x.dims[0], elements(&weight.dims)?])?;
    let channels = if is_transposed {
        at.groups.map_or(Some(1), |at| inputs.number(at)).and_then(|groups| times(&[groups, weight.dims[1]]))
    } else {
        Some(weight.dims[0])
    };
    let result = channels.and_then(|channels| times(&[x.dims[0], channels, elements(&result)?]));
    let bias = inputs.tensor(2).filter(|bias| bias.dims.len() == 1);
    Some((flops, sum([x.bytes(), weight.bytes(), bytes_if_given(bias), x.bytes_of(result)])))
}

/// Arguments: gradient, input, weight, bias sizes, stride, padding, dilation, transposed, output padding, groups, mask.
pub(super) fn convolution_backward(inputs: &Inputs) -> Counts {
    let (grad, x, weight) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    if x.dims.len() < 3 || x.dims.len() != weight.dims.len() || x.dims.len() != grad.dims.len() {
        return None;
    }
    let positions = elements(if inputs.flag(7)? { &x.dims[2..] } else { &grad.dims[2..] })?;
    let one = times(&[2, positions, x.dims[0], elements(&weight.dims)?])?;
    let mask = inputs.flags(10)?;
    let is_asked = |at: usize| mask.get(at).copied().unwrap_or(false);
    let (mut flops, mut bytes) = (0_i64, Some(0_i64));
    for is_asked in [is_asked(0), is_asked(1)] {
        if is_asked {
            flops = flops.checked_add(one)?;
            bytes = sum([bytes, grad.bytes(), x.bytes(), weight.bytes()]);
        }
    }
    Some((flops, bytes))
}
