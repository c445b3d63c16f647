//! Arrows: from an API call to the device work it enqueued, from a forward op to its backward node.

use super::{Document, joining_id};
use std::io;
use stepscope_trace::{FlowKind, SliceId, SliceKind, Trace};

/// How many children are passed by to find a moment of an op's own.
pub(super) const MAX_TRIES: usize = 1_000;

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let trace = document.trace;
    let mut last_launch = None;
    // PyTorch's own traces have none of batches.
    let drawn = trace.flows.iter().filter(|flow| flow.kind != FlowKind::Batch);
    for (flow, number) in drawn.zip(1..) {
        if !document.has_track(trace.slices.track[flow.from.index()]) {
            continue;
        }
        let start_ns = |slice: SliceId| trace.slices.start_ns[slice.index()];
        match flow.kind {
            // One begin for all that a call launched, which stand one after another: a graph's kernels have one arrow
            // with many ends. An event that another hides all the time has its launch told by the correlation alone.
            FlowKind::Launch => {
                let Some(end_ns) = own_moment(trace, flow.to, SliceKind::is_device_event) else { continue };
                let id = joining_id(flow.from);
                if last_launch != Some(flow.from) {
                    let begin = (document.row_of(flow.from), start_ns(flow.from));
                    write_end(document, "s", "ac2g", id, begin)?;
                }
                last_launch = Some(flow.from);
                let end = (document.row_of(flow.to), end_ns);
                write_end(document, "f", "ac2g", id, end)?;
            }
            FlowKind::ForwardBackward | FlowKind::Batch => {
                let is_op = |kind| kind == SliceKind::Op;
                let moment = |slice| (slice, own_moment(trace, slice, is_op).unwrap_or(start_ns(slice)));
                let ends = [moment(flow.from), moment(flow.to)].map(|(slice, at_ns)| (document.row_of(slice), at_ns));
                write_forward_backward(document, number, ends)?;
            }
        }
    }
    Ok(())
}

/// An arrow from a forward op to its backward node, each by its row and a moment of its own.
pub(super) fn write_forward_backward(
    document: &mut Document<'_>,
    number: i64,
    [from, to]: [((i64, i64), i64); 2],
) -> io::Result<()> {
    write_end(document, "s", "fwdbwd", number, from)?;
    write_end(document, "f", "fwdbwd", number, to)
}

fn write_end(
    document: &mut Document<'_>,
    phase: &str,
    category: &str,
    id: i64,
    (row, at_ns): ((i64, i64), i64),
) -> io::Result<()> {
    document.begin_event(phase, category, category, row);
    document.json.int("id", id);
    document.json.time(at_ns);
    if phase == "f" {
        document.json.text("bp", "e");
    }
    document.end_event()
}

/// The first moment at which `slice` is the innermost fitting one of its track, in any lane: readers look for the
/// arrow's end there. None when there is no such moment.
fn own_moment(trace: &Trace, slice: SliceId, is_fitting: fn(SliceKind) -> bool) -> Option<i64> {
    let (span, track) = (trace.slices.span(slice), trace.slices.track[slice.index()]);
    let place = |id: SliceId| (trace.slices.start_ns[id.index()], trace.slices.depth[id.index()], id);
    // Where the last of those ends that are open at `at_ns` and further in.
    let inner_end = |at_ns: i64| {
        let fitting = trace.open_slices(track, at_ns).filter(|id| is_fitting(trace.slices.kind(*id)));
        let inner = fitting.filter(|id| place(*id) > place(slice));
        inner.map(|id| trace.slices.span(id).end_ns).max()
    };
    let mut at_ns = span.start_ns;
    for _ in 0..MAX_TRIES {
        match inner_end(at_ns) {
            Some(end_ns) => at_ns = end_ns.max(at_ns + 1),
            None => return Some(at_ns),
        }
        if at_ns >= span.end_ns {
            break;
        }
    }
    None
}
