//! One model of a run, whatever recorded it: columns of slices on tracks, device events linked to the launches and ops
//! they came from, steps, flows, and findings about what the input could not tell.
//!
//! A [`Trace`] is built by a [`TraceBuilder`], which every reader fills, and is immutable afterwards. No I/O, no clock,
//! no thread. Time is integer nanoseconds since the start of the trace.

mod builder;
mod clocks;
mod collectives;
mod contents;
mod counters;
mod dataflow;
mod device_events;
pub mod drawn;
mod findings;
mod flows;
mod frames;
mod instants;
mod io;
mod joined;
mod memory;
mod merge;
mod module_calls;
mod ops;
mod process_groups;
mod reduced;
mod retime;
mod roles;
pub mod simulated;
mod slices;
mod sound;
mod stack_samples;
mod stacks;
mod steps;
mod synchronizations;
mod tracks;
mod window;

pub use builder::{LaunchKey, Room, TraceBuilder};
pub use clocks::{ClockCorrection, Drift};
pub use collectives::{Collective, CollectiveKind, listed};
pub use contents::Contents;
pub use counters::Counter;
pub use dataflow::{DataflowRange, DataflowStage};
pub use device_events::{
    CopyDirection, DeviceEvent, DeviceEventClass, DeviceEventId, DeviceEvents, DeviceFact, FactValue,
};
pub use findings::{Finding, FindingCode, Findings, Severity};
pub use flows::{Flow, FlowKind};
pub use frames::Frame;
pub use instants::Instants;
pub use io::{IoAction, IoEvent, IoLayer};
pub use joined::{ClockSource, Joined};
pub use memory::MemoryEvent;
pub use merge::merge;
pub use module_calls::{ModuleCall, ModuleSize};
pub use ops::{OpInfo, OpInputs, OpInputsId, Ops};
pub use process_groups::ProcessGroup;
pub use reduced::Reduced;
pub use retime::Retiming;
pub use roles::SliceRole;
pub use slices::{SliceId, SliceKind, Slices};
pub use stack_samples::{Doing, StackSample};
pub use stacks::{StackId, Stacks};
pub use steps::{Iteration, IterationKind, Step, StepSource};
pub use synchronizations::{SyncKind, Synchronization};
pub use tracks::{
    CommBackend, DataParallelism, Device, DeviceId, NumaNodes, Process, ProcessId, Settings, SocketSums, Sockets,
    Track, TrackId, TrackKind,
};

use stepscope_base::{Span, StringId, StringTable};

/// A run, merged onto one clock and immutable.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What a person calls the run: its folder or file name.
    pub name: String,
    /// Where it was read from, as given.
    pub sources: Vec<String>,
    /// Unix time of trace time 0 in ns; `None` when the source's clock is arbitrary.
    pub start_unix_ns: Option<i64>,
    /// Trace time 0 as the source writes its times, in ns: what rounds them to whole microseconds needs it.
    pub start_source_ns: i64,
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
    /// Waits between host, streams and events, ordered by slice.
    pub synchronizations: Vec<Synchronization>,
    /// What ops and kernels say of collectives, ordered by slice.
    pub collectives: Vec<Collective>,
    /// The names whose slices do something beyond their kind, ordered by name.
    pub roles: Vec<(StringId, SliceRole)>,
    /// The numbers that PyTorch gave to ranges while an execution trace was recorded, ordered by slice.
    pub range_numbers: Vec<(SliceId, i64)>,
    /// What calls of modules say of their modules, ordered by slice.
    pub module_calls: Vec<ModuleCall>,
    /// Allocations and frees, ordered by time.
    pub memory: Vec<MemoryEvent>,
    /// Allocations that failed, ordered by time: `bytes` were asked for, and there is no address.
    pub out_of_memory: Vec<MemoryEvent>,
    /// Call stacks of allocations, frees and allocations that failed.
    pub stacks: Stacks,
    /// Samples of what threads run, by (track, time).
    pub stack_samples: Vec<StackSample>,
    /// Calls that use files, ordered by slice.
    pub io: Vec<IoEvent>,
    /// What ranges say of the data that they work on, ordered by slice.
    pub dataflow: Vec<DataflowRange>,
    /// Values sampled over time.
    pub counters: Vec<Counter>,
    /// Resolved edges between slices.
    pub flows: Vec<Flow>,
    /// Steps, ordered by (rank, start).
    pub steps: Vec<Step>,
    /// How the clocks of processes were corrected, by process; empty when none was.
    pub clocks: Vec<ClockCorrection>,
    /// What several files were put together by; `None` of a single one.
    pub joined: Option<Joined>,
    /// What is doubtful or incomplete about the input.
    pub findings: Findings,
    /// Facts about the run's environment, in the order the source gave them: `("torch_version", "2.13.0")`.
    pub facts: Vec<(String, String)>,
}

