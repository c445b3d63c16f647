//! Two runs side by side.

use super::Answer;
use crate::failure::Failure;
use axum::http::StatusCode;

/// `api/compare`.
pub(super) async fn compare() -> Answer {
    Err(Failure::new(StatusCode::NOT_IMPLEMENTED, "comparing is not there yet"))
}
