//! # Definition
//! For each operator and device, how much memory its calls allocated and freed. Allocation size is the sum of the
//! allocations inside its calls; size increase is that less what was freed inside them. Self is the part that no
//! operator inside them did. A call inside a call of the same name counts once, with the outer one. Calls are those
//! inside which that device's memory was allocated or freed at all.
//!
//! The row without a name is what happened outside every operator. The self parts of a device sum to all its
//! allocations, and to all it allocated less all it freed.
//!
//! # Units
//! Bytes; counts of calls and of allocations.
//!
//! # Source
//! Allocations and frees as the framework's allocators reported them; each belongs to the innermost operator that was
//! open on its thread at that moment.
//!
//! # Edge cases
//! A row without a device is the host's memory. What one operator allocates and another frees increases the first and
//! decreases the second. For one step or window, what was allocated and freed inside it; a call that
//! touches memory in two of them is a call of each.

use crate::allocations::Pool;
use crate::windows::contains;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use stepscope_base::StringId;
use stepscope_trace::{SliceId, SliceKind, Trace};

/// What was allocated and freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Allocations.
    pub allocations: i64,
    /// Bytes allocated.
    pub allocation_bytes: i64,
    /// Bytes allocated less bytes freed.
    pub size_increase_bytes: i64,
}

impl Sizes {
    fn of(bytes: i64) -> Self {
        let is_allocation = bytes > 0;
        Self { allocations: is_allocation.into(), allocation_bytes: bytes.max(0), size_increase_bytes: bytes }
    }

    fn add(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.allocation_bytes = self.allocation_bytes.saturating_add(other.allocation_bytes);
        self.size_increase_bytes = self.size_increase_bytes.saturating_add(other.size_increase_bytes);
    }
}

columns! {
    /// The memory of one device that the calls of one operator touched.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct MemoryStatistics {
        /// The rank.
        rank: u32 => Count,
        /// The number of the device within the rank. Absent for the memory of the host.
        device: Option<i64> => Count,
        /// The operator. Absent for what happened outside of every operator.
        name: Option<String> => Text,
        /// Number of calls inside which memory of the device was allocated or freed.
        calls: Option<i64> => Count,
        /// By its calls.
        total: Sizes,
        /// The same without operators inside them.
        own: Sizes,
        /// Bytes allocated less bytes freed inside the calls.
        size_increase_bytes => Bytes = |row| row.total.size_increase_bytes,
        /// Bytes allocated less bytes freed inside the calls, but not by an operator inside them.
        self_size_increase_bytes => Bytes = |row| row.own.size_increase_bytes,
        /// Number of allocations inside the calls.
        allocations => Count = |row| row.total.allocations,
        /// Number of allocations inside the calls, but not by an operator inside them.
        self_allocations => Count = |row| row.own.allocations,
        /// Bytes allocated inside the calls.
        allocation_bytes => Bytes = |row| row.total.allocation_bytes,
        /// Bytes allocated inside the calls, but not by an operator inside them.
        self_allocation_bytes => Bytes = |row| row.own.allocation_bytes,
    }
}

/// A call inside which memory was touched.
struct Call {
    slice: SliceId,
    caller: Option<usize>,
    own: Sizes,
    total: Sizes,
}

/// Every operator that touched memory, by rank and device, the host first; the largest allocation size first.
pub fn memory_statistics(trace: &Trace, selection: &Selection) -> Vec<MemoryStatistics> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<MemoryStatistics> {
    let AnalysisContext { trace, selection, .. } = *context;
    let mut rows = Vec::new();
    for pool in context.get::<Vec<Pool>>() {
        let windows = selection.windows(trace, pool.rank);
        let is_inside = |at_ns: i64| windows.as_ref().is_none_or(|all| contains(all, at_ns));
        let events = pool.events.iter().map(|at| &trace.memory[*at]).filter(|event| is_inside(event.time_ns));
        let mut events: Vec<(Option<SliceId>, i64)> = events.map(|event| (event.op, event.bytes)).collect();
        let device = pool.ordinal(trace);
        let mut all = Sizes::default();
        events.iter().for_each(|(_, bytes)| all.add(Sizes::of(*bytes)));
        let mut of_pool = of_events(trace, &mut events);
        let mut own = Sizes::default();
        of_pool.iter().for_each(|row| own.add(row.own));
        assert!(own == all || own.allocation_bytes == i64::MAX, "self parts sum to all that was allocated and freed");
        of_pool.iter_mut().for_each(|row| (row.rank, row.device) = (pool.rank, device));
        of_pool
            .sort_by(|a, b| b.total.allocation_bytes.cmp(&a.total.allocation_bytes).then_with(|| a.name.cmp(&b.name)));
        rows.extend(of_pool);
    }
    rows
}

fn of_events(trace: &Trace, events: &mut [(Option<SliceId>, i64)]) -> Vec<MemoryStatistics> {
    let (calls, outside) = calls(trace, events);
    // Names are numbers already: no hashing.
    let mut by_name: Vec<Option<MemoryStatistics>> = vec![None; trace.strings.len()];
    let new = |name: Option<StringId>| MemoryStatistics {
        rank: 0,
        device: None,
        name: name.map(|name| trace.strings.get(name).to_string()),
        calls: name.map(|_| 0),
        total: Sizes::default(),
        own: Sizes::default(),
    };
    // Open calls from the outermost inwards, and how many of each name.
    let mut open: Vec<usize> = Vec::new();
    let mut open_of_name: Vec<u32> = vec![0; trace.strings.len()];
    for (at, call) in calls.iter().enumerate() {
        while open.last().is_some_and(|last| Some(*last) != call.caller) {
            let closed = open.pop().map(|last| trace.slices.name[calls[last].slice.index()]);
            closed.into_iter().for_each(|name| open_of_name[name.index()] -= 1);
        }
        let name = trace.slices.name[call.slice.index()];
        let row = by_name[name.index()].get_or_insert_with(|| new(Some(name)));
        row.own.add(call.own);
        let count = &mut open_of_name[name.index()];
        if *count == 0 {
            row.calls = row.calls.map(|calls| calls + 1);
            row.total.add(call.total);
        }
        *count += 1;
        open.push(at);
    }
    let outside = outside.map(|own| MemoryStatistics { own, total: own, ..new(None) });
    by_name.into_iter().flatten().chain(outside).collect()
}

