//! What a report rests on: which rules of `advice` were judged, and which the input says nothing of.

use super::{AdviceRow, Breakdown, StepSummary};
use crate::AnalysisContext;
use serde::Serialize;
use stepscope_analyses::advice;

/// What a report rests on.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ReportCoverage {
    /// The share of device time whose launch is known; none without device time.
    pub device_ns_linked_ratio: Option<f64>,
    /// Number of rules of `advice` that were judged.
    pub rules_judged: usize,
    /// Number of rules that were not.
    pub rules_not_judged: usize,
    /// Why not, what most rules lack first.
    pub not_judged: Vec<NotJudged>,
}

/// What the input lacks, and which rules need it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NotJudged {
    /// What the input lacks.
    pub lacks: String,
    /// The codes of the rules.
    pub rules: Vec<&'static str>,
}

impl ReportCoverage {
    pub(super) fn of(context: &AnalysisContext<'_>) -> Self {
        let judged = advice::rules_judged(context);
        let mut not_judged: Vec<NotJudged> = Vec::new();
        for (rule, lacks) in &judged.not_judged {
            match not_judged.iter_mut().find(|other| other.lacks == *lacks) {
                Some(known) => known.rules.push(rule),
                None => not_judged.push(NotJudged { lacks: lacks.clone(), rules: vec![rule] }),
            }
        }
        not_judged.sort_by_key(|reason| std::cmp::Reverse(reason.rules.len()));
        Self {
            device_ns_linked_ratio: context.coverage().device_ns_linked_ratio,
            rules_judged: judged.rules,
            rules_not_judged: judged.not_judged.len(),
            not_judged,
        }
    }

    /// How many rules were not judged, and what most of them lack; none where all were.
    pub fn sentence(&self) -> Option<String> {
        let reason = |reason: &NotJudged| format!("{} ({})", reason.lacks, reason.rules.len());
        let shown: Vec<String> = self.not_judged.iter().take(REASONS_SAID).map(reason).collect();
        let more = match self.not_judged.len().saturating_sub(REASONS_SAID) {
            0 => String::new(),
            1 => "; and one reason more".into(),
            more => format!("; and {more} reasons more"),
        };
        let (others, all) = (self.rules_not_judged, self.rules_judged + self.rules_not_judged);
        (others > 0).then(|| format!("{others} of {all} rules were not judged: {}{more}.", shown.join("; ")))
    }

    /// What the rule lacks that names what runs outside of operators, where much of the steps passes there.
    pub(super) fn leaves_unnamed(&self, breakdown: Option<&Breakdown>) -> Option<&str> {
        breakdown.filter(|breakdown| breakdown.ratio_of("other") >= WORTH_A_CHANGE)?;
        let lacks = self.not_judged.iter().find(|reason| reason.rules.contains(&RULE_OF_OTHER))?;
        Some(&lacks.lacks)
    }

    /// That there is nothing to gain worth a change, and what says so; none where there is, or where that is not known.
    pub(super) fn healthy(
        &self,
        advice: &[AdviceRow],
        steps: Option<&StepSummary>,
        breakdown: Option<&Breakdown>,
    ) -> Option<String> {
        let steps = steps.filter(|steps| steps.source != "whole").map_or(0, StepSummary::averaged_count);
        let is_worth_a_change =
            |row: &AdviceRow| row.gain_ratio.map_or(row.priority != "low", |ratio| ratio >= WORTH_A_CHANGE);
        // What nobody has looked at may be all that there is to gain.
        let is_unnamed = self.leaves_unnamed(breakdown).is_some();
        if self.rules_judged == 0 || steps < LEAST_STEPS || is_unnamed || advice.iter().any(is_worth_a_change) {
            return None;
        }
        let judged = self.rules_judged;
        let by = match self.rules_not_judged {
            0 => format!("all {judged} rules"),
            others => {
                let rules = judged + others;
                format!("the {judged} of {rules} rules that could be judged")
            }
        };
        // What happens once is no habit, and may still be most of the time.
        let once = advice.iter().find(|row| row.rule == RULE_OF_ONCE);
        Some(once.map_or_else(
            || format!("Nothing above 4 % to gain, by {by}."),
            |once| format!("Nothing above 4 % to gain that happens more than once, by {by}. {}", once.says),
        ))
    }
}

/// What is to gain below this share differs by chance from step to step.
pub(super) const WORTH_A_CHANGE: f64 = 0.04;
/// The rule that says what runs outside of operators.
const RULE_OF_OTHER: &str = "host.python";
/// The rule that says what was long once.
const RULE_OF_ONCE: &str = "step.once";
/// Reasons that a sentence says.
const REASONS_SAID: usize = 3;
/// Of fewer steps nobody knows whether they are healthy.
const LEAST_STEPS: usize = 5;

#[cfg(test)]
mod tests {
    use super::super::{Report, report};
    use crate::{OpenedRun, Selection};
    use stepscope_trace::drawn::drawn;

