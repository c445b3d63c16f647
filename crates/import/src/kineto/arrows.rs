//! The source's arrows: their two ends come as separate rows, joined by an id.

use super::categories::Category;
use super::tracks::{Row, Tracks};
use rustc_hash::FxHashMap;
use stepscope_trace::{FindingCode, Findings, FlowKind, TraceBuilder};

/// Ids from here on belong to edges of a device graph, not to launches.
const FIRST_GRAPH_EDGE_ID: i64 = 1 << 40;

/// Ends of arrows met so far.
#[derive(Debug, Default)]
pub(super) struct Arrows {
    starts: FxHashMap<(FlowKind, i64), (Row, i64)>,
    finishes: Vec<(FlowKind, i64, Row, i64)>,
}

impl Arrows {
    /// Adds one end. Other arrows than launches and forward→backward are left out, with a finding.
    pub(super) fn add(
        &mut self,
        is_start: bool,
        category: Category,
        id: Option<i64>,
        (row, time_ns): (Row, i64),
        findings: &mut Findings,
    ) {
        let kind = match category {
            Category::LaunchFlow => Some(FlowKind::Launch),
            Category::ForwardBackwardFlow => Some(FlowKind::ForwardBackward),
            _ => None,
        };
        let is_graph_edge = kind == Some(FlowKind::Launch) && id >= Some(FIRST_GRAPH_EDGE_ID);
        match kind.zip(id).filter(|_| !is_graph_edge) {
            Some(key) if is_start => drop(self.starts.insert(key, (row, time_ns))),
            Some((kind, id)) => self.finishes.push((kind, id, row, time_ns)),
            None => findings.add(FindingCode::UnsupportedEvent, || {
                format!("arrow {}", id.map_or("without id".into(), |id| id.to_string()))
            }),
        }
    }

    /// Gives whole arrows to the builder. Half a launch arrow carries nothing (the source draws one for each API call that
    /// enqueued no work, and a device event without its launch is a finding of its own); half of another is a finding.
    pub(super) fn finish(self, builder: &mut TraceBuilder, tracks: &Tracks) {
        for (kind, id, row, time_ns) in self.finishes {
            let to = match kind {
                FlowKind::Launch => tracks.known_stream(row),
                FlowKind::ForwardBackward => tracks.known_thread(row),
            };
            let start = self.starts.get(&(kind, id));
            let from = start.and_then(|(row, time_ns)| Some((tracks.known_thread(*row)?, *time_ns)));
            match from.zip(to) {
                Some((from, to)) => builder.add_arrow(kind, from, (to, time_ns)),
                None if kind == FlowKind::Launch => {}
                None => builder.findings.add(FindingCode::UnlinkedFlow, || format!("{kind:?} arrow {id}")),
            }
        }
    }
}
