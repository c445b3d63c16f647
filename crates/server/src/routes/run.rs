//! The list of runs, and what one of them is.

use super::{Answer, json, json_text, steps};
use crate::app_state::AppState;
use crate::loaded_run::LoadedRun;
use crate::source_files::SourceFiles;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepscope_base::StringId;
use stepscope_engine::{RunIdentity, Trace};
use stepscope_trace::{DeviceEventClass, Process, SliceKind};

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
    let trace = &*loaded.trace;
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
            "slices": trace.slices.len(),
            "instants": trace.instants.len(),
            "device_events": trace.device_events.len(),
            "memory": trace.memory.len(),
            "io": trace.io.len(),
            "collectives": trace.collectives.len(),
            "flows": trace.flows.len(),
            "findings": trace.findings.iter().count(),
        },
        "has": available_data(loaded),
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
fn available_data(loaded: &LoadedRun) -> Value {
    let trace = &*loaded.trace;
    let is_there = |kind: SliceKind| trace.slices.kind.contains(&kind);
    let is_named = |id: StringId| !trace.strings.get(id).is_empty();
    let communicates = || trace.device_events.iter().any(|event| event.class == DeviceEventClass::Communication);
    json!({
        "devices": !trace.device_events.is_empty(),
        "memory": !trace.memory.is_empty(),
        "shapes": trace.ops.inputs.iter().any(|inputs| is_named(inputs.dims)),
        "stacks": trace.ops.info.iter().any(|info| is_named(info.stack)),
        "modules": is_there(SliceKind::Module),
        "python": is_there(SliceKind::PythonFunction),
        "source": !loaded.source_files.get_or_init(|| SourceFiles::of(trace)).is_empty(),
        "io": !trace.io.is_empty(),
        "collectives": !trace.collectives.is_empty() || communicates(),
        "counters": trace.counters.iter().any(|counter| !counter.time_ns.is_empty()),
    })
}
