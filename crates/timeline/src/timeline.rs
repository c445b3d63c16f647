//! The rows of a trace, put in order.

use crate::class::{Class, Classes};
use crate::counters;
use crate::data_waits::{self, data_waits};
use crate::groups::{Group, GroupKind, RowInfo, RowKind};
use crate::items::{Item, Items, Source};
use crate::projections::{Projection, projections};
use crate::row::{Content, Row};
use crate::strips::{OtherWork, strips};
use crate::sum_blocks::SumBlocks;
use rustc_hash::FxHashMap;
use stepscope_base::Span;
use stepscope_trace::{DeviceId, ProcessId, SliceId, SliceKind, StepSource, Trace, TrackId, TrackKind};

/// A row's number; it holds for one timeline.
pub type RowId = u32;

/// Threads with at least this number of slices are shown open at first, beside the one that runs steps.
const SHOWN_SLICES: usize = 64;
/// Of more ranks than this each is shown as one row at first.
const OPEN_RANKS: usize = 8;

/// What a timeline shows of a trace.
#[derive(Clone, Debug)]
pub struct Timeline {
    pub(crate) rows: Vec<Row>,
    groups: Vec<Group>,
    span: Span,
    focus: Span,
    pub(crate) classes: Classes,
    /// The row of a track at depth 0, by track; rows of further depths follow it.
    pub(crate) first_row: Vec<Option<RowId>>,
    /// The row of a thread's samples, by track.
    pub(crate) sample_row: Vec<Option<RowId>>,
    pub(crate) sum_blocks: SumBlocks,
}

impl Timeline {
    /// The timeline of `trace`. Whatever it is asked later must be asked with the same trace.
    pub fn of(trace: &Trace) -> Self {
        Self::with_work(trace, None)
    }

    /// The timeline of `trace`, which lacks what devices do beside it.
    pub fn with_work(trace: &Trace, work: Option<&OtherWork>) -> Self {
        let span = trace.span().unwrap_or(Span::new(0, 0));
        let classes = Classes { of_slices: Class::of_all(trace), work: work.map(|work| work.name) };
        let mut timeline = Self {
            rows: Vec::new(),
            groups: Vec::new(),
            span,
            focus: focus(trace).unwrap_or(span),
            sum_blocks: SumBlocks::of(trace, &classes.of_slices),
            classes,
            first_row: vec![None; trace.tracks.len()],
            sample_row: vec![None; trace.tracks.len()],
        };
        let projected = projections(trace);
        let ranks = trace.ranks();
        // A single rank is never beside others.
        let mut strips =
            if ranks.len() > 1 { strips(trace, &timeline.classes.of_slices, work) } else { FxHashMap::default() };
        for rank in &ranks {
            let mut group = timeline.rank(trace, *rank, &projected);
            group.is_open = ranks.len() <= OPEN_RANKS;
            timeline.summarize_rank(trace, &mut group, strips.remove(rank));
            timeline.groups.push(group);
        }
        timeline
    }

    /// Its rows, in groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// From the first to the last event.
    pub fn span(&self) -> Span {
        self.span
    }

    /// What to show first: the complete steps, or everything.
    pub fn focus(&self) -> Span {
        self.focus
    }

    /// Number of rows; their ids are below it.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The row that a slice is drawn in.
    pub fn row_of(&self, trace: &Trace, slice: SliceId) -> Option<RowId> {
        let track = trace.slices.track[slice.index()];
        Some(self.first_row[track.index()]? + u32::from(trace.slices.depth[slice.index()]))
    }

    fn rank(
        &mut self,
        trace: &Trace,
        rank: u32,
        projected: &FxHashMap<(DeviceId, Projection), Vec<Vec<Item>>>,
    ) -> Group {
        let mut group = Group::new(format!("Rank {rank}"), rank, GroupKind::Rank);
        for (at, device) in trace.devices.iter().enumerate().filter(|(_, device)| device.rank == rank) {
            let id = DeviceId::from_index(at);
            let name = match &device.name {
                Some(name) => format!("GPU {} · {name}", device.ordinal),
                None => format!("GPU {}", device.ordinal),
            };
            let device = self.device(trace, rank, id, name, projected);
            group.groups.extend(device.filter(|group| !group.groups.is_empty() || !group.rows.is_empty()));
        }
        let of_rank = |(_, process): &(usize, &stepscope_trace::Process)| process.rank == rank;
        let processes: Vec<_> = trace.processes.iter().enumerate().filter(of_rank).collect();
        for (at, process) in &processes {
            let name = match (processes.len(), process.name.is_empty()) {
                (1, _) | (_, true) => "CPU threads".to_string(),
                _ => format!("CPU threads · {}", process.name),
            };
            let threads = self.threads(trace, rank, ProcessId::from_index(*at), name);
            group.groups.extend(threads);
        }
        let counters = self.counter_rows(trace, rank, None);
        // What a host has of them would hide the ranks behind this one.
        group.groups.extend(counters.map(|counters| Group { is_open: trace.ranks().len() == 1, ..counters }));
        group
    }

