//! Attention of all kinds, forward and backward: two products, of queries with keys and of the scores with the values.

use super::counts::{Counts, bytes_if_given, sum, times};
use super::inputs::{Inputs, Tensor};

/// Where attention finds what it needs among its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AttentionArguments {
    /// The dimension of heads.
    pub(crate) heads_at: usize,
    /// Sums of lengths of queries, then of keys, then the longest of both, when sequences of several lengths can be
    /// packed into one.
    pub(crate) lengths: Option<usize>,
    /// True for the gradients.
    pub(crate) is_backward: bool,
}

struct Sizes {
    batch_heads: i64,
    queries: i64,
    keys: i64,
    query_size: i64,
    value_size: i64,
}

/// Forward: query, key, value, mask. Backward: gradient, query, key, value. Backward are five products: scores once
/// more, then gradients of scores, values, queries and keys.
pub(super) fn attention(inputs: &Inputs, at: AttentionArguments) -> Counts {
    let first = usize::from(at.is_backward);
    let [query, key, value] = [0, 1, 2].map(|of| inputs.tensor(first + of));
    let (query, key, value) = (query?, key?, value?);
    let of = match at.lengths.filter(|lengths| inputs.tensor(*lengths).is_some()) {
        Some(lengths) => packed_sizes(inputs, lengths, [query, key, value])?,
        None => sizes([query, key, value], at.heads_at)?,
    };
    let [of_query, of_value] = if at.is_backward { [3, 2] } else { [1, 1] };
    let size = sum([times(&[of_query, of.query_size]), times(&[of_value, of.value_size])])?;
    let flops = times(&[2, of.batch_heads, of.queries, of.keys, size])?;
    let read = [query, key, value].map(Tensor::bytes);
    let bytes = if at.is_backward {
        sum(read.into_iter().chain([inputs.tensor(0)?.bytes()])).and_then(|bytes| times(&[2, bytes]))
    } else {
        let result = query.bytes_of(times(&[of.batch_heads, of.queries, of.value_size]));
        sum(read.into_iter().chain([bytes_if_given(inputs.tensor(3)), result]))
    };
    Some((flops, bytes))
}

fn sizes(tensors: [&Tensor; 3], heads_at: usize) -> Option<Sizes> {
    let shape = |tensor: &Tensor| <[i64; 4]>::try_from(tensor.dims.as_slice()).ok();
    let [query, key, value] = tensors.map(shape);
    let (query, key, value) = (query?, key?, value?);
    let length_at = 3 - heads_at;
    let (heads, key_heads) = (query[heads_at], key[heads_at]);
    let fits = query[0] == key[0] && key[0] == value[0] && query[3] == key[3];
    let fits = fits && key[length_at] == value[length_at] && key_heads == value[heads_at];
    if !fits || key_heads <= 0 || heads % key_heads != 0 {
        return None;
    }
    Some(Sizes {
        batch_heads: times(&[query[0], heads])?,
        queries: query[length_at],
        keys: key[length_at],
        query_size: query[3],
        value_size: value[3],
    })
}

/// Sizes of packed sequences: `[total, heads, size]`, maybe behind a 1. Their lengths are values on the device that no
/// trace has; they are known when as many sequences as there are, each the longest, make up the total.
fn packed_sizes(inputs: &Inputs, lengths: usize, tensors: [&Tensor; 3]) -> Option<Sizes> {
    let shape = |tensor: &Tensor| match tensor.dims[..] {
        [total, heads, size] | [1, total, heads, size] => Some([total, heads, size]),
        _ => None,
    };
    let [query, key, value] = tensors.map(shape);
    let (query, key, value) = (query?, key?, value?);
    let longest = |which: usize, total: i64| {
        let sequences = inputs.tensor(lengths + which)?.elements()?.checked_sub(1)?;
        let longest = inputs.number(lengths + 2 + which)?;
        (times(&[sequences, longest])? == total).then_some((sequences, longest))
    };
    let (sequences, queries) = longest(0, query[0])?;
    let (key_sequences, keys) = longest(1, key[0])?;
    let fits = sequences == key_sequences && key[0] == value[0] && query[2] == key[2] && key[1] == value[1];
    if !fits || key[1] <= 0 || query[1] % key[1] != 0 {
        return None;
    }
    let batch_heads = times(&[sequences, query[1]])?;
    Some(Sizes { batch_heads, queries, keys, query_size: query[2], value_size: value[2] })
}
