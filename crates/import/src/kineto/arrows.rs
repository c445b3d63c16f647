//! The source's arrows: their two ends come as separate rows, joined by an id.

use super::categories::Category;
use super::tracks::{Row, Tracks};
use rustc_hash::FxHashMap;
use stepscope_trace::{FindingCode, Findings, FlowKind, TraceBuilder, TrackId};

/// Ids from here on belong to edges of a device graph, not to launches.
const FIRST_GRAPH_EDGE_ID: i64 = 1 << 40;

/// One end of an arrow.
#[derive(Clone, Copy, Debug)]
struct End {
    id: i64,
    time_ns: i64,
    /// Index into [`Arrows::rows`].
    row: u32,
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
    /// Where they begin and end, each once.
    rows: Vec<Row>,
    row_ids: FxHashMap<Row, u32>,
    launches: Ends,
    forward_backward: Ends,
}

impl Arrows {
    /// Makes room for `ends` of arrows, most of which are of one kind.
    pub(super) fn make_room(&mut self, ends: usize) {
        for half in [&mut self.launches.starts, &mut self.launches.finishes] {
            half.reserve_exact(ends / 2);
        }
    }

    /// The number of a row, for [`Arrows::add`].
    pub(super) fn row(&mut self, row: Row) -> u32 {
        *self.row_ids.entry(row).or_insert_with(|| {
            self.rows.push(row);
            self.rows.len() as u32 - 1
        })
    }

    /// Adds one end. Other arrows than launches and forward→backward are left out, with a finding.
    pub(super) fn add(
        &mut self,
        is_start: bool,
        category: Category,
        id: Option<i64>,
        (row, time_ns): (u32, i64),
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

    /// Gives whole arrows to the builder. Half a launch arrow carries nothing (the source draws one for each API call
    /// that enqueued no work, and a device event without its launch is a finding of its own); half of another is a
    /// finding.
    pub(super) fn finish(self, builder: &mut TraceBuilder, tracks: &Tracks) {
        let threads: Vec<Option<TrackId>> = self.rows.iter().map(|row| tracks.known_thread(*row)).collect();
        let streams: Vec<Option<TrackId>> = self.rows.iter().map(|row| tracks.known_stream(*row)).collect();
        let begin = |start: &End| Some((threads[start.row as usize]?, start.time_ns));
        self.launches.join(|_, start, finish| {
            if let Some((from, to)) = start.and_then(begin).zip(streams[finish.row as usize]) {
                builder.add_arrow(FlowKind::Launch, from, (to, finish.time_ns));
            }
        });
        self.forward_backward.join(|id, start, finish| match start.and_then(begin).zip(threads[finish.row as usize]) {
            Some((from, to)) => builder.add_arrow(FlowKind::ForwardBackward, from, (to, finish.time_ns)),
            None => builder.findings.add(FindingCode::UnlinkedFlow, || format!("ForwardBackward arrow {id}")),
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
