//! The same collective on several ranks.

use crate::Calls;
use crate::whole_run::WholeRun;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{Collective, CollectiveKind, DeviceEventClass, ProcessId, SliceId, Trace};

/// A collective on one rank, or what goes from one rank to another on one of the two.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// What it has in common with the parts of other ranks.
    pub key: Key,
    /// The rank.
    pub rank: u32,
    /// The process that asks for it.
    pub process: ProcessId,
    /// The group's name; empty when it has none.
    pub group: StringId,
    /// What the group is for.
    pub group_description: StringId,
    /// Ranks in the group.
    pub group_size: Option<i64>,
    /// Whether no rank states the group, so that all ranks of the run are taken for it.
    pub is_group_assumed: bool,
    /// What it does.
    pub kind: Option<CollectiveKind>,
    /// Where the rank asks for it: a slice of the host, or a kernel of which no call is known.
    pub asked_by: SliceId,
    /// What carries it out first: a kernel, or a range of the backend's thread.
    pub carried_by: SliceId,
    /// The call that launched that kernel, where it is known.
    pub launch: Option<SliceId>,
    /// When it begins to be carried out.
    pub start_ns: i64,
    /// When the last of it ends.
    pub end_ns: i64,
    /// How long it is carried out: all its kernels, or its work on the host.
    pub dur_ns: i64,
    /// Whether its end was not recorded. Nobody knows then how long it takes, and only [`Joined`](crate::Joined) has it.
    pub is_unfinished: bool,
}

impl Part {
    /// True for what goes from one rank to another.
    pub fn is_between_two(&self) -> bool {
        self.kind.is_some_and(CollectiveKind::is_between_two)
    }
}

/// What collectives of different ranks have in common when they may be the same. Its names are of the table of strings of
/// the trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    group: StringId,
    group_ranks: StringId,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Kind {
    Number(i64),
    Like {
        name: StringId,
        dtype: StringId,
        input_elements: Option<i64>,
        output_elements: Option<i64>,
    },
    /// From one rank to another. Numbers are no help: each rank counts what it sends and receives, from and to all others.
    Message {
        from: Option<i64>,
        to: Option<i64>,
    },
    /// Of a group that is not known, and no other part's.
    Alone(SliceId),
}

impl Key {
    /// That of what `asked_by` asks for in an unknown group.
    fn alone(asked_by: SliceId) -> Self {
        Self { group: StringTable::EMPTY, group_ranks: StringTable::EMPTY, kind: Kind::Alone(asked_by) }
    }

    fn of(said: &Collective, rank: u32) -> Self {
        let Collective { group, group_ranks, name, dtype, input_elements, output_elements, .. } = *said;
        let own = Some(i64::from(rank));
        let kind = match (said.kind, said.sequence_number) {
            (Some(kind), _) if kind.is_between_two() => match (said.source_rank, said.destination_rank) {
                (from, Some(to)) => Kind::Message { from: from.or(own), to: Some(to) },
                (Some(from), None) => Kind::Message { from: Some(from), to: own },
                (None, None) => Kind::Message { from: own, to: None },
            },
            (_, Some(number)) => Kind::Number(number),
            // Ranks may carry different sizes.
            (Some(kind), None) if !kind.has_equal_sizes() => {
                Kind::Like { name, dtype, input_elements: None, output_elements: None }
            }
            (_, None) => Kind::Like { name, dtype, input_elements, output_elements },
        };
        Self { group, group_ranks, kind }
    }

    /// From which rank it goes to which, when it goes from one to another and both are known.
    pub fn from_to(&self) -> Option<(i64, i64)> {
        match self.kind {
            Kind::Message { from, to } => from.zip(to),
            _ => None,
        }
    }
}

/// Which parts of a list are the same communication, by place in the list.
#[derive(Debug)]
pub struct Matched {
    /// The parts of one communication after those of the other, by rank.
    places: Vec<u32>,
    /// Where in `places` each communication ends.
    ends: Vec<u32>,
}

impl Matched {
    /// Of `parts` the collectives that at least two ranks took part in. What goes from one rank to another is not among
    /// them, nor is a part whose end was not recorded.
    pub fn of(parts: &[Part]) -> Self {
        let mut matched = Self::where_some(parts, |part| !part.is_between_two());
        let (mut kept, mut from, mut ends) = (0, 0, Vec::new());
        for end in &matched.ends {
            let same = from as usize..*end as usize;
            from = *end;
            if same.len() > 1 {
                matched.places.copy_within(same.clone(), kept);
                kept += same.len();
                ends.push(kept as u32);
            }
        }
        matched.places.truncate(kept);
        Self { ends, ..matched }
    }

