//! How the work of an operator is computed, as the table of operators writes it.

use super::attention::{AttentionArguments, attention};
use super::element_wise::{MapArguments, NormBackwardArguments};
use super::lookups::ScatterArguments;
use super::products::ProductArguments;
use super::recurrent::RecurrentArguments;
use super::{Inputs, Work, element_wise, lookups, pooling, products, recurrent};

/// One formula with its parameters. Numbers in the table are operations an element, and behind a `=` positions of
/// arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Formula {
    /// `product A B`: the matrix product of two arguments, batched or not.
    Product(ProductArguments),
    /// `int4_product`: argument 0 with a packed weight.
    Int4Product,
    /// `grouped_product`: argument 0 with argument 1, each cut into groups.
    GroupedProduct { offsets: usize, result_type: usize },
    /// `linear`: argument 0 times the transpose of argument 1.
    Linear,
    /// `convolution …`: argument 0 with weight 1.
    Convolution(ConvolutionArguments),
    /// `convolution_backward`: gradients of input and weight, those that the mask asks for.
    ConvolutionBackward,
    /// `attention heads_at=D`, `attention_backward heads_at=D`: query, key and value, with heads at dimension D.
    Attention(AttentionArguments),
    /// `recurrent`: all layers of a recurrent network.
    Recurrent(RecurrentArguments),
    /// `recurrent_backward`: its gradients, those that the mask asks for.
    RecurrentBackward { mask: usize },
    /// `recurrent_layer`: one layer in one direction.
    RecurrentLayer,
    /// `map N`: N operations for each element of the result.
    Map(MapArguments),
    /// `norm_backward N`: N operations for each element of the input.
    NormBackward(NormBackwardArguments),
    /// `reduce N`: N operations for each element of argument 0.
    Reduce { flops: i64, dim_at: usize },
    /// `each N`: N operations for each element of a list of tensors.
    Each { flops: i64 },
    /// `loss N`: N operations for each element of argument 0, and one to sum up.
    Loss { flops: i64, reduction: usize },
    /// `nll_loss`: the score of each position's class, summed up.
    NllLoss,
    /// `nll_loss_backward`: its gradient.
    NllLossBackward,
    /// `max_pool A`, `avg_pool A`: windows along the last A axes.
    Pool { axes: usize, is_max: bool },
    /// `max_pool_backward`: its gradient.
    MaxPoolBackward,
    /// `avg_pool_backward A`: its gradient.
    AvgPoolBackward { axes: usize },
    /// `adaptive_pool A`: as many windows as argument 1 says.
    AdaptivePool { axes: usize },
    /// `adaptive_pool_backward A`: its gradient.
    AdaptivePoolBackward { axes: usize },
    /// `interpolate A T`: along the last A axes, of T elements each.
    Interpolate { axes: usize, taps: i64 },
    /// `interpolate_backward A T`: its gradient.
    InterpolateBackward { taps: i64 },
    /// `sort`: argument 0 in order, with positions.
    Sort,
    /// `topk`: the first of it.
    TopK,
    /// `copy`: argument 1 to argument 0.
    Copy,
    /// `fill`: argument 0 is written.
    Fill,
    /// `embedding`: rows of argument 0 by the indices in argument 1.
    Embedding,
    /// `embedding_bag`: sums of such rows.
    EmbeddingBag,
    /// `embedding_backward`: gradient 0 added to rows by the indices in argument 1.
    EmbeddingBackward,
    /// `gather I`: elements of argument 0 by the indices in argument I.
    Gather(usize),
    /// `index_select`: rows of argument 0 along an axis.
    IndexSelect,
    /// `scatter N`: values written to argument 0 by indices, with N operations each; of whole rows with the word
    /// `rows`, to a copy of it with `copied`.
    Scatter(ScatterArguments),
}

/// Where a convolution's parameters stand among its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ConvolutionArguments {
    pub(crate) stride: Option<usize>,
    pub(crate) padding: Option<usize>,
    pub(crate) dilation: Option<usize>,
    pub(crate) transposed: Option<usize>,
    /// Unless an argument says whether it is.
    pub(crate) is_transposed: bool,
    pub(crate) output_padding: Option<usize>,
    pub(crate) groups: Option<usize>,
}

