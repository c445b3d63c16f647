//! What a rule of advice is.

use super::facts::Facts;
use super::rules::RULES;
use super::{Advice, ranks};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The stable code of a rule; the default is none's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct RuleCode(pub(super) &'static str);

impl RuleCode {
    /// The code.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    pub(super) fn rule(self) -> Option<Told> {
        Self::told(self.0)
    }

    pub(super) fn told(code: &str) -> Option<Told> {
        let of_each = RULES.iter().map(Rule::told);
        of_each.chain(ranks::RULES.iter().map(Rule::told)).find(|rule| rule.code == code)
    }
}

impl Serialize for RuleCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RuleCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Ok(Self::told(&code).map(|rule| Self(rule.code)).unwrap_or_default())
    }
}

/// Why a rule cannot be judged: what the input lacks.
pub(super) struct Lacks(pub(super) &'static str);

/// What a rule says; nothing when its condition does not hold.
pub(super) type Judged = Result<Vec<Advice>, Lacks>;

/// One rule, of each rank by itself or of all ranks together.
pub(super) struct Rule<Judge = fn(&Facts) -> Judged> {
    pub(super) code: &'static str,
    /// What is wrong, in a few words.
    pub(super) fault: &'static str,
    /// What would be seen if it were not so.
    pub(super) disproof: &'static str,
    /// The analysis that has its numbers.
    pub(super) evidence: &'static str,
    pub(super) to_do: &'static str,
    pub(super) judge: Judge,
}

/// What every rule tells of itself.
pub(super) struct Told {
    pub(super) code: &'static str,
    pub(super) fault: &'static str,
    pub(super) disproof: &'static str,
    pub(super) evidence: &'static str,
    pub(super) to_do: &'static str,
}

impl<Judge> Rule<Judge> {
    pub(super) fn told(&self) -> Told {
        let Self { code, fault, disproof, evidence, to_do, .. } = *self;
        Told { code, fault, disproof, evidence, to_do }
    }
}