impl Trace {
    /// A text that the source gave; `None` when it gave none.
    pub fn text(&self, text: StringId) -> Option<String> {
        (text != StringTable::EMPTY).then(|| self.strings.get(text).to_string())
    }

    /// The name of a slice.
    pub fn slice_name(&self, slice: SliceId) -> &str {
        self.strings.get(self.slices.name[slice.index()])
    }

    /// From the first start to the last end of anything in the trace; `None` when it is empty.
    pub fn span(&self) -> Option<Span> {
        let slices = (0..self.slices.len()).map(|i| self.slices.span(SliceId::from_index(i)));
        let instants = self.instants.time_ns.iter().map(|at_ns| Span::new(*at_ns, *at_ns));
        let memory = self.memory.iter().chain(&self.out_of_memory);
        let memory = memory.map(|event| Span::new(event.time_ns, event.time_ns));
        slices
            .chain(instants)
            .chain(memory)
            .reduce(|a, b| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns)))
    }

    /// What is open at `at_ns` on a track, in any of its lanes; within a lane the innermost first. An empty slice is
    /// open where it starts.
    pub fn open_slices(&self, track: TrackId, at_ns: i64) -> impl Iterator<Item = SliceId> + '_ {
        let last_started = move |track: TrackId| {
            let rows = &self.tracks[track.index()].slices;
            let starts = &self.slices.start_ns[rows.start as usize..rows.end as usize];
            let last = starts.partition_point(|start_ns| *start_ns <= at_ns).checked_sub(1)?;
            Some(SliceId(rows.start + last as u32))
        };
        let is_open = move |id: &SliceId| {
            let span = self.slices.span(*id);
            span.start_ns == at_ns || span.contains(at_ns)
        };
        let last = self.lanes(track).filter_map(last_started);
        last.flat_map(|id| self.slices.with_ancestors(id)).filter(is_open)
    }

    /// The innermost op open at `at_ns` on a track, in any of its lanes.
    pub fn innermost_op(&self, track: TrackId, at_ns: i64) -> Option<SliceId> {
        self.open_slices(track, at_ns)
            .filter(|id| self.slices.kind(*id) == SliceKind::Op)
            .max_by_key(|id| (self.slices.start_ns[id.index()], self.slices.depth[id.index()]))
    }

    /// A track together with the overflow lanes it belongs with.
    pub fn lanes(&self, track: TrackId) -> impl Iterator<Item = TrackId> + use<> {
        let first = track.index() - self.tracks[track.index()].lane as usize;
        let more = self.tracks[first + 1..].iter().take_while(|other| other.lane > 0).count();
        (first..=first + more).map(TrackId::from_index)
    }

    /// States that all of it is of this rank.
    pub fn set_rank(&mut self, rank: u32) {
        self.processes.iter_mut().for_each(|process| process.rank = rank);
        self.devices.iter_mut().for_each(|device| device.rank = rank);
        self.steps.iter_mut().for_each(|step| step.rank = rank);
    }

    /// Whether shapes of operators' inputs were recorded: other inputs of ranges tell none.
    pub fn has_shapes(&self) -> bool {
        self.ops.inputs.iter().any(|inputs| inputs.dims != StringTable::EMPTY)
    }

    /// The edges that begin at a slice.
    pub fn flows_from(&self, slice: SliceId) -> &[Flow] {
        let first = self.flows.partition_point(|flow| flow.from < slice);
        &self.flows[first..first + self.flows[first..].partition_point(|flow| flow.from == slice)]
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
