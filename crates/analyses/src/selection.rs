//! What part of a trace an analysis is asked about, and how it is to answer.

use crate::{Compat, GroupBy, Ranks};
use std::ops::Range;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{DeviceEvent, SliceId, Step, StepSource, Trace};

/// What a person asked for; the default is all of the trace, by each analysis's own definition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Only these ranks.
    pub ranks: Ranks,
    /// Only the steps with this number.
    pub step: Option<i64>,
    /// Only what begins on the host in this stretch of time, and what is launched in it.
    pub window: Option<Span>,
    /// Only what belongs to complete steps: what begins on the host inside of one, and what is launched in it.
    pub complete_steps: bool,
    /// What a row stands for, of those that the analysis accepts.
    pub group_by: Option<GroupBy>,
    /// Whose definition is used, of those that the analysis accepts.
    pub compat: Option<Compat>,
    /// Width of a curve's buckets in ns, above 0, for analyses that have a curve.
    pub bucket_ns: Option<i64>,
    /// How deep a tree is shown; the outermost have depth 0.
    pub depth: Option<i64>,
    /// How many rows of each depth of a tree are shown, of those that are most of it by one of its measures.
    pub top: Option<usize>,
}

impl Selection {
    /// True when `rank` was asked for.
    pub fn has_rank(&self, rank: u32) -> bool {
        self.ranks.has(rank)
    }

    /// The window between two moments of which one or both may be left out; `None` without either.
    pub fn window_of(start_ns: Option<i64>, end_ns: Option<i64>) -> Option<Span> {
        start_ns.or(end_ns)?;
        // Far from any moment of a trace, and near enough to compute with.
        let (first, last) = (i64::MIN / 2, i64::MAX / 2);
        let start_ns = start_ns.unwrap_or(first).clamp(first, last);
        Some(Span::new(start_ns, end_ns.unwrap_or(last).clamp(start_ns, last)))
    }

    /// True when only a part of the time is asked for.
    pub fn is_part(&self) -> bool {
        self.step.is_some() || self.window.is_some() || self.complete_steps
    }

    /// Whether a step is asked for; in a window those that begin in it.
    pub fn has_step(&self, step: &Step) -> bool {
        self.has_rank(step.rank)
            && self.step.is_none_or(|number| step.number == number)
            && self.window.is_none_or(|window| window.contains(step.span.start_ns))
    }

    /// The steps asked for, of the ranks asked for, in order.
    pub fn steps<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = &'a Step> {
        self.step_places(trace).map(|at| &trace.steps[at])
    }

    /// Where they are in the steps of the trace.
    pub(crate) fn step_places<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = usize> {
        let of_rank = self.ranks.only().map_or(0..trace.steps.len(), |rank| steps_of_rank(trace, rank));
        of_rank.filter(|at| self.has_step(&trace.steps[*at]))
    }

    /// Those of them that numbers per step are over: complete, in a window to their end, and known to be steps.
    pub fn complete_steps<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = &'a Step> {
        let is_whole = |step: &Step| self.window.is_none_or(|window| step.span.intersect(window) == step.span);
        let is_complete = move |step: &&Step| step.is_complete && step.source != StepSource::Whole && is_whole(step);
        self.steps(trace).filter(is_complete)
    }

    /// The host windows asked for on `rank`, by start, none over another: `None` when everything is.
    pub fn windows(&self, trace: &Trace, rank: u32) -> Option<Vec<Span>> {
        let of_steps = |steps: &mut dyn Iterator<Item = &Step>| {
            let inside = |span: Span| self.window.map_or(span, |window| span.intersect(window));
            IntervalSet::from_unsorted(steps.map(|step| inside(step.span))).spans().to_vec()
        };
        if self.complete_steps {
            return Some(of_steps(&mut self.of_rank(rank).complete_steps(trace)));
        }
        let Some(number) = self.step else { return Some(vec![self.window?]) };
        let steps = trace.steps[steps_of_rank(trace, rank)].iter().filter(|step| step.number == number);
        Some(of_steps(&mut steps.into_iter()))
    }

    /// This selection, of one rank, whatever ranks it has.
    pub(crate) fn of_rank(&self, rank: u32) -> Self {
        Self { ranks: rank.into(), ..self.clone() }
    }

    /// The device events asked for: those of the ranks asked for and, when a part of the time is, launched on the host
    /// inside it. Where the launch is not known, the event's own start decides, so that each lies in one of two halves.
    pub fn device_events<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = DeviceEvent> + 'a {
        let windows = self.windows_by_rank(trace);
        trace.device_events.iter().filter(move |event| {
            let rank = trace.devices[event.device.index()].rank;
            let start_ns = || trace.slices.start_ns[event.launch.unwrap_or(event.slice).index()];
            self.has_rank(rank) && (!self.is_part() || is_inside(&windows, rank, start_ns()))
        })
    }

    /// Slices on the ranks asked for that start inside the windows asked for.
    pub fn slices<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = SliceId> + 'a {
        let windows = self.windows_by_rank(trace);
        let tracks = trace.tracks.iter().map(move |track| (trace.processes[track.process.index()].rank, track));
        let tracks = tracks.filter(|(rank, _)| self.has_rank(*rank));
        let slices = tracks.flat_map(|(rank, track)| track.slice_ids().map(move |id| (rank, id)));
        let is_wanted = move |(rank, id): &(u32, SliceId)| {
            !self.is_part() || is_inside(&windows, *rank, trace.slices.start_ns[id.index()])
        };
        slices.filter(is_wanted).map(|(_, id)| id)
    }

    /// The host windows asked for, each with its rank, by rank and start; none when everything is.
    pub(crate) fn windows_by_rank(&self, trace: &Trace) -> Vec<(u32, Span)> {
        let of_rank = |rank: u32| self.windows(trace, rank).into_iter().flatten().map(move |window| (rank, window));
        trace.ranks().into_iter().filter(|rank| self.has_rank(*rank)).flat_map(of_rank).collect()
    }
}

