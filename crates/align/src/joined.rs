//! The same communication on all ranks, found by any slice of it.

use crate::matched::begun;
use crate::{Calls, Part, together};
use rustc_hash::FxHashMap;
use std::ops::Range;
use stepscope_trace::{DeviceEventClass, SliceId, Trace};

/// What ranks of a trace do together: collectives, and what goes from one rank to another.
#[derive(Debug)]
pub struct Joined {
    calls: Calls,
    /// Those that are the same communication behind each other, by rank.
    parts: Vec<Part>,
    /// Where the communication is among them that a call or a kernel belongs to.
    places: FxHashMap<SliceId, Range<usize>>,
}

impl Joined {
    /// Puts together what `trace` says. What only one rank of it took part in, what took no time, and what is of an
    /// unknown group is not among it. Parts that have not ended are.
    pub fn of(trace: &Trace) -> Self {
        let calls = Calls::of(trace);
        let all = begun(trace, &calls);
        let mut joined = Self { calls, parts: Vec::new(), places: FxHashMap::default() };
        for same in together(&all).places().filter(|same| same.len() > 1) {
            let first = joined.parts.len();
            joined.parts.extend(same.iter().map(|at| all[*at as usize]));
            let place = first..joined.parts.len();
            joined.places.extend(joined.parts[first..].iter().map(|part| (part.asked_by, place.clone())));
        }
        let communicates = |class| class == DeviceEventClass::Communication;
        for event in trace.device_events.iter().filter(|event| communicates(event.class)) {
            let call = event.op.and_then(|op| joined.calls.around(trace, op));
            let place = call.and_then(|call| joined.places.get(&joined.calls.calls[call].slice));
            if let Some(place) = place.cloned() {
                joined.places.insert(event.slice, place);
            }
        }
        joined
    }

    /// The parts of all communications, those of one behind each other.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts, by rank, of the communication that `slice` belongs to: the operator that asks for it or a slice inside of
    /// that, the work of a backend, a kernel. Empty for every other slice.
    pub fn of_slice(&self, trace: &Trace, slice: SliceId) -> &[Part] {
        let around = || self.calls.around(trace, slice).and_then(|call| self.places.get(&self.calls.calls[call].slice));
        let is_of_host = || slice.index() < trace.slices.len() && !trace.slices.kind(slice).is_device_event();
        let place = self.places.get(&slice).or_else(|| if is_of_host() { around() } else { None });
        place.map_or(&[], |place| &self.parts[place.clone()])
    }
}

