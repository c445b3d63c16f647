//! Single slices, and lists of them.

use super::{Asked, OF_RANK, limit, look_up, rows};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use crate::routes::{Answer, json, json_text};
use crate::shown::Shown;
use axum::extract::{Path, RawQuery, State};
use serde_json::json;
use std::sync::Arc;
use stepscope_base::cut_text;
use stepscope_engine::{Trace, source_text};
use stepscope_timeline::{RowId, Timeline, details, named_slice};
use stepscope_trace::SliceId;

/// A compressed source is read up to the slice; larger ones are not.
const MAX_SOURCE_BYTES: u64 = 64 << 20;
/// Bytes of an event's text that are shown.
const MAX_TEXT: usize = 64 << 10;

/// Which slice is asked for.
enum Requested {
    At { row: RowId, at_ns: i64 },
    After { row: RowId, slice: SliceId },
    Before { row: RowId, slice: SliceId },
    Named { rank: u32, start_ns: i64, name: String },
}

/// `api/runs/RUN/slices/ID`: everything known of a slice.
pub(super) async fn slice(
    State(state): State<Arc<AppState>>,
    Path((run, slice)): Path<(String, String)>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &[OF_RANK])?;
    let slice = number_of(&slice)?;
    let look =
        move |shown: &Shown, timeline: &Timeline| details(timeline, &shown.trace, slice).ok_or_else(no_such_slice);
    look_up(&state, Asked::of(&run, &query)?, look).await
}

/// `api/runs/RUN/slices/ID/source_text`: the event as its source has it. Finding it may mean to decompress the source up to
/// there, so it is a request of its own.
pub(super) async fn text(
    State(state): State<Arc<AppState>>,
    Path((run, slice)): Path<(String, String)>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &[OF_RANK])?;
    let (shown, slice) = shown_with(&state, Asked::of(&run, &query)?, &slice).await?;
    let text = state.pool.text(move || text_of(&shown.trace, slice)).await?;
    Ok(json(json_text(&json!({ "source_text": text }))))
}

/// What a timeline shows, and the slice of it that has this number.
pub(super) async fn shown_with(state: &AppState, of: Asked<'_>, slice: &str) -> Result<(Arc<Shown>, SliceId), Failure> {
    let slice = number_of(slice)?;
    let (_, shown) = of.shown(state).await?;
    if slice.index() >= shown.trace.slices.len() {
        return Err(no_such_slice());
    }
    Ok((shown, slice))
}

fn number_of(slice: &str) -> Result<SliceId, Failure> {
    slice.parse().map(SliceId).map_err(|_| no_such_slice())
}

fn no_such_slice() -> Failure {
    Failure::not_found("there is no such slice").hint("slice numbers are valid for one version of a run")
}

/// The event that a slice was read from, where it can be had soon.
fn text_of(trace: &Trace, slice: SliceId) -> Option<String> {
    let size = stepscope_store::metadata(std::path::Path::new(trace.sources.first()?)).ok()?.len;
    if size > MAX_SOURCE_BYTES {
        return None;
    }
    Some(cut_text(&source_text(trace, slice).ok()??, MAX_TEXT).into_owned())
}

/// `api/runs/RUN/slices`: one slice, or those in a window.
pub(super) async fn slices(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let known = ["row", "at_ns", "after", "before", "rank", "start_ns", "name", "rows", "end_ns", "limit", OF_RANK];
    let query = Query::parse(raw.as_deref(), &known)?;
    let of = Asked::of(&run, &query)?;
    if query.text("rows").is_some() {
        let (rows, window, limit) = (rows(&query)?, query.needed_window()?, limit(&query)?);
        return look_up(&state, of, move |shown, timeline| Ok(timeline.list(&shown.trace, &rows, window, limit))).await;
    }
    let requested = requested(&query)?;
    let look = move |shown: &Shown, timeline: &Timeline| {
        let trace = &*shown.trace;
        let found = match requested {
            Requested::At { row, at_ns } => timeline.slice_at(trace, row, at_ns),
            Requested::After { row, slice } => timeline.next_on_row(trace, row, slice),
            Requested::Before { row, slice } => timeline.previous_on_row(trace, row, slice),
            Requested::Named { rank, start_ns, name } => named_slice(trace, rank, start_ns, &name),
        };
        Ok(found.map(|slice| timeline.summary(trace, slice)))
    };
    look_up(&state, of, look).await
}

fn requested(query: &Query) -> Result<Requested, Failure> {
    if let Some(name) = query.text("name") {
        let (rank, start_ns) = (query.needed_number("rank")?, query.needed_number("start_ns")?);
        return Ok(Requested::Named { rank, start_ns, name: name.to_string() });
    }
    let row = query.needed_number("row")?;
    if let Some(at_ns) = query.number("at_ns")? {
        return Ok(Requested::At { row, at_ns });
    }
    match (query.number("after")?, query.number("before")?) {
        (Some(slice), _) => Ok(Requested::After { row, slice: SliceId(slice) }),
        (None, Some(slice)) => Ok(Requested::Before { row, slice: SliceId(slice) }),
        (None, None) => Err(Failure::bad_request("one of at_ns, after and before says which slice of the row")),
    }
}
