//! Allocations paired with their frees, and how much memory is in use after each of them: what the analyses of memory
//! share.

use crate::context::Shared;
use crate::{AnalysisContext, Selection};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use stepscope_base::Span;
use stepscope_trace::{DeviceId, MemoryEvent, ProcessId, Trace, TrackId};

/// Memory of one device of a rank, or of its host, and its events as rows of `trace.memory`, by time.
pub(crate) struct Pool {
    pub(crate) rank: u32,
    pub(crate) device: Option<DeviceId>,
    pub(crate) events: Vec<usize>,
    allocations: OnceLock<Vec<Allocation>>,
    levels: OnceLock<Vec<Level>>,
}

impl Pool {
    /// The device's number within the rank; `None` for the host.
    pub(crate) fn ordinal(&self, trace: &Trace) -> Option<i64> {
        self.device.map(|device| trace.devices[device.index()].ordinal)
    }

    /// Its allocations, by their first event; found once.
    pub(crate) fn allocations(&self, trace: &Trace) -> &[Allocation] {
        self.allocations.get_or_init(|| allocations(trace, &self.events))
    }

    /// The level after each of its events; found once.
    pub(crate) fn levels(&self, trace: &Trace) -> &[Level] {
        self.levels.get_or_init(|| levels(trace, self))
    }
}

/// Every memory of the ranks asked for that has events, by rank, the host's first.
impl Shared for Vec<Pool> {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        pools(context.trace, context.selection)
    }
}

pub(crate) fn pools(trace: &Trace, selection: &Selection) -> Vec<Pool> {
    let mut events: BTreeMap<(u32, Option<DeviceId>), Vec<usize>> = BTreeMap::new();
    let rank_of: Vec<u32> = (0..trace.tracks.len()).map(|at| trace.rank_of_track(TrackId::from_index(at))).collect();
    // Of the two or so memories of a rank the last one is most often the next.
    let of_one = |a: &MemoryEvent, b: &MemoryEvent| (a.track, a.device) == (b.track, b.device);
    let mut at = 0;
    for run in trace.memory.chunk_by(of_one) {
        let rank = rank_of[run[0].track.index()];
        if selection.has_rank(rank) {
            events.entry((rank, run[0].device)).or_default().extend(at..at + run.len());
        }
        at += run.len();
    }
    let pool =
        |((rank, device), events)| Pool { rank, device, events, allocations: OnceLock::new(), levels: OnceLock::new() };
    events.into_iter().map(pool).collect()
}

/// From the start of the first step asked for to the end of the last, on `rank`; `None` when everything is asked for.
pub(crate) fn window(trace: &Trace, selection: &Selection, rank: u32) -> Option<Span> {
    let windows = selection.windows(trace, rank)?;
    let hull = |a: Span, b: Span| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns));
    Some(windows.into_iter().reduce(hull).unwrap_or(Span::new(0, 0)))
}

/// How much of an allocation's life was recorded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AllocationState {
    /// From the allocation to the free.
    Freed,
    /// The allocation; it was not freed before recording ended.
    Held,
    /// The allocation; its address was allocated again, so that it was freed unseen.
    Lost,
    /// The free only.
    AllocatedBefore,
    /// One event, which the source gives no address to pair it by.
    Unpaired,
}

named_cells!(AllocationState);

impl AllocationState {
    /// The state's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Freed => "freed",
            Self::Held => "held",
            Self::Lost => "lost",
            Self::AllocatedBefore => "allocated_before",
            Self::Unpaired => "unpaired",
        }
    }
}

/// One allocation; events are rows of `trace.memory`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Allocation {
    pub(crate) bytes: i64,
    pub(crate) allocated: Option<usize>,
    pub(crate) freed: Option<usize>,
    /// The event with which it is over: the free, or the next allocation at its address.
    pub(crate) over: Option<usize>,
    pub(crate) state: AllocationState,
}

impl Allocation {
    /// True when it is known to be held after the event in row `at`.
    pub(crate) fn is_held_after(&self, at: usize) -> bool {
        let is_paired = self.state != AllocationState::Unpaired;
        is_paired && self.allocated.is_some_and(|row| row <= at) && self.over.is_none_or(|row| row > at)
    }
}

