//! Results as files.

use crate::failure::Failure;
use crate::query::Query;
use stepscope_engine::{Envelope, to_csv, to_tsv};
use stepscope_export::{result_markdown, write_arrow, write_result};

/// A form of a result that is saved as a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    Csv,
    Tsv,
    Markdown,
    Parquet,
    Arrow,
}

impl Format {
    /// The form that is asked for; `None` for JSON.
    pub(super) fn of(query: &Query) -> Result<Option<Self>, Failure> {
        Ok(match query.text("format") {
            None | Some("json") => None,
            Some("csv") => Some(Self::Csv),
            Some("tsv") => Some(Self::Tsv),
            Some("md") => Some(Self::Markdown),
            Some("parquet") => Some(Self::Parquet),
            Some("arrow") => Some(Self::Arrow),
            Some(_) => {
                let failure = Failure::bad_request("unknown result format");
                return Err(failure.hint("use json, csv, tsv, md, parquet or arrow"));
            }
        })
    }

    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Csv => ".csv",
            Self::Tsv => ".tsv",
            Self::Markdown => ".md",
            Self::Parquet => ".parquet",
            Self::Arrow => ".arrows",
        }
    }

    /// The media type.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Tsv => "text/tab-separated-values; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }

    pub(super) fn write(self, result: &Envelope) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let written = match self {
            Self::Csv => return Ok(to_csv(&result.results).into_bytes()),
            Self::Tsv => return Ok(to_tsv(&result.results).into_bytes()),
            Self::Markdown => return Ok(result_markdown(result).into_bytes()),
            Self::Parquet => write_result(result, &mut bytes),
            Self::Arrow => write_arrow(result, &mut bytes),
        };
        written.map_err(|error| Failure::internal(format!("the file cannot be written: {error}")))?;
        Ok(bytes)
    }
}
