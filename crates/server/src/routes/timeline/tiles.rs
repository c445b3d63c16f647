//! Tiles. What one version answers never changes, so that a browser may keep it.

use super::{Asked, MAX_ROWS, OF_RANK, rows};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use crate::routes::Answer;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use std::sync::Arc;
use stepscope_timeline::MAX_BLOCKS;

const _: () = assert!(MAX_BLOCKS <= MAX_ROWS);
/// A browser may keep them for a day.
const CACHE: &str = "private, max-age=86400, immutable";

/// `api/runs/RUN/tiles`.
pub(super) async fn tiles(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["v", "rows", "level", "first", "count", OF_RANK])?;
    let version: u64 = query.needed_number("v")?;
    let rows = rows(&query)?;
    let (level, first) = (query.needed_number("level")?, query.needed_number("first")?);
    let count = query.number("count")?.unwrap_or(1);
    let (of, (_, loaded)) = (Asked::of(&run, &query)?, state.runs.loaded(&run)?);
    if loaded.version != version {
        let failure = Failure::not_found(format!("version {version} of this run is not kept any more"));
        return Err(failure.hint(format!("it was read again: its version is {}", loaded.version)));
    }
    let rank = of.rank.map_or(String::new(), |rank| format!("{rank}-"));
    let etag = format!("\"{version}-{rank}{}\"", tag(&rows, level, first, count));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let about = [(header::ETAG, etag.clone()), (header::CACHE_CONTROL, CACHE.to_string())];
    if known.split(',').any(|known| known.trim().trim_start_matches("W/") == etag) {
        return Ok((StatusCode::NOT_MODIFIED, about).into_response());
    }
    let (_, shown) = of.shown(&state).await?;
    shown.timeline().await?;
    let cut = move || {
        let timeline = shown.timeline_if_ready().ok_or_else(|| Failure::internal("the timeline is gone"))?;
        let tiles = timeline.tiles(&shown.trace, &rows, level, first, count);
        tiles.map(|tiles| tiles.to_bytes()).map_err(|error| Failure::bad_request(error.to_string()))
    };
    let bytes = state.pool.quick(cut).await??;
    Ok((about, [(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// Says which tiles an answer has.
fn tag(rows: &[u32], level: u8, first: i64, count: usize) -> String {
    let rows: Vec<String> = rows.iter().map(u32::to_string).collect();
    format!("{level}-{first}-{count}-{}", rows.join("."))
}
