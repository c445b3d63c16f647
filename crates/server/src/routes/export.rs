//! A trace, or what lies in a window, as a file for other programs. It is sent while it is written.

use super::timeline::OF_RANK;
use super::{Answer, file, sending};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use axum::extract::{Path, RawQuery, State};
use std::sync::Arc;
use stepscope_export::{Format, write_trace};

/// `api/runs/RUN/export`.
pub(super) async fn export(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["format", "start_ns", "end_ns", OF_RANK])?;
    let (format, ending, kind) = match query.needed_text("format")? {
        "chrome" => (Format::Chrome { is_packed: false }, ".json", "application/json"),
        "perfetto" => (Format::Perfetto { is_packed: false }, ".pftrace", "application/octet-stream"),
        _ => {
            let failure = Failure::bad_request("unknown trace format");
            return Err(failure.hint("use chrome or perfetto"));
        }
    };
    let (window, rank) = (query.window()?, query.number(OF_RANK)?);
    let (run, loaded) = state.runs.loaded(&run)?;
    let (pool, of_run) = (state.pool.clone(), loaded.clone());
    let all = pool.long(move || of_run.events(rank)).await??;
    let write = move |out: &mut sending::Client| {
        let part = window.map(|window| Arc::new(all.part(window)));
        write_trace(&part.unwrap_or(all), format, out)
    };
    let body = sending::written(pool, write);
    let of_rank = rank.filter(|_| !loaded.shows_all()).map_or(String::new(), |rank| format!(".rank{rank}"));
    Ok(file(run.name(), &(of_rank + ending), kind, body))
}
