//! What can be asked: one file a kind of question. `docs/http-api.md` describes all of them.

mod about;
mod analyses;
pub(crate) mod compare;
mod events;
mod export;
mod files;
mod report;
mod run;
mod sending;
mod source;
mod sql;
mod steps;
mod timeline;

use crate::app_state::AppState;
use crate::assets;
use crate::failure::Failure;
use crate::guard::{check_token, guard};
use crate::packing::packed;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

/// An answer, or why there is none.
type Answer = Result<Response, Failure>;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Everything that is served.
pub(crate) fn router(state: Arc<AppState>) -> Router {
    let api = Router::new()
        .route("/about", get(about::about))
        .route("/analyses", get(analyses::catalogue))
        .route("/compare", get(compare::compare))
        .route("/events", get(events::events))
        .route("/runs", get(run::list))
        .route("/runs/{run}", get(run::run))
        .route("/runs/{run}/analyses/{name}", get(analyses::analysis))
        .route("/runs/{run}/export", get(export::export))
        .route("/runs/{run}/query", get(sql::query))
        .route("/runs/{run}/query/rows", get(sql::rows))
        .route("/runs/{run}/query/file", get(sql::file))
        .route("/runs/{run}/query/schema", get(sql::schema))
        .route("/runs/{run}/report", get(report::report))
        .route("/runs/{run}/report.html", get(report::page))
        .route("/runs/{run}/source", get(source::source))
        .route("/runs/{run}/steps", get(steps::steps))
        .merge(timeline::routes())
        .fallback(async || {
            Failure::not_found("there is nothing of this name").hint("docs/http-api.md lists what there is")
        })
        .layer(from_fn_with_state(state.clone(), check_token))
        .layer(from_fn(timed))
        .layer(from_fn_with_state(state.clone(), packed));
    Router::new()
        .nest("/api", api)
        .fallback(assets::asset)
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(from_fn_with_state(state.clone(), guard))
        .with_state(state)
}

/// Says how long it took to make the answer.
async fn timed(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let mut response = next.run(request).await;
    response.headers_mut().extend(timing("server", begun));
    response
}

/// A header with the time that something took; browsers show it beside the request.
pub(crate) fn timing(what: &str, begun: Instant) -> Option<(HeaderName, HeaderValue)> {
    let spent = format!("{what};dur={:.3}", begun.elapsed().as_secs_f64() * 1e3);
    HeaderValue::from_str(&spent).ok().map(|spent| (SERVER_TIMING, spent))
}

/// `value` as JSON, laid out where it may take a while.
fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is answered is what JSON can say")
}

/// JSON that may be another the next time.
fn json(text: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];
    (headers, text).into_response()
}

/// A file to save under the name of a run.
fn file(run: &str, ending: &str, kind: &'static str, body: impl Into<Body>) -> Response {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let name: String = run.chars().take(100).map(|c| if is_plain(c) { c } else { '_' }).collect();
    let disposition = format!("attachment; filename=\"{name}{ending}\"");
    let headers = [
        (header::CONTENT_TYPE, kind.to_string()),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CACHE_CONTROL, "no-cache".to_string()),
    ];
    (headers, body.into()).into_response()
}
