//! How the work of an operator is computed, as the table of operators writes it.

use super::{Inputs, Work, element_wise, products};

/// One formula with its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Formula {
    /// `product A B`: the matrix product of two arguments, batched or not.
    Product(usize, usize),
    /// `linear`: argument 0 times the transpose of argument 1.
    Linear,
    /// `convolution …`: argument 0 with weight 1.
    Convolution(ConvolutionArguments),
    /// `convolution_backward`: gradients of input and weight, those that the mask asks for.
    ConvolutionBackward,
    /// `attention heads_at=D`: query, key and value, with heads at dimension D.
    Attention { heads_at: usize, is_backward: bool },
    /// `map N`: N operations for each element of the result.
    Map { flops: i64, size_of: Option<usize>, element_bytes: Option<i64> },
    /// `reduce N`: N operations for each element of argument 0.
    Reduce { flops: i64, dim_at: usize },
    /// `each N`: N operations for each element of a list of tensors.
    Each { flops: i64 },
    /// `copy`: argument 1 to argument 0.
    Copy,
    /// `fill`: argument 0 is written.
    Fill,
    /// `embedding`: rows of argument 0 by the indices in argument 1.
    Embedding,
    /// `embedding_backward`: gradient 0 added to rows by the indices in argument 1.
    EmbeddingBackward,
    /// `gather I`: elements of argument 0 by the indices in argument I.
    Gather(usize),
}

/// Where a convolution's parameters stand among its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ConvolutionArguments {
    pub(crate) stride: Option<usize>,
    pub(crate) padding: Option<usize>,
    pub(crate) dilation: Option<usize>,
    pub(crate) transposed: Option<usize>,
    pub(crate) output_padding: Option<usize>,
    pub(crate) groups: Option<usize>,
}

impl Formula {
    /// The formula that a row of the table writes so.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let plain = |at: usize| words.get(at)?.parse::<usize>().ok();
        let named = |name: &str| {
            words.iter().filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name)?.1.parse::<usize>().ok()
        };
        let flops = || i64::try_from(plain(1)?).ok();
        Some(match words[0] {
            "product" => Self::Product(plain(1)?, plain(2)?),
            "linear" => Self::Linear,
            "convolution" => Self::Convolution(ConvolutionArguments {
                stride: named("stride"),
                padding: named("padding"),
                dilation: named("dilation"),
                transposed: named("transposed"),
                output_padding: named("output_padding"),
                groups: named("groups"),
            }),
            "convolution_backward" => Self::ConvolutionBackward,
            "attention" => Self::Attention { heads_at: named("heads_at")?, is_backward: false },
            "attention_backward" => Self::Attention { heads_at: named("heads_at")?, is_backward: true },
            "map" => Self::Map {
                flops: flops()?,
                size_of: named("size_of"),
                element_bytes: named("element_bytes").map(|bytes| bytes as i64),
            },
            "reduce" => Self::Reduce { flops: flops()?, dim_at: named("dim").unwrap_or(1) },
            "each" => Self::Each { flops: flops()? },
            "copy" => Self::Copy,
            "fill" => Self::Fill,
            "embedding" => Self::Embedding,
            "embedding_backward" => Self::EmbeddingBackward,
            "gather" => Self::Gather(plain(1)?),
            _ => return None,
        })
    }

    /// True for matrix products, convolutions and attention: of nested ones the innermost counts.
    pub(crate) fn is_product(self) -> bool {
        matches!(
            self,
            Self::Product(..)
                | Self::Linear
                | Self::Convolution(_)
                | Self::ConvolutionBackward
                | Self::Attention { .. }
        )
    }

    /// The work of a call with these inputs; `None` when they do not tell.
    pub(crate) fn work(self, inputs: &Inputs) -> Option<Work> {
        let (flops, bytes) = match self {
            Self::Product(a, b) => products::product(inputs, a, b)?,
            Self::Linear => products::linear(inputs)?,
            Self::Convolution(arguments) => products::convolution(inputs, arguments)?,
            Self::ConvolutionBackward => products::convolution_backward(inputs)?,
            Self::Attention { heads_at, is_backward: false } => products::attention(inputs, heads_at)?,
            Self::Attention { heads_at, is_backward: true } => products::attention_backward(inputs, heads_at)?,
            Self::Map { flops, size_of, element_bytes } => element_wise::map(inputs, flops, size_of, element_bytes)?,
            Self::Reduce { flops, dim_at } => element_wise::reduce(inputs, flops, dim_at)?,
            Self::Each { flops } => element_wise::each(inputs, flops)?,
            Self::Copy => element_wise::copy(inputs)?,
            Self::Fill => element_wise::fill(inputs)?,
            Self::Embedding => element_wise::embedding(inputs)?,
            Self::EmbeddingBackward => element_wise::embedding_backward(inputs)?,
            Self::Gather(index) => element_wise::gather(inputs, index)?,
        };
        Some(Work { flops, bytes, precision: inputs.precision, is_product: self.is_product() })
    }
}
