//! One answer in full: all that `advice` has of it, and the first rows of the analysis that it rests on.

use crate::failure::Failure;
use crate::pages::{Asked, Page};
use serde::Serialize;
use stepscope_engine::report::{ReportCoverage, report};
use stepscope_engine::{Envelope, OneRow, OpenedRun, Selection, Table, Values, find_analysis};

/// What is asked for to learn which rules were not judged.
pub(crate) const NOT_JUDGED: &str = "not_judged";
/// Rows of evidence.
const ROWS: usize = 5;
/// Other ids that are told.
const OTHERS: usize = 10;

/// An answer.
#[derive(Serialize)]
struct Explanation<'a> {
    answer: OneRow<'a>,
    /// Answers of the same rule for other ranks, devices or operators; the first [`OTHERS`] by their ids.
    same_rule_total: usize,
    same_rule: Vec<&'a str>,
    evidence: Option<Evidence>,
}

/// The first rows of the analysis that has the numbers, of the rank that the answer is about.
#[derive(Serialize)]
struct Evidence {
    rank: Option<u32>,
    #[serde(flatten)]
    page: Page,
}

/// What the answers rest on.
#[derive(Serialize)]
struct Judged<'a> {
    coverage: &'a ReportCoverage,
}

/// The answer called `id`, as JSON.
///
/// # Errors
/// When there is no such answer, or events that are needed cannot be read.
pub(crate) fn explain(run: &OpenedRun, id: &str) -> Result<String, Failure> {
    let all = Selection::default();
    if id == NOT_JUDGED {
        return Ok(to_json(&Judged { coverage: &report(run, &all, "")?.coverage }));
    }
    let advice = run.analyze(find_analysis("advice")?, &all)?;
    let table = &advice.results;
    let row = (0..table.len()).find(|row| text(table, "id", *row) == Some(id));
    let row = row.ok_or_else(|| unknown(&advice, id))?;
    let is_alike = |other: &usize| *other != row && text(table, "rule", *other) == text(table, "rule", row);
    let others: Vec<&str> = (0..table.len()).filter(is_alike).filter_map(|row| text(table, "id", row)).collect();
    Ok(to_json(&Explanation {
        answer: OneRow { table, row },
        same_rule_total: others.len(),
        same_rule: others.into_iter().take(OTHERS).collect(),
        evidence: text(table, "evidence", row).map(|name| evidence(run, name, rank(table, row))).transpose()?,
    }))
}

fn evidence(run: &OpenedRun, name: &str, rank: Option<u32>) -> Result<Evidence, Failure> {
    let selection = Selection { ranks: rank.into(), ..Selection::default() };
    let page = Page::of(run, name, &Asked { selection, limit: Some(ROWS), ..Asked::default() })?;
    Ok(Evidence { rank, page })
}

fn to_json(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("an answer holds only what JSON can say")
}

fn rank(table: &Table, row: usize) -> Option<u32> {
    match &table.column("rank")?.values {
        Values::Int(values) => values[row].and_then(|rank| u32::try_from(rank).ok()),
        _ => None,
    }
}

fn text<'a>(table: &'a Table, name: &str, row: usize) -> Option<&'a str> {
    match &table.column(name)?.values {
        Values::Text(values) => values[row].as_deref(),
        _ => None,
    }
}

fn unknown(advice: &Envelope, id: &str) -> Failure {
    let table = &advice.results;
    let mut ids: Vec<&str> = (0..table.len()).filter_map(|row| text(table, "id", row)).collect();
    let rule = |id: &str| id.split('@').next().unwrap_or_default().to_string();
    // Those of the same rule first.
    ids.sort_by_key(|known| rule(known) != rule(id));
    let hint = match ids.as_slice() {
        [] => "there is no advice on this run; not_judged tells what was not judged".to_string(),
        ids => {
            let more = if ids.len() > OTHERS {
                format!(", and {} more in table advice", ids.len() - OTHERS)
            } else {
                String::new()
            };
            format!("its ids are {}{more}", ids[..ids.len().min(OTHERS)].join(", "))
        }
    };
    Failure::new(format!("there is no answer called {id:?}")).at(&advice.run.name).hint(hint)
}
