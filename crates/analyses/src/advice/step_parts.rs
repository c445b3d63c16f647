//! What the thread that runs the steps does in each of them, by name: what grows where steps grow.
//!
//! ```text
//! step      00000000000
//! operator  ·aaaa··bb··     4 of `a`, 2 of `b`, 2 after `a`, 2 after `b`, 1 before anything
//! ```

use super::Place;
use super::facts::Facts;
use super::loops::{Loop, median};
use super::words::quoted;
use crate::host_threads::sweep_innermost;
use crate::op_classes::{COMMUNICATION, op_class};
use rustc_hash::FxHashMap;
use stepscope_base::units::format_ns;
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{SliceId, SliceKind, Trace, TrackId};

/// Share of the growth from which on a part is the cause of it.
const LEAST_SHARE: (i64, i64) = (1, 2);

/// A part of steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Part {
    /// Inside slices of this name, without those in them.
    In(StringId),
    /// Inside nothing but the step, behind slices of this name.
    After(StringId),
    /// Before anything else of the step.
    Begin,
}

/// The time of one part in each step, and where its longest piece is in it.
#[derive(Default)]
struct Times {
    /// By step; steps without it are left out.
    of_steps: FxHashMap<usize, Piece>,
}

#[derive(Clone, Copy, Default)]
struct Piece {
    total_ns: i64,
    longest: Option<(Span, Option<SliceId>)>,
}

/// All parts of the steps of a loop.
pub(super) struct StepParts {
    parts: FxHashMap<Part, Times>,
    /// Operators that begin in each step.
    pub(super) operators: Vec<i64>,
}

/// What makes some steps longer than others.
pub(super) struct Growth {
    pub(super) part: Part,
    /// How much longer it takes in all of the long steps together.
    pub(super) excess_ns: i64,
    /// In the usual step, and in the long one.
    pub(super) usual_ns: i64,
    pub(super) long_ns: i64,
    /// The longest piece of it in a long step.
    span: Span,
    slice: Option<SliceId>,
}

impl StepParts {
    pub(super) fn of(trace: &Trace, of: &Loop) -> Option<Self> {
        let windows: Vec<Span> = of.steps.iter().map(|step| step.span).collect();
        if !windows.is_sorted_by(|a, b| a.end_ns <= b.start_ns) {
            return None;
        }
        let thread = of.thread?;
        let mut all = Self { parts: FxHashMap::default(), operators: vec![0; windows.len()] };
        let slices = &trace.slices;
        sweep(trace, thread, &windows, |part, step, span, slice| all.add(part, step, span, slice));
        for id in trace.tracks[thread.index()].slice_ids().filter(|id| slices.kind(*id) == SliceKind::Op) {
            let step = windows.partition_point(|span| span.end_ns <= slices.start_ns[id.index()]);
            if windows.get(step).is_some_and(|span| span.contains(slices.start_ns[id.index()])) {
                all.operators[step] += 1;
            }
        }
        Some(all)
    }

    fn add(&mut self, part: Part, step: usize, span: Span, slice: Option<SliceId>) {
        let piece = self.parts.entry(part).or_default().of_steps.entry(step).or_default();
        piece.total_ns += span.duration_ns();
        if piece.longest.is_none_or(|(longest, _)| span.duration_ns() > longest.duration_ns()) {
            piece.longest = Some((span, slice));
        }
    }

    /// The part that takes most of what the `long` steps take more than the `usual` ones; `None` when none has half of
    /// it, and in half of them: then everything is slower, and no part is the cause.
    pub(super) fn growth(&self, usual: &[usize], long: &[usize], excess_ns: i64) -> Option<Growth> {
        let of_part = |(part, times): (&Part, &Times)| {
            let total_ns = |step: &usize| times.of_steps.get(step).map_or(0, |piece| piece.total_ns);
            let usual_ns = median(usual.iter().map(total_ns));
            let more_ns: i64 = long.iter().map(|step| total_ns(step) - usual_ns).sum();
            let longest = long.iter().filter_map(|step| times.of_steps.get(step)?.longest);
            let (span, slice) = longest.reduce(|a, b| if b.0.duration_ns() > a.0.duration_ns() { b } else { a })?;
            let share_ns = excess_ns / long.len() as i64 / 4;
            let is_longer = |step: &&usize| total_ns(step) - usual_ns > share_ns;
            let is_habit = 2 * long.iter().filter(is_longer).count() >= long.len();
            let long_ns = median(long.iter().map(total_ns));
            let growth = Growth { part: *part, excess_ns: more_ns, usual_ns, long_ns, span, slice };
            (is_habit && more_ns > excess_ns / LEAST_SHARE.1 * LEAST_SHARE.0).then_some(growth)
        };
        self.parts.iter().filter_map(of_part).max_by_key(|growth| (growth.excess_ns, std::cmp::Reverse(growth.part)))
    }
}