    /// The places of each communication's parts, by rank.
    pub fn places(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, to)| &self.places[from as usize..*to as usize])
    }

    /// The parts of each communication, by rank; `parts` is the list that was matched.
    pub fn each_of<'a>(
        &'a self,
        parts: &'a [Part],
    ) -> impl Iterator<Item = impl Iterator<Item = &'a Part> + Clone + 'a> + 'a {
        self.places().map(|same| same.iter().map(|at| &parts[*at as usize]))
    }

    /// The same, each in a list of its own.
    pub fn each<'a>(&'a self, parts: &'a [Part]) -> impl Iterator<Item = Vec<Part>> + 'a {
        self.each_of(parts).map(|same| same.copied().collect())
    }

    /// What belongs together of the parts that are wanted; also those that no other rank has.
    fn where_some(parts: &[Part], is_wanted: impl Fn(&Part) -> bool) -> Self {
        let mut of_key = by_key(parts, is_wanted);
        let mut all = Self { places: Vec::with_capacity(of_key.places.len()), ends: Vec::new() };
        let (mut from, mut in_order) = (0, Vec::new());
        for end in of_key.ends {
            let same = &mut of_key.places[from as usize..end as usize];
            from = end;
            same.sort_unstable_by_key(|at| {
                let part = &parts[*at as usize];
                (part.rank, part.start_ns, part.asked_by, *at)
            });
            // What each rank has of this key, in its own order.
            in_order.clear();
            for of_rank in same.chunk_by(|a, b| parts[*a as usize].rank == parts[*b as usize].rank) {
                in_order.extend((0_u32..).zip(of_rank.iter().copied()));
            }
            in_order.sort_by_key(|(nth, _)| *nth);
            for same in in_order.chunk_by(|a, b| a.0 == b.0) {
                all.places.extend(same.iter().map(|(_, at)| *at));
                all.ends.push(all.places.len() as u32);
            }
        }
        all
    }
}

/// The parts that are wanted, those of one key after those of the other, by key.
fn by_key(parts: &[Part], is_wanted: impl Fn(&Part) -> bool) -> Matched {
    let mut counts: FxHashMap<Key, u32> = FxHashMap::default();
    let wanted = || (0_u32..).zip(parts).filter(|(_, part)| is_wanted(part));
    wanted().for_each(|(_, part)| *counts.entry(part.key).or_default() += 1);
    let mut keys: Vec<(Key, u32)> = counts.iter().map(|(key, count)| (*key, *count)).collect();
    keys.sort_unstable();
    let mut end = 0;
    for (key, count) in keys {
        counts.insert(key, end);
        end += count;
    }
    // Where the next part of a key goes.
    let mut next = counts;
    let mut places = vec![0; end as usize];
    for (at, part) in wanted() {
        let place = next.get_mut(&part.key).expect("it was counted");
        places[*place as usize] = at;
        *place += 1;
    }
    let mut ends: Vec<u32> = next.into_values().collect();
    ends.sort_unstable();
    Matched { places, ends }
}

/// Which of `parts` are the same communication: their places, by rank, those that no other rank has among them.
pub fn together(parts: &[Part]) -> Matched {
    Matched::where_some(parts, |_| true)
}

/// From when to when something is carried out, for how long in all, and by what first.
#[derive(Clone, Copy)]
struct Carried {
    slice: SliceId,
    launch: Option<SliceId>,
    start_ns: i64,
    end_ns: i64,
    dur_ns: i64,
    is_unfinished: bool,
}

impl Carried {
    fn by(trace: &Trace, slice: SliceId, launch: Option<SliceId>) -> Self {
        let span = trace.slices.span(slice);
        let is_unfinished = trace.slices.is_unfinished[slice.index()];
        let (start_ns, end_ns, dur_ns) = (span.start_ns, span.end_ns, span.duration_ns());
        Self { slice, launch, start_ns, end_ns, dur_ns, is_unfinished }
    }

    /// Device events come by start: `self` is first.
    fn add(&mut self, other: Self) {
        self.end_ns = self.end_ns.max(other.end_ns);
        self.dur_ns = self.dur_ns.saturating_add(other.dur_ns);
        self.is_unfinished |= other.is_unfinished;
    }
}

/// Every communication of a group that took time on a rank, and has ended. A collective that states no group is of all
/// ranks of the run where that may be assumed, else of an unknown group; what goes from one rank to another is left out
/// then.
pub fn parts(trace: &Trace, calls: &Calls) -> Vec<Part> {
    let mut parts = begun(trace, calls);
    parts.retain(|part| !part.is_unfinished);
    parts
}