/// The calls inside which memory was touched, callers before those they call, and what was touched outside of any.
fn calls(trace: &Trace, events: &mut [(Option<SliceId>, i64)]) -> (Vec<Call>, Option<Sizes>) {
    events.sort_by_key(|(op, _)| *op);
    let mut outside: Option<Sizes> = None;
    let mut calls: Vec<Call> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (op, bytes) in events {
        let sizes = Sizes::of(*bytes);
        let Some(op) = *op else {
            outside.get_or_insert_default().add(sizes);
            continue;
        };
        while let Some(last) = open.last().filter(|last| !is_around(trace, calls[**last].slice, op)) {
            close(&mut calls, *last);
            open.pop();
        }
        // What lies between the innermost call that is open already and this one.
        let known = open.last().map(|last| calls[*last].slice);
        let outwards = trace.slices.with_ancestors(op).take_while(|id| Some(*id) != known);
        let new: Vec<SliceId> = outwards.filter(|id| trace.slices.kind(*id) == SliceKind::Op).collect();
        for slice in new.into_iter().rev() {
            calls.push(Call { slice, caller: open.last().copied(), own: Sizes::default(), total: Sizes::default() });
            open.push(calls.len() - 1);
        }
        if let Some(last) = open.last() {
            calls[*last].own.add(sizes);
        }
    }
    open.into_iter().rev().for_each(|last| close(&mut calls, last));
    (calls, outside)
}

/// True when `outer` is `inner` or contains it; `outer` does not come after `inner`.
fn is_around(trace: &Trace, outer: SliceId, inner: SliceId) -> bool {
    let is_one_track = trace.slices.track[outer.index()] == trace.slices.track[inner.index()];
    outer == inner || is_one_track && trace.slices.span(outer).end_ns > trace.slices.start_ns[inner.index()]
}

/// Adds what a call touched to its total and to that of its caller.
fn close(calls: &mut [Call], at: usize) {
    let own = calls[at].own;
    calls[at].total.add(own);
    let total = calls[at].total;
    if let Some(caller) = calls[at].caller {
        calls[caller].total.add(total);
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    /// Rows as `device name xcalls: allocated/self, increase/self`.
    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let line = |row: &MemoryStatistics| {
            let device = row.device.map_or("host".into(), |device| device.to_string());
            let (name, calls) = (row.name.as_deref().unwrap_or("-"), row.calls.unwrap_or(-1));
            let (total, own) = (row.total, row.own);
            let allocated = format!("{}/{}", total.allocation_bytes, own.allocation_bytes);
            format!("{device} {name} x{calls}: {allocated}, {}/{}", total.size_increase_bytes, own.size_increase_bytes)
        };
        let rows = memory_statistics(&drawn(drawing), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_call_inside_a_call_of_its_name_counts_once() {
        check(
            "rank 0 cpu 1    mmmmmm.m
             rank 0 cpu 1    .xxxx...
             rank 0 cpu 1    ..mm....
             rank 0 memory 1 a.b.B.Ac",
            Selection::default(),
            &["0 m x2: 600/600, 400/600", "0 x x1: 200/0, 0/-200", "0 - x-1: 0/0, -100/-100"],
        );
    }

    #[test]
    fn what_belongs_to_a_step_happened_inside_it() {
        check(
            "rank 0 step         00001111
             rank 0 cpu 1        mmmmmmmm
             rank 0 memory 1     a.....A.
             rank 0 hostmemory 1 .c...b..",
            Selection { step: Some(1), ..Selection::default() },
            &["host m x1: 200/200, 200/200", "0 m x1: 0/0, -100/-100"],
        );
    }

    proptest! {
        #[test]
        fn one_sweep_equals_asking_every_event_for_all_its_operators(
            outer in "[.mx|]{30}", middle in "[.mx|]{30}", inner in "[.mx|]{30}", memory in "[.abcABC]{30}",
        ) {
            let trace = drawn(&format!(
                "rank 0 cpu 1 {outer}\nrank 0 cpu 1 {middle}\nrank 0 cpu 1 {inner}\nrank 0 memory 1 {memory}"
            ));
            let rows = memory_statistics(&trace, &Selection::default());
            for name in ["m", "x"] {
                let mut expected = (Sizes::default(), Sizes::default());
                let mut calls = std::collections::BTreeSet::new();
                for event in &trace.memory {
                    let Some(op) = event.op else { continue };
                    let around: Vec<SliceId> = trace.slices.with_ancestors(op).filter(|id| trace.slice_name(*id) == name).collect();
                    if let Some(outermost) = around.last() {
                        expected.0.add(Sizes::of(event.bytes));
                        calls.insert(*outermost);
                    }
                    if around.first() == Some(&op) {
                        expected.1.add(Sizes::of(event.bytes));
                    }
                }
                let row = rows.iter().find(|row| row.name.as_deref() == Some(name));
                prop_assert_eq!(row.map(|row| (row.total, row.own)).unwrap_or_default(), expected);
                prop_assert_eq!(row.and_then(|row| row.calls).unwrap_or(0), calls.len() as i64);
            }
        }
    }
}
