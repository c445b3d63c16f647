//! # Definition
//! Every allocation with its free, by device and address. An allocation ends with the next free at its address in the
//! same process. `state` says how much of its life was recorded: `freed` from the allocation to the free; `held` it was
//! not freed before recording ended; `lost` its address was allocated again, so that it was freed unseen;
//! `allocated_before` only its free was recorded; `unpaired` the source gives no address, so that an allocation and its
//! free are a row each.
//!
//! The operator is the innermost that was open on the thread when it allocated, or, where only the free was recorded,
//! when it freed. File and line are the place in the program that called it, as in `source_lines`. The call stack, innermost
//! frame first, is that of the allocation, where the source gives one with its allocations. The stream is the one that the
//! memory was allocated for, as the source names it.
//!
//! # Units
//! Bytes; nanoseconds, `allocated_ns`, `freed_ns` and `op_start_ns` since the start of the trace.
//!
//! # Source
//! Allocations and frees as the framework's allocators reported them.
//!
//! # Edge cases
//! A row without a device is the host's memory. The bytes are those of the allocation where it was recorded, whatever
//! its free says. Events of no bytes have no row. For one step, the rows whose allocation, or else whose free, lies
//! inside it.

use crate::allocations::{Allocation, AllocationState, Pool};
use crate::op_tree::OpTree;
use crate::source_lines::calling_lines;
use crate::windows::contains;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use stepscope_base::Span;
use stepscope_trace::{MemoryEvent, SliceId, StackId, Trace, TrackId};

columns! {
    /// One allocation.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct AllocationRow {
        /// The rank.
        rank: u32 => Count,
        /// The number of the device within the rank. Absent for the memory of the host.
        device: Option<i64> => Count,
        /// The address. Absent when the source has none.
        address: Option<u64> => Count,
        /// Size of the allocation.
        bytes: i64 => Bytes,
        /// When it was allocated, counted from the start of the trace. Absent when that was not recorded.
        allocated_ns: Option<i64> => Nanoseconds,
        /// When it was freed, counted from the start of the trace. Absent when that was not recorded.
        freed_ns: Option<i64> => Nanoseconds,
        /// Time from the allocation to the free.
        duration_ns => Nanoseconds = Self::duration_ns,
        /// How much of its life was recorded.
        state: AllocationState => Text,
        /// The operator that allocated it, or else the one that freed it.
        op: Option<SliceId> => Text,
        /// When this operator starts, counted from the start of the trace.
        op_start_ns => Nanoseconds with |row, trace| row.op.map(|op| trace.slices.start_ns[op.index()]),
        /// The source file that called this operator.
        file: Option<Arc<str>> => Text,
        /// The line of the file.
        line: Option<u32> => Count,
        /// That operator's thread.
        track: TrackId,
        /// The thread of the allocation, or else of the free.
        thread => Text = |row| row.track,
        /// The stream that the memory is for.
        stream: Option<i64> => Count,
        /// The call stack of the allocation, or else of the free.
        stack: Option<StackId> => Text,
    }
}

impl AllocationRow {
    /// From the allocation to the free.
    pub fn duration_ns(&self) -> Option<i64> {
        Some(self.freed_ns? - self.allocated_ns?)
    }
}

/// Every allocation, by rank, the host's first, by its first event.
pub fn memory_events(trace: &Trace, selection: &Selection) -> Vec<AllocationRow> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<AllocationRow> {
    let AnalysisContext { trace, selection, .. } = *context;
    let tree = context.get::<OpTree>();
    let lines = calling_lines(trace, tree);
    let mut files: FxHashMap<&str, Arc<str>> = FxHashMap::default();
    let mut file_text = |file| Arc::clone(files.entry(file).or_insert_with(|| file.into()));
    let mut rows = Vec::new();
    for pool in context.get::<Vec<Pool>>() {
        let windows = selection.windows(trace, pool.rank);
        let device = pool.ordinal(trace);
        for pair in pool.allocations(trace) {
            let Some(event) = first_event(trace, pair) else { continue };
            let is_inside = |windows: &Vec<Span>| contains(windows, event.time_ns);
            if windows.as_ref().is_none_or(is_inside) {
                let line = tree.row(event.op).and_then(|op| lines[op as usize]);
                rows.push(AllocationRow {
                    rank: pool.rank,
                    device,
                    address: Some(event.address).filter(|address| *address != 0),
                    bytes: pair.bytes,
                    allocated_ns: pair.allocated.map(|at| trace.memory[at].time_ns),
                    freed_ns: pair.freed.map(|at| trace.memory[at].time_ns),
                    state: pair.state,
                    op: event.op,
                    file: line.and_then(|line| line.file).map(&mut file_text),
                    line: line.and_then(|line| line.line),
                    track: event.track,
                    stream: event.stream,
                    stack: event.stack,
                });
            }
        }
    }
    rows
}