/// As [`parts`], with those that have not ended: what was going on when recording ended. Also calls that returned on a
/// rank that was recorded up to the middle of something, as long as nothing carries out them or later ones of their group.
pub(crate) fn begun(trace: &Trace, calls: &Calls) -> Vec<Part> {
    let whole_run = WholeRun::of(trace);
    let mut on_device: FxHashMap<usize, Carried> = FxHashMap::default();
    let mut parts = Vec::with_capacity(calls.statements());
    let mut add = |rank: u32, said: &Collective, asked_by: SliceId, carried: Carried| {
        let is_known = said.states_group() || said.kind.is_some_and(|kind| !kind.is_between_two());
        if (carried.dur_ns > 0 || carried.is_unfinished) && is_known {
            let is_group_assumed = whole_run.is_group_of(said);
            let Collective { group, group_description, group_size, kind, .. } = *said;
            let Carried { slice, launch, start_ns, end_ns, dur_ns, is_unfinished } = carried;
            let process = trace.tracks[trace.slices.track[asked_by.index()].index()].process;
            parts.push(Part {
                key: if said.states_group() || is_group_assumed { Key::of(said, rank) } else { Key::alone(asked_by) },
                rank,
                process,
                group,
                group_description,
                group_size,
                is_group_assumed,
                kind,
                asked_by,
                carried_by: slice,
                launch,
                start_ns,
                end_ns,
                dur_ns,
                is_unfinished,
            });
        }
    };
    // Events of all tracks come by start: what is looked up of a track comes after what was before.
    let track = |slice: SliceId| trace.slices.track[slice.index()].index();
    let [mut near_calls, mut near_kernels] = [vec![0; trace.tracks.len()], vec![0; trace.tracks.len()]];
    for event in trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Communication) {
        let carried = Carried::by(trace, event.slice, event.launch);
        if let Some(call) = event.op.and_then(|op| calls.around_near(trace, op, &mut near_calls[track(op)])) {
            on_device.entry(call).and_modify(|known| known.add(carried)).or_insert(carried);
        } else if let Some(said) = calls.of_kernel_near(trace, event.slice, &mut near_kernels[track(event.slice)]) {
            add(trace.devices[event.device.index()].rank, said, event.slice, carried);
        }
    }
    let cut = cut_processes(trace);
    let process = |slice: SliceId| trace.tracks[trace.slices.track[slice.index()].index()].process;
    let mut returned = Vec::new();
    for (at, call) in calls.calls.iter().enumerate() {
        let on_host = || call.work.map(|work| Carried::by(trace, work, None));
        let carried = on_device.get(&at).copied().or_else(on_host);
        let is_cut = || cut.contains(&process(call.slice));
        let not_left = || is_cut().then(|| Carried { is_unfinished: true, ..Carried::by(trace, call.slice, None) });
        let Some(found) = carried.or_else(not_left) else { continue };
        if carried.is_none() && !trace.slices.is_unfinished[call.slice.index()] {
            returned.push(call.slice);
        }
        add(trace.rank_of_track(trace.slices.track[call.slice.index()]), &call.said, call.slice, found);
    }
    without_left(trace, &mut parts, &returned);
    parts
}

/// The processes that were recorded up to the middle of something.
fn cut_processes(trace: &Trace) -> BTreeSet<ProcessId> {
    let unfinished =
        trace.slices.is_unfinished.iter().zip(&trace.slices.track).filter(|(is_unfinished, _)| **is_unfinished);
    unfinished.map(|(_, track)| trace.tracks[track.index()].process).collect()
}

