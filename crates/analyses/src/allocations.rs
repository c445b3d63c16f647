//! Allocations paired with their frees, and how much memory is in use after each of them: what the analyses of memory
//! share.

use crate::Selection;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::Span;
use stepscope_trace::{DeviceId, MemoryEvent, ProcessId, Trace};

/// Memory of one device of a rank, or of its host, and its events as rows of `trace.memory`, by time.
pub(crate) struct Pool {
    pub(crate) rank: u32,
    pub(crate) device: Option<DeviceId>,
    pub(crate) events: Vec<usize>,
}

impl Pool {
    /// The device's number within the rank; `None` for the host.
    pub(crate) fn ordinal(&self, trace: &Trace) -> Option<i64> {
        self.device.map(|device| trace.devices[device.index()].ordinal)
    }
}

/// Every memory of the ranks asked for that has events, by rank, the host's first.
pub(crate) fn pools(trace: &Trace, selection: &Selection) -> Vec<Pool> {
    let mut events: BTreeMap<(u32, Option<DeviceId>), Vec<usize>> = BTreeMap::new();
    for (at, event) in trace.memory.iter().enumerate() {
        let rank = trace.rank_of_track(event.track);
        if selection.has_rank(rank) {
            events.entry((rank, event.device)).or_default().push(at);
        }
    }
    events.into_iter().map(|((rank, device), events)| Pool { rank, device, events }).collect()
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

/// The allocations of a pool, by their first event. Addresses count within a process. Events of no bytes are none.
pub(crate) fn allocations(trace: &Trace, pool: &Pool) -> Vec<Allocation> {
    let mut rows: Vec<Allocation> = Vec::new();
    let mut live: FxHashMap<(ProcessId, u64), usize> = FxHashMap::default();
    for at in pool.events.iter().copied() {
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
    reserved_bytes: Option<i64>,
}

/// The level after each event of a pool: the source's own totals where it gives them, else the sum so far. Several
/// processes of a rank add up.
pub(crate) fn levels(trace: &Trace, pool: &Pool) -> Vec<Level> {
    let mut of_process = levels_before(trace, pool);
    let total = |of_process: &BTreeMap<ProcessId, OfProcess>| {
        of_process.values().fold(0_i64, |sum, level| sum.saturating_add(level.allocated_bytes))
    };
    let mut allocated_bytes = total(&of_process);
    let mut levels = Vec::with_capacity(pool.events.len());
    for at in pool.events.iter().copied() {
        let event = &trace.memory[at];
        let own = of_process.entry(process_of(trace, event)).or_default();
        let before = own.allocated_bytes;
        own.allocated_bytes = event.allocated_bytes.unwrap_or(before.saturating_add(event.bytes));
        // A host's allocator keeps nothing in reserve, and its reports say 0.
        let is_known = pool.device.is_some() || event.reserved_bytes != Some(0);
        own.reserved_bytes = event.reserved_bytes.filter(|_| is_known).or(own.reserved_bytes);
        allocated_bytes = allocated_bytes.saturating_sub(before).saturating_add(own.allocated_bytes);
        let reserved = of_process.values().filter_map(|level| level.reserved_bytes);
        let reserved_bytes = reserved.reduce(|a, b| a.saturating_add(b));
        levels.push(Level { time_ns: event.time_ns, event: at, allocated_bytes, reserved_bytes });
    }
    levels
}

/// What each process held before its first event: by the source's total, else what it freed without having allocated
/// it, and at least so much that the sum is never below 0.
fn levels_before(trace: &Trace, pool: &Pool) -> BTreeMap<ProcessId, OfProcess> {
    let mut before: BTreeMap<ProcessId, (i64, Option<i64>)> = BTreeMap::new();
    let mut sums: BTreeMap<ProcessId, i64> = BTreeMap::new();
    for at in pool.events.iter().copied() {
        let event = &trace.memory[at];
        let process = process_of(trace, event);
        let sum = sums.entry(process).or_insert(0);
        *sum = sum.saturating_add(event.bytes);
        let by_total = || event.allocated_bytes.map(|total| total.saturating_sub(event.bytes));
        let (lowest, _) = before.entry(process).or_insert_with(|| (0, by_total()));
        *lowest = (*lowest).min(*sum);
    }
    let mut freed_only: BTreeMap<ProcessId, i64> = BTreeMap::new();
    if before.values().any(|(_, total)| total.is_none()) {
        for row in allocations(trace, pool).iter().filter(|row| row.state == AllocationState::AllocatedBefore) {
            let Some(freed) = row.freed else { continue };
            let bytes = freed_only.entry(process_of(trace, &trace.memory[freed])).or_default();
            *bytes = bytes.saturating_add(row.bytes);
        }
    }
    let level = |(process, (lowest, total)): (ProcessId, (i64, Option<i64>))| {
        let freed_only = freed_only.get(&process).copied().unwrap_or(0);
        let allocated_bytes = total.unwrap_or(freed_only.max(lowest.saturating_neg()));
        (process, OfProcess { allocated_bytes, reserved_bytes: None })
    };
    before.into_iter().map(level).collect()
}

/// The levels inside `window`, beginning with the one that it begins with.
pub(crate) fn levels_inside(levels: &[Level], window: Option<Span>) -> Vec<Level> {
    let Some(window) = window else { return levels.to_vec() };
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
        assert_eq!(allocations(&trace, &pool).iter().map(pair).collect::<Vec<_>>(), pairs);
        let levels: Vec<i64> = levels(&trace, &pool).iter().map(|level| level.allocated_bytes).collect();
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
            levels(&trace, &pool).iter().map(|level| (level.allocated_bytes, level.reserved_bytes)).collect();
        assert_eq!(levels, [(100, None), (5_000, Some(8_000)), (4_900, Some(8_000))]);
    }

    #[test]
    fn without_addresses_nothing_is_paired_and_the_sum_is_never_below_0() {
        let mut trace = drawn("rank 0 memory 1 A.a.B");
        trace.memory.iter_mut().for_each(|event| event.address = 0);
        let pool = pools(&trace, &Selection::default()).remove(0);
        assert!(allocations(&trace, &pool).iter().all(|row| row.state == AllocationState::Unpaired));
        assert_eq!(levels(&trace, &pool).iter().map(|level| level.allocated_bytes).collect::<Vec<_>>(), [100, 200, 0]);
    }

    proptest! {
        #[test]
        fn what_is_held_and_what_was_held_before_sum_to_the_level(row in "[.abcABC]{1,40}") {
            let trace = drawn(&format!("rank 0 memory 1 {row}"));
            let Some(pool) = pools(&trace, &Selection::default()).pop() else { return Ok(()) };
            let rows = allocations(&trace, &pool);
            for level in levels(&trace, &pool) {
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
