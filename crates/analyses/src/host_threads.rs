//! What the threads of a process did and when: what the analyses of waiting share.
//!
//! ```text
//! thread    ░░op░░░░░░  ·python·  ░░sync░░
//! recorded  ██████████████████████████████
//! ```

use crate::AnalysisContext;
use crate::context::Shared;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{FlowKind, ProcessId, SliceId, SliceKind, Trace, Track, TrackId, TrackKind};

/// What a thread does, in the order in which one thing hides another at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Doing {
    /// Waits for the device.
    HostSync,
    /// Waits for its next batch.
    DataLoader,
    /// Is inside a call of the device's API.
    ApiCall,
    /// Is inside an operator.
    Op,
    /// Is inside anything else that was recorded.
    Recorded,
    /// Is inside a call on a file.
    Io,
}

impl Doing {
    const COUNT: usize = 6;

    /// What a slice of this kind says that its thread does.
    fn of(kind: SliceKind) -> Self {
        match kind {
            SliceKind::HostSync => Self::HostSync,
            SliceKind::DataLoader => Self::DataLoader,
            SliceKind::Runtime | SliceKind::Driver => Self::ApiCall,
            SliceKind::Op => Self::Op,
            SliceKind::Io => Self::Io,
            _ => Self::Recorded,
        }
    }
}

/// When a thread does what, over all its lanes. `Recorded` is the time in which anything at all is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    sets: [IntervalSet; Doing::COUNT],
}

impl Thread {
    /// When it waits, loads, calls or runs an operator: all but labels, frames and files.
    pub(crate) fn work(&self) -> IntervalSet {
        let parts = self.sets[..Doing::Recorded as usize].iter();
        parts.flat_map(|set| set.spans().iter().copied()).collect()
    }

    /// When it does this.
    pub(crate) fn doing(&self, what: Doing) -> &IntervalSet {
        &self.sets[what as usize]
    }
}

/// The track of a thread, whatever lane `track` is.
pub(crate) fn first_lane(trace: &Trace, track: TrackId) -> TrackId {
    TrackId::from_index(track.index() - trace.tracks[track.index()].lane as usize)
}

/// What each thread does, by its first lane. A thread is looked at when it is first needed.
pub(crate) struct Threads(Vec<OnceLock<Thread>>);

impl Shared for Threads {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self(context.trace.tracks.iter().map(|_| OnceLock::new()).collect())
    }
}

impl Threads {
    /// One thread of `trace`, by its first lane.
    pub(crate) fn get(&self, trace: &Trace, first: TrackId) -> &Thread {
        self.0[first.index()].get_or_init(|| thread(trace, first))
    }
}

fn thread(trace: &Trace, first: TrackId) -> Thread {
    let mut lanes = trace.lanes(first).map(|lane| of_lane(trace, lane));
    let thread = lanes.next().unwrap_or_default();
    let overflow: Vec<Thread> = lanes.collect();
    if overflow.is_empty() {
        return thread;
    }
    let all = |what: usize| {
        let lanes = std::iter::once(&thread).chain(&overflow);
        lanes.flat_map(|lane| lane.sets[what].spans().iter().copied()).collect()
    };
    Thread { sets: std::array::from_fn(all) }
}

/// What one lane of a thread holds.
fn of_lane(trace: &Trace, lane: TrackId) -> Thread {
    let mut sets: [IntervalSet; Doing::COUNT] = Default::default();
    // What lies inside a slice of its own sort adds nothing.
    let mut covered_ns = [i64::MIN; Doing::COUNT];
    for id in trace.tracks[lane.index()].slice_ids() {
        let span = trace.slices.span(id);
        for what in [Doing::of(trace.slices.kind(id)), Doing::Recorded] {
            if span.end_ns > covered_ns[what as usize] {
                covered_ns[what as usize] = span.end_ns;
                sets[what as usize].push(span);
            }
        }
    }
    Thread { sets }
}

