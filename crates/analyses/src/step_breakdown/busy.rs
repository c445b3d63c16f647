//! When each class is busy, before it is decided which one counts.

use super::{CLASSES, ORDER, TENSORBOARD_ORDER};
use crate::AnalysisContext;
use crate::device_busy::DeviceBusy;
use crate::host_threads::{Doing, Threads};
use rustc_hash::FxHashMap;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{ProcessId, SliceKind, Step, Trace, TrackId};

/// When each class is busy: device classes (0..4) by rank, host classes (4..8) by process.
pub(super) struct Busy {
    /// The classes, the one that counts first.
    pub(super) order: [usize; CLASSES - 1],
    of_rank: FxHashMap<(u32, usize), IntervalSet>,
    of_process: FxHashMap<(ProcessId, usize), IntervalSet>,
}

impl Busy {
    /// Sums up all devices of a rank, and all threads of a process.
    pub(super) fn of(context: &AnalysisContext<'_>, is_compat: bool) -> Self {
        let mut of_rank: FxHashMap<(u32, usize), IntervalSet> = FxHashMap::default();
        for (device, busy) in context.trace.devices.iter().zip(context.get::<Vec<DeviceBusy>>()) {
            for (class, set) in [&busy.compute, &busy.comm, &busy.memcpy, &busy.memset].into_iter().enumerate() {
                let sum = of_rank.entry((device.rank, class)).or_default();
                *sum = sum.union(set);
            }
        }
        let host = if is_compat { host_spans_of_tensorboard(context.trace) } else { host_spans(context) };
        let of_process = host.into_iter().map(|(key, spans)| (key, IntervalSet::from_unsorted(spans))).collect();
        let order = if is_compat { TENSORBOARD_ORDER } else { ORDER };
        Self { order, of_rank, of_process }
    }

    /// When `class` is busy where the step runs; `None` when it never is.
    pub(super) fn class(&self, step: &Step, class: usize) -> Option<&IntervalSet> {
        if class < 4 { self.of_rank.get(&(step.rank, class)) } else { self.of_process.get(&(step.process, class)) }
    }
}

/// The spans of each host class by process, in any order.
type HostSpans = FxHashMap<(ProcessId, usize), Vec<Span>>;

/// When the threads of each process are busy with each host class.
fn host_spans(context: &AnalysisContext<'_>) -> HostSpans {
    let (mut spans, threads) = (HostSpans::default(), context.get::<Threads>());
    for (at, track) in context.trace.tracks.iter().enumerate().filter(|(_, track)| track.lane == 0) {
        let thread = threads.get(context.trace, TrackId::from_index(at));
        let classes =
            [(Doing::HostSync, 4), (Doing::ApiCall, 4), (Doing::DataLoader, 5), (Doing::Io, 6), (Doing::Op, 7)];
        for (doing, class) in classes.into_iter().filter(|(doing, _)| !thread.doing(*doing).is_empty()) {
            spans.entry((track.process, class)).or_default().extend(thread.doing(doing).spans());
        }
    }
    spans
}

/// The same by the TensorBoard plugin's classes.
fn host_spans_of_tensorboard(trace: &Trace) -> HostSpans {
    let mut host = HostSpans::default();
    for track in &trace.tracks {
        let mut of_class: [Vec<Span>; CLASSES] = Default::default();
        for id in track.slice_ids() {
            let class = match trace.slices.kind(id) {
                SliceKind::Driver => continue,
                kind if kind.is_api_call() => 4,
                SliceKind::DataLoader => 5,
                SliceKind::Op | SliceKind::Annotation | SliceKind::Optimizer => 7,
                _ => continue,
            };
            add_unless_covered(&mut of_class[class], trace.slices.span(id));
        }
        for (class, spans) in of_class.into_iter().enumerate().filter(|(_, spans)| !spans.is_empty()) {
            host.entry((track.process, class)).or_default().extend(spans);
        }
    }
    host
}

/// Adds what comes in order of start, unless the span before covers it: operators lie inside operators.
fn add_unless_covered(spans: &mut Vec<Span>, span: Span) {
    if spans.last().is_none_or(|last| span.end_ns > last.end_ns) {
        spans.push(span);
    }
}
