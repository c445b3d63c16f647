//! The timeline: its rows, what they show, search, sums, slices. What is asked is looked up in what was made when the
//! run was read, on threads that no analysis keeps busy.

mod joined;
mod search;
mod slices;
mod tiles;

use super::{Answer, json, json_text};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::loaded_run::LoadedRun;
use crate::query::Query;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::routing::get;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use stepscope_base::Span;
use stepscope_timeline::{Group, MAX_POINTS, RowId, SumBy, Timeline};

/// Rows that a request may name.
const MAX_ROWS: usize = 4_096;
/// Rows of an answer, unless said, and at most.
const LIMIT: usize = 100;
const MAX_LIMIT: usize = 10_000;
/// Points of a counter, unless said.
const POINTS: usize = 1_000;

/// What the timeline asks.
pub(super) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/runs/{run}/timeline", get(timeline))
        .route("/runs/{run}/tiles", get(tiles::tiles))
        .route("/runs/{run}/counters", get(counters))
        .route("/runs/{run}/search", get(search::search))
        .route("/runs/{run}/search/next", get(search::next))
        .route("/runs/{run}/sums", get(sums))
        .route("/runs/{run}/slices", get(slices::slices))
        .route("/runs/{run}/slices/{slice}", get(slices::slice))
        .route("/runs/{run}/slices/{slice}/joined", get(joined::joined))
        .route("/runs/{run}/slices/{slice}/source_text", get(slices::text))
}

/// What `look` finds in a run's timeline, as JSON.
async fn look_up<T: Serialize>(
    state: &AppState,
    run: &str,
    look: impl FnOnce(&LoadedRun, &Timeline) -> Result<T, Failure> + Send + 'static,
) -> Answer {
    look_up_text(state, run, move |loaded, timeline| look(loaded, timeline).map(|found| json_text(&found))).await
}

/// The JSON that `look` makes of a run's timeline.
async fn look_up_text(
    state: &AppState,
    run: &str,
    look: impl FnOnce(&LoadedRun, &Timeline) -> Result<String, Failure> + Send + 'static,
) -> Answer {
    let (_, loaded) = state.runs.loaded(run)?;
    loaded.timeline().await?;
    let found = move || {
        let timeline = loaded.timeline_if_ready().ok_or_else(|| Failure::internal("the timeline is gone"))?;
        look(&loaded, timeline)
    };
    state.pool.quick(found).await?.map(json)
}

/// The rows of a timeline. Written from what it has, since there are tens of thousands of rows where ranks are thousands.
#[derive(Serialize)]
struct AllRows<'a> {
    version: u64,
    span: Value,
    focus: Value,
    groups: &'a [Group],
}

/// `api/runs/RUN/timeline`.
async fn timeline(State(state): State<Arc<AppState>>, Path(run): Path<String>, RawQuery(raw): RawQuery) -> Answer {
    Query::parse(raw.as_deref(), &[])?;
    let span = |span: Span| json!({ "start_ns": span.start_ns, "end_ns": span.end_ns });
    let look = move |loaded: &LoadedRun, timeline: &Timeline| {
        let (whole, focus, groups) = (span(timeline.span()), span(timeline.focus()), timeline.groups());
        Ok(json_text(&AllRows { version: loaded.version, span: whole, focus, groups }))
    };
    look_up_text(&state, &run, look).await
}

/// `api/runs/RUN/counters`.
async fn counters(State(state): State<Arc<AppState>>, Path(run): Path<String>, RawQuery(raw): RawQuery) -> Answer {
    let query = Query::parse(raw.as_deref(), &["rows", "start_ns", "end_ns", "points"])?;
    let (rows, window) = (rows(&query)?, query.needed_window()?);
    let points = query.number("points")?.unwrap_or(POINTS).min(MAX_POINTS);
    look_up(&state, &run, move |loaded, timeline| Ok(timeline.counters(&loaded.trace, &rows, window, points))).await
}

/// `api/runs/RUN/sums`.
async fn sums(State(state): State<Arc<AppState>>, Path(run): Path<String>, RawQuery(raw): RawQuery) -> Answer {
    let query = Query::parse(raw.as_deref(), &["rows", "start_ns", "end_ns", "by", "limit"])?;
    let (rows, window, limit) = (rows(&query)?, query.needed_window()?, limit(&query)?);
    let by = SumBy::from_name(query.text("by").unwrap_or("name"))
        .ok_or_else(|| Failure::bad_request("unknown `by`").hint("use name, kind, track or class"))?;
    look_up(&state, &run, move |loaded, timeline| Ok(timeline.sums(&loaded.trace, &rows, window, by, limit))).await
}

/// The rows that a request names.
fn rows(query: &Query) -> Result<Vec<RowId>, Failure> {
    query.numbers("rows", MAX_ROWS)
}

/// How much of an answer is wanted.
fn limit(query: &Query) -> Result<usize, Failure> {
    Ok(query.number("limit")?.unwrap_or(LIMIT).min(MAX_LIMIT))
}
