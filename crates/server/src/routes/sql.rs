//! SQL over the tables of a run: rows as JSON, page by page, all of them as a file, and what there is to ask about.

use super::sending::{self, pieces};
use super::{Answer, file as saved, json};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use crate::run_tables::RunTables;
use crate::sql_process::SqlProcess;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use futures_util::future::select;
use std::ffi::OsStr;
use std::io;
use std::pin::pin;
use std::sync::Arc;

/// Rows of an answer, unasked and at most; a file has all.
const LIMIT: usize = 1_000;
const MAX_LIMIT: usize = 100_000;

/// `api/runs/RUN/query`.
pub(super) async fn query(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["sql", "limit"])?;
    let sql = query.needed_text("sql")?;
    let limit = query.number("limit")?.unwrap_or(LIMIT).clamp(1, MAX_LIMIT).to_string();
    let (run, _) = state.runs.loaded(&run)?;
    state.sql.sql()?;
    let tables = RunTables::of(&state, &run).await?;
    let _turn = state.pool.query_turn().await;
    let form = ["--pages", &limit].map(OsStr::new);
    page(&state, state.sql.start(&tables, &form, Some(sql))?).await
}

/// `api/runs/RUN/query/rows`.
pub(super) async fn rows(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["rest"])?;
    let rest = query.needed_number("rest")?;
    state.runs.loaded(&run)?;
    let program = state.waiting_queries.take(rest).ok_or_else(|| {
        let failure = Failure::new(StatusCode::GONE, "the rest of the result is not there any more");
        failure.hint("run the query again, or save the result as a file")
    })?;
    let _turn = state.pool.query_turn().await;
    page(&state, program).await
}

/// The next rows, and where there are more the number by which to ask for them.
async fn page(state: &AppState, program: SqlProcess) -> Answer {
    let (mut text, rest) = program.page().await?;
    if let Some(program) = rest {
        let number = state.waiting_queries.add(program);
        text.truncate(text.trim_end_matches(['}', '\n']).len());
        text += &format!(",\"rest\":{number}}}\n");
    }
    Ok(json(text))
}

/// `api/runs/RUN/query/schema`.
pub(super) async fn schema(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    Query::parse(raw.as_deref(), &[])?;
    let (run, loaded) = state.runs.loaded(&run)?;
    state.sql.sql()?;
    let described = async {
        let tables = RunTables::of(&state, &run).await?;
        let _turn = state.pool.query_turn().await;
        let form = ["--schema", "--json"].map(OsStr::new);
        state.sql.start(&tables, &form, None)?.answer().await
    };
    let text = loaded.sql_schema.get((), String::len, described).await?;
    Ok(json(text.to_string()))
}

/// `api/runs/RUN/query/file`.
pub(super) async fn file(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["sql", "format"])?;
    let (sql, format) = (query.needed_text("sql")?, query.needed_text("format")?);
    if !["csv", "parquet"].contains(&format) {
        return Err(Failure::bad_request("unknown result format").hint("use csv or parquet"));
    }
    let (run, _) = state.runs.loaded(&run)?;
    state.sql.sql()?;
    let tables = RunTables::of(&state, &run).await?;
    if format == "csv" {
        let body = csv(&state, &tables, sql).await?;
        return Ok(saved(run.name(), ".query.csv", "text/csv; charset=utf-8", body));
    }
    let body = parquet(&state, &tables, sql).await?;
    Ok(saved(run.name(), ".query.parquet", "application/vnd.apache.parquet", body))
}

/// All rows as CSV, sent while they come.
async fn csv(state: &AppState, tables: &RunTables, sql: &str) -> Result<Body, Failure> {
    let turn = state.pool.sent_turn().await;
    let mut process = state.sql.start(tables, &[OsStr::new("--csv")], Some(sql))?;
    // What is wrong with a query is known before its first row.
    let first = process.piece().await?;
    if first.is_empty() {
        process.end(&[]).await?;
        return Ok(Body::empty());
    }
    let (pieces, body) = pieces();
    tokio::spawn(async move {
        let _turn = turn;
        // A client that goes away ends the program, also while it computes.
        let client = pieces.clone();
        select(pin!(pass_on(process, first, pieces)), pin!(client.closed())).await;
    });
    Ok(body)
}

/// Sends what a program writes from `piece` on. An answer that breaks off is seen to do so.
async fn pass_on(mut process: SqlProcess, mut piece: Bytes, pieces: sending::Pieces) {
    while !piece.is_empty() {
        if sending::send(&pieces, Ok(piece)).await.is_err() {
            return;
        }
        piece = match process.piece().await {
            Ok(next) => next,
            Err(_) => Bytes::new(),
        };
    }
    if process.end(&[]).await.is_err() {
        sending::send(&pieces, Err(io::Error::other("the query failed"))).await.ok();
    }
}

/// All rows as Parquet, sent once the file is whole: its beginning is written last.
async fn parquet(state: &AppState, tables: &RunTables, sql: &str) -> Result<Body, Failure> {
    let cannot_write = |error: io::Error| Failure::internal(format!("the file cannot be written: {error}"));
    let folder = tempfile::Builder::new().prefix("stepscope-query-").tempdir().map_err(cannot_write)?;
    let path = folder.path().join("result.parquet");
    {
        let _turn = state.pool.query_turn().await;
        let form = [OsStr::new("--parquet"), path.as_os_str()];
        state.sql.start(tables, &form, Some(sql))?.answer().await?;
    }
    let mut written = std::fs::File::open(&path).map_err(cannot_write)?;
    Ok(sending::written(state.pool.clone(), move |client| {
        // The file stays until it is sent.
        let _folder = folder;
        io::copy(&mut written, client).map(drop)
    }))
}
