//! A trace of what lies in a window of time. Times stay as they are; links to what lies outside are gone.

use crate::{
    Counter, DeviceEvent, FindingCode, Flow, Instants, MemoryEvent, Ops, SliceId, Slices, Step, Synchronization, Trace,
    Track,
};
use stepscope_base::Span;

impl Trace {
    /// What lies in `window` at least in part, whole: for a file that another program shows.
    pub fn part(&self, window: Span) -> Trace {
        let kept = Kept::of_window(&self.slices, window);
        let instants = (0..self.instants.len()).filter(|at| window.contains(self.instants.time_ns[*at]));
        let memory = |events: &[MemoryEvent]| -> Vec<MemoryEvent> {
            let inside = events.iter().filter(|event| window.contains(event.time_ns));
            let linked = |event: &MemoryEvent| event.op.and_then(|op| kept.new_id(op));
            inside.map(|event| MemoryEvent { op: linked(event), ..*event }).collect()
        };
        let mut findings = self.findings.clone();
        findings.add(FindingCode::PartOfTrace, || format!("from {} to {} ns", window.start_ns, window.end_ns));
        let part = self.with_slices(&kept);
        Trace {
            strings: self.strings.clone(),
            ops: Ops { inputs: self.ops.inputs.clone(), ..part.ops },
            instants: Instants {
                track: instants.clone().map(|at| self.instants.track[at]).collect(),
                time_ns: instants.clone().map(|at| self.instants.time_ns[at]).collect(),
                name: instants.map(|at| self.instants.name[at]).collect(),
            },
            memory: memory(&self.memory),
            out_of_memory: memory(&self.out_of_memory),
            stacks: self.stacks.clone(),
            stack_samples: only(&self.stack_samples, |sample| window.contains(sample.time_ns).then_some(*sample)),
            counters: self.counters.iter().map(|counter| samples_in(counter, window)).collect(),
            steps: only(&self.steps, |step| step_in(step, window)),
            findings,
            ..part
        }
    }

    /// The trace with these slices, what is said of them, and steps; without names, inputs of operators, and all that is no
    /// slice.
    pub(crate) fn with_slices(&self, kept: &Kept) -> Trace {
        let of_slice = |id: SliceId| kept.new_id(id);
        let linked = |id: Option<SliceId>| id.and_then(of_slice);
        let ops = self.ops.slice.iter().zip(&self.ops.info).filter_map(|(id, info)| Some((of_slice(*id)?, *info)));
        let (op_slices, op_infos) = ops.unzip();
        let device_events = self.device_events.iter().filter_map(|event| {
            let slice = of_slice(event.slice)?;
            Some(DeviceEvent { slice, launch: linked(event.launch), op: linked(event.op), ..event })
        });
        let synchronizations = self.synchronizations.iter().filter_map(|row| {
            let slice = of_slice(row.slice)?;
            Some(Synchronization { slice, call: linked(row.call), event_record: linked(row.event_record), ..*row })
        });
        let flow = |flow: &Flow| Some(Flow { from: of_slice(flow.from)?, to: of_slice(flow.to)?, ..*flow });
        Trace {
            name: self.name.clone(),
            sources: self.sources.clone(),
            start_unix_ns: self.start_unix_ns,
            start_source_ns: self.start_source_ns,
            processes: self.processes.clone(),
            devices: self.devices.clone(),
            tracks: self.tracks.iter().map(|track| Track { slices: kept.new_rows(track), ..track.clone() }).collect(),
            slices: self.kept_slices(kept),
            ops: Ops { slice: op_slices, info: op_infos, inputs: Vec::new() },
            device_events: device_events.collect(),
            synchronizations: synchronizations.collect(),
            collectives: only(&self.collectives, |row| {
                of_slice(row.slice).map(|slice| crate::Collective { slice, ..*row })
            }),
            roles: self.roles.clone(),
            range_numbers: only(&self.range_numbers, |(slice, number)| Some((of_slice(*slice)?, *number))),
            module_calls: only(&self.module_calls, |row| {
                of_slice(row.slice).map(|slice| crate::ModuleCall { slice, ..*row })
            }),
            io: only(&self.io, |row| of_slice(row.slice).map(|slice| crate::IoEvent { slice, ..*row })),
            dataflow: only(&self.dataflow, |row| {
                of_slice(row.slice).map(|slice| crate::DataflowRange { slice, ..*row })
            }),
            flows: only(&self.flows, flow),
            steps: self.steps.clone(),
            clocks: self.clocks.clone(),
            joined: self.joined.clone(),
            findings: self.findings.clone(),
            facts: self.facts.clone(),
            ..Trace::default()
        }
    }

