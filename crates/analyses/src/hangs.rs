//! # Definition
//! For each process group in which a collective does not end: where each rank of the group is, and which ranks the others
//! wait for.
//!
//! - The collective is the first of the group that a rank has *entered and not left*: its slice, or that of its work, has
//!   no recorded end. A rank that returned from the call is also still in it when its recording was cut and shows no kernel
//!   or work of this or a later collective of the group, though it does of others.
//! - Collectives of ranks are the same when they have the same number in the same group. Where a rank tells no numbers,
//!   they are numbered by their order on each rank, from 0.
//! - The ranks of a group are those that the source states, those of the job when the group has as many, else those of the
//!   run that called one of its collectives.
//! - A rank has *never entered* it when its last collective of the group has a lower number, or when it has none.
//! - A rank *calls something else* when kind, type or size differ from what most ranks call at that number; of equally many
//!   the lowest rank counts. Sizes are compared where they must be the same on all ranks.
//! - Nothing that goes from one rank to another is compared. Such a call that was not left has a row of its own.
//!
//! # Units
//! Nanoseconds. Numbers of elements.
//!
//! # Source
//! What operators, ranges and kernels say of the collectives that they are, as in `collectives`: recordings of jobs that
//! were killed, and dumps of PyTorch's Flight Recorder.
//!
//! # Edge cases
//! Without a collective that was not left there are no rows, so a run that did not hang has none, also when ranks were
//! recorded for different lengths of time. A recording that ends while all ranks are in a collective has rows that say so.
//! What does not wait for others, as the source of a broadcast, may have left it. A rank whose recording begins behind the
//! collective, or of which the run has no file, is not known. Without numbers, ranks whose recordings begin at different
//! collectives are compared wrongly. A selection of ranks leaves out rows and changes no verdict; steps are not selected.

use crate::host_threads::{MainThreads, first_lane};
use crate::{Analysis, AnalysisContext, Outcome, Selection};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::{Call, Calls};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{Collective, CollectiveKind, ProcessId, SliceId, SliceKind, Trace, TrackId};

/// Ranks that a verdict names; of more it says how many there are.
const MAX_NAMED_RANKS: usize = 8;
/// A job of more ranks is taken for those of the run.
const MAX_RANKS: u32 = 1 << 16;

columns! {
    /// Where a rank is, of a group in which a collective does not end.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Hang {
        /// The rank.
        rank: u32 => Count,
        /// What is known of it, in words.
        verdict: String => Text,
        /// Where it is: `never entered`, `entered, not left`, `completed`, or `not known`.
        state: HangState => Text,
        /// The name of the process group.
        group: Option<String> => Text,
        /// Number of the collective in its group.
        number: i64 => Count,
        /// What the rank calls at this number.
        name: Option<String> => Text,
        /// Type of the elements that it carries.
        dtype: Option<String> => Text,
        /// Elements that go in.
        input_elements: Option<i64> => Count,
        /// Elements that come out.
        output_elements: Option<i64> => Count,
        /// When the rank entered it. Of one that never did, when it left its last collective of the group, or entered it
        /// where it has not left it.
        since_ns: Option<i64> => Nanoseconds,
        /// Number of the last collective of the group that the rank entered.
        last_number: Option<i64> => Count,
        /// What that one is.
        last_name: Option<String> => Text,
        /// What the thread that called the rank's last collective did last: the innermost range without an end, or else
        /// the one that began last.
        doing: Option<SliceId> => Text,
        /// The call stack of that, or the ranges around it, innermost first.
        stack: Option<String> => Text,
        /// What the process group is for.
        group_description: Option<String> => Text,
        /// Number of ranks in the process group, as far as they are known.
        group_size: i64 => Count,
    }
}

/// Where a rank is, of a collective.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HangState {
    /// It has not come.
    NeverEntered,
    /// It has come and is there.
    Entered,
    /// It has come and gone.
    Completed,
    /// Its recording does not say.
    NotKnown,
}

