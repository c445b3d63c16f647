//! Iterations of the training loop.

use crate::ProcessId;
use serde::{Deserialize, Serialize};
use stepscope_base::Span;

/// How a step's limits are known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum StepSource {
    /// The job labelled it (`prof.step()`, `ProfilerStep#N`).
    Label,
    /// It ends where the optimizer's step ends.
    Optimizer,
    /// Its process launches the same kernels again and again: it begins where the sequence does.
    Kernels,
    /// Nothing marks steps: one over everything.
    Whole,
}

impl StepSource {
    /// The source's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Optimizer => "optimizer",
            Self::Kernels => "kernels",
            Self::Whole => "whole",
        }
    }
}

/// One iteration on one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The process whose host thread runs the loop.
    pub process: ProcessId,
    /// Its rank.
    pub rank: u32,
    /// The step's number as the job counts.
    pub number: i64,
    /// Its host window.
    pub span: Span,
    /// How its limits are known.
    pub source: StepSource,
    /// False when the recording began or ended inside it; such a step is left out of averages.
    pub is_complete: bool,
}
