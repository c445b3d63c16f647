//! What each rank says of each collective of a group, by number.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::{Call, Calls, WholeRun};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{Collective, CollectiveKind, ProcessId, SliceId, Trace};

/// What ends after this time, and other ranks never entered, ended with an error.
const WITH_ERROR_NS: i64 = 5_000_000_000;

/// Whether a rank has left a collective.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Left {
    Yes,
    /// Its call returned; nothing is known of what carries it out.
    Unknown,
    No,
}

/// One collective of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) said: Collective,
    pub(super) slice: SliceId,
    pub(super) left: Left,
}

/// Which collectives are numbered together. Without name and ranks those of all ranks of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    pub(super) group: StringId,
    pub(super) group_ranks: StringId,
    pub(super) is_between_two: bool,
}

impl Key {
    /// True for the group that is assumed of collectives that state none.
    pub(super) fn is_whole_run(&self) -> bool {
        self.group == StringTable::EMPTY && self.group_ranks == StringTable::EMPTY
    }
}

/// Entries of one rank in one group, by number.
pub(super) type OfRank = BTreeMap<i64, Entry>;
pub(super) type Groups = BTreeMap<Key, BTreeMap<u32, OfRank>>;

/// What all ranks say of all collectives.
pub(super) fn groups(trace: &Trace, calls: &Calls) -> Groups {
    let process = |slice: SliceId| trace.tracks[trace.slices.track[slice.index()].index()].process;
    let is_open = |slice: &SliceId| trace.slices.is_unfinished[slice.index()];
    let cut: FxHashSet<ProcessId> = trace.slices.ids().filter(is_open).map(process).collect();
    let whole_run = WholeRun::of(trace);
    let mut of_call: FxHashMap<usize, bool> = FxHashMap::default();
    let mut entries: Vec<(Key, u32, Entry)> = Vec::new();
    let mut add = |rank: u32, said: &Collective, slice: SliceId, left: Left| {
        if said.states_group() || whole_run.is_group_of(said) {
            let key = Key { group: said.group, group_ranks: said.group_ranks, is_between_two: said.is_between_two() };
            entries.push((key, rank, Entry { said: *said, slice, left }));
        }
    };
    let of = |is_open: bool| if is_open { Left::No } else { Left::Yes };
    for event in trace.device_events.iter() {
        if let Some(call) = event.op.and_then(|op| calls.around(trace, op)) {
            *of_call.entry(call).or_default() |= is_open(&event.slice);
        } else if let Some(said) = calls.of_kernel(trace, event.slice) {
            add(trace.devices[event.device.index()].rank, said, event.slice, of(is_open(&event.slice)));
        }
    }
    // Without numbers an operator and its work are not known to be one collective: each work is counted, and no operator.
    let is_work_alone = |call: &&Call| !call.is_asked() && !call.said.states_group();
    let with_works: FxHashSet<ProcessId> =
        calls.calls.iter().filter(is_work_alone).map(|call| process(call.slice)).collect();
    for (at, call) in calls.calls.iter().enumerate() {
        let is_of_work = call.is_asked() && call.work.is_none() && !of_call.contains_key(&at);
        if is_of_work && !call.said.states_group() && with_works.contains(&process(call.slice)) {
            continue;
        }
        let left = match (of_call.get(&at), call.work) {
            (Some(is_open), _) => of(*is_open),
            (None, Some(work)) => of(is_open(&work)),
            (None, None) if is_open(&call.slice) => Left::No,
            (None, None) if cut.contains(&process(call.slice)) => Left::Unknown,
            (None, None) => Left::Yes,
        };
        add(trace.rank_of_track(trace.slices.track[call.slice.index()]), &call.said, call.slice, left);
    }
    let mut groups = numbered(trace, entries);
    let long: FxHashMap<SliceId, i64> = long_calls(trace, calls).collect();
    groups.iter_mut().filter(|(key, _)| !key.is_between_two).for_each(|(_, ranks)| reopen_failed(trace, &long, ranks));
    groups
}

