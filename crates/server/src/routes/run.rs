//! The list of runs, and what one of them is.

use super::{Answer, json, json_text, steps};
use crate::app_state::AppState;
use crate::loaded_run::LoadedRun;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepscope_engine::{RunIdentity, Trace};
use stepscope_trace::{Contents, Process};

/// `api/runs`.
pub(super) async fn list(State(state): State<Arc<AppState>>) -> Answer {
    let list = state.runs.list().borrow().to_string();
    Ok(json(list))
}

/// `api/runs/RUN`. Asking for it makes reading begin: that it is not read yet is no error here.
pub(super) async fn run(State(state): State<Arc<AppState>>, Path(id): Path<String>) -> Answer {
    let (run, loaded) = match state.runs.loaded(&id) {
        Err(failure) if failure.status() == StatusCode::CONFLICT => {
            return Ok(failure.with_status(StatusCode::ACCEPTED).into_response());
        }
        found => found?,
    };
    let text = state.pool.quick(move || json_text(&run_json(run.id, &loaded))).await?;
    Ok(json(text))
}

fn run_json(id: usize, loaded: &LoadedRun) -> Value {
    let (trace, contents) = (loaded.trace(), loaded.run.contents());
    let devices = trace.devices.iter().map(|device| {
        json!({
            "rank": device.rank,
            "ordinal": device.ordinal,
            "name": device.name,
            "memory_bytes": device.memory_bytes,
        })
    });
    json!({
        "id": id,
        "version": loaded.version,
        "run": RunIdentity::of(trace),
        "span": trace.span().map(|span| json!({ "start_ns": span.start_ns, "end_ns": span.end_ns })),
        "start_unix_ns": trace.start_unix_ns,
        "ranks": ranks(trace),
        "steps": steps::summary(&trace.steps),
        "devices": devices.collect::<Vec<_>>(),
        "facts": trace.facts,
        "counts": {
            "slices": contents.slices,
            "instants": contents.instants,
            "device_events": contents.device_events,
            "memory": contents.memory,
            "io": contents.io,
            "collectives": contents.collectives,
            "flows": contents.flows,
            "findings": trace.findings.iter().count(),
        },
        "has": available_data(&contents),
        "shows_all": loaded.shows_all(),
    })
}

/// Of each rank the first process, which is the one that the others serve; a launcher, which takes part in no job, has
/// the rank of one that does.
fn ranks(trace: &Trace) -> Vec<Value> {
    let mut first: BTreeMap<u32, &Process> = BTreeMap::new();
    let (of_job, others): (Vec<&Process>, Vec<&Process>) =
        trace.processes.iter().partition(|process| process.world_size.is_some());
    for process in of_job.into_iter().chain(others) {
        first.entry(process.rank).or_insert(process);
    }
    let rank = |process: &&Process| json!({ "rank": process.rank, "host": process.host, "pid": process.pid, "name": process.name });
    first.values().map(rank).collect()
}

/// Which pages have something to show.
fn available_data(contents: &Contents) -> Value {
    json!({
        "devices": contents.device_events > 0,
        "memory": contents.memory > 0,
        "shapes": contents.has_shapes,
        "stacks": contents.has_stacks,
        "modules": contents.has_modules,
        "python": contents.has_python,
        "source": contents.has_source,
        "stack_samples": contents.stack_samples > 0,
        "io": contents.io > 0,
        "collectives": contents.collectives > 0 || contents.has_communication,
        "counters": contents.samples > 0,
    })
}