    /// A device: what ran on it for which step, module and op, then its streams, then its values.
    fn device(
        &mut self,
        trace: &Trace,
        rank: u32,
        device: DeviceId,
        name: String,
        projected: &FxHashMap<(DeviceId, Projection), Vec<Vec<Item>>>,
    ) -> Option<Group> {
        let mut group = Group::new(name, rank, GroupKind::Device);
        for projection in Projection::ALL {
            let Some(rows) = projected.get(&(device, projection)) else { continue };
            let mut track = self.drawn_again(trace, rank, projection.name(), rows);
            track.is_open = projection != Projection::Ops || !projected.contains_key(&(device, Projection::Modules));
            group.groups.push(track);
        }
        let order = |kind: TrackKind| match kind {
            TrackKind::Stream => 0,
            TrackKind::Projection => 1,
            TrackKind::StreamSync => 2,
            TrackKind::Thread | TrackKind::Other => 3,
        };
        let is_first = |id: &TrackId| {
            let track = &trace.tracks[id.index()];
            track.device == Some(device) && track.lane == 0
        };
        let mut tracks: Vec<TrackId> = (0..trace.tracks.len()).map(TrackId::from_index).filter(is_first).collect();
        tracks.sort_by_key(|id| (order(trace.tracks[id.index()].kind), trace.tracks[id.index()].stream, *id));
        let mut streams = Vec::new();
        for track in tracks {
            let is_stream = trace.tracks[track.index()].kind == TrackKind::Stream;
            let Some(rows) = self.track(trace, track, rank) else { continue };
            if is_stream {
                streams.extend(rows.rows.iter().filter(|row| row.depth == 0).map(|row| row.id));
            }
            group.groups.push(rows);
        }
        if !streams.is_empty() {
            group.summary = Some(self.density_row(rank, streams));
        }
        let counters = self.counter_rows(trace, rank, Some(device));
        group.groups.extend(counters);
        Some(group)
    }

    /// The threads of a process: those that run steps first, then by how much they did.
    fn threads(&mut self, trace: &Trace, rank: u32, process: ProcessId, name: String) -> Option<Group> {
        let mut group = Group::new(name, rank, GroupKind::Threads);
        let is_first = |id: &TrackId| {
            let track = &trace.tracks[id.index()];
            track.process == process && track.lane == 0 && track.device.is_none()
        };
        let mut tracks: Vec<TrackId> = (0..trace.tracks.len()).map(TrackId::from_index).filter(is_first).collect();
        let slices = |id: TrackId| trace.lanes(id).map(|lane| trace.tracks[lane.index()].slices.len()).sum::<usize>();
        let has_step = |id: TrackId| {
            let mut ids = trace.lanes(id).flat_map(|lane| trace.tracks[lane.index()].slice_ids());
            ids.any(|id| trace.slices.kind(id) == SliceKind::Step)
        };
        let kind = |id: TrackId| trace.tracks[id.index()].kind;
        tracks.sort_by_cached_key(|id| (kind(*id), !has_step(*id), std::cmp::Reverse(slices(*id)), *id));
        let waits = data_waits(trace, process);
        if !waits.is_empty() {
            group.groups.push(self.drawn_again(trace, rank, data_waits::NAME, &waits));
        }
        let mut outermost = Vec::new();
        for (at, track) in tracks.into_iter().enumerate() {
            if let Some(mut rows) = self.track(trace, track, rank) {
                rows.is_open = at == 0 || slices(track) >= SHOWN_SLICES && kind(track) == TrackKind::Thread;
                outermost.extend(rows.rows.iter().filter(|row| row.depth == 0).map(|row| row.id));
                group.groups.push(rows);
            }
            let samples = self.samples(trace, track, &track_name(trace, track), rank);
            group.groups.extend(samples);
        }
        group.summary = (!outermost.is_empty()).then(|| self.density_row(rank, outermost));
        (!group.groups.is_empty()).then_some(group)
    }

    /// Slices that are drawn once more, elsewhere or by themselves: a row for each of `rows`.
    fn drawn_again(&mut self, trace: &Trace, rank: u32, name: &str, rows: &[Vec<Item>]) -> Group {
        let mut group = Group::new(name, rank, GroupKind::Track);
        for (depth, items) in rows.iter().enumerate() {
            let items = Items::of(trace, Source::Own(items.clone().into()), &self.classes);
            let info = self.info(name, RowKind::Projected, rank, depth, items.len());
            group.rows.push(self.add(info, Content::Items(items)));
        }
        self.summarize(&mut group);
        group
    }