/// Calls that last so long that they may have ended with an error, each with its end.
pub(super) fn long_calls<'a>(trace: &'a Trace, calls: &'a Calls) -> impl Iterator<Item = (SliceId, i64)> + 'a {
    let end_ns = |slice: SliceId| trace.slices.span(slice).end_ns;
    let with_end = move |call: &Call| {
        let of_work = call.work.map_or(i64::MIN, end_ns);
        (call.slice, of_work.max(end_ns(call.slice)))
    };
    let is_long = |(slice, end_ns): &(SliceId, i64)| end_ns - trace.slices.start_ns[slice.index()] >= WITH_ERROR_NS;
    calls.calls.iter().map(with_end).filter(is_long)
}

/// Ranks can only have left with an error what others never entered, or where they call something else: they are taken to be
/// in it still, unless they entered another one after it.
fn reopen_failed(trace: &Trace, long: &FxHashMap<SliceId, i64>, ranks: &mut BTreeMap<u32, OfRank>) {
    let Some(first) = ranks.values().filter_map(|of_rank| of_rank.keys().next_back().copied()).min() else { return };
    let kinds: BTreeSet<_> = ranks.values().filter_map(|of_rank| of_rank.get(&first)?.said.kind).collect();
    // From here on not all are together.
    let from = if kinds.len() > 1 { first } else { first + 1 };
    for of_rank in ranks.values_mut() {
        let last_ns = of_rank.values().next_back().map_or(0, |entry| trace.slices.start_ns[entry.slice.index()]);
        for entry in of_rank.range_mut(from..).map(|(_, entry)| entry) {
            let is_last = long.get(&entry.slice).is_some_and(|end_ns| *end_ns > last_ns);
            if is_last && entry.said.kind.is_some_and(CollectiveKind::ends_together) {
                entry.left = Left::No;
            }
        }
    }
}

/// Entries by group, rank and number, or order.
fn numbered(trace: &Trace, mut entries: Vec<(Key, u32, Entry)>) -> Groups {
    entries.sort_by_key(|(key, rank, entry)| (*key, *rank, trace.slices.start_ns[entry.slice.index()], entry.slice));
    let mut groups = Groups::new();
    for group in entries.chunk_by(|a, b| a.0 == b.0) {
        let has_numbers = group.iter().all(|(_, _, entry)| entry.said.sequence_number.is_some());
        let of_group = groups.entry(group[0].0).or_default();
        for of_rank in group.chunk_by(|a, b| a.1 == b.1) {
            let by_number = of_group.entry(of_rank[0].1).or_default();
            for (order, (_, _, entry)) in of_rank.iter().enumerate() {
                let number = entry.said.sequence_number.filter(|_| has_numbers).unwrap_or(order as i64);
                // Several calls of one number are one collective: it is left when all are.
                by_number.entry(number).and_modify(|known| known.left = known.left.max(entry.left)).or_insert(*entry);
            }
        }
    }
    for of_rank in groups.values_mut().flat_map(BTreeMap::values_mut) {
        // A rank of which no work is known at all says of its calls alone whether it has left them.
        if of_rank.values().all(|entry| entry.left != Left::Yes) {
            of_rank.values_mut().filter(|entry| entry.left == Left::Unknown).for_each(|entry| entry.left = Left::Yes);
        }
    }
    groups
}

/// The number of the first collective that a rank has entered and not left.
pub(super) fn first_not_left(of_rank: &OfRank) -> Option<i64> {
    // Within a group they are carried out in order.
    let last_left = of_rank.iter().rev().find(|(_, entry)| entry.left == Left::Yes).map(|(number, _)| *number);
    let is_in = |(number, entry): &(&i64, &Entry)| match entry.left {
        Left::Yes => false,
        Left::Unknown => last_left.is_none_or(|last| **number > last),
        Left::No => true,
    };
    of_rank.iter().find(is_in).map(|(number, _)| *number)
}

/// Whether a rank has left a collective that it entered: also when it has left a later one, unless it certainly has not.
pub(super) fn is_left(of_rank: &OfRank, number: i64) -> bool {
    match of_rank.get(&number).map(|entry| entry.left) {
        Some(Left::Yes) => true,
        None | Some(Left::No) => false,
        Some(Left::Unknown) => of_rank.range(number..).any(|(_, later)| later.left == Left::Yes),
    }
}
