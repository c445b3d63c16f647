//! Checks and what came of them.

use crate::condition::Condition;
use serde::{Serialize, Serializer};
use stepscope_base::units::{format_bytes, format_count, format_ns, format_ratio};
use stepscope_engine::{DifferenceLine, FindingRow, Measured, Metric, RunIdentity, SCHEMA, Unit};

/// What came of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Holds,
    Fails,
    /// The run does not say it, so it cannot be shown that it holds.
    NotJudged,
}

impl Status {
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::NotJudged => "not judged",
        }
    }
}

/// One check.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Check {
    /// What has to hold.
    pub(super) name: String,
    pub(super) status: Status,
    /// The number that a budget is about; absent for the baseline.
    metric: Option<&'static str>,
    /// What the run has of it, in `unit`; absent where that is not known.
    #[serde(serialize_with = "number")]
    measured: Option<Measured>,
    /// `ns`, `bytes`, `ratio` or `count`.
    unit: Option<&'static str>,
    /// The limit in `unit`.
    limit: Option<f64>,
    /// What was measured, or why not, in words.
    pub(super) says: String,
    /// Where the difference from the baseline comes from: lines of one table, whose classes sum to the last.
    pub(super) parts: Vec<DifferenceLine>,
}

fn number<S: Serializer>(measured: &Option<Measured>, serializer: S) -> Result<S::Ok, S::Error> {
    match measured {
        Some(Measured::Whole(value)) => serializer.serialize_some(value),
        Some(Measured::Ratio(value)) => serializer.serialize_some(value),
        Some(Measured::Unknown(_)) | None => serializer.serialize_none(),
    }
}

impl Check {
    /// Whether `measured` keeps to a budget.
    pub(super) fn of_budget(metric: &Metric, condition: &Condition, measured: Measured) -> Self {
        let says = match (&measured, metric.unit) {
            (Measured::Unknown(why), _) => why.clone(),
            (Measured::Ratio(value), _) => format_ratio(*value),
            (Measured::Whole(value), Unit::Nanoseconds) => format_ns(*value),
            (Measured::Whole(value), Unit::Bytes) => format_bytes(*value),
            (Measured::Whole(value), _) => format_count(*value),
        };
        let status = match measured.value() {
            None => Status::NotJudged,
            Some(value) if condition.holds(value) => Status::Holds,
            Some(_) => Status::Fails,
        };
        Self {
            name: condition.to_string(),
            status,
            metric: Some(metric.name),
            measured: Some(measured),
            unit: Some(metric.unit.as_str()),
            limit: Some(condition.limit.value()),
            says,
            parts: Vec::new(),
        }
    }

    /// What came of a comparison, in the sentence of the comparison.
    pub(super) fn of_baseline(name: String, status: Status, says: String, parts: Vec<DifferenceLine>) -> Self {
        Self { name, status, metric: None, measured: None, unit: None, limit: None, says, parts }
    }
}

/// All checks of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Outcome {
    schema: &'static str,
    pub(super) run: RunIdentity,
    /// Whether all checks hold.
    pub(super) holds: bool,
    pub(super) checks: Vec<Check>,
    pub(super) findings: Vec<FindingRow>,
}

impl Outcome {
    pub(super) fn new(run: RunIdentity, checks: Vec<Check>, findings: Vec<FindingRow>) -> Self {
        let holds = checks.iter().all(|check| check.status == Status::Holds);
        Self { schema: SCHEMA, run, holds, checks, findings }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("it holds only what JSON can say")
    }

    /// `2 of 3 checks hold: 1 fails`.
    pub(super) fn sentence(&self) -> String {
        if let [check] = self.checks.as_slice() {
            return match check.status {
                Status::NotJudged => "the check is not judged".into(),
                status => format!("the check {}", status.words()),
            };
        }
        let count = |status| self.checks.iter().filter(|check| check.status == status).count();
        let (held, fails, not_judged) = (count(Status::Holds), count(Status::Fails), count(Status::NotJudged));
        let verb = |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
        let others =
            [(fails, verb(fails, "fails", "fail")), (not_judged, verb(not_judged, "is not judged", "are not judged"))];
        let others: Vec<String> = others.into_iter().filter(|(count, _)| *count > 0).map(|(_, told)| told).collect();
        let ending = if others.is_empty() { String::new() } else { format!(": {}", others.join(", ")) };
        format!("{held} of {} checks {}{ending}", self.checks.len(), if held == 1 { "holds" } else { "hold" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(condition: &str, measured: Measured) -> Check {
        let condition = Condition::parse(condition).unwrap();
        Check::of_budget(Metric::named(&condition.name).unwrap(), &condition, measured)
    }

    #[test]
    fn a_budget_holds_fails_or_is_not_judged() {
        let fits = judged("step_p50 < 210ms", Measured::Whole(209_999_999));
        let exact = judged("step_p50 < 210ms", Measured::Whole(210_000_000));
        let unknown = judged("idle_ratio<10%", Measured::Unknown("no device".into()));
        assert_eq!([fits.status, exact.status, unknown.status], [Status::Holds, Status::Fails, Status::NotJudged]);
        assert_eq!((exact.says.as_str(), unknown.says.as_str()), ("210 ms", "no device"));
        let outcome = Outcome::new(
            RunIdentity::of(&stepscope_engine::Trace::default()),
            vec![fits.clone(), exact, unknown],
            Vec::new(),
        );
        assert_eq!(
            (outcome.holds, outcome.sentence().as_str()),
            (false, "1 of 3 checks holds: 1 fails, 1 is not judged")
        );
        let json: serde_json::Value = serde_json::from_str(&outcome.to_json()).unwrap();
        assert_eq!(json["checks"][1]["measured"], 210_000_000);
        assert_eq!(json["checks"][1]["status"], "fails");
        assert_eq!(json["checks"][2]["measured"], serde_json::Value::Null);
        let one = Outcome::new(outcome.run.clone(), vec![fits.clone()], Vec::new());
        assert_eq!(one.sentence(), "the check holds");
        let all = Outcome::new(outcome.run.clone(), vec![fits.clone(), fits], Vec::new());
        assert_eq!((all.holds, all.sentence().as_str()), (true, "2 of 2 checks hold"));
    }
}
