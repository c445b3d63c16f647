//! What part of a trace an analysis is asked about, and how it is to answer.

use crate::{Compat, GroupBy};
use stepscope_base::Span;
use stepscope_trace::{DeviceEvent, SliceId, Step, Trace};

/// What a person asked for; the default is all of the trace, by each analysis's own definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Only this rank.
    pub rank: Option<u32>,
    /// Only the steps with this number.
    pub step: Option<i64>,
    /// What a row stands for, of those that the analysis accepts.
    pub group_by: Option<GroupBy>,
    /// Whose definition is used, of those that the analysis accepts.
    pub compat: Option<Compat>,
    /// Width of a curve's buckets in ns, above 0, for analyses that have a curve.
    pub bucket_ns: Option<i64>,
}

impl Selection {
    /// True when `rank` was asked for.
    pub fn has_rank(&self, rank: u32) -> bool {
        self.rank.is_none_or(|wanted| wanted == rank)
    }

    /// The steps asked for, of the ranks asked for, in order.
    pub fn steps<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = &'a Step> {
        let is_wanted = |step: &&Step| self.has_rank(step.rank) && self.step.is_none_or(|number| step.number == number);
        trace.steps.iter().filter(is_wanted)
    }

    /// The host windows asked for on `rank`: `None` when everything is, else one window a step with that number.
    pub fn windows(&self, trace: &Trace, rank: u32) -> Option<Vec<Span>> {
        self.step?;
        Some(self.steps(trace).filter(|step| step.rank == rank).map(|step| step.span).collect())
    }

    /// The device events asked for: those of the ranks asked for and, when a step is, launched on the host inside it.
    pub fn device_events<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = DeviceEvent> + 'a {
        let windows = self.windows_by_rank(trace);
        trace.device_events.iter().filter(move |event| {
            let rank = trace.devices[event.device.index()].rank;
            let is_launched_inside = |launch: SliceId| is_inside(&windows, rank, trace.slices.start_ns[launch.index()]);
            self.has_rank(rank) && (self.step.is_none() || event.launch.is_some_and(is_launched_inside))
        })
    }

    /// Slices on the ranks asked for that start inside the steps asked for.
    pub fn slices<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = SliceId> + 'a {
        let windows = self.windows_by_rank(trace);
        let tracks = trace.tracks.iter().map(move |track| (trace.processes[track.process.index()].rank, track));
        let tracks = tracks.filter(|(rank, _)| self.has_rank(*rank));
        let slices = tracks.flat_map(|(rank, track)| track.slice_ids().map(move |id| (rank, id)));
        let is_wanted = move |(rank, id): &(u32, SliceId)| {
            self.step.is_none() || is_inside(&windows, *rank, trace.slices.start_ns[id.index()])
        };
        slices.filter(is_wanted).map(|(_, id)| id)
    }

    fn windows_by_rank(&self, trace: &Trace) -> Vec<(u32, Span)> {
        let steps = self.steps(trace).filter(|_| self.step.is_some());
        steps.map(|step| (step.rank, step.span)).collect()
    }
}

fn is_inside(windows: &[(u32, Span)], rank: u32, at_ns: i64) -> bool {
    windows.iter().any(|(of_rank, span)| *of_rank == rank && span.contains(at_ns))
}
