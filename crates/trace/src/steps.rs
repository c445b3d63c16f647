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

/// What a server does in an iteration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum IterationKind {
    /// It reads in requests.
    Prefill,
    /// It continues requests.
    Decode,
    /// It reads in some and continues others.
    Mixed,
    /// It checks what a smaller model has guessed.
    Verify,
}

impl IterationKind {
    /// Its name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Mixed => "mixed",
            Self::Verify => "verify",
        }
    }
}

/// What is known of an iteration of an inference server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Iteration {
    /// What it does; `None` when not known.
    pub kind: Option<IterationKind>,
    /// How many requests it computes together.
    pub requests: Option<i64>,
    /// How many tokens of them it computes.
    pub tokens: Option<i64>,
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
    /// What an inference server does in it; empty for other steps.
    pub iteration: Iteration,
}