/// The allocations that `events` tell of, by their first event. Addresses count within a process. Events of no bytes are
/// none.
fn allocations(trace: &Trace, events: &[usize]) -> Vec<Allocation> {
    let mut rows: Vec<Allocation> = Vec::new();
    let mut live: FxHashMap<(ProcessId, u64), usize> = FxHashMap::default();
    for at in events.iter().copied() {
        let event = &trace.memory[at];
        let key = (process_of(trace, event), event.address);
        let is_allocation = event.bytes > 0;
        let bytes = event.bytes.saturating_abs();
        let (allocated, freed) = if is_allocation { (Some(at), None) } else { (None, Some(at)) };
        let new = |state| Allocation { bytes, allocated, freed, over: freed, state };
        if event.bytes == 0 {
        } else if event.address == 0 {
            rows.push(new(AllocationState::Unpaired));
        } else if is_allocation {
            if let Some(older) = live.insert(key, rows.len()) {
                (rows[older].state, rows[older].over) = (AllocationState::Lost, Some(at));
            }
            rows.push(new(AllocationState::Held));
        } else if let Some(row) = live.remove(&key) {
            (rows[row].state, rows[row].freed, rows[row].over) = (AllocationState::Freed, Some(at), Some(at));
        } else {
            rows.push(new(AllocationState::AllocatedBefore));
        }
    }
    rows
}

/// Memory in use after one event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Level {
    pub(crate) time_ns: i64,
    /// The event, a row of `trace.memory`.
    pub(crate) event: usize,
    pub(crate) allocated_bytes: i64,
    pub(crate) reserved_bytes: Option<i64>,
}

#[derive(Clone, Copy, Default)]
struct OfProcess {
    allocated_bytes: i64,
    /// The part of it that is in no total of the source.
    mapped_bytes: i64,
    reserved_bytes: Option<i64>,
}

/// For each event of a pool whether it is of memory that the host maps, as for tensors in shared memory. Such a report
/// says the mapping's own bytes as reserved, where others say nothing, and has 0 for the totals.
fn mappings(trace: &Trace, pool: &Pool) -> Vec<bool> {
    let mut mapped: FxHashSet<(ProcessId, u64)> = FxHashSet::default();
    let mut is_of_mapping = |event: &MemoryEvent| {
        let key = (process_of(trace, event), event.address);
        if pool.device.is_some() {
            return false;
        }
        let is_begin = event.bytes > 0 && event.reserved_bytes.is_some_and(|bytes| bytes != 0);
        let was_mapped = mapped.remove(&key);
        if is_begin {
            mapped.insert(key);
        }
        is_begin || (was_mapped && event.bytes < 0)
    };
    pool.events.iter().map(|at| is_of_mapping(&trace.memory[*at])).collect()
}

/// The level after each event of a pool: the source's own totals where it gives them, else the sum so far. Several
/// processes of a rank add up.
fn levels(trace: &Trace, pool: &Pool) -> Vec<Level> {
    let mappings = mappings(trace, pool);
    let (slot_of, mut of_process) = levels_before(trace, pool, &mappings);
    let sum = |levels: &[OfProcess]| levels.iter().fold(0_i64, |sum, own| sum.saturating_add(own.allocated_bytes));
    let mut allocated_bytes = sum(&of_process);
    let mut levels = Vec::with_capacity(pool.events.len());
    for (at, is_of_mapping) in pool.events.iter().copied().zip(mappings) {
        let event = &trace.memory[at];
        let own = &mut of_process[slot_of[event.track.index()]];
        let before = own.allocated_bytes;
        let total = event.allocated_bytes.filter(|_| !is_of_mapping);
        own.mapped_bytes = own.mapped_bytes.saturating_add(if is_of_mapping { event.bytes } else { 0 });
        let total = total.map(|total| total.saturating_add(own.mapped_bytes));
        own.allocated_bytes = total.unwrap_or(before.saturating_add(event.bytes));
        // A host's allocator keeps nothing in reserve, and its reports say 0.
        own.reserved_bytes = event.reserved_bytes.filter(|_| pool.device.is_some()).or(own.reserved_bytes);
        allocated_bytes = allocated_bytes.saturating_sub(before).saturating_add(own.allocated_bytes);
        let reserved = of_process.iter().filter_map(|level| level.reserved_bytes);
        let reserved_bytes = reserved.reduce(|a, b| a.saturating_add(b));
        levels.push(Level { time_ns: event.time_ns, event: at, allocated_bytes, reserved_bytes });
    }
    levels
}