impl HangState {
    /// The state in words, as in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverEntered => "never entered",
            Self::Entered => "entered, not left",
            Self::Completed => "completed",
            Self::NotKnown => "not known",
        }
    }
}

named_cells!(HangState);

/// Every rank asked for, of each group in doubt: groups by the time of their first rank that waits, in each the ranks that
/// others wait for first.
pub fn hangs(trace: &Trace, selection: &Selection) -> Vec<Hang> {
    rows(&AnalysisContext::new(trace, selection))
}

/// Whether a rank has left a collective.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Left {
    Yes,
    /// Its call returned; nothing is known of what carries it out.
    Unknown,
    No,
}

/// One collective of one rank.
#[derive(Clone, Copy, Debug)]
struct Entry {
    said: Collective,
    slice: SliceId,
    left: Left,
}

/// Which collectives are numbered together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    group: StringId,
    group_ranks: StringId,
    is_between_two: bool,
}

/// Entries of one rank in one group, by number.
type OfRank = BTreeMap<i64, Entry>;
type Groups = BTreeMap<Key, BTreeMap<u32, OfRank>>;

fn rows(context: &AnalysisContext<'_>) -> Vec<Hang> {
    let trace = context.trace;
    let groups = groups(trace, context.get::<Calls>());
    let places = Places::of(context, &groups);
    let mut found: Vec<Stuck<'_>> = Vec::new();
    for (key, ranks) in &groups {
        if key.is_between_two {
            let first = |(rank, of_rank): (&u32, &OfRank)| Some((*rank, first_not_left(of_rank)?));
            found.extend(ranks.iter().filter_map(first).map(|(rank, number)| Stuck::of_one(ranks, rank, number)));
        } else if let Some(number) = ranks.values().filter_map(first_not_left).min() {
            found.push(Stuck::of(trace, *key, ranks, number));
        }
    }
    found.sort_by_key(|stuck| stuck.since_ns(trace));
    let mut rows: Vec<Hang> = found.iter().flat_map(|stuck| stuck.rows(trace, &places, &found)).collect();
    rows.retain(|row| context.selection.has_rank(row.rank));
    rows
}

/// What all ranks say of all collectives.
fn groups(trace: &Trace, calls: &Calls) -> Groups {
    let process = |slice: SliceId| trace.tracks[trace.slices.track[slice.index()].index()].process;
    let is_open = |slice: &SliceId| trace.slices.is_unfinished[slice.index()];
    let cut: FxHashSet<ProcessId> = trace.slices.ids().filter(is_open).map(process).collect();
    let mut of_call: FxHashMap<usize, bool> = FxHashMap::default();
    let mut entries: Vec<(Key, u32, Entry)> = Vec::new();
    let mut add = |rank: u32, said: &Collective, slice: SliceId, left: Left| {
        if [said.group, said.group_ranks].iter().any(|text| *text != StringTable::EMPTY) {
            let is_between_two = said.kind == Some(CollectiveKind::PointToPoint);
            let key = Key { group: said.group, group_ranks: said.group_ranks, is_between_two };
            entries.push((key, rank, Entry { said: *said, slice, left }));
        }
    };
    let of = |is_open: bool| if is_open { Left::No } else { Left::Yes };
    for event in trace.device_events.iter() {
        if let Some(call) = event.op.and_then(|op| calls.around(trace, op)) {
            *of_call.entry(call).or_default() |= is_open(&event.slice);
        } else if let Some(said) = calls.of_kernel(event.slice) {
            add(trace.devices[event.device.index()].rank, said, event.slice, of(is_open(&event.slice)));
        }
    }
    for (at, call) in calls.calls.iter().enumerate() {
        let left = match (of_call.get(&at), call.work) {
            (Some(is_open), _) => of(*is_open),
            (None, Some(work)) => of(is_open(&work)),
            (None, None) if is_open(&call.slice) => Left::No,
            (None, None) if cut.contains(&process(call.slice)) => Left::Unknown,
            (None, None) => Left::Yes,
        };
        add(trace.rank_of_track(trace.slices.track[call.slice.index()]), &call.said, call.slice, left);
    }
    numbered(trace, entries)
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
fn first_not_left(of_rank: &OfRank) -> Option<i64> {
    // Within a group they are carried out in order.
    let last_left = of_rank.iter().rev().find(|(_, entry)| entry.left == Left::Yes).map(|(number, _)| *number);
    let is_in = |(number, entry): &(&i64, &Entry)| match entry.left {
        Left::Yes => false,
        Left::Unknown => last_left.is_none_or(|last| **number > last),
        Left::No => true,
    };
    of_rank.iter().find(is_in).map(|(number, _)| *number)
}

/// What is told of one rank of a collective.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Status {
    Missing,
    /// It calls something else, in words.
    Differs(String),
    Inside,
    Left,
    /// Why nothing is known of it.
    NotKnown(&'static str),
}

/// A collective that does not end.
struct Stuck<'a> {
    key: Key,
    number: i64,
    ranks: &'a BTreeMap<u32, OfRank>,
    statuses: BTreeMap<u32, Status>,
}