    /// The rows of kept slices.
    fn kept_slices(&self, kept: &Kept) -> Slices {
        let old = &self.slices;
        let mut new = Slices::with_capacity(kept.rows.len());
        for &id in &kept.rows {
            let parent = old.with_ancestors(id).skip(1).find_map(|ancestor| kept.new_id(ancestor));
            new.track.push(old.track[id.index()]);
            new.start_ns.push(old.start_ns[id.index()]);
            new.dur_ns.push(old.dur_ns[id.index()]);
            new.name.push(old.name[id.index()]);
            new.kind.push(old.kind(id));
            new.parent.push(parent);
            new.depth.push(parent.map_or(0, |parent| new.depth[parent.index()].saturating_add(1)));
            new.is_unfinished.push(old.is_unfinished[id.index()]);
        }
        if !old.source_place.is_empty() {
            new.source_place = kept.rows.iter().map(|id| old.source_place[id.index()]).collect();
        }
        new
    }
}

/// Which slices are in the new trace, in their order.
pub(crate) struct Kept {
    rows: Vec<SliceId>,
}

impl Kept {
    /// These, in any order.
    pub(crate) fn of(mut rows: Vec<SliceId>) -> Self {
        rows.sort_unstable();
        rows.dedup();
        Self { rows }
    }

    fn of_window(slices: &Slices, window: Span) -> Self {
        let lies_inside = |id: &SliceId| {
            let span = slices.span(*id);
            if span.is_empty() { window.contains(span.start_ns) } else { !span.intersect(window).is_empty() }
        };
        Self { rows: slices.ids().filter(lies_inside).collect() }
    }

    /// What a slice is in the new trace.
    pub(crate) fn new_id(&self, old: SliceId) -> Option<SliceId> {
        self.rows.binary_search(&old).ok().map(SliceId::from_index)
    }

    fn new_rows(&self, track: &Track) -> std::ops::Range<u32> {
        let row = |old: u32| self.rows.partition_point(|id| id.0 < old) as u32;
        row(track.slices.start)..row(track.slices.end)
    }
}

fn only<T>(rows: &[T], kept: impl Fn(&T) -> Option<T>) -> Vec<T> {
    rows.iter().filter_map(kept).collect()
}

fn samples_in(counter: &Counter, window: Span) -> Counter {
    let row = |at_ns: i64| counter.time_ns.partition_point(|time_ns| *time_ns < at_ns);
    let rows = row(window.start_ns)..row(window.end_ns.max(window.start_ns));
    Counter { time_ns: counter.time_ns[rows.clone()].to_vec(), value: counter.value[rows].to_vec(), ..*counter }
}