/// What is known of a process before its first event.
#[derive(Clone, Copy, Default)]
struct Before {
    /// The sum of what it allocated and freed so far, and the lowest that this ever was.
    sum: i64,
    lowest: i64,
    /// What the source says that it held; `None` when it does not.
    total: Option<i64>,
    /// What it freed without having allocated it.
    freed_only: i64,
    /// It has events, of whatever kind.
    is_there: bool,
    /// It has events that say totals, or could.
    has_begun: bool,
}

/// What each process held before its first event: by the source's total, else what it freed without having allocated
/// it, and at least so much that the sum is never below 0. For each track with events the place of its process among
/// those that have any, then what these held.
fn levels_before(trace: &Trace, pool: &Pool, mappings: &[bool]) -> (Vec<usize>, Vec<OfProcess>) {
    let process_of: Vec<usize> = trace.tracks.iter().map(|track| track.process.index()).collect();
    let mut before = vec![Before::default(); trace.processes.len()];
    for (event, is_of_mapping) in pool.events.iter().map(|at| &trace.memory[*at]).zip(mappings) {
        let own = &mut before[process_of[event.track.index()]];
        if *is_of_mapping {
            own.is_there = true;
            continue;
        }
        own.sum = own.sum.saturating_add(event.bytes);
        own.lowest = own.lowest.min(own.sum);
        own.is_there = true;
        if !std::mem::replace(&mut own.has_begun, true) {
            own.total = event.allocated_bytes.map(|total| total.saturating_sub(event.bytes));
        }
    }
    if before.iter().any(|own| own.has_begun && own.total.is_none()) {
        for row in pool.allocations(trace).iter().filter(|row| row.state == AllocationState::AllocatedBefore) {
            let Some(freed) = row.freed else { continue };
            let own = &mut before[process_of[trace.memory[freed].track.index()]];
            own.freed_only = own.freed_only.saturating_add(row.bytes);
        }
    }
    let mut levels = Vec::new();
    let mut slot = |own: &Before| {
        if own.is_there {
            let allocated_bytes = own.total.unwrap_or(own.freed_only.max(own.lowest.saturating_neg()));
            levels.push(OfProcess { allocated_bytes, ..OfProcess::default() });
        }
        levels.len().saturating_sub(1)
    };
    let slots: Vec<usize> = before.iter().map(&mut slot).collect();
    (process_of.into_iter().map(|process| slots[process]).collect(), levels)
}

/// The levels inside `window`, beginning with the one that it begins with.
pub(crate) fn levels_inside(levels: &[Level], window: Option<Span>) -> Cow<'_, [Level]> {
    let Some(window) = window else { return Cow::Borrowed(levels) };
    let first = levels.partition_point(|level| level.time_ns < window.start_ns);
    let end = levels.partition_point(|level| level.time_ns < window.end_ns).max(first);
    let is_at_start = first < end && levels[first].time_ns == window.start_ns;
    let before = first.checked_sub(1).filter(|_| !window.is_empty() && !is_at_start);
    let before = before.map(|at| Level { time_ns: window.start_ns, ..levels[at] });
    before.into_iter().chain(levels[first..end].iter().copied()).collect()
}

