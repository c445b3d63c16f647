//! Arrows: from an API call to the device work it enqueued, from a forward op to its backward node.

use super::{Document, joining_id};
use std::io;
use stepscope_trace::{FlowKind, SliceId, SliceKind, Trace};

/// How many children are passed by to find a moment of an op's own.
const MAX_TRIES: usize = 1_000;

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let trace = document.trace;
    let mut last_launch = None;
    for (flow, number) in trace.flows.iter().zip(1..) {
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
                    write_end(document, "s", "ac2g", id, (flow.from, start_ns(flow.from)))?;
                }
                last_launch = Some(flow.from);
                write_end(document, "f", "ac2g", id, (flow.to, end_ns))?;
            }
            FlowKind::ForwardBackward => {
                let is_op = |kind| kind == SliceKind::Op;
                let moment = |slice| (slice, own_moment(trace, slice, is_op).unwrap_or(start_ns(slice)));
                write_end(document, "s", "fwdbwd", number, moment(flow.from))?;
                write_end(document, "f", "fwdbwd", number, moment(flow.to))?;
            }
        }
    }
    Ok(())
}

fn write_end(
    document: &mut Document<'_>,
    phase: &str,
    category: &str,
    id: i64,
    (slice, at_ns): (SliceId, i64),
) -> io::Result<()> {
    let row = document.row_of(slice);
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
    let innermost = |at_ns: i64| {
        let fitting = trace.open_slices(track, at_ns).filter(|id| is_fitting(trace.slices.kind(*id)));
        fitting.max_by_key(|id| (trace.slices.start_ns[id.index()], trace.slices.depth[id.index()]))
    };
    let mut at_ns = span.start_ns;
    for _ in 0..MAX_TRIES {
        match innermost(at_ns).filter(|innermost| *innermost != slice) {
            Some(inside) => at_ns = trace.slices.span(inside).end_ns.max(at_ns + 1),
            None => return Some(at_ns),
        }
        if at_ns >= span.end_ns {
            break;
        }
    }
    None
}
