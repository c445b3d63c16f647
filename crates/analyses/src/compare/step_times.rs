//! How long steps take in two runs.

use super::significance::difference;
use crate::{Coverage, Outcome, Selection, Table, Unit};
use stepscope_base::percentiles::nearest_rank;
use stepscope_trace::{Findings, StepSource, Trace};

/// The durations of the complete steps asked for, in their order.
pub(super) fn of(trace: &Trace, selection: &Selection) -> Vec<i64> {
    let steps = selection.steps(trace).filter(|step| step.is_complete && step.source != StepSource::Whole);
    steps.map(|step| step.span.duration_ns()).collect()
}

/// One row: both runs' steps, and how they differ.
pub(super) fn outcome(a: (&Trace, &Selection), b: (&Trace, &Selection)) -> Outcome {
    let (a, b) = (of(a.0, a.1), of(b.0, b.1));
    let told = |values: &[i64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let mean = (!values.is_empty()).then(|| values.iter().sum::<i64>() / values.len() as i64);
        (values.len() as i64, nearest_rank(&sorted, 50), mean, nearest_rank(&sorted, 95))
    };
    let ((a_steps, a_median, a_mean, a_p95), (b_steps, b_median, b_mean, b_p95)) = (told(&a), told(&b));
    let found = difference(&a, &b);
    let ratio = |ns: i64| a_median.filter(|median| *median > 0).map(|median| ns as f64 / median as f64);
    let limits = found.and_then(|found| found.limits);
    let table = Table::default()
        .count("a_steps", [a_steps])
        .count("b_steps", [b_steps])
        .ns("a_median_ns", [a_median])
        .ns("b_median_ns", [b_median])
        .ns("a_mean_ns", [a_mean])
        .ns("b_mean_ns", [b_mean])
        .ns("a_p95_ns", [a_p95])
        .ns("b_p95_ns", [b_p95])
        .ns("change_ns", [found.map(|found| found.shift)])
        .float("change_ratio", Unit::Ratio, [found.and_then(|found| ratio(found.shift))])
        .ns("change_low_ns", [limits.map(|(low, _)| low)])
        .ns("change_high_ns", [limits.map(|(_, high)| high)])
        .float("p_value", Unit::Plain, [found.and_then(|found| found.p_value)]);
    Outcome { table, coverage: Coverage::default(), findings: Findings::default() }
}
