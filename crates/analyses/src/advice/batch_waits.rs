//! How long training loops wait for their next batch while nothing else happens, and who makes the batches.

use super::facts::{Facts, share};
use super::words::counted;
use super::{Advice, GainEstimate, Place};
use crate::AnalysisContext;
use crate::batches::Batches;
use crate::device_busy::busy_of;
use crate::host_threads::Doing;
use crate::io_summary::Runners;
use crate::io_workers::{self, WorkerTime};
use crate::step_breakdown::{self, StepBreakdown};
use stepscope_base::IntervalSet;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::SliceKind;

/// As the TensorBoard plugin of PyTorch's profiler.
pub(super) const THRESHOLD: f64 = 0.05;

/// The waits of a rank, over its complete steps, or over all when none is complete.
pub(super) struct BatchWaits {
    pub(super) rank: u32,
    /// Time of waiting while nothing else happens.
    wait_ns: i64,
    /// The part of the waits in which the batch was not made yet; 1 where that is not known.
    pub(super) unmade_ratio: f64,
    /// The time of the steps.
    window_ns: i64,
    steps: i64,
    /// Who makes the batches; empty when it was not recorded.
    pub(super) makers: Vec<WorkerTime>,
}

/// Why a loop waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// The training process makes its batches itself.
    NoWorkers,
    /// The workers make fewer batches than the loop takes.
    FewWorkers { workers: i64, enough: i64 },
}

/// The waits of each rank.
pub(super) fn batch_waits(context: &AnalysisContext<'_>) -> Vec<BatchWaits> {
    let rows = step_breakdown::rows(context);
    let makers = io_workers::rows(context);
    let of_rank = |rows: &[StepBreakdown]| {
        let unmade_ratio = unmade_ratio(context.get(), rows[0].rank).unwrap_or(1.0);
        BatchWaits { unmade_ratio, ..BatchWaits::of_rank(rows, &makers) }
    };
    rows.chunk_by(|a, b| a.rank == b.rank).map(of_rank).collect()
}

/// Of the waits for batches that workers make, the part in which the batch was not made yet: the rest is taking it from the
/// worker.
fn unmade_ratio(batches: &Batches, rank: u32) -> Option<f64> {
    let of_workers = batches.batches.iter().filter(|batch| batch.fetch.said.worker.is_some());
    let taken =
        of_workers.filter_map(|batch| Some((batch.fetch.span, batch.next?))).filter(|(_, next)| next.rank == rank);
    let of_each = taken.map(|(fetch, next)| {
        let unmade_ns = fetch.end_ns.min(next.span.end_ns) - next.span.start_ns;
        (unmade_ns.max(0), next.span.duration_ns())
    });
    let (unmade_ns, all_ns) = of_each.fold((0, 0), |sum: (i64, i64), of| (sum.0 + of.0, sum.1 + of.1));
    (all_ns > 0).then(|| unmade_ns as f64 / all_ns as f64)
}

impl BatchWaits {
    fn of_rank(rows: &[StepBreakdown], makers: &[WorkerTime]) -> Self {
        let steps = || rows.iter().filter(|row| row.step.is_some());
        let has_complete = steps().any(|row| row.is_complete == Some(true));
        let counted = || steps().filter(|row| !has_complete || row.is_complete == Some(true));
        // The first batch waits for the loader to start, once.
        let first = usize::from(counted().count() > 2);
        let counted = || counted().skip(first);
        let rank = rows[0].rank;
        Self {
            rank,
            unmade_ratio: 1.0,
            wait_ns: counted().map(|row| row.dataloader_ns).sum(),
            window_ns: counted().map(|row| row.total_ns).sum(),
            steps: counted().count() as i64,
            makers: makers.iter().filter(|row| row.rank == rank).copied().collect(),
        }
    }

    /// How many workers would be enough, where it is known.
    pub(super) fn enough_workers(&self) -> Option<i64> {
        self.makers.iter().find_map(|row| row.enough_workers)
    }

    /// How many workers would be enough, which `enough` says in words; and how many cores there are where these are fewer.
    pub(super) fn enough_says(&self, facts: &Facts, enough: &str) -> String {
        let mut of_rank = facts.trace.processes.iter().filter(|process| process.rank == self.rank);
        let cores = of_rank.find_map(|process| process.settings.cores_allowed);
        let few = cores.filter(|cores| self.enough_workers().is_some_and(|workers| workers > *cores));
        let few = few.map_or_else(String::new, |cores| format!("; the process may use {}", counted(cores, "core")));
        format!(" {enough} would be enough{few}.")
    }

    /// Why the loop waits; `None` when it is not known, as of workers that are enough but not even.
    pub(super) fn cause(&self) -> Option<Cause> {
        // A training process that makes some batches beside its workers has another loader too.
        let workers = self.makers.first()?.workers;
        match self.enough_workers() {
            _ if workers == 0 => Some(Cause::NoWorkers),
            Some(enough) if enough > workers => Some(Cause::FewWorkers { workers, enough }),
            _ => None,
        }
    }

    /// When the loop waits and no device works.
    fn time(&self, facts: &Facts) -> IntervalSet {
        let waits = Runners::of(facts.context, self.rank).doing(facts.context, Doing::DataLoader);
        waits.intersect(&facts.steps_of(self.rank)).subtract(&busy_of(facts.context, self.rank))
    }

    /// A row about the waits for `what`, when they are more than the threshold.
    pub(super) fn advice(&self, facts: &Facts, what: &str) -> Option<Advice> {
        let row = share(self.wait_ns, self.window_ns, THRESHOLD)?;
        // Where batches are ready, no worker is waited for.
        share((self.wait_ns as f64 * self.unmade_ratio) as i64, self.window_ns, THRESHOLD)?;
        let (wait, ratio) = (format_ns(self.wait_ns / self.steps), format_ratio(row.measured_ratio?));
        let step = format_ns(self.window_ns / self.steps);
        let of = match self.steps {
            1 => format!("the {step} of the step"),
            steps => format!("a step of {step} (mean of {steps})"),
        };
        Some(Advice {
            rank: Some(self.rank),
            says: format!("{wait} ({ratio}) of {of} is waiting for {what} while nothing else runs."),
            count: Some(self.steps),
            gain: Some((self.wait_ns, GainEstimate::Bound)),
            place: facts.longest(self.rank, SliceKind::DataLoader).map(|slice| Place::of(facts.trace, slice)),
            time: self.time(facts),
            ..row
        })
    }
}
