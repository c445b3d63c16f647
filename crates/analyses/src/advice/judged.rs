//! Which rules hold: all of them judge, time gets one owner, and the rows are put into order.

use super::facts::{self, Facts};
use super::rules::RULES;
use super::{Advice, Lacks, Priority, RuleCode, lines, owners, ranks};
use crate::context::Shared;
use crate::{AnalysisContext, Selection};
use serde::{Deserialize, Serialize};
use stepscope_trace::{FindingCode, Findings};

/// The rows, and the rules that cannot be judged, of rules that judge each rank by itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AllAdvice {
    pub(crate) rows: Vec<Advice>,
    pub(super) not_judged: Vec<NotJudged>,
}

/// A rule that cannot be judged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct NotJudged {
    pub(super) rule: RuleCode,
    /// What the input lacks.
    pub(super) lacks: String,
}

impl Shared for AllAdvice {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        // Rules judge by each analysis' own definition.
        let plain =
            Selection { ranks: context.selection.ranks.clone(), step: context.selection.step, ..Selection::default() };
        match *context.selection == plain {
            true => judged(context),
            false => judged(&AnalysisContext::new(context.trace, &plain)),
        }
    }
}

fn judged(context: &AnalysisContext<'_>) -> AllAdvice {
    match facts::judged_steps(context) {
        Some(steps) => judged_by(&Facts::new(context, &AnalysisContext::new(context.trace, &steps))),
        None => judged_by(&Facts::new(context, context)),
    }
}

fn judged_by(facts: &Facts<'_>) -> AllAdvice {
    let mut all = AllAdvice::default();
    for rule in RULES {
        match (rule.judge)(facts) {
            Ok(found) => all.rows.extend(found.into_iter().map(|row| finished(rule.code, row))),
            Err(lacks) => all.add_not_judged(rule.code, lacks),
        }
    }
    all.rows = all.rows.into_iter().map(|row| lines::with_line(facts, row)).collect();
    AllAdvice { rows: owners::with_one_owner(all.rows), ..all }.in_order()
}

impl AllAdvice {
    pub(super) fn add_not_judged(&mut self, code: &'static str, Lacks(what): Lacks) {
        self.not_judged.push(NotJudged { rule: RuleCode(code), lacks: what.into() });
    }

    pub(super) fn in_order(mut self) -> Self {
        self.rows.sort_by(|a, b| {
            let order = |row: &Advice| {
                // Nothing else matters to a job that does not go on.
                let hangs = row.rule.as_str() == ranks::HANGS;
                let gain_ns = row.own_gain_ns.or(row.gain_ns());
                (!hangs, std::cmp::Reverse(gain_ns), row.priority, row.rank, row.device, row.rule)
            };
            order(a).cmp(&order(b)).then_with(|| a.says.cmp(&b.says))
        });
        self
    }

    /// Those of several ranks together. A rule that can be judged of one of them is judged.
    pub(crate) fn joined(of_ranks: impl Iterator<Item = Self>) -> Self {
        let joined = of_ranks.reduce(|mut all, other| {
            all.rows.extend(other.rows);
            all.not_judged.retain(|rule| other.not_judged.iter().any(|of_other| of_other.rule == rule.rule));
            all
        });
        joined.unwrap_or_default().in_order()
    }

    /// Whether all of it is of rules that there are.
    pub(crate) fn is_known(&self) -> bool {
        let mut codes = self.rows.iter().map(|row| row.rule).chain(self.not_judged.iter().map(|rule| rule.rule));
        codes.all(|code| code.rule().is_some())
    }

    pub(super) fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        for NotJudged { rule, lacks } in &self.not_judged {
            findings.add(FindingCode::RuleNotJudged, || format!("{}: {lacks}", rule.as_str()));
        }
        findings
    }
}

pub(super) fn finished(code: &'static str, row: Advice) -> Advice {
    if let (Some(gain_ns), Some(window_ns)) = (row.gain_ns(), row.window_ns) {
        assert!((0..=window_ns).contains(&gain_ns), "{code} gains {gain_ns} of {window_ns} ns");
    }
    let priority = row.gain_ratio().map_or(row.priority, Priority::of_gain);
    Advice { rule: RuleCode(code), priority, ..row }
}
