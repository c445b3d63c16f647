//! The work of operators: floating-point operations and bytes of memory, from the shapes and types of their inputs.
//!
//! Matrix products, convolutions and attention are counted as `torch.utils.flop_counter` does: a multiplication and an
//! addition are two operations, biases and scales are left out, attention counts every pair of positions, also when a
//! mask leaves half of them out. In one point that counter is wrong and this one is not: in the gradient of a grouped
//! convolution's weight it forgets to divide by the groups. Sequences packed into one have work only when all are as
//! long as the longest: a trace does not have their lengths. Recurrent layers are the products that they consist of.
//!
//! Everything else counts a fixed number of operations an element, which stands in `data/operators.txt`: 1 for an
//! addition, 8 for GELU, 13 for Adam. Pooling counts one for each element of each window, interpolation two for each
//! element that it weighs. What only looks up, moves or orders has none.
//!
//! Bytes are those of every input read once and of every result written once: the least that memory must move. An input
//! that is expanded (stride 0) counts once. Of what is picked by indices only what is picked counts, of what is
//! written by indices only what is written, and of an input whose shape alone matters nothing; what a caller gives as
//! `out=` is written to, not read. What lists of tensors
//! hold is not recorded, so their bytes are not known.
//!
//! Operators call each other, so the same work could be counted several times. It is counted at one of them:
//!
//! ```text
//! linear                 holds a product: it counts nothing itself
//!   addmm                the innermost product: counted
//!     copy_              inside of what is counted: not counted
//! add                    outermost of what is no product: counted
//!   to
//!     copy_              not counted
//! ```

mod attention;
mod counts;
mod element_wise;
mod formula;
mod inputs;
mod lookups;
mod pooling;
mod products;
mod recurrent;
mod torch_profiler;

pub(crate) use formula::Formula;
pub(crate) use inputs::{Inputs, shapes};
pub use torch_profiler::{is_counted_by_torch_profiler, torch_profiler_flops};

use crate::AnalysisContext;
use crate::context::Shared;
use crate::op_classes::OpClasses;
use crate::op_tree::{NONE, OpTree};
use stepscope_base::StringId;
use stepscope_trace::Trace;

/// What a tensor holds, as far as a device's peak depends on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Precision {
    /// 64-bit floats.
    Fp64,
    /// 32-bit floats.
    Fp32,
    /// 16-bit floats of either kind.
    Fp16,
    /// 8-bit floats of any kind.
    Fp8,
    /// 8-bit integers.
    Int8,
}

/// The work of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Work {
    /// Operations.
    pub(crate) flops: i64,
    /// Bytes read and written; `None` when the inputs do not tell.
    pub(crate) bytes: Option<i64>,
    /// What it computes with; `None` when not known.
    pub(crate) precision: Option<Precision>,
    /// True for matrix products, convolutions, attention and recurrent layers.
    pub(crate) is_product: bool,
}

/// The work of an operator called `name`, from the texts of its inputs; `None` without a formula, or when they do not
/// tell.
#[cfg(test)]
pub(crate) fn work_of_texts(name: &str, dims: &str, types: &str, values: &str) -> Option<Work> {
    let mut strings = stepscope_base::StringTable::default();
    let [dims, types, strides, concrete] = [dims, types, "", values].map(|text| strings.intern(text));
    let texts = stepscope_trace::OpInputs { dims, types, strides, concrete, ..stepscope_trace::OpInputs::UNKNOWN };
    crate::op_classes::op_class(name).formula?.work(&Inputs::read(&strings, texts)?)
}

/// The work of a trace's operators, each part of it counted at one operator.
pub(crate) struct Works {
    /// Distinct work; the first is of no meaning.
    distinct: Vec<Work>,
    /// For each operator the work counted at it, 0 for none.
    work: Vec<u32>,
    /// For each operator the one at which what it does is counted, or [`NONE`].
    owner: Vec<u32>,
}

impl Shared for Works {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self::of(context.trace, context.get())
    }
}

impl Works {
    /// The work of the operators in `tree`.
    pub(crate) fn of(trace: &Trace, tree: &OpTree) -> Self {
        if !trace.has_shapes() {
            return Self { distinct: Vec::new(), work: Vec::new(), owner: Vec::new() };
        }
        let mut works =
            Self { distinct: vec![Work::default()], work: vec![0; tree.len()], owner: vec![NONE; tree.len()] };
        works.find(trace, tree);
        let mut holds_product = vec![false; tree.len()];
        for row in (0..tree.len()).rev() {
            let parent = tree.parent[row];
            if parent != NONE && (holds_product[row] || works.distinct[works.work[row] as usize].is_product) {
                holds_product[parent as usize] = true;
            }
        }
        for (row, holds_product) in holds_product.into_iter().enumerate() {
            let parent = tree.parent[row];
            works.owner[row] = if parent == NONE { NONE } else { works.owner[parent as usize] };
            if works.owner[row] != NONE || holds_product {
                works.work[row] = 0;
            } else if works.work[row] != 0 {
                works.owner[row] = row as u32;
            }
        }
        works
    }

    /// The work counted at an operator.
    pub(crate) fn get(&self, row: u32) -> Option<Work> {
        let work = self.work.get(row as usize).copied().filter(|work| *work != 0)?;
        Some(self.distinct[work as usize])
    }

    /// The operator, itself or around it, at which its work is counted.
    pub(crate) fn owner(&self, row: u32) -> Option<u32> {
        self.owner.get(row as usize).copied().filter(|owner| *owner != NONE)
    }

    /// Every operator with work counted at it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Work)> + '_ {
        (0..self.work.len() as u32).filter_map(|row| Some((row, self.get(row)?)))
    }

    /// Finds the work of every operator by itself, each distinct one once.
    fn find(&mut self, trace: &Trace, tree: &OpTree) {
        let mut classes = OpClasses::new(&trace.strings);
        let mut inputs: Vec<Option<KnownInputs>> = Vec::new();
        inputs.resize_with(trace.ops.inputs.len(), || None);
        for (slice, info) in trace.ops.slice.iter().zip(&trace.ops.info).filter(|(_, info)| info.inputs.0 != 0) {
            let Some(row) = tree.row(Some(*slice)) else { continue };
            let name = trace.slices.name[slice.index()];
            let Some(formula) = classes.get(name).formula else { continue };
            let known = inputs[info.inputs.index()].get_or_insert_with(|| KnownInputs {
                inputs: Inputs::read(&trace.strings, trace.ops.inputs(info.inputs)),
                work: Vec::new(),
            });
            let found = known.work.iter().find(|(of, _)| *of == name).map(|(_, work)| *work);
            self.work[row as usize] = found.unwrap_or_else(|| {
                let work = known.inputs.as_ref().and_then(|inputs| formula.work(inputs));
                self.distinct.extend(work);
                let work = if work.is_some() { self.distinct.len() as u32 - 1 } else { 0 };
                known.work.push((name, work));
                work
            });
        }
    }
}

/// Inputs that some operator had, and the work of each operator that had them: few share the same.
struct KnownInputs {
    inputs: Option<Inputs>,
    work: Vec<(StringId, u32)>,
}

#[cfg(test)]
mod tests;
