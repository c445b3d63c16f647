//! Several traces as one, on one clock.

use crate::device_events::DeviceEventRows;
use crate::ops::InputsTable;
use crate::stacks::StackTable;
use crate::{
    Collective, Counter, DataflowRange, Device, DeviceEvent, DeviceId, Flow, Instants, IoEvent, MemoryEvent,
    ModuleCall, OpInfo, OpInputs, OpInputsId, ProcessId, SliceId, StackId, StackSample, Step, Synchronization, Trace,
    TrackId,
};
use std::collections::BTreeMap;
use stepscope_base::{Span, StringId};

/// All of `traces` in one trace called `name`, their processes and tracks one after the other. Each comes with what is
/// added to its times to put them on the clock that all share, ns; the result's times count from the earliest of those in
/// which anything has a time.
/// `clock_zero_unix_ns` is the Unix time of 0 on that clock. A device that two traces describe, of one rank and with one
/// number, is one device. Where an event stands in its source is not known of the result.
pub fn merge(name: String, traces: Vec<(Trace, i64)>, clock_zero_unix_ns: Option<i64>) -> Trace {
    let timed = traces.iter().filter(|(trace, _)| has_times(trace)).map(|(_, shift_ns)| *shift_ns).min();
    let start_ns = timed.or_else(|| traces.iter().map(|(_, shift_ns)| *shift_ns).min()).unwrap_or(0);
    let mut merged = Merged::new(name, &traces);
    merged.trace.start_unix_ns = clock_zero_unix_ns.map(|zero_ns| zero_ns + start_ns);
    for (trace, shift_ns) in traces {
        merged.add(trace, shift_ns - start_ns);
    }
    merged.finish()
}

/// Whether anything in a trace has a time.
fn has_times(trace: &Trace) -> bool {
    let Trace { slices, instants, memory, out_of_memory, counters, stack_samples, .. } = trace;
    let is_sampled = !stack_samples.is_empty() || counters.iter().any(|counter| !counter.time_ns.is_empty());
    !slices.is_empty() || !instants.time_ns.is_empty() || !memory.is_empty() || !out_of_memory.is_empty() || is_sampled
}

struct Merged {
    trace: Trace,
    inputs: InputsTable,
    stacks: StackTable,
    device_events: DeviceEventRows,
    instants: Vec<(i64, TrackId, StringId)>,
}

/// What the ids of one trace are in the result.
struct NewIds {
    shift_ns: i64,
    process: u32,
    track: u32,
    slice: u32,
    strings: Vec<StringId>,
    devices: Vec<DeviceId>,
    inputs: Vec<OpInputsId>,
    stacks: Vec<StackId>,
}

impl NewIds {
    fn process(&self, id: ProcessId) -> ProcessId {
        ProcessId(self.process + id.0)
    }

    fn track(&self, id: TrackId) -> TrackId {
        TrackId(self.track + id.0)
    }

    fn slice(&self, id: SliceId) -> SliceId {
        SliceId(self.slice + id.0)
    }

    fn string(&self, id: StringId) -> StringId {
        self.strings[id.index()]
    }

    fn device(&self, id: DeviceId) -> DeviceId {
        self.devices[id.index()]
    }

    fn memory(&self, event: &MemoryEvent) -> MemoryEvent {
        MemoryEvent {
            time_ns: event.time_ns + self.shift_ns,
            track: self.track(event.track),
            device: event.device.map(|id| self.device(id)),
            op: event.op.map(|id| self.slice(id)),
            stack: event.stack.map(|id| self.stacks[id.index()]),
            ..*event
        }
    }
}

impl Merged {
    fn new(name: String, traces: &[(Trace, i64)]) -> Self {
        let mut devices: BTreeMap<(u32, i64), &Device> = BTreeMap::new();
        for device in traces.iter().flat_map(|(trace, _)| &trace.devices) {
            let known = devices.entry((device.rank, device.ordinal)).or_insert(device);
            // What one of them knows holds for both.
            if known.name.is_none() {
                *known = device;
            }
        }
        let devices = devices.into_values().cloned().collect();
        Self {
            trace: Trace { name, devices, ..Trace::default() },
            inputs: InputsTable::default(),
            stacks: StackTable::default(),
            device_events: DeviceEventRows::default(),
            instants: Vec::new(),
        }
    }

