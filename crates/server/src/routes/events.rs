//! The list of runs as it changes, for pages that follow a run.

use crate::app_state::AppState;
use crate::failure::Failure;
use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{Stream, unfold};
use std::convert::Infallible;
use std::sync::Arc;

/// `api/events`.
pub(super) async fn events(
    State(state): State<Arc<AppState>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Failure> {
    let mut list = state.runs.list();
    list.mark_changed();
    let events = unfold(list, async |mut list| {
        list.changed().await.ok()?;
        let text = list.borrow_and_update().to_string();
        Some((Ok(Event::default().event("runs").data(text)), list))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}
