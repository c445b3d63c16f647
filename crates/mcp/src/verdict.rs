//! A run in 2 KB: what it is, the first answers, what was not judged, and what is doubtful.

use crate::cut::{cut, cut_name};
use crate::doubts::Doubts;
use crate::explain::NOT_JUDGED;
use crate::failure::Failure;
use serde::Serialize;
use stepscope_engine::report::{AdviceRow, Report, report};
use stepscope_engine::{OpenedRun, Selection};

/// Bytes of a verdict at most.
pub(crate) const MAX_BYTES: usize = 2_048;

/// How much is told: number of answers, of sentences, and bytes of a text. The first that fits is taken.
const LEVELS: [(usize, usize, usize); 9] = [
    (5, 4, 400),
    (5, 4, 250),
    (4, 4, 250),
    (3, 4, 250),
    (3, 3, 180),
    (2, 3, 180),
    (2, 2, 140),
    (1, 2, 140),
    (1, 1, 40),
];
/// Where texts are shorter, no diff is told.
const BYTES_WITH_DIFF: usize = 140;
/// Bytes of a name.
const NAME_BYTES: usize = 80;

#[derive(Serialize)]
struct Verdict {
    run: RunRow,
    /// What stands out, in sentences: the first answer, or that the run is healthy, comes first.
    says: Vec<String>,
    answers: Vec<Answer>,
    /// All answers that there are; `explain` and the table `advice` have the rest.
    answers_total: usize,
    coverage: CoverageRow,
    findings: Doubts,
}

#[derive(Serialize)]
struct RunRow {
    name: String,
    ranks: usize,
    steps: usize,
    step_mean_ns: Option<i64>,
    /// How the limits of steps are known.
    step_source: Option<&'static str>,
}

#[derive(Serialize)]
struct Answer {
    id: String,
    rule: &'static str,
    fault: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slice: Option<String>,
    gain_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own_gain_ns: Option<i64>,
    /// 0 of an upper bound.
    gain_low_ns: Option<i64>,
    /// Null of a lower bound.
    gain_high_ns: Option<i64>,
    gain_ratio: Option<f64>,
    gain_estimate: Option<&'static str>,
    says: String,
    to_do: String,
    /// Of the first answer alone; `explain` has those of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<&'static str>,
    disproof: String,
    evidence: &'static str,
    /// Rows of the same rule for other ranks and devices, with less to gain.
    #[serde(skip_serializing_if = "is_none")]
    others: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct CoverageRow {
    rules_judged: usize,
    rules_not_judged: usize,
    /// What most of them lack.
    #[serde(skip_serializing_if = "Option::is_none")]
    most_lack: Option<String>,
    /// The id under which `explain` has all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_ns_linked_ratio: Option<f64>,
}

/// The verdict on `run` as JSON of at most [`MAX_BYTES`].
///
/// # Errors
/// When events that are needed cannot be read.
pub(crate) fn verdict(run: &OpenedRun) -> Result<String, Failure> {
    Ok(in_short(&report(run, &Selection::default(), "")?))
}

/// What of `report` fits.
pub(crate) fn in_short(report: &Report) -> String {
    let texts = LEVELS.iter().map(|level| {
        let verdict = Verdict::of(report, *level);
        serde_json::to_string(&verdict).expect("a verdict holds only what JSON can say")
    });
    let mut shortest = String::new();
    for text in texts {
        shortest = text;
        if shortest.len() <= MAX_BYTES {
            break;
        }
    }
    shortest
}

impl Verdict {
    fn of(report: &Report, (answers, sentences, bytes): (usize, usize, usize)) -> Self {
        let steps = report.steps.as_ref();
        let coverage = &report.coverage;
        let not_judged = coverage.not_judged.first();
        Self {
            run: RunRow {
                name: cut_name(&report.run.name, NAME_BYTES.min(bytes)),
                ranks: report.run.ranks.len(),
                steps: steps.filter(|steps| steps.source != "whole").map_or(0, |steps| steps.count),
                step_mean_ns: steps.map(|steps| steps.mean_ns),
                step_source: steps.map(|steps| steps.source),
            },
            says: report.verdict.iter().take(sentences).map(|sentence| cut(sentence, bytes)).collect(),
            answers: answers_of(&report.advice[..answers.min(report.advice.len())], bytes),
            answers_total: report.advice.iter().map(|row| row.others + 1).sum(),
            coverage: CoverageRow {
                rules_judged: coverage.rules_judged,
                rules_not_judged: coverage.rules_not_judged,
                most_lack: not_judged.map(|reason| cut(&reason.lacks, bytes)),
                explain: not_judged.map(|_| NOT_JUDGED),
                device_ns_linked_ratio: coverage.device_ns_linked_ratio,
            },
            findings: Doubts::of(&report.findings),
        }
    }
}

/// Answers in short; the first with its diff, of which a part would be of no use.
fn answers_of(rows: &[AdviceRow], bytes: usize) -> Vec<Answer> {
    let mut answers: Vec<Answer> = rows.iter().map(|row| Answer::of(row, bytes)).collect();
    if let (Some(answer), Some(row)) = (answers.first_mut(), rows.first()) {
        answer.diff = row.diff.filter(|_| bytes >= BYTES_WITH_DIFF);
    }
    answers
}

impl Answer {
    fn of(row: &AdviceRow, bytes: usize) -> Self {
        let name = |name: &Option<String>| name.as_ref().map(|name| cut_name(name, NAME_BYTES.min(bytes)));
        Self {
            id: row.id.clone(),
            rule: row.rule,
            fault: row.fault,
            rank: row.rank,
            device: row.device,
            line: name(&row.line),
            slice: name(&row.slice),
            gain_ns: row.gain_ns,
            own_gain_ns: row.own_gain_ns.filter(|own_ns| Some(*own_ns) != row.gain_ns),
            gain_low_ns: row.gain_low_ns,
            gain_high_ns: row.gain_high_ns,
            gain_ratio: row.gain_ratio,
            gain_estimate: row.gain_estimate,
            says: cut(&row.says, bytes),
            to_do: cut(row.to_do, bytes),
            diff: None,
            disproof: cut(row.disproof, bytes),
            evidence: row.evidence,
            others: row.others,
        }
    }
}
