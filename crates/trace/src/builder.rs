//! From rows in any order to a [`Trace`]: nesting and overflow lanes, launches and ops of device events, steps.
//!
//! Readers add rows as they meet them, with times on any one clock; [`TraceBuilder::finish`] orders, links and shifts
//! them so that the earliest event is at 0. Ids handed out while adding are provisional and die with the builder.

mod arrows;
mod consistency;
mod finish;
mod links;
mod nesting;
mod out_of_memory;
mod recut_steps;
mod repeating_kernels;
mod step_limits;

use crate::DataflowRange;
use crate::device_events::DeviceEventRows;
use crate::ops::InputsTable;
use crate::stacks::StackTable;
use crate::{
    Collective, Counter, DataParallelism, Device, DeviceEvent, DeviceId, Findings, Flow, FlowKind, IoEvent, Iteration,
    MemoryEvent, ModuleCall, OpInfo, OpInputs, OpInputsId, Process, ProcessId, SliceId, SliceKind, SliceRole, Sockets,
    StackId, StackSample, Synchronization, Track, TrackId,
};
use stepscope_base::{Span, StringId, StringTable};

/// What joins a launch with its device events: the source's correlation id, within one process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LaunchKey {
    /// The process that launched.
    pub process: ProcessId,
    /// The source's correlation id.
    pub correlation: i64,
}

/// How many rows to make room for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Slices that have a place in their source.
    pub slices: usize,
    /// Facts about ops.
    pub ops: usize,
    /// Correlation ids of slices.
    pub correlations: usize,
    /// Allocations and frees.
    pub memory: usize,
    /// Device events.
    pub device_events: usize,
}

#[derive(Clone, Copy, Debug)]
struct RawSlice {
    track: TrackId,
    start_ns: i64,
    dur_ns: i64,
    name: StringId,
    kind: SliceKind,
    is_unfinished: bool,
}

/// A trace under construction.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    /// What a person calls the run.
    pub name: String,
    /// Where it is read from.
    pub sources: Vec<String>,
    /// Unix time, in ns, of time 0 of the times given to this builder; `None` when their clock is arbitrary.
    pub clock_zero_unix_ns: Option<i64>,
    /// Names; readers intern here.
    pub strings: StringTable,
    /// The names whose slices do something beyond their kind, ordered by name.
    pub roles: Vec<(StringId, SliceRole)>,
    /// Findings so far.
    pub findings: Findings,
    /// Facts about the environment.
    pub facts: Vec<(String, String)>,
    processes: Vec<Process>,
    devices: Vec<Device>,
    same_devices: Vec<(DeviceId, DeviceId)>,
    tracks: Vec<Track>,
    slices: Vec<RawSlice>,
    instants: Vec<(i64, TrackId, StringId)>,
    op_slices: Vec<SliceId>,
    op_infos: Vec<OpInfo>,
    inputs: InputsTable,
    synchronizations: Vec<(Synchronization, Option<i64>)>,
    collectives: Vec<Collective>,
    label_collectives: Vec<Collective>,
    range_numbers: Vec<(SliceId, i64)>,
    module_calls: Vec<ModuleCall>,
    memory: Vec<MemoryEvent>,
    out_of_memory: Vec<MemoryEvent>,
    stacks: StackTable,
    stack_samples: Vec<StackSample>,
    io: Vec<IoEvent>,
    dataflow: Vec<DataflowRange>,
    counters: Vec<Counter>,
    device_events: DeviceEventRows,
    correlations: Vec<(LaunchKey, SliceId)>,
    launch_links: Vec<(SliceId, SliceId)>,
    communication_calls: Vec<SliceId>,
    communicating: Vec<SliceId>,
    source_places: Vec<u64>,
    flows: Vec<Flow>,
    arrows: Vec<arrows::Arrow>,
    step_labels: Vec<(SliceId, i64)>,
    iterations: Vec<(SliceId, Iteration)>,
    step_marks: Vec<step_limits::Mark>,
    recorded: Vec<(ProcessId, Span)>,
    is_cut: Vec<ProcessId>,
}

impl TraceBuilder {
    /// An empty builder for the run that a person calls `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Reserves memory for `room` rows, so that columns are not moved while they grow. A wrong guess costs nothing: memory
    /// that is not used is not touched.
    pub fn make_room(&mut self, room: &Room) {
        self.slices.reserve_exact(room.slices);
        self.source_places.reserve_exact(room.slices);
        self.op_slices.reserve_exact(room.ops);
        self.op_infos.reserve_exact(room.ops);
        self.correlations.reserve_exact(room.correlations);
        self.memory.reserve_exact(room.memory);
        self.device_events.rows.reserve_exact(room.device_events);
    }

    /// Adds a process.
    pub fn add_process(&mut self, process: Process) -> ProcessId {
        self.processes.push(process);
        ProcessId::from_index(self.processes.len() - 1)
    }

