//! What the classes of steps consist of, by name.
//!
//! ```text
//! thread 1   aaaaaaaa····       a class counts in   ████··██████
//! thread 2   ··bbbb··cccc       it consists of      aabb··aacccc
//! ```
//!
//! Each moment belongs to one slice: of those that make its class busy, the one that began last. On one thread that is the
//! innermost, so that an operator has its self time. What counts as `other` belongs to the innermost call of Python, module
//! or label of the thread on which the program runs, if one was recorded.

use super::busy::Busy;
use super::{CLASSES, classes_of};
use crate::AnalysisContext;
use crate::context::Shared;
use crate::host_threads::MainThreads;
use crate::joined::Joinable;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{DeviceEventClass, ProcessId, SliceId, SliceKind, Step, TrackId};

/// What the steps asked for consist of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct NamedParts {
    /// Number of steps.
    pub(crate) steps: i64,
    /// The time of each name in its class, over all steps. Time of a class that has no name is its first.
    pub(crate) sums: BTreeMap<(usize, Option<Arc<str>>), i128>,
}

impl Joinable for NamedParts {
    fn joined(of_ranks: Vec<Self>) -> Self {
        let mut all = Self::default();
        for of_rank in of_ranks {
            all.steps += of_rank.steps;
            of_rank.sums.into_iter().for_each(|(part, ns)| *all.sums.entry(part).or_default() += ns);
        }
        all
    }
}

impl Shared for NamedParts {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let steps: Vec<&Step> = match selection.complete_steps {
            true => selection.complete_steps(trace).collect(),
            false => selection.steps(trace).filter(|step| step.is_complete).collect(),
        };
        let busy = Busy::of(context, false);
        let sets: Vec<[IntervalSet; CLASSES]> = steps.iter().map(|step| classes_of(step, &busy)).collect();
        let mut sums = BTreeMap::new();
        for class in 0..CLASSES {
            for (name, ns) in names_of(class, context, &steps, &sets) {
                let name = name.map(|name| trace.strings.get(name).into());
                *sums.entry((class, name)).or_default() += ns;
            }
        }
        Self { steps: steps.len() as i64, sums }
    }
}

/// Where a slice has to lie to be in a step's class: on a device of its rank, or on a thread of its process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Rank(u32),
    Process(ProcessId),
}

impl Place {
    fn of(step: &Step, class: usize) -> Self {
        if class < 4 { Self::Rank(step.rank) } else { Self::Process(step.process) }
    }
}

/// The time of each name in a class of `steps`; `sets` is when which class counts.
fn names_of(
    class: usize,
    context: &AnalysisContext<'_>,
    steps: &[&Step],
    sets: &[[IntervalSet; CLASSES]],
) -> FxHashMap<Option<StringId>, i128> {
    let mut sums: FxHashMap<Option<StringId>, i128> = FxHashMap::default();
    let trace = context.trace;
    let mut pieces: FxHashMap<Place, Vec<(Span, SliceId)>> =
        steps.iter().map(|step| (Place::of(step, class), Vec::new())).collect();
    slices_of(class, context, |place, id| {
        if let Some(slices) = pieces.get_mut(&place) {
            slices.push((trace.slices.span(id), id));
        }
    });
    for slices in pieces.values_mut() {
        *slices = owned(std::mem::take(slices));
    }
    for (step, sets) in steps.iter().zip(sets) {
        let own = &pieces[&Place::of(step, class)];
        let mut rest_ns = sets[class].total_ns();
        for part in sets[class].spans() {
            let first = own.partition_point(|(span, _)| span.end_ns <= part.start_ns);
            for (span, id) in own[first..].iter().take_while(|(span, _)| span.start_ns < part.end_ns) {
                let ns = span.intersect(*part).duration_ns();
                *sums.entry(Some(trace.slices.name[id.index()])).or_default() += i128::from(ns);
                rest_ns -= ns;
            }
        }
        if rest_ns > 0 {
            *sums.entry(None).or_default() += i128::from(rest_ns);
        }
    }
    sums
}

