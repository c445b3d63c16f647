//! From what was added to the trace: everything is ordered, nested, renamed and linked.

use super::{TraceBuilder, arrows, consistency, links, nesting, out_of_memory, step_limits};
use crate::device_events::DeviceEventRow;
use crate::{
    Collective, CollectiveKind, Counter, DeviceEvents, DeviceId, Flow, FlowKind, Instants, MemoryEvent, Ops, SliceId,
    SliceKind, Slices, Synchronization, Trace, TrackId, listed,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use stepscope_base::{Span, StringId};

impl TraceBuilder {
    /// Orders, nests and links everything; times are shifted so that the earliest event is at 0.
    pub fn finish(mut self) -> Trace {
        let start_ns = self.shift_to_zero();
        self.order_devices();
        let rows = std::mem::take(&mut self.slices);
        let nested = nesting::nest(&self.tracks, &rows, &mut self.findings);
        // The same memory serves what comes.
        drop(rows);
        let new_slice = |old: SliceId| nested.slice_of[old.index()];
        sort_samples(&mut self.counters);
        let mut slices = nested.slices;
        slices.source_place = nesting::in_new_order(&std::mem::take(&mut self.source_places), &nested.slice_of);
        let (slice, info) = by_slice(self.op_slices, self.op_infos, new_slice);
        let (device_events, mut common) = self.device_events.into_parts();
        let mut correlations = self.correlations;
        let mut keyed_events = links::with_keys(device_events, &mut correlations);
        correlations.iter_mut().for_each(|(_, slice)| *slice = new_slice(*slice));
        keyed_events.iter_mut().for_each(|(event, _)| event.slice = new_slice(event.slice));
        keyed_events.sort_by_key(|(event, _)| (slices.start_ns[event.slice.index()], event.slice));
        let renamed = |flow: &Flow| Flow { from: new_slice(flow.from), to: new_slice(flow.to), kind: flow.kind };
        let [mut collectives, mut of_labels] = [self.collectives, self.label_collectives];
        collectives.iter_mut().chain(&mut of_labels).for_each(|row| row.slice = new_slice(row.slice));
        collectives.sort_unstable_by_key(|row| row.slice);
        add_of_labels(&mut collectives, of_labels, &slices);
        let mut range_numbers = self.range_numbers;
        range_numbers.iter_mut().for_each(|(slice, _)| *slice = new_slice(*slice));
        range_numbers.sort_unstable();
        let mut module_calls = self.module_calls;
        module_calls.iter_mut().for_each(|row| row.slice = new_slice(row.slice));
        module_calls.sort_unstable_by_key(|row| row.slice);
        let mut io = self.io;
        io.iter_mut().for_each(|row| row.slice = new_slice(row.slice));
        io.sort_unstable_by_key(|row| row.slice);
        let mut dataflow = self.dataflow;
        dataflow.iter_mut().for_each(|row| row.slice = new_slice(row.slice));
        dataflow.sort_unstable_by_key(|row| row.slice);
        let mut instants: Vec<_> =
            self.instants.iter().map(|(t, id, name)| (*t, nested.track_of[id.index()], *name)).collect();
        instants.sort_unstable();
        let mut trace = Trace {
            name: self.name,
            sources: self.sources,
            start_unix_ns: self.clock_zero_unix_ns.map(|zero_ns| zero_ns + start_ns),
            start_source_ns: start_ns,
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
            roles: self.roles,
            range_numbers,
            module_calls,
            memory: Vec::new(),
            out_of_memory: Vec::new(),
            stacks: self.stacks.rows,
            stack_samples: Vec::new(),
            io,
            dataflow,
            counters: self.counters,
            flows: self.flows.iter().map(renamed).collect(),
            steps: Vec::new(),
            clocks: Vec::new(),
            joined: None,
            findings: self.findings,
            facts: self.facts,
        };
        say_other_of_two(&mut trace);
        let waits = self.synchronizations.into_iter();
        let waits =
            waits.map(|(row, correlation)| (Synchronization { slice: new_slice(row.slice), ..row }, correlation));
        trace.synchronizations = links::link_synchronizations(&trace, waits.collect(), &correlations);
        let track_of = |track: TrackId| nested.track_of[track.index()];
        arrows::resolve(&mut trace, &self.arrows, FlowKind::ForwardBackward, track_of);
        links::link_device_events(&mut trace, &mut keyed_events, correlations, |trace| {
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
        trace.link_batches();
        for (mut events, is_memory) in [(self.memory, true), (self.out_of_memory, false)] {
            events.sort_by_key(|event| event.time_ns);
            for event in &mut events {
                event.track = nested.track_of[event.track.index()];
                event.op = trace.innermost_op(event.track, event.time_ns);
            }
            *(if is_memory { &mut trace.memory } else { &mut trace.out_of_memory }) = events;
        }
        let mut samples = self.stack_samples;
        samples.iter_mut().for_each(|sample| sample.track = nested.track_of[sample.track.index()]);
        samples.sort_by_key(|sample| (sample.track, sample.time_ns));
        trace.stack_samples = samples;
        trace.flows.sort_unstable();
        trace.flows.dedup();
        let labels = self.step_labels.iter().map(|(id, number)| (new_slice(*id), *number)).collect();
        let iterations = self.iterations.iter().map(|(id, iteration)| (new_slice(*id), *iteration)).collect();
        let mut marks = self.step_marks;
        marks.iter_mut().for_each(|mark| mark.track = nested.track_of[mark.track.index()]);
        step_limits::find_steps(&mut trace, (labels, iterations), marks, &self.is_cut, &self.recorded);
        consistency::check(&mut trace);
        out_of_memory::report(&mut trace);
        trace
    }

    /// Moves every time so that the earliest is 0; returns the former earliest.
    fn shift_to_zero(&mut self) -> i64 {
        let slice_starts = self.slices.iter().map(|slice| slice.start_ns);
        let memory = self.memory.iter().chain(&self.out_of_memory).map(|event| event.time_ns);
        let instants = self.instants.iter().map(|row| row.0).chain(memory);
        let samples = self.counters.iter().flat_map(|counter| counter.time_ns.iter().copied());
        let stack_samples = self.stack_samples.iter().map(|sample| sample.time_ns);
        let start_ns = slice_starts.chain(instants).chain(samples).chain(stack_samples).min().unwrap_or(0);
        self.slices.iter_mut().for_each(|slice| slice.start_ns -= start_ns);
        self.instants.iter_mut().for_each(|row| row.0 -= start_ns);
        self.memory_events().for_each(|event| event.time_ns -= start_ns);
        self.counters.iter_mut().flat_map(|counter| &mut counter.time_ns).for_each(|time_ns| *time_ns -= start_ns);
        self.stack_samples.iter_mut().for_each(|sample| sample.time_ns -= start_ns);
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

/// Adds what labels say of collectives to what is known, which stays by slice. An operator says one of them.
fn add_of_labels(collectives: &mut Vec<Collective>, mut of_labels: Vec<Collective>, slices: &Slices) {
    let is_op = |slice: &SliceId| slices.kind(*slice) == SliceKind::Op;
    let known: Vec<SliceId> = collectives.iter().map(|said| said.slice).collect();
    let is_known = |slice: SliceId| known.binary_search(&slice).is_ok();
    let mut taken = BTreeSet::new();
    of_labels.sort_by_key(|said| said.slice);
    for said in of_labels.into_iter().filter(|said| !is_known(said.slice)) {
        match slices.parent(said.slice).filter(is_op) {
            Some(op) if is_known(op) => {}
            Some(op) if taken.insert(op) => collectives.push(Collective { slice: op, ..said }),
            _ => collectives.push(said),
        }
    }
    collectives.sort_by_key(|said| said.slice);
}

/// A message between the ranks of a group of two goes from one to the other, also where a source does not say so: Gloo's
/// ranges do not.
fn say_other_of_two(trace: &mut Trace) {
    let mut groups: FxHashMap<StringId, Option<[i64; 2]>> = FxHashMap::default();
    for said in &mut trace.collectives {
        if (said.source_rank, said.destination_rank) != (None, None) {
            continue;
        }
        let text = || listed(trace.strings.get(said.group_ranks))?.try_into().ok();
        let Some(ranks) = *groups.entry(said.group_ranks).or_insert_with(text) else { continue };
        let track = trace.slices.track[said.slice.index()];
        let rank = i64::from(trace.processes[trace.tracks[track.index()].process.index()].rank);
        let Some(own) = ranks.iter().position(|of| *of == rank) else { continue };
        match said.kind {
            Some(CollectiveKind::Send) => said.destination_rank = Some(ranks[1 - own]),
            Some(CollectiveKind::Receive) => said.source_rank = Some(ranks[1 - own]),
            _ => {}
        }
    }
}

fn sort_samples(counters: &mut [Counter]) {
    for counter in counters.iter_mut().filter(|counter| !counter.time_ns.is_sorted()) {
        let mut samples: Vec<(i64, f64)> = counter.time_ns.iter().copied().zip(counter.value.iter().copied()).collect();
        samples.sort_by_key(|(time_ns, _)| *time_ns);
        (counter.time_ns, counter.value) = samples.into_iter().unzip();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::drawn_with_collectives;

    #[test]
    fn of_two_ranks_a_message_goes_to_the_other() {
        let said = |name| (name, "Float", Some(8), None);
        let kinds = [
            ("s", SliceKind::Op, said("send")),
            ("r", SliceKind::Op, said("recv")),
            ("a", SliceKind::Op, said("allreduce")),
        ];
        let mut trace = drawn_with_collectives("rank 0 cpu 1 s.r.a\nrank 1 cpu 1 r.s.a\nrank 2 cpu 1 s.....", &kinds);
        // Rank 2 is not of the group, and what is said stays.
        trace.collectives[0].destination_rank = Some(7);
        say_other_of_two(&mut trace);
        let sides: Vec<_> = trace.collectives.iter().map(|said| (said.source_rank, said.destination_rank)).collect();
        let nothing = (None, None);
        assert_eq!(
            sides,
            [(None, Some(7)), (Some(1), None), nothing, (Some(0), None), (None, Some(0)), nothing, nothing]
        );
    }
}