impl<'a> Stuck<'a> {
    fn of(trace: &Trace, key: Key, ranks: &'a BTreeMap<u32, OfRank>, number: i64) -> Self {
        let in_run: BTreeSet<u32> = trace.ranks().into_iter().collect();
        let entered: Vec<(u32, &Entry)> =
            ranks.iter().filter_map(|(rank, of_rank)| Some((*rank, of_rank.get(&number)?))).collect();
        let usual = usual(&entered);
        let status = |rank: u32| match ranks.get(&rank) {
            _ if !in_run.contains(&rank) => Status::NotKnown("the run has no file of it"),
            None => Status::Missing,
            Some(of_rank) => match of_rank.get(&number) {
                Some(entry) => match usual.and_then(|usual| difference(trace, entry, &usual)) {
                    Some(difference) => Status::Differs(difference),
                    None if is_left(of_rank, number) => Status::Left,
                    None => Status::Inside,
                },
                None if of_rank.keys().all(|entered| *entered < number) => Status::Missing,
                None => Status::NotKnown("only later ones are recorded"),
            },
        };
        let statuses = members(trace, key, ranks).into_iter().map(|rank| (rank, status(rank))).collect();
        Self { key, number, ranks, statuses }
    }

    /// Of what goes from one rank to another.
    fn of_one(ranks: &'a BTreeMap<u32, OfRank>, rank: u32, number: i64) -> Self {
        let said = ranks[&rank][&number].said;
        let key = Key { group: said.group, group_ranks: said.group_ranks, is_between_two: true };
        let statuses = [(rank, Status::Inside)].into();
        Self { key, number, ranks, statuses }
    }

    fn entry(&self, rank: u32) -> Option<&Entry> {
        self.ranks.get(&rank)?.get(&self.number)
    }

    /// Since when a rank is in it.
    fn since_ns(&self, trace: &Trace) -> Option<i64> {
        let entries = self.statuses.keys().filter_map(|rank| self.entry(*rank));
        entries.map(|entry| trace.slices.start_ns[entry.slice.index()]).min()
    }

    fn ranks_that(&self, is: impl Fn(&Status) -> bool) -> Vec<u32> {
        self.statuses.iter().filter(|(_, status)| is(status)).map(|(rank, _)| *rank).collect()
    }

