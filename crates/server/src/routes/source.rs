//! Lines of source files that stacks name.

use super::timeline::{Asked, OF_RANK};
use super::{Answer, json, json_text};
use crate::app_state::AppState;
use crate::query::Query;
use axum::extract::{Path, RawQuery, State};
use serde_json::json;
use std::sync::Arc;

/// Lines on each side, unless said.
const AROUND: usize = 20;
/// What to do where a file is not found.
const HINT: &str = "Source not found. Start `stepscope view` with --source FOLDER to show it.";

/// `api/runs/RUN/source`.
pub(super) async fn source(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["file", "line", "around", OF_RANK])?;
    let name = query.needed_text("file")?.to_string();
    let line = query.number("line")?.unwrap_or(1);
    let around = query.number("around")?.unwrap_or(AROUND);
    let (_, shown) = Asked::of(&run, &query)?.shown(&state).await?;
    let pool = state.pool.clone();
    let read = move || {
        let Some(excerpt) = shown.source_files().read(&name, line, around, &state.source_roots)? else {
            // That the sources lie elsewhere is nothing wrong.
            return Ok(json_text(&json!({ "file": name, "lines": null, "hint": HINT })));
        };
        Ok(json_text(&json!({
            "file": name,
            "first_line": excerpt.first_line,
            "lines": excerpt.lines,
            "editor_path": excerpt.path.display().to_string(),
            "editor_url": state.editor.as_ref().map(|editor| editor.url(&excerpt.path, line)),
        })))
    };
    pool.quick(read).await?.map(json)
}