    /// A track with its lanes: a row for each depth; `None` without slices.
    fn track(&mut self, trace: &Trace, track: TrackId, rank: u32) -> Option<Group> {
        let of = &trace.tracks[track.index()];
        let mut group = Group::new(track_name(trace, track), rank, GroupKind::Track);
        for lane in trace.lanes(track).collect::<Vec<_>>() {
            let mut depths: Vec<Vec<SliceId>> = Vec::new();
            for id in trace.tracks[lane.index()].slice_ids() {
                let depth = usize::from(trace.slices.depth[id.index()]);
                if depths.len() <= depth {
                    depths.resize_with(depth + 1, Vec::new);
                }
                depths[depth].push(id);
            }
            self.first_row[lane.index()] = (!depths.is_empty()).then_some(self.rows.len() as RowId);
            let is_flat = depths.len() == 1;
            for (depth, ids) in depths.into_iter().enumerate() {
                let (first, len) = (ids[0].0, ids.len() as u32);
                let source = if is_flat { Source::Adjacent { first, len } } else { Source::Picked(ids.into()) };
                let items = Items::of(trace, source, &self.classes);
                let mut info = self.info(&group.name, RowKind::Slices, rank, depth, items.len());
                info.track = Some(track.0);
                group.rows.push(self.add(info, Content::Items(items)));
            }
        }
        if group.rows.is_empty() {
            return None;
        }
        group.is_open = of.kind != TrackKind::Projection;
        self.summarize(&mut group);
        Some(group)
    }

    fn counter_rows(&mut self, trace: &Trace, rank: u32, device: Option<DeviceId>) -> Option<Group> {
        let mut group = Group::new("Counters", rank, GroupKind::Counters);
        for (name, unit, values, samples) in counters::of(trace, rank, device) {
            let mut info = self.info(&name, RowKind::Counter, rank, 0, samples);
            info.unit = Some(unit);
            group.rows.push(self.add(info, Content::Counter(values)));
        }
        (!group.rows.is_empty()).then_some(group)
    }

    /// While a track is closed, its outermost row stands for it.
    fn summarize(&mut self, group: &mut Group) {
        group.summary = group.rows.first().map(|row| row.id);
    }

    /// While a rank is closed, its strip stands for it; where it has no device, how busy its threads are.
    fn summarize_rank(&mut self, trace: &Trace, group: &mut Group, strip: Option<Vec<Item>>) {
        let Some(items) = strip else {
            group.summary =
                group.groups.iter().find(|inner| inner.kind == GroupKind::Threads).and_then(|it| it.summary);
            return;
        };
        let items = Items::of(trace, Source::Own(items.into()), &self.classes);
        let info = self.info("Devices", RowKind::Projected, group.rank, 0, items.len());
        group.summary = Some(info.id);
        group.rows.push(self.add(info, Content::Items(items)));
    }

    fn density_row(&mut self, rank: u32, of: Vec<RowId>) -> RowId {
        let info = self.info("busy", RowKind::Density, rank, 0, 0);
        self.add(info, Content::Density(of)).id
    }

    pub(crate) fn info(&self, name: &str, kind: RowKind, rank: u32, depth: usize, slices: usize) -> RowInfo {
        let id = self.rows.len() as RowId;
        let depth = depth.try_into().unwrap_or(u16::MAX);
        RowInfo { id, name: name.to_string(), kind, depth, slices: slices as u64, unit: None, rank, track: None }
    }

    pub(crate) fn add(&mut self, info: RowInfo, content: Content) -> RowInfo {
        self.rows.push(Row { info: info.clone(), content });
        info
    }
}

/// The part of a window that can be computed with: no trace reaches beyond it.
pub(crate) fn within_reach(window: Span) -> Span {
    let near = |at_ns: i64| at_ns.clamp(-(1 << 61), 1 << 61);
    Span::new(near(window.start_ns), near(window.end_ns))
}

/// What a person calls a track: what is on it, not what the system calls it.
fn track_name(trace: &Trace, track: TrackId) -> String {
    let of = &trace.tracks[track.index()];
    match (of.kind, of.stream) {
        (TrackKind::Stream, Some(stream)) => format!("Stream {stream}"),
        (TrackKind::StreamSync, Some(stream)) => format!("Stream {stream} · waits"),
        (TrackKind::StreamSync, None) => "Waits".to_string(),
        (TrackKind::Projection, Some(stream)) => format!("Stream {stream} · labels"),
        _ if of.name.is_empty() => of.tid.map_or_else(|| "thread".to_string(), |tid| format!("thread {tid}")),
        _ => of.name.clone(),
    }
}

