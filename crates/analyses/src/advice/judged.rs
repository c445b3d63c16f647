//! Which rules hold: all of them judge, time gets one owner, and the rows are put into order.

use super::facts::{self, Facts};
use super::host_lines::TOO_FEW_SAMPLES;
use super::rules::RULES;
use super::{Advice, Lacks, Priority, RuleCode, lines, owners, ranks};
use crate::context::Shared;
use crate::{AnalysisContext, Selection};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
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

    /// Those of several ranks together. A rule that can be judged of one of them is judged, but where one had too few
    /// samples and no other has a row.
    pub(crate) fn joined(of_ranks: impl Iterator<Item = Self>) -> Self {
        let of_ranks: Vec<Self> = of_ranks.collect();
        let with_rows: BTreeSet<RuleCode> = of_ranks.iter().flat_map(|of| &of.rows).map(|row| row.rule).collect();
        let mut known = BTreeSet::new();
        let mut not_judged = Vec::new();
        for NotJudged { rule, .. } in of_ranks.iter().flat_map(|of| &of.not_judged) {
            if !known.insert(*rule) {
                continue;
            }
            let of_rule = |of: &'_ Self| of.not_judged.iter().find(|lacking| lacking.rule == *rule).cloned();
            let lacking: Vec<NotJudged> = of_ranks.iter().filter_map(of_rule).collect();
            let is_nowhere_judged = lacking.len() == of_ranks.len();
            let few =
                lacking.iter().find(|lacking| lacking.lacks == TOO_FEW_SAMPLES && !with_rows.contains(rule)).cloned();
            not_judged.extend(few.or_else(|| lacking.into_iter().next().filter(|_| is_nowhere_judged)));
        }
        Self { rows: of_ranks.into_iter().flat_map(|of| of.rows).collect(), not_judged }.in_order()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_a_rank_has_too_few_samples_for_is_not_judged_of_several() {
        let of_rank = |lacks: &[(&'static str, &str)], rows: &[&'static str]| AllAdvice {
            rows: rows.iter().map(|rule| Advice { rule: RuleCode(rule), ..Advice::default() }).collect(),
            not_judged: lacks
                .iter()
                .map(|(rule, lacks)| NotJudged { rule: RuleCode(rule), lacks: (*lacks).to_string() })
                .collect(),
        };
        let joined = |ranks: [AllAdvice; 3]| {
            let all = AllAdvice::joined(ranks.into_iter());
            all.not_judged.into_iter().map(|lacking| format!("{}: {}", lacking.rule.as_str(), lacking.lacks)).collect()
        };
        let (none, few) =
            (|| of_rank(&[], &[]), || of_rank(&[("host.gc", "steps"), ("host.python", TOO_FEW_SAMPLES)], &[]));
        let lines: Vec<String> = joined([few(), none(), none()]);
        assert_eq!(lines, [format!("host.python: {TOO_FEW_SAMPLES}")], "one rank judges the other rule");
        let lines: Vec<String> = joined([none(), few(), of_rank(&[], &["host.python"])]);
        assert_eq!(lines, Vec::<String>::new(), "another rank has a row");
        let lines: Vec<String> =
            joined([of_rank(&[("host.python", "samples"), ("host.gc", "steps")], &[]), few(), few()]);
        assert_eq!(lines, [format!("host.python: {TOO_FEW_SAMPLES}"), "host.gc: steps".to_string()]);
    }
}
