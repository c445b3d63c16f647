//! Two runs: the sentence on steps, where their difference comes from, and what changed most of a step.

use crate::cut::cut_name;
use crate::failure::Failure;
use crate::pages::{Asked, MAX_TEXT_BYTES, Page};
use serde::Serialize;
use stepscope_engine::{
    Compared, DifferenceLine, Envelope, OpenedRun, Rows, Selection, Values, compare, difference_lines, largest_changes,
};

/// Rows of each kind unless another number is asked for.
const ROWS: usize = 5;

/// What changed.
#[derive(Serialize)]
struct Comparison<'a> {
    a: &'a str,
    b: &'a str,
    /// On steps: the difference, its limits, and whether it may be chance.
    says: Vec<&'a str>,
    steps: Rows<'a>,
    /// Null where one of the runs has no steps.
    difference: Option<Difference>,
    /// Null where nothing changed, or neither run has any.
    operators: Option<Changes>,
    kernels: Option<Changes>,
    modules: Option<Changes>,
}

/// The mean step as a sum. Rows that are no parts sum to the step, and parts to the row before them that is none.
#[derive(Serialize)]
struct Difference {
    before_ns: i64,
    now_ns: i64,
    change_ns: i64,
    rows: Vec<DifferenceLine>,
}

/// What changed most, of one kind.
#[derive(Serialize)]
struct Changes {
    /// What `before_ns`, `now_ns` and `change_ns` are of, for each step.
    measure: &'static str,
    #[serde(flatten)]
    page: Page,
}

/// What changed from `a` to `b`, as JSON.
///
/// # Errors
/// When events that are needed cannot be read.
pub(crate) fn comparison(a: &OpenedRun, b: &OpenedRun, limit: Option<usize>) -> Result<String, Failure> {
    let all = Selection::default();
    let side_by_side = |what| compare((a, &all), (b, &all), what);
    let changes = |what| changes(side_by_side(what)?, limit);
    let steps = side_by_side(Compared::Steps)?;
    let result = Comparison {
        a: &a.trace().name,
        b: &b.trace().name,
        says: sentences(&steps),
        steps: Rows(&steps.results),
        difference: difference(side_by_side(Compared::StepBreakdown)?),
        operators: changes(Compared::Operators)?,
        kernels: changes(Compared::Kernels)?,
        modules: changes(Compared::Modules)?,
    };
    Ok(serde_json::to_string(&result).expect("a comparison holds only what JSON can say"))
}

fn difference(breakdown: Envelope) -> Option<Difference> {
    let mut rows = difference_lines(&breakdown.results);
    let step = rows.pop()?;
    rows.iter_mut().for_each(|row| row.name = cut_name(&row.name, MAX_TEXT_BYTES));
    Some(Difference { before_ns: step.before_ns, now_ns: step.now_ns, change_ns: step.change_ns, rows })
}

fn sentences(steps: &Envelope) -> Vec<&str> {
    match steps.results.column("says").map(|column| &column.values) {
        Some(Values::Text(says)) => says.iter().flatten().map(AsRef::as_ref).collect(),
        _ => Vec::new(),
    }
}

fn changes(mut envelope: Envelope, limit: Option<usize>) -> Result<Option<Changes>, Failure> {
    let Some((measure, table)) = largest_changes(&envelope.results) else { return Ok(None) };
    envelope.results = table;
    let page = Page::of_result(envelope, &Asked { limit: limit.or(Some(ROWS)), ..Asked::default() })?;
    Ok(Some(Changes { measure, page }))
}
