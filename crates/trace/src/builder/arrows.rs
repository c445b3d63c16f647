//! Edges that a source gives as two points (a track and a time each), resolved to slices.

use crate::{FindingCode, Flow, FlowKind, SliceId, SliceKind, Trace, TrackId};

/// An edge between two points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub(super) kind: FlowKind,
    pub(super) from: (TrackId, i64),
    pub(super) to: (TrackId, i64),
}

/// Resolves the arrows of one kind: adds their flows, but returns launches as (launch, device event). What touches no
/// fitting slice is a finding, but for launches: a device event that stays without one is a finding of its own, and
/// profilers draw such arrows to synchronisations too.
pub(super) fn resolve(
    trace: &mut Trace,
    arrows: &[Arrow],
    kind: FlowKind,
    track_of: impl Fn(TrackId) -> TrackId,
) -> Vec<(SliceId, SliceId)> {
    let mut launches = Vec::new();
    for arrow in arrows.iter().filter(|arrow| arrow.kind == kind) {
        let at = |(track, at_ns): (TrackId, i64)| (track_of(track), at_ns);
        let is_api = SliceKind::is_api_call;
        let is_op = |kind: SliceKind| kind == SliceKind::Op;
        let ends = match arrow.kind {
            FlowKind::Launch => {
                (innermost(trace, at(arrow.from), is_api), innermost(trace, at(arrow.to), SliceKind::is_device_event))
            }
            FlowKind::ForwardBackward | FlowKind::Batch => {
                (innermost(trace, at(arrow.from), is_op), innermost(trace, at(arrow.to), is_op))
            }
        };
        match (ends, arrow.kind) {
            ((Some(launch), Some(event)), FlowKind::Launch) => launches.push((launch, event)),
            (_, FlowKind::Launch) => {}
            ((Some(from), Some(to)), kind) => trace.flows.push(Flow { from, to, kind }),
            _ => trace.findings.add(FindingCode::UnlinkedFlow, || {
                format!("{:?} arrow from {} ns to {} ns", arrow.kind, arrow.from.1, arrow.to.1)
            }),
        }
    }
    launches
}

/// The slice of a fitting kind that is open at a point and started last.
fn innermost(trace: &Trace, (track, at_ns): (TrackId, i64), is_fitting: impl Fn(SliceKind) -> bool) -> Option<SliceId> {
    let fitting = trace.open_slices(track, at_ns).filter(|id| is_fitting(trace.slices.kind(*id)));
    fitting.max_by_key(|id| (trace.slices.start_ns[id.index()], trace.slices.depth[id.index()]))
}