/// From the begin of the first complete step to the end of the last, if they are told.
fn focus(trace: &Trace) -> Option<Span> {
    let steps = trace.steps.iter().filter(|step| step.is_complete && step.source != StepSource::Whole);
    let spans = steps.map(|step| step.span);
    spans.reduce(|a, b| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiles::tests::columns;
    use stepscope_trace::drawn::drawn;

    fn told(groups: &[Group], indent: usize, lines: &mut Vec<String>) {
        for group in groups {
            lines.push(format!("{}{} ({})", " ".repeat(indent), group.name, group.rows.len()));
            told(&group.groups, indent + 1, lines);
        }
    }

    #[test]
    fn rows_are_grouped_by_rank_device_and_thread() {
        let trace = drawn(
            "rank 0 step     0000011111..
             rank 0 module 1 mmmm........
             rank 0 cpu 1    aabb..cc....
             rank 0 cpu 2    x...........
             rank 0 launch 1 .C......N...
             rank 0 stream 7 ...CC.......
             rank 0 stream 9 .........NN.
             rank 1 cpu 1    aaa.........",
        );
        let timeline = Timeline::of(&trace);
        let mut lines = Vec::new();
        told(timeline.groups(), 0, &mut lines);
        let expected = [
            "Rank 0 (1)",
            " GPU 0 (0)",
            "  Steps (1)",
            "  Modules (1)",
            "  Operators (1)",
            "  Stream 7 (1)",
            "  Stream 9 (1)",
            " CPU threads (0)",
            "  thread 1 (4)",
            "  thread 2 (1)",
        ];
        assert_eq!(lines[..expected.len()], expected, "{lines:#?}");
        assert!(lines.contains(&"Rank 1 (0)".to_string()), "{lines:#?}");
        assert_eq!(timeline.focus(), Span::new(0, 10_000));
    }

    #[test]
    fn of_many_ranks_each_is_one_row_at_first() {
        let timeline = |ranks: u32| {
            let draw = |rank| format!("rank {rank} cpu 1 aa..\nrank {rank} stream 7 CC..\nrank {rank} stream 9 .NN.\n");
            let trace = drawn(&((0..ranks).map(draw).collect::<String>() + "rank 99 cpu 1 a"));
            (Timeline::of(&trace), trace)
        };
        assert!(timeline(7).0.groups().iter().all(|group| group.is_open));
        let (many, trace) = timeline(8);
        assert!(many.groups().iter().all(|group| !group.is_open && group.summary.is_some()));
        let [strip] = &many.groups()[3].rows[..] else { panic!("one row") };
        assert_eq!((Some(strip.id), strip.kind, strip.slices), (many.groups()[3].summary, RowKind::Projected, 2));
        let tiles = columns(&many, &trace, &[strip.id], 0, 0, 1);
        assert_eq!(tiles.class[..1], [Class::Compute as u8]);
        assert_eq!(many.groups()[8].rows, []);
        assert_eq!(Timeline::of(&drawn("rank 0 stream 7 CN")).groups()[0].summary, None);
    }

    #[test]
    fn every_slice_has_a_place_in_one_row() {
        let trace = drawn("rank 0 cpu 1 aaaabbbb\nrank 0 cpu 1 .cc..d..\nrank 0 stream 7 CC.NN...");
        let timeline = Timeline::of(&trace);
        for slice in trace.slices.ids() {
            let row = timeline.row_of(&trace, slice).expect("a row");
            let Content::Items(items) = &timeline.rows[row as usize].content else { panic!("no row of slices") };
            let found = (0..items.len()).filter(|index| items.get(&trace, *index).slice == Some(slice)).count();
            assert_eq!(found, 1);
        }
        let kinds = |kind: RowKind| timeline.rows.iter().filter(move |row| row.info.kind == kind);
        let slices: u64 = kinds(RowKind::Slices).map(|row| row.info.slices).sum();
        assert_eq!(slices, trace.slices.len() as u64);
    }

    #[test]
    fn windows_may_be_of_any_size() {
        let trace = drawn("rank 0 cpu 1 aab");
        let timeline = Timeline::of(&trace);
        let names = |start_ns, end_ns| {
            let window = Span::new(start_ns, end_ns);
            assert_eq!(timeline.counters(&trace, &[0], window, 10), []);
            let list = timeline.list(&trace, &[0], window, 10).len();
            assert_eq!(timeline.sums(&trace, &[], window, crate::SumBy::Name, 10).slices, list as u64);
            list
        };
        assert_eq!([names(i64::MIN, i64::MAX), names(i64::MIN, 0), names(i64::MAX, i64::MIN)], [2, 0, 0]);
    }

    #[test]
    fn an_empty_trace_has_an_empty_timeline() {
        let timeline = Timeline::of(&Trace::default());
        assert_eq!((timeline.row_count(), timeline.groups().len(), timeline.span()), (0, 0, Span::new(0, 0)));
    }
}
