//! The rows of analyses that are put together from those of each rank: computed of the events of one rank after the
//! other, for one selection, and small enough to be kept.
//!
//! ```text
//! events of a rank ─▶ RankRows ─┐
//! events of a rank ─▶ RankRows ─┴▶ joined ─▶ analyses, the report
//! ```

use crate::AnalysisContext;
use crate::advice::AllAdvice;
use crate::compare::Counted;
use crate::context::{Shared, SharedResults};
use crate::coverage::Launched;
use crate::kernels::{KernelRuns, Runs};
use crate::operators::{self, Operator, Operators};
use crate::step_breakdown::{self, StepBreakdown, StepBreakdowns};
use crate::temporal_breakdown::{self, TemporalBreakdown, TemporalBreakdowns};
use serde::{Deserialize, Serialize};

/// The rows of one rank, or of a few.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RankRows {
    launched: Launched,
    has_stacks: bool,
    counted: Counted,
    operators: Vec<Operator>,
    kernels: Vec<Runs>,
    devices: Vec<TemporalBreakdown>,
    steps: Vec<StepBreakdown>,
}

/// What is advised for one rank, or for a few: the same for all of it and for its complete steps.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RankAdvice(AllAdvice);

impl RankRows {
    /// Those of the part of a trace that `context` is of.
    pub fn of(context: &AnalysisContext<'_>) -> Self {
        Self {
            launched: Launched::asked_for(context),
            has_stacks: has_stacks(context),
            counted: *context.get(),
            operators: operators::rows(context).to_vec(),
            kernels: context.get::<KernelRuns>().0.clone(),
            devices: temporal_breakdown::rows(context),
            steps: step_breakdown::rows(context),
        }
    }

    /// States that all of it is of this rank.
    pub fn set_rank(&mut self, rank: u32) {
        self.devices.iter_mut().for_each(|row| row.rank = rank);
        self.steps.iter_mut().for_each(|row| row.rank = rank);
    }

    /// Takes every moment as `of` has it.
    pub fn set_moments(&mut self, of: impl Fn(i64) -> i64) {
        let starts = self.steps.iter_mut().filter_map(|row| row.start_ns.as_mut());
        starts.for_each(|start_ns| *start_ns = of(*start_ns));
    }

    /// The device time that they are about.
    pub fn launched(&self) -> Launched {
        self.launched
    }

    /// What analyses share of the ranks together; each rank is in one of them.
    pub fn joined<'a>(of_ranks: impl Iterator<Item = (&'a Self, &'a RankAdvice)> + Clone) -> SharedResults {
        let shared = SharedResults::default();
        let each = || of_ranks.clone().map(|(rows, _)| rows);
        shared.give(each().map(|rows| rows.launched).sum::<Launched>().coverage());
        shared.give(HasStacks(each().any(|rows| rows.has_stacks)));
        shared.give(each().map(|rows| rows.counted).sum::<Counted>());
        shared.give(Operators::joined(each().flat_map(|rows| &rows.operators)));
        shared.give(KernelRuns::joined(each().flat_map(|rows| &rows.kernels)));
        let mut devices: Vec<TemporalBreakdown> = each().flat_map(|rows| rows.devices.clone()).collect();
        devices.sort_by_key(|row| (row.rank, row.device));
        shared.give(TemporalBreakdowns(devices));
        let mut steps: Vec<StepBreakdown> = each().flat_map(|rows| rows.steps.clone()).collect();
        steps.sort_by_key(|row| row.rank);
        shared.give(StepBreakdowns(steps));
        shared.give(AllAdvice::joined(of_ranks.map(|(_, advice)| advice.0.clone())));
        shared
    }
}

impl RankAdvice {
    /// Whether all of it is of rules that there are.
    pub fn is_known(&self) -> bool {
        self.0.is_known()
    }

    /// That for the part of a trace that `context` is of.
    pub fn of(context: &AnalysisContext<'_>) -> Self {
        Self(context.get::<AllAdvice>().clone())
    }

    /// States that all of it is of this rank.
    pub fn set_rank(&mut self, rank: u32) {
        self.0.rows.iter_mut().for_each(|row| row.rank = row.rank.and(Some(rank)));
    }

    /// Takes every moment as `of` has it.
    pub fn set_moments(&mut self, of: impl Fn(i64) -> i64) {
        let places = self.0.rows.iter_mut().filter_map(|row| row.place.as_mut());
        places.for_each(|place| place.start_ns = of(place.start_ns));
    }
}

/// Whether call stacks were recorded.
pub fn has_stacks(context: &AnalysisContext<'_>) -> bool {
    context.get::<HasStacks>().0
}

struct HasStacks(bool);

impl Shared for HasStacks {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self(!context.trace.stacks.is_empty())
    }
}