/// The steps of a rank, found without looking at those of other ranks: callers ask for each of a thousand ranks.
fn steps_of_rank(trace: &Trace, rank: u32) -> Range<usize> {
    let first = trace.steps.partition_point(|step| step.rank < rank);
    first..first + trace.steps[first..].partition_point(|step| step.rank == rank)
}

/// Whether one of the windows of `rank` has a moment; they come by rank and start, and none lies over another.
pub(crate) fn is_inside(windows: &[(u32, Span)], rank: u32, at_ns: i64) -> bool {
    let behind = windows.partition_point(|(of_rank, span)| (*of_rank, span.start_ns) <= (rank, at_ns));
    let last = behind.checked_sub(1).map(|at| &windows[at]);
    last.is_some_and(|(of_rank, span)| *of_rank == rank && span.contains(at_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnalysisContext, Column, catalogue};
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    proptest! {
        /// Asking for the time of a step is asking for the step.
        #[test]
        fn a_window_gives_what_a_step_of_its_limits_gives(
            host in "[.axs|]{30}", launch in "[.CDN|]{30}", streams in prop::collection::vec("[.CDNH|]{30}", 1..3),
            sync in "[.s|]{30}", memory in "[.abcABC]{30}", steps in "0{1,12}1{1,12}2{1,12}",
        ) {
            let mut drawing = format!(
                "rank 0 step {steps}\nrank 0 cpu 1 {host}\nrank 0 launch 1 {launch}\nrank 0 sync 1 {sync}\nrank 0 memory 1 {memory}\n"
            );
            streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&drawing);
            let step = Selection { step: Some(1), ..Selection::default() };
            let span = step.steps(&trace).next().expect("it was drawn").span;
            let both = Selection { window: Some(span), ..step.clone() };
            let window = Selection { window: Some(span), ..Selection::default() };
            for analysis in catalogue() {
                let answer = |selection: &Selection| (analysis.run)(&AnalysisContext::new(&trace, selection)).table;
                prop_assert_eq!(answer(&step), answer(&both), "{}", analysis.name);
                // Rows of several steps are asked for with a window: what they are an average of, or belong to, is theirs.
                if matches!(analysis.name, "step_breakdown" | "ranks_overview" | "advice") {
                    continue;
                }
                let columns = |selection: &Selection| {
                    let columns = answer(selection).columns.into_iter();
                    columns.filter(|column| column.name != "step").collect::<Vec<Column>>()
                };
                prop_assert_eq!(columns(&step), columns(&window), "{}", analysis.name);
            }
        }
    }

    #[test]
    fn a_window_may_be_open_at_either_end() {
        let window = |start_ns, end_ns| Selection::window_of(start_ns, end_ns);
        assert_eq!(window(None, None), None);
        assert_eq!(window(Some(3), Some(7)), Some(Span::new(3, 7)));
        assert_eq!(window(Some(7), Some(3)), Some(Span::new(7, 7)));
        assert!(window(Some(3), None).is_some_and(|span| span.contains(1 << 60) && !span.contains(2)));
        assert!(window(Some(i64::MIN), Some(i64::MAX)).is_some_and(|span| span.duration_ns() > 1 << 62));
    }

    #[test]
    fn steps_of_a_rank_are_those_that_a_look_at_all_finds() {
        let trace = drawn("rank 0 step 0011\nrank 2 step 000111\nrank 3 step 12");
        for rank in 0..5 {
            let slow: Vec<&Step> = trace.steps.iter().filter(|step| step.rank == rank).collect();
            let found: Vec<&Step> = trace.steps[steps_of_rank(&trace, rank)].iter().collect();
            assert_eq!(found, slow, "rank {rank}");
        }
        assert_eq!([0, 2, 3].map(|rank| steps_of_rank(&trace, rank).len()), [2, 2, 2]);
    }

    #[test]
    fn steps_that_begin_in_a_window_are_its_steps() {
        let trace = drawn("rank 0 step 000111222\nrank 0 cpu 1 aabbccdde");
        let steps = |step, from, to| {
            let selection = Selection { step, window: Some(Span::new(from, to)), ..Selection::default() };
            let numbers: Vec<i64> = selection.steps(&trace).map(|step| step.number).collect();
            (numbers, selection.windows(&trace, 0).expect("a part"), selection.slices(&trace).count())
        };
        assert_eq!(steps(None, 1_000, 7_000), (vec![1, 2], vec![Span::new(1_000, 7_000)], 5));
        assert_eq!(steps(Some(1), 1_000, 5_000), (vec![1], vec![Span::new(3_000, 5_000)], 2));
        assert_eq!(steps(Some(0), 5_000, 7_000), (vec![], vec![], 0));
    }
}