/// The rank that came last to a collective: the one that it takes the shortest on, since it ends everywhere at about the
/// same moment. `None` where several share that, where it goes from one rank to another, or where it has not ended.
pub fn last_to_come(parts: &[Part]) -> Option<u32> {
    if parts.iter().any(|part| part.is_unfinished) {
        return None;
    }
    let shortest_ns = parts.iter().map(|part| part.dur_ns).min()?;
    let mut last = parts.iter().filter(|part| part.dur_ns == shortest_ns && !part.is_between_two());
    last.next().filter(|_| last.next().is_none()).map(|part| part.rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use stepscope_trace::SliceKind;
    use stepscope_trace::drawn::drawn_with_collectives;
    use stepscope_trace::simulated::{Job, Schedule};

    /// The slices that carry out each communication of a simulated job, by rank. Such a job has a track for each channel,
    /// of the same name on all ranks, and what is in a channel comes in the same order on all of them.
    fn by_tracks(trace: &Trace) -> Vec<Vec<SliceId>> {
        let mut of_track: BTreeMap<(i64, u32), Vec<SliceId>> = BTreeMap::new();
        for track in trace.tracks.iter() {
            let number = track.stream.or(track.tid).unwrap_or_default();
            let rank = trace.processes[track.process.index()].rank;
            of_track.entry((number, rank)).or_default().extend(track.slice_ids());
        }
        let mut of_channel: BTreeMap<(i64, usize), Vec<SliceId>> = BTreeMap::new();
        for ((number, _), mut slices) in of_track.into_iter().filter(|((number, _), _)| *number >= 20) {
            slices.sort_by_key(|slice| trace.slices.start_ns[slice.index()]);
            slices
                .iter()
                .enumerate()
                .for_each(|(nth, slice)| of_channel.entry((number, nth)).or_default().push(*slice));
        }
        of_channel.into_values().collect()
    }

    fn schedules() -> impl Strategy<Value = Schedule> {
        prop_oneof![
            (1_u32..3, any::<bool>()).prop_map(|(buckets, overlaps)| Schedule::Ddp { buckets, overlaps }),
            (1_u32..3, any::<bool>()).prop_map(|(layers, prefetches)| Schedule::Fsdp { layers, prefetches }),
            (1_u32..4).prop_map(|micro_batches| Schedule::Pipeline { stages: 2, micro_batches }),
            (1_u32..3).prop_map(|layers| Schedule::Moe { layers, experts: 2 }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_ranks_do_together_is_found_by_each_slice_of_it(
            schedule in schedules(), pairs in 1_u32..4, steps in 1_i64..3, has_devices in any::<bool>(), seed in any::<u64>(),
        ) {
            let job = Job { ranks: 2 * pairs, steps, schedule, has_devices, jitter_ns: 9_000, seed, ..Job::default() };
            let trace = job.run().trace();
            let joined = Joined::of(&trace);
            let mut found: Vec<Vec<SliceId>> = vec![Vec::new(); trace.slices.len()];
            for same in by_tracks(&trace).into_iter().filter(|same| same.len() > 1) {
                same.iter().for_each(|slice| found[slice.index()].clone_from(&same));
            }
            let number = |id: SliceId| {
                let said = trace.collectives.iter().find(|said| said.slice == id);
                said.map(|said| (said.group, said.sequence_number))
            };
            for slice in trace.slices.ids() {
                let parts = joined.of_slice(&trace, slice);
                let carried: Vec<SliceId> = parts.iter().map(|part| part.carried_by).collect();
                let is_op = trace.slices.kind(slice) == SliceKind::Op && number(slice).is_some();
                if is_op {
                    // What it leads to is what carries it out leads to, of which there is one.
                    let own = parts.iter().find(|part| part.asked_by == slice);
                    prop_assert_eq!(own.map(|own| &found[own.carried_by.index()]), (!carried.is_empty()).then_some(&carried));
                    let said = own.and_then(|own| number(own.carried_by));
                    prop_assert!(said.is_none() || said == number(slice), "the backend says the same number");
                } else if trace.slices.kind(slice) != SliceKind::Runtime {
                    prop_assert_eq!(&carried, &found[slice.index()]);
                }
            }
        }
    }

    #[test]
    fn a_kernel_its_operator_and_what_lies_in_that_lead_to_all_ranks() {
        let said = ("allreduce", "Float", Some(10), None);
        let drawing = "rank 0 cpu 1    .aaa......
                       rank 0 launch 1 ..N.......
                       rank 0 stream 7 ....NNNNN.
                       rank 1 cpu 1    .aaa...b..
                       rank 1 launch 1 ..N.......
                       rank 1 stream 7 ......NNN.";
        let trace = drawn_with_collectives(drawing, &[("a", SliceKind::Op, said)]);
        let joined = Joined::of(&trace);
        let is_of_it = |id: &SliceId| !joined.of_slice(&trace, *id).is_empty();
        let names: Vec<&str> = trace.slices.ids().filter(is_of_it).map(|id| trace.slice_name(id)).collect();
        assert_eq!(names.len(), 6, "operator, launch and kernel of both ranks: {names:?}");
        let parts = joined.of_slice(&trace, trace.slices.ids().find(is_of_it).expect("one of them"));
        assert_eq!(parts.iter().map(|part| (part.rank, part.dur_ns)).collect::<Vec<_>>(), [(0, 5_000), (1, 3_000)]);
        assert_eq!(last_to_come(parts), Some(1));
        assert_eq!(last_to_come(&[parts[0], parts[0]]), None);
        assert_eq!(last_to_come(&[]), None);
        assert!(joined.of_slice(&trace, SliceId(99)).is_empty());
    }

    #[test]
    fn a_collective_that_does_not_end_is_found_on_the_ranks_that_are_in_it() {
        for has_devices in [true, false] {
            let mut trace = Job { ranks: 4, has_devices, ..Job::default() }.run().trace();
            let last = trace.collectives.iter().filter_map(|said| said.sequence_number).max();
            let rank_of = |trace: &Trace, slice: SliceId| trace.rank_of_track(trace.slices.track[slice.index()]);
            let is_last = |said: &stepscope_trace::Collective| said.sequence_number == last;
            let of_last: Vec<SliceId> =
                trace.collectives.iter().filter(|said| is_last(said)).map(|said| said.slice).collect();
            let kernels = trace.device_events.iter().filter(|event| event.op.is_some_and(|op| of_last.contains(&op)));
            let kernels: Vec<SliceId> = kernels.map(|event| event.slice).collect();
            // Rank 1 never comes; nothing is known of what rank 3 launched, or gave its backend; the others do not end.
            let gone: Vec<SliceId> =
                of_last.iter().chain(&kernels).copied().filter(|slice| rank_of(&trace, *slice) == 3).collect();
            let open = of_last.iter().chain(&kernels).filter(|slice| rank_of(&trace, **slice) % 2 == 0);
            let open: Vec<SliceId> = open.copied().collect();
            open.iter().for_each(|slice| trace.slices.is_unfinished[slice.index()] = true);
            let is_said = |said: &stepscope_trace::Collective| match rank_of(&trace, said.slice) {
                1 => !is_last(said),
                3 => !is_last(said) || trace.slices.kind(said.slice) == SliceKind::Op,
                _ => true,
            };
            let said: Vec<_> = trace.collectives.iter().filter(|said| is_said(said)).copied().collect();
            trace.collectives = said;
            let is_there = |event: &stepscope_trace::DeviceEvent| !gone.contains(&event.slice);
            trace.device_events = trace.device_events.iter().filter(is_there).collect();
            let found = |trace: &Trace| {
                let joined = Joined::of(trace);
                let ranks = open.iter().map(|slice| {
                    let parts = joined.of_slice(trace, *slice);
                    assert!(parts.iter().all(|part| part.is_unfinished) && last_to_come(parts).is_none());
                    parts.iter().map(|part| part.rank).collect::<Vec<_>>()
                });
                let mut ranks: Vec<Vec<u32>> = ranks.collect();
                ranks.dedup();
                ranks
            };
            // That rank 3 is still in it shows when it was recorded up to the middle of something.
            assert_eq!(found(&trace), [[0, 2]], "devices: {has_devices}");
            let step = trace
                .slices
                .ids()
                .filter(|id| rank_of(&trace, *id) == 3)
                .max_by_key(|id| (trace.slices.kind(*id) == SliceKind::Step, trace.slices.start_ns[id.index()]));
            trace.slices.is_unfinished[step.expect("it has steps").index()] = true;
            assert_eq!(found(&trace), [[0, 2, 3]], "devices: {has_devices}");
            let parts = crate::parts(&trace, &Calls::of(&trace));
            assert!(parts.iter().all(|part| !open.contains(&part.carried_by)), "none of it counts");
        }
    }
}
