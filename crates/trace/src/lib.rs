//! One model of a run, whoever recorded it: columns of slices on tracks, device events linked to the launches and ops
//! they came from, steps, flows, and findings about what the input could not tell.
//!
//! A [`Trace`] is built by a [`TraceBuilder`], which every reader fills, and is immutable afterwards. No I/O, no clock,
//! no thread. Time is integer nanoseconds since the start of the trace.

mod builder;
mod device_events;
pub mod drawn;
mod findings;
mod flows;
mod instants;
mod ops;
mod slices;
mod steps;
mod tracks;

pub use builder::{LaunchKey, TraceBuilder};
pub use device_events::{CopyDirection, DeviceEvent, DeviceEventClass, DeviceEventId, DeviceEvents};
pub use findings::{Finding, FindingCode, Findings, Severity};
pub use flows::{Flow, FlowKind};
pub use instants::Instants;
pub use ops::{OpInfo, Ops};
pub use slices::{SliceId, SliceKind, Slices};
pub use steps::{Step, StepSource};
pub use tracks::{Device, DeviceId, Process, ProcessId, Track, TrackId, TrackKind};

use stepscope_base::{Span, StringTable};

/// A run, merged onto one clock and immutable.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What a person calls the run: its folder or file name.
    pub name: String,
    /// Where it was read from, as given.
    pub sources: Vec<String>,
    /// Unix time of trace time 0 in ns; `None` when the source's clock is arbitrary.
    pub start_unix_ns: Option<i64>,
    /// Every name in the trace.
    pub strings: StringTable,
    /// Processes, in the order the reader met them.
    pub processes: Vec<Process>,
    /// Devices, ordered by (rank, ordinal).
    pub devices: Vec<Device>,
    /// Tracks; the overflow lanes of a track follow it directly.
    pub tracks: Vec<Track>,
    /// Every event with a duration, grouped by track, ordered by start within it.
    pub slices: Slices,
    /// Every event without duration, ordered by time.
    pub instants: Instants,
    /// What is known of ops beyond their slice.
    pub ops: Ops,
    /// Kernels, copies and memsets, ordered by start.
    pub device_events: DeviceEvents,
    /// Resolved edges between slices.
    pub flows: Vec<Flow>,
    /// Steps, ordered by (rank, start).
    pub steps: Vec<Step>,
    /// What is doubtful or incomplete about the input.
    pub findings: Findings,
    /// Facts about the run's environment, in the order the source gave them: `("torch_version", "2.13.0")`.
    pub facts: Vec<(String, String)>,
}

impl Trace {
    /// The name of a slice.
    pub fn slice_name(&self, slice: SliceId) -> &str {
        self.strings.get(self.slices.name[slice.index()])
    }

    /// From the first start to the last end of anything in the trace; `None` when it is empty.
    pub fn span(&self) -> Option<Span> {
        let slices = (0..self.slices.len()).map(|i| self.slices.span(SliceId::from_index(i)));
        let instants = self.instants.time_ns.iter().map(|at_ns| Span::new(*at_ns, *at_ns));
        slices.chain(instants).reduce(|a, b| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns)))
    }

    /// The rank that a track belongs to.
    pub fn rank_of_track(&self, track: TrackId) -> u32 {
        self.processes[self.tracks[track.index()].process.index()].rank
    }

    /// The ranks in the trace, ascending, each once.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> = self.processes.iter().map(|process| process.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}
