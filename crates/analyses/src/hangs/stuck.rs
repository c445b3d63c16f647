//! A collective that does not end: where each rank of its group is, and what that means.

use super::entries::{Entry, Key, Left, OfRank, is_left};
use super::places::{Places, stack};
use super::usual::{difference, usual};
use super::{Hang, HangState};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::StringId;
use stepscope_trace::{Trace, listed};

/// Ranks that a verdict names; of more it says how many there are.
const MAX_NAMED_RANKS: usize = 8;
/// A job of more ranks is taken for those of the run.
const MAX_RANKS: u32 = 1 << 16;

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
pub(super) struct Stuck<'a> {
    key: Key,
    number: i64,
    ranks: &'a BTreeMap<u32, OfRank>,
    statuses: BTreeMap<u32, Status>,
}

impl<'a> Stuck<'a> {
    pub(super) fn of(trace: &Trace, key: Key, ranks: &'a BTreeMap<u32, OfRank>, number: i64) -> Self {
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
    pub(super) fn of_one(ranks: &'a BTreeMap<u32, OfRank>, rank: u32, number: i64) -> Self {
        let said = ranks[&rank][&number].said;
        let key = Key { group: said.group, group_ranks: said.group_ranks, is_between_two: true };
        let statuses = [(rank, Status::Inside)].into();
        Self { key, number, ranks, statuses }
    }

    fn entry(&self, rank: u32) -> Option<&Entry> {
        self.ranks.get(&rank)?.get(&self.number)
    }

    /// Since when a rank is in it.
    pub(super) fn since_ns(&self, trace: &Trace) -> Option<i64> {
        let entries = self.statuses.keys().filter_map(|rank| self.entry(*rank));
        entries.map(|entry| trace.slices.start_ns[entry.slice.index()]).min()
    }

    fn ranks_that(&self, is: impl Fn(&Status) -> bool) -> Vec<u32> {
        self.statuses.iter().filter(|(_, status)| is(status)).map(|(rank, _)| *rank).collect()
    }

    pub(super) fn rows(&self, trace: &Trace, places: &Places, all: &[Stuck<'_>]) -> Vec<Hang> {
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
        let text = |id: StringId| trace.text(id);
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
        let any_entry = self.ranks.values().flat_map(BTreeMap::values).next();
        Hang {
            rank,
            verdict: self.verdict(trace, all, rank, status),
            is_waited_for: matches!(status, Status::Missing | Status::Differs(_)),
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
            group_description: any_entry.and_then(|entry| text(entry.said.group_description)),
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
        let name = trace.strings.get(entry.said.name);
        let group = trace.text(self.key.group).map_or(String::new(), |group| format!(" of group {group}"));
        Some(format!("; it is in {name} {}{group}", self.number))
    }
}

/// The ranks of a group.
fn members(trace: &Trace, key: Key, ranks: &BTreeMap<u32, OfRank>) -> BTreeSet<u32> {
    let seen = || ranks.keys().copied();
    if let Some(told) = listed::<u32>(trace.strings.get(key.group_ranks)) {
        return told.into_iter().chain(seen()).collect();
    }
    let size = ranks.values().flat_map(BTreeMap::values).find_map(|entry| entry.said.group_size);
    let world_size = trace.processes.iter().find_map(|process| process.world_size);
    let is_whole_job = |world_size: &u32| key.is_whole_run() || size == Some(i64::from(*world_size));
    match world_size.filter(is_whole_job) {
        Some(world_size) if world_size <= MAX_RANKS => (0..world_size).chain(seen()).collect(),
        None if !key.is_whole_run() => seen().collect(),
        _ => trace.ranks().into_iter().chain(seen()).collect(),
    }
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
