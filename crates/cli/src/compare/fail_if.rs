//! `--fail-if`: a limit for what steps may take longer, for a program that reads the exit code.

use crate::failure::Failure;
use stepscope_engine::{Column, Envelope, Values};

/// By how much steps may differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Condition {
    is_more: bool,
    limit: Limit,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    /// Of the median before.
    Ratio(f64),
    Nanoseconds(f64),
}

/// As they are printed, and as they are typed: with either of the two letters that look like µ.
const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3_600e9)];

impl Condition {
    /// `step_ns > +3%`, `step_ns < -5 ms`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "expected for example 'step_ns > +3%' or 'step_ns > 5ms'".to_string();
        let rest = text.trim().strip_prefix("step_ns").ok_or_else(wrong)?.trim_start();
        let is_more = match rest.chars().next() {
            Some('>') => true,
            Some('<') => false,
            _ => return Err(wrong()),
        };
        let value = rest[1..].trim();
        let end = value.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(value.len());
        let (number, unit) = (value[..end].parse::<f64>().map_err(|_| wrong())?, value[end..].trim());
        let limit = match unit {
            "%" => Limit::Ratio(number / 100.0),
            unit => {
                let known = UNITS.iter().find(|(name, _)| *name == unit);
                Limit::Nanoseconds(number * known.ok_or_else(wrong)?.1)
            }
        };
        Ok(Self { is_more, limit })
    }

    /// Whether steps differ by more than the limit, and that is significant.
    ///
    /// # Errors
    /// When that cannot be told.
    pub(super) fn holds(&self, steps: &Envelope) -> Result<bool, Failure> {
        let column = |name: &str| steps.results.column(name);
        let (changed, limit) = match self.limit {
            Limit::Ratio(limit) => (column("change_ratio").and_then(number), limit),
            Limit::Nanoseconds(limit) => (column("change_ns").and_then(number), limit),
        };
        let is_significant = match column("is_significant").map(|column| &column.values) {
            Some(Values::Bool(values)) => values.first().copied().flatten(),
            _ => None,
        };
        match (changed, is_significant) {
            (Some(changed), Some(is_significant)) => {
                let is_beyond = if self.is_more { changed > limit } else { changed < limit };
                Ok(is_significant && is_beyond)
            }
            _ => {
                let failure = Failure::new("--fail-if cannot be evaluated: both runs need at least two complete steps");
                Err(failure.at(&steps.run.name).hint("record more steps, or label them"))
            }
        }
    }
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
    fn a_condition_has_a_limit_with_its_unit() {
        let more = |limit| Ok(Condition { is_more: true, limit });
        assert_eq!(Condition::parse("step_ns > +3%"), more(Limit::Ratio(0.03)));
        assert_eq!(Condition::parse("step_ns>2.5 ms"), more(Limit::Nanoseconds(2.5e6)));
        for unit in ["us", "µs", "μs"] {
            assert_eq!(Condition::parse(&format!("step_ns > 5 {unit}")), more(Limit::Nanoseconds(5e3)));
        }
        let less = Condition { is_more: false, limit: Limit::Ratio(-0.1) };
        assert_eq!(Condition::parse(" step_ns < -10 %"), Ok(less));
        for wrong in
            ["", "step_ns", "step_ns > 3", "step_ns = 3%", "loss > 3%", "step_ns > %", "step_ns > 1-2%", "step_ns > 3é"]
        {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }
}
