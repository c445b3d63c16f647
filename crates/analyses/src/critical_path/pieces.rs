//! Paths cut into pieces of one class and one slice.

use super::graph::{Graph, PathThread};
use super::walk::{On, walk};
use super::{CriticalPath, PathClass, of_step};
use crate::AnalysisContext;
use crate::context::Shared;
use crate::host_threads::{Doing, sweep_innermost};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::{Span, StringId};
use stepscope_trace::{DeviceEventClass, DeviceEventId, SliceId, Step, Trace, TrackId};

/// A piece of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PathPiece {
    pub(crate) span: Span,
    pub(crate) class: PathClass,
    /// What ran, innermost, or began, or returned; `None` when nothing is recorded.
    pub(crate) slice: Option<SliceId>,
    /// The thread that the path is on, or what the slice is on.
    pub(crate) track: TrackId,
}

/// The paths of all steps asked for, summed up while they are found: their pieces are as many as slices.
#[derive(Default)]
pub(crate) struct Paths {
    /// The path of every step that has a thread, by rank and start.
    pub(crate) by_step: Vec<CriticalPath>,
    /// By rank, name and class: pieces and their time.
    pub(crate) by_name: FxHashMap<(u32, Option<StringId>, PathClass), (i64, i64)>,
}

impl Paths {
    fn add(&mut self, trace: &Trace, step: &Step, span: Span, pieces: &[PathPiece]) {
        for PathPiece { span, class, slice, .. } in pieces {
            let name = slice.map(|slice| trace.slices.name[slice.index()]);
            let (pieces, ns) = self.by_name.entry((step.rank, name, *class)).or_insert((0, 0));
            (*pieces, *ns) = (*pieces + 1, *ns + span.duration_ns());
        }
        self.by_step.push(of_step(step, span, pieces));
    }
}

impl Shared for Paths {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let mut paths = Self::default();
        each_path(context, |step, span, pieces| paths.add(context.trace, step, span, pieces));
        paths
    }
}

/// Calls `found` with the path of every step asked for that has a thread: what it fills, and its pieces in order.
pub(crate) fn each_path(context: &AnalysisContext<'_>, mut found: impl FnMut(&Step, Span, &[PathPiece])) {
    let graph = Graph::of(context, &context.selection.ranks);
    for step in context.selection.steps(context.trace) {
        let Some((span, on)) = walk(&graph, &[step]) else { continue };
        let pieces = pieces(&graph, &on);
        let mut at_ns = span.start_ns;
        for piece in &pieces {
            assert_eq!(piece.span.start_ns, at_ns, "a path has no hole");
            at_ns = piece.span.end_ns;
        }
        assert_eq!(at_ns.max(span.start_ns), span.end_ns.max(span.start_ns), "a path ends with its step");
        found(step, span, &pieces);
    }
}

fn pieces(graph: &Graph<'_>, found: &[(Span, On)]) -> Vec<PathPiece> {
    let mut pieces = Vec::new();
    let mut on_thread: BTreeMap<usize, OnThread<'_>> = BTreeMap::new();
    let slice_of = |id: DeviceEventId| graph.trace.device_events.get(id).slice;
    let track_of = |slice: SliceId| graph.trace.slices.track[slice.index()];
    for (span, on) in found {
        let (class, slice) = match on {
            On::Host(thread) => {
                on_thread.entry(*thread).or_insert_with(|| OnThread::new(&graph.threads[*thread])).add(*span);
                continue;
            }
            On::Device(id) => (device_class(graph.trace, *id), slice_of(*id)),
            On::Communication(slice) | On::Transfer(slice) => (PathClass::Communication, *slice),
            On::LaunchLatency(slice) => (PathClass::LaunchLatency, *slice),
            On::QueueWait(slice) => (PathClass::QueueWait, *slice),
            On::Return(call) => (PathClass::HostSync, *call),
        };
        pieces.push(PathPiece { span: *span, class, slice: Some(slice), track: track_of(slice) });
    }
    for (thread, own) in on_thread {
        by_slice(graph, thread, &own.parts, &mut pieces);
    }
    pieces.sort_by_key(|piece| piece.span);
    pieces
}