/// The threads on which the backward pass of what a thread ran takes place, by its first lane: PyTorch has one for each
/// device, and who asks for the pass waits for it.
pub(crate) struct BackwardThreads(BTreeMap<TrackId, BTreeSet<TrackId>>);

impl Shared for BackwardThreads {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let trace = context.trace;
        let thread = |slice: SliceId| first_lane(trace, trace.slices.track[slice.index()]);
        let mut threads = BTreeMap::<TrackId, BTreeSet<TrackId>>::new();
        for flow in trace.flows.iter().filter(|flow| flow.kind == FlowKind::ForwardBackward) {
            let (from, to) = (thread(flow.from), thread(flow.to));
            if from != to {
                threads.entry(from).or_default().insert(to);
            }
        }
        Self(threads)
    }
}

impl BackwardThreads {
    /// Those of a thread.
    pub(crate) fn of(&self, first: TrackId) -> impl Iterator<Item = TrackId> {
        self.0.get(&first).into_iter().flatten().copied()
    }

    /// Whether a thread runs passes for another one that runs none for it, as where they are computed again.
    fn has(&self, first: TrackId) -> bool {
        self.0.iter().any(|(from, threads)| threads.contains(&first) && self.of(first).all(|thread| thread != *from))
    }
}

/// The thread of each process that something is recorded of for the longest time: where the program runs. Collectives that
/// a thread of the backend carries out are none of it, and a thread that runs backward passes for others is not it.
pub(crate) struct MainThreads(pub(crate) BTreeMap<ProcessId, TrackId>);

impl Shared for MainThreads {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self(main_threads(context.trace, context.get()))
    }
}

fn main_threads(trace: &Trace, backward: &BackwardThreads) -> BTreeMap<ProcessId, TrackId> {
    let mut longest: BTreeMap<ProcessId, (i64, TrackId)> = BTreeMap::new();
    let is_thread = |track: &&(usize, &Track)| track.1.kind == TrackKind::Thread && track.1.lane == 0;
    for (at, track) in trace.tracks.iter().enumerate().filter(|row| is_thread(&row)) {
        let id = TrackId::from_index(at);
        let recorded_ns = if backward.has(id) { -1 } else { recorded_ns(trace, id) };
        let best = longest.entry(track.process).or_insert((recorded_ns, id));
        if recorded_ns > best.0 {
            *best = (recorded_ns, id);
        }
    }
    longest.into_iter().map(|(process, (_, track))| (process, track)).collect()
}

/// Time in which a slice is open on the first lane that is not the work of a collective.
fn recorded_ns(trace: &Trace, track: TrackId) -> i64 {
    let is_work = |id: SliceId| {
        let says = || trace.collectives.binary_search_by_key(&id, |said| said.slice).is_ok();
        trace.slices.kind(id) == SliceKind::Annotation && says()
    };
    let outermost = trace.tracks[track.index()].slice_ids().filter(|id| trace.slices.depth[id.index()] == 0);
    outermost.filter(|id| !is_work(*id)).fold(0_i64, |sum, id| sum.saturating_add(trace.slices.dur_ns[id.index()]))
}

/// When the profiler itself took time, by process.
pub(crate) fn overhead(trace: &Trace) -> FxHashMap<ProcessId, IntervalSet> {
    let mut spans: FxHashMap<ProcessId, Vec<Span>> = FxHashMap::default();
    let ids = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Overhead);
    for id in ids {
        let process = trace.tracks[trace.slices.track[id.index()].index()].process;
        spans.entry(process).or_default().push(trace.slices.span(id));
    }
    spans.into_iter().map(|(process, spans)| (process, IntervalSet::from_unsorted(spans))).collect()
}