    fn add(&mut self, part: Trace, shift_ns: i64) {
        let ids = self.new_ids(&part, shift_ns);
        let trace = &mut self.trace;
        // Parts of one source follow one another.
        let sources = part.sources.into_iter();
        let known = trace.sources.last().cloned();
        trace.sources.extend(sources.filter(|source| known.as_ref() != Some(source)));
        trace.findings.extend(&part.findings);
        for (key, value) in part.facts {
            if !trace.facts.iter().any(|(known, _)| *known == key) {
                trace.facts.push((key, value));
            }
        }
        trace.processes.extend(part.processes);
        for mut track in part.tracks {
            track.process = ids.process(track.process);
            track.device = track.device.map(|id| ids.device(id));
            track.slices = track.slices.start + ids.slice..track.slices.end + ids.slice;
            trace.tracks.push(track);
        }
        let (slices, of_part) = (&mut trace.slices, part.slices);
        slices.track.extend(of_part.track.iter().map(|id| ids.track(*id)));
        slices.start_ns.extend(of_part.start_ns.iter().map(|start_ns| start_ns + shift_ns));
        slices.dur_ns.extend(of_part.dur_ns);
        slices.name.extend(of_part.name.iter().map(|id| ids.string(*id)));
        slices.kind.extend(of_part.kind);
        slices.parent.extend(of_part.parent.iter().map(|parent| parent.map(|id| ids.slice(id))));
        slices.depth.extend(of_part.depth);
        slices.is_unfinished.extend(of_part.is_unfinished);
        trace.ops.slice.extend(part.ops.slice.iter().map(|id| ids.slice(*id)));
        trace.ops.info.extend(part.ops.info.iter().map(|info| OpInfo {
            inputs: ids.inputs[info.inputs.index()],
            stack: ids.string(info.stack),
            overload: ids.string(info.overload),
            ..*info
        }));
        trace.synchronizations.extend(part.synchronizations.iter().map(|row| Synchronization {
            slice: ids.slice(row.slice),
            device: ids.device(row.device),
            call: row.call.map(|id| ids.slice(id)),
            event_record: row.event_record.map(|id| ids.slice(id)),
            ..*row
        }));
        trace.collectives.extend(part.collectives.iter().map(|row| Collective {
            slice: ids.slice(row.slice),
            name: ids.string(row.name),
            dtype: ids.string(row.dtype),
            input_split_sizes: ids.string(row.input_split_sizes),
            output_split_sizes: ids.string(row.output_split_sizes),
            group: ids.string(row.group),
            group_description: ids.string(row.group_description),
            group_ranks: ids.string(row.group_ranks),
            ..*row
        }));
        trace.roles.extend(part.roles.iter().map(|(name, role)| (ids.string(*name), *role)));
        trace.range_numbers.extend(part.range_numbers.iter().map(|(slice, number)| (ids.slice(*slice), *number)));
        trace.module_calls.extend(part.module_calls.iter().map(|row| ModuleCall {
            slice: ids.slice(row.slice),
            class: ids.string(row.class),
            ..*row
        }));
        trace.memory.extend(part.memory.iter().map(|event| ids.memory(event)));
        trace.out_of_memory.extend(part.out_of_memory.iter().map(|event| ids.memory(event)));
        trace.stack_samples.extend(part.stack_samples.iter().map(|sample| StackSample {
            track: ids.track(sample.track),
            time_ns: sample.time_ns + shift_ns,
            stack: sample.stack.map(|id| ids.stacks[id.index()]),
            ..*sample
        }));
        trace.io.extend(part.io.iter().map(|row| IoEvent {
            slice: ids.slice(row.slice),
            file: ids.string(row.file),
            other_file: ids.string(row.other_file),
            ..*row
        }));
        trace.dataflow.extend(part.dataflow.iter().map(|row| DataflowRange {
            slice: ids.slice(row.slice),
            samples: ids.string(row.samples),
            ..*row
        }));
        trace.counters.extend(part.counters.into_iter().map(|counter| Counter {
            name: ids.string(counter.name),
            process: ids.process(counter.process),
            device: counter.device.map(|id| ids.device(id)),
            time_ns: counter.time_ns.iter().map(|time_ns| time_ns + shift_ns).collect(),
            value: counter.value,
        }));
        let flow = |flow: &Flow| Flow { from: ids.slice(flow.from), to: ids.slice(flow.to), kind: flow.kind };
        trace.flows.extend(part.flows.iter().map(flow));
        trace.steps.extend(part.steps.iter().map(|step| Step {
            process: ids.process(step.process),
            span: Span::new(step.span.start_ns + shift_ns, step.span.end_ns + shift_ns),
            ..*step
        }));
        for event in part.device_events.iter() {
            let (slice, device) = (ids.slice(event.slice), ids.device(event.device));
            let (launch, op) = (event.launch.map(|id| ids.slice(id)), event.op.map(|id| ids.slice(id)));
            self.device_events.add(&DeviceEvent { slice, device, launch, op, ..event });
        }
        let instants = part.instants;
        for ((time_ns, track), name) in instants.time_ns.iter().zip(&instants.track).zip(&instants.name) {
            self.instants.push((time_ns + shift_ns, ids.track(*track), ids.string(*name)));
        }
    }

