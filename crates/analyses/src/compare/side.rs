//! A run as it is compared: what a step takes, and what lies outside of steps.

use crate::kernels::kernels;
use crate::operators::operators;
use crate::{Outcome, Selection};
use stepscope_base::units::format_count;
use stepscope_trace::{FindingCode, Findings, SliceId, SliceKind, Trace};

/// What of a run belongs to a step, and how many steps it has.
pub(super) struct Side<'a> {
    pub(super) trace: &'a Trace,
    /// All that was asked for.
    whole: Selection,
    /// What belongs to complete steps; everything where there are none.
    pub(super) in_steps: Selection,
    /// What sums over `in_steps` are divided by, at least 1.
    pub(super) steps: i64,
}

impl<'a> Side<'a> {
    pub(super) fn of((trace, selection): (&'a Trace, &Selection)) -> Self {
        // Rows of several names of one operator cannot be joined: by name, whatever is asked for otherwise.
        let whole = Selection { group_by: None, compat: None, ..selection.clone() };
        let steps = whole.complete_steps(trace).count() as i64;
        let in_steps = Selection { complete_steps: steps > 0, ..whole.clone() };
        Self { trace, whole, in_steps, steps: steps.max(1) }
    }

    /// True when its rows are of complete steps.
    pub(super) fn has_steps(&self) -> bool {
        self.in_steps.complete_steps
    }

    /// What is told of the part that no row per step has; `when` is which run it is.
    pub(super) fn findings(&self, when: &str) -> Findings {
        let mut findings = Findings::default();
        if !self.has_steps() {
            return findings;
        }
        let events = |selection: &Selection| selection.device_events(self.trace).count() as i64;
        let is_op = |id: &SliceId| self.trace.slices.kind(*id) == SliceKind::Op;
        let ops = |selection: &Selection| selection.slices(self.trace).filter(is_op).count() as i64;
        let of = |count: &dyn Fn(&Selection) -> i64| (count(&self.whole) - count(&self.in_steps), count(&self.whole));
        let (ops, events) = (of(&ops), of(&events));
        if ops.0 + events.0 > 0 {
            let told = |(part, all): (i64, i64)| format!("{} of {}", format_count(part), format_count(all));
            findings.add(FindingCode::OutsideOfSteps, || {
                format!("{when}: {} calls of operators, {} device events", told(ops), told(events))
            });
        }
        findings
    }

    /// Count and time of all calls of operators, in the whole run and in complete steps.
    fn operator_sums(&self) -> [(i64, i64); 2] {
        [&self.whole, &self.in_steps].map(|selection| {
            let rows = operators(self.trace, selection);
            sums(rows.iter().map(|row| (row.count, row.host_self_ns)))
        })
    }

    /// The same of runs of kernels.
    fn kernel_sums(&self) -> [(i64, i64); 2] {
        [&self.whole, &self.in_steps].map(|selection| {
            let rows = kernels(self.trace, selection);
            sums(rows.iter().map(|row| (row.count, row.total_ns)))
        })
    }
}

fn sums(rows: impl Iterator<Item = (i64, i64)>) -> (i64, i64) {
    rows.fold((0, 0), |sum, row| (sum.0.saturating_add(row.0), sum.1.saturating_add(row.1)))
}

columns! {
    /// What of one kind belongs to no complete step.
    struct OutsideRow {
        /// What it is: `operators` or `kernels`.
        name: &'static str => Text,
        /// Number of calls or runs in the first run that belong to no complete step.
        a_run_count: Option<i64> => Count,
        /// Number of calls or runs in the second run that belong to no complete step.
        b_run_count: Option<i64> => Count,
        /// Their time in the first run.
        a_run_ns: Option<i64> => Nanoseconds,
        /// Their time in the second run.
        b_run_ns: Option<i64> => Nanoseconds,
        /// Their time as a share of all time of this kind in the first run.
        a_run_ratio: Option<f64> => Ratio,
        /// Their time as a share of all time of this kind in the second run.
        b_run_ratio: Option<f64> => Ratio,
    }
}

/// A row is what lies outside of complete steps: of operators, and of kernels.
pub(super) fn outcome(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let kinds = [("operators", [a, b].map(Side::operator_sums)), ("kernels", [a, b].map(Side::kernel_sums))];
    let rows = kinds.map(|(name, [of_a, of_b])| {
        let [of_a, of_b] = [(a, of_a), (b, of_b)].map(|(side, [whole, inside])| {
            side.has_steps().then_some((whole.0 - inside.0, whole.1 - inside.1, whole.1))
        });
        let ratio = |(_, ns, whole_ns): (i64, i64, i64)| (whole_ns > 0).then(|| ns as f64 / whole_ns as f64);
        OutsideRow {
            name,
            a_run_count: of_a.map(|of| of.0),
            b_run_count: of_b.map(|of| of.0),
            a_run_ns: of_a.map(|of| of.1),
            b_run_ns: of_b.map(|of| of.1),
            a_run_ratio: of_a.and_then(ratio),
            b_run_ratio: of_b.and_then(ratio),
        }
    });
    Outcome::of_runs(&rows)
}
