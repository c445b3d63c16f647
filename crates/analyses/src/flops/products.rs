//! Matrix products, convolutions and attention. Each gives operations and, where they can be known, bytes; everything
//! is checked, so that absurd shapes give no answer.

use super::formula::ConvolutionArguments;
use super::inputs::{Inputs, Tensor, product as elements};

type Counts = Option<(i64, Option<i64>)>;

fn times(factors: &[i64]) -> Option<i64> {
    elements(factors)
}

fn sum(parts: &[Option<i64>]) -> Option<i64> {
    parts.iter().try_fold(0_i64, |sum, part| sum.checked_add((*part)?))
}

/// Bytes of a result with so many elements of the type of `like`.
fn result_bytes(like: &Tensor, elements: Option<i64>) -> Option<i64> {
    elements?.checked_mul(like.element_bytes?)
}

pub(super) fn product(inputs: &Inputs, a: usize, b: usize) -> Counts {
    let (a, b) = (inputs.tensor(a)?, inputs.tensor(b)?);
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
    Some((flops, sum(&[a.bytes(), b.bytes(), result_bytes(a, times(&[rows, columns]))])))
}

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
    Some((flops, sum(&[a.bytes(), weight.bytes(), result_bytes(a, times(&[rows, columns]))])))
}

pub(super) fn convolution(inputs: &Inputs, at: ConvolutionArguments) -> Counts {
    let (x, weight) = (inputs.tensor(0)?, inputs.tensor(1)?);
    if x.dims.len() < 3 || x.dims.len() != weight.dims.len() {
        return None;
    }
    let spatial = x.dims.len() - 2;
    let is_transposed = at.transposed.map_or(Some(false), |at| inputs.flag(at))?;
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
        at.groups.and_then(|at| inputs.number(at)).and_then(|groups| times(&[groups, weight.dims[1]]))
    } else {
        Some(weight.dims[0])
    };
    let result = channels.and_then(|channels| times(&[x.dims[0], channels, elements(&result)?]));
    Some((flops, sum(&[x.bytes(), weight.bytes(), result_bytes(x, result)])))
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
            bytes = sum(&[bytes, grad.bytes(), x.bytes(), weight.bytes()]);
        }
    }
    Some((flops, bytes))
}

struct Attention {
    batch_heads: i64,
    queries: i64,
    keys: i64,
    query_size: i64,
    value_size: i64,
}

fn attention_sizes(query: &Tensor, key: &Tensor, value: &Tensor, heads_at: usize) -> Option<Attention> {
    let shape = |tensor: &Tensor| <[i64; 4]>::try_from(tensor.dims.as_slice()).ok();
    let (query, key, value) = (shape(query)?, shape(key)?, shape(value)?);
    let length_at = 3 - heads_at;
    let (heads, key_heads) = (query[heads_at], key[heads_at]);
    let fits = query[0] == key[0] && key[0] == value[0] && query[3] == key[3];
    let fits = fits && key[length_at] == value[length_at] && key_heads == value[heads_at];
    if !fits || key_heads <= 0 || heads % key_heads != 0 {
        return None;
    }
    Some(Attention {
        batch_heads: times(&[query[0], heads])?,
        queries: query[length_at],
        keys: key[length_at],
        query_size: query[3],
        value_size: value[3],
    })
}

/// Scores and their product with the values.
pub(super) fn attention(inputs: &Inputs, heads_at: usize) -> Counts {
    let (query, key, value) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let of = attention_sizes(query, key, value, heads_at)?;
    let sizes = of.query_size.checked_add(of.value_size)?;
    let flops = times(&[2, of.batch_heads, of.queries, of.keys, sizes])?;
    let result = result_bytes(query, times(&[of.batch_heads, of.queries, of.value_size]));
    Some((flops, sum(&[query.bytes(), key.bytes(), value.bytes(), result])))
}

/// Five products: scores once more, then gradients of scores, values, queries and keys.
pub(super) fn attention_backward(inputs: &Inputs, heads_at: usize) -> Counts {
    let (grad, query) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (key, value) = (inputs.tensor(2)?, inputs.tensor(3)?);
    let of = attention_sizes(query, key, value, heads_at)?;
    let sizes = of.query_size.checked_mul(3)?.checked_add(of.value_size.checked_mul(2)?)?;
    let flops = times(&[2, of.batch_heads, of.queries, of.keys, sizes])?;
    let read_and_written = sum(&[query.bytes(), key.bytes(), value.bytes(), grad.bytes()]);
    Some((flops, read_and_written.and_then(|bytes| bytes.checked_mul(2))))
}
