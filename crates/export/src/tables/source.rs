//! What tables say of slices beside the columns of a trace: numbers that hold in the whole run, own times, steps.

use std::sync::OnceLock;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{DeviceEvent, DeviceEventId, Process, SliceId, SliceKind, Step, Trace, Track, TrackId};

/// Stands for "in no step".
const NO_STEP: i64 = i64::MIN;

/// A trace, and what its tables need of it. Columns of all tables look their cells up here.
pub(super) struct Source<'a> {
    pub(super) trace: &'a Trace,
    /// The rank of each track.
    ranks: Vec<u32>,
    /// How many tracks of its rank stand before each.
    track_numbers: Vec<u32>,
    /// How many slices of its rank stand before the first slice of each track.
    first_numbers: Vec<u32>,
    self_ns: OnceLock<Vec<i64>>,
    without_ops_ns: OnceLock<Vec<i64>>,
    steps: OnceLock<Vec<i64>>,
    /// Whether each slice has a row of `ops`, and which.
    ops: OnceLock<Vec<u32>>,
}

impl<'a> Source<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let ranks: Vec<u32> = trace.tracks.iter().map(|track| trace.processes[track.process.index()].rank).collect();
        let mut seen = rustc_hash::FxHashMap::<u32, (u32, u32)>::default();
        let numbers = trace.tracks.iter().zip(&ranks).map(|(track, rank)| {
            let (tracks, slices) = seen.entry(*rank).or_default();
            let before = (*tracks, *slices);
            *tracks += 1;
            *slices += track.slices.end - track.slices.start;
            before
        });
        let (track_numbers, first_numbers) = numbers.unzip();
        let [self_ns, without_ops_ns, steps] = std::array::from_fn(|_| OnceLock::new());
        Self { trace, ranks, track_numbers, first_numbers, self_ns, without_ops_ns, steps, ops: OnceLock::new() }
    }

    /// The id of a slice in tables: its rank, and how many slices of this rank stand before it. It is the same whatever
    /// other ranks were read with it.
    pub(super) fn id(&self, slice: SliceId) -> i64 {
        let track = self.trace.slices.track[slice.index()].index();
        let number = self.first_numbers[track] + (slice.0 - self.trace.tracks[track].slices.start);
        of_rank(self.ranks[track], number)
    }

    pub(super) fn maybe_id(&self, slice: Option<SliceId>) -> Option<i64> {
        slice.map(|slice| self.id(slice))
    }

    /// The id of a track in tables, by the same rule.
    pub(super) fn track_id(&self, track: TrackId) -> i64 {
        of_rank(self.ranks[track.index()], self.track_numbers[track.index()])
    }

    pub(super) fn track_of(&self, slice: SliceId) -> &'a Track {
        &self.trace.tracks[self.trace.slices.track[slice.index()].index()]
    }

    pub(super) fn process_of(&self, track: &Track) -> &'a Process {
        &self.trace.processes[track.process.index()]
    }

    pub(super) fn rank_of_track(&self, track: TrackId) -> u32 {
        self.ranks[track.index()]
    }

    pub(super) fn rank_of(&self, slice: SliceId) -> u32 {
        self.rank_of_track(self.trace.slices.track[slice.index()])
    }

    pub(super) fn event(&self, row: usize) -> DeviceEvent {
        self.trace.device_events.get(DeviceEventId::from_index(row))
    }

    pub(super) fn start_ns(&self, slice: SliceId) -> i64 {
        self.trace.slices.start_ns[slice.index()]
    }

    pub(super) fn dur_ns(&self, slice: SliceId) -> i64 {
        self.trace.slices.dur_ns[slice.index()]
    }

    /// A text that may not be known.
    pub(super) fn known(&self, text: StringId) -> Option<StringId> {
        Some(text).filter(|text| *text != StringTable::EMPTY)
    }

    /// The duration of a slice without the slices directly in it.
    pub(super) fn self_ns(&self, slice: SliceId) -> i64 {
        let slices = &self.trace.slices;
        let of_all = self.self_ns.get_or_init(|| {
            let mut own = slices.dur_ns.clone();
            for (parent, dur_ns) in slices.parent.iter().zip(&slices.dur_ns) {
                parent.iter().for_each(|parent| own[parent.index()] -= dur_ns);
            }
            own
        });
        of_all[slice.index()]
    }

    /// The duration of a slice without the operators in it, each without those in it: the own time of an operator.
    pub(super) fn without_ops_ns(&self, slice: SliceId) -> i64 {
        let slices = &self.trace.slices;
        let of_all = self.without_ops_ns.get_or_init(|| {
            let mut own = slices.dur_ns.clone();
            for op in slices.ids().filter(|id| slices.kind(*id) == SliceKind::Op) {
                for around in slices.with_ancestors(op).skip(1) {
                    own[around.index()] -= slices.dur_ns[op.index()];
                    if slices.kind(around) == SliceKind::Op {
                        break;
                    }
                }
            }
            own
        });
        of_all[slice.index()]
    }

    /// The row of `ops` that tells more of a slice.
    pub(super) fn op(&self, slice: SliceId) -> Option<usize> {
        let rows = self.ops.get_or_init(|| {
            let mut rows = vec![u32::MAX; self.trace.slices.len()];
            self.trace.ops.slice.iter().zip(0..).for_each(|(slice, row)| rows[slice.index()] = row);
            rows
        });
        Some(rows[slice.index()]).filter(|row| *row != u32::MAX).map(|row| row as usize)
    }

    /// The number of the step that a slice belongs to: what a device does belongs to the step in which it was launched.
    pub(super) fn step(&self, slice: SliceId) -> Option<i64> {
        let steps = self.steps.get_or_init(|| self.steps_of_all());
        Some(steps[slice.index()]).filter(|step| *step != NO_STEP)
    }

    fn steps_of_all(&self) -> Vec<i64> {
        let slices = &self.trace.slices;
        let mut found: Vec<i64> = slices.ids().map(|id| self.step_at(self.rank_of(id), self.start_ns(id))).collect();
        for event in self.trace.device_events.iter() {
            if let Some(launch) = event.launch {
                found[event.slice.index()] = found[launch.index()];
            }
        }
        found
    }

    fn step_at(&self, rank: u32, time_ns: i64) -> i64 {
        let steps = &self.trace.steps;
        let at = steps.partition_point(|step| (step.rank, step.span.start_ns) <= (rank, time_ns));
        let is_in = |step: &&Step| step.rank == rank && time_ns < step.span.end_ns;
        at.checked_sub(1).map(|at| &steps[at]).filter(is_in).map_or(NO_STEP, |step| step.number)
    }

    /// The number of the step of a rank at a moment.
    pub(super) fn step_of(&self, rank: u32, time_ns: i64) -> Option<i64> {
        Some(self.step_at(rank, time_ns)).filter(|step| *step != NO_STEP)
    }
}

fn of_rank(rank: u32, number: u32) -> i64 {
    i64::from(rank) << 32 | i64::from(number)
}