/// The class of a device event's time.
pub(crate) fn device_class(trace: &Trace, id: DeviceEventId) -> PathClass {
    match trace.device_events.get(id).class {
        DeviceEventClass::Compute => PathClass::Compute,
        DeviceEventClass::Communication => PathClass::Communication,
        DeviceEventClass::Memcpy(_) | DeviceEventClass::Memset => PathClass::Copy,
    }
}

/// What a thread can be in, first what hides the others.
const DOINGS: [(Doing, PathClass); 4] = [
    (Doing::HostSync, PathClass::HostSync),
    (Doing::DataLoader, PathClass::DataLoader),
    (Doing::ApiCall, PathClass::Runtime),
    (Doing::Op, PathClass::HostOp),
];

/// What one thread did on a path.
pub(super) struct OnThread<'a> {
    spans: [&'a [Span]; DOINGS.len()],
    /// The first of each that may still be ahead.
    next: [usize; DOINGS.len()],
    pub(super) parts: Vec<(Span, PathClass)>,
}

impl<'a> OnThread<'a> {
    pub(super) fn new(thread: &PathThread<'a>) -> Self {
        Self { spans: DOINGS.map(|(doing, _)| thread.doings.doing(doing).spans()), next: [0; 4], parts: Vec::new() }
    }

    /// Adds what it did in `span`, which lies after all before.
    pub(super) fn add(&mut self, span: Span) {
        let Self { spans, next, parts } = self;
        if parts.is_empty() {
            *next = spans.map(|spans| spans.partition_point(|own| own.end_ns <= span.start_ns));
        }
        let mut at_ns = span.start_ns;
        while at_ns < span.end_ns {
            // The first that is open counts until it ends or one before it in the order begins.
            let (mut class, mut end_ns) = (PathClass::Other, span.end_ns);
            for (row, (_, of_row)) in DOINGS.iter().enumerate() {
                next[row] += spans[row][next[row]..].iter().take_while(|own| own.end_ns <= at_ns).count();
                match spans[row].get(next[row]) {
                    Some(own) if own.start_ns <= at_ns => {
                        (class, end_ns) = (*of_row, end_ns.min(own.end_ns));
                        break;
                    }
                    Some(own) => end_ns = end_ns.min(own.start_ns),
                    None => {}
                }
            }
            match parts.last_mut() {
                Some((last, of_last)) if last.end_ns == at_ns && *of_last == class => last.end_ns = end_ns,
                _ => parts.push((Span::new(at_ns, end_ns), class)),
            }
            at_ns = end_ns;
        }
    }
}

/// Adds `parts`, ascending, cut by what the thread's first lane is in.
fn by_slice(graph: &Graph<'_>, thread: usize, parts: &[(Span, PathClass)], pieces: &mut Vec<PathPiece>) {
    let spans: Vec<Span> = parts.iter().map(|(span, _)| *span).collect();
    let (first, track) = (pieces.len(), graph.threads[thread].track);
    sweep_innermost(graph.trace, track, &spans, |part, slice, span| {
        pieces.push(PathPiece { span, class: parts[part].1, slice: Some(slice), track });
    });
    let mut named = pieces[first..].iter().map(|piece| piece.span).peekable();
    let mut unnamed = Vec::new();
    for (span, class) in parts {
        let mut at_ns = span.start_ns;
        let mut hole = |from_ns: i64, to_ns: i64| {
            if from_ns < to_ns {
                unnamed.push(PathPiece { span: Span::new(from_ns, to_ns), class: *class, slice: None, track });
            }
        };
        while let Some(next) = named.next_if(|next| next.end_ns <= span.end_ns) {
            hole(at_ns, next.start_ns);
            at_ns = next.end_ns;
        }
        hole(at_ns, span.end_ns);
    }
    pieces.extend(unnamed);
}
