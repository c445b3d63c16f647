//! The catalogue of analyses, and their results: a page of rows as JSON, or all of them as a file.

use super::{Answer, file, files, json, json_text};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use crate::table_page::{PARAMETERS, Page, PageQuery, columns};
use axum::extract::{Path, RawQuery, State};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use stepscope_engine::{self as engine, Analysis, ColumnRow, Described, Envelope, OptionTexts, Selection, Table};

const OF_PART: [&str; 10] =
    ["rank", "step", "start_ns", "end_ns", "group_by", "compat", "bucket_ms", "depth", "top", "format"];
const HEADINGS: [&str; 4] = ["Definition", "Units", "Source", "Edge cases"];

/// A page of a result.
#[derive(Serialize)]
struct PagedEnvelope<'a> {
    #[serde(flatten)]
    envelope: Described<'a, Value>,
    page: Page,
}

/// `api/analyses`.
pub(super) async fn catalogue() -> Answer {
    let analysis = |analysis: &Analysis| {
        let section = |heading: &str| (heading.to_string(), Value::String(analysis.section(heading)));
        let options = analysis.options;
        json!({
            "name": analysis.name,
            "definition": analysis.definition(),
            "sections": HEADINGS.into_iter().map(section).collect::<Map<String, Value>>(),
            "accepts": {
                "group_by": options.group_by.iter().map(|choice| choice.as_str()).collect::<Vec<_>>(),
                "compat": options.compat.iter().map(|choice| choice.as_str()).collect::<Vec<_>>(),
                "bucket": options.bucket,
                "tree": options.tree,
            },
            "columns": analysis.columns(&Selection::default()).iter().map(ColumnRow::of).collect::<Vec<_>>(),
        })
    };
    Ok(json(Value::Array(engine::catalogue().iter().map(analysis).collect()).to_string()))
}

/// `api/runs/RUN/analyses/NAME`.
pub(super) async fn analysis(
    State(state): State<Arc<AppState>>,
    Path((run, name)): Path<(String, String)>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &[OF_PART.as_slice(), &PARAMETERS].concat())?;
    let analysis = engine::find_analysis(&name)?;
    let part = part(&query, analysis)?;
    let page_query = PageQuery::of(&query)?;
    let format = files::Format::of(&query)?;
    let (run, loaded) = state.runs.loaded(&run)?;
    let result = loaded.analyze(&state.pool, analysis, part).await?;
    deliver(&state, result, page_query, format, &format!("{}.{}", run.name(), analysis.name)).await
}

/// A page of a result, or all rows that match as a file for which `name` is a name.
pub(super) async fn deliver(
    state: &AppState,
    result: Arc<Envelope>,
    page_query: PageQuery,
    format: Option<files::Format>,
    name: &str,
) -> Answer {
    let Some(format) = format else {
        return state.pool.quick(move || page(&result, &page_query)).await?.map(json);
    };
    let written = move || format.write(&with_rows(&result, page_query.all(&result.results, result.analysis)?));
    let bytes = state.pool.quick(written).await??;
    Ok(file(name, format.ending(), format.kind(), bytes))
}

/// What part of the run is asked about, and how.
fn part(query: &Query, analysis: &Analysis) -> Result<Selection, Failure> {
    let text = |name: &str| query.text(name).map(str::to_string);
    let texts = OptionTexts {
        group_by: text("group_by"),
        compat: text("compat"),
        bucket_ms: text("bucket_ms"),
        depth: text("depth"),
        top: text("top"),
    };
    Ok(engine::with_options(analysis, query.selection()?, &texts)?)
}

fn page(result: &Envelope, page_query: &PageQuery) -> Result<String, Failure> {
    let (rows, page) = page_query.page(&result.results, result.analysis)?;
    let envelope = Described { envelope: &with_rows(result, rows), columns: columns(&result.results) };
    Ok(json_text(&PagedEnvelope { envelope, page }))
}

/// The same result with these rows.
fn with_rows(result: &Envelope, results: Table) -> Envelope {
    let Envelope { analysis, definition, run, results: _, coverage, findings } = result;
    let (definition, run, findings) = (definition.clone(), run.clone(), findings.clone());
    Envelope { analysis, definition, run, results, coverage: *coverage, findings }
}