/// Every part of the steps in turn, and what is recorded of it.
fn sweep(trace: &Trace, thread: TrackId, windows: &[Span], mut found: impl FnMut(Part, usize, Span, Option<SliceId>)) {
    let slices = &trace.slices;
    let name = |id: SliceId| slices.name[id.index()];
    let behind = |before: Option<SliceId>| before.map_or(Part::Begin, |id| Part::After(name(id)));
    // Pieces come in order; what is between them has no slice.
    let mut at: Vec<(i64, Option<SliceId>)> = windows.iter().map(|span| (span.start_ns, None)).collect();
    sweep_innermost(trace, thread, windows, |step, id, span| {
        let (from_ns, before) = &mut at[step];
        if *from_ns < span.start_ns {
            found(behind(*before), step, Span::new(*from_ns, span.start_ns), None);
        }
        *from_ns = span.end_ns;
        if slices.kind(id) == SliceKind::Step {
            return found(behind(*before), step, span, Some(id));
        }
        found(Part::In(name(id)), step, span, Some(id));
        *before = Some(id);
    });
    for (step, (from_ns, before)) in at.into_iter().enumerate() {
        let rest = Span::new(from_ns, windows[step].end_ns.max(from_ns));
        if !rest.is_empty() {
            found(behind(before), step, rest, None);
        }
    }
}

impl Growth {
    /// When it is, in some of the steps.
    pub(super) fn time(&self, trace: &Trace, of: &Loop, steps: &[usize]) -> IntervalSet {
        let windows: Vec<Span> = steps.iter().map(|step| of.steps[*step].span).collect();
        let mut spans = Vec::new();
        if let Some(thread) = of.thread {
            sweep(trace, thread, &windows, |part, _, span, _| spans.extend((part == self.part).then_some(span)));
        }
        IntervalSet::from_unsorted(spans)
    }

    /// Whether what else is in steps of these lengths, a quarter or more of the usual one, grows by half as large a share or more.
    pub(super) fn is_of_all(&self, usual_ns: i64, long_ns: i64) -> bool {
        let more_ns = self.long_ns - self.usual_ns;
        let (rest_ns, more_of_rest_ns) = (usual_ns - self.usual_ns, long_ns - usual_ns - more_ns);
        let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
        4 * rest_ns >= usual_ns && 2 * product(more_of_rest_ns, self.usual_ns) >= product(more_ns, rest_ns)
    }

    /// Whether it is inside an operator.
    pub(super) fn is_operator(&self, trace: &Trace) -> bool {
        matches!(self.part, Part::In(_)) && self.kind(trace) == Some(SliceKind::Op)
    }

    /// Where the longest piece of it is.
    pub(super) fn place(&self, trace: &Trace) -> Place {
        Place::at(trace, self.span.start_ns, self.slice)
    }

    /// Where the time is.
    pub(super) fn words(&self, trace: &Trace) -> String {
        let name = |name: StringId| quoted(trace.strings.get(name));
        let place = match self.part {
            Part::In(within) if self.is_range(trace) => format!("in no operator, inside {}", name(within)),
            Part::In(within) => format!("in {}", name(within)),
            Part::After(behind) => format!("in no operator, behind {}", name(behind)),
            Part::Begin => "in no operator, before the first one".into(),
        };
        format!("{place} ({} against {})", format_ns(self.long_ns), format_ns(self.usual_ns))
    }

    /// Ranges hold work and are none.
    fn is_range(&self, trace: &Trace) -> bool {
        self.kind(trace)
            .is_some_and(|kind| matches!(kind, SliceKind::Annotation | SliceKind::Module | SliceKind::Optimizer))
    }

    /// What the longest piece is, when something was recorded of it.
    fn kind(&self, trace: &Trace) -> Option<SliceKind> {
        self.slice.map(|id| trace.slices.kind(id))
    }

    /// Whether the thread only waits there: for a device or for other ranks, whose rules say more.
    pub(super) fn is_wait(&self, facts: &Facts, of: &Loop) -> bool {
        let is_of_device = self.kind(facts.trace).is_some_and(SliceKind::is_api_call);
        let ns = |set: &IntervalSet| set.clip(self.span).total_ns();
        let communicates = communication(facts.trace, of).union(&facts.communication(of.rank));
        is_of_device || 2 * ns(&communicates) > self.span.duration_ns()
    }
}

/// When a thread of the process is in an operator that communicates.
fn communication(trace: &Trace, of: &Loop) -> IntervalSet {
    let mut names: FxHashMap<StringId, bool> = FxHashMap::default();
    let mut is_communication = |id: SliceId| {
        let name = trace.slices.name[id.index()];
        let by_name = || op_class(trace.strings.get(name)).category == COMMUNICATION;
        trace.slices.kind(id) == SliceKind::Op && *names.entry(name).or_insert_with(by_name)
    };
    let spans: Vec<Span> =
        of.slices(trace).filter(|id| is_communication(*id)).map(|id| trace.slices.span(id)).collect();
    IntervalSet::from_unsorted(spans)
}
