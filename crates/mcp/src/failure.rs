//! Why a tool gives no answer: what, where, and what to do, as JSON.

use serde::Serialize;
use stepscope_engine::{EngineError, SqlComplaint};
use stepscope_export::ExportError;

/// A call that cannot be answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Failure {
    what: String,
    #[serde(rename = "where")]
    location: Option<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure; `what` is one line in lower case.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), location: None, hint: None }
    }

    /// Says where.
    pub(crate) fn at(self, location: impl ToString) -> Self {
        Self { location: Some(location.to_string()), ..self }
    }

    /// Says what to do.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// It as JSON, on one line.
    pub(crate) fn to_json(&self) -> String {
        let fields = serde_json::to_string(self).expect("a failure holds only what JSON can say");
        format!("{{\"error\":{fields}}}")
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let more_memory = |gib| format!("ask for one rank, or have `stepscope mcp` started with --memory {gib}GiB");
        let hint = match &error {
            EngineError::UnknownAnalysis { nearest: None, .. } => Some("the tool analyses lists them".into()),
            EngineError::UnknownStep { limits: None, .. } => Some("leave step out: nothing in it marks steps".into()),
            EngineError::NotAccepted { accepted, .. } if accepted.is_empty() => {
                Some("leave it out: it has no meaning there".into())
            }
            error => error.gib_needed().map(more_memory).or_else(|| error.hint()),
        };
        Self { what: error.to_string(), location: error.place(), hint }
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Read(error) => error.into(),
            error => Self { what: error.to_string(), location: None, hint: error.hint() },
        }
    }
}

impl From<SqlComplaint> for Failure {
    fn from(SqlComplaint { what, location, hint }: SqlComplaint) -> Self {
        Self { what, location, hint }
    }
}
