//! When a process waits for its next batch: slices of its threads, drawn once more in a row of their own, where they are
//! seen without looking for them among operators.

use crate::items::Item;
use crate::projections::without_overlaps;
use stepscope_trace::{ProcessId, SliceId, SliceKind, StepSource, Trace, TrackKind};

/// What a person calls such a row.
pub(crate) const NAME: &str = "Waiting for data";

/// The waits of `process` in rows of items that do not overlap: one row, unless several of its threads take batches. None
/// for a process that only prepares batches for another.
pub(crate) fn data_waits(trace: &Trace, process: ProcessId) -> Vec<Vec<Item>> {
    let rank = trace.processes[process.index()].rank;
    let mut steps = trace.steps.iter().filter(|step| step.rank == rank && step.source != StepSource::Whole).peekable();
    if steps.peek().is_some() && steps.all(|step| step.process != process) {
        return Vec::new();
    }
    let is_wait = |id: SliceId| trace.slices.kind(id) == SliceKind::DataLoader;
    let is_outermost = |id: &SliceId| !trace.slices.with_ancestors(*id).skip(1).any(is_wait);
    let threads = trace.tracks.iter().filter(|track| track.process == process && track.kind == TrackKind::Thread);
    let waits = threads.flat_map(|track| track.slice_ids()).filter(|id| is_wait(*id)).filter(is_outermost);
    let item = |id: SliceId| {
        let span = trace.slices.span(id);
        Item {
            start_ns: span.start_ns,
            dur_ns: span.duration_ns(),
            name: trace.slices.name[id.index()],
            slice: Some(id),
        }
    };
    without_overlaps(waits.map(item).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    fn rows(trace: &Trace, process: u32) -> Vec<Vec<(i64, i64)>> {
        let rows = data_waits(trace, ProcessId(process)).into_iter();
        rows.map(|row| row.iter().map(|item| (item.start_ns / 1_000, item.end_ns() / 1_000)).collect()).collect()
    }

    #[test]
    fn waits_of_a_process_are_one_row() {
        let trace = drawn(
            "rank 0 step    0000001111..
             rank 0 cpu 1   ..aa...bb...
             rank 0 input 1 ii...jj.....
             rank 1 cpu 2   ccc.........",
        );
        assert_eq!(rows(&trace, 0), [[(0, 2), (5, 7)]]);
        assert_eq!(rows(&trace, 1), [[(0, 0); 0]; 0]);
    }

    #[test]
    fn threads_that_wait_at_once_are_rows_below_each_other() {
        let trace = drawn("rank 0 input 1 iii...jj\nrank 0 input 2 .kkk....");
        assert_eq!(rows(&trace, 0), [vec![(0, 3), (6, 8)], vec![(1, 4)]]);
    }
}
