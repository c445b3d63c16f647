//! The timeline: its rows, what they show, search, sums, slices. What is asked is looked up in what was made when the
//! run was read, on threads that no analysis keeps busy.

mod joined;
mod search;
mod slices;
mod tiles;

use super::{Answer, json, json_text};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use crate::shown::Shown;
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
    of: Asked<'_>,
    look: impl FnOnce(&Shown, &Timeline) -> Result<T, Failure> + Send + 'static,
) -> Answer {
    look_up_text(state, of, move |_, shown, timeline| look(shown, timeline).map(|found| json_text(&found))).await
}

/// Whose timeline is asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    run: &'a str,
    /// Where a run's timeline does not show all events at once, the rank whose events it shows.
    rank: Option<u32>,
}

/// The parameter of that rank.
pub(super) const OF_RANK: &str = "of_rank";

impl<'a> Asked<'a> {
    pub(super) fn of(run: &'a str, query: &Query) -> Result<Self, Failure> {
        Ok(Self { run, rank: query.number(OF_RANK)? })
    }

    /// What the timeline shows, and of which reading.
    pub(super) async fn shown(self, state: &AppState) -> Result<(u64, Arc<Shown>), Failure> {
        let (_, loaded) = state.runs.loaded(self.run)?;
        Ok((loaded.version, loaded.shown(&state.pool, self.rank).await?))
    }
}

/// The JSON that `look` makes of a run's timeline.
async fn look_up_text(
    state: &AppState,
    of: Asked<'_>,
    look: impl FnOnce(u64, &Shown, &Timeline) -> Result<String, Failure> + Send + 'static,
) -> Answer {
    let (version, shown) = of.shown(state).await?;
    shown.timeline().await?;
    let found = move || {
        let timeline = shown.timeline_if_ready().ok_or_else(|| Failure::internal("the timeline is gone"))?;
        look(version, &shown, timeline)
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
    let query = Query::parse(raw.as_deref(), &[OF_RANK])?;
    let span = |span: Span| json!({ "start_ns": span.start_ns, "end_ns": span.end_ns });
    let look = move |version: u64, _: &Shown, timeline: &Timeline| {
        let (whole, focus, groups) = (span(timeline.span()), span(timeline.focus()), timeline.groups());
        Ok(json_text(&AllRows { version, span: whole, focus, groups }))
    };
    look_up_text(&state, Asked::of(&run, &query)?, look).await
}

/// `api/runs/RUN/counters`.
async fn counters(State(state): State<Arc<AppState>>, Path(run): Path<String>, RawQuery(raw): RawQuery) -> Answer {
    let query = Query::parse(raw.as_deref(), &["rows", "start_ns", "end_ns", "points", OF_RANK])?;
    let (rows, window) = (rows(&query)?, query.needed_window()?);
    let points = query.number("points")?.unwrap_or(POINTS).min(MAX_POINTS);
    let of = Asked::of(&run, &query)?;
    look_up(&state, of, move |shown, timeline| Ok(timeline.counters(&shown.trace, &rows, window, points))).await
}

/// `api/runs/RUN/sums`.
async fn sums(State(state): State<Arc<AppState>>, Path(run): Path<String>, RawQuery(raw): RawQuery) -> Answer {
    let query = Query::parse(raw.as_deref(), &["rows", "start_ns", "end_ns", "by", "limit", OF_RANK])?;
    let (rows, window, limit) = (rows(&query)?, query.needed_window()?, limit(&query)?);
    let by = SumBy::from_name(query.text("by").unwrap_or("name"))
        .ok_or_else(|| Failure::bad_request("unknown `by`").hint("use name, kind, track or class"))?;
    let of = Asked::of(&run, &query)?;
    look_up(&state, of, move |shown, timeline| Ok(timeline.sums(&shown.trace, &rows, window, by, limit))).await
}

/// The rows that a request names.
fn rows(query: &Query) -> Result<Vec<RowId>, Failure> {
    query.numbers("rows", MAX_ROWS)
}

/// How much of an answer is wanted.
fn limit(query: &Query) -> Result<usize, Failure> {
    Ok(query.number("limit")?.unwrap_or(LIMIT).min(MAX_LIMIT))
}
