//! The catalogue of analyses, and their results: a page of rows as JSON, or all of them as a file.

use super::{Answer, file, files, json, json_text};
use crate::failure::Failure;
use crate::query::Query;
use crate::site::Site;
use crate::table_page::{Asking, PARAMETERS, Page, columns};
use axum::extract::{Path, RawQuery, State};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use stepscope_engine::{self as engine, Analysis, Envelope, OptionTexts, Selection, Table};

const OF_PART: [&str; 8] = ["rank", "step", "start_ns", "end_ns", "group_by", "compat", "bucket_ms", "format"];
const HEADINGS: [&str; 4] = ["Definition", "Units", "Source", "Edge cases"];

/// A page of a result.
#[derive(Serialize)]
struct PagedEnvelope<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    columns: &'a [Value],
    page: Page,
}

/// `api/analyses`.
pub(super) async fn catalogue() -> Answer {
    let analysis = |analysis: &Analysis| {
        let section = |heading: &str| (heading.to_string(), Value::String(analysis.section(heading)));
        let accepts = analysis.accepts();
        json!({
            "name": analysis.name,
            "definition": analysis.definition(),
            "sections": HEADINGS.into_iter().map(section).collect::<Map<String, Value>>(),
            "accepts": {
                "group_by": accepts.group_by.iter().map(|choice| choice.as_str()).collect::<Vec<_>>(),
                "compat": accepts.compat.iter().map(|choice| choice.as_str()).collect::<Vec<_>>(),
                "bucket": accepts.bucket,
            },
        })
    };
    Ok(json(Value::Array(engine::catalogue().iter().map(analysis).collect()).to_string()))
}

/// `api/runs/RUN/analyses/NAME`.
pub(super) async fn analysis(
    State(site): State<Arc<Site>>,
    Path((run, name)): Path<(String, String)>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &[OF_PART.as_slice(), &PARAMETERS].concat())?;
    let analysis = engine::find_analysis(&name)?;
    let part = part(&query, analysis)?;
    let asking = Asking::of(&query)?;
    let format = files::Format::of(&query)?;
    let (run, opened) = site.runs.opened(&run)?;
    let result = opened.analyze(&site.pool, analysis, part).await?;
    let Some(format) = format else {
        return site.pool.quick(move || page(&result, &asking)).await?.map(json);
    };
    let name = format!("{}.{}", run.name(), analysis.name);
    let written = move || format.write(&with_rows(&result, asking.all(&result.results, result.analysis)?));
    let bytes = site.pool.quick(written).await??;
    Ok(file(&name, format.ending(), format.kind(), bytes))
}

/// What part of the run is asked about, and how.
fn part(query: &Query, analysis: &Analysis) -> Result<Selection, Failure> {
    let text = |name: &str| query.text(name).map(str::to_string);
    let texts = OptionTexts { group_by: text("group_by"), compat: text("compat"), bucket_ms: text("bucket_ms") };
    Ok(engine::with_options(analysis, query.selection()?, &texts)?)
}

fn page(result: &Envelope, asking: &Asking) -> Result<String, Failure> {
    let (rows, page) = asking.page(&result.results, result.analysis)?;
    Ok(json_text(&PagedEnvelope { envelope: with_rows(result, rows), columns: &columns(&result.results), page }))
}

/// The same result with these rows.
pub(super) fn with_rows(result: &Envelope, results: Table) -> Envelope {
    let Envelope { analysis, definition, run, results: _, coverage, findings } = result;
    let (definition, run, findings) = (definition.clone(), run.clone(), findings.clone());
    Envelope { analysis, definition, run, results, coverage: *coverage, findings }
}