fn first_event<'a>(trace: &'a Trace, pair: &Allocation) -> Option<&'a MemoryEvent> {
    pair.allocated.or(pair.freed).map(|at| &trace.memory[at])
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    fn lines(trace: &Trace, selection: Selection) -> Vec<String> {
        let us = |ns: Option<i64>| ns.map_or("-".into(), |ns| (ns / 1_000).to_string());
        let line = |row: &AllocationRow| {
            let device = row.device.map_or("host".into(), |device| device.to_string());
            let op = row.op.map_or("-", |op| trace.slice_name(op));
            let (from, to, dur) = (us(row.allocated_ns), us(row.freed_ns), us(row.duration_ns()));
            format!("{}/{device} {} {from}..{to}={dur} {} {op}", row.rank, row.bytes, row.state.as_str())
        };
        memory_events(trace, &selection).iter().map(line).collect()
    }

    #[test]
    fn an_allocation_has_its_free_its_duration_and_its_operator() {
        let trace = drawn(
            "rank 0 step         00001111
             rank 0 cpu 1        xx.y.zz.
             rank 0 memory 1     a..b.AC.
             rank 0 hostmemory 1 .a.A....",
        );
        let expected = [
            "0/host 100 1..3=2 freed x",
            "0/0 100 0..5=5 freed x",
            "0/0 200 3..-=- held y",
            "0/0 300 -..6=- allocated_before z",
        ];
        assert_eq!(lines(&trace, Selection::default()), expected);
        assert_eq!(lines(&trace, Selection { step: Some(1), ..Selection::default() }), expected[3..]);
    }

    #[test]
    fn an_allocation_has_the_place_that_made_it() {
        let mut trace = drawn(
            "rank 0 python 1 pppp..
             rank 0 cpu 1    .xx.y.
             rank 0 memory 1 ..ab.B",
        );
        let call = trace.slices.ids().find(|id| trace.slice_name(*id) == "p").expect("it was drawn");
        trace.slices.name[call.index()] = trace.strings.intern("train.py(12): step");
        let table = outcome(&AnalysisContext::new(&trace, &Selection::default())).table;
        let values = |name: &str| table.column(name).expect("such a column").values.clone();
        assert_eq!(values("op_start_ns"), Values::Int(vec![Some(1_000), None]));
        assert_eq!(values("file"), Values::Text(vec![Some("train.py".into()), None]));
        assert_eq!(values("line"), Values::Int(vec![Some(12), None]));
    }

    proptest! {
        #[test]
        fn pairs_are_those_found_by_looking_ahead(row in "[.abAB]{1,40}") {
            let trace = drawn(&format!("rank 0 cpu 1 x\nrank 0 memory 1 {row}"));
            let cells: Vec<char> = runs_of_equal_letters(&row);
            let mut expected = Vec::new();
            for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| **cell != '.') {
                let next = cells[at + 1..].iter().position(|other| other.eq_ignore_ascii_case(cell));
                let next = next.map(|more| at + 1 + more);
                let previous = cells[..at].iter().rposition(|other| other.eq_ignore_ascii_case(cell));
                let at_ns = at as i64 * 1_000;
                if cell.is_ascii_lowercase() {
                    let freed = next.filter(|next| cells[*next].is_ascii_uppercase());
                    expected.push((Some(at_ns), freed.map(|at| at as i64 * 1_000)));
                } else if previous.is_none_or(|previous| cells[previous].is_ascii_uppercase()) {
                    expected.push((None, Some(at_ns)));
                }
            }
            let rows = memory_events(&trace, &Selection::default());
            let found: Vec<_> = rows.iter().map(|row| (row.allocated_ns, row.freed_ns)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    /// The cells with one event a run, as drawings have it.
    fn runs_of_equal_letters(row: &str) -> Vec<char> {
        let cells: Vec<char> = row.chars().collect();
        let is_same = |at: usize| at > 0 && cells[at] == cells[at - 1];
        (0..cells.len()).map(|at| if is_same(at) { '.' } else { cells[at] }).collect()
    }
}
