//! The same collective on several ranks.

use crate::Calls;
use rustc_hash::FxHashMap;
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
}

impl Part {
    /// True for what goes from one rank to another.
    pub fn is_between_two(&self) -> bool {
        self.kind.is_some_and(CollectiveKind::is_between_two)
    }
}

/// What collectives of different ranks have in common when they may be the same. Its names are of the table of strings of
/// the trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    group: StringId,
    group_ranks: StringId,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
}

impl Key {
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

/// Of `parts` the collectives that at least two ranks took part in, each with its parts by rank. What goes from one rank to another
/// is not among them, nor is a part whose end was not recorded.
pub fn matched(parts: &[Part]) -> Vec<Vec<Part>> {
    let parts: Vec<Part> = parts.iter().filter(|part| !part.is_between_two()).copied().collect();
    let found = together(&parts).into_iter().filter(|same| same.len() > 1);
    found.map(|same| same.into_iter().map(|at| parts[at]).collect()).collect()
}

/// Which of `parts` are the same communication: their places, by rank, those that no other rank has among them.
pub fn together(parts: &[Part]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| {
        let part = &parts[*at];
        (part.key, part.rank, part.start_ns, part.asked_by)
    });
    let mut found = Vec::new();
    for same in order.chunk_by(|a, b| parts[*a].key == parts[*b].key) {
        // What each rank has of this key, in its own order.
        let mut in_order: Vec<Vec<usize>> = Vec::new();
        for of_rank in same.chunk_by(|a, b| parts[*a].rank == parts[*b].rank) {
            in_order.resize_with(in_order.len().max(of_rank.len()), Vec::new);
            in_order.iter_mut().zip(of_rank).for_each(|(same, at)| same.push(*at));
        }
        found.extend(in_order);
    }
    found
}

/// From when to when something is carried out, for how long in all, and by what first.
#[derive(Clone, Copy)]
struct Carried {
    slice: SliceId,
    launch: Option<SliceId>,
    start_ns: i64,
    end_ns: i64,
    dur_ns: i64,
}

impl Carried {
    fn by(trace: &Trace, slice: SliceId, launch: Option<SliceId>) -> Self {
        let span = trace.slices.span(slice);
        Self { slice, launch, start_ns: span.start_ns, end_ns: span.end_ns, dur_ns: span.duration_ns() }
    }

    /// Device events come by start: `self` is first.
    fn add(&mut self, other: Self) {
        self.end_ns = self.end_ns.max(other.end_ns);
        self.dur_ns = self.dur_ns.saturating_add(other.dur_ns);
    }
}

/// Every communication of a group that took time on a rank, and has ended.
pub fn parts(trace: &Trace, calls: &Calls) -> Vec<Part> {
    let mut on_device: FxHashMap<usize, Carried> = FxHashMap::default();
    let mut parts = Vec::new();
    let mut add = |rank: u32, said: &Collective, asked_by: SliceId, carried: Carried| {
        let has_group = [said.group, said.group_ranks].iter().any(|text| *text != StringTable::EMPTY);
        if carried.dur_ns > 0 && has_group {
            let Collective { group, group_description, group_size, kind, .. } = *said;
            let Carried { slice, launch, start_ns, end_ns, dur_ns } = carried;
            let process = trace.tracks[trace.slices.track[asked_by.index()].index()].process;
            parts.push(Part {
                key: Key::of(said, rank),
                rank,
                process,
                group,
                group_description,
                group_size,
                kind,
                asked_by,
                carried_by: slice,
                launch,
                start_ns,
                end_ns,
                dur_ns,
            });
        }
    };
    for event in trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Communication) {
        let carried = Carried::by(trace, event.slice, event.launch);
        if let Some(call) = event.op.and_then(|op| calls.around(trace, op)) {
            on_device.entry(call).and_modify(|known| known.add(carried)).or_insert(carried);
        } else if let Some(said) = calls.of_kernel(event.slice) {
            add(trace.devices[event.device.index()].rank, said, event.slice, carried);
        }
    }
    for (at, call) in calls.calls.iter().enumerate() {
        // Of what has not ended nobody knows how long it takes.
        let work = call.work.filter(|work| !trace.slices.is_unfinished[work.index()]);
        let on_host = || work.map(|work| Carried::by(trace, work, None));
        let Some(carried) = on_device.get(&at).copied().or_else(on_host) else { continue };
        add(trace.rank_of_track(trace.slices.track[call.slice.index()]), &call.said, call.slice, carried);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let messages: Vec<Vec<Part>> = together(&parts)
                .into_iter()
                .map(|same| same.into_iter().map(|at| parts[at]).collect::<Vec<_>>())
                .filter(|same| same[0].is_between_two())
                .collect();
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
        assert!(!parts.is_empty() && together(&parts).iter().all(|same| same.len() == 1));
    }

    #[test]
    fn what_has_not_ended_is_compared_with_nothing() {
        let said = |name| (name, SliceKind::Annotation, ("allreduce", "Float", Some(10), Some(5)));
        let mut trace = drawn_with_collectives("rank 0 label 1 ww\nrank 1 label 1 xxxx", &[said("w"), said("x")]);
        assert_eq!(matched(&parts(&trace, &Calls::of(&trace))).len(), 1);
        trace.slices.is_unfinished[1] = true;
        assert!(matched(&parts(&trace, &Calls::of(&trace))).is_empty());
    }
}