pub(crate) fn process_of(trace: &Trace, event: &MemoryEvent) -> ProcessId {
    trace.tracks[event.track.index()].process
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    fn check(drawing: &str, pairs: &[&str], expected_levels: &[i64]) {
        let trace = drawn(drawing);
        let pool = pools(&trace, &Selection::default()).remove(0);
        let at = |row: Option<usize>| row.map_or("-".into(), |row| (trace.memory[row].time_ns / 1_000).to_string());
        let pair =
            |row: &Allocation| format!("{} {}..{} {}", row.bytes, at(row.allocated), at(row.freed), row.state.as_str());
        assert_eq!(pool.allocations(&trace).iter().map(pair).collect::<Vec<_>>(), pairs);
        let levels: Vec<i64> = pool.levels(&trace).iter().map(|level| level.allocated_bytes).collect();
        assert_eq!(levels, expected_levels);
    }

    #[test]
    fn a_free_belongs_to_the_last_allocation_at_its_address() {
        check(
            "rank 0 memory 1 ab.BAab",
            &["100 0..4 freed", "200 1..3 freed", "100 5..- held", "200 6..- held"],
            &[100, 300, 100, 0, 100, 300],
        );
    }

    #[test]
    fn what_is_freed_without_an_allocation_was_held_before() {
        check("rank 0 memory 1 b.A.B", &["200 0..4 freed", "100 -..2 allocated_before"], &[300, 200, 0]);
    }

    #[test]
    fn an_address_allocated_twice_was_freed_unseen() {
        check("rank 0 memory 1 a.a.A", &["100 0..- lost", "100 2..4 freed"], &[100, 200, 100]);
    }

    #[test]
    fn totals_of_the_source_come_first() {
        let mut trace = drawn("rank 0 memory 1 a.b.A");
        trace.memory[1].allocated_bytes = Some(5_000);
        trace.memory[1].reserved_bytes = Some(8_000);
        let pool = pools(&trace, &Selection::default()).remove(0);
        let levels: Vec<_> =
            pool.levels(&trace).iter().map(|level| (level.allocated_bytes, level.reserved_bytes)).collect();
        assert_eq!(levels, [(100, None), (5_000, Some(8_000)), (4_900, Some(8_000))]);
    }

    #[test]
    fn what_the_host_maps_is_added_to_the_totals() {
        // Two letters are mappings: their reports say their own bytes as reserved, and 0 for all totals.
        let mut trace = drawn("rank 0 hostmemory 1 c|a|b|B|A|C|b");
        let says = [(0, 300), (5_000, 0), (0, 200), (0, 0), (4_900, 0), (0, 0), (0, 200)];
        for (event, (allocated, reserved)) in trace.memory.iter_mut().zip(says) {
            (event.allocated_bytes, event.reserved_bytes) = (Some(allocated), Some(reserved));
        }
        let pool = pools(&trace, &Selection::default()).remove(0);
        let levels: Vec<_> =
            pool.levels(&trace).iter().map(|level| (level.allocated_bytes, level.reserved_bytes)).collect();
        assert_eq!(levels, [5_200, 5_300, 5_500, 5_300, 5_200, 4_900, 5_100].map(|bytes| (bytes, None)));
    }

    #[test]
    fn without_addresses_nothing_is_paired_and_the_sum_is_never_below_0() {
        let mut trace = drawn("rank 0 memory 1 A.a.B");
        trace.memory.iter_mut().for_each(|event| event.address = 0);
        let pool = pools(&trace, &Selection::default()).remove(0);
        assert!(pool.allocations(&trace).iter().all(|row| row.state == AllocationState::Unpaired));
        assert_eq!(pool.levels(&trace).iter().map(|level| level.allocated_bytes).collect::<Vec<_>>(), [100, 200, 0]);
    }

    proptest! {
        #[test]
        fn what_is_held_and_what_was_held_before_sum_to_the_level(row in "[.abcABC]{1,40}") {
            let trace = drawn(&format!("rank 0 memory 1 {row}"));
            let Some(pool) = pools(&trace, &Selection::default()).pop() else { return Ok(()) };
            let rows = pool.allocations(&trace);
            for level in pool.levels(&trace) {
                let held: i64 = rows.iter().filter(|row| row.is_held_after(level.event)).map(|row| row.bytes).sum();
                let is_older = |row: &&Allocation| row.allocated.is_none() && row.freed > Some(level.event);
                let older: i64 = rows.iter().filter(is_older).map(|row| row.bytes).sum();
                let is_lost = |row: &&Allocation| row.state == AllocationState::Lost && row.over <= Some(level.event);
                let lost: i64 = rows.iter().filter(is_lost).map(|row| row.bytes).sum();
                prop_assert_eq!(level.allocated_bytes, held + older + lost);
            }
        }
    }
}
