//! The collective that a slice belongs to, on all ranks.

use super::slices::shown_with;
use super::{Asked, OF_RANK};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use crate::routes::{Answer, json, json_text};
use axum::extract::{Path, RawQuery, State};
use serde::Serialize;
use std::sync::Arc;
use stepscope_engine::{Part, last_to_come};
use stepscope_timeline::SliceSummary;

/// A collective, or what goes from one rank to another.
#[derive(Serialize)]
struct Together {
    /// By rank; empty for a slice of nothing that ranks do together.
    parts: Vec<OfRank>,
    /// The rank that came last.
    last: Option<u32>,
}

/// One rank's part.
#[derive(Serialize)]
struct OfRank {
    rank: u32,
    /// When it begins to be carried out, and for how long it is: that is not known where it has not ended.
    start_ns: i64,
    dur_ns: i64,
    is_unfinished: bool,
    /// What carries it out first.
    slice: SliceSummary,
    /// What asks for it, where that is another slice.
    asked_by: Option<SliceSummary>,
}

/// `api/runs/RUN/slices/ID/joined`. It waits for no tile: what all slices are looked up in is made when the first one is.
pub(super) async fn joined(
    State(state): State<Arc<AppState>>,
    Path((run, slice)): Path<(String, String)>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &[OF_RANK])?;
    let (shown, slice) = shown_with(&state, Asked::of(&run, &query)?, &slice).await?;
    shown.timeline().await?;
    let look = move || {
        let trace = &*shown.trace;
        let parts = shown.joined().of_slice(trace, slice);
        let timeline = shown.timeline_if_ready()?;
        let of_rank = |part: &Part| OfRank {
            rank: part.rank,
            start_ns: part.start_ns,
            dur_ns: part.dur_ns,
            is_unfinished: part.is_unfinished,
            slice: timeline.summary(trace, part.carried_by),
            asked_by: (part.asked_by != part.carried_by).then(|| timeline.summary(trace, part.asked_by)),
        };
        Some(json_text(&Together { parts: parts.iter().map(of_rank).collect(), last: last_to_come(parts) }))
    };
    let found = state.pool.long(look).await?;
    found.map(json).ok_or_else(|| Failure::internal("the timeline is gone"))
}
