//! Which steps a run has: in short for every page, and those of a rank or with a number for the pages that draw them.
//! All of them are never sent at once: 1,024 ranks with 500 steps each have half a million.

use super::{Answer, json, json_text};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use axum::extract::{Path, RawQuery, State};
use serde_json::{Value, json};
use std::sync::Arc;
use stepscope_trace::Step;

/// `api/runs/RUN/steps`.
pub(super) async fn steps(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["rank", "step"])?;
    let selection = query.selection()?;
    if selection.ranks.are_all() && selection.step.is_none() {
        let failure = Failure::bad_request("the parameters \"rank\" and \"step\" are missing");
        return Err(failure.hint("name one of them: the steps of all ranks do not fit into one answer"));
    }
    let (_, loaded) = state.runs.loaded(&run)?;
    let list = move || json_text(&selection.steps(loaded.trace()).map(step).collect::<Vec<_>>());
    Ok(json(state.pool.quick(list).await?))
}

/// How many there are, the first rank that has any, and the numbers that are there on any rank.
pub(super) fn summary(steps: &[Step]) -> Value {
    json!({
        "count": steps.len(),
        "first_rank": steps.first().map(|step| step.rank),
        "numbers": ranges(steps.iter().map(|step| step.number)),
    })
}

/// Distinct numbers as ranges of those that follow each other, both ends included.
fn ranges(numbers: impl Iterator<Item = i64>) -> Vec<[i64; 2]> {
    // Steps come in their order: nearly every number is the one after the last, or in the range of another rank.
    let mut known: Vec<[i64; 2]> = Vec::new();
    for number in numbers {
        match known.last_mut() {
            Some([first, last]) if (*first..=*last).contains(&number) => {}
            Some([_, last]) if last.checked_add(1) == Some(number) => *last = number,
            _ => known.push([number, number]),
        }
    }
    known.sort_unstable();
    let mut joined: Vec<[i64; 2]> = Vec::new();
    for [first, last] in known {
        match joined.last_mut() {
            Some([_, end]) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => joined.push([first, last]),
        }
    }
    joined
}

fn step(step: &Step) -> Value {
    json!({
        "rank": step.rank,
        "number": step.number,
        "start_ns": step.span.start_ns,
        "end_ns": step.span.end_ns,
        "source": step.source.as_str(),
        "is_complete": step.is_complete,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn check(numbers: &[i64], expected: &[[i64; 2]]) {
        assert_eq!(ranges(numbers.iter().copied()), expected, "{numbers:?}");
        let distinct: BTreeSet<i64> = numbers.iter().copied().collect();
        let found: Vec<i64> = expected.iter().flat_map(|[first, last]| *first..=*last).collect();
        assert_eq!(found, distinct.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn numbers_that_follow_each_other_are_one_range() {
        check(&[], &[]);
        check(&[3, 4, 5, 3, 4, 5], &[[3, 5]]);
        check(&[0, 1, 4, 5, 0, 1, 2, 3], &[[0, 5]]);
        check(&[7, 3, 5, 9, 5], &[[3, 3], [5, 5], [7, 7], [9, 9]]);
        check(&[-1, 0, 2, 1, 8], &[[-1, 2], [8, 8]]);
        assert_eq!(ranges([i64::MAX, i64::MAX - 1].into_iter()), [[i64::MAX - 1, i64::MAX]]);
    }
}