/// Forgets calls that `returned` and that were left for certain: a later one of the group was carried out, or nothing is
/// known of what carries out any.
fn without_left(trace: &Trace, parts: &mut Vec<Part>, returned: &[SliceId]) {
    if returned.is_empty() {
        return;
    }
    let group = |part: &Part| (part.process, part.key.group, part.key.group_ranks, part.is_between_two());
    let asked_ns = |part: &Part| trace.slices.start_ns[part.asked_by.index()];
    let mut last_ns = FxHashMap::default();
    for part in parts.iter().filter(|part| !part.is_unfinished) {
        let last_ns: &mut i64 = last_ns.entry(group(part)).or_insert(asked_ns(part));
        *last_ns = asked_ns(part).max(*last_ns);
    }
    let is_left = |part: &Part| last_ns.get(&group(part)).is_none_or(|last_ns| asked_ns(part) <= *last_ns);
    parts.retain(|part| returned.binary_search(&part.asked_by).is_err() || !is_left(part));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::SliceKind;
    use stepscope_trace::drawn::drawn_with_collectives;
    use stepscope_trace::simulated::{Job, Schedule};

    #[test]
    fn what_is_sent_is_what_is_received() {
        for has_devices in [true, false] {
            let schedule = Schedule::Pipeline { stages: 4, micro_batches: 5 };
            let trace =
                Job { ranks: 8, steps: 2, schedule, has_devices, jitter_ns: 9_000, ..Job::default() }.run().trace();
            let parts = parts(&trace, &Calls::of(&trace));
            let messages = together(&parts);
            let messages: Vec<_> = messages.each(&parts).filter(|same| same[0].is_between_two()).collect();
            // Forward and backward of each micro-batch cross three borders, on two lines.
            assert_eq!(messages.len(), 2 * 2 * 3 * 5 * 2);
            for same in messages {
                let (from, to) = same[0].key.from_to().expect("it was recorded");
                let mut ranks: Vec<i64> = same.iter().map(|part| i64::from(part.rank)).collect();
                ranks.sort_unstable_by_key(|rank| *rank != from);
                assert_eq!(ranks, [from, to]);
                assert_eq!(same[0].end_ns, same[1].end_ns, "both leave when it is done");
            }
        }
    }

    #[test]
    fn of_unknown_peers_nothing_is_matched() {
        let schedule = Schedule::Pipeline { stages: 2, micro_batches: 3 };
        let mut trace = Job { ranks: 2, schedule, ..Job::default() }.run().trace();
        for said in &mut trace.collectives {
            (said.source_rank, said.destination_rank) = (None, None);
        }
        let parts = parts(&trace, &Calls::of(&trace));
        assert!(!parts.is_empty() && together(&parts).places().all(|same| same.len() == 1));
    }

    #[test]
    fn what_has_not_ended_is_compared_with_nothing() {
        let said = |name| (name, SliceKind::Annotation, ("allreduce", "Float", Some(10), Some(5)));
        let mut trace = drawn_with_collectives("rank 0 label 1 ww\nrank 1 label 1 xxxx", &[said("w"), said("x")]);
        let matched = |trace: &Trace| Matched::of(&parts(trace, &Calls::of(trace))).places().count();
        assert_eq!(matched(&trace), 1);
        trace.slices.is_unfinished[1] = true;
        assert_eq!(matched(&trace), 0);
    }

    /// A part of a rank with one of a few keys.
    fn part(rank: u32, number: i64, start_ns: i64, kind: CollectiveKind) -> Part {
        let text = StringTable::EMPTY;
        let key = Key { group: text, group_ranks: text, kind: Kind::Number(number) };
        Part {
            key,
            rank,
            process: ProcessId(rank),
            group: text,
            group_description: text,
            group_size: None,
            is_group_assumed: false,
            kind: Some(kind),
            asked_by: SliceId(0),
            carried_by: SliceId(0),
            launch: None,
            start_ns,
            end_ns: start_ns + 1,
            dur_ns: 1,
            is_unfinished: false,
        }
    }

    /// As [`together`], one part after the other: the nth of its rank with its key goes with the nth of other ranks.
    fn slow(parts: &[Part]) -> Vec<Vec<u32>> {
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|at| (parts[*at].rank, parts[*at].start_ns));
        let mut found: std::collections::BTreeMap<(Key, usize), Vec<u32>> = Default::default();
        for (place, at) in order.iter().enumerate() {
            let own = |other: &&usize| parts[**other].key == parts[*at].key && parts[**other].rank == parts[*at].rank;
            let nth = order[..place].iter().filter(own).count();
            found.entry((parts[*at].key, nth)).or_default().push(*at as u32);
        }
        found.into_values().collect()
    }

    proptest! {
        #[test]
        fn the_nth_of_a_rank_goes_with_the_nth_of_the_others(
            drawn in prop::collection::vec((0_u32..4, 0_i64..3, 0_i64..5, any::<bool>()), 0..40),
        ) {
            let kind = |is_message| if is_message { CollectiveKind::Send } else { CollectiveKind::AllReduce };
            let parts: Vec<Part> = drawn
                .into_iter()
                .map(|(rank, number, start_ns, is_message)| part(rank, number, start_ns, kind(is_message)))
                .collect();
            let all = together(&parts);
            prop_assert_eq!(all.places().map(<[u32]>::to_vec).collect::<Vec<_>>(), slow(&parts));
            // Collectives of several ranks, as if there were nothing else.
            let at: Vec<u32> = (0..).zip(&parts).filter(|(_, part)| !part.is_between_two()).map(|(at, _)| at).collect();
            let collectives: Vec<Part> = at.iter().map(|at| parts[*at as usize]).collect();
            let of_several = slow(&collectives).into_iter().filter(|same| same.len() > 1);
            let expected: Vec<Vec<u32>> =
                of_several.map(|same| same.into_iter().map(|place| at[place as usize]).collect()).collect();
            prop_assert_eq!(Matched::of(&parts).places().map(<[u32]>::to_vec).collect::<Vec<_>>(), expected);
        }
    }
}
