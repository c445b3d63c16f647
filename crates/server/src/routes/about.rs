//! What the pages need to know of this server.

use super::{Answer, json};
use crate::app_state::AppState;
use crate::editor::Editor;
use axum::extract::State;
use serde_json::json;
use std::sync::Arc;

/// `api/about`.
pub(super) async fn about(State(state): State<Arc<AppState>>) -> Answer {
    let about = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "editor": state.editor.as_ref().map(Editor::template),
        "sql": state.sql.sql.is_some(),
    });
    Ok(json(about.to_string()))
}
