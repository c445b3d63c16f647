//! The timeline.

use crate::failure::Failure;
use crate::site::Site;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use std::sync::Arc;

/// What the timeline asks.
pub(super) fn routes() -> Router<Arc<Site>> {
    let paths = ["timeline", "tiles", "counters", "search", "search/next", "sums", "slices", "slices/{slice}"];
    let none = async || Failure::new(StatusCode::NOT_IMPLEMENTED, "the timeline is not there yet");
    paths.iter().fold(Router::new(), |router, path| router.route(&format!("/runs/{{run}}/{path}"), get(none)))
}