    /// Gives access to a process that was added, to fill in what is learned later.
    pub fn process_mut(&mut self, id: ProcessId) -> &mut Process {
        &mut self.processes[id.index()]
    }

    /// Adds a device.
    pub fn add_device(&mut self, device: Device) -> DeviceId {
        self.devices.push(device);
        DeviceId::from_index(self.devices.len() - 1)
    }

    /// Gives access to a device that was added.
    pub fn device_mut(&mut self, id: DeviceId) -> &mut Device {
        &mut self.devices[id.index()]
    }

    /// Says that `alias` is another number of `device`: what names it is of that device, and it is none of its own.
    pub fn set_same_device(&mut self, alias: DeviceId, device: DeviceId) {
        self.same_devices.push((alias, device));
    }

    /// Adds a track; its `lane` and `slices` are set by the builder.
    pub fn add_track(&mut self, track: Track) -> TrackId {
        self.tracks.push(track);
        TrackId::from_index(self.tracks.len() - 1)
    }

    /// Gives access to a track that was added.
    pub fn track_mut(&mut self, id: TrackId) -> &mut Track {
        &mut self.tracks[id.index()]
    }

    /// Adds a slice. A negative `dur_ns` is the reader's to repair and report.
    ///
    /// # Panics
    /// When `dur_ns` is negative: a bug in the reader.
    pub fn add_slice(
        &mut self,
        track: TrackId,
        kind: SliceKind,
        name: StringId,
        start_ns: i64,
        dur_ns: i64,
    ) -> SliceId {
        assert!(dur_ns >= 0, "readers repair negative durations");
        self.slices.push(RawSlice { track, start_ns, dur_ns, name, kind, is_unfinished: false });
        SliceId::from_index(self.slices.len() - 1)
    }

    /// Marks a slice whose end was not recorded.
    pub fn set_unfinished(&mut self, slice: SliceId) {
        self.slices[slice.index()].is_unfinished = true;
    }

    /// Gives a slice its duration, for readers that meet its end after its start.
    pub fn set_duration(&mut self, slice: SliceId, dur_ns: i64) {
        assert!(dur_ns >= 0, "readers repair negative durations");
        self.slices[slice.index()].dur_ns = dur_ns;
    }

    /// Changes what a slice is, for readers that learn it later.
    pub fn set_kind(&mut self, slice: SliceId, kind: SliceKind) {
        self.slices[slice.index()].kind = kind;
    }

    /// Adds an event without duration.
    pub fn add_instant(&mut self, track: TrackId, name: StringId, time_ns: i64) {
        self.instants.push((time_ns, track, name));
    }

    /// Adds what is known of an op.
    pub fn add_op(&mut self, slice: SliceId, info: OpInfo) {
        self.op_slices.push(slice);
        self.op_infos.push(info);
    }

    /// The id of an op's inputs, for [`OpInfo::inputs`].
    pub fn intern_inputs(&mut self, inputs: OpInputs) -> OpInputsId {
        self.inputs.intern(inputs)
    }

    /// Adds a wait; `call` and `event_record` are resolved by the builder: the call by the correlation id of the wait's
    /// slice, the record by `event_correlation`, that of the API call that recorded the event.
    pub fn add_synchronization(&mut self, synchronization: Synchronization, event_correlation: Option<i64>) {
        self.synchronizations.push((synchronization, event_correlation));
    }

    /// Adds what a slice says of a collective.
    pub fn add_collective(&mut self, collective: Collective) {
        self.collectives.push(collective);
    }

    /// Adds what the name of a label says of a collective. Where the label lies in an operator, it is of the thread that
    /// asks, and no work of a backend: the operator says it then, unless something else said of either says more.
    pub fn add_collective_of_label(&mut self, collective: Collective) {
        self.label_collectives.push(collective);
    }

    /// Adds the number that PyTorch gave to a range.
    pub fn add_range_number(&mut self, slice: SliceId, number: i64) {
        self.range_numbers.push((slice, number));
    }

    /// Adds what a call says of its module.
    pub fn add_module_call(&mut self, call: ModuleCall) {
        self.module_calls.push(call);
    }

    /// Adds an allocation or a free; `op` is resolved by the builder.
    pub fn add_memory_event(&mut self, event: MemoryEvent) {
        self.memory.push(event);
    }

    /// Adds an allocation that failed; `op` is resolved by the builder.
    pub fn add_out_of_memory(&mut self, event: MemoryEvent) {
        self.out_of_memory.push(event);
    }

    /// Adds a sample of what a thread runs.
    pub fn add_stack_sample(&mut self, sample: StackSample) {
        self.stack_samples.push(sample);
    }