/// Calls `found` with every slice that makes a class busy, and where.
fn slices_of(class: usize, context: &AnalysisContext<'_>, mut found: impl FnMut(Place, SliceId)) {
    let trace = context.trace;
    if class < 4 {
        for event in trace.device_events.iter() {
            let is_in = match event.class {
                DeviceEventClass::Compute => class == 0,
                DeviceEventClass::Communication => class == 1,
                DeviceEventClass::Memcpy(_) => class == 2,
                DeviceEventClass::Memset => class == 3,
            };
            if is_in {
                found(Place::Rank(trace.devices[event.device.index()].rank), event.slice);
            }
        }
        return;
    }
    let mut of_track = |track: TrackId| {
        let track = &trace.tracks[track.index()];
        let ids = track.slice_ids().filter(|id| has(class, trace.slices.kind(*id)));
        ids.for_each(|id| found(Place::Process(track.process), id));
    };
    match class {
        4..8 => (0..trace.tracks.len()).for_each(|at| of_track(TrackId::from_index(at))),
        _ => context.get::<MainThreads>().0.values().for_each(|first| trace.lanes(*first).for_each(&mut of_track)),
    }
}

/// Whether a slice of this kind makes a class of the host busy, or names time of which nothing else is known.
fn has(class: usize, kind: SliceKind) -> bool {
    use SliceKind::{Annotation, DataLoader, Io, Module, Op, Optimizer, Other, Overhead, PythonFunction};
    match class {
        4 => kind.is_api_call(),
        5 => kind == DataLoader,
        6 => kind == Io,
        7 => kind == Op,
        _ => matches!(kind, Annotation | Optimizer | PythonFunction | Module | Overhead | Other),
    }
}

