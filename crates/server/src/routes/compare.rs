//! Two runs side by side, or two ranks of one.

use super::analyses::deliver;
use super::{Answer, files};
use crate::app_state::AppState;
use crate::comparison::{Comparison, ReadPart};
use crate::failure::Failure;
use crate::loaded_run::{LoadedRun, bytes_of};
use crate::query::Query;
use crate::table_page::{PARAMETERS, PageQuery};
use axum::extract::{RawQuery, State};
use std::path::Path;
use std::sync::Arc;
use stepscope_engine::{self as engine, Compared, Selection};

const OF_RUNS: [&str; 6] = ["a", "b", "what", "a_rank", "b_rank", "format"];

/// `api/compare`.
pub(super) async fn compare(State(state): State<Arc<AppState>>, RawQuery(raw): RawQuery) -> Answer {
    let query = Query::parse(raw.as_deref(), &[OF_RUNS.as_slice(), &PARAMETERS].concat())?;
    let (page_query, format) = (PageQuery::of(&query)?, files::Format::of(&query)?);
    let what = Compared::from_name(query.needed_text("what")?).ok_or_else(|| {
        let words = Compared::ALL.map(Compared::as_str).join(", ");
        Failure::bad_request("unknown `what`").hint(format!("use {words}"))
    })?;
    let of_rank = |name| Ok::<_, Failure>(Selection { ranks: query.number(name)?.into(), ..Selection::default() });
    let (of_a, of_b) = (of_rank("a_rank")?, of_rank("b_rank")?);
    let (a_run, a) = state.runs.loaded(query.needed_text("a")?)?;
    let (b_run, b) = state.runs.loaded(query.needed_text("b")?)?;
    let part_of =
        |path: &Path, run: &LoadedRun, of| ReadPart { path: path.into(), version: run.version, selection: of };
    let comparison =
        Comparison { a: part_of(&a_run.path, &a, of_a.clone()), b: part_of(&b_run.path, &b, of_b.clone()), what };
    let compare = move || engine::compare((&a.run, &of_a), (&b.run, &of_b), what);
    let computed = async { Ok::<_, Failure>(state.pool.long(compare).await??) };
    let result = state.comparisons.get(comparison, bytes_of, computed).await?;
    let name = format!("{}.{}.{}", a_run.name(), b_run.name(), what.as_str());
    deliver(&state, result, page_query, format, &name).await
}