    fn rows(&self, trace: &Trace, places: &Places, all: &[Stuck<'_>]) -> Vec<Hang> {
        let order = |status: &Status| match status {
            Status::Missing => 0,
            Status::Differs(_) => 1,
            Status::NotKnown(_) => 2,
            Status::Inside => 3,
            Status::Left => 4,
        };
        let mut ranks: Vec<(&u32, &Status)> = self.statuses.iter().collect();
        ranks.sort_by_key(|(rank, status)| (order(status), **rank));
        ranks.into_iter().map(|(rank, status)| self.row(trace, places, all, (*rank, status))).collect()
    }

    fn row(&self, trace: &Trace, places: &Places, all: &[Stuck<'_>], (rank, status): (u32, &Status)) -> Hang {
        let text = |id: StringId| (id != StringTable::EMPTY).then(|| trace.strings.get(id).to_string());
        let of_rank = self.ranks.get(&rank);
        let entry = self.entry(rank);
        let last = of_rank.and_then(|of_rank| of_rank.last_key_value());
        let is_left = of_rank.is_some_and(|of_rank| is_left(of_rank, self.number));
        let state = match status {
            Status::Missing => HangState::NeverEntered,
            Status::NotKnown(_) => HangState::NotKnown,
            Status::Differs(_) | Status::Inside | Status::Left if is_left => HangState::Completed,
            Status::Differs(_) | Status::Inside | Status::Left => HangState::Entered,
        };
        let since_ns = match (entry, last) {
            (Some(entry), _) => Some(trace.slices.start_ns[entry.slice.index()]),
            (None, Some((_, last))) if *status == Status::Missing => Some(match last.left {
                Left::No => trace.slices.start_ns[last.slice.index()],
                Left::Yes | Left::Unknown => trace.slices.span(last.slice).end_ns,
            }),
            _ => None,
        };
        let doing = places.of_rank.get(&rank).copied();
        let group_description = self.ranks.values().flat_map(BTreeMap::values).next();
        Hang {
            rank,
            verdict: self.verdict(trace, all, rank, status),
            state,
            group: text(self.key.group),
            number: self.number,
            name: entry.and_then(|entry| text(entry.said.name)),
            dtype: entry.and_then(|entry| text(entry.said.dtype)),
            input_elements: entry.and_then(|entry| entry.said.input_elements),
            output_elements: entry.and_then(|entry| entry.said.output_elements),
            since_ns,
            last_number: last.map(|(number, _)| *number),
            last_name: last.and_then(|(_, entry)| text(entry.said.name)),
            doing,
            stack: doing.and_then(|doing| stack(trace, doing)),
            group_description: group_description.and_then(|entry| text(entry.said.group_description)),
            group_size: self.group_size(),
        }
    }

    fn group_size(&self) -> i64 {
        let told = self.ranks.values().flat_map(BTreeMap::values).find_map(|entry| entry.said.group_size);
        told.unwrap_or(self.statuses.len() as i64)
    }

    fn verdict(&self, trace: &Trace, all: &[Stuck<'_>], rank: u32, status: &Status) -> String {
        let others = |is: fn(&Status) -> bool| Some(self.ranks_that(is)).filter(|ranks| !ranks.is_empty());
        let waited_for = || {
            let missing = others(|status| *status == Status::Missing);
            missing.or_else(|| others(|status| matches!(status, Status::Differs(_))))
        };
        match status {
            Status::Missing => {
                let waiting = self.ranks_that(|status| matches!(status, Status::Inside | Status::Differs(_)));
                let wait = if waiting.len() == 1 { "waits" } else { "wait" };
                let elsewhere = all.iter().find_map(|other| other.place_of(trace, rank)).unwrap_or_default();
                format!("{} {wait} for it{elsewhere}", named(&waiting))
            }
            Status::Differs(difference) => difference.clone(),
            Status::NotKnown(why) => (*why).to_string(),
            Status::Left => "has left it".to_string(),
            Status::Inside if self.key.is_between_two => "waits for the other side".to_string(),
            Status::Inside => match waited_for() {
                Some(ranks) => format!("waits for {}", named(&ranks)),
                None => match others(|status| matches!(status, Status::NotKnown(_))) {
                    Some(ranks) => format!("waits, {} not known", named(&ranks)),
                    None => match others(|status| *status == Status::Left) {
                        Some(ranks) => format!("waits, {} left", named(&ranks)),
                        None => "all known ranks are in it".to_string(),
                    },
                },
            },
        }
    }

    /// Where a rank is while others wait for it: in this collective.
    fn place_of(&self, trace: &Trace, rank: u32) -> Option<String> {
        let status = self.statuses.get(&rank)?;
        let entry = self.entry(rank).filter(|_| matches!(status, Status::Inside | Status::Differs(_)))?;
        let (name, group) = (trace.strings.get(entry.said.name), trace.strings.get(self.key.group));
        Some(format!("; it is in {name} {} of group {group}", self.number))
    }
}

/// Whether a rank has left a collective that it entered: also when it has left a later one, unless it certainly has not.
fn is_left(of_rank: &OfRank, number: i64) -> bool {
    match of_rank.get(&number).map(|entry| entry.left) {
        Some(Left::Yes) => true,
        None | Some(Left::No) => false,
        Some(Left::Unknown) => of_rank.range(number..).any(|(_, later)| later.left == Left::Yes),
    }
}

/// The ranks of a group.
fn members(trace: &Trace, key: Key, ranks: &BTreeMap<u32, OfRank>) -> BTreeSet<u32> {
    let seen = || ranks.keys().copied();
    let told = trace.strings.get(key.group_ranks).split(|c: char| !c.is_ascii_digit());
    let told: BTreeSet<u32> = told.filter_map(|rank| rank.parse().ok()).collect();
    if !told.is_empty() {
        return told.into_iter().chain(seen()).collect();
    }
    let size = ranks.values().flat_map(BTreeMap::values).find_map(|entry| entry.said.group_size);
    let world_size = trace.processes.iter().find_map(|process| process.world_size);
    match world_size.filter(|world_size| size == Some(i64::from(*world_size))) {
        Some(world_size) if world_size <= MAX_RANKS => (0..world_size).chain(seen()).collect(),
        Some(_) => trace.ranks().into_iter().chain(seen()).collect(),
        None => seen().collect(),
    }
}

/// What must be the same on all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Alike {
    name: StringId,
    kind: Option<CollectiveKind>,
    dtype: StringId,
    /// `None` where they may differ, or are not known.
    elements: [Option<i64>; 2],
}

impl Alike {
    fn of(said: &Collective) -> Self {
        use CollectiveKind::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
        let is_alike = matches!(said.kind, Some(AllReduce | AllGather | ReduceScatter | Broadcast | Reduce));
        let elements = if is_alike { [said.input_elements, said.output_elements] } else { [None; 2] };
        Self { name: said.name, kind: said.kind, dtype: said.dtype, elements }
    }
}

/// What most ranks call, of equally many the lowest.
fn usual(entered: &[(u32, &Entry)]) -> Option<Alike> {
    let calls: Vec<Alike> = entered.iter().map(|(_, entry)| Alike::of(&entry.said)).collect();
    // By order of first calls, of which there are few.
    let mut counts: Vec<(Alike, usize)> = Vec::new();
    for call in calls {
        match counts.iter_mut().find(|(known, _)| *known == call) {
            Some((_, count)) => *count += 1,
            None => counts.push((call, 1)),
        }
    }
    counts.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(call, _)| call)
}

/// How what a rank calls differs from the usual, in words.
fn difference(trace: &Trace, entry: &Entry, usual: &Alike) -> Option<String> {
    let own = Alike::of(&entry.said);
    let text = |id: StringId| trace.strings.get(id);
    let is_other = match (own.kind, usual.kind) {
        (Some(own), Some(usual)) => own != usual,
        _ => own.name != usual.name,
    };
    if is_other {
        return Some(format!("calls {}, not {}", text(own.name), text(usual.name)));
    }
    let is_known = own.dtype != StringTable::EMPTY && usual.dtype != StringTable::EMPTY;
    if is_known && own.dtype != usual.dtype {
        return Some(format!("carries {}, not {}", text(own.dtype), text(usual.dtype)));
    }
    let of_side = |side: usize, what: &str| {
        let (own, usual) = own.elements[side].zip(usual.elements[side])?;
        (own != usual).then(|| format!("has {own} elements {what}, not {usual}"))
    };
    of_side(0, "in").or_else(|| of_side(1, "out"))
}

/// Ranks in words: `rank 2`, `ranks 2, 3`.
fn named(ranks: &[u32]) -> String {
    let first: Vec<String> = ranks.iter().take(MAX_NAMED_RANKS).map(u32::to_string).collect();
    match ranks {
        [] => "no rank".to_string(),
        [rank] => format!("rank {rank}"),
        _ if ranks.len() > MAX_NAMED_RANKS => {
            format!("ranks {} and {} more", first.join(", "), ranks.len() - MAX_NAMED_RANKS)
        }
        _ => format!("ranks {}", first.join(", ")),
    }
}

/// What the threads of ranks did last.
struct Places {
    of_rank: BTreeMap<u32, SliceId>,
}

impl Places {
    fn of(context: &AnalysisContext<'_>, groups: &Groups) -> Self {
        let trace = context.trace;
        let mut last_call: BTreeMap<u32, SliceId> = BTreeMap::new();
        let start_ns = |slice: SliceId| (trace.slices.start_ns[slice.index()], slice);
        let calls = context.get::<Calls>().calls.iter().filter(|call| Self::is_of_caller(trace, call));
        for slice in calls.map(|call| call.slice) {
            let rank = trace.rank_of_track(trace.slices.track[slice.index()]);
            let last = last_call.entry(rank).or_insert(slice);
            *last = if start_ns(slice) > start_ns(*last) { slice } else { *last };
        }
        if groups.is_empty() {
            return Self { of_rank: BTreeMap::new() };
        }
        let mains = context.get::<MainThreads>();
        let main_of = |rank: u32| {
            let of_rank = |process: &&ProcessId| trace.processes[process.index()].rank == rank;
            let is_helper = |process: &&ProcessId| trace.processes[process.index()].parent_pid.is_some();
            let main = mains.0.keys().filter(of_rank).min_by_key(|process| (is_helper(process), **process));
            main.map(|process| mains.0[process])
        };
        let thread_of = |rank: u32| match last_call.get(&rank) {
            Some(slice) => Some(first_lane(trace, trace.slices.track[slice.index()])),
            None => main_of(rank),
        };
        let last = |rank: u32| Some((rank, last_of_thread(trace, thread_of(rank)?)?));
        Self { of_rank: trace.ranks().into_iter().filter_map(last).collect() }
    }

