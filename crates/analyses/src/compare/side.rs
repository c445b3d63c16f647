//! A run as it is compared: what a step takes, and what lies outside of steps.

use crate::context::Shared;
use crate::{AnalysisContext, Outcome, Selection, kernels, operators};
use serde::{Deserialize, Serialize};
use stepscope_base::units::format_count;
use stepscope_trace::{FindingCode, Findings, SliceKind, Trace};

/// Which runs have something: what the column `runs` says.
pub(super) fn runs_with([a, b]: [bool; 2]) -> &'static str {
    match (a, b) {
        (true, true) => "both",
        (true, false) => "a",
        _ => "b",
    }
}

/// A run as it is compared.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// All that was asked for.
    pub whole: &'a AnalysisContext<'a>,
    /// What belongs to complete steps; everything where there are none.
    pub in_steps: &'a AnalysisContext<'a>,
}

impl<'a> Side<'a> {
    /// What the contexts of the part of `trace` that was asked for are of.
    pub fn selections(trace: &Trace, selection: &Selection) -> [Selection; 2] {
        // Rows of several names of one operator cannot be joined: by name, whatever is asked for otherwise.
        let whole = Selection { group_by: None, compat: None, ..selection.clone() };
        let complete_steps = whole.complete_steps(trace).next().is_some();
        [whole.clone(), Selection { complete_steps, ..whole }]
    }

    /// A trace that has what is asked for, with the selection that was asked for.
    pub(super) fn asked(&self) -> (&'a Trace, &'a Selection) {
        (self.whole.trace, self.whole.selection)
    }

    /// What sums over `in_steps` are divided by, at least 1.
    pub(super) fn steps(&self) -> i64 {
        (self.whole.selection.complete_steps(self.whole.trace).count() as i64).max(1)
    }

    /// True when its rows are of complete steps.
    pub(super) fn has_steps(&self) -> bool {
        self.in_steps.selection.complete_steps
    }

    /// What is told of the part that no row per step has; `when` is which run it is.
    pub(super) fn findings(&self, when: &str) -> Findings {
        let mut findings = Findings::default();
        if !self.has_steps() {
            return findings;
        }
        let [whole, inside] = [self.whole, self.in_steps].map(|context| *context.get::<Counted>());
        if whole != inside {
            let told = |of: fn(&Counted) -> i64| {
                format!("{} of {}", format_count(of(&whole) - of(&inside)), format_count(of(&whole)))
            };
            let (ops, events) = (told(|counted| counted.ops), told(|counted| counted.device_events));
            findings.add(FindingCode::OutsideOfSteps, || {
                format!("{when}: {ops} calls of operators, {events} device events")
            });
        }
        findings
    }

    /// Count and time of all calls of operators, in the whole run and in complete steps.
    fn operator_sums(&self) -> [(i64, i64); 2] {
        [self.whole, self.in_steps]
            .map(|context| sums(operators::rows(context).iter().map(|row| (row.count, row.host_self_ns))))
    }

    /// The same of runs of kernels.
    fn kernel_sums(&self) -> [(i64, i64); 2] {
        [self.whole, self.in_steps]
            .map(|context| sums(kernels::rows(context).iter().map(|row| (row.count, row.total_ns))))
    }
}

/// How much is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Calls of operators.
    ops: i64,
    device_events: i64,
}

impl Shared for Counted {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let ops = selection.slices(trace).filter(|id| trace.slices.kind(*id) == SliceKind::Op);
        Self { ops: ops.count() as i64, device_events: selection.device_events(trace).count() as i64 }
    }
}

impl std::iter::Sum for Counted {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            ops: sum.ops + next.ops,
            device_events: sum.device_events + next.device_events,
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

/// What `make` makes of two traces, each with what was asked for.
#[cfg(test)]
pub(crate) fn with_sides<T>(
    a: (&Trace, &Selection),
    b: (&Trace, &Selection),
    make: impl FnOnce(&Side<'_>, &Side<'_>) -> T,
) -> T {
    let selections = [a, b].map(|(trace, selection)| Side::selections(trace, selection));
    let [of_a, of_b] = [(a.0, &selections[0]), (b.0, &selections[1])]
        .map(|(trace, of)| of.each_ref().map(|selection| AnalysisContext::new(trace, selection)));
    let [a, b] = [&of_a, &of_b].map(|[whole, in_steps]| Side { whole, in_steps });
    make(&a, &b)
}