/// A step that reaches beyond the window is not complete in it.
fn step_in(step: &Step, window: Span) -> Option<Step> {
    let inside = step.span.intersect(window);
    (!inside.is_empty()).then_some(Step { is_complete: step.is_complete && inside == step.span, ..*step })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::drawn;
    use proptest::prelude::*;

    const DRAWING: &str = "
        rank 0 step     000000011111111
        rank 0 cpu 1    .aaaaaa..cc.dd.
        rank 0 cpu 1    ..bb.e.........
        rank 0 launch 1 ..C...NH.......
        rank 0 stream 7 ....CCCC..NNHH.
        rank 0 memory 1 a.b.cAB........";

    fn names(trace: &Trace) -> String {
        let name = |id: SliceId| {
            let span = trace.slices.span(id);
            format!("{} {}..{}", trace.slice_name(id), span.start_ns / 1_000, span.end_ns / 1_000)
        };
        trace.slices.ids().map(name).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_lies_in_part_in_the_window_is_there_whole() {
        let trace = drawn(DRAWING);
        let whole = "ProfilerStep#0 0..7, a 1..7, b 2..4, e 5..6, C 4..8";
        assert_eq!(names(&trace.part(Span::new(3_000, 6_000))), whole);
    }

    #[test]
    fn a_part_says_that_it_is_one_and_has_no_link_to_the_outside() {
        let part = drawn(DRAWING).part(Span::new(3_000, 6_000));
        assert_eq!(part.findings.count(FindingCode::PartOfTrace), 1);
        let event = part.device_events.iter().next().unwrap();
        assert_eq!((event.launch, event.op.map(|op| part.slice_name(op))), (None, Some("b")));
        assert!(part.flows.is_empty() && part.steps.iter().all(|step| !step.is_complete));
        assert_eq!(part.memory.iter().map(|event| event.time_ns).collect::<Vec<_>>(), [4_000, 5_000]);
    }

    #[test]
    fn a_window_around_everything_changes_nothing_but_the_findings() {
        let trace = drawn(DRAWING);
        for part in [trace.part(Span::new(0, 99_000)), trace.part(Span::new(i64::MIN, i64::MAX))] {
            let summary = |trace: &Trace| {
                let Trace { findings: _, strings: _, .. } = trace;
                format!("{:?} {:?} {:?} {:?}", trace.slices, trace.tracks, trace.ops, trace.device_events)
                    + &format!("{:?} {:?} {:?} {:?}", trace.memory, trace.flows, trace.steps, trace.instants)
            };
            assert_eq!(summary(&part), summary(&trace));
        }
    }

    proptest! {
        #[test]
        fn any_window_gives_a_sound_trace(
            host in "[.axsi|]{30}", inner in "[.bc|]{30}", launch in "[.CDN|]{30}", stream in "[.CDNH|]{30}",
            start in -3_i64..33, len in 1_i64..20,
        ) {
            let trace = drawn(&format!("rank 0 cpu 1 {host}\nrank 0 cpu 1 {inner}\nrank 0 launch 1 {launch}\nrank 0 stream 7 {stream}\n"));
            let window = Span::new(start * 500, (start + len) * 500);
            let part = trace.part(window);
            let overlaps = |id: &SliceId| {
                let span = trace.slices.span(*id);
                span.start_ns < window.end_ns && span.end_ns > window.start_ns
            };
            prop_assert_eq!(part.slices.len(), trace.slices.ids().filter(overlaps).count());
            for track in &part.tracks {
                let ids: Vec<SliceId> = track.slice_ids().collect();
                let order = |id: &SliceId| (part.slices.span(*id).start_ns, -part.slices.span(*id).duration_ns());
                prop_assert!(ids.is_sorted_by_key(order));
                for id in ids {
                    let depth = part.slices.with_ancestors(id).count() - 1;
                    prop_assert_eq!(usize::from(part.slices.depth[id.index()]), depth);
                    if let Some(parent) = part.slices.parent(id) {
                        prop_assert_eq!(part.slices.span(parent).intersect(part.slices.span(id)), part.slices.span(id));
                    }
                }
            }
            let links = part.device_events.iter().flat_map(|event| [Some(event.slice), event.launch, event.op]);
            links.flatten().for_each(|id| assert!(id.index() < part.slices.len()));
        }
    }
}
