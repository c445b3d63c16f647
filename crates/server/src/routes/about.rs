//! What the pages need to know of this server.

use super::{Answer, json};
use crate::editor::Editor;
use crate::site::Site;
use axum::extract::State;
use serde_json::json;
use std::sync::Arc;

/// `api/about`.
pub(super) async fn about(State(site): State<Arc<Site>>) -> Answer {
    Ok(json(
        json!({ "version": env!("CARGO_PKG_VERSION"), "editor": site.editor.as_ref().map(Editor::template) })
            .to_string(),
    ))
}