    /// Whether a call lies on the thread that called it, which is not known of works alone.
    fn is_of_caller(trace: &Trace, call: &Call) -> bool {
        call.is_asked() || trace.ops.get(call.slice).is_some()
    }
}

/// The innermost slice of a thread that has no end, or else the one that began last.
fn last_of_thread(trace: &Trace, thread: TrackId) -> Option<SliceId> {
    let slices = trace.lanes(thread).flat_map(|lane| trace.tracks[lane.index()].slice_ids());
    let slices = slices.filter(|slice| trace.slices.kind(*slice) != SliceKind::Overhead);
    slices.max_by_key(|slice| {
        let at = slice.index();
        (trace.slices.is_unfinished[at], trace.slices.start_ns[at], trace.slices.depth[at], *slice)
    })
}

/// The call stack of a slice, or the names of those around it.
fn stack(trace: &Trace, slice: SliceId) -> Option<String> {
    let own = trace.ops.get(slice).map_or(StringTable::EMPTY, |info| info.stack);
    if own != StringTable::EMPTY {
        return Some(trace.strings.get(own).to_string());
    }
    let around: Vec<&str> = trace.slices.with_ancestors(slice).skip(1).map(|outer| trace.slice_name(outer)).collect();
    (!around.is_empty()).then(|| around.join(";"))
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests;
