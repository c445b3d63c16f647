//! From rows in any order to a [`Trace`]: nesting and overflow lanes, launches and ops of device events, steps.
//!
//! Readers add rows as they meet them, with times on any one clock; [`TraceBuilder::finish`] orders, links and shifts
//! them so that the earliest event is at 0. Ids handed out while adding are provisional and die with the builder.

mod arrows;
mod consistency;
mod links;
mod nesting;
mod repeating_kernels;
mod step_limits;

use crate::device_events::{DeviceEventRow, DeviceEventRows};
use crate::ops::InputsTable;
use crate::{
    Collective, Counter, DataParallelism, Device, DeviceEvent, DeviceEvents, DeviceId, Findings, Flow, FlowKind,
    Instants, IoEvent, MemoryEvent, OpInfo, OpInputs, OpInputsId, Ops, Process, ProcessId, SliceId, SliceKind,
    Synchronization, Trace, Track, TrackId,
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
    memory: Vec<MemoryEvent>,
    out_of_memory: Vec<MemoryEvent>,
    io: Vec<IoEvent>,
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
    step_marks: Vec<step_limits::Mark>,
    recorded: Vec<(ProcessId, Span)>,
    is_cut: Vec<ProcessId>,
}

impl TraceBuilder {
    /// An empty builder for the run that a person calls `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
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

    /// Adds an allocation or a free; `op` is resolved by the builder.
    pub fn add_memory_event(&mut self, event: MemoryEvent) {
        self.memory.push(event);
    }

    /// Adds an allocation that failed; `op` is resolved by the builder.
    pub fn add_out_of_memory(&mut self, event: MemoryEvent) {
        self.out_of_memory.push(event);
    }