/// Cuts slices so that none lies over another: each moment belongs to the one that began last, of several the last.
fn owned(mut slices: Vec<(Span, SliceId)>) -> Vec<(Span, SliceId)> {
    slices.sort_unstable_by_key(|(span, id)| (span.start_ns, *id));
    let mut pieces: Vec<(Span, SliceId)> = Vec::with_capacity(slices.len());
    // Those that may still go on, the one that began last on top.
    let mut open: Vec<(Span, SliceId)> = Vec::new();
    let mut at_ns = i64::MIN;
    let mut fill = |open: &mut Vec<(Span, SliceId)>, until_ns: i64| {
        while at_ns < until_ns
            && let Some((span, id)) = open.last()
        {
            if span.end_ns <= at_ns {
                open.pop();
                continue;
            }
            let piece = Span::new(at_ns, span.end_ns.min(until_ns));
            pieces.push((piece, *id));
            at_ns = piece.end_ns;
        }
        at_ns = at_ns.max(until_ns);
    };
    for slice in slices.into_iter().filter(|(span, _)| !span.is_empty()) {
        fill(&mut open, slice.0.start_ns);
        open.push(slice);
    }
    fill(&mut open, i64::MAX);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::host_threads::first_lane;
    use proptest::prelude::*;
    use stepscope_trace::Trace;
    use stepscope_trace::drawn::drawn;

    fn parts_of(trace: &Trace) -> NamedParts {
        NamedParts::compute(&AnalysisContext::new(trace, &Selection::default()))
    }

    /// `cpu b 2`: class, name and time in us.
    fn lines(parts: &NamedParts) -> Vec<String> {
        let line = |((class, name), ns): (&(usize, Option<Arc<str>>), &i128)| {
            format!("{} {} {}", super::super::NAMES[*class], name.as_deref().unwrap_or("–"), *ns as f64 / 1_000.0)
        };
        parts.sums.iter().map(line).collect()
    }

    #[test]
    fn each_moment_of_a_class_belongs_to_the_slice_that_began_last() {
        let trace = drawn(
            "rank 0 step     000000000000
             rank 0 python 1 ppppppppppp.
             rank 0 label 1  .........l..
             rank 0 cpu 1    aaaaaaaa....
             rank 0 cpu 1    ......c.....
             rank 0 cpu 2    ..bbbb......
             rank 0 stream 7 C...........",
        );
        assert_eq!(
            lines(&parts_of(&trace)),
            ["kernel C 1", "cpu a 2", "cpu b 4", "cpu c 1", "other – 1", "other l 1", "other p 2"]
        );
    }

    #[test]
    fn ranks_join_to_what_they_are_together() {
        let [a, b] = ["rank 0 step 0011\nrank 0 cpu 1 aab.", "rank 1 step 000.\nrank 1 cpu 1 b.a."];
        let joined = NamedParts::joined([a, b].map(|drawing| parts_of(&drawn(drawing))).to_vec());
        assert_eq!(joined, parts_of(&drawn(&format!("{a}\n{b}"))));
        assert_eq!((joined.steps, lines(&joined)), (3, vec!["cpu a 3".into(), "cpu b 2".into(), "other – 2".into()]));
    }

    /// What a moment belongs to, by looking at every slice.
    fn slow(trace: &Trace, at_ns: i64) -> (usize, Option<Arc<str>>) {
        let all = Selection::default();
        let main = *AnalysisContext::new(trace, &all).get::<MainThreads>().0.values().next().expect("a thread");
        let class_of = |id: SliceId| match trace.slices.kind(id) {
            SliceKind::Kernel | SliceKind::Memcpy | SliceKind::Memset => {
                let event = trace.device_events.iter().find(|event| event.slice == id).expect("it is one");
                Some(match event.class {
                    DeviceEventClass::Compute => 0,
                    DeviceEventClass::Communication => 1,
                    DeviceEventClass::Memcpy(_) => 2,
                    DeviceEventClass::Memset => 3,
                })
            }
            SliceKind::Runtime | SliceKind::HostSync => Some(4),
            SliceKind::DataLoader => Some(5),
            SliceKind::Io => Some(6),
            SliceKind::Op => Some(7),
            SliceKind::PythonFunction | SliceKind::Annotation
                if first_lane(trace, trace.slices.track[id.index()]) == main =>
            {
                Some(8)
            }
            _ => None,
        };
        let all = trace.slices.ids().filter(|id| trace.slices.span(*id).contains(at_ns));
        let all: Vec<(usize, SliceId)> = all.filter_map(|id| Some((class_of(id)?, id))).collect();
        let class = all.iter().map(|(class, _)| *class).min().unwrap_or(8);
        let of_class = all.iter().filter(|(of, _)| *of == class).map(|(_, id)| *id);
        let last = of_class.max_by_key(|id| (trace.slices.start_ns[id.index()], *id));
        (class, last.map(|id| trace.strings.get(trace.slices.name[id.index()]).into()))
    }

    proptest! {
        #[test]
        fn parts_are_what_a_look_at_every_microsecond_finds(
            ops in prop::collection::vec("[.ab|]{24}", 1..4), python in "[.pq|]{24}", launch in "[.L|]{24}",
            input in "[.i|]{24}", io in "[.fg|]{24}", streams in prop::collection::vec("[.CDNHZ|]{24}", 0..3),
            steps in "[.]{0,3}0{2,8}[.]{0,3}1{2,8}",
        ) {
            let mut text = format!("rank 0 step {steps}\nrank 0 python 1 {python}\nrank 0 launch 2 {launch}\nrank 0 input 1 {input}\nrank 0 io 3 {io}\n");
            ops.iter().enumerate().for_each(|(at, row)| text += &format!("rank 0 cpu {at} {row}\n"));
            streams.iter().enumerate().for_each(|(at, row)| text += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&text);
            let mut expected = NamedParts { steps: trace.steps.len() as i64, ..NamedParts::default() };
            for step in &trace.steps {
                for at in (step.span.start_ns..step.span.end_ns).step_by(1_000) {
                    *expected.sums.entry(slow(&trace, at)).or_default() += 1_000;
                }
            }
            prop_assert_eq!(parts_of(&trace), expected);
        }
    }
}
