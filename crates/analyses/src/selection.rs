//! What part of a trace an analysis is asked about.

use stepscope_base::Span;
use stepscope_trace::{Step, Trace};

/// The part of the trace a person asked for; the default is all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Only this rank.
    pub rank: Option<u32>,
    /// Only the steps with this number.
    pub step: Option<i64>,
}

impl Selection {
    /// True when `rank` was asked for.
    pub fn has_rank(&self, rank: u32) -> bool {
        self.rank.is_none_or(|wanted| wanted == rank)
    }

    /// The steps asked for, of the ranks asked for, in order.
    pub fn steps<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = &'a Step> {
        let is_wanted = |step: &&Step| self.has_rank(step.rank) && self.step.is_none_or(|number| step.number == number);
        trace.steps.iter().filter(is_wanted)
    }

    /// The host windows asked for on `rank`: `None` when everything is, else one window a step with that number.
    pub fn windows(&self, trace: &Trace, rank: u32) -> Option<Vec<Span>> {
        self.step?;
        Some(self.steps(trace).filter(|step| step.rank == rank).map(|step| step.span).collect())
    }
}
