//! `--fail-if`: a limit for what steps may take longer, for a program that reads the exit code.

use crate::condition::{Condition, Limit, Operator};
use crate::failure::Failure;
use stepscope_engine::{Column, Envelope, Values};

/// `step_ns > +3%`, `step_ns < -5 ms`.
pub(super) fn parse(text: &str) -> Result<Condition, String> {
    let wrong = || "expected for example 'step_ns > +3%' or 'step_ns > 5ms'".to_string();
    let condition = Condition::parse(text).map_err(|_| wrong())?;
    let is_of_time = matches!(condition.limit, Limit::Ratio(_) | Limit::Nanoseconds(_));
    let is_known = condition.name == "step_ns" && is_of_time;
    is_known.then_some(condition).ok_or_else(wrong)
}

/// The condition that steps take longer by more than `limit`, which was `typed` so.
pub(crate) fn slower_by(limit: Limit, typed: String) -> Condition {
    Condition { name: "step_ns".into(), operator: Operator::More, limit, typed }
}

/// Whether steps differ by more than the limit, and that is significant; `None` when that cannot be told.
pub(crate) fn is_beyond(condition: &Condition, steps: &Envelope) -> Option<bool> {
    let column = |name: &str| steps.results.column(name);
    let changed = match condition.limit {
        Limit::Ratio(_) => column("change_ratio").and_then(number),
        _ => column("change_ns").and_then(number),
    };
    let is_significant = match column("is_significant").map(|column| &column.values) {
        Some(Values::Bool(values)) => values.first().copied().flatten(),
        _ => None,
    };
    Some(is_significant? && condition.holds(changed?))
}

/// As [`is_beyond`].
///
/// # Errors
/// When that cannot be told.
pub(super) fn holds(condition: &Condition, steps: &Envelope) -> Result<bool, Failure> {
    is_beyond(condition, steps).ok_or_else(|| {
        let failure = Failure::new("--fail-if cannot be evaluated: both runs need at least two complete steps");
        failure.at(&steps.run.name).hint("record more steps, or label them")
    })
}

/// The first value of a column.
fn number(column: &Column) -> Option<f64> {
    match &column.values {
        Values::Int(values) => values.first().copied().flatten().map(|value| value as f64),
        Values::Float(values) => values.first().copied().flatten(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_one_of_steps() {
        assert_eq!(parse("step_ns > +3%"), Ok(slower_by(Limit::Ratio(0.03), "+3 %".into())));
        assert!(parse("step_ns < -5 ms").is_ok());
        for wrong in ["", "step_ns", "step_ns > 3", "step_ns = 3%", "loss > 3%", "step_ns > 3GiB"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