/// For each of `parts`, ascending and disjoint, the slice that is the innermost on the first lane for the longest time
/// in it, and for how long; of several the first. One sweep over the lane; `each` sees every piece.
pub(crate) fn innermost_of(
    trace: &Trace,
    first: TrackId,
    parts: &[Span],
    mut each: impl FnMut(usize, SliceId, i64),
) -> Vec<Option<(SliceId, i64)>> {
    let mut longest: Vec<Option<(SliceId, i64)>> = vec![None; parts.len()];
    // A slice can be the innermost in several pieces of one part.
    let mut of_part: Vec<(SliceId, i64)> = Vec::new();
    let mut last_part = 0;
    let mut close = |of_part: &mut Vec<(SliceId, i64)>, part: usize| {
        of_part.sort_unstable_by_key(|(id, _)| *id);
        let of_slice =
            of_part.chunk_by(|a, b| a.0 == b.0).map(|same| (same[0].0, same.iter().map(|piece| piece.1).sum()));
        longest[part] = of_slice.reduce(|a: (SliceId, i64), b| if b.1 > a.1 { b } else { a });
        of_part.clear();
    };
    sweep_innermost(trace, first, parts, |part, id, span| {
        if part != last_part {
            close(&mut of_part, last_part);
            last_part = part;
        }
        each(part, id, span.duration_ns());
        of_part.push((id, span.duration_ns()));
    });
    if !parts.is_empty() {
        close(&mut of_part, last_part);
    }
    longest
}

