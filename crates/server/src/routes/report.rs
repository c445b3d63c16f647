//! The report of a run, as data and as a page that needs no server.

use super::{Answer, file, json};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use axum::extract::{Path, RawQuery, State};
use std::sync::Arc;
use stepscope_engine::report::report as sum_up;
use stepscope_export::report_html;

const OF_PART: [&str; 4] = ["rank", "step", "start_ns", "end_ns"];

/// `api/runs/RUN/report`.
pub(super) async fn report(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let selection = Query::parse(raw.as_deref(), &OF_PART)?.selection()?;
    let (run, loaded) = state.runs.loaded(&run)?;
    let (read, part) = (loaded.clone(), selection.clone());
    let computed = async {
        let sum_up = move || sum_up(&read.run, &part, &run.path.display().to_string());
        // All steps of many ranks are not for one answer: `steps` has those of a rank.
        let brief = move || {
            sum_up().map(|mut report| {
                report.steps.iter_mut().for_each(|summary| summary.steps.clear());
                report.to_json()
            })
        };
        state.pool.long(brief).await?.map_err(Failure::from)
    };
    let text = loaded.reports.get(selection, String::len, computed).await?;
    Ok(json(text.to_string()))
}

/// `api/runs/RUN/report.html`.
pub(super) async fn page(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let selection = Query::parse(raw.as_deref(), &OF_PART)?.selection()?;
    let (run, loaded) = state.runs.loaded(&run)?;
    let name = run.name().to_string();
    let write = move || {
        let report = sum_up(&loaded.run, &selection, &run.path.display().to_string())?;
        Ok(report_html(&report, &loaded.run.analyze_all(&selection)?))
    };
    let page: Result<String, Failure> = state.pool.long(write).await?;
    Ok(file(&name, ".html", "text/html; charset=utf-8", page?))
}
