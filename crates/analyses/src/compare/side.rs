//! A run as it is compared: what a step takes, and what lies outside of steps.

use crate::{AnalysisContext, Coverage, Outcome, Selection, Table, Unit, Values, find};
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
        let whole = Selection { group_by: None, compat: None, ..*selection };
        let steps = whole.complete_steps(trace).count() as i64;
        Self { trace, whole, in_steps: Selection { complete_steps: steps > 0, ..whole }, steps: steps.max(1) }
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

    /// Count and time of all rows of an analysis, in the whole run and in complete steps.
    fn sums(&self, analysis: &str, ns: &str) -> [(i64, i64); 2] {
        [&self.whole, &self.in_steps].map(|selection| {
            let analysis = find(analysis).expect("in the catalogue");
            let table = (analysis.run)(&AnalysisContext::new(self.trace, selection)).table;
            (sum(&table, "count"), sum(&table, ns))
        })
    }
}

fn sum(table: &Table, name: &str) -> i64 {
    match table.column(name).map(|column| &column.values) {
        Some(Values::Int(values)) => values.iter().flatten().fold(0, |sum, value| sum.saturating_add(*value)),
        _ => 0,
    }
}

/// A row is what lies outside of complete steps: of operators, and of kernels.
pub(super) fn outcome(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let rows = [("operators", "host_self_ns"), ("kernels", "total_ns")];
    let [of_a, of_b] = [a, b].map(|side| {
        rows.map(|(analysis, ns)| {
            let [whole, inside] = side.sums(analysis, ns);
            side.has_steps().then_some((whole.0 - inside.0, whole.1 - inside.1, whole.1))
        })
    });
    type Outside = Option<(i64, i64, i64)>;
    let count = |of: &Outside| of.map(|of| of.0);
    let ns = |of: &Outside| of.map(|of| of.1);
    let ratio = |of: &Outside| of.filter(|of| of.2 > 0).map(|of| of.1 as f64 / of.2 as f64);
    let table = Table::default()
        .text("name", rows.map(|(analysis, _)| Some(analysis)))
        .count("a_run_count", of_a.iter().map(count))
        .count("b_run_count", of_b.iter().map(count))
        .ns("a_run_ns", of_a.iter().map(ns))
        .ns("b_run_ns", of_b.iter().map(ns))
        .float("a_run_ratio", Unit::Ratio, of_a.iter().map(ratio))
        .float("b_run_ratio", Unit::Ratio, of_b.iter().map(ratio));
    Outcome { table, coverage: Coverage::default(), findings: Findings::default() }
}