/// Calls `found` with every piece of `parts`, ascending and disjoint, in which one slice is the innermost of the first
/// lane: the part's number, the slice, the piece. Pieces come in order of time.
pub(crate) fn sweep_innermost(
    trace: &Trace,
    first: TrackId,
    parts: &[Span],
    mut found: impl FnMut(usize, SliceId, Span),
) {
    let (Some(from), Some(to)) = (parts.first(), parts.last()) else { return };
    let rows = trace.tracks[first.index()].slices.clone();
    let starts = &trace.slices.start_ns[rows.start as usize..rows.end as usize];
    let inside = starts.partition_point(|start_ns| *start_ns < from.start_ns) as u32
        ..starts.partition_point(|start_ns| *start_ns < to.end_ns) as u32;
    let before = inside.start.checked_sub(1).map(|last| SliceId(rows.start + last));
    let mut open: Vec<SliceId> = before.map_or(vec![], |last| trace.slices.with_ancestors(last).collect());
    open.reverse();
    let (mut part, mut from_ns) = (0, from.start_ns);
    let mut piece = |id: Option<&SliceId>, span: Span| {
        while parts.get(part).is_some_and(|part| part.end_ns <= span.start_ns) {
            part += 1;
        }
        let inside = parts.iter().enumerate().skip(part).take_while(|(_, part)| part.start_ns < span.end_ns);
        let pieces = inside.map(|(at, part)| (at, part.intersect(span))).filter(|(_, piece)| !piece.is_empty());
        pieces.for_each(|(at, piece)| id.into_iter().for_each(|id| found(at, *id, piece)));
    };
    for id in inside.map(|row| SliceId(rows.start + row)) {
        let start_ns = trace.slices.start_ns[id.index()];
        while let Some(last) = open.last().filter(|last| trace.slices.span(**last).end_ns <= start_ns) {
            let end_ns = trace.slices.span(*last).end_ns;
            piece(Some(last), Span::new(from_ns, end_ns));
            from_ns = end_ns.max(from_ns);
            open.pop();
        }
        piece(open.last(), Span::new(from_ns, start_ns));
        from_ns = start_ns.max(from_ns);
        open.push(id);
    }
    while let Some(last) = open.pop() {
        let end_ns = trace.slices.span(last).end_ns;
        piece(Some(&last), Span::new(from_ns, end_ns));
        from_ns = end_ns.max(from_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use proptest::prelude::*;
    use stepscope_trace::Flow;
    use stepscope_trace::drawn::{drawn, drawn_with_collectives};

    fn main(trace: &Trace) -> Vec<TrackId> {
        AnalysisContext::new(trace, &Selection::default()).get::<MainThreads>().0.values().copied().collect()
    }

    #[test]
    fn a_thread_that_runs_backward_passes_is_not_where_the_program_runs() {
        let mut trace = drawn("rank 0 cpu 1 f.......\nrank 0 cpu 2 ..bbbbb.");
        assert_eq!(main(&trace), [TrackId(1)]);
        trace.flows.push(Flow { from: SliceId(0), to: SliceId(1), kind: FlowKind::ForwardBackward });
        assert_eq!(main(&trace), [TrackId(0)]);
        // Each for the other: none of them is only there for that.
        trace.flows.push(Flow { from: SliceId(1), to: SliceId(0), kind: FlowKind::ForwardBackward });
        assert_eq!(main(&trace), [TrackId(1)]);
    }

    #[test]
    fn what_a_backend_carries_out_is_not_where_the_program_runs() {
        let drawing = "rank 0 cpu 1 aa.a....\nrank 0 label 2 ..wwww.w";
        assert_eq!(main(&drawn(drawing)), [TrackId(1)]);
        let works = [("w", SliceKind::Annotation, ("allreduce", "Float", Some(1), None))];
        assert_eq!(main(&drawn_with_collectives(drawing, &works)), [TrackId(0)]);
    }

    proptest! {
        #[test]
        fn the_innermost_is_the_deepest_cell(outer in "[.ab|]{30}", inner in "[.cd|]{30}", cuts in prop::collection::vec(0_i64..30, 6)) {
            let trace = drawn(&format!("rank 0 cpu 1 x\nrank 0 cpu 1 {outer}\nrank 0 cpu 1 {inner}"));
            let mut cuts = cuts;
            cuts.sort_unstable();
            let parts: Vec<Span> = cuts.chunks(2).map(|cut| Span::new(cut[0] * 1_000, cut[1] * 1_000)).collect();
            let first = TrackId(0);
            let mut found = vec![None; 30];
            sweep_innermost(&trace, first, &parts, |part, id, span| {
                for us in span.start_ns / 1_000..span.end_ns / 1_000 {
                    assert!(parts[part].contains(us * 1_000) && found[us as usize].is_none());
                    found[us as usize] = Some(id);
                }
            });
            for us in 0..30_i64 {
                let is_inside = parts.iter().any(|part| part.contains(us * 1_000));
                let open = trace.tracks[0].slice_ids().filter(|id| trace.slices.span(*id).contains(us * 1_000));
                let deepest = open.max_by_key(|id| trace.slices.depth[id.index()]);
                prop_assert_eq!(found[us as usize], deepest.filter(|_| is_inside));
            }
            for (part, longest) in parts.iter().zip(innermost_of(&trace, first, &parts, |_, _, _| ())) {
                let cells = (part.start_ns / 1_000..part.end_ns / 1_000).filter_map(|us| found[us as usize]);
                let mut counts: BTreeMap<SliceId, i64> = BTreeMap::new();
                cells.for_each(|id| *counts.entry(id).or_insert(0) += 1_000);
                let expected = counts.iter().max_by_key(|(id, ns)| (**ns, std::cmp::Reverse(**id)));
                prop_assert_eq!(longest, expected.map(|(id, ns)| (*id, *ns)));
            }
        }
    }

    #[test]
    fn what_a_thread_does_is_the_same_on_every_lane() {
        let trace = drawn(
            "rank 0 label 1  lllllllll.
             rank 0 cpu 1    .aaa......
             rank 0 cpu 1    ...bbb....
             rank 0 sync 1   ....s.....
             rank 0 input 1  .......ii.
             rank 0 cpu 2    a.........",
        );
        let thread = thread(&trace, TrackId(0));
        let spans = |what: Doing| {
            thread.doing(what).spans().iter().map(|span| (span.start_ns, span.end_ns)).collect::<Vec<_>>()
        };
        assert_eq!(spans(Doing::Op), [(1_000, 6_000)]);
        assert_eq!(spans(Doing::HostSync), [(4_000, 5_000)]);
        assert_eq!(spans(Doing::Recorded), [(0, 9_000)]);
        assert_eq!(main(&trace), [TrackId(0)]);
        assert_eq!(first_lane(&trace, TrackId(1)), TrackId(0));
    }
}
