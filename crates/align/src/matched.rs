//! The same collective on several ranks.

use crate::Calls;
use rustc_hash::FxHashMap;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{Collective, CollectiveKind, DeviceEventClass, ProcessId, SliceId, Trace};

/// A collective on one rank.
#[derive(Clone, Copy, Debug)]
pub struct Part {
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
    /// When it begins to be carried out.
    pub start_ns: i64,
    /// When the last of it ends.
    pub end_ns: i64,
    /// How long it is carried out: all its kernels, or its work on the host.
    pub dur_ns: i64,
}

/// What collectives of different ranks have in common when they may be the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    group: StringId,
    group_ranks: StringId,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Number(i64),
    Like { name: StringId, dtype: StringId, input_elements: Option<i64>, output_elements: Option<i64> },
}

impl Key {
    fn of(said: &Collective) -> Self {
        let Collective { group, group_ranks, name, dtype, input_elements, output_elements, .. } = *said;
        let kind = match said.sequence_number {
            Some(number) => Kind::Number(number),
            None => Kind::Like { name, dtype, input_elements, output_elements },
        };
        Self { group, group_ranks, kind }
    }
}

/// The collectives that at least two ranks took part in, each with its parts by rank. What goes from one rank to another
/// is not among them.
pub fn matched(trace: &Trace, calls: &Calls) -> Vec<Vec<Part>> {
    let mut parts = keyed_parts(trace, calls);
    parts.sort_by_key(|(key, part)| (*key, part.rank, part.start_ns, part.asked_by));
    let mut found = Vec::new();
    for same in parts.chunk_by(|a, b| a.0 == b.0) {
        // What each rank has of this key, in its own order.
        let mut in_order: Vec<Vec<Part>> = Vec::new();
        for of_rank in same.chunk_by(|a, b| a.1.rank == b.1.rank) {
            in_order.resize_with(in_order.len().max(of_rank.len()), Vec::new);
            in_order.iter_mut().zip(of_rank).for_each(|(parts, (_, part))| parts.push(*part));
        }
        found.extend(in_order.into_iter().filter(|parts| parts.len() > 1));
    }
    found
}

/// Every collective of a group that took time on a rank, also those that no other rank is known to have taken part in:
/// by process, group and start.
pub fn parts(trace: &Trace, calls: &Calls) -> Vec<Part> {
    let mut parts: Vec<Part> = keyed_parts(trace, calls).into_iter().map(|(_, part)| part).collect();
    parts.sort_by_key(|part| (part.process, part.group, part.group_description, part.start_ns, part.asked_by));
    parts
}

/// From when to when something is carried out, and for how long in all.
#[derive(Clone, Copy)]
struct Times {
    start_ns: i64,
    end_ns: i64,
    dur_ns: i64,
}

impl Times {
    fn add(&mut self, other: Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.dur_ns = self.dur_ns.saturating_add(other.dur_ns);
    }
}

/// Every collective of a group that took time on a rank, with what it is matched by.
fn keyed_parts(trace: &Trace, calls: &Calls) -> Vec<(Key, Part)> {
    let mut on_device: FxHashMap<usize, Times> = FxHashMap::default();
    let mut parts = Vec::new();
    let mut add = |rank: u32, said: &Collective, asked_by: SliceId, times: Times| {
        let has_group = [said.group, said.group_ranks].iter().any(|text| *text != StringTable::EMPTY);
        if times.dur_ns > 0 && has_group && said.kind != Some(CollectiveKind::PointToPoint) {
            let Collective { group, group_description, group_size, kind, .. } = *said;
            let Times { start_ns, end_ns, dur_ns } = times;
            let process = trace.tracks[trace.slices.track[asked_by.index()].index()].process;
            let part =
                Part { rank, process, group, group_description, group_size, kind, asked_by, start_ns, end_ns, dur_ns };
            parts.push((Key::of(said), part));
        }
    };
    let of_slice = |slice: SliceId| {
        let span = trace.slices.span(slice);
        Times { start_ns: span.start_ns, end_ns: span.end_ns, dur_ns: span.duration_ns() }
    };
    for event in trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Communication) {
        let times = of_slice(event.slice);
        if let Some(call) = event.op.and_then(|op| calls.around(trace, op)) {
            on_device.entry(call).and_modify(|known| known.add(times)).or_insert(times);
        } else if let Some(said) = calls.of_kernel(event.slice) {
            add(trace.devices[event.device.index()].rank, said, event.slice, times);
        }
    }
    for (at, call) in calls.calls.iter().enumerate() {
        let Some(times) = on_device.get(&at).copied().or_else(|| call.work.map(of_slice)) else { continue };
        add(trace.rank_of_track(trace.slices.track[call.slice.index()]), &call.said, call.slice, times);
    }
    parts
}
