//! Search among the names of all slices.

use super::{Asked, OF_RANK, limit, look_up};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use crate::routes::Answer;
use crate::shown::Shown;
use axum::extract::{Path, RawQuery, State};
use serde_json::json;
use std::sync::Arc;
use stepscope_timeline::{SearchPlace, Timeline};
use stepscope_trace::SliceId;

/// `api/runs/RUN/search`.
pub(super) async fn search(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["q", "limit", OF_RANK])?;
    let (text, limit) = (query.needed_text("q")?.to_string(), limit(&query)?);
    let of = Asked::of(&run, &query)?;
    of.shown(&state).await?.1.search().await?;
    let look = move |shown: &Shown, timeline: &Timeline| {
        let index = shown.search_if_ready().ok_or_else(|| Failure::internal("the search is gone"))?;
        Ok(timeline.search(&shown.trace, index, &text, limit))
    };
    look_up(&state, of, look).await
}

/// `api/runs/RUN/search/next`.
pub(super) async fn next(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["q", "after_ns", "before_ns", "slice", OF_RANK])?;
    let text = query.needed_text("q")?.to_string();
    let slice = query.number("slice")?.map(SliceId);
    let place = match (query.number("after_ns")?, query.number("before_ns")?, slice) {
        (Some(_), None, Some(slice)) => SearchPlace::AfterSlice(slice),
        (Some(at_ns), None, None) => SearchPlace::From(at_ns),
        (None, Some(_), Some(slice)) => SearchPlace::BeforeSlice(slice),
        (None, Some(at_ns), None) => SearchPlace::Before(at_ns),
        _ => return Err(Failure::bad_request("one of after_ns and before_ns says where to go on")),
    };
    let of = Asked::of(&run, &query)?;
    of.shown(&state).await?.1.search().await?;
    let look = move |shown: &Shown, timeline: &Timeline| {
        let index = shown.search_if_ready().ok_or_else(|| Failure::internal("the search is gone"))?;
        let found = index.next(&shown.trace, &text, place);
        let hit = found.slice.map(|slice| timeline.summary(&shown.trace, slice));
        Ok(json!({ "hit": hit, "position": found.position, "slices": found.slices }))
    };
    look_up(&state, of, look).await
}
