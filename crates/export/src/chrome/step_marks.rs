//! Marks of steps that no label marks: from them our own reader infers the same steps, and says that they are inferred.

use super::Document;
use std::io;
use stepscope_trace::{ProcessId, SliceId, SliceKind, Step, StepSource, Trace, TrackId, TrackKind};

const STEP_MARK: &str = "Stepscope: optimizer step";
const CUT_MARK: &str = "Stepscope: step cut";

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let trace = document.trace;
    let is_inferred = |step: &&Step| step.source == StepSource::Optimizer && document.has_rank(step.rank);
    let steps: Vec<&Step> = trace.steps.iter().filter(is_inferred).collect();
    for steps in steps.chunk_by(|a, b| a.process == b.process) {
        let optimizers = optimizers(trace, steps[0].process);
        let mut track = thread_of(trace, steps[0]);
        for (at, step) in steps.iter().enumerate() {
            let end_ns = step.span.end_ns;
            let ending = &optimizers[optimizers.partition_point(|row| row.0 < end_ns)..];
            let optimizer = ending.first().filter(|row| row.0 == end_ns).map(|row| row.2);
            // The last step may have been cut before its optimizer ran.
            if optimizer.is_none() && !step.is_complete && at + 1 == steps.len() && at > 0 {
                write_mark(document, CUT_MARK, track, end_ns)?;
                continue;
            }
            let time_ns = optimizer.map_or(end_ns, |slice| trace.slices.start_ns[slice.index()]);
            track = optimizer.map_or(track, |slice| Some(trace.slices.track[slice.index()]));
            write_mark(document, STEP_MARK, track, time_ns)?;
        }
    }
    Ok(())
}

/// Whether all slices are needed to write them: no optimizer says where the first mark lies, or optimizers of several
/// threads end with a step, of which the one that lies deepest is meant.
pub(super) fn need_all_slices(trace: &Trace) -> bool {
    let steps: Vec<&Step> = trace.steps.iter().filter(|step| step.source == StepSource::Optimizer).collect();
    steps.chunk_by(|a, b| a.process == b.process).any(|steps| {
        let optimizers = optimizers(trace, steps[0].process);
        let ending = |step: &Step| {
            let first = optimizers.partition_point(|row| row.0 < step.span.end_ns);
            &optimizers[first..][..optimizers[first..].partition_point(|row| row.0 == step.span.end_ns)]
        };
        let track = |row: &Row| trace.slices.track[row.2.index()];
        let is_unclear = |step: &&Step| ending(step).windows(2).any(|rows| track(&rows[0]) != track(&rows[1]));
        ending(steps[0]).is_empty() || steps.iter().any(is_unclear)
    })
}

/// End, depth and slice of an optimizer.
type Row = (i64, std::cmp::Reverse<u32>, SliceId);

fn write_mark(document: &mut Document<'_>, name: &str, track: Option<TrackId>, time_ns: i64) -> io::Result<()> {
    let Some(track) = track else { return Ok(()) };
    document.begin_event("i", "cpu_instant_event", name, document.row(track));
    document.json.text("s", "t");
    document.json.time(time_ns);
    document.end_event()
}

/// A process' optimizer slices by their end; of those that end together the innermost first.
fn optimizers(trace: &Trace, process: ProcessId) -> Vec<Row> {
    let is_own = |id: &SliceId| trace.tracks[trace.slices.track[id.index()].index()].process == process;
    let ids = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Optimizer && is_own(id));
    let mut rows: Vec<Row> = ids
        .map(|id| (trace.slices.span(id).end_ns, std::cmp::Reverse(trace.slices.depth[id.index()].into()), id))
        .collect();
    rows.sort_unstable();
    rows
}

/// A thread of the step's process, where no optimizer says which: one with something that begins with the step.
fn thread_of(trace: &Trace, step: &Step) -> Option<TrackId> {
    let tracks = (0..trace.tracks.len()).map(TrackId::from_index);
    let own = |track: &TrackId| {
        let track = &trace.tracks[track.index()];
        track.kind == TrackKind::Thread && track.process == step.process && track.lane == 0
    };
    let begins = |track: &TrackId| {
        let mut ids = trace.lanes(*track).flat_map(|lane| trace.tracks[lane.index()].slice_ids());
        ids.any(|id| trace.slices.start_ns[id.index()] == step.span.start_ns)
    };
    let threads: Vec<TrackId> = tracks.filter(own).collect();
    threads.iter().find(|track| begins(track)).or(threads.first()).copied()
}