    /// Each cell is a thousand times as long.
    fn report_of(rows: &[(&str, &str)]) -> Report {
        let long = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(1_000)).collect::<String>();
        let drawing: Vec<String> = rows.iter().map(|(name, cells)| format!("rank 0 {name} {}", long(cells))).collect();
        report(&OpenedRun::of(drawn(&drawing.join("\n"))), &Selection::default(), "RUN").unwrap()
    }

    /// A device that never waits.
    const BUSY: [(&str, &str); 2] = [("step", "0011223344"), ("stream 7", "CCCCCCCCCC")];

    #[test]
    fn what_was_not_judged_is_told_with_what_is_missing() {
        let coverage = report_of(&BUSY).coverage;
        assert!(coverage.rules_judged > 0, "{coverage:?}");
        let counts: Vec<usize> = coverage.not_judged.iter().map(|reason| reason.rules.len()).collect();
        assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
        assert_eq!(counts.iter().sum::<usize>(), coverage.rules_not_judged);
        let all = coverage.rules_judged + coverage.rules_not_judged;
        let begins = format!(
            "{} of {all} rules were not judged: {} ({}); ",
            coverage.rules_not_judged, coverage.not_judged[0].lacks, counts[0]
        );
        let sentence = coverage.sentence().unwrap();
        assert!(sentence.starts_with(&begins) && sentence.ends_with(" reasons more."), "{sentence}");
        assert_eq!(super::ReportCoverage::default().sentence(), None);
    }

    #[test]
    fn a_run_without_a_fault_says_so_and_one_with_a_fault_does_not() {
        let healthy = report_of(&BUSY);
        let sentence = healthy.healthy.unwrap();
        let judged = healthy.coverage.rules_judged;
        assert!(sentence.starts_with(&format!("Nothing above 4 % to gain, by the {judged} of ")), "{sentence}");
        let few = report_of(&[("step", "00112233"), ("stream 7", "CCCCCCCC")]);
        assert_eq!(few.healthy, None, "of few steps nothing is said");
        let faulty = report_of(&[("step", "0011223344"), ("stream 7", "CNCNCNCNCN")]);
        assert!(!faulty.advice.is_empty() && faulty.healthy.is_none(), "{:?}", faulty.healthy);
    }

    #[test]
    fn a_run_whose_time_nobody_looked_at_is_not_called_healthy() {
        let of_cpu = |operators: &str| report_of(&[("step", "0011223344"), ("cpu 1", operators)]);
        assert!(of_cpu("aaaaaaaaaa").healthy.is_some());
        let unnamed = of_cpu("a.a.a.a.a.");
        assert!(unnamed.coverage.not_judged.iter().any(|reason| reason.rules.contains(&"host.python")));
        assert!(
            unnamed
                .verdict
                .iter()
                .any(|sentence| sentence.starts_with("Nothing names what runs outside of operators, with no"))
        );
        assert_eq!((unnamed.advice, unnamed.healthy), (Vec::new(), None));
    }

    #[test]
    fn a_run_of_too_few_samples_is_not_called_healthy() {
        let sampled = |samples: &str| {
            report_of(&[("step", "00112233445566778899"), ("cpu 1", "aaaaaaaaaa.........."), ("samples 1", samples)])
        };
        let few = sampled("..........f.f.f.....");
        assert_eq!((few.advice.len(), few.healthy), (0, None));
        let says =
            "Nothing names what runs outside of operators, with too few samples of Python's stacks: record more steps.";
        assert!(few.verdict.iter().any(|sentence| sentence == says), "{:?}", few.verdict);
        let enough = sampled("..........f|f|f|f|f|f|f|f|f|f");
        assert_eq!(enough.advice[0].rule, "host.python", "{:?}", enough.verdict);
    }

    #[test]
    fn a_fault_whose_cost_nobody_knows_is_the_answer_where_there_is_no_other() {
        let mut report = report_of(&BUSY);
        report.healthy = None;
        report.advice = vec![super::AdviceRow { fault: "Anomaly mode is on", priority: "high", ..faulty() }];
        assert_eq!(super::super::verdict::verdict(&report)[0], "Anomaly mode is on.");
        report.advice[0].priority = "low";
        assert_ne!(super::super::verdict::verdict(&report)[0], "Anomaly mode is on.");
    }

    /// A row of which no gain is known.
    fn faulty() -> super::AdviceRow {
        let of_exposed = report_of(&[("step", "0011223344"), ("stream 7", "CNCNCNCNCN")]).advice.swap_remove(0);
        super::AdviceRow { gain_ns: None, gain_ratio: None, line: None, slice: None, rank: None, ..of_exposed }
    }

    #[test]
    fn a_run_with_one_long_event_is_not_simply_healthy() {
        let steps = "000111222333333333444555";
        let long = report_of(&[("step", steps), ("cpu 1", "aa.aa.aa.aabbbbbbbaa.aa.")]);
        // Where nothing names what runs outside of operators, no run is called healthy.
        let named = report_of(&[("step", steps), ("cpu 1", "aaaaaaaaaaabbbbbbbaaaaaa")]);
        assert_eq!(long.healthy, None);
        let sentence = named.healthy.unwrap();
        assert!(sentence.starts_with("Nothing above 4 % to gain that happens more than once, by the "), "{sentence}");
        let event = " Step 3 takes 9.00 ms, 6.00 ms longer than the median of the 4 others behind the first: 25.0 % of all \
                     steps. Most of it is in `b` (7.00 ms against 0 ns).";
        assert!(sentence.ends_with(event), "{sentence}");
        assert_eq!(named.verdict[0], sentence);
        let alike = report_of(&[("step", "000111222333444555"), ("cpu 1", "aaaaaaaaaaaaaaaaaa")]).healthy.unwrap();
        assert!(alike.starts_with("Nothing above 4 % to gain, by the ") && alike.ends_with(" judged."), "{alike}");
    }

    #[test]
    fn where_no_rule_was_judged_nothing_is_called_healthy() {
        let unknown = report_of(&[("step", "00001111")]);
        assert_eq!((unknown.coverage.rules_judged, unknown.healthy), (0, None));
    }
}
