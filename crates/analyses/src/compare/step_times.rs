//! How long steps take in two runs.

use super::significance::{Difference, difference};
use crate::{Outcome, Selection};
use stepscope_base::percentiles::nearest_rank;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_trace::Trace;

/// The durations of the complete steps asked for, in their order.
pub(super) fn of(trace: &Trace, selection: &Selection) -> Vec<i64> {
    selection.complete_steps(trace).map(|step| step.span.duration_ns()).collect()
}

/// A difference that chance makes less often than this is called significant.
const SIGNIFICANT: f64 = 0.05;

columns! {
    /// How long steps take in two runs.
    struct StepTimes {
        /// Number of complete steps in the first run.
        a_steps: i64 => Count,
        /// Number of complete steps in the second run.
        b_steps: i64 => Count,
        /// Median duration of a step in the first run.
        a_median_ns: Option<i64> => Nanoseconds,
        /// Median duration of a step in the second run.
        b_median_ns: Option<i64> => Nanoseconds,
        /// How much longer a step takes in the second run, as the median over all pairs of steps.
        change_ns: Option<i64> => Nanoseconds,
        /// The change as a share of the first run's median.
        change_ratio: Option<f64> => Ratio,
        /// The lower limit of the 95 % confidence interval of the change.
        change_low_ns: Option<i64> => Nanoseconds,
        /// The upper limit of the 95 % confidence interval of the change.
        change_high_ns: Option<i64> => Nanoseconds,
        /// How probable so clear a difference is by chance.
        p_value: Option<f64> => Plain,
        /// Whether the probability is below 5 %.
        is_significant: Option<bool> => Flag,
        /// Mean duration of a step in the first run.
        a_mean_ns: Option<i64> => Nanoseconds,
        /// Mean duration of a step in the second run.
        b_mean_ns: Option<i64> => Nanoseconds,
        /// The duration that 95 of 100 steps of the first run do not exceed.
        a_p95_ns: Option<i64> => Nanoseconds,
        /// The duration that 95 of 100 steps of the second run do not exceed.
        b_p95_ns: Option<i64> => Nanoseconds,
        /// The comparison in one or two sentences.
        says: String => Text,
    }
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
    let says = says([(a_steps, a_median), (b_steps, b_median)], found.zip(a_median));
    let is_significant = found.and_then(|found| found.p_value).map(|p_value| p_value < SIGNIFICANT);
    Outcome::of_runs(&[StepTimes {
        a_steps,
        b_steps,
        a_median_ns: a_median,
        b_median_ns: b_median,
        change_ns: found.map(|found| found.shift),
        change_ratio: found.and_then(|found| ratio(found.shift)),
        change_low_ns: limits.map(|(low, _)| low),
        change_high_ns: limits.map(|(_, high)| high),
        p_value: found.and_then(|found| found.p_value),
        is_significant,
        a_mean_ns: a_mean,
        b_mean_ns: b_mean,
        a_p95_ns: a_p95,
        b_p95_ns: b_p95,
        says,
    }])
}

/// The row as a sentence or two. `runs` has the number of steps and their median of both, `found` the difference and the
/// median that it is a share of.
fn says(runs: [(i64, Option<i64>); 2], found: Option<(Difference, i64)>) -> String {
    let told = |(steps, median): (i64, Option<i64>), when: &str| {
        let noun = if steps == 1 { "step" } else { "steps" };
        format!("{} {when} ({} {noun})", median.map_or("–".into(), format_ns), format_count(steps))
    };
    let Some((Difference { shift, limits, p_value }, before)) = found else {
        let which = match runs {
            [(0, _), (0, _)] => "Neither run has a complete step",
            [(0, _), _] => "The first run has no complete step",
            _ => "The second run has no complete step",
        };
        return format!("{which}: how long steps take cannot be compared.");
    };
    let medians = format!("medians are {} and {}", told(runs[1], "now"), told(runs[0], "before"));
    let (by, way) = (format_ns(shift.saturating_abs()), if shift < 0 { "shorter" } else { "longer" });
    let share = |shift: i64| match before {
        ..=0 => String::new(),
        _ => format!(" ({})", format_ratio(shift as f64 / before as f64)),
    };
    let size = share(shift.saturating_abs());
    let Some(p_value) = p_value else {
        return format!(
            "A step takes {by}{size} {way}, by the median of all pairs; {medians}. Whether that is chance cannot be told: it \
             takes two steps of each run at least."
        );
    };
    let between = match limits {
        Some((low, high)) => {
            format!("the 95 % confidence interval is {} to {}", signed(low), signed(high))
        }
        None => "there are too few steps for limits".to_string(),
    };
    let p_value_text = if p_value < 0.001 { "p < 0.001".into() } else { format!("p = {p_value:.3}") };
    match p_value < SIGNIFICANT {
        true if shift != 0 => format!(
            "A step takes {by}{size} {way}, by the median of all pairs; {medians}. The difference is significant \
             ({p_value_text}): {between}."
        ),
        _ => format!(
            "Steps take about as long as before: {medians}. The difference, {}{} by the median of all pairs, may be \
             chance ({p_value_text}): {between}.",
            signed(shift),
            share(shift)
        ),
    }
}

/// `+1.20 ms`, `-340 µs`, `0 ns`.
fn signed(ns: i64) -> String {
    let sign = if ns > 0 { "+" } else { "" };
    format!("{sign}{}", format_ns(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(a: &[i64], b: &[i64]) -> String {
        let told = |values: &[i64]| {
            let mut sorted = values.to_vec();
            sorted.sort_unstable();
            (values.len() as i64, nearest_rank(&sorted, 50))
        };
        says([told(a), told(b)], difference(a, b).zip(told(a).1))
    }

    #[test]
    fn what_is_significant_is_said_with_its_limits() {
        let (a, b) = ([1_000, 1_010, 1_020, 1_030, 1_040], [1_500, 1_510, 1_520, 1_530, 1_540]);
        assert_eq!(
            sentence(&a, &b),
            "A step takes 500 ns (49.0 %) longer, by the median of all pairs; medians are 1.52 µs now (5 steps) and 1.02 µs \
             before (5 steps). The difference is significant (p = 0.008): the 95 % confidence interval is +470 ns to \
             +530 ns."
        );
        assert!(sentence(&b, &a).starts_with("A step takes 500 ns (32.9 %) shorter, "), "{}", sentence(&b, &a));
    }

    #[test]
    fn what_may_be_chance_is_called_so() {
        assert_eq!(
            sentence(&[100, 110, 120], &[101, 109, 125]),
            "Steps take about as long as before: medians are 109 ns now (3 steps) and 110 ns before (3 steps). The \
             difference, +1 ns (0.9 %) by the median of all pairs, may be chance (p = 1.000): there are too few steps for \
             limits."
        );
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        assert_eq!(
            sentence(&[100], &[150, 160]),
            "A step takes 55 ns (55.0 %) longer, by the median of all pairs; medians are 150 ns now (2 steps) and 100 ns \
             before (1 step). Whether that is chance cannot be told: it takes two steps of each run at least."
        );
        assert!(
            sentence(&[10, 12], &[9, 12]).contains("The difference, -1 ns (-10.0 %) by"),
            "{}",
            sentence(&[10, 12], &[9, 12])
        );
        assert!(sentence(&[], &[]).starts_with("Neither run"));
        assert!(sentence(&[1], &[]).starts_with("The second run has no complete step"));
        assert!(!sentence(&[0, 0], &[5, 5]).contains("%) longer"));
    }
}
