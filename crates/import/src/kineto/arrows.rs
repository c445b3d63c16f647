//! The source's arrows: their two ends come as separate rows, joined by an id.

use super::categories::Category;
use super::tracks::{Row, Tracks};
use stepscope_trace::{FindingCode, Findings, FlowKind, TraceBuilder};

/// Ids from here on belong to edges of a device graph, not to launches.
const FIRST_GRAPH_EDGE_ID: i64 = 1 << 40;

/// One end of an arrow.
#[derive(Clone, Copy, Debug)]
struct End {
    id: i64,
    row: Row,
    time_ns: i64,
}

/// The two ends of one kind of arrows.
#[derive(Debug, Default)]
struct Ends {
    starts: Vec<End>,
    finishes: Vec<End>,
}

/// Ends of arrows met so far.
#[derive(Debug, Default)]
pub(super) struct Arrows {
    launches: Ends,
    forward_backward: Ends,
}

impl Arrows {
    /// Makes room for `times` as many as were added so far.
    pub(super) fn expect_more(&mut self, times: f64) {
        for ends in [&mut self.launches, &mut self.forward_backward] {
            for half in [&mut ends.starts, &mut ends.finishes] {
                half.reserve_exact((half.len() as f64 * times) as usize);
            }
        }
    }

    /// Adds one end. Other arrows than launches and forward→backward are left out, with a finding.
    pub(super) fn add(
        &mut self,
        is_start: bool,
        category: Category,
        id: Option<i64>,
        (row, time_ns): (Row, i64),
        findings: &mut Findings,
    ) {
        let is_graph_edge = category == Category::LaunchFlow && id >= Some(FIRST_GRAPH_EDGE_ID);
        let ends = match category {
            Category::LaunchFlow if !is_graph_edge => Some(&mut self.launches),
            Category::ForwardBackwardFlow => Some(&mut self.forward_backward),
            _ => None,
        };
        match ends.zip(id) {
            Some((ends, id)) if is_start => ends.starts.push(End { id, row, time_ns }),
            Some((ends, id)) => ends.finishes.push(End { id, row, time_ns }),
            None => findings.add(FindingCode::UnsupportedEvent, || {
                format!("arrow {}", id.map_or("without id".into(), |id| id.to_string()))
            }),
        }
    }

    /// Gives whole arrows to the builder. Half a launch arrow carries nothing (the source draws one for each API call that
    /// enqueued no work, and a device event without its launch is a finding of its own); half of another is a finding.
    pub(super) fn finish(self, builder: &mut TraceBuilder, tracks: &Tracks) {
        self.launches.join(|_, start, finish| {
            let from = start.and_then(|start| Some((tracks.known_thread(start.row)?, start.time_ns)));
            if let Some((from, to)) = from.zip(tracks.known_stream(finish.row)) {
                builder.add_arrow(FlowKind::Launch, from, (to, finish.time_ns));
            }
        });
        self.forward_backward.join(|id, start, finish| {
            let from = start.and_then(|start| Some((tracks.known_thread(start.row)?, start.time_ns)));
            match from.zip(tracks.known_thread(finish.row)) {
                Some((from, to)) => builder.add_arrow(FlowKind::ForwardBackward, from, (to, finish.time_ns)),
                None => builder.findings.add(FindingCode::UnlinkedFlow, || format!("ForwardBackward arrow {id}")),
            }
        });
    }
}

impl Ends {
    /// Each finish with the last start of its id.
    fn join(mut self, mut whole: impl FnMut(i64, Option<&End>, &End)) {
        // Stable: of several starts the last one holds. Sources write ids in order, which makes this cheap.
        self.starts.sort_by_key(|end| end.id);
        self.finishes.sort_by_key(|end| end.id);
        let mut starts = self.starts.iter().peekable();
        let mut last: Option<&End> = None;
        for finish in &self.finishes {
            while let Some(start) = starts.next_if(|start| start.id <= finish.id) {
                last = Some(start);
            }
            whole(finish.id, last.filter(|start| start.id == finish.id), finish);
        }
    }
}