    /// Adds a call that uses a file.
    pub fn add_io_event(&mut self, event: IoEvent) {
        self.io.push(event);
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

    /// Says where in its source a slice stands, in bytes of unpacked text.
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

    /// The process that owns a track.
    pub fn process_of(&self, track: TrackId) -> ProcessId {
        self.tracks[track.index()].process
    }

    /// Number of slices added so far.
    pub fn slice_count(&self) -> usize {
        self.slices.len()
    }

    /// Orders, nests and links everything; times are shifted so that the earliest event is at 0.
    pub fn finish(mut self) -> Trace {
        let start_ns = self.shift_to_zero();
        self.order_devices();
        let nested = nesting::nest(&self.tracks, &self.slices, &mut self.findings);
        let new_slice = |old: SliceId| nested.slice_of[old.index()];
        sort_samples(&mut self.counters);
        let mut slices = nested.slices;
        slices.source_place = nesting::in_new_order(&self.source_places, &nested.slice_of);
        let (slice, info) = by_slice(self.op_slices, self.op_infos, new_slice);
        let (device_events, mut common) = self.device_events.into_parts();
        let mut keyed_events = links::with_keys(device_events, &self.correlations);
        keyed_events.iter_mut().for_each(|(event, _)| event.slice = new_slice(event.slice));
        keyed_events.sort_by_key(|(event, _)| (slices.start_ns[event.slice.index()], event.slice));
        let renamed = |flow: &Flow| Flow { from: new_slice(flow.from), to: new_slice(flow.to), kind: flow.kind };
        let mut collectives = self.collectives;
        collectives.iter_mut().for_each(|row| row.slice = new_slice(row.slice));
        collectives.sort_unstable_by_key(|row| row.slice);
        let mut io = self.io;
        io.iter_mut().for_each(|row| row.slice = new_slice(row.slice));
        io.sort_unstable_by_key(|row| row.slice);
        let mut instants: Vec<_> =
            self.instants.iter().map(|(t, id, name)| (*t, nested.track_of[id.index()], *name)).collect();
        instants.sort_unstable();
        let mut trace = Trace {
            name: self.name,
            sources: self.sources,
            start_unix_ns: self.clock_zero_unix_ns.map(|zero_ns| zero_ns + start_ns),
            strings: self.strings,
            processes: self.processes,
            devices: self.devices,
            tracks: nested.tracks,
            slices,
            instants: Instants {
                time_ns: instants.iter().map(|row| row.0).collect(),
                track: instants.iter().map(|row| row.1).collect(),
                name: instants.iter().map(|row| row.2).collect(),
            },
            ops: Ops { slice, info, inputs: self.inputs.rows },
            device_events: DeviceEvents::default(),
            synchronizations: Vec::new(),
            collectives,
            memory: Vec::new(),
            out_of_memory: Vec::new(),
            io,
            counters: self.counters,
            flows: self.flows.iter().map(renamed).collect(),
            steps: Vec::new(),
            findings: self.findings,
            facts: self.facts,
        };
        let correlations: Vec<_> = self.correlations.iter().map(|(key, id)| (*key, new_slice(*id))).collect();
        let waits = self.synchronizations.into_iter();
        let waits =
            waits.map(|(row, correlation)| (Synchronization { slice: new_slice(row.slice), ..row }, correlation));
        trace.synchronizations = links::link_synchronizations(&trace, waits.collect(), &correlations);
        let track_of = |track: TrackId| nested.track_of[track.index()];
        arrows::resolve(&mut trace, &self.arrows, FlowKind::ForwardBackward, track_of);
        links::link_device_events(&mut trace, &mut keyed_events, &correlations, |trace| {
            let mut links = arrows::resolve(trace, &self.arrows, FlowKind::Launch, track_of);
            links.extend(self.launch_links.iter().map(|(from, to)| (new_slice(*from), new_slice(*to))));
            links
        });
        let mut device_events: Vec<DeviceEventRow> = keyed_events.into_iter().map(|(event, _)| event).collect();
        let communication_calls = self.communication_calls.iter().map(|id| new_slice(*id)).collect();
        let communicating = self.communicating.iter().map(|id| new_slice(*id)).collect();
        links::classify_by_statement(&mut device_events, &mut common, &communicating);
        links::classify_by_launch(&trace, &mut device_events, &mut common, &communication_calls);
        trace.device_events = common.finish(device_events);
        links::link_forward_backward(&mut trace);
        for (mut events, is_memory) in [(self.memory, true), (self.out_of_memory, false)] {
            events.sort_by_key(|event| event.time_ns);
            for event in &mut events {
                event.track = nested.track_of[event.track.index()];
                event.op = trace.innermost_op(event.track, event.time_ns);
            }
            *(if is_memory { &mut trace.memory } else { &mut trace.out_of_memory }) = events;
        }
        trace.flows.sort_unstable();
        trace.flows.dedup();
        let labels = self.step_labels.iter().map(|(id, number)| (new_slice(*id), *number)).collect();
        let mut marks = self.step_marks;
        marks.iter_mut().for_each(|mark| mark.track = nested.track_of[mark.track.index()]);
        step_limits::find_steps(&mut trace, labels, marks, &self.is_cut, &self.recorded);
        consistency::check(&mut trace);
        trace
    }

    /// Moves every time so that the earliest is 0; returns the former earliest.
    fn shift_to_zero(&mut self) -> i64 {
        let slice_starts = self.slices.iter().map(|slice| slice.start_ns);
        let memory = self.memory.iter().chain(&self.out_of_memory).map(|event| event.time_ns);
        let instants = self.instants.iter().map(|row| row.0).chain(memory);
        let samples = self.counters.iter().flat_map(|counter| counter.time_ns.iter().copied());
        let start_ns = slice_starts.chain(instants).chain(samples).min().unwrap_or(0);
        self.slices.iter_mut().for_each(|slice| slice.start_ns -= start_ns);
        self.instants.iter_mut().for_each(|row| row.0 -= start_ns);
        self.memory_events().for_each(|event| event.time_ns -= start_ns);
        self.counters.iter_mut().flat_map(|counter| &mut counter.time_ns).for_each(|time_ns| *time_ns -= start_ns);
        self.step_marks.iter_mut().for_each(|mark| mark.time_ns -= start_ns);
        for (_, span) in &mut self.recorded {
            *span = Span::new(span.start_ns - start_ns, span.end_ns - start_ns);
        }
        for arrow in &mut self.arrows {
            arrow.from.1 -= start_ns;
            arrow.to.1 -= start_ns;
        }
        start_ns
    }

    /// Allocations, frees, and allocations that failed.
    fn memory_events(&mut self) -> impl Iterator<Item = &mut MemoryEvent> {
        self.memory.iter_mut().chain(&mut self.out_of_memory)
    }

    /// Orders devices by (rank, ordinal), whatever order the reader met them in, each once.
    fn order_devices(&mut self) {
        let is_alias = |at: &usize| self.same_devices.iter().any(|(alias, _)| alias.index() == *at);
        let mut order: Vec<usize> = (0..self.devices.len()).filter(|at| !is_alias(at)).collect();
        order.sort_by_key(|at| (self.devices[*at].rank, self.devices[*at].ordinal));
        let mut new_id = vec![DeviceId(0); self.devices.len()];
        order.iter().enumerate().for_each(|(new, old)| new_id[*old] = DeviceId::from_index(new));
        self.same_devices.iter().for_each(|(alias, device)| new_id[alias.index()] = new_id[device.index()]);
        self.devices = order.iter().map(|old| self.devices[*old].clone()).collect();
        self.device_events.rename_devices(|id| new_id[id.index()]);
        self.synchronizations.iter_mut().for_each(|(row, _)| row.device = new_id[row.device.index()]);
        self.memory_events().for_each(|event| event.device = event.device.map(|id| new_id[id.index()]));
        self.counters.iter_mut().for_each(|counter| counter.device = counter.device.map(|id| new_id[id.index()]));
        self.tracks.iter_mut().for_each(|track| track.device = track.device.map(|id| new_id[id.index()]));
    }
}

/// Rows by the slices that they became; as they are, when they were added in that order.
fn by_slice<T>(
    mut slices: Vec<SliceId>,
    rows: Vec<T>,
    new_slice: impl Fn(SliceId) -> SliceId,
) -> (Vec<SliceId>, Vec<T>) {
    slices.iter_mut().for_each(|id| *id = new_slice(*id));
    if slices.is_sorted() {
        return (slices, rows);
    }
    let mut pairs: Vec<(SliceId, T)> = slices.into_iter().zip(rows).collect();
    pairs.sort_unstable_by_key(|(id, _)| *id);
    pairs.into_iter().unzip()
}

fn sort_samples(counters: &mut [Counter]) {
    for counter in counters.iter_mut().filter(|counter| !counter.time_ns.is_sorted()) {
        let mut samples: Vec<(i64, f64)> = counter.time_ns.iter().copied().zip(counter.value.iter().copied()).collect();
        samples.sort_by_key(|(time_ns, _)| *time_ns);
        (counter.time_ns, counter.value) = samples.into_iter().unzip();
    }
}