    /// The stack that calls `frame` from `caller`, for events that carry one; none calls the outermost frame. A frame has no
    /// `;` in it.
    pub fn intern_stack(&mut self, frame: StringId, caller: Option<StackId>) -> StackId {
        self.stacks.intern(frame, caller)
    }

    /// Adds a call that uses a file.
    pub fn add_io_event(&mut self, event: IoEvent) {
        self.io.push(event);
    }

    /// Number of calls that use a file added so far.
    pub fn io_event_count(&self) -> usize {
        self.io.len()
    }

    /// Gives the call that was added at a place its file, for readers that learn it later.
    pub fn set_file(&mut self, at: usize, file: StringId) {
        self.io[at].file = file;
    }

    /// Adds what a range says of the data that it works on.
    pub fn add_dataflow(&mut self, range: DataflowRange) {
        self.dataflow.push(range);
    }

    /// Adds a sampled quantity, its samples in any order.
    pub fn add_counter(&mut self, counter: Counter) {
        self.counters.push(counter);
    }

    /// Adds a device event; `launch` and `op` are resolved by the builder.
    pub fn add_device_event(&mut self, event: DeviceEvent) {
        self.device_events.add(&event);
    }

    /// Says that a launch or a device event carries a correlation id.
    pub fn set_correlation(&mut self, slice: SliceId, key: LaunchKey) {
        self.correlations.push((key, slice));
    }

    /// Links a launch with a device event where the source says so itself; used where no correlation id does.
    pub fn add_launch_link(&mut self, launch: SliceId, device_event: SliceId) {
        self.launch_links.push((launch, device_event));
    }

    /// Says that `slice` is a call into a communication library: kernels launched within it communicate.
    pub fn add_communication_call(&mut self, slice: SliceId) {
        self.communication_calls.push(slice);
    }

    /// Says that a kernel's own row calls it a part of a collective.
    pub fn set_communicates(&mut self, slice: SliceId) {
        self.communicating.push(slice);
    }

    /// Says where in its source a slice stands, in bytes of decompressed text.
    pub fn set_source_place(&mut self, slice: SliceId, place: u64) {
        let at = slice.index();
        if self.source_places.len() <= at {
            self.source_places.resize(at + 1, u64::MAX);
        }
        self.source_places[at] = place;
    }

    /// Adds an edge that the source gives as two points, each a track and a time: they are resolved to the innermost
    /// fitting slices there. A launch arrow counts only where no correlation id does. One that touches no fitting slice is
    /// a finding, unless it is a launch arrow.
    pub fn add_arrow(&mut self, kind: FlowKind, from: (TrackId, i64), to: (TrackId, i64)) {
        self.arrows.push(arrows::Arrow { kind, from, to });
    }

    /// Adds an edge.
    pub fn add_flow(&mut self, flow: Flow) {
        self.flows.push(flow);
    }

    /// Says that `slice` is the job's own label of step `number`.
    pub fn add_step_label(&mut self, slice: SliceId, number: i64) {
        self.step_labels.push((slice, number));
    }

    /// Says that `slice` is an iteration of a server: a step, where nothing else in its process marks any.
    pub fn add_iteration(&mut self, slice: SliceId, iteration: Iteration) {
        self.iterations.push((slice, iteration));
    }

    /// Says that an optimizer's step was running on `track` at `time_ns`: the step ends where that slice ends. Its
    /// number, where the job counts.
    pub fn add_step_mark(&mut self, track: TrackId, time_ns: i64, number: Option<i64>) {
        self.step_marks.push(step_limits::Mark { track, time_ns, number });
    }

    /// Says that only some of a process was recorded, and `span` is of that.
    pub fn add_recorded(&mut self, process: ProcessId, span: Span) {
        self.recorded.push((process, span));
    }

    /// Says how the model of the process that `track` belongs to runs; of several ways the one in one process stays.
    pub fn set_data_parallelism(&mut self, track: TrackId, parallelism: DataParallelism) {
        let process = self.tracks[track.index()].process;
        let known = &mut self.processes[process.index()].data_parallelism;
        *known = Some(known.map_or(parallelism, |known| known.min(parallelism)));
    }

    /// Says that the recording of a process ended while it was at work, so that its last step is cut.
    pub fn set_cut(&mut self, process: ProcessId) {
        self.is_cut.push(process);
    }

    /// A process moved this over sockets, beside what was said before.
    pub fn add_sockets(&mut self, process: ProcessId, sockets: Sockets) {
        let known = &mut self.processes[process.index()].sockets;
        *known = Some(known.unwrap_or_default().and(sockets));
    }

    /// The process that owns a track.
    pub fn process_of(&self, track: TrackId) -> ProcessId {
        self.tracks[track.index()].process
    }

    /// Number of slices added so far.
    pub fn slice_count(&self) -> usize {
        self.slices.len()
    }
}