/// A formula as the table writes it: words, some of them `key=number`.
struct Words<'a>(Vec<&'a str>);

impl Words<'_> {
    fn plain(&self, at: usize) -> Option<usize> {
        self.0.get(at)?.parse().ok()
    }

    fn count(&self, at: usize) -> Option<i64> {
        i64::try_from(self.plain(at)?).ok()
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.0.iter().filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name)?.1.parse().ok()
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }
}

impl Formula {
    /// The formula that a row of the table writes so.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words = Words(text.split(' ').collect());
        Self::parse_product(&words).or_else(|| Self::parse_pooling(&words)).or_else(|| Self::parse_other(&words))
    }

    fn parse_product(words: &Words<'_>) -> Option<Self> {
        Some(match words.0[0] {
            "product" => Self::Product(ProductArguments {
                a: words.plain(1)?,
                b: words.plain(2)?,
                added: words.named("added"),
                result_type: words.named("result_type"),
            }),
            "int4_product" => Self::Int4Product,
            "grouped_product" => {
                Self::GroupedProduct { offsets: words.named("offsets")?, result_type: words.named("result_type")? }
            }
            "linear" => Self::Linear,
            "convolution" => Self::Convolution(ConvolutionArguments {
                stride: words.named("stride"),
                padding: words.named("padding"),
                dilation: words.named("dilation"),
                transposed: words.named("transposed"),
                is_transposed: words.has("transpose"),
                output_padding: words.named("output_padding"),
                groups: words.named("groups"),
            }),
            "convolution_backward" => Self::ConvolutionBackward,
            "attention" | "attention_backward" => Self::Attention(AttentionArguments {
                heads_at: words.named("heads_at")?,
                lengths: words.named("lengths"),
                is_backward: words.has("attention_backward"),
            }),
            "recurrent" => Self::Recurrent(RecurrentArguments {
                states: [words.named("states")?, words.named("states")? + 1],
                hidden_size: words.named("hidden_size")?,
                projected_size: words.named("projected_size"),
                is_bidirectional: words.named("bidirectional")?,
            }),
            "recurrent_backward" => Self::RecurrentBackward { mask: words.named("mask")? },
            "recurrent_layer" => Self::RecurrentLayer,
            _ => return None,
        })
    }

    fn parse_pooling(words: &Words<'_>) -> Option<Self> {
        Some(match words.0[0] {
            "max_pool" => Self::Pool { axes: words.plain(1)?, is_max: true },
            "avg_pool" => Self::Pool { axes: words.plain(1)?, is_max: false },
            "max_pool_backward" => Self::MaxPoolBackward,
            "avg_pool_backward" => Self::AvgPoolBackward { axes: words.plain(1)? },
            "adaptive_pool" => Self::AdaptivePool { axes: words.plain(1)? },
            "adaptive_pool_backward" => Self::AdaptivePoolBackward { axes: words.plain(1)? },
            "interpolate" => Self::Interpolate { axes: words.plain(1)?, taps: words.count(2)? },
            "interpolate_backward" => Self::InterpolateBackward { taps: words.count(1)? },
            _ => return None,
        })
    }

    fn parse_other(words: &Words<'_>) -> Option<Self> {
        Some(match words.0[0] {
            "map" => Self::Map(MapArguments {
                flops: words.count(1)?,
                size_of: words.named("size_of"),
                element_bytes: words.named("element_bytes").map(|bytes| bytes as i64),
                results: words.named("results").map_or(1, |results| results as i64),
                out: words.named("out"),
            }),
            "norm_backward" => Self::NormBackward(NormBackwardArguments {
                flops: words.count(1)?,
                weight: words.named("weight")?,
                bias: words.named("bias"),
                parameters: words.named("parameters")?,
                mask: words.named("mask"),
                out: words.named("out"),
            }),
            "reduce" => Self::Reduce { flops: words.count(1)?, dim_at: words.named("dim").unwrap_or(1) },
            "each" => Self::Each { flops: words.count(1)? },
            "loss" => Self::Loss { flops: words.count(1)?, reduction: words.named("reduction")? },
            "nll_loss" => Self::NllLoss,
            "nll_loss_backward" => Self::NllLossBackward,
            "sort" => Self::Sort,
            "topk" => Self::TopK,
            "copy" => Self::Copy,
            "fill" => Self::Fill,
            "embedding" => Self::Embedding,
            "embedding_bag" => Self::EmbeddingBag,
            "embedding_backward" => Self::EmbeddingBackward,
            "gather" => Self::Gather(words.plain(1)?),
            "index_select" => Self::IndexSelect,
            "scatter" => Self::Scatter(ScatterArguments {
                flops: words.count(1)?,
                index: words.named("index")?,
                source: words.named("source")?,
                is_by_row: words.has("rows"),
                is_copied: words.has("copied"),
            }),
            _ => return None,
        })
    }

    /// True for matrix products, convolutions, attention and recurrent layers: of nested ones the innermost counts.
    pub(crate) fn is_product(self) -> bool {
        matches!(
            self,
            Self::Product(_)
                | Self::Int4Product
                | Self::GroupedProduct { .. }
                | Self::Linear
                | Self::Convolution(_)
                | Self::ConvolutionBackward
                | Self::Attention(_)
                | Self::Recurrent(_)
                | Self::RecurrentBackward { .. }
                | Self::RecurrentLayer
        )
    }

    /// The work of a call with these inputs; `None` when they do not tell.
    pub(crate) fn work(self, inputs: &Inputs) -> Option<Work> {
        let (flops, bytes) = match self {
            Self::Product(of) => products::product(inputs, of)?,
            Self::Int4Product => products::int4_product(inputs)?,
            Self::GroupedProduct { offsets, result_type } => products::grouped_product(inputs, offsets, result_type)?,
            Self::Linear => products::linear(inputs)?,
            Self::Convolution(of) => products::convolution(inputs, of)?,
            Self::ConvolutionBackward => products::convolution_backward(inputs)?,
            Self::Attention(of) => attention(inputs, of)?,
            Self::Recurrent(of) => recurrent::recurrent(inputs, of)?,
            Self::RecurrentBackward { mask } => recurrent::recurrent_backward(inputs, mask)?,
            Self::RecurrentLayer => recurrent::recurrent_layer(inputs)?,
            Self::Map(of) => element_wise::map(inputs, of)?,
            Self::NormBackward(of) => element_wise::norm_backward(inputs, of)?,
            Self::Reduce { flops, dim_at } => element_wise::reduce(inputs, flops, dim_at)?,
            Self::Each { flops } => element_wise::each(inputs, flops)?,
            Self::Loss { flops, reduction } => element_wise::loss(inputs, flops, reduction)?,
            Self::NllLoss => element_wise::nll_loss(inputs)?,
            Self::NllLossBackward => element_wise::nll_loss_backward(inputs)?,
            Self::Pool { axes, is_max } => pooling::pool(inputs, axes, is_max)?,
            Self::MaxPoolBackward => pooling::max_pool_backward(inputs)?,
            Self::AvgPoolBackward { axes } => pooling::avg_pool_backward(inputs, axes)?,
            Self::AdaptivePool { axes } => pooling::adaptive_pool(inputs, axes)?,
            Self::AdaptivePoolBackward { axes } => pooling::adaptive_pool_backward(inputs, axes)?,
            Self::Interpolate { axes, taps } => pooling::interpolate(inputs, axes, taps)?,
            Self::InterpolateBackward { taps } => pooling::interpolate_backward(inputs, taps)?,
            Self::Sort => element_wise::sort(inputs)?,
            Self::TopK => element_wise::topk(inputs)?,
            Self::Copy => element_wise::copy(inputs)?,
            Self::Fill => element_wise::fill(inputs)?,
            Self::Embedding => lookups::embedding(inputs)?,
            Self::EmbeddingBag => lookups::embedding_bag(inputs)?,
            Self::EmbeddingBackward => lookups::embedding_backward(inputs)?,
            Self::Gather(index) => lookups::gather(inputs, index)?,
            Self::IndexSelect => lookups::index_select(inputs)?,
            Self::Scatter(of) => lookups::scatter(inputs, of)?,
        };
        Some(Work { flops, bytes, precision: inputs.precision, is_product: self.is_product() })
    }
}
