//! Two runs side by side, or two ranks of one.

use super::analyses::deliver;
use super::{Answer, files};
use crate::failure::Failure;
use crate::query::Query;
use crate::site::Site;
use crate::table_page::{Asking, PARAMETERS};
use axum::extract::{RawQuery, State};
use std::sync::Arc;
use stepscope_engine::{self as engine, CompareBy, Selection};

const OF_RUNS: [&str; 6] = ["a", "b", "what", "a_rank", "b_rank", "format"];

/// `api/compare`.
pub(super) async fn compare(State(site): State<Arc<Site>>, RawQuery(raw): RawQuery) -> Answer {
    let query = Query::parse(raw.as_deref(), &[OF_RUNS.as_slice(), &PARAMETERS].concat())?;
    let (asking, format) = (Asking::of(&query)?, files::Format::of(&query)?);
    let what = query.needed_text("what")?;
    let by = CompareBy::from_name(what);
    if by.is_none() && what != "steps" {
        let failure = Failure::asked_wrongly("there is no such thing to compare runs by");
        return Err(failure.hint("there are steps, operators, kernels and modules"));
    }
    let (a_rank, b_rank) = (query.number("a_rank")?, query.number("b_rank")?);
    let (a_run, a) = site.runs.opened(query.needed_text("a")?)?;
    let (b_run, b) = site.runs.opened(query.needed_text("b")?)?;
    let name = format!("{}.{}.{what}", a_run.name(), b_run.name());
    let result = match by {
        None => site.pool.long(move || engine::compared_steps((&a.trace, a_rank), (&b.trace, b_rank))).await??,
        Some(by) => {
            let analysis = engine::find_analysis(by.as_str())?;
            let of_rank = |rank| Selection { rank, ..Selection::default() };
            let of_a = a.analyze(&site.pool, analysis, of_rank(a_rank)).await?;
            let of_b = b.analyze(&site.pool, analysis, of_rank(b_rank)).await?;
            site.pool.long(move || engine::compared(&of_a, &of_b, by)).await?
        }
    };
    deliver(&site, Arc::new(result), asking, format, &name).await
}
