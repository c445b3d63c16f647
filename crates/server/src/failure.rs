//! Why a request is not answered: what, where, and what to do, as JSON with a status.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use stepscope_engine::{EngineError, split_place};
use stepscope_export::ExportError;

/// A request that cannot be answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    what: String,
    location: Option<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure with this status; `what` is one line in lower case.
    pub(crate) fn new(status: StatusCode, what: impl Into<String>) -> Self {
        Self { status, what: what.into(), location: None, hint: None }
    }

    /// The request is invalid.
    pub(crate) fn bad_request(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what)
    }

    /// What the request names does not exist.
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    /// The server itself failed.
    pub(crate) fn internal(what: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, what)
    }

    /// Says where.
    pub(crate) fn at(self, location: impl ToString) -> Self {
        Self { location: Some(location.to_string()), ..self }
    }

    /// Says what to do.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// This failure with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The status that it is answered with.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let status = match error {
            EngineError::UnknownAnalysis { .. } | EngineError::NotFound { .. } | EngineError::Import { .. } => {
                StatusCode::NOT_FOUND
            }
            _ => StatusCode::BAD_REQUEST,
        };
        let more_memory = |gib| format!("choose fewer ranks, or start `stepscope view` with --memory {gib}GiB");
        let hint = error.gib_needed().map(more_memory).or_else(|| error.hint());
        Self { status, what: error.to_string(), location: error.place(), hint }
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        let (text, hint) = (error.to_string(), error.hint());
        let path = match error {
            ExportError::Read(error) => return error.into(),
            ExportError::Write { path, .. }
            | ExportError::Exists { path }
            | ExportError::NotByRank { path }
            | ExportError::UnknownFormat { path } => path,
        };
        let (what, location) = split_place(&text, &path);
        let failure = Self::internal(what).at(location.display());
        hint.into_iter().fold(failure, Self::hint)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "what": self.what, "where": self.location, "hint": self.hint } });
        let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
        (self.status, headers, body.to_string()).into_response()
    }
}