    fn new_ids(&mut self, part: &Trace, shift_ns: i64) -> NewIds {
        let Self { trace, inputs, stacks, .. } = self;
        let count = |len: usize| u32::try_from(len).expect("ids have 32 bits");
        let texts = (0..part.strings.len()).map(|at| part.strings.get(StringId::from_index(at)));
        let strings: Vec<StringId> = texts.map(|text| trace.strings.intern(text)).collect();
        let string = |id: StringId| strings[id.index()];
        let new_inputs = part.ops.inputs.iter().map(|row| {
            inputs.intern(OpInputs {
                dims: string(row.dims),
                types: string(row.types),
                strides: string(row.strides),
                concrete: string(row.concrete),
                keywords: string(row.keywords),
            })
        });
        let new_inputs = new_inputs.collect();
        // Callers stand before those that they call.
        let mut new_stacks: Vec<StackId> = Vec::with_capacity(part.stacks.len());
        for (frame, caller) in part.stacks.rows() {
            let caller = caller.map(|id| new_stacks[id.index()]);
            new_stacks.push(stacks.intern(string(frame), caller));
        }
        let device = |device: &Device| {
            let key = (device.rank, device.ordinal);
            let at = trace.devices.binary_search_by_key(&key, |known| (known.rank, known.ordinal));
            DeviceId::from_index(at.expect("all of them are there"))
        };
        NewIds {
            shift_ns,
            process: count(trace.processes.len()),
            track: count(trace.tracks.len()),
            slice: count(trace.slices.len()),
            devices: part.devices.iter().map(device).collect(),
            inputs: new_inputs,
            stacks: new_stacks,
            strings,
        }
    }

    fn finish(self) -> Trace {
        let Self { mut trace, inputs, stacks, device_events, mut instants } = self;
        trace.ops.inputs = inputs.rows;
        trace.stacks = stacks.rows;
        let (rows, common) = device_events.into_parts();
        trace.device_events = common.finish(rows);
        trace.device_events.order_by_start(|slice| trace.slices.start_ns[slice.index()]);
        instants.sort_unstable();
        trace.instants = Instants {
            time_ns: instants.iter().map(|row| row.0).collect(),
            track: instants.iter().map(|row| row.1).collect(),
            name: instants.iter().map(|row| row.2).collect(),
        };
        trace.roles.sort_unstable();
        trace.roles.dedup();
        trace.memory.sort_by_key(|event| event.time_ns);
        trace.out_of_memory.sort_by_key(|event| event.time_ns);
        trace.steps.sort_by_key(|step| (step.rank, step.span.start_ns));
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::drawn;

    const RANKS: [&str; 3] = [
        "rank 0 step     000111
         rank 0 cpu 1    aaa.b.
         rank 0 cpu 1    .c....
         rank 0 launch 1 .K..L.
         rank 0 stream 7 ..KKLL",
        "rank 1 step     000111
         rank 1 cpu 1    b..aaa
         rank 1 launch 1 N...M.
         rank 1 stream 7 NN...M
         rank 1 stream 9 .PP...",
        "rank 2 cpu 1    ..d...",
    ];

    /// Everything that rows say, without ids.
    fn text(trace: &Trace) -> Vec<String> {
        let place = |id: SliceId| {
            let track = &trace.tracks[trace.slices.track[id.index()].index()];
            let rank = trace.processes[track.process.index()].rank;
            let device = track.device.map(|id| (trace.devices[id.index()].rank, trace.devices[id.index()].ordinal));
            let start_ns = trace.slices.start_ns[id.index()];
            format!("{} at {start_ns} on {rank} {:?} {} {device:?}", trace.slice_name(id), track.kind, track.name)
        };
        let slices = trace.slices.ids().map(|id| {
            let (dur_ns, kind) = (trace.slices.dur_ns[id.index()], trace.slices.kind(id));
            format!("{} {dur_ns} {kind:?} {:?}", place(id), trace.slices.parent(id).map(place))
        });
        let flows = trace.flows.iter().map(|flow| format!("{:?} {} {}", flow.kind, place(flow.from), place(flow.to)));
        let events = trace.device_events.iter().map(|event| {
            let (launch, op) = (event.launch.map(place), event.op.map(place));
            format!("{} {:?} {launch:?} {op:?} {:?}", place(event.slice), event.class, event.stream)
        });
        let steps = trace.steps.iter().map(|step| format!("{} {} {:?}", step.rank, step.number, step.span));
        slices.chain(flows).chain(events).chain(steps).collect()
    }

    #[test]
    fn ranks_that_are_merged_are_as_if_drawn_together() {
        let together = drawn(&RANKS.join("\n"));
        let start_ns = |trace: &Trace| if trace.ranks() == [2] { 2_000 } else { 0 };
        let traces = RANKS.map(drawn).map(|trace| (start_ns(&trace), trace));
        let traces = traces.into_iter().map(|(start_ns, trace)| (trace, 500 + start_ns)).collect();
        let merged = merge("all".into(), traces, Some(1_000));
        let (mut found, mut expected) = (text(&merged), text(&together));
        assert!(merged.device_events.iter().map(|event| merged.slices.start_ns[event.slice.index()]).is_sorted());
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!((merged.ranks(), merged.start_unix_ns), (vec![0, 1, 2], Some(1_500)));
    }

    #[test]
    fn two_windows_of_a_rank_share_its_devices() {
        let windows = vec![(drawn(RANKS[0]), 0), (drawn(RANKS[0]), 10_000)];
        let merged = merge("windows".into(), windows, None);
        assert_eq!((merged.devices.len(), merged.processes.len()), (1, 2));
        let ends = merged.steps.iter().map(|step| step.span.end_ns);
        assert_eq!(ends.collect::<Vec<_>>(), [3_000, 6_000, 13_000, 16_000]);
    }
}
